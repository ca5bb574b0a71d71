//! `group_norm`: groups of channels of each sample normalised by their mean and variance, and the backward of it as one kernel.

use smallvec::SmallVec;

use super::backward_only;
use crate::kernels::norm::group::{self, GroupUpstream, Grouped, Groups, Stats};
use crate::kernels::norm::inv_std;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::op::Definition;

/// On `[n, c, ...]`; the further inputs are the gain and the bias, `[c]`, as far as there are any.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupNorm {
    /// `group_norm`, or `instance_norm`, where each channel is a group.
    pub name: &'static str,
    pub groups: usize,
    pub eps: f64,
    pub gain: bool,
    pub bias: bool,
}

impl GroupNorm {
    /// Splits what belongs to the inputs into gain and bias.
    fn split<'a, X>(&self, inputs: &'a [X]) -> (Option<&'a X>, Option<&'a X>) {
        let gain = self.gain.then(|| &inputs[1]);
        let bias = self.bias.then(|| &inputs[1 + usize::from(self.gain)]);
        (gain, bias)
    }

    fn rows(&self, shape: &Shape) -> Groups {
        let groups = self.groups;
        Groups { groups, channels: shape[1] / groups.max(1), inner: shape[2..].iter().product() }
    }

    /// `[n * groups, elements of a group]`.
    fn as_rows(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        x.try_reshape([shape[0] * self.groups, self.rows(&shape).count()])
    }
}

/// Gain or bias in a shape that broadcasts to that of the input.
fn over_channels(x: &Tensor, like: &Shape) -> Result<Tensor> {
    let mut sizes: SmallVec<[usize; MAX_RANK]> = smallvec![1; like.rank() - 1];
    sizes[0] = like[1];
    x.try_reshape(sizes.as_slice())
}

impl Op for GroupNorm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let x = inputs[0].shape;
        if let Some(other) = inputs[1..].iter().find(|m| m.shape != [x[1]]) {
            let why =
                format!("gain and bias must have one element for each of the {} channels", x[1]);
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
        let (x, mean, inv_std) = (at.input(0), at.extra(0), at.extra(1));
        let gain = self.gain.then(|| at.input(1));
        let mut inputs: SmallVec<[&Tensor; 5]> = smallvec![cotangent, &x, &mean, &inv_std];
        inputs.extend(&gain);
        let (dx, extra) = apply_extra(GroupNormGrad(*self), &inputs)?;
        let [dgain, dbias] = [0, 1].map(|i| Tensor::from_parts(extra[i].clone(), Source::None));
        let mut out: Grads = smallvec![Some(dx)];
        out.extend(self.gain.then_some(Some(dgain)));
        out.extend(self.bias.then_some(Some(dbias)));
        Ok(out)
    }

    /// Step by step along the definition: `d = x - mean`, `v = mean of d^2`, `h = d (v + eps)^-1/2`, `y = gain * h + bias`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = self.as_rows(&at.input(0))?;
        let (shape, n) = (at.input_shape(0), x.shape()[1] as f64);
        let mean = |x: &Tensor| x.try_sum(1, true)?.try_div(n);
        let centre = |x: &Tensor| x.try_sub(&mean(x)?);
        let d = centre(&x)?;
        let root = mean(&d.try_mul(&d)?)?.try_add(self.eps)?.try_sqrt()?;
        let inputs = at.inputs();
        let (gain, _) = self.split(&inputs);
        let (dgain, dbias) = self.split(tangents);
        let mut total = x.zeros_like().try_reshape(shape)?;
        if let Some(dx) = &tangents[0] {
            let dd = centre(&self.as_rows(dx)?)?;
            // With r = sqrt(v + eps): dr = mean(d * dd) / r, and the quotient's rule on d / r.
            let dr = mean(&d.try_mul(&dd)?)?.try_div(&root)?;
            let square = root.try_mul(&root)?;
            let dh = dd.try_mul(&root)?.try_sub(&d.try_mul(&dr)?)?.try_div(&square)?;
            let dh = dh.try_reshape(shape)?;
            total = match gain {
                Some(gain) => dh.try_mul(&over_channels(gain, &shape)?)?,
                None => dh,
            };
        }
        if let Some(Some(dgain)) = dgain {
            let h = d.try_div(&root)?.try_reshape(shape)?;
            total = total.try_add(&h.try_mul(&over_channels(dgain, &shape)?)?)?;
        }
        if let Some(Some(dbias)) = dbias {
            total = total.try_add(&over_channels(dbias, &shape)?)?;
        }
        Ok(total)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let (x, shape) = (self.as_rows(&inputs[0])?, inputs[0].shape());
            let n = x.shape()[1] as f64;
            let d = x.try_sub(&x.try_sum(1, true)?.try_div(n)?)?;
            let v = d.try_mul(&d)?.try_sum(1, true)?.try_div(n)?;
            let mut y = d.try_div(&v.try_add(self.eps)?.try_sqrt()?)?.try_reshape(shape)?;
            let (gain, bias) = self.split(inputs);
            if let Some(gain) = gain {
                y = y.try_mul(&over_channels(gain, &shape)?)?;
            }
            match bias {
                Some(bias) => y.try_add(&over_channels(bias, &shape)?),
                None => Ok(y),
            }
        }))
    }
}

