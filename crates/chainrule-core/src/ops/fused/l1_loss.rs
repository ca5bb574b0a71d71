//! `l1_loss`: the mean of absolute differences.

use super::pointwise::{
    MISSING_MEAN, Pointwise, SIGN, difference, loss_samples, pointwise, wrong_slope,
};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
pub(super) struct L1;

impl Pointwise for L1 {
    const ID: OpId = OpId::l1_loss;
    const NAME: &'static str = "l1_loss";
    const GRAD: &'static str = "l1_loss_grad";
    const STEPS: [u64; 2] = [3, 2];
    const NUMPY: [&'static str; 3] =
        ["np.abs({0} - {1})", "np.sign({0} - {1})", "np.sign({1} - {0})"];

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        (x - t).abs()
    }

    /// The sign of the difference: 0 at 0 and at NaN.
    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let d = x - t;
        let above = if T::ZERO < d { T::ONE } else { T::ZERO };
        let below = if d < T::ZERO { T::ONE } else { T::ZERO };
        above - below
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        x.try_sub(t)?.try_abs()
    }

    /// By way of two comparisons: the tangent where x > t, less it where x < t.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let dd = difference(dx, dt)?;
        let above = x.try_gt(t)?.try_to_dtype(dd.dtype())?;
        let below = x.try_lt(t)?.try_to_dtype(dd.dtype())?;
        dd.try_mul(&above)?.try_sub(&dd.try_mul(&below)?)
    }
}

methods! {
    /// The mean of `|x - target|` over all elements, a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal. Different dtypes are promoted. The mean of no elements is NaN.
    /// Gradient: `dx = g sign(x - target) / n`, and its negative for the target; where they are
    /// equal, and where the difference is NaN, it is 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([1.0f32, 2.0]).l1_loss(&Tensor::from([0.0f32, 4.0]));
    /// assert_eq!(loss.item(), 1.5);
    /// ```
    pub fn l1_loss / try_l1_loss(&self, target: &Tensor) -> Tensor {
        pointwise(L1, self, target, Reduction::Mean)
    }

    /// [`Tensor::l1_loss`] with another reduction.
    ///
    /// ```
    /// use chainrule::{Reduction, Tensor};
    /// let (x, target) = (Tensor::from([1.0f32, 2.0]), Tensor::from([0.0f32, 4.0]));
    /// assert_eq!(x.l1_loss_with(&target, Reduction::Sum).item(), 3.0);
    /// ```
    pub fn l1_loss_with / try_l1_loss_with(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        pointwise(L1, self, target, reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "l1_loss",
    family: Family::Fused,
    signature: "x.l1_loss(&target), x.l1_loss_with(&target, reduction)",
    python: &[Binding::with("l1_loss", &[Parameter::tensor("target"), REDUCTION], |x, a| {
        x.try_l1_loss_with(a.tensor(0), Reduction::of(a.choice(1)))
    })
    .only_functional()],
    formula: "mean(|x - target|)",
    gradient: "dx = g * sign(x - target) / n; dtarget = -dx",
    at_kinks: "the gradient is 0 where prediction and target are equal; the mean of no elements is NaN",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| {
            let x = normal(g, s);
            let away = normal(g, s);
            // At least 1/2 apart.
            let d = &away + away.gt(0).where_(&away.like(0.5), -0.5);
            (&x + d, x)
        };
        let mut out = loss_samples::<L1>(g, draw, |x, t, r| x.try_l1_loss_with(t, r));
        let equal = vec![Tensor::from([1.0f64, 2.0]), Tensor::from([1.0f64, 3.0])];
        out.push(Sample::new("equal elements", equal, |x| x[0].try_l1_loss(&x[1])).at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "difference for its sign",
            what: "x - target was taken for sign(x - target): half the gradient of the squares",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
