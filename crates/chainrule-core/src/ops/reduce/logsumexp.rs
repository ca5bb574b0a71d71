//! `logsumexp`: the logarithm of the sum of exponentials over axes.

use crate::kernels::{reduce, softmax};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct LogSumExp {
    pub axes: Axes,
    pub keepdim: bool,
}

impl Op for LogSumExp {
    row!(logsumexp);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_logsumexp({0}, {axes}, {keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold { fold: Fold::LogSumExp, axes: self.axes, keepdim: self.keepdim }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = self.axes.reduce(&inputs[0].shape, self.keepdim);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let kept = self.axes.reduce(&x.shape(), true);
        let y = at.output().try_reshape(kept)?;
        let p = x.try_sub(&y)?.try_exp()?;
        Ok(smallvec![Some(p.try_mul(&cotangent.try_reshape(kept)?)?)])
    }

    /// As the mean of the tangents with the weights `e^(x - max)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        if x.numel() == 0 {
            return Tensor::try_full(at.output_meta().shape, 0.0, x.dtype());
        }
        let weights = x.try_sub(&x.detach().try_max(self.axes, true)?)?.try_exp()?;
        let sum = dx.try_mul(&weights)?.try_sum(self.axes, self.keepdim)?;
        sum.try_div(&weights.try_sum(self.axes, self.keepdim)?)
    }
}

impl ReduceKernel for LogSumExp {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) if inner == 1 => {
                softmax::logsumexp_rows(x, count, out)
            }
            (Array::F64(x), Output::F64(out)) if inner == 1 => {
                softmax::logsumexp_rows(x, count, out)
            }
            (Array::F32(x), Output::F32(out)) => reduce::logsumexp_columns(x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => reduce::logsumexp_columns(x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// `log(sum(e^x))` over `axes` (a number, a list, or `..` for all), without overflow: the
    /// largest element is taken out first. With `keepdim` the axes stay, with size 1.
    ///
    /// For f32 and f64. Over nothing, and over nothing but minus infinity, it is minus infinity.
    /// Gradient: `dx = g * e^(x - y)`, the softmax of `x`. As in PyTorch, the gradient of elements
    /// whose result is minus infinity is NaN, and so is that of an element that is plus infinity.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1000.0f32, 1000.0], [0.0, f32::NEG_INFINITY]]);
    /// assert_eq!(x.logsumexp(1, false).to_vec::<f32>(), [1000.0 + 2f32.ln(), 0.0]);
    /// ```
    pub fn logsumexp / try_logsumexp<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("logsumexp", &self.shape())?;
        apply(LogSumExp { axes, keepdim }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logsumexp",
    family: Family::Reduce,
    signature: "x.logsumexp(axes, keepdim)",
    python: &[Binding::reduction("logsumexp", |x, a| {
        let (x, axes, keepdim) = a.reduced(x)?;
        a.as_float(&x)?.try_logsumexp(axes, keepdim)
    })],
    formula: "log(sum of e^x over the axes)",
    gradient: "dx = g * e^(x - y)",
    at_kinks: "where the result is minus infinity, or the element plus infinity, the gradient is NaN",
    samples: |g| reduce_samples(g, |x, axes, keepdim| x.try_logsumexp(axes, keepdim)),
    mistakes: &[
        Mistake {
            name: "not normalised",
            what: "e^x is taken for e^x / sum(e^x)",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let x = at.input(0);
                let kept = g.try_reshape(op.axes.reduce(&x.shape(), true))?;
                Ok(smallvec![Some(x.try_exp()?.try_mul(&kept)?)])
            },
        },
        Mistake {
            name: "softmax forgotten",
            what: "every element gets the whole gradient, as for a sum",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let shape = at.input_shape(0);
                let kept = g.try_reshape(op.axes.reduce(&shape, true))?;
                Ok(smallvec![Some(kept.try_expand(shape)?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&LogSumExp> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    const INF: f64 = f64::INFINITY;

    /// Results and gradients that PyTorch 2.15 gives; NaN stands for NaN.
    const ROWS: [([f64; 2], f64, [f64; 2]); 5] = [
        ([INF, 1.0], INF, [f64::NAN, 0.0]),
        ([-INF, 1.0], 1.0, [0.0, 1.0]),
        ([1000.0, 1000.0], 1000.0 + std::f64::consts::LN_2, [0.5, 0.5]),
        ([-INF, -INF], -INF, [f64::NAN, f64::NAN]),
        ([f64::NAN, 1.0], f64::NAN, [f64::NAN, f64::NAN]),
    ];

    fn same(a: f64, b: f64) -> bool {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-12 * b.abs()
    }

    #[test]
    fn infinities_do_as_pytorch_in_rows_and_columns() {
        for (x, want, dx) in ROWS {
            let rows = Tensor::from([x, x]);
            for (x, axis) in [(rows.clone(), 1), (rows.t().reshape([2, 2]), 0)] {
                let x = x.parameter();
                let y = x.logsumexp(axis, false);
                y.sum_all().backward();
                let grad = x.grad().unwrap();
                let grad = if axis == 1 { grad } else { grad.t() };
                for (i, g) in grad.to_vec::<f64>().into_iter().enumerate() {
                    assert!(same(g, dx[i % 2]), "{g} {dx:?}");
                }
                assert!(y.to_vec::<f64>().iter().all(|&y| same(y, want)), "{want}");
            }
        }
    }

    #[test]
    fn over_nothing_it_is_minus_infinity() {
        for (shape, axis) in [([2, 0, 1], 1), ([0, 2, 2], 0)] {
            let y = Tensor::zeros(shape).logsumexp(axis, false);
            assert!(y.numel() > 0 && y.to_vec::<f32>().iter().all(|&y| y == f32::NEG_INFINITY));
        }
    }

    #[test]
    fn columns_agree_with_rows() {
        for (n, c) in [(1, 2), (7, 3), (129, 5), (3, 1030), (300, 17)] {
            let x: Vec<f64> = (0..n * c).map(|i| ((i * 7919) % 101) as f64 / 7.0).collect();
            let x = Tensor::from(x).reshape([n as i64, c as i64]);
            let by_rows = x.t().reshape([c as i64, n as i64]).logsumexp(1, false);
            let by_columns = x.logsumexp(0, false);
            let pairs = by_rows.to_vec::<f64>().into_iter().zip(by_columns.to_vec::<f64>());
            for (r, c) in pairs {
                assert!((r - c).abs() <= 1e-13 * r.abs(), "{r} {c}");
            }
        }
    }
}
