//! `hinge_embedding`: distances made small for pairs that belong together, and larger than a margin
//! for others.

use super::hinge::signs;
use super::pointwise::{MISSING_MEAN, Pointwise, SIGN, loss_samples, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Options of [`Tensor::hinge_embedding_with`].
#[derive(Clone, Copy, Debug)]
pub struct HingeEmbedding {
    /// The reduction of the losses; the default is their mean.
    pub reduction: Reduction,
    /// The distance from which on a pair that does not belong together costs nothing; 1 by default.
    pub margin: f64,
}

impl Default for HingeEmbedding {
    fn default() -> Self {
        HingeEmbedding { reduction: Reduction::Mean, margin: 1.0 }
    }
}

#[derive(Clone, Copy, Debug, Parameters)]
struct EmbeddedHinge {
    margin: f64,
}

impl Pointwise for EmbeddedHinge {
    const ID: OpId = OpId::hinge_embedding;
    const NAME: &'static str = "hinge_embedding";
    const GRAD: &'static str = "hinge_embedding_grad";
    const NUMPY: [&'static str; 3] =
        ["_hinge_embedding({0}, {1}, {margin})", "_hinge_embedding_slope({0}, {1}, {margin})", ""];
    const TO_TARGET: bool = false;

    /// As PyTorch has it: a target other than 1 and -1 gets both terms.
    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let left = T::from_f64(self.margin) - x;
        let left = if left <= T::ZERO { T::ZERO } else { left };
        let apart = if t == T::ONE { T::ZERO } else { left };
        let near = if t == -T::ONE { T::ZERO } else { x };
        apart + near
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let left = T::from_f64(self.margin) - x;
        let short = if T::ZERO < left { -T::ONE } else { T::ZERO };
        let apart = if t == T::ONE { T::ZERO } else { short };
        let near = if t == -T::ONE { T::ZERO } else { T::ONE };
        apart + near
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let apart = x.try_neg()?.try_add(self.margin)?.try_relu()?;
        let apart = t.try_ne(1.0)?.try_where(&apart, 0.0)?;
        apart.try_add(&t.try_ne(-1.0)?.try_where(x, 0.0)?)
    }

    /// The tangent, counted once for near pairs and minus once for pairs within the margin.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        _: Option<&Tensor>,
    ) -> Result<Tensor> {
        let number = |b: Tensor| b.try_to_dtype(x.dtype());
        let within = number(x.try_lt(self.margin)?)?.try_mul(&number(t.try_ne(1.0)?)?)?;
        let count = number(t.try_ne(-1.0)?)?.try_sub(&within)?;
        count.try_mul(dx.expect("the target has no tangent"))
    }
}

methods! {
    /// The mean of `x` where the target is 1 and of `max(0, 1 - x)` where it is -1, for `x` the
    /// distances of pairs: a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal; a target of integers is converted. As in PyTorch a target other
    /// than 1 and -1 gets both terms. Gradient: `dx = g / n` where the target is 1, `-g / n` where
    /// it is -1 and `x < 1`, else 0 (so it is at `x = 1`, as in PyTorch). The target has none.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([0.5f32, 0.25]).hinge_embedding(&Tensor::from([1i64, -1]));
    /// assert_eq!(loss.item(), (0.5 + 0.75) / 2.0);
    /// ```
    pub fn hinge_embedding / try_hinge_embedding(&self, target: &Tensor) -> Tensor {
        self.try_hinge_embedding_with(target, &HingeEmbedding::default())
    }

    /// [`Tensor::hinge_embedding`] with options: another reduction, another margin in place of 1.
    ///
    /// ```
    /// use chainrule::{HingeEmbedding, Reduction, Tensor};
    /// let options = HingeEmbedding { margin: 3.0, reduction: Reduction::Sum };
    /// let loss =
    ///     Tensor::from([0.5f32, 0.25]).hinge_embedding_with(&Tensor::from([1i64, -1]), &options);
    /// assert_eq!(loss.item(), 0.5 + 2.75);
    /// ```
    pub fn hinge_embedding_with / try_hinge_embedding_with(&self, target: &Tensor, options: &HingeEmbedding) -> Tensor {
        let HingeEmbedding { reduction, margin } = *options;
        if !margin.is_finite() {
            return Err(Error::argument("hinge_embedding", format!("the margin must be a number; it is {margin}")));
        }
        pointwise(EmbeddedHinge { margin }, self, &target.detach(), reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "hinge_embedding",
    family: Family::Fused,
    signature: "x.hinge_embedding(&target), x.hinge_embedding_with(&target, &options)",
    python: &[Binding::with(
        "hinge_embedding_loss",
        &[Parameter::tensor("target"), Parameter::float("margin", 1.0), REDUCTION],
        |x, a| {
            x.try_hinge_embedding_with(
                a.tensor(0),
                &HingeEmbedding { reduction: Reduction::of(a.choice(2)), margin: a.float(1) },
            )
        },
    )
    .only_functional()],
    formula: "mean of x where t = 1 and of max(0, margin - x) where t = -1",
    gradient: "dx = g / n where t = 1, -g / n where t = -1 and x < margin, else 0",
    at_kinks: "the gradient of a pair with t = -1 is 0 at the margin",
    samples: |g| {
        let draw = |g: &mut Generator, s: &[usize]| {
            let away = signs(g, s) * between(g, 0.2, 0.9, s);
            (away + 1.0, signs(g, s))
        };
        let mut out = loss_samples::<EmbeddedHinge>(g, draw, |x, t, reduction| {
            x.try_hinge_embedding_with(t, &HingeEmbedding { reduction, margin: 1.0 })
        });
        out.push(Sample::new("a target that is neither", vec![normal(g, [3]) * 0.1], |x| {
            x[0].try_hinge_embedding(&Tensor::from([0i64, 1, 2]))
        }));
        let at = Sample::new("at the margin", vec![Tensor::from([1.0f64, 1.0])], |x| {
            x[0].try_hinge_embedding(&Tensor::from([1i64, -1]))
        });
        out.push(at.at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "margin forgotten",
            what: "t everywhere: pairs beyond the margin were taken to have a gradient too",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |_, t| Ok(t.clone())),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