fn elements<T: Stored>(value: &Value) -> &[T] {
    value.slice().expect("fresh or made contiguous")
}

impl WholeKernel for GroupNorm {
    /// Beside the result: the mean of each row, and 1 / sqrt(variance + eps).
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 3]>>>()?;
        match out.dtype {
            DType::F32 => self.forward::<f32>(&inputs, out),
            DType::F64 => self.forward::<f64>(&inputs, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

impl GroupNorm {
    fn forward<T: Grouped + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let row = Meta::new(Shape::new(&[out.shape[0] * self.groups]), out.dtype);
        let fresh = |meta| Value::uninit(self.name(), meta);
        let (mut y, mut mean, mut var, mut inv) =
            (fresh(out)?, fresh(row)?, fresh(row)?, fresh(row)?);
        let (x, by) = (elements::<T>(&inputs[0]), self.rows(&out.shape));
        let (gain, bias) = self.split(inputs);
        group::row_stats(x, by, mean.as_mut(), var.as_mut());
        inv_std(elements(&var), T::from_f64(self.eps), inv.as_mut());
        let stats = Stats { mean: elements(&mean), inv_std: elements(&inv) };
        let (gain, bias) = (gain.map(|v| elements(v)), bias.map(|v| elements(v)));
        group::group_norm_apply(x, by, stats, gain, bias, y.as_mut());
        let extra = SmallVec::from_iter([mean, inv].map(Arc::new));
        Ok(Outcome { value: Arc::new(y), extra })
    }
}

/// The backward from the upstream gradient, the input, the mean and 1 / sqrt(variance + eps) of each row, and the gain, if any: the gradient of
/// the input, and beside it those of gain and bias.
#[derive(Debug)]
struct GroupNormGrad(GroupNorm);

impl Op for GroupNormGrad {
    fn name(&self) -> &'static str {
        "group_norm_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    backward_only!();
}

impl WholeKernel for GroupNormGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 5]>>>()?;
        match out.dtype {
            DType::F32 => self.backward::<f32>(&inputs, out),
            DType::F64 => self.backward::<f64>(&inputs, out),
            _ => unreachable!("a gradient has the dtype of its tensor"),
        }
    }
}

