//! `batch_norm`: columns normalised by the mean and variance of the batch, and the backward of it
//! as one kernel.

use smallvec::SmallVec;

use super::learned::{Learned, affine, elements, with_learned};
use crate::kernels::norm::{self, Column};
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::op::Definition;

/// On `[n, c]`; the further inputs are the gain and the bias, `[c]`, as far as there are any.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct BatchNorm {
    eps: f64,
    /// The variance is divided by `n - correction`.
    correction: usize,
    learned: Learned,
}

impl Op for BatchNorm {
    row!(batch_norm);

    fn role(&self) -> Role {
        Role::Norm(NormRole::Batch)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(
            "_batch_norm({*}, eps={eps}, correction={correction}, gain={gain}, bias={bias})".into(),
        )
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(7, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let x = inputs[0].shape;
        if let Some(other) = inputs[1..].iter().find(|m| m.shape != [x[1]]) {
            let why =
                format!("gain and bias must have one element for each of the {} features", x[1]);
            return Err(Error::shape(self.name(), &[&x, &other.shape], why));
        }
        Ok(Meta::new(x, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        grads(self, at, cotangent, self.correction)
    }

    /// Step by step along the definition: `d = x - mean`, `v = mean of d^2`,
    /// `y = gain * d * (v + eps)^-1/2 + bias`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, n) = (at.input(0), at.input_shape(0)[0] as f64);
        let divisor = n - self.correction as f64;
        let centre = |x: &Tensor| x.try_sub(&x.try_sum(0, true)?.try_div(n)?);
        let d = centre(&x)?;
        let v = d.try_mul(&d)?.try_sum(0, true)?.try_div(divisor)?;
        let root = v.try_add(self.eps)?.try_sqrt()?;
        let through = |dx: &Tensor| {
            let dd = centre(dx)?;
            let dv = d.try_mul(&dd)?.try_sum(0, true)?.try_mul(2.0 / divisor)?;
            // The derivative of v^(-1/2) is -v^(-3/2) / 2.
            let cube = root.try_mul(&root)?.try_mul(&root)?.try_mul(2.0)?;
            dd.try_div(&root)?.try_sub(&d.try_mul(&dv)?.try_div(&cube)?)
        };
        let dhat = tangents[0].as_ref().map(through).transpose()?;
        self.learned.tangent(at, tangents, &d.try_div(&root)?, dhat, |x| Ok(x.clone()))
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let x = &inputs[0];
            let n = x.shape()[0] as f64;
            let d = x.try_sub(&x.try_sum(0, true)?.try_div(n)?)?;
            let v = d.try_mul(&d)?.try_sum(0, true)?;
            let v = v.try_div(n - self.correction as f64)?;
            let hat = d.try_div(&v.try_add(self.eps)?.try_sqrt()?)?;
            let (gain, bias) = self.learned.split(inputs);
            affine(hat, gain, bias)
        }))
    }
}

/// The gradients of all inputs, with the variance divided by `n - correction`.
fn grads(op: &BatchNorm, at: &Saved<'_>, g: &Tensor, correction: usize) -> Result<Grads> {
    let (hat, inv_std) = (at.extra(0), at.extra(1));
    let gain = op.learned.gain.then(|| at.input(1));
    let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![g, &hat, &inv_std];
    inputs.extend(&gain);
    let (dx, extra) = apply_extra(BatchNormGrad { correction }, &inputs)?;
    let [dgain, dbias] = [0, 1].map(|i| Tensor::from_parts(extra[i].clone(), Source::None));
    Ok(op.learned.grads(dx, Some(dgain), Some(dbias)))
}

impl WholeKernel for BatchNorm {
    /// Extra results: the normalised input, 1 / sqrt(variance + eps), the mean, and the variance.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 3]>>>()?;
        by_dtype!(out.dtype, [F32, F64], |T| self.forward::<T>(&inputs, out))
    }
}

