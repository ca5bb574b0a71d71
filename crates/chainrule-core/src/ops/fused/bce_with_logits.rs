//! `bce_with_logits`: binary cross-entropy of logits, the sigmoid included.

use super::pointwise::{
    MISSING_MEAN, Pointwise, SIGN, constant, loss_samples, pointwise, weighted, wrong_slope,
};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Options of [`Tensor::bce_with_logits_with`]. The weights are constants, which get no gradient.
#[derive(Clone, Debug, Default)]
pub struct BceWithLogits {
    /// The reduction of the losses; the default is their mean, which weights do not change the
    /// divisor of.
    pub reduction: Reduction,
    /// Weights of the losses, broadcast to their shape. None by default.
    pub weight: Option<Tensor>,
    /// Weight of a positive example, broadcast to the shape of the logits: above 1 it favours
    /// recall, below 1 precision. None by default.
    pub pos_weight: Option<Tensor>,
}

#[derive(Clone, Copy, Debug, Parameters)]
struct LogitLoss;

impl Pointwise for LogitLoss {
    const ID: OpId = OpId::bce_with_logits;
    const ROLE: Role = Role::Loss(LossRole::BinaryLogits);
    const NAME: &'static str = "bce_with_logits";
    const GRAD: &'static str = "bce_with_logits_grad";
    const NUMPY: [&'static str; 3] = ["_bce_with_logits({0}, {1})", "_sigmoid({0}) - {1}", "-{0}"];

    /// `max(x, 0) - x t + log(1 + exp(-|x|))`, of which no part overflows. The first two are one
    /// product, so that an infinite logit is multiplied once.
    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let share = if x < T::ZERO { -t } else { T::ONE - t };
        x * share + (-x.abs()).exp::<FMA>().log1p::<FMA>()
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        x.sigmoid::<FMA>() - t
    }

    #[inline(always)]
    fn target_slope<const FMA: bool, T: Real>(self, x: T, _: T) -> T {
        -x
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let not_t = t.try_neg()?.try_add(1.0)?;
        not_t.try_mul(x)?.try_add(&softplus_of_negative(x)?)
    }

    /// By way of the other form, `(1 - t) x - log(sigmoid(x))`.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let other = x.try_neg()?.try_sigmoid()?;
        let by_x = dx.map(|dx| dx.try_mul(1.0 - t)?.try_sub(&dx.try_mul(&other)?));
        let by_t = dt.map(|dt| dt.try_mul(x)?.try_neg());
        sum_of_parts([by_x, by_t])
    }
}

/// `log(1 + exp(-x)) = m + log(exp(-m) + exp(-x - m))`, with a constant `m = max(-x, 0)`, so that
/// its derivatives are right everywhere.
fn softplus_of_negative(x: &Tensor) -> Result<Tensor> {
    let negative = x.try_neg()?;
    let m = negative.detach().try_maximum(0.0)?;
    let sum = m.try_neg()?.try_exp()?.try_add(&negative.try_sub(&m)?.try_exp()?)?;
    sum.try_log()?.try_add(&m)
}

/// `(1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x))`, where the last factor is the loss of a
/// target 1.
fn with_pos_weight(x: &Tensor, target: &Tensor, pos_weight: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype().promote(target.dtype());
    let (x, t) = (x.try_to_dtype(dtype)?, target.try_to_dtype(dtype)?);
    let softplus = pointwise(LogitLoss, &x, &t.ones_like(), Reduction::None)?;
    let pos_weight = constant(LogitLoss::NAME, "pos_weight", pos_weight, &x)?;
    let share = t.try_mul(&pos_weight.try_sub(1.0)?)?.try_add(1.0)?;
    let rest = t.try_neg()?.try_add(1.0)?.try_mul(&x)?;
    softplus.try_mul(&share)?.try_add(&rest)
}