impl GroupNormGrad {
    fn backward<T: Grouped + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let channel = Meta::new(Shape::new(&[out.shape[1]]), out.dtype);
        let fresh = |meta| Value::uninit(self.name(), meta);
        let (mut dx, mut dgain, mut dbias) = (fresh(out)?, fresh(channel)?, fresh(channel)?);
        let up = GroupUpstream::<T> {
            g: elements(&inputs[0]),
            x: elements(&inputs[1]),
            stats: Stats { mean: elements(&inputs[2]), inv_std: elements(&inputs[3]) },
            gain: inputs.get(4).map(|v| elements(v)),
        };
        let by = self.0.rows(&out.shape);
        group::group_norm_grad(up, by, dx.as_mut(), dgain.as_mut(), dbias.as_mut());
        let extra = SmallVec::from_iter([dgain, dbias].map(Arc::new));
        Ok(Outcome { value: Arc::new(dx), extra })
    }
}

methods! {
    /// Each group of channels of each sample normalised by its mean and variance, `gain * (x - mean) / sqrt(var + eps) + bias`. Channels lie on axis
    /// 1 (`[n, c]`, `[n, c, l]`, ...), `c / groups` neighbouring ones make a group. For f32 and f64.
    ///
    /// The variance is the biased one; gain and bias have shape `[c]`. `groups` must divide the channels, and there must be two values at least,
    /// as in PyTorch. One group is a layer normalisation over all but the batch, as many groups as channels make [`Tensor::instance_norm`]. Gradient, with
    /// `h` the normalised input and means over a group: `dx = (gain g - mean(gain g) - h mean(gain g h)) / sqrt(var + eps)`,
    /// `dgain = sum(g * h)`, `dbias = sum(g)`.
    ///
    /// Source: Y. Wu and K. He, "Group normalization", 2018.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 3.0, 10.0, 30.0]]);
    /// let y = x.group_norm(2, None, None, 0.0);
    /// assert_eq!(y.to_vec::<f64>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn group_norm / try_group_norm(&self, groups: usize, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let shape = self.shape();
        expect_channels("group_norm", &shape, eps)?;
        let channels = shape[1];
        if groups == 0 || !channels.is_multiple_of(groups) {
            let why = format!("the number of groups must divide the {channels} channels; it is {groups}");
            return Err(Error::shape("group_norm", &[&shape], why));
        }
        if shape.numel() == groups {
            let why = "a single value for each group has no variance; use a larger batch or fewer groups";
            return Err(Error::shape("group_norm", &[&shape], why));
        }
        let op = GroupNorm { name: "group_norm", groups, eps, gain: gain.is_some(), bias: bias.is_some() };
        normalised(op, self, gain, bias)
    }
}

pub(super) fn expect_channels(op: &'static str, shape: &Shape, eps: f64) -> Result<()> {
    if shape.rank() < 2 {
        let why = "the input needs two axes at least: samples, then channels";
        return Err(Error::shape(op, &[shape], why));
    }
    if !(0.0..f64::INFINITY).contains(&eps) {
        return Err(Error::argument(op, format!("eps must be a number from 0 up; it is {eps}")));
    }
    Ok(())
}

#[track_caller]
pub(super) fn normalised(
    op: GroupNorm,
    x: &Tensor,
    gain: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![x];
    inputs.extend(gain);
    inputs.extend(bias);
    apply(op, &inputs)
}

pub(super) const ENTRY: Entry = Entry {
    name: "group_norm",
    family: Family::Fused,
    signature: "x.group_norm(groups, gain, bias, eps)",
    formula: "gain * (x - mean) / sqrt(var + eps) + bias, over groups of channels of each sample",
    gradient: "dx = (gain g - mean(gain g) - h * mean(gain g h)) / sqrt(var + eps); dgain = sum(g * h); dbias = sum(g), where h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a single value for each group is an error",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let cases: [(&str, &[usize], usize); 6] = [
        ("channels alone", &[3, 6], 2),
        ("one group", &[2, 3, 4], 1),
        ("groups of two", &[2, 4, 17], 2),
        ("every channel", &[2, 3, 5], 3),
        ("images", &[2, 4, 3, 3], 2),
        ("no samples", &[0, 4, 3], 2),
    ];
    let mut out = Vec::new();
    for (note, shape, groups) in cases {
        let c = shape[1];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, [c]), normal(g, [c])];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_group_norm(groups, Some(&x[1]), Some(&x[2]), 1e-2)
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [3, 4, 2])], |x| {
        x[0].try_group_norm(2, None, None, 1e-2)
    }));
    let bias_only = vec![normal(g, [3, 4]), normal(g, [4])];
    out.push(Sample::new("bias only", bias_only, |x| {
        x[0].try_group_norm(1, None, Some(&x[1]), 1e-2)
    }));
    let transposed = vec![normal(g, [4, 3, 5]), normal(g, [4])];
    out.push(Sample::new("a transposed view, gain only", transposed, |x| {
        x[0].try_transpose(0, 1)?.try_group_norm(2, Some(&x[1]), None, 1e-2)
    }));
    out
}