impl BatchNorm {
    fn forward<T: Column + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (n, c) = (out.shape[0], out.shape[1]);
        let column = Meta::new(Shape::new(&[c]), out.dtype);
        let fresh = |meta| Value::uninit(self.name(), meta);
        let (mut y, mut hat) = (fresh(out)?, fresh(out)?);
        let (mut mean, mut var, mut inv_std) = (fresh(column)?, fresh(column)?, fresh(column)?);
        let x = elements::<T>(&inputs[0]);
        let (gain, bias) = self.learned.split(inputs);
        norm::batch_norm_stats(x, n, c, self.correction, mean.elements_mut(), var.elements_mut());
        norm::inv_std(elements(&var), T::from_f64(self.eps), inv_std.elements_mut());
        let by = norm::ColumnAffine {
            mean: elements(&mean),
            inv_std: elements(&inv_std),
            gain: gain.map(|v| elements(v)),
            bias: bias.map(|v| elements(v)),
        };
        norm::batch_norm_apply(x, n, c, by, y.elements_mut(), Some(hat.elements_mut()));
        let extra = [hat, inv_std, mean, var].map(Value::share);
        Ok(Outcome { value: y.share(), extra: SmallVec::from_iter(extra) })
    }
}

/// The backward from the upstream gradient, the normalised input, 1 / sqrt(variance + eps), and the
/// gain, if any: the gradient of the input, and beside it those of gain and bias.
#[derive(Debug, Parameters)]
struct BatchNormGrad {
    correction: usize,
}

impl Op for BatchNormGrad {
    fn name(&self) -> &'static str {
        "batch_norm_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_batch_norm_grad({*}, correction={correction})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(8, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for BatchNormGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 4]>>>()?;
        by_dtype!(out.dtype, [F32, F64], |T| self.backward::<T>(&inputs, out))
    }
}

impl BatchNormGrad {
    fn backward<T: Column + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (n, c) = (out.shape[0], out.shape[1]);
        let column = Meta::new(Shape::new(&[c]), out.dtype);
        let fresh = |meta| Value::uninit(self.name(), meta);
        let (mut dx, mut dgain, mut dbias) = (fresh(out)?, fresh(column)?, fresh(column)?);
        let up = norm::BatchNormUpstream::<T> {
            g: elements(&inputs[0]),
            xhat: elements(&inputs[1]),
            inv_std: elements(&inputs[2]),
            gain: inputs.get(3).map(|v| elements(v)),
            correction: self.correction,
        };
        norm::batch_norm_grad(
            up,
            n,
            c,
            dx.elements_mut(),
            dgain.elements_mut(),
            dbias.elements_mut(),
        );
        Ok(Outcome {
            value: dx.share(),
            extra: SmallVec::from_iter([dgain, dbias].map(Value::share)),
        })
    }
}

methods! {
    /// Each feature normalised over the batch, `gain * (x - mean) / sqrt(var + eps) + bias`.
    /// Features lie on axis 1 (`[n, c]`, `[n, c, l]`, ...); mean and variance are taken over all
    /// other axes. For f32 and f64.
    ///
    /// `correction` 0 divides the variance by the number of values (as PyTorch normalises), 1 by
    /// one less. A single value for each feature has no variance and is an error, as in PyTorch.
    /// Gradient, with `h` the normalised input and `m` values for each feature: `dx = gain /
    /// sqrt(var + eps) * (g - sum(g) / m - h * sum(g * h) / (m - correction))`,
    /// `dgain = sum(g * h)`, `dbias = sum(g)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 10.0], [3.0, 30.0]]);
    /// let y = x.batch_norm(None, None, 0.0, 0);
    /// assert_eq!(y.to_vec::<f64>(), [-1.0, -1.0, 1.0, 1.0]);
    /// ```
    pub fn batch_norm / try_batch_norm(&self, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64, correction: usize) -> Tensor {
        Ok(self.try_batch_norm_train(gain, bias, eps, correction)?.0)
    }

    /// As [`Tensor::batch_norm`], with the mean and the variance of the batch, for running
    /// statistics. They are constants of shape `[c]`; the variance is the one used, divided by
    /// `m - correction`: times `(m - correction) / (m - 1)` it is the unbiased one.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64], [3.0]]);
    /// let (_, mean, var) = x.batch_norm_train(None, None, 1e-5, 1);
    /// assert_eq!((mean.item(), var.item()), (2.0, 2.0));
    /// ```
    pub fn batch_norm_train / try_batch_norm_train(&self, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64, correction: usize) -> (Tensor, Tensor, Tensor) {
        let shape = self.shape();
        expect_batch(&shape, eps, correction)?;
        let op = BatchNorm { eps, correction, learned: Learned::of(gain, bias) };
        let (x, back) = features_last(self)?;
        let (y, extra) = apply_extra(op, &with_learned(&x, gain, bias))?;
        let statistic = |i: usize| Tensor::from_parts(extra[i].clone(), Source::None);
        Ok((features_second(&y, back)?, statistic(2), statistic(3)))
    }

    /// Each feature normalised by a given mean and variance,
    /// `gain * (x - mean) / sqrt(var + eps) + bias`: batch normalisation at evaluation, with
    /// running statistics. Features lie on axis 1; mean and variance have shape `[c]`. All inputs
    /// have gradients.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (mean, var) = (Tensor::from([1.0f64]), Tensor::from([4.0f64]));
    /// let y = Tensor::from([[5.0f64]]).batch_norm_eval(&mean, &var, None, None, 0.0);
    /// assert_eq!(y.item(), 2.0);
    /// ```
    pub fn batch_norm_eval / try_batch_norm_eval(&self, mean: &Tensor, var: &Tensor, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let shape = self.shape();
        expect_features(&shape)?;
        let given = [Some(mean), Some(var), gain, bias];
        if let Some(other) = given.into_iter().flatten().find(|t| t.shape() != [shape[1]]) {
            let why = format!("mean, variance, gain and bias must have one element for each of the {} features", shape[1]);
            return Err(Error::shape("batch_norm_eval", &[&shape, &other.shape()], why));
        }
        let (x, back) = features_last(self)?;
        let hat = x.try_sub(mean)?.try_div(&var.try_add(eps)?.try_sqrt()?)?;
        features_second(&affine(hat, gain, bias)?, back)
    }
}

