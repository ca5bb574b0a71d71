//! `cosine_embedding`: angles made small for pairs that belong together, and larger than a margin
//! for others.

use super::pointwise::{MISSING_MEAN, Pointwise, SIGN, pointwise, wrong_slope};
use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Options of [`Tensor::cosine_embedding_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CosineEmbedding {
    /// The reduction of the losses; the default is their mean.
    pub reduction: Reduction,
    /// The cosine up to which a pair that does not belong together costs nothing; 0 by default.
    pub margin: f64,
}

/// The loss as an op of the cosines.
#[derive(Clone, Copy, Debug, Parameters)]
struct EmbeddedCosine {
    margin: f64,
}

impl Pointwise for EmbeddedCosine {
    const ID: OpId = OpId::cosine_embedding;
    const NAME: &'static str = "cosine_embedding";
    const GRAD: &'static str = "cosine_embedding_grad";
    const NUMPY: [&'static str; 3] = [
        "_cosine_embedding({0}, {1}, {margin})",
        "_cosine_embedding_slope({0}, {1}, {margin})",
        "",
    ];
    const TO_TARGET: bool = false;

    #[inline(always)]
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let over = x - T::from_f64(self.margin);
        let over = if over <= T::ZERO { T::ZERO } else { over };
        let apart = if t == -T::ONE { over } else { T::ZERO };
        if t == T::ONE { T::ONE - x } else { apart }
    }

    #[inline(always)]
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        let over = if T::from_f64(self.margin) < x { T::ONE } else { T::ZERO };
        let apart = if t == -T::ONE { over } else { T::ZERO };
        if t == T::ONE { -T::ONE } else { apart }
    }

    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let near = t.try_eq(1.0)?.try_where(&x.try_neg()?.try_add(1.0)?, 0.0)?;
        let apart = x.try_sub(self.margin)?.try_relu()?;
        near.try_add(&t.try_eq(-1.0)?.try_where(&apart, 0.0)?)
    }

    /// The tangent, counted once for pairs over the margin and minus once for near ones.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        _: Option<&Tensor>,
    ) -> Result<Tensor> {
        let number = |b: Tensor| b.try_to_dtype(x.dtype());
        let over = number(x.try_gt(self.margin)?)?.try_mul(&number(t.try_eq(-1.0)?)?)?;
        let count = over.try_sub(&number(t.try_eq(1.0)?)?)?;
        count.try_mul(dx.expect("the target has no tangent"))
    }
}

/// The cosine along the last axis with PyTorch's way to avoid a division by 0 in this loss: 1e-12
/// is added to the squares of the norms.
fn cosine(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let dot = |a: &Tensor, b: &Tensor| a.try_mul(b)?.try_sum(-1, false);
    let square = |x: &Tensor| dot(x, x)?.try_add(1e-12);
    dot(x, y)?.try_div(&square(x)?.try_mul(&square(y)?)?.try_sqrt()?)
}

methods! {
    /// The mean of `1 - c` where the target is 1 and of `max(0, c)` where it is -1, for `c` the
    /// cosines of pairs of rows: a 0-d tensor. Both tensors are `[n, d]` with targets `[n]`, or
    /// `[d]` with a 0-d target. For f32 and f64.
    ///
    /// A target of integers is converted; one other than 1 and -1 costs nothing, as in PyTorch.
    /// 1e-12 is added to the squares of the norms. The gradient of a pair that does not belong
    /// together is 0 where the cosine is at the margin, as in PyTorch. The target has none. See
    /// [`Tensor::cosine_similarity`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (x, y) =
    ///     (Tensor::from([[1.0f64, 0.0], [0.0, 1.0]]), Tensor::from([[0.0f64, 1.0], [0.0, 2.0]]));
    /// let loss = x.cosine_embedding(&y, &Tensor::from([1i64, -1]));
    /// assert!((loss.item() - 1.0).abs() < 1e-11);
    /// ```
    pub fn cosine_embedding / try_cosine_embedding(&self, other: &Tensor, target: &Tensor) -> Tensor {
        self.try_cosine_embedding_with(other, target, &CosineEmbedding::default())
    }

    /// [`Tensor::cosine_embedding`] with options: another reduction, and `max(0, c - margin)` for
    /// pairs that do not belong together.
    ///
    /// ```
    /// use chainrule::{CosineEmbedding, Tensor};
    /// let options = CosineEmbedding { margin: 0.25, ..CosineEmbedding::default() };
    /// let (x, y) = (Tensor::from([0.0f64, 1.0]), Tensor::from([0.0f64, 2.0]));
    /// let loss = x.cosine_embedding_with(&y, &Tensor::scalar(-1i64), &options);
    /// assert!((loss.item() - 0.75).abs() < 1e-11);
    /// ```
    pub fn cosine_embedding_with / try_cosine_embedding_with(&self, other: &Tensor, target: &Tensor, options: &CosineEmbedding) -> Tensor {
        const NAME: &str = EmbeddedCosine::NAME;
        let CosineEmbedding { reduction, margin } = *options;
        if !margin.is_finite() {
            return Err(Error::argument(NAME, format!("the margin must be a number; it is {margin}")));
        }
        let shape = self.shape();
        let fits = matches!(shape.rank(), 1 | 2) && other.shape() == shape;
        if !fits || target.shape() != shape.without_axis(shape.rank() - 1) {
            let why = "the two tensors must have one shape, [n, d] with a target [n], or [d] with a 0-d target";
            return Err(Error::shape(NAME, &[&shape, &other.shape(), &target.shape()], why));
        }
        let dtype = float_inputs(NAME, &[Meta::new(shape, self.dtype().promote(other.dtype()))])?;
        let cosines = cosine(&self.try_to_dtype(dtype)?, &other.try_to_dtype(dtype)?)?;
        let target = target.detach().try_to_dtype(dtype)?;
        pointwise(EmbeddedCosine { margin }, &cosines, &target, reduction)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cosine_embedding",
    family: Family::Fused,
    signature: "x.cosine_embedding(&y, &target), x.cosine_embedding_with(&y, &target, &options)",
    python: &[Binding::with(
        "cosine_embedding_loss",
        &[
            Parameter::tensor("input2"),
            Parameter::tensor("target"),
            Parameter::float("margin", 0.0),
            REDUCTION,
        ],
        |x, a| {
            x.try_cosine_embedding_with(
                a.tensor(0),
                a.tensor(1),
                &CosineEmbedding { reduction: Reduction::of(a.choice(3)), margin: a.float(2) },
            )
        },
    )
    .receiver("input1")
    .only_functional()],
    formula: "mean of 1 - c where t = 1 and of max(0, c - margin) where t = -1, with c the cosine",
    gradient: "dc = -g / n where t = 1, g / n where t = -1 and c > margin, else 0",
    at_kinks: "the gradient of a pair with t = -1 is 0 at the margin",
    samples: |g| {
        let mut out = Vec::new();
        for (note, shape, reduction, margin) in [
            ("a batch", &[6, 4][..], Reduction::Mean, -0.3),
            ("each pair", &[6, 3], Reduction::None, 0.0),
            ("summed", &[5, 17], Reduction::Sum, 0.1),
            ("a single pair", &[4], Reduction::Mean, 0.0),
            ("no pairs", &[0, 4], Reduction::Sum, 0.0),
        ] {
            let options = CosineEmbedding { reduction, margin };
            let inputs = vec![normal(g, shape), normal(g, shape)];
            let pairs = inputs[0].shape().without_axis(shape.len() - 1);
            let signs: Vec<i64> = (0..pairs.numel()).map(|i| [1, -1, -1, 0][i % 4]).collect();
            let target = Tensor::from_slice(&signs, pairs);
            out.push(Sample::new(note, inputs, move |x| {
                x[0].try_cosine_embedding_with(&x[1], &target, &options)
            }));
        }
        out
    },
    mistakes: &[
        Mistake {
            name: "margin forgotten",
            what: "-t everywhere: pairs within the margin were taken to have a gradient too",
            rule: |op, at, g, wanted| wrong_slope(op, at, g, wanted, |_, t| t.try_neg()),
        },
        MISSING_MEAN,
        SIGN,
    ],
};
