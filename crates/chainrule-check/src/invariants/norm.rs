//! Laws of normalisations: shifting or scaling the normalised values does not change the result.
//!
//! With `s = (v + eps)^(-1/2)`, `h = (x - m) s`, the incoming gradient `g` and `a = gain * g`, the
//! gradient of batch norm is `dx = s (a - mean(a)) - h s sum(a h) / (n - c)`, where the variance is
//! divided by `n - c`. As `sum(h) = 0` and `sum(h^2) = s^2 v (n - c)`:
//!
//! - `sum(dx) = 0`, and
//! - `sum(dx h) = s sum(a h) (1 - s^2 v) = s eps / (v + eps) sum(a h)`, for both divisors.
//!
//! Layer norm is the same over rows. RMS norm has no mean, and the second law with the mean square
//! for the variance. With `x = z W + b`, the first law makes the gradient of `b` 0 (batch norm),
//! and both make that of a column of `W` nearly orthogonal to it:
//! `<W, dW> = sum(dx (x - b)) = eps / (v + eps) sum(a h)`, which is
//! `gain * dgain * eps / (v + eps)`.

use super::{Invariant, InvariantReport, floats, rounding, same_shape};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Units of rounding of the few steps of a norm.
const STEPS: f64 = 3.0;

static SUMS: Invariant = Invariant {
    name: "the gradient into a norm sums to 0",
    formula: "sum(dx) = 0 over the examples of a feature (batch norm) or the features of a row (layer norm)",
    preconditions: "mean and variance are those of the batch (or row), and dx is the gradient through the norm alone",
};

static PRODUCTS: Invariant = Invariant {
    name: "the gradient into a norm is orthogonal to the normalised values, up to eps",
    formula: "sum(dx * h) = s * eps / (v + eps) * sum(gain * g * h)",
    preconditions: "eps and the divisor of the variance are those of the forward pass, and dx is the gradient through the norm alone",
};

static BIAS: Invariant = Invariant {
    name: "a bias before batch norm gets no gradient",
    formula: "db = sum(dx) = 0",
    preconditions: "nothing but the batch norm takes the sum that the bias is added to, and the norm takes the batch's statistics",
};

static WEIGHT: Invariant = Invariant {
    name: "the gradient of a weight before a norm is orthogonal to it, up to eps",
    formula: "<W, dW> = eps / (v + eps) * sum(gain * g * h) (per column before batch norm; over all, with the bias as a further row, before layer and RMS norm)",
    preconditions: "nothing but the norm takes the product, and dW is the gradient of this use of the weight",
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum NormKind {
    Batch,
    Layer,
    Rms,
}

/// A normalisation as it was applied, from which everything that the laws need is computed again in
/// f64.
#[derive(Clone, Debug)]
pub struct Norm {
    x: Tensor,
    kind: NormKind,
    gain: Option<Tensor>,
    eps: f64,
    /// The variance is divided by the number of elements less this.
    correction: usize,
    /// Number of last axes that are a row.
    axes: usize,
}

/// A linear layer before a norm, `x = input W + bias`.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// `[.., in]`.
    pub input: &'a Tensor,
    /// `[in, out]`; the transpose of a `Linear`'s.
    pub weight: &'a Tensor,
    /// Its gradient.
    pub weight_grad: &'a Tensor,
    /// The bias and its gradient, `[out]`; layer and RMS norm need them where there are any.
    pub bias: Option<(&'a Tensor, &'a Tensor)>,
}

/// One set of values that are normalised together.
struct Set {
    /// The places of its elements.
    places: Vec<usize>,
    /// The normalised values.
    h: Vec<f64>,
    /// The magnitudes of the terms of `dx` before they cancel.
    terms: Vec<f64>,
    /// The magnitudes of the terms of `h`.
    wide: Vec<f64>,
    s: f64,
    /// `eps / (v + eps)`.
    share: f64,
    /// `sum(a h)`.
    product: f64,
}

impl Norm {
    fn new(x: &Tensor, kind: NormKind) -> Norm {
        Norm { x: x.detach(), kind, gain: None, eps: 1e-5, correction: 0, axes: 1 }
    }