fn this(op: &dyn Op) -> &GroupNorm {
    (op as &dyn std::any::Any).downcast_ref().expect("the rule of group_norm")
}

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "coupling forgotten",
        what: "mean and variance were taken for constants: dx = g * gain / sqrt(var + eps)",
        rule: |op, at, g, wanted| {
            let (mut grads, shape, this) = (op.vjp(at, g, wanted)?, g.shape(), this(op));
            let dx = match this.gain {
                true => g.try_mul(&over_channels(&at.input(1), &shape)?)?,
                false => g.clone(),
            };
            let inv = at.extra(1);
            let dx = this.as_rows(&dx)?.try_mul(&inv.try_reshape([inv.numel(), 1])?)?;
            grads[0] = Some(dx.try_reshape(shape)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "gradient of the gain from the input",
        what: "dgain = sum(g * x): the input was taken for the normalised input",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            if this(op).gain {
                let shape = g.shape();
                let rest: usize = shape[2..].iter().product();
                let products = g.try_mul(at.input(0))?.try_reshape([shape[0], shape[1], rest])?;
                grads[1] = Some(products.try_sum([0, 2], false)?);
            }
            Ok(grads)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |result: Result<Tensor>| result.unwrap_err().kind().to_string();
        let x = Tensor::zeros([2, 6, 3]);
        assert!(error(x.try_group_norm(4, None, None, 1e-5)).contains("6 channels"));
        assert!(error(x.try_group_norm(0, None, None, 1e-5)).starts_with("group_norm: "));
        assert!(error(x.try_group_norm(2, None, None, -1.0)).contains("eps"));
        let short = Tensor::zeros([5]);
        assert!(error(x.try_group_norm(2, Some(&short), None, 1e-5)).contains("[5]"));
        assert!(error(x.try_group_norm(2, None, Some(&short), 1e-5)).contains("[5]"));
        assert!(short.try_group_norm(1, None, None, 1e-5).is_err());
        assert!(Tensor::zeros([1, 2]).try_group_norm(2, None, None, 1e-5).is_err());
        assert!(x.to_dtype(DType::I64).try_group_norm(2, None, None, 1e-5).is_err());
    }

    /// Two samples of one value each: PyTorch lets them pass, and the result is the bias.
    #[test]
    fn single_values_of_two_samples() {
        let (x, bias) = (Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]), Tensor::from([5.0f64, 6.0]));
        let y = x.group_norm(2, None, Some(&bias), 1e-5);
        assert_eq!(y.to_vec::<f64>(), [5.0, 6.0, 5.0, 6.0]);
    }

    #[test]
    fn nothing_to_normalise() {
        for shape in [&[0, 4, 3][..], &[2, 4, 0], &[2, 0, 3]] {
            let gain = Tensor::ones([shape[1]]).parameter();
            let y = Tensor::zeros(shape).group_norm(2, Some(&gain), None, 1e-5);
            assert_eq!(y.shape(), *shape);
            y.sum_all().backward();
            assert_eq!(gain.grad().unwrap().to_vec::<f32>(), vec![0.0; shape[1]]);
        }
    }
}
