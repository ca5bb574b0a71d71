//! The gradient of a function, checked element by element.

use std::fmt;

use super::{inner, probe, require_f64, richardson};
use crate::autograd::{jvp, vjp};
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::shape::Shape;
use crate::tensor::{Tensor, no_grad};

/// What [`gradcheck`] found, for each input.
#[derive(Clone, Debug)]
pub struct GradCheck {
    /// In the order of the inputs.
    pub inputs: Vec<InputCheck>,
}

/// The gradient of one input, checked.
#[derive(Clone, Debug)]
pub struct InputCheck {
    /// Which input.
    pub input: usize,
    /// The worst relative error among its elements, reverse mode against forward mode. NaN if either side is.
    pub worst: f64,
    /// The index of that element.
    pub at: Vec<usize>,
    /// Its gradient by reverse mode.
    pub reverse: f64,
    /// Its gradient by forward mode.
    pub forward: f64,
    /// The gradient along one random direction, against differences.
    pub directional: Directional,
}

/// The gradient along a direction against an extrapolated difference.
#[derive(Clone, Copy, Debug)]
pub struct Directional {
    /// By reverse mode.
    pub reverse: f64,
    /// By differences.
    pub difference: f64,
    /// How far they may be apart.
    pub allowed: f64,
    /// Whether the step sizes disagree: there is a kink near, and the difference says nothing.
    pub kink: bool,
}

impl GradCheck {
    /// The largest relative error of an element, against forward mode, that passes.
    pub const TOLERANCE: f64 = 1e-9;

    /// Whether every input passed.
    pub fn passed(&self) -> bool {
        self.inputs.iter().all(InputCheck::passed)
    }
}

impl InputCheck {
    /// Whether every element agrees with forward mode, and the direction with its difference or lies across a kink.
    pub fn passed(&self) -> bool {
        self.worst <= GradCheck::TOLERANCE && (self.directional.kink || self.directional.agrees())
    }
}

impl Directional {
    /// Relative error that passes, beside the difference's own.
    const TOLERANCE: f64 = 1e-7;

    /// Whether the two are as close as the difference can tell.
    pub fn agrees(&self) -> bool {
        (self.reverse - self.difference).abs() <= self.allowed
    }
}

/// Checks the gradients of `<v, f(inputs)>` with respect to every input, `v` being a fixed Gaussian probe: each element by forward mode,
/// whose rules are written independently, and one Gaussian direction of each input by [`richardson`] differences.
///
/// The relative error of an element is `|a - b| / max(|a|, |b|, m / 1000)` with `m` the largest gradient of that input: elements
/// that cancel to nearly nothing are measured by their neighbours.
///
/// One forward pass is made for each element: meant for small inputs. The probes are the same on every run. `f` must be a function of
/// its arguments alone (fix the seed of a dropout). Errors for inputs that are not f64.
///
/// ```
/// use chainrule::{Tensor, check::gradcheck};
/// let (a, b) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[0.5], [-1.5]]));
/// let report = gradcheck(|x| x[0].matmul(&x[1]), &[a, b]).unwrap();
/// assert!(report.passed());
/// assert!(report.inputs[1].worst < 1e-12);
/// ```
pub fn gradcheck(f: impl Fn(&[Tensor]) -> Tensor, inputs: &[Tensor]) -> Result<GradCheck> {
    require_f64("gradcheck", inputs)?;
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let generator = &mut Generator::manual_seed(1);
    let value = no_grad(|| f(&inputs));
    if !value.dtype().is_float() {
        let why = "the function must return floats";
        return Err(Error::dtype("gradcheck", &[value.dtype()], why));
    }
    let v = probe(value.shape(), value.dtype(), generator)?;
    let (_, gradients) = vjp(&f, &inputs, &v)?;
    let mut checks = Vec::with_capacity(inputs.len());
    for (i, gradient) in gradients.iter().enumerate() {
        let reverse = gradient.to_f64_vec();
        let forward = forward_gradient(&f, &inputs, i, &v)?;
        let (worst, at) = worst(&reverse, &forward);
        let pick = |values: &[f64]| values.get(at).copied().unwrap_or(0.0);
        checks.push(InputCheck {
            input: i,
            worst,
            at: index_of(at, &gradient.shape()),
            reverse: pick(&reverse),
            forward: pick(&forward),
            directional: along(&f, &inputs, i, &v, gradient, generator)?,
        });
    }
    Ok(GradCheck { inputs: checks })
}

/// The gradient of input `i` by one forward pass for each element.
fn forward_gradient(
    f: &impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    i: usize,
    v: &Tensor,
) -> Result<Vec<f64>> {
    let mut tangents: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
    let n = inputs[i].numel();
    let mut out = Vec::with_capacity(n);
    for j in 0..n {
        let mut one_hot = vec![0.0; n];
        one_hot[j] = 1.0;
        tangents[i] = Tensor::try_from_slice(&one_hot, inputs[i].shape())?;
        let (_, tangent) = jvp(f, inputs, &tangents)?;
        out.push(inner(v, &tangent).0);
    }
    Ok(out)
}

/// The worst relative error and where it is.
fn worst(reverse: &[f64], forward: &[f64]) -> (f64, usize) {
    let both = || reverse.iter().zip(forward);
    let largest = both().fold(0.0, |m: f64, (a, b)| m.max(a.abs()).max(b.abs()));
    let mut found = (0.0, 0);
    for (j, (a, b)) in both().enumerate() {
        let apart = (a - b).abs();
        let error =
            if apart == 0.0 { 0.0 } else { apart / a.abs().max(b.abs()).max(largest * 1e-3) };
        // A NaN is worse than any number, and stays.
        if error > found.0 || (error.is_nan() && !f64::is_nan(found.0)) {
            found = (error, j);
        }
    }
    found
}

/// Where element `position` of a row-major array is.
fn index_of(mut position: usize, shape: &Shape) -> Vec<usize> {
    let mut index = vec![0; shape.rank()];
    for (place, &size) in index.iter_mut().zip(shape.iter()).rev() {
        *place = position % size.max(1);
        position /= size.max(1);
    }
    index
}

/// Input `i` alone along a Gaussian direction.
fn along(
    f: &impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    i: usize,
    v: &Tensor,
    gradient: &Tensor,
    generator: &mut Generator,
) -> Result<Directional> {
    let mut directions: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
    directions[i] = probe(inputs[i].shape(), inputs[i].dtype(), generator)?;
    let (reverse, size) = inner(gradient, &directions[i]);
    let scalar = |x: &[Tensor]| Tensor::scalar(inner(v, &f(x)).0);
    let found = richardson(scalar, inputs, &directions)?;
    let difference = found.value.item();
    Ok(Directional {
        reverse,
        difference,
        allowed: Directional::TOLERANCE * size.max(difference.abs()) + found.error.item(),
        kink: !found.kinks.is_empty(),
    })
}

impl fmt::Display for GradCheck {
    /// One line for each input.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, check) in self.inputs.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{check}")?;
        }
        Ok(())
    }
}

impl fmt::Display for InputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        write!(
            f,
            "input {}: {verdict}, worst relative error {:.1e} at {:?} (reverse {:.12e}, forward {:.12e})",
            self.input, self.worst, self.at, self.reverse, self.forward
        )?;
        let d = &self.directional;
        if d.kink {
            return write!(f, "; a kink near: not compared with differences");
        }
        write!(
            f,
            "; along a direction {:.12e}, by differences {:.12e} (within {:.1e})",
            d.reverse, d.difference, d.allowed
        )
    }
}
