//! Directional derivatives by differences, extrapolated.

use super::extrapolate::{Quotients, limit};
use super::require_f64;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, no_grad};

/// Number of steps, each half of the one before, for inputs of size 1 or less. Larger inputs start
/// with larger steps, and get enough further ones to reach the same last step.
const STEPS: usize = 11;

/// A directional derivative by differences.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The derivative of each element of the function's value, in f64.
    pub value: Tensor,
    /// An estimate of each one's error, including rounding; infinite where nothing finite was
    /// found.
    pub error: Tensor,
    /// The elements (counted in row-major order) at which the step sizes disagree: there is a kink,
    /// a jump or an edge of the domain at the point or very near it, and the value means nothing.
    pub kinks: Vec<usize>,
}

/// The derivative of `f` at `inputs` along `directions` by central differences, extrapolated to
/// step 0 (Richardson 1911; the choice of the best entry of the table is that of Ridders 1982).
///
/// `f` is called 23 times (twice more for each doubling of the largest input beyond 1) and can be
/// any function of f64 tensors: nothing is asked of a tape. The largest step moves no element by
/// more than an eighth of the largest element (or of 0.1). For smooth functions about eleven digits
/// are right.
///
/// A kink at the point shows in the second difference: divided by the step it goes to 0 where `f`
/// is smooth, and to the jump of the slope where it is not. A kink beside the point shows in steps
/// that cross it and others that do not.
///
/// Errors for inputs that are not f64, for directions of other shapes, and for an `f` that changes
/// the shape of its value.
///
/// ```
/// use chainrule::{Tensor, check::richardson};
/// let (x, u) = (Tensor::from([2.0f64]), Tensor::from([1.0f64]));
/// let d = richardson(|x| &x[0] * &x[0] * &x[0], &[x], &[u]).unwrap();
/// assert!((d.value.item() - 12.0).abs() < 1e-9 && d.kinks.is_empty());
/// ```
pub fn richardson(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    directions: &[Tensor],
) -> Result<Difference> {
    require_f64("richardson", inputs)?;
    require_f64("richardson", directions)?;
    let shapes = |tensors: &[Tensor]| tensors.iter().map(Tensor::shape).collect::<Vec<_>>();
    if shapes(inputs) != shapes(directions) {
        let why = "each input needs a direction of its shape";
        return Err(Error::argument("richardson", why));
    }
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let reach = largest(&inputs);
    let start = first_step(reach, largest(directions));
    let steps = STEPS + reach.clamp(1.0, 1e6).log2().ceil() as usize;
    let origin = no_grad(|| f(&inputs));
    let at = |step: f64| -> Result<Vec<f64>> {
        let moved = inputs.iter().zip(directions);
        let moved: Vec<Tensor> =
            moved.map(|(x, u)| x.try_add(&u.detach().try_mul(step)?)).collect::<Result<_>>()?;
        let value = no_grad(|| f(&moved));
        if value.shape() != origin.shape() {
            let why = "the function must return the same shape at every point";
            let shapes = [&origin.shape(), &value.shape()];
            return Err(Error::shape("richardson", &shapes, why));
        }
        Ok(value.to_f64_vec())
    };
    let mut samples = Vec::with_capacity(steps);
    for k in 0..steps {
        let step = start / (1u32 << k) as f64;
        samples.push((step, at(step)?, at(-step)?));
    }
    let mut out = (Vec::new(), Vec::new(), Vec::new());
    for (i, &middle) in origin.to_f64_vec().iter().enumerate() {
        let row = |(step, up, down): &(f64, Vec<f64>, Vec<f64>)| {
            element(*step, reach, up[i], middle, down[i])
        };
        let found = limit(&samples.iter().map(row).collect::<Vec<Quotients>>());
        if found.kink || found.coarse {
            out.2.push(i);
        }
        out.0.push(found.value);
        out.1.push(found.error);
    }
    Ok(Difference {
        value: Tensor::try_from_slice(&out.0, origin.shape())?,
        error: Tensor::try_from_slice(&out.1, origin.shape())?,
        kinks: out.2,
    })
}

/// The differences of one element whose value is `up` and `down` a step away on either side, with
/// inputs of size `reach`.
fn element(step: f64, reach: f64, up: f64, middle: f64, down: f64) -> Quotients {
    let slope = (up - down) / (2.0 * step);
    let values = up.abs().max(down.abs());
    Quotients {
        slope,
        bend: ((up - middle) - (middle - down)).abs() / step,
        // Rounding of the function's values, if they are right to the last bit or so, and of the
        // points themselves.
        rounding: f64::EPSILON * (values + slope.abs() * reach) / step,
        middle_rounding: f64::EPSILON * middle.abs() / step,
    }
}

/// The largest magnitude.
pub(super) fn largest(tensors: &[Tensor]) -> f64 {
    let all = tensors.iter().flat_map(Tensor::to_f64_vec);
    all.fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// The largest step: an eighth of the size of the inputs, along the direction.
pub(super) fn first_step(reach: f64, direction: f64) -> f64 {
    if direction == 0.0 {
        return 0.125;
    }
    0.125 * reach.max(0.1) / direction
}