fn expect_features(shape: &Shape) -> Result<()> {
    if shape.rank() < 2 {
        let why = "the input needs two axes at least: rows, then features";
        return Err(Error::shape("batch_norm", &[shape], why));
    }
    Ok(())
}

fn expect_batch(shape: &Shape, eps: f64, correction: usize) -> Result<()> {
    expect_features(shape)?;
    if correction > 1 || !(0.0..f64::INFINITY).contains(&eps) {
        let why = format!(
            "correction must be 0 or 1 and eps a number from 0 up; they are {correction} and {eps}"
        );
        return Err(Error::argument("batch_norm", why));
    }
    let count: usize = shape.without_axis(1).numel();
    if count < 2 {
        let why = format!(
            "each feature has {count} value{}, and a variance needs two; use a larger batch, or batch_norm_eval",
            if count == 1 { "" } else { "s" }
        );
        return Err(Error::shape("batch_norm", &[shape], why));
    }
    Ok(())
}

/// The input as `[values, features]`, and its former shape if the features had to be moved to the
/// end.
#[track_caller]
fn features_last(x: &Tensor) -> Result<(Tensor, Option<Shape>)> {
    let shape = x.shape();
    if shape.rank() == 2 {
        return Ok((x.clone(), None));
    }
    let mut order: SmallVec<[i64; MAX_RANK]> = (0..shape.rank() as i64).collect();
    order.remove(1);
    order.push(1);
    let moved = x.try_permute(&order)?;
    let (c, back) = (shape[1], moved.shape());
    Ok((moved.try_reshape([shape.without_axis(1).numel(), c])?, Some(back)))
}

/// The reverse of [`features_last`].
#[track_caller]
fn features_second(y: &Tensor, back: Option<Shape>) -> Result<Tensor> {
    let Some(shape) = back else {
        return Ok(y.clone());
    };
    let mut order: SmallVec<[i64; MAX_RANK]> = (0..shape.rank() as i64 - 1).collect();
    order.insert(1, shape.rank() as i64 - 1);
    y.try_reshape(shape)?.try_permute(&order)
}

