//! `layer_norm`: each row normalised by its own mean and variance, and the backward of it as one kernel. `rms_norm` is the same op
//! without the mean.

use smallvec::SmallVec;

use super::backward_only;
use crate::kernels::math::Real;
use crate::kernels::norm::layer::{self, Affine, Norm, Upstream};
use crate::kernels::reduce::Summed;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::op::Definition;

/// Over the last `axes` axes, which are one row; the further inputs are the weight and the bias, of those axes, as far as there are any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowNorm {
    pub norm: Norm,
    pub axes: usize,
    pub eps: f64,
    pub weight: bool,
    pub bias: bool,
}

/// The shape of the last axes.
fn last_axes(shape: &Shape, axes: usize) -> Shape {
    Shape::new(&shape[shape.rank() - axes..])
}

impl RowNorm {
    /// Splits what belongs to the inputs into weight and bias.
    fn split<'a, X>(&self, inputs: &'a [X]) -> (Option<&'a X>, Option<&'a X>) {
        let weight = self.weight.then(|| &inputs[1]);
        let bias = self.bias.then(|| &inputs[1 + usize::from(self.weight)]);
        (weight, bias)
    }

    /// The mean over a row, which keeps its axes.
    fn mean(&self, x: &Tensor) -> Result<Tensor> {
        let axes: SmallVec<[i64; MAX_RANK]> = (1..=self.axes as i64).map(|a| -a).collect();
        let n = last_axes(&x.shape(), self.axes).numel();
        x.try_sum(&axes[..], true)?.try_div(n as f64)
    }

    /// The input less its mean, where the mean is taken off.
    fn centred(&self, x: &Tensor) -> Result<Tensor> {
        match self.norm {
            Norm::Layer => x.try_sub(&self.mean(x)?),
            Norm::Rms => Ok(x.clone()),
        }
    }
}

impl Op for RowNorm {
    fn name(&self) -> &'static str {
        match self.norm {
            Norm::Layer => "layer_norm",
            Norm::Rms => "rms_norm",
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[0].shape, float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, kept) = (at.input(0), at.extra(0));
        let weight = self.weight.then(|| at.input(1));
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![cotangent, &x, &kept];
        inputs.extend(&weight);
        let bias_at = 1 + usize::from(self.weight);
        let wants = [self.weight && wanted.get(1), self.bias && wanted.get(bias_at)];
        let op = RowNormGrad { norm: self.norm, axes: self.axes, wants };
        let (dx, extra) = apply_extra(op, &inputs)?;
        let mut out: Grads = smallvec![Some(dx)];
        let mut extra = extra.into_iter().map(|v| Tensor::from_parts(v, Source::None));
        for (has, wants) in [self.weight, self.bias].into_iter().zip(wants) {
            if has {
                out.push(wants.then(|| extra.next().expect("one each")));
            }
        }
        Ok(out)
    }

    /// Step by step along the definition: `d = x - mean`, `v = mean of d^2`, `y = weight * d * (v + eps)^-1/2 + bias`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let d = self.centred(&at.input(0))?;
        let root = self.mean(&d.try_mul(&d)?)?.try_add(self.eps)?.try_sqrt()?;
        let inputs = at.inputs();
        let (weight, _) = self.split(&inputs);
        let (dweight, dbias) = self.split(tangents);
        let mut parts: SmallVec<[Tensor; 3]> = SmallVec::new();
        if let Some(dx) = &tangents[0] {
            let dd = self.centred(dx)?;
            // The derivative of v^(-1/2) is -v^(-3/2) / 2, and that of v is 2 mean(d dd).
            let dv = self.mean(&d.try_mul(&dd)?)?;
            let cube = root.try_mul(&root)?.try_mul(&root)?;
            let dhat = dd.try_div(&root)?.try_sub(&d.try_mul(&dv)?.try_div(&cube)?)?;
            parts.push(match weight {
                Some(weight) => dhat.try_mul(weight)?,
                None => dhat,
            });
        }
        if let Some(Some(dweight)) = dweight {
            parts.push(d.try_div(&root)?.try_mul(dweight)?);
        }
        if let Some(Some(dbias)) = dbias {
            parts.push(dbias.try_expand(d.shape())?);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().expect("at least one tangent is given");
        parts.try_fold(first, |sum, part| sum.try_add(&part))
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let d = self.centred(&inputs[0])?;
            let v = self.mean(&d.try_mul(&d)?)?;
            let mut y = d.try_div(&v.try_add(self.eps)?.try_sqrt()?)?;
            let (weight, bias) = self.split(inputs);
            if let Some(weight) = weight {
                y = y.try_mul(weight)?;
            }
            match bias {
                Some(bias) => y.try_add(bias),
                None => Ok(y),
            }
        }))
    }
}