    /// Batch norm of `[n, features, ..]`, each feature over all other axes, by the biased variance
    /// and with an eps of 1e-5 unless other ones are set.
    pub fn batch(x: &Tensor) -> Norm {
        Norm::new(x, NormKind::Batch)
    }

    /// Layer norm over the last axis, with an eps of 1e-5 unless another one is set.
    pub fn layer(x: &Tensor) -> Norm {
        Norm::new(x, NormKind::Layer)
    }

    /// RMS norm over the last axis, with an eps of 1e-5 unless another one is set.
    pub fn rms(x: &Tensor) -> Norm {
        Norm::new(x, NormKind::Rms)
    }

    /// The gain of the normalised values, one for each feature.
    pub fn gain(mut self, gain: &Tensor) -> Norm {
        self.gain = Some(gain.detach());
        self
    }

    /// The eps added to the variance.
    pub fn eps(mut self, eps: f64) -> Norm {
        self.eps = eps;
        self
    }

    /// The variance is divided by `n - correction`: 0 without this, 1 for the unbiased one.
    pub fn correction(mut self, correction: usize) -> Norm {
        self.correction = correction;
        self
    }

    /// A row is this many of the last axes: 1 without this.
    pub fn axes(mut self, axes: usize) -> Norm {
        self.axes = axes;
        self
    }

    /// The law that `dx` sums to 0, from the gradient of the norm's result and that of its input.
    /// Place: the feature (batch norm) or row.
    ///
    /// The bound is `(3 + sqrt(n) / 4) * eps` times the sum of
    /// `|s a| + |s mean(a)| + |h s sum(a h) / n|`, with the sizes that `x` and its mean have before
    /// they are subtracted.
    ///
    /// Errors for RMS norm, which has no such law, and for shapes that do not fit.
    pub fn sums(&self, incoming: &Tensor, dx: &Tensor) -> Result<InvariantReport> {
        self.centred("sums")?;
        let (sets, numbers) = (self.sets("sums", incoming)?, self.like("sums", dx)?);
        Ok(InvariantReport::of(
            &SUMS,
            sets.iter().map(|set| {
                let sum: f64 = set.places.iter().map(|&i| numbers[i]).sum();
                (sum.abs(), self.rounding(set, set.terms.iter().sum()))
            }),
        ))
    }

    /// The law of the product of `dx` with the normalised values. Place: the feature (batch norm)
    /// or row. The bound goes by the terms of [`Norm::sums`], each times its normalised value.
    /// Errors for shapes that do not fit.
    pub fn products(&self, incoming: &Tensor, dx: &Tensor) -> Result<InvariantReport> {
        let (sets, numbers) = (self.sets("products", incoming)?, self.like("products", dx)?);
        Ok(InvariantReport::of(
            &PRODUCTS,
            sets.iter().map(|set| {
                let product: f64 =
                    set.places.iter().zip(&set.h).map(|(&i, h)| numbers[i] * h).sum();
                let terms = set.terms.iter().zip(&set.wide).map(|(t, w)| t * w).sum();
                ((product - set.s * set.share * set.product).abs(), self.rounding(set, terms))
            }),
        ))
    }

    /// The law that a bias before batch norm has the gradient 0, from the gradient of the norm's
    /// result and that of the bias. Place: the feature. The bound is that of [`Norm::sums`]. Errors
    /// for other norms, and for shapes that do not fit.
    pub fn bias(&self, incoming: &Tensor, bias_grad: &Tensor) -> Result<InvariantReport> {
        if self.kind != NormKind::Batch {
            let why = "only batch norm takes away what is added to all examples: before other norms a bias has a gradient";
            return Err(Error::argument("bias", why));
        }
        floats("bias", bias_grad)?;
        let sets = self.sets("bias", incoming)?;
        let numbers = bias_grad.to_f64_vec();
        if numbers.len() != sets.len() {
            let why =
                format!("the bias must have one element for each of the {} features", sets.len());
            return Err(Error::shape("bias", &[&bias_grad.shape()], why));
        }
        Ok(InvariantReport::of(
            &BIAS,
            sets.iter()
                .zip(numbers)
                .map(|(set, db)| (db.abs(), self.rounding(set, set.terms.iter().sum()))),
        ))
    }