pub(super) const ENTRY: Entry = Entry {
    name: "batch_norm",
    family: Family::Fused,
    signature: "x.batch_norm(gain, bias, eps, correction)",
    python: &[Binding::by_hand("batch_norm", "it writes the running statistics")
        .no_method()
        .no_function()],
    formula: "gain * (x - mean) / sqrt(var + eps) + bias, over the batch",
    gradient: "dx = gain / sqrt(var + eps) * (g - sum(g) / m - h * sum(g * h) / (m - correction)); dgain = sum(g * h); dbias = sum(g), where h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a single value for each feature is an error",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let cases: [(&str, &[usize], usize); 6] = [
        ("biased variance", &[5, 3], 0),
        ("unbiased variance", &[5, 3], 1),
        ("two rows", &[2, 4], 1),
        ("33 rows of 17", &[33, 17], 0),
        ("features in the middle", &[2, 3, 4], 1),
        ("no features", &[3, 0], 0),
    ];
    let mut out = Vec::new();
    for (note, shape, correction) in cases {
        let c = shape[1];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, [c]), normal(g, [c])];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_batch_norm(Some(&x[1]), Some(&x[2]), 1e-5, correction)
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [4, 3])], |x| {
        x[0].try_batch_norm(None, None, 1e-3, 0)
    }));
    let bias_only = vec![normal(g, [4, 3]), normal(g, [3])];
    out.push(Sample::new("bias only", bias_only, |x| {
        x[0].try_batch_norm(None, Some(&x[1]), 1e-3, 1)
    }));
    let transposed = vec![normal(g, [3, 4]), normal(g, [3])];
    out.push(Sample::new("a transposed view, gain only", transposed, |x| {
        x[0].try_t()?.try_batch_norm(Some(&x[1]), None, 1e-3, 1)
    }));
    out
}

fn this(op: &dyn Op) -> Result<&BatchNorm> {
    op.downcast()
}

/// The gradients with `dx = gain / sqrt(var + eps) * inner`.
fn with_dx(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
    inner: Tensor,
) -> Result<Grads> {
    let mut grads = op.vjp(at, g, wanted)?;
    let gain = this(op)?.learned.gain.then(|| at.input(1));
    grads[0] = Some(affine(inner.try_mul(at.extra(1))?, gain.as_ref(), None)?);
    Ok(grads)
}

/// `h * sum(g * h) / (m - correction)`.
fn through_variance(op: &dyn Op, at: &Saved<'_>, g: &Tensor) -> Result<Tensor> {
    let (hat, n) = (at.extra(0), at.input_shape(0)[0]);
    let divisor = (n - this(op)?.correction) as f64;
    hat.try_mul(&g.try_mul(&hat)?.try_sum(0, true)?.try_div(divisor)?)
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "batch-norm coupling forgotten",
        what: "mean and variance were taken for constants: dx = g * gain / sqrt(var + eps)",
        rule: |op, at, g, wanted| with_dx(op, at, g, wanted, g.clone()),
    },
    Mistake {
        name: "mean path forgotten",
        what: "the mean was taken for a constant: dx lacks - sum(g) / m, so its columns do not sum to 0",
        rule: |op, at, g, wanted| {
            let inner = g.try_sub(&through_variance(op, at, g)?)?;
            with_dx(op, at, g, wanted, inner)
        },
    },
    Mistake {
        name: "variance path forgotten",
        what: "the variance was taken for a constant: dx lacks - h * sum(g * h) / (m - correction)",
        rule: |op, at, g, wanted| {
            let mean = g.try_sum(0, true)?.try_div(at.input_shape(0)[0] as f64)?;
            with_dx(op, at, g, wanted, g.try_sub(&mean)?)
        },
    },
    Mistake {
        name: "epsilon outside the root",
        what: "the backward divides by sqrt(var) + eps where the forward divided by sqrt(var + eps)",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let outside = at.extra(3).try_sqrt()?.try_add(this(op)?.eps)?;
            let ratio = 1.0 / at.extra(1).try_mul(&outside)?;
            grads[0] = grads[0].take().map(|dx| dx.try_mul(&ratio)).transpose()?;
            Ok(grads)
        },
    },
    Mistake {
        name: "wrong divisor of the variance",
        what: "the backward divides by n where the forward divided by n - 1, or the other way round",
        rule: |op, at, g, _| grads(this(op)?, at, g, 1 - this(op)?.correction),
    },
    Mistake {
        name: "gradient of the gain from the input",
        what: "dgain = sum(g * x): the input was taken for the normalised input",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            if this(op)?.learned.gain {
                grads[1] = Some(g.try_mul(at.input(0))?.try_sum(0, false)?);
            }
            Ok(grads)
        },
    },
];
