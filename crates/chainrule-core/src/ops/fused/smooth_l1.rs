//! `smooth_l1`: squared differences up to a bound, absolute ones beyond it.

use super::bounded::{Bounded, around};
use super::l1_loss::L1;
use super::pointwise::{MISSING_MEAN, SIGN, loss_samples, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::ops::prelude::*;

/// Options of [`Tensor::smooth_l1_with`].
#[derive(Clone, Copy, Debug)]
pub struct SmoothL1 {
    /// The reduction of the losses; the default is their mean.
    pub reduction: Reduction,
    /// Up to this difference the loss is quadratic; 1 by default. With 0 it is [`Tensor::l1_loss`].
    pub beta: f64,
}

impl Default for SmoothL1 {
    fn default() -> Self {
        SmoothL1 { reduction: Reduction::Mean, beta: 1.0 }
    }
}

methods! {
    /// The mean of `d^2 / 2` where `|d| < 1` and of `|d| - 1/2` elsewhere, with `d = x - target`: a
    /// 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal. Different dtypes are promoted. Gradient: `dx = g / n` times `d`,
    /// but at least -1 and at most 1, and its negative for the target. It is continuous; the second
    /// derivative jumps where `|d|` is 1. [`Tensor::huber`] is the same but for a factor.
    ///
    /// Source: R. Girshick, "Fast R-CNN", 2015.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.5f32, 3.0]).smooth_l1(&Tensor::from([0.0f32, 0.0]));
    /// assert_eq!(loss.item(), (0.125 + 2.5) / 2.0);
    /// ```
    pub fn smooth_l1 / try_smooth_l1(&self, target: &Tensor) -> Tensor {
        self.try_smooth_l1_with(target, &SmoothL1::default())
    }

    /// [`Tensor::smooth_l1`] with options: another reduction, and another bound: `d^2 / (2 beta)`
    /// where `|d| < beta`, `|d| - beta / 2` elsewhere.
    ///
    /// A negative `beta` is an error, as in PyTorch.
    ///
    /// ```
    /// use chainrule::{Reduction, SmoothL1, Tensor};
    /// let options = SmoothL1 { beta: 2.0, reduction: Reduction::Sum };
    /// let loss =
    ///     Tensor::from([1.0f32, 3.0]).smooth_l1_with(&Tensor::from([0.0f32, 0.0]), &options);
    /// assert_eq!(loss.item(), 0.25 + 2.0);
    /// ```
    pub fn smooth_l1_with / try_smooth_l1_with(&self, target: &Tensor, options: &SmoothL1) -> Tensor {
        let SmoothL1 { reduction, beta } = *options;
        if beta == 0.0 {
            return pointwise(L1, self, target, reduction);
        }
        if !(beta > 0.0 && beta.is_finite()) {
            let why = format!("beta must be a number from 0 up; it is {beta}");
            return Err(Error::argument("smooth_l1", why));
        }
        pointwise(Bounded::<true> { bound: beta }, self, target, reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "smooth_l1",
    family: Family::Fused,
    signature: "x.smooth_l1(&target), x.smooth_l1_with(&target, &options)",
    python: &[Binding::with(
        "smooth_l1_loss",
        &[Parameter::tensor("target"), REDUCTION, Parameter::float("beta", 1.0)],
        |x, a| {
            x.try_smooth_l1_with(
                a.tensor(0),
                &SmoothL1 { reduction: Reduction::of(a.choice(1)), beta: a.float(2) },
            )
        },
    )
    .only_functional()],
    formula: "mean of d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = x - target",
    gradient: "dx = g * clamp(d / beta, -1, 1) / n; dtarget = -dx",
    at_kinks: "the gradient is continuous; beta 0 is l1_loss",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| around(g, s, 1.5);
        let mut out = loss_samples::<Bounded<true>>(g, draw, |x, t, reduction| {
            x.try_smooth_l1_with(t, &SmoothL1 { reduction, beta: 1.5 })
        });
        let ends = vec![Tensor::from([1.0f64, -1.0]), Tensor::from([0.0f64, 0.0])];
        out.push(Sample::new("at the bounds", ends, |x| x[0].try_smooth_l1(&x[1])).at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "bound forgotten",
            what: "d / beta everywhere: the loss was taken to be quadratic for large differences too",
            rule: |op, at, g, wanted| {
                wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)?.try_div(1.5))
            },
        },
        MISSING_MEAN,
        SIGN,
    ],
};
