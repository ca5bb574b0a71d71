//! `hinge`: the loss of a margin, `max(0, 1 - t x)`.

use super::pointwise::{MISSING_MEAN, Pointwise, SIGN, loss_samples, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
struct Hinge;

/// Whether a score is on the wrong side of its margin.
#[inline(always)]
fn short<T: Real>(x: T, t: T) -> bool {
    T::ZERO < T::ONE - t * x
}

impl Pointwise for Hinge {
    const ID: OpId = OpId::hinge;
    const NAME: &'static str = "hinge";
    const GRAD: &'static str = "hinge_grad";
    const NUMPY: [&'static str; 3] = [
        "np.maximum(1 - {1} * {0}, 0)",
        "np.where(1 - {1} * {0} > 0, -{1}, 0)",
        "np.where(1 - {1} * {0} > 0, -{0}, 0)",
    ];

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let left = T::ONE - t * x;
        // NaN fails the comparison and stays.
        if left <= T::ZERO { T::ZERO } else { left }
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        if short(x, t) { -t } else { T::ZERO }
    }

    #[inline(always)]
    fn target_slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        if short(x, t) { -x } else { T::ZERO }
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        t.try_mul(x)?.try_neg()?.try_add(1.0)?.try_relu()
    }

    /// The tangent of the product where it is below 1.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let product = sum_of_parts([dx.map(|dx| t.try_mul(dx)), dt.map(|dt| x.try_mul(dt))])?;
        t.try_mul(x)?.try_lt(1.0)?.try_where(&product.try_neg()?, 0.0)
    }
}

methods! {
    /// The mean of `max(0, 1 - t x)` over all elements, where `x` holds scores and the target is 1
    /// or -1: a 0-d tensor. For f32 and f64. This is the loss of a support vector machine;
    /// PyTorch's `hinge_embedding_loss` is [`Tensor::hinge_embedding`].
    ///
    /// The shapes must be equal; a target of integers is converted. Gradient: `dx = -g t / n` where
    /// `t x < 1`, else 0 (so it is at the kink `t x = 1`, as that of `clamp(1 - t * x, min=0)` in
    /// PyTorch); `dtarget = -g x / n` there.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.5f32, 1.0]).hinge(&Tensor::from([1i64, -1]));
    /// assert_eq!(loss.item(), (0.5 + 2.0) / 2.0);
    /// ```
    pub fn hinge / try_hinge(&self, target: &Tensor) -> Tensor {
        pointwise(Hinge, self, target, Reduction::Mean)
    }

    /// [`Tensor::hinge`] with another reduction.
    ///
    /// ```
    /// use chainrule::{Reduction, Tensor};
    /// let loss =
    ///     Tensor::from([0.5f32, 3.0]).hinge_with(&Tensor::from([1i64, -1]), Reduction::None);
    /// assert_eq!(loss.to_vec::<f32>(), [0.5, 4.0]);
    /// ```
    pub fn hinge_with / try_hinge_with(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        pointwise(Hinge, self, target, reduction)
    }
}

/// Targets of 1 and -1.
pub(super) fn signs(g: &mut Generator, shape: &[usize]) -> Tensor {
    let positive = between(g, 0.0, 1.0, shape).gt(0.5);
    positive.where_(&Tensor::scalar(1.0f64), -1.0)
}

pub(super) const ENTRY: Entry = Entry {
    name: "hinge",
    family: Family::Fused,
    signature: "x.hinge(&target), x.hinge_with(&target, reduction)",
    python: &[Binding::by_hand("hinge", "PyTorch has none").no_method().no_function()],
    formula: "mean of max(0, 1 - t x)",
    gradient: "dx = -g * t / n where t x < 1, else 0; dtarget = -g * x / n there",
    at_kinks: "the gradient is 0 where t x = 1",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| {
            let t = signs(g, s);
            let away = signs(g, s) * between(g, 0.2, 1.5, s);
            (&t * (&away + 1.0), t)
        };
        let mut out = loss_samples::<Hinge>(g, draw, |x, t, r| x.try_hinge_with(t, r));
        let ends = vec![Tensor::from([1.0f64, -1.0]), Tensor::from([1.0f64, -1.0])];
        out.push(Sample::new("at the margin", ends, |x| x[0].try_hinge(&x[1])).at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "margin forgotten",
            what: "-t everywhere: elements beyond the margin were taken to have a gradient too",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |_, t| t.try_neg()),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
