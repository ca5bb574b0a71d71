//! Directional derivatives by differences, extrapolated.

use super::require_f64;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, no_grad};

/// How many steps are tried, each half of the one before; for inputs of size 1 or less. Larger ones start with larger steps, and get as many
/// more as lead to the same last one.
const STEPS: usize = 11;

/// How often a row of the table is extrapolated: each time takes away the next power of the step squared.
const ORDERS: usize = 6;

/// A directional derivative by differences.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The derivative of each element of the function's value, in f64.
    pub value: Tensor,
    /// An estimate of how far each of them may be off, with rounding; infinite where nothing finite was found.
    pub error: Tensor,
    /// The elements (counted in row-major order) at which the step sizes disagree: there is a kink, a jump or an edge of the
    /// domain at the point or very near it, and the value means nothing.
    pub kinks: Vec<usize>,
}

/// The derivative of `f` at `inputs` along `directions` by central differences, extrapolated to step 0 (Richardson 1911; the
/// choice of the best entry of the table is that of Ridders 1982).
///
/// `f` is called 23 times (twice more for each doubling of the largest input beyond 1) and can be any function of f64 tensors: nothing is asked of a tape. The largest step moves no element by
/// more than an eighth of the largest element (or of 0.1). For smooth functions about eleven digits are right.
///
/// A kink at the point shows in the second difference: divided by the step it goes to 0 where `f` is smooth, and to the jump of
/// the slope where it is not. A kink beside the point shows in steps that cross it and others that do not.
///
/// Errors for inputs that are not f64, for directions of other shapes, and for an `f` that changes the shape of its value.
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
        let points: Vec<Point> = samples
            .iter()
            .map(|(step, up, down)| Point { step: *step, reach, up: up[i], middle, down: down[i] })
            .collect();
        let (value, error) = extrapolate(&points);
        if kinked(&points, value, error) {
            out.2.push(i);
        }
        out.0.push(value);
        out.1.push(error);
    }
    Ok(Difference {
        value: Tensor::try_from_slice(&out.0, origin.shape())?,
        error: Tensor::try_from_slice(&out.1, origin.shape())?,
        kinks: out.2,
    })
}

/// The largest magnitude.
fn largest(tensors: &[Tensor]) -> f64 {
    let all = tensors.iter().flat_map(Tensor::to_f64_vec);
    all.fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// The largest step: an eighth of the size of the inputs, along the direction.
fn first_step(reach: f64, direction: f64) -> f64 {
    if direction == 0.0 {
        return 0.125;
    }
    0.125 * reach.max(0.1) / direction
}

/// One element of the value on both sides of the point.
struct Point {
    step: f64,
    /// The largest input.
    reach: f64,
    up: f64,
    middle: f64,
    down: f64,
}

impl Point {
    fn slope(&self) -> f64 {
        (self.up - self.down) / (2.0 * self.step)
    }

    /// The change of the slope across the point.
    fn bend(&self) -> f64 {
        ((self.up - self.middle) - (self.middle - self.down)).abs() / self.step
    }

    /// What rounding does to the slope: of the function's values, if they are right to the last bit or so, and of the points themselves.
    fn rounding(&self) -> f64 {
        let values = self.up.abs().max(self.down.abs());
        f64::EPSILON * (values + self.slope().abs() * self.reach) / self.step
    }
}

/// The entry of the extrapolation table that agrees best with its neighbours, and how far it may be off.
fn extrapolate(points: &[Point]) -> (f64, f64) {
    let mut best = (points[points.len() - 1].slope(), f64::INFINITY);
    let mut before: Vec<f64> = Vec::new();
    for point in points {
        let mut row = vec![point.slope()];
        for order in 1..=ORDERS.min(before.len()) {
            let (coarse, fine) = (before[order - 1], row[order - 1]);
            let next = fine + (fine - coarse) / (4f64.powi(order as i32) - 1.0);
            let apart = (next - fine).abs().max((next - coarse).abs());
            // The best of many entries may agree by luck: hence the factor.
            let error = 4.0 * apart + point.rounding();
            if error < best.1 {
                best = (next, error);
            }
            row.push(next);
        }
        before = row;
    }
    best
}

/// Whether the step sizes disagree.
fn kinked(points: &[Point], value: f64, error: f64) -> bool {
    let (fine, coarse) = (&points[points.len() - 1], &points[points.len() - 3]);
    // Rounding may be a thousand times that of a single operation before it is taken for a kink.
    let noise = 1e3 * (fine.rounding() + f64::EPSILON * fine.middle.abs() / fine.step);
    let bends = fine.bend() > noise && fine.bend() > 0.5 * coarse.bend();
    let apart = error > 1e-3 * value.abs() + noise;
    bends || apart || !value.is_finite()
}