    /// The law of a weight before a norm. Place: the column (batch norm); the other norms have one
    /// place. The bound goes by the terms of [`Norm::sums`], each times `sum |input| |W|`. Errors
    /// for shapes that do not fit.
    pub fn weight(&self, incoming: &Tensor, layer: Before<'_>) -> Result<InvariantReport> {
        const OP: &str = "weight";
        let sets = self.sets(OP, incoming)?;
        let Before { input, weight, weight_grad, bias } = layer;
        same_shape(OP, "the gradient of the weight", weight_grad, weight)?;
        let fits = weight.rank() == 2
            && input.shape().last() == Some(&weight.shape()[0])
            && self.x.shape().last() == Some(&weight.shape()[1])
            && input.numel() / weight.shape()[0].max(1)
                == self.x.numel() / weight.shape()[1].max(1);
        if !fits
            || (self.kind == NormKind::Batch && self.x.rank() != 2)
            || (self.kind != NormKind::Batch && self.axes != 1)
        {
            let why = "the input must be [.., in], the weight [in, out], and what is normalised [.., out] (batch norm: [n, out])";
            return Err(Error::shape(OP, &[&input.shape(), &weight.shape(), &self.x.shape()], why));
        }
        let columns = weight.shape()[1];
        // |input| |W|, and |bias| where there is one.
        let mut wide = input
            .detach()
            .try_abs()?
            .try_reshape([self.x.numel() / columns.max(1), weight.shape()[0]])?;
        wide = wide.try_to_dtype(chainrule_core::DType::F64)?;
        let mut wide = wide
            .try_matmul(&weight.detach().try_abs()?.try_to_dtype(chainrule_core::DType::F64)?)?
            .to_f64_vec();
        let mut inner = vec![0.0; columns];
        let pairs = weight.to_f64_vec().into_iter().zip(weight_grad.to_f64_vec());
        pairs.enumerate().for_each(|(i, (w, dw))| inner[i % columns] += w * dw);
        if let (Some((b, db)), true) = (bias, self.kind != NormKind::Batch) {
            same_shape(OP, "the gradient of the bias", db, b)?;
            let b = b.to_f64_vec();
            if b.len() != columns {
                let why = format!("the bias must have {columns} elements");
                return Err(Error::shape(OP, &[&db.shape()], why));
            }
            b.iter().zip(db.to_f64_vec()).enumerate().for_each(|(j, (b, db))| inner[j] += b * db);
            wide.iter_mut().enumerate().for_each(|(i, x)| *x += b[i % columns].abs());
        }
        let due = |set: &Set| set.share * set.product;
        let terms = |set: &Set| -> f64 {
            set.places
                .iter()
                .zip(&set.terms)
                .map(|(&i, t)| t * (wide[i] + 1.0 / set.s.max(f64::MIN_POSITIVE)))
                .sum()
        };
        let n = self.x.numel();
        if self.kind == NormKind::Batch {
            return Ok(InvariantReport::of(
                &WEIGHT,
                sets.iter().zip(inner).map(|(set, inner)| {
                    ((inner - due(set)).abs(), rounding(self.x.dtype(), STEPS, n, terms(set)))
                }),
            ));
        }
        let (due, terms) = (sets.iter().map(due).sum::<f64>(), sets.iter().map(terms).sum());
        let inner: f64 = inner.iter().sum();
        Ok(InvariantReport::of(
            &WEIGHT,
            [((inner - due).abs(), rounding(self.x.dtype(), STEPS, n, terms))],
        ))
    }

    fn centred(&self, op: &'static str) -> Result<()> {
        if self.kind == NormKind::Rms {
            let why = "RMS norm subtracts no mean, so the gradient into it has a sum";
            return Err(Error::argument(op, why));
        }
        Ok(())
    }

    fn rounding(&self, set: &Set, terms: f64) -> f64 {
        rounding(self.x.dtype(), STEPS, set.h.len(), terms)
    }