fn elements<T: Stored>(value: &Value) -> &[T] {
    value.slice().expect("fresh or made contiguous")
}

impl WholeKernel for RowNorm {
    /// Beside the result: what the backward pass needs of each row.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 3]>>>()?;
        match out.dtype {
            DType::F32 => self.forward::<f32>(&inputs, out),
            DType::F64 => self.forward::<f64>(&inputs, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

impl RowNorm {
    fn forward<T: Real + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let n = last_axes(&out.shape, self.axes).numel();
        let rows = out.shape.numel() / n.max(1);
        let kept = Meta::new(Shape::new(&[rows, layer::STATS]), out.dtype);
        let mut y = Value::uninit(self.name(), out)?;
        let mut kept = Value::uninit(self.name(), kept)?;
        let (weight, bias) = self.split(inputs);
        let by = Affine { gain: weight.map(|v| elements(v)), bias: bias.map(|v| elements(v)) };
        let x = elements::<T>(&inputs[0]);
        layer::forward(x, n, by, (self.norm, self.eps), y.as_mut(), kept.as_mut());
        Ok(Outcome { value: Arc::new(y), extra: smallvec![Arc::new(kept)] })
    }
}

/// The backward from the upstream gradient, the input, what was kept of each row, and the weight, if any: the gradient of the input, and
/// beside it those of weight and bias, as wanted.
#[derive(Debug)]
struct RowNormGrad {
    norm: Norm,
    axes: usize,
    wants: [bool; 2],
}

impl Op for RowNormGrad {
    fn name(&self) -> &'static str {
        "layer_norm_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    backward_only!();
}

impl WholeKernel for RowNormGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 4]>>>()?;
        match out.dtype {
            DType::F32 => self.backward::<f32>(&inputs, out),
            DType::F64 => self.backward::<f64>(&inputs, out),
            _ => unreachable!("a gradient has the dtype of its tensor"),
        }
    }
}

impl RowNormGrad {
    fn backward<T: Real + Summed + Stored>(
        &self,
        inputs: &[Arc<Value>],
        out: Meta,
    ) -> Result<Outcome> {
        let row = last_axes(&out.shape, self.axes);
        let n = row.numel();
        let fresh = |shape| Value::uninit(self.name(), Meta::new(shape, out.dtype));
        let mut dx = fresh(out.shape)?;
        let mut sums = [None, None];
        for (sum, wants) in sums.iter_mut().zip(self.wants) {
            *sum = if wants { Some(fresh(row)?) } else { None };
        }
        let partial = self.wants.iter().filter(|&&wants| wants).count();
        let rows = out.shape.numel() / n.max(1);
        let mut scratch = fresh(Shape::new(&[layer::pieces(rows), partial, n]))?;
        let up = Upstream::<T> {
            g: elements(&inputs[0]),
            x: elements(&inputs[1]),
            kept: elements(&inputs[2]),
            gain: inputs.get(3).map(|v| elements(v)),
        };
        let totals = sums.each_mut().map(|sum| match sum {
            Some(sum) => sum.as_mut(),
            None => &mut [],
        });
        layer::backward(up, n, self.norm, dx.as_mut(), totals, scratch.as_mut());
        let extra = sums.into_iter().flatten().map(Arc::new).collect();
        Ok(Outcome { value: Arc::new(dx), extra })
    }
}

