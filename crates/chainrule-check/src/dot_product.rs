//! Reverse mode against forward mode, at random probes.

use super::{inner, probe, require_f64};
use crate::autograd::{jvp, vjp};
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::{Tensor, no_grad};

/// The two sides of `<v, J u> = <J^T v, u>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DotProduct {
    /// `<v, J u>`, by forward mode.
    pub forward: f64,
    /// `<J^T v, u>`, by reverse mode.
    pub reverse: f64,
    /// The larger of the two products' sums of magnitudes, which rounding is proportional to.
    pub scale: f64,
}

impl DotProduct {
    /// Distance of the sides, as a fraction of `scale`: near 1e-16 if both are right, near 1 if one
    /// is wrong. NaN if a side is.
    ///
    /// A gradient of all zeros cannot hide: the scale then comes from the other side.
    pub fn error(&self) -> f64 {
        let apart = (self.forward - self.reverse).abs();
        if apart == 0.0 { 0.0 } else { apart / self.scale }
    }
}

/// Draws Gaussian `u` and `v` and computes both sides of `<v, J u> = <J^T v, u>`, where `J` is the
/// Jacobian of `f` at `inputs`: the left one by the forward rules, the right one by the reverse
/// rules, which are written independently of each other.
///
/// Errors for inputs that are not f64.
///
/// ```
/// use chainrule::{Generator, Tensor, check::dot_product};
/// let x = Tensor::from([0.3f64, -1.2]);
/// let test = dot_product(|x| x[0].tanh(), &[x], &mut Generator::manual_seed(1)).unwrap();
/// assert!(test.error() < 1e-12);
/// ```
pub fn dot_product(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    generator: &mut Generator,
) -> Result<DotProduct> {
    require_f64("dot_product", inputs)?;
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let value = no_grad(|| f(&inputs));
    let v = probe(value.shape(), value.dtype(), generator)?;
    let u: Vec<Tensor> =
        inputs.iter().map(|x| probe(x.shape(), x.dtype(), generator)).collect::<Result<_>>()?;
    let (_, tangent) = jvp(&f, &inputs, &u)?;
    let (_, gradients) = vjp(&f, &inputs, &v)?;
    let (forward, size) = inner(&v, &tangent);
    let (mut reverse, mut other) = (0.0, 0.0);
    for (g, u) in gradients.iter().zip(&u) {
        let (sum, size) = inner(g, u);
        reverse += sum;
        other += size;
    }
    Ok(DotProduct { forward, reverse, scale: size.max(other) })
}