methods! {
    /// The mean binary cross-entropy of logits and targets from 0 to 1,
    /// `-(t log(s) + (1 - t) log(1 - s))` with `s = sigmoid(x)`: a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal; a target of integers or bools is converted. It is computed as
    /// `max(x, 0) - x t + log(1 + exp(-|x|))`, which neither overflows nor loses the digits of a
    /// small loss. A logit of plus infinity gives an infinite loss, and NaN for a target of 1; one
    /// of minus infinity an infinite loss (in PyTorch NaN), and NaN for a target of 0. Gradient:
    /// `dx = g / n (sigmoid(x) - t)`, `dtarget = -g / n x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.0f64, 1000.0]).bce_with_logits(&Tensor::from([1.0f64, 0.0]));
    /// assert_eq!(loss.item(), (2f64.ln() + 1000.0) / 2.0);
    /// ```
    pub fn bce_with_logits / try_bce_with_logits(&self, target: &Tensor) -> Tensor {
        pointwise(LogitLoss, self, target, Reduction::Mean)
    }

    /// [`Tensor::bce_with_logits`] with options: another reduction, weights of the elements, a
    /// weight of the positive examples (`-(p t log(s) + (1 - t) log(1 - s))`).
    ///
    /// ```
    /// use chainrule::{BceWithLogits, Tensor};
    /// let options =
    ///     BceWithLogits { pos_weight: Some(Tensor::from([3.0f64])), ..Default::default() };
    /// let loss = Tensor::from([0.0f64, 0.0])
    ///     .bce_with_logits_with(&Tensor::from([1.0f64, 0.0]), &options);
    /// assert!((loss.item() - 2.0 * 2f64.ln()).abs() < 1e-15);
    /// ```
    pub fn bce_with_logits_with / try_bce_with_logits_with(&self, target: &Tensor, options: &BceWithLogits) -> Tensor {
        let BceWithLogits { reduction, weight, pos_weight } = options;
        let losses = match (weight, pos_weight) {
            (None, None) => return pointwise(LogitLoss, self, target, *reduction),
            (Some(weight), None) => return weighted(LogitLoss, self, target, weight, *reduction),
            (weight, Some(pos_weight)) => {
                let losses = with_pos_weight(self, target, pos_weight)?;
                match weight {
                    Some(weight) => losses.try_mul(&constant(LogitLoss::NAME, "weight", weight, &losses)?)?,
                    None => losses,
                }
            }
        };
        reduction.apply(&losses, reduction.divisor(&losses.shape()))
    }
}

fn samples(g: &mut Generator) -> Vec<Sample> {
    let draw = |g: &mut Generator, s: &[usize]| (normal(g, s) * 3.0, between(g, 0.0, 1.0, s));
    let mut out = loss_samples::<LogitLoss>(g, draw, |x, t, reduction| {
        x.try_bce_with_logits_with(t, &BceWithLogits { reduction, ..Default::default() })
    });
    let (row, column) = (between(g, 0.5, 2.0, [4]), between(g, 0.5, 2.0, [3, 1]));
    for (note, reduction, weight, pos_weight) in [
        ("weights", Reduction::Mean, Some(&column), None),
        ("weight of the positive", Reduction::Mean, None, Some(&row)),
        ("both weights, summed", Reduction::Sum, Some(&row), Some(&column)),
        ("both weights, each", Reduction::None, Some(&column), Some(&row)),
    ] {
        let options =
            BceWithLogits { reduction, weight: weight.cloned(), pos_weight: pos_weight.cloned() };
        let (x, t) = draw(g, &[3, 4]);
        out.push(Sample::new(note, vec![x, t], move |x| {
            x[0].try_bce_with_logits_with(&x[1], &options)
        }));
    }
    let zeros = vec![Tensor::from([0.0f64, -0.0]), Tensor::from([0.2f64, 1.0])];
    out.push(Sample::new("logits of 0", zeros, |x| x[0].try_bce_with_logits(&x[1])));
    let far = vec![Tensor::from([800.0f64, -900.0]), Tensor::from([0.2f64, 1.0])];
    out.push(Sample::new("large logits", far, |x| x[0].try_bce_with_logits(&x[1])));
    out
}

pub(super) const ENTRY: Entry = Entry {
    name: "bce_with_logits",
    family: Family::Fused,
    signature: "x.bce_with_logits(&target), x.bce_with_logits_with(&target, &options)",
    python: &[Binding::with(
        "binary_cross_entropy_with_logits",
        &[
            Parameter::tensor("target"),
            Parameter::tensor("weight").or_none(),
            REDUCTION,
            Parameter::tensor("pos_weight").or_none(),
        ],
        |x, a| {
            let weights = (a.maybe_tensor(1).cloned(), a.maybe_tensor(3).cloned());
            let reduction = Reduction::of(a.choice(2));
            let options = BceWithLogits { reduction, weight: weights.0, pos_weight: weights.1 };
            x.try_bce_with_logits_with(a.tensor(0), &options)
        },
    )
    .only_functional()],
    formula: "mean of -(t log(s) + (1 - t) log(1 - s)), with s = sigmoid(x)",
    gradient: "dx = g * (sigmoid(x) - t) / n; dtarget = -g * x / n",
    at_kinks: "an infinite logit on the target's side gives NaN, on the other side an infinite loss",
    samples,
    mistakes: &[
        Mistake {
            name: "derivative of the sigmoid too much",
            what: "(s - t) s (1 - s): the slope of the sigmoid was multiplied in again",
            rule: |op, at, g, wanted| {
                wrong_slope(op, at, g, wanted, |x, t| {
                    let s = x.try_sigmoid()?;
                    s.try_sub(t)?.try_mul(&(&s * &(1.0 - &s)))
                })
            },
        },
        Mistake {
            name: "logits taken for probabilities",
            what: "x - t: the sigmoid was forgotten",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |x, t| x.try_sub(t)),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