/// Checks the arguments of both normalisations and applies the op.
#[track_caller]
pub(super) fn normalized(
    x: &Tensor,
    op: RowNorm,
    row: Shape,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let shape = x.shape();
    if row.rank() == 0 || !shape.ends_with(&row) {
        let why =
            format!("the last axes must be those that are normalised, {row}, and one at least");
        return Err(Error::shape(op.name(), &[&shape, &row], why));
    }
    if let Some(other) = [weight, bias].into_iter().flatten().find(|t| t.shape() != row) {
        let why = format!("weight and bias must have the shape of the normalised axes, {row}");
        return Err(Error::shape(op.name(), &[&shape, &other.shape()], why));
    }
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![x];
    inputs.extend(weight);
    inputs.extend(bias);
    apply(op, &inputs)
}

methods! {
    /// Each row normalised by its own mean and variance, `weight * (x - mean) / sqrt(var + eps) + bias` (Ba, Kiros and Hinton 2016). A row is the
    /// last axes, whose shape is given, as in PyTorch; weight and bias have that shape. For f32 and f64.
    ///
    /// The variance is divided by the number of elements of the row. A row of equal elements becomes the bias; with an `eps` of 0 it becomes NaN, as
    /// does one with an infinity or NaN. Gradient, with `h` the normalised row and `u = weight * g`:
    /// `dx = (u - mean(u) - h * mean(u * h)) / sqrt(var + eps)`, `dweight = sum(g * h)` and `dbias = sum(g)` over the rows.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 3.0], [10.0, 50.0]]);
    /// assert_eq!(x.layer_norm(2, None, None, 0.0).to_vec::<f64>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn layer_norm / try_layer_norm<S: IntoShape>(&self, normalized_shape: S, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let row = normalized_shape.into_shape("layer_norm")?;
        let op = RowNorm { norm: Norm::Layer, axes: row.rank(), eps, weight: weight.is_some(), bias: bias.is_some() };
        normalized(self, op, row, weight, bias)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "layer_norm",
    family: Family::Fused,
    signature: "x.layer_norm(normalized_shape, weight, bias, eps)",
    formula: "weight * (x - mean) / sqrt(var + eps) + bias, over the last axes",
    gradient: "dx = (u - mean(u) - h * mean(u * h)) / sqrt(var + eps); dweight = sum(g * h); dbias = sum(g), where u = weight * g and h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a row of equal elements gives the bias; with eps 0 it gives NaN",
    samples,
    mistakes: MISTAKES,
};

/// Shapes that both normalisations are sampled on, with the number of axes that are a row.
pub(super) const SHAPES: [(&str, &[usize], usize); 8] = [
    ("rows", &[3, 5], 1),
    ("a row of two axes", &[2, 3, 4], 2),
    ("33 rows of 17", &[33, 17], 1),
    ("a row longer than the lanes", &[2, 70], 1),
    ("a vector", &[6], 1),
    ("rows of one element", &[4, 1], 1),
    ("rows of no elements", &[3, 0], 1),
    ("no rows", &[0, 3], 1),
];

