//! `bce`: binary cross-entropy of probabilities.

use super::pointwise::{
    MISSING_MEAN, Pointwise, SIGN, loss_samples, pointwise, weighted, wrong_slope,
};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Options of [`Tensor::bce_with`].
#[derive(Clone, Debug, Default)]
pub struct Bce {
    /// The reduction of the losses; the default is their mean, which weights do not change the
    /// divisor of.
    pub reduction: Reduction,
    /// Weights of the losses, broadcast to their shape; a constant, which gets no gradient. None by
    /// default.
    pub weight: Option<Tensor>,
}

/// The smallest logarithm of a probability that is used.
const LEAST_LOG: f64 = -100.0;

/// Lower bound of the slope's divisor: PyTorch's constant, which it keeps in f32.
const LEAST_VARIANCE: f64 = 1e-12f32 as f64;

#[derive(Clone, Copy, Debug, Parameters)]
struct BinaryCrossEntropy;

impl Pointwise for BinaryCrossEntropy {
    const ID: OpId = OpId::bce;
    const NAME: &'static str = "bce";
    const GRAD: &'static str = "bce_grad";
    const NUMPY: [&'static str; 3] =
        ["_bce({0}, {1})", "_bce_slope({0}, {1})", "np.log1p(-{0}) - np.log({0})"];

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let least = T::from_f64(LEAST_LOG);
        let cut = |log: T| if log < least { least } else { log };
        let (yes, no) = (cut(x.log::<FMA>()), cut((-x).log1p::<FMA>()));
        (t - T::ONE) * no - t * yes
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let (variance, least) = ((T::ONE - x) * x, T::from_f64(LEAST_VARIANCE));
        (x - t) / if variance < least { least } else { variance }
    }

    #[inline(always)]
    fn target_slope<const FMA: bool, T: Real>(self, x: T, _: T) -> T {
        (-x).log1p::<FMA>() - x.log::<FMA>()
    }

    fn check<T: Real>(self, x: &[T], t: &[T]) -> Result<()> {
        // NaN lies in no range. The first pass tests all elements without a branch, so that the
        // common case is a fast loop.
        let wrong = |x: &T| !(T::ZERO <= *x && *x <= T::ONE);
        for (what, elements) in [("prediction", x), ("target", t)] {
            if elements.iter().fold(false, |any, x| any | wrong(x)) {
                let at = elements.iter().position(wrong).unwrap_or_default();
                let why = format!(
                    "element {at} of the {what} is {}, which is no probability (from 0 to 1); for logits use bce_with_logits",
                    elements[at].to_f64()
                );
                return Err(Error::argument(Self::NAME, why));
            }
        }
        Ok(())
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let cut = |p: &Tensor| p.try_log()?.try_maximum(LEAST_LOG);
        let yes = t.try_mul(&cut(x)?)?;
        let no = t.try_neg()?.try_add(1.0)?.try_mul(&cut(&x.try_neg()?.try_add(1.0)?)?)?;
        yes.try_add(&no)?.try_neg()
    }

    /// `dx (x - t) / max(x - x^2, 1e-12) + dt (log(1 - x) - log(x))`. Term by term,
    /// `(1 - t) / (1 - x) - t / x` would be NaN where x is 0 or 1.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let not_x = 1.0 - x;
        let by_x = dx.map(|dx| {
            let variance = x.try_sub(&x.try_square()?)?.try_maximum(LEAST_VARIANCE)?;
            x.try_sub(t)?.try_div(&variance)?.try_mul(dx)
        });
        let by_t = dt.map(|dt| dt.try_mul(&not_x.try_log()?.try_sub(&x.try_log()?)?));
        sum_of_parts([by_x, by_t])
    }
}