    /// The numbers of a tensor of the shape of `x`.
    fn like(&self, op: &'static str, t: &Tensor) -> Result<Vec<f64>> {
        floats(op, t)?;
        same_shape(op, "a gradient", t, &self.x)?;
        Ok(t.to_f64_vec())
    }

    /// The places that are normalised together, and the number of the feature of each.
    fn groups(&self, op: &'static str) -> Result<Vec<(Vec<usize>, Vec<usize>)>> {
        let shape = self.x.shape();
        if self.kind == NormKind::Batch {
            if shape.rank() < 2 {
                return Err(Error::shape(op, &[&shape], "batch norm takes [n, features, ..]"));
            }
            let inner: usize = shape[2..].iter().product();
            let features = shape[1];
            let mut sets = vec![(Vec::new(), Vec::new()); features];
            for i in 0..shape.numel() {
                let feature = i / inner % features;
                sets[feature].0.push(i);
                sets[feature].1.push(feature);
            }
            return Ok(sets);
        }
        if self.axes == 0 || shape.rank() < self.axes {
            let why = format!("a row is the last {} axes", self.axes);
            return Err(Error::shape(op, &[&shape], why));
        }
        let row: usize = shape[shape.rank() - self.axes..].iter().product();
        let rows = shape.numel() / row.max(1);
        Ok((0..rows).map(|r| ((r * row..(r + 1) * row).collect(), (0..row).collect())).collect())
    }

    fn sets(&self, op: &'static str, incoming: &Tensor) -> Result<Vec<Set>> {
        floats(op, &self.x)?;
        let (x, g) = (self.x.to_f64_vec(), self.like(op, incoming)?);
        let gain = self.gain.as_ref().map(Tensor::to_f64_vec);
        let groups = self.groups(op)?;
        if let Some((places, _)) = groups.iter().find(|(places, _)| places.len() <= self.correction)
        {
            let why = format!(
                "the variance of {} elements is divided by {0} - {}",
                places.len(),
                self.correction
            );
            return Err(Error::shape(op, &[&self.x.shape()], why));
        }
        let features = groups.iter().flat_map(|(_, features)| features).max().map_or(0, |&f| f + 1);
        if let (Some(own), Some(gain)) = (&self.gain, &gain)
            && gain.len() < features
        {
            let why = format!("the gain must have one element for each of the {features} features");
            return Err(Error::shape(op, &[&own.shape()], why));
        }
        let gain = |feature: usize| gain.as_ref().map_or(1.0, |gain| gain[feature]);
        let sets = groups.into_iter().map(|(places, features)| {
            let a: Vec<f64> = places.iter().zip(&features).map(|(&i, &f)| gain(f) * g[i]).collect();
            self.set(places, &x, &a)
        });
        Ok(sets.collect())
    }

    fn set(&self, places: Vec<usize>, x: &[f64], a: &[f64]) -> Set {
        let n = places.len() as f64;
        let x: Vec<f64> = places.iter().map(|&i| x[i]).collect();
        let centred = self.kind != NormKind::Rms;
        let mean = if centred { x.iter().sum::<f64>() / n } else { 0.0 };
        let divisor = n - self.correction as f64;
        let v = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / divisor;
        let s = 1.0 / (v + self.eps).sqrt();
        let h: Vec<f64> = x.iter().map(|x| (x - mean) * s).collect();
        let wide: Vec<f64> = x.iter().map(|x| (x.abs() + mean.abs()) * s).collect();
        let product = a.iter().zip(&h).map(|(a, h)| a * h).sum();
        let size: f64 = a.iter().zip(&wide).map(|(a, w)| (a * w).abs()).sum();
        let average = if centred { a.iter().map(|a| a.abs()).sum::<f64>() / n } else { 0.0 };
        let terms = a.iter().zip(&wide).map(|(a, w)| s * (a.abs() + average + w * size / divisor));
        let terms = terms.collect();
        Set { places, h, terms, wide, s, share: self.eps / (v + self.eps), product }
    }
}