fn samples(g: &mut Generator) -> Vec<Sample> {
    let mut out = Vec::new();
    for (note, shape, axes) in SHAPES {
        let row = &shape[shape.len() - axes..];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, row), normal(g, row)];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_layer_norm(row, Some(&x[1]), Some(&x[2]), 1e-5)
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [4, 3])], |x| {
        x[0].try_layer_norm(3, None, None, 1e-3)
    }));
    let bias_only = vec![normal(g, [4, 3]), normal(g, [3])];
    out.push(Sample::new("bias only", bias_only, |x| {
        x[0].try_layer_norm(3, None, Some(&x[1]), 1e-3)
    }));
    let transposed = vec![normal(g, [3, 4]), normal(g, [3])];
    out.push(Sample::new("a transposed view, weight only", transposed, |x| {
        x[0].try_t()?.try_layer_norm(3, Some(&x[1]), None, 1e-3)
    }));
    out
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "statistics taken for constants",
        what: "mean and variance were taken for constants: dx = weight * g / sqrt(var + eps)",
        rule: |op, at, g, wanted| {
            let this = this(op);
            let mut grads = op.vjp(at, g, wanted)?;
            let d = this.centred(&at.input(0))?;
            let root = this.mean(&d.try_mul(&d)?)?.try_add(this.eps)?.try_sqrt()?;
            let u = if this.weight { g.try_mul(at.input(1))? } else { g.clone() };
            grads[0] = Some(u.try_div(&root)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "variance taken for a constant",
        what: "dx = (u - mean(u)) / sqrt(var + eps): that the variance depends on x was forgotten",
        rule: |op, at, g, wanted| {
            let this = this(op);
            let mut grads = op.vjp(at, g, wanted)?;
            let d = this.centred(&at.input(0))?;
            let root = this.mean(&d.try_mul(&d)?)?.try_add(this.eps)?.try_sqrt()?;
            let u = if this.weight { g.try_mul(at.input(1))? } else { g.clone() };
            grads[0] = Some(this.centred(&u)?.try_div(&root)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "gradient of the weight from the input",
        what: "dweight = sum(g * x): the input was taken for the normalised input",
        rule: weight_from_input,
    },
];

/// `dweight = sum(g * x)`.
pub(super) fn weight_from_input(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
) -> Result<Grads> {
    let this = this(op);
    let mut grads = op.vjp(at, g, wanted)?;
    if this.weight {
        let rows: SmallVec<[usize; MAX_RANK]> = (0..g.rank() - this.axes).collect();
        grads[1] = Some(g.try_mul(at.input(0))?.try_sum(&rows[..], false)?);
    }
    Ok(grads)
}

pub(super) fn this(op: &dyn Op) -> &RowNorm {
    (op as &dyn std::any::Any).downcast_ref().expect("the rule of a normalisation of rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.15 gives them.
    #[test]
    fn edges_are_those_of_pytorch() {
        let x = Tensor::from([[3.0f32, 3.0, 3.0], [f32::INFINITY, 1.0, 2.0], [f32::NAN, 1.0, 2.0]]);
        let y = x.layer_norm(3, None, None, 1e-5).to_vec::<f32>();
        assert_eq!(y[..3], [0.0; 3]);
        assert!(y[3..].iter().all(|y| y.is_nan()), "{y:?}");
        assert!(x.layer_norm(3, None, None, 0.0).to_vec::<f32>().iter().all(|y| y.is_nan()));
        let y = Tensor::from([1.0f32, 2.0, 3.0]).layer_norm(3, None, None, -1.0);
        assert!(y.to_vec::<f32>().iter().all(|y| y.is_nan()));
        assert_eq!(Tensor::zeros([2, 0]).layer_norm(0, None, None, 1e-5).shape(), [2, 0]);
    }

    #[test]
    fn errors_show_the_shapes() {
        let x = Tensor::zeros([2, 3]);
        let text = x.try_layer_norm(2, None, None, 1e-5).unwrap_err().to_string();
        assert!(text.contains("layer_norm: shapes [2, 3] and [2]"), "{text}");
        assert!(x.try_layer_norm((), None, None, 1e-5).is_err());
        assert!(x.try_layer_norm([1, 2, 3], None, None, 1e-5).is_err());
        let text = x.try_layer_norm(3, Some(&Tensor::zeros(2)), None, 1e-5).unwrap_err();
        assert!(text.to_string().contains("weight and bias must have"), "{text}");
        let ints = Tensor::arange(0, 3);
        assert!(ints.try_layer_norm(3, None, None, 1e-5).is_err());
    }

    /// Rows far from zero keep their digits: against the same numbers in f64.
    #[test]
    fn f32_is_accurate_for_long_rows_far_from_zero() {
        for n in [1usize, 7, 17, 129, 1000, 5000] {
            let g = &mut Generator::manual_seed(n as u64);
            let x = (normal(g, [3, n]) + 100.0).to_dtype(DType::F32);
            let got = x.layer_norm(n, None, None, 1e-5);
            let want = x.to_dtype(DType::F64).layer_norm(n, None, None, 1e-5);
            let apart = (got.to_dtype(DType::F64) - want).abs();
            let worst = apart.to_vec::<f64>().into_iter().fold(0.0, f64::max);
            assert!(worst <= 8e-7, "rows of {n}: {worst:e} apart");
        }
    }
}
