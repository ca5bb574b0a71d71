//! `var`: the variance over axes, and its backward as one kernel.

use super::mean::Mean;
use crate::kernels::reduce::moments;
use crate::ops::prelude::*;
use crate::tensor::run::adjacent;

#[derive(Debug, Parameters)]
pub(crate) struct Var {
    axes: Axes,
    correction: usize,
    keepdim: bool,
}

impl Op for Var {
    row!(var);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_var({0}, {axes}, {correction}, {keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold {
            fold: Fold::Var { correction: self.correction },
            axes: self.axes,
            keepdim: self.keepdim,
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = self.axes.reduce(&inputs[0].shape, self.keepdim);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn also_gives(&self, other: &dyn Op) -> Option<usize> {
        mean_beside(other, self.axes)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0).and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let grad = var_grad(at, cotangent, self.axes, self.correction)?;
        Ok(smallvec![Some(grad)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        var_tangent(&at.input(0), dx, self.axes, self.correction, self.keepdim)
    }
}

impl WholeKernel for Var {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        variance(self.name(), &inputs[0], self.axes, self.correction, out)
    }
}

/// The variance, with the mean (its axes kept) beside it.
pub(super) fn variance(
    op: &'static str,
    x: &Arc<Value>,
    axes: Axes,
    correction: usize,
    out: Meta,
) -> Result<Outcome> {
    let (array_of_x, extent) = adjacent(x, axes)?;
    let Extent { count, inner, .. } = extent;
    let scale = count.saturating_sub(correction);
    let mut var = Value::uninit(op, out)?;
    let mut mean = Value::uninit(op, Meta::new(axes.reduce(x.shape(), true), out.dtype))?;
    match (array(&array_of_x), output(&mut mean), output(&mut var)) {
        (Array::F32(x), Output::F32(mean), Output::F32(var)) => {
            moments::moments(x, count, inner, scale as f32, mean, var)
        }
        (Array::F64(x), Output::F64(mean), Output::F64(var)) => {
            moments::moments(x, count, inner, scale as f64, mean, var)
        }
        _ => unreachable!("infer admits no other dtypes"),
    }
    Ok(Outcome { value: var.share(), extra: smallvec![mean.share()] })
}

/// For [`Op::also_gives`]: the mean beside a variance, whose kernel takes it by the same sum.
pub(super) fn mean_beside(other: &dyn Op, axes: Axes) -> Option<usize> {
    let other = (other as &dyn std::any::Any).downcast_ref::<Mean>()?;
    (other.axes == axes && other.keepdim).then_some(1)
}

/// The gradient of the variance of input 0 from that of the variance: one pass, with the mean of
/// the forward pass. When it is itself recorded, the mean is taken anew from the input, so that its
/// derivative is not lost.
///
/// With `correction >= n` PyTorch gives infinity or NaN if all axes go, and divides by
/// `n - correction` if some do; so does this.
pub(super) fn var_grad(
    at: &Saved<'_>,
    cotangent: &Tensor,
    axes: Axes,
    correction: usize,
) -> Result<Tensor> {
    let x = at.input(0);
    let shape = x.shape();
    let mean = match at.is_linked() {
        true => x.try_mean(axes, true)?,
        false => at.extra(0),
    };
    let n = axes.count(&shape);
    let g = cotangent.try_reshape(axes.reduce(&shape, true))?;
    if correction >= n && axes == Axes::all(&shape) {
        let slope = x.ones_like().try_mul(f64::INFINITY)?;
        return x.try_ne(&mean)?.try_where(&slope, f64::NAN)?.try_mul(&g);
    }
    let factor = 2.0 / (n as f64 - correction as f64);
    apply(VarGrad { factor }, &[&x, &mean, &g])
}

/// The tangent by way of `var = (sum(x^2) - sum(x)^2 / n) / (n - correction)`.
pub(super) fn var_tangent(
    x: &Tensor,
    dx: &Tensor,
    axes: Axes,
    correction: usize,
    keepdim: bool,
) -> Result<Tensor> {
    let n = axes.count(&x.shape()) as f64;
    let sum = |t: &Tensor| t.try_sum(axes, keepdim);
    let squares = sum(&x.try_mul(dx)?)?;
    let mean = sum(x)?.try_mul(sum(dx)?)?.try_mul(1.0 / n)?;
    squares.try_sub(&mean)?.try_mul(2.0 / (n - correction as f64))
}

/// `factor * (x - mean) * g` in one pass, with broadcasting.
#[derive(Debug, Parameters)]
struct VarGrad {
    factor: f64,
}

impl Op for VarGrad {
    fn name(&self) -> &'static str {
        "var_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{factor} * ({0} - {1}) * {2}".into())
    }

    /// The slope, and the product with the gradient.
    fn flops(&self, _: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]))
    }

    fn reading(&self) -> Reading {
        Reading::VarGrad { factor: self.factor }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, mean, g) = (at.input(0), at.input(1), at.input(2));
        let dx = cotangent.try_mul(&g)?.try_mul(self.factor)?;
        let dmean = wanted.get(1).then(|| dx.try_neg()).transpose()?;
        let factor = self.factor;
        let dg = wanted
            .get(2)
            .then(|| apply(VarGrad { factor }, &[&x, &mean, cotangent]))
            .transpose()?;
        Ok(smallvec![Some(dx), dmean, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, mean, g) = (at.input(0), at.input(1), at.input(2));
        let scaled = g.try_mul(self.factor)?;
        let part = |t: &Option<Tensor>, factor: &Tensor| t.as_ref().map(|t| t.try_mul(factor));
        let parts = [
            part(&tangents[0], &scaled),
            part(&tangents[1], &scaled.try_neg()?),
            part(&tangents[2], &((x - mean) * self.factor)),
        ];
        sum_of_parts(parts)?.try_expand(at.output_meta().shape)
    }
}