methods! {
    /// The mean binary cross-entropy of probabilities and targets from 0 to 1,
    /// `-(t log(x) + (1 - t) log(1 - x))`: a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal; a target of integers or bools is converted. An element outside 0
    /// to 1 is an error. As in PyTorch a logarithm counts as -100 at least, so that a certain and
    /// wrong prediction costs 100. Gradient: `dx = g / n (x - t) / (x (1 - x))`, where the divisor
    /// is 1e-12 at least; `dtarget = g / n (log(1 - x) - log(x))`, infinite for a certain
    /// prediction. For logits, [`Tensor::bce_with_logits`] is exact.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.5f64, 0.0]).bce(&Tensor::from([1.0f64, 1.0]));
    /// assert_eq!(loss.item(), (2f64.ln() + 100.0) / 2.0);
    /// ```
    pub fn bce / try_bce(&self, target: &Tensor) -> Tensor {
        pointwise(BinaryCrossEntropy, self, target, Reduction::Mean)
    }

    /// [`Tensor::bce`] with options: another reduction, weights of the elements.
    ///
    /// ```
    /// use chainrule::{Bce, Reduction, Tensor};
    /// let options = Bce { reduction: Reduction::Sum, weight: Some(Tensor::from([3.0f64])) };
    /// let loss = Tensor::from([0.5f64, 0.0]).bce_with(&Tensor::from([1.0f64, 0.0]), &options);
    /// assert_eq!(loss.item(), 3.0 * 2f64.ln());
    /// ```
    pub fn bce_with / try_bce_with(&self, target: &Tensor, options: &Bce) -> Tensor {
        match &options.weight {
            None => pointwise(BinaryCrossEntropy, self, target, options.reduction),
            Some(weight) => weighted(BinaryCrossEntropy, self, target, weight, options.reduction),
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "bce",
    family: Family::Fused,
    signature: "x.bce(&target), x.bce_with(&target, &options)",
    python: &[Binding::with(
        "binary_cross_entropy",
        &[Parameter::tensor("target"), Parameter::tensor("weight").or_none(), REDUCTION],
        |x, a| {
            x.try_bce_with(
                a.tensor(0),
                &Bce { reduction: Reduction::of(a.choice(2)), weight: a.maybe_tensor(1).cloned() },
            )
        },
    )
    .only_functional()],
    formula: "mean of -(t log(x) + (1 - t) log(1 - x)), with logarithms of -100 at least",
    gradient: "dx = g * (x - t) / max(x * (1 - x), 1e-12) / n; dtarget = g * (log(1 - x) - log(x)) / n",
    at_kinks: "a logarithm is -100 at least, and x (1 - x) in the gradient 1e-12 at least; the target's gradient is infinite where x is 0 or 1",
    samples: |g| {
        let draw =
            |g: &mut Generator, s: &[usize]| (between(g, 0.3, 0.7, s), between(g, 0.4, 0.6, s));
        let mut out = loss_samples::<BinaryCrossEntropy>(g, draw, |x, t, reduction| {
            x.try_bce_with(t, &Bce { reduction, weight: None })
        });
        let weight = between(g, 0.5, 2.0, [4]);
        for (note, reduction) in [("weights", Reduction::Mean), ("weights, each", Reduction::None)]
        {
            let options = Bce { reduction, weight: Some(weight.clone()) };
            let (x, t) = draw(g, &[3, 4]);
            out.push(Sample::new(note, vec![x, t], move |x| x[0].try_bce_with(&x[1], &options)));
        }
        out
    },
    mistakes: &[
        Mistake {
            name: "derivative of the sigmoid forgotten",
            what: "x - t, the gradient of the logits, was taken for that of the probabilities",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)),
        },
        Mistake {
            name: "second term forgotten",
            what: "-t / x: the loss was taken for that of the positive examples alone",
            rule: |op, at, g, wanted| {
                wrong_slope(op, at, g, wanted, |x, t| t.try_div(x)?.try_neg())
            },
        },
        MISSING_MEAN,
        SIGN,
    ],
};
