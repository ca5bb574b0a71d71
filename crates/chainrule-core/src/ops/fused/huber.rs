//! `huber`: squared differences up to a bound, linear ones beyond it.

use super::bounded::{Bounded, around};
use super::pointwise::{MISSING_MEAN, SIGN, loss_samples, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::ops::prelude::*;

/// Options of [`Tensor::huber_with`].
#[derive(Clone, Copy, Debug)]
pub struct Huber {
    /// The reduction of the losses; the default is their mean.
    pub reduction: Reduction,
    /// Up to this difference the loss is quadratic; 1 by default.
    pub delta: f64,
}

impl Default for Huber {
    fn default() -> Self {
        Huber { reduction: Reduction::Mean, delta: 1.0 }
    }
}

methods! {
    /// The mean of `d^2 / 2` where `|d| <= 1` and of `|d| - 1/2` elsewhere, with `d = x - target`:
    /// a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal. Different dtypes are promoted. Gradient: `dx = g / n` times `d`,
    /// but at least -1 and at most 1, and its negative for the target. It is continuous; the second
    /// derivative jumps where `|d|` is 1.
    ///
    /// Source: P. Huber, "Robust estimation of a location parameter", 1964.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.5f32, 3.0]).huber(&Tensor::from([0.0f32, 0.0]));
    /// assert_eq!(loss.item(), (0.125 + 2.5) / 2.0);
    /// ```
    pub fn huber / try_huber(&self, target: &Tensor) -> Tensor {
        self.try_huber_with(target, &Huber::default())
    }

    /// [`Tensor::huber`] with options: another reduction, and another bound: `d^2 / 2` where
    /// `|d| <= delta`, `delta (|d| - delta / 2)` elsewhere.
    ///
    /// A `delta` that is not above 0 is an error, as in PyTorch.
    ///
    /// ```
    /// use chainrule::{Huber, Reduction, Tensor};
    /// let options = Huber { delta: 2.0, reduction: Reduction::Sum };
    /// let loss = Tensor::from([1.0f32, 3.0]).huber_with(&Tensor::from([0.0f32, 0.0]), &options);
    /// assert_eq!(loss.item(), 0.5 + 4.0);
    /// ```
    pub fn huber_with / try_huber_with(&self, target: &Tensor, options: &Huber) -> Tensor {
        let Huber { reduction, delta } = *options;
        if !(delta > 0.0 && delta.is_finite()) {
            let why = format!("delta must be a number above 0; it is {delta}");
            return Err(Error::argument("huber", why));
        }
        pointwise(Bounded::<false> { bound: delta }, self, target, reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "huber",
    family: Family::Fused,
    signature: "x.huber(&target), x.huber_with(&target, &options)",
    python: &[Binding::with(
        "huber_loss",
        &[Parameter::tensor("target"), REDUCTION, Parameter::float("delta", 1.0)],
        |x, a| {
            x.try_huber_with(
                a.tensor(0),
                &Huber { reduction: Reduction::of(a.choice(1)), delta: a.float(2) },
            )
        },
    )
    .only_functional()],
    formula: "mean of d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2), with d = x - target",
    gradient: "dx = g * clamp(d, -delta, delta) / n; dtarget = -dx",
    at_kinks: "the gradient is continuous",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| around(g, s, 0.7);
        let mut out = loss_samples::<Bounded<false>>(g, draw, |x, t, reduction| {
            x.try_huber_with(t, &Huber { reduction, delta: 0.7 })
        });
        let ends = vec![Tensor::from([1.0f64, -1.0]), Tensor::from([0.0f64, 0.0])];
        out.push(Sample::new("at the bounds", ends, |x| x[0].try_huber(&x[1])).at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "bound forgotten",
            what: "d everywhere: the loss was taken to be quadratic for large differences too",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