impl MapKernel for VarGrad {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(x), Input::F32(mean), Input::F32(g)], Output::F32(out)) => {
                moments::centred(*x, *mean, *g, self.factor as f32, n, out)
            }
            ([Input::F64(x), Input::F64(mean), Input::F64(g)], Output::F64(out)) => {
                moments::centred(*x, *mean, *g, self.factor, n, out)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The variance over `axes` (a number, a list, or `..` for all):
    /// `sum((x - mean)^2) / (n - correction)`. A `correction` of 1 gives the unbiased variance, 0
    /// that of the elements themselves. With `keepdim` the axes stay, with size 1.
    ///
    /// For f32 and f64. In two passes, with the rounding of the mean corrected. As in PyTorch, with
    /// `correction >= n` the divisor is 0: the result is an infinity, or NaN where all elements are
    /// equal or there are none, and the gradient is not to be used. Gradient:
    /// `dx = g * 2 * (x - mean) / (n - correction)`; the mean's own part sums to 0.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 6.0]]);
    /// assert_eq!(x.var(0, 1, false).to_vec::<f32>(), [2.0, 8.0]);
    /// assert_eq!(x.var(0, 0, false).to_vec::<f32>(), [1.0, 4.0]);
    /// ```
    pub fn var / try_var<A: IntoAxes>(&self, axes: A, correction: usize, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("var", &self.shape())?;
        apply(Var { axes, correction, keepdim }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "var",
    family: Family::Reduce,
    signature: "x.var(axes, correction, keepdim)",
    python: &[Binding::by_hand(
        "var",
        "two names and two places for the correction, which need not be whole",
    )],
    formula: "sum((x - mean)^2) / (n - correction)",
    gradient: "dx = g * 2 * (x - mean) / (n - correction)",
    at_kinks: "with correction >= n the result is an infinity or NaN",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_var(axes, 0, keepdim));
        let unbiased: [(&str, &[usize], i64); 3] = [
            ("unbiased over columns", &[6, 3], 0),
            ("unbiased over rows", &[3, 17], 1),
            ("unbiased in the middle", &[2, 5, 3], 1),
        ];
        for (note, shape, axis) in unbiased {
            out.push(Sample::new(note, vec![normal(g, shape)], move |x| {
                x[0].try_var(axis, 1, true)
            }));
        }
        out
    },
    mistakes: &[
        Mistake {
            name: "mean forgotten",
            what: "2 * x is taken for 2 * (x - mean)",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let x = at.input(0);
                let factor = 2.0 / (op.axes.count(&x.shape()) as f64 - op.correction as f64);
                let kept = g.try_reshape(op.axes.reduce(&x.shape(), true))?;
                Ok(smallvec![Some(x.try_mul(&kept)?.try_mul(factor)?)])
            },
        },
        Mistake {
            name: "missing factor 2",
            what: "x - mean is taken for 2 * (x - mean)",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let grad = var_grad(at, g, op.axes, op.correction)?;
                Ok(smallvec![Some(grad.try_mul(0.5)?)])
            },
        },
        Mistake {
            name: "wrong correction",
            what: "the gradient divides by n - 1 where the variance divides by n, or the other way round",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let other = 1 - op.correction.min(1);
                Ok(smallvec![Some(var_grad(at, g, op.axes, other)?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&Var> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    fn var_and_grad(x: &Tensor, correction: usize) -> (Vec<f64>, Vec<f64>) {
        let x = x.parameter();
        let y = x.var(-1, correction, false);
        y.sum_all().backward();
        (y.to_vec(), x.grad().unwrap().to_vec())
    }

    /// As PyTorch 2.15 gives them, up to the sign of zeros.
    #[test]
    fn corrections_up_to_and_beyond_n_do_as_pytorch() {
        let inf = f64::INFINITY;
        let x = Tensor::from([[1.0, 3.0], [2.0, 2.0]]);
        let (y, dx) = var_and_grad(&x, 1);
        assert_eq!((y, dx), (vec![2.0, 0.0], vec![-2.0, 2.0, 0.0, 0.0]));
        let (y, dx) = var_and_grad(&x, 2);
        assert!(y[0] == inf && y[1].is_nan());
        assert!(dx[..2] == [-inf, inf] && dx[2].is_nan() && dx[3].is_nan());
        let (y, dx) = var_and_grad(&x, 3);
        assert!(y[0] == inf && y[1].is_nan());
        assert_eq!(dx, [2.0, -2.0, 0.0, 0.0]);
    }

    #[test]
    fn nothing_one_and_infinity_do_as_pytorch() {
        let (y, dx) = var_and_grad(&Tensor::zeros([2, 0]).to_dtype(crate::DType::F64), 1);
        assert!(y.iter().all(|y| y.is_nan()) && dx.is_empty());
        let (y, dx) = var_and_grad(&Tensor::from([5.0]), 1);
        assert!(y[0].is_nan() && dx[0].is_nan());
        assert_eq!(var_and_grad(&Tensor::from([5.0]), 0), (vec![0.0], vec![0.0]));
        let (y, dx) = var_and_grad(&Tensor::from([f64::INFINITY, 1.0]), 1);
        assert!(y[0].is_nan() && dx[0].is_nan());
        assert_eq!(dx[1], f64::NEG_INFINITY);
    }

    /// Over all axes PyTorch gives another gradient than over one: an infinity without a sign.
    #[test]
    fn over_all_axes_the_gradient_without_a_divisor_is_infinite() {
        for correction in [2, 3] {
            let x = Tensor::from([2.0, 3.0]).parameter();
            let y = x.var(.., correction, false);
            y.backward();
            assert_eq!(y.item(), f64::INFINITY);
            assert_eq!(x.grad().unwrap().to_vec::<f64>(), [f64::INFINITY; 2]);
        }
    }

    #[test]
    fn axes_apart_agree_with_the_definition() {
        let x: Vec<f64> = (0..24).map(|i| ((i * 7) % 11) as f64).collect();
        let x = Tensor::from(x).reshape([2, 3, 4]);
        let d = &x - x.mean([0, 2], true);
        let want = (&d * &d).sum([0, 2], false) / 7.0;
        let got = x.var([0, 2], 1, false).to_vec::<f64>();
        for (got, want) in got.iter().zip(want.to_vec::<f64>()) {
            assert!((got - want).abs() < 1e-13, "{got} {want}");
        }
    }

    #[test]
    fn integers_have_no_variance() {
        let error = Tensor::from([1i64, 2]).try_var(0, 1, false).unwrap_err();
        let want = "var: dtype i64: defined for floats; convert with to_dtype first";
        assert_eq!(error.kind().to_string(), want);
    }
}
