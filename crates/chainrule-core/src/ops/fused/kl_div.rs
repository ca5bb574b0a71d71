//! `kl_div`: the Kullback-Leibler divergence of a target from log-probabilities, element by
//! element.

use super::pointwise::{MISSING_MEAN, Pointwise, SIGN, loss_samples, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Options of [`Tensor::kl_div_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct KlDiv {
    /// The reduction of the elements. The default is their mean, as in PyTorch;
    /// [`Reduction::BatchMean`] gives the divergence of the books.
    pub reduction: Reduction,
    /// Whether the target holds logarithms of probabilities too; false by default.
    pub log_target: bool,
}

/// `t log(t) - t x`, or with `LOG`, for the logarithm of the target, `exp(t) (t - x)`.
#[derive(Clone, Copy)]
struct Divergence<const LOG: bool>;

impl<const LOG: bool> std::fmt::Debug for Divergence<LOG> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Divergence").field("log_target", &LOG).finish()
    }
}

impl<const LOG: bool> Parameters for Divergence<LOG> {
    fn parameters(&self) -> Param {
        Param::Struct("Divergence", vec![("log_target", Param::Bool(LOG))])
    }
}

impl<const LOG: bool> Pointwise for Divergence<LOG> {
    const ID: OpId = OpId::kl_div;
    const NAME: &'static str = "kl_div";
    const GRAD: &'static str = "kl_div_grad";
    const NUMPY: [&'static str; 3] = [
        "_kl_div({0}, {1}, {log_target})",
        "_kl_div_slope({0}, {1}, {log_target})",
        "_kl_div_target_slope({0}, {1}, {log_target})",
    ];

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        if LOG {
            return t.exp::<FMA>() * (t - x);
        }
        let entropy = if t == T::ZERO { T::ZERO } else { t * t.log::<FMA>() };
        entropy - t * x
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, _: T, t: T) -> T {
        if LOG { -t.exp::<FMA>() } else { -t }
    }

    /// `log(t) + 1 - x`, and NaN for a target of 0 or infinity: there it is the product of 0 and
    /// infinity.
    #[inline(always)]
    fn target_slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        if LOG {
            let p = t.exp::<FMA>();
            return p * (t - x) + p;
        }
        // 1, by a quotient that gives that NaN.
        let one = (t + t) / t - T::ONE;
        t.log::<FMA>() + one - x
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        if LOG {
            return t.try_exp()?.try_mul(&t.try_sub(x)?);
        }
        let entropy = t.try_mul(&t.try_log()?)?;
        let entropy = t.try_eq(0.0)?.try_where(&t.zeros_like(), &entropy)?;
        entropy.try_sub(&t.try_mul(x)?)
    }

    /// By the rule of the product on `p (log(p) - x)`.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (p, log) = match LOG {
            true => (t.try_exp()?, t.clone()),
            false => (t.clone(), t.try_log()?),
        };
        let by_x = dx.map(|dx| p.try_mul(dx)?.try_neg());
        let by_t = dt.map(|dt| {
            let dp = if LOG { p.try_mul(dt)? } else { dt.clone() };
            dp.try_mul(&log.try_sub(x)?)?.try_add(&dp)
        });
        sum_of_parts([by_x, by_t])
    }
}

methods! {
    /// The mean of `t (log(t) - x)` over all elements, where `x` holds logarithms of probabilities
    /// and `target` probabilities: a 0-d tensor. For f32 and f64.
    ///
    /// As in PyTorch the mean is over *elements*; the divergence of distributions is the sum of a
    /// row: [`Tensor::kl_div_with`] and [`Reduction::BatchMean`] give its mean. The shapes must be
    /// equal. A target of 0 counts 0 (NaN if `x` is minus infinity there); a negative one gives
    /// NaN. Gradient: `dx = -g t / n`, `dtarget = g (log(t) + 1 - x) / n`, NaN for a target of 0.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([0.5f64, 0.5]).log();
    /// let loss = x.kl_div(&Tensor::from([1.0f64, 0.0]));
    /// assert_eq!(loss.item(), 2f64.ln() / 2.0);
    /// ```
    pub fn kl_div / try_kl_div(&self, target: &Tensor) -> Tensor {
        pointwise(Divergence::<false>, self, target, Reduction::Mean)
    }

    /// [`Tensor::kl_div`] with options: another reduction, a target of logarithms:
    /// `exp(t) (t - x)`, with `dtarget = g exp(t) (t - x + 1)`.
    ///
    /// ```
    /// use chainrule::{KlDiv, Reduction, Tensor};
    /// let (x, target) = (Tensor::from([[0.5f64, 0.5]]).log(), Tensor::from([[1.0f64, 0.0]]));
    /// let options = KlDiv { reduction: Reduction::BatchMean, ..KlDiv::default() };
    /// assert_eq!(x.kl_div_with(&target, &options).item(), 2f64.ln());
    /// ```
    pub fn kl_div_with / try_kl_div_with(&self, target: &Tensor, options: &KlDiv) -> Tensor {
        match options.log_target {
            false => pointwise(Divergence::<false>, self, target, options.reduction),
            true => pointwise(Divergence::<true>, self, target, options.reduction),
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "kl_div",
    family: Family::Fused,
    signature: "x.kl_div(&target), x.kl_div_with(&target, &options)",
    python: &[Binding::with(
        "kl_div",
        &[
            Parameter::tensor("target"),
            Parameter::choice("reduction", &["mean", "sum", "batchmean", "none"], "mean"),
            Parameter::flag("log_target", false),
        ],
        |x, a| {
            x.try_kl_div_with(
                a.tensor(0),
                &KlDiv { reduction: Reduction::of(a.choice(1)), log_target: a.flag(2) },
            )
        },
    )
    .only_functional()],
    formula: "mean of t (log(t) - x)",
    gradient: "dx = -g * t / n; dtarget = g * (log(t) + 1 - x) / n",
    at_kinks: "a target of 0 has the loss 0 and a gradient of NaN, as in PyTorch",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| (normal(g, s), between(g, 0.1, 1.0, s));
        let mut out = loss_samples::<Divergence<false>>(g, draw, |x, t, reduction| {
            x.try_kl_div_with(t, &KlDiv { reduction, log_target: false })
        });
        for (note, reduction) in [
            ("logarithms", Reduction::Mean),
            ("logarithms, mean of the batch", Reduction::BatchMean),
            ("logarithms, each", Reduction::None),
        ] {
            let inputs = vec![normal(g, [3, 4]), normal(g, [3, 4])];
            out.push(Sample::new(note, inputs, move |x| {
                x[0].try_kl_div_with(&x[1], &KlDiv { reduction, log_target: true })
            }));
        }
        out.push(Sample::new("targets of 0", vec![normal(g, [4])], |x| {
            x[0].try_kl_div(&Tensor::from([0.0f64, 0.5, 0.5, 0.0]).try_to_dtype(x[0].dtype())?)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "logarithms taken for probabilities",
            what: "-t / x: the prediction was taken for probabilities where it holds their logarithms",
            rule: |op, at, g, wanted| {
                wrong_slope(op, at, g, wanted, |x, t| t.try_div(x)?.try_neg())
            },
        },
        Mistake {
            name: "entropy taken for a constant",
            what: "dtarget = -x: the term t log(t) was forgotten",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                let n = match at.output_meta().shape.rank() {
                    0 => at.input(0).numel() as f64,
                    _ => 1.0,
                };
                grads[1] = Some(at.input(0).try_neg()?.try_mul(g)?.try_div(n)?);
                Ok(grads)
            },
        },
        MISSING_MEAN,
        SIGN,
    ],
};
