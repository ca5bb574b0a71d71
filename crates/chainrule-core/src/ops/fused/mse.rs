//! `mse`: the mean of squared differences.

use super::pointwise::{
    MISSING_MEAN, Pointwise, SIGN, difference, loss_samples, pointwise, wrong_slope,
};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
struct Mse;

impl Pointwise for Mse {
    const ID: OpId = OpId::mse;
    const NAME: &'static str = "mse";
    const GRAD: &'static str = "mse_grad";
    const STEPS: [u64; 2] = [3, 2];
    const NUMPY: [&'static str; 3] = ["({0} - {1}) ** 2", "2 * ({0} - {1})", "2 * ({1} - {0})"];

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        (x - t) * (x - t)
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let d = x - t;
        d + d
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let d = x.try_sub(t)?;
        d.try_mul(&d)
    }

    /// The product rule on `d * d`: `d * dd`, twice.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let products = x.try_sub(t)?.try_mul(&difference(dx, dt)?)?;
        products.try_add(&products)
    }
}

methods! {
    /// The mean of `(x - target)^2` over all elements, a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal: a `[n, 1]` beside a `[n]` is an error, not a matrix of
    /// differences. Different dtypes are promoted. The mean of no elements is NaN. Gradient:
    /// `dx = 2 g (x - target) / n`, and its negative for the target.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([1.0f32, 2.0]).mse(&Tensor::from([0.0f32, 4.0]));
    /// assert_eq!(loss.item(), 2.5);
    /// ```
    pub fn mse / try_mse(&self, target: &Tensor) -> Tensor {
        pointwise(Mse, self, target, Reduction::Mean)
    }

    /// [`Tensor::mse`] with another reduction: the sum of the squares, or each of them.
    ///
    /// ```
    /// use chainrule::{Reduction, Tensor};
    /// let (x, target) = (Tensor::from([1.0f32, 2.0]), Tensor::from([0.0f32, 4.0]));
    /// assert_eq!(x.mse_with(&target, Reduction::Sum).item(), 5.0);
    /// assert_eq!(x.mse_with(&target, Reduction::None).to_vec::<f32>(), [1.0, 4.0]);
    /// ```
    pub fn mse_with / try_mse_with(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        pointwise(Mse, self, target, reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "mse",
    family: Family::Fused,
    signature: "x.mse(&target), x.mse_with(&target, reduction)",
    python: &[Binding::with("mse_loss", &[Parameter::tensor("target"), REDUCTION], |x, a| {
        x.try_mse_with(a.tensor(0), Reduction::of(a.choice(1)))
    })
    .only_functional()],
    formula: "mean((x - target)^2)",
    gradient: "dx = 2 g (x - target) / n; dtarget = -dx",
    at_kinks: "the mean of no elements is NaN",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| (normal(g, s), normal(g, s));
        let mut out = loss_samples::<Mse>(g, draw, |x, t, r| x.try_mse_with(t, r));
        out.push(Sample::new("a matrix against its transpose", vec![normal(g, [3, 3])], |x| {
            x[0].try_mse(&x[0].try_t()?)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "factor 2 forgotten",
            what: "the derivative of a square was taken for the difference itself",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
