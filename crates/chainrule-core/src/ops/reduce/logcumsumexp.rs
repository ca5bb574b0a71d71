//! `logcumsumexp`: the logarithm of the running sum of exponentials along an axis.

use super::recurrence::{Recurrence, along, shifted};
use crate::kernels::scan;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct LogCumSumExp {
    axis: usize,
}

impl Op for LogCumSumExp {
    row!(logcumsumexp);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.logaddexp.accumulate({0}, axis={axis})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(3, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    /// `dx[i] = e^(x[i] - y[i]) s[i]`, where `s[i] = g[i] + e^(y[i] - y[i + 1]) s[i + 1]` from the
    /// end: as `y` rises, no exponential is above 1.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (x, y) = (at.input(0), at.output());
        let factor = ratio(&y, &shifted(&y, self.axis, true)?)?;
        let back = Recurrence { axis: self.axis, reverse: true, lagged: false };
        let sum = apply(back, &[&factor, cotangent])?;
        Ok(smallvec![Some(x.try_sub(&y)?.try_exp()?.try_mul(&sum)?)])
    }

    /// `dy[i]` is the mean of the tangents so far with the weights `e^x`: each step mixes one into
    /// the mean before.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let (x, y) = (at.input(0), at.output());
        let kept = ratio(&shifted(&y, self.axis, false)?, &y)?;
        let added = x.try_sub(&y)?.try_exp()?.try_mul(dx)?;
        apply(Recurrence { axis: self.axis, reverse: false, lagged: false }, &[&kept, &added])
    }
}

/// `e^(a - b)`, and 1 for equal infinities.
fn ratio(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let infinite = a.try_abs()?.try_eq(f64::INFINITY)?;
    let same = infinite.try_where(&a.try_eq(b)?, Tensor::scalar(false))?;
    let zero = Tensor::try_full((), 0.0, a.dtype())?;
    same.try_where(&zero, a.try_sub(b)?)?.try_exp()
}

impl WholeKernel for LogCumSumExp {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(&out.shape, self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| scan::logcumsumexp(
            x.elements::<T>(),
            count,
            inner,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// `log(e^x[0] + ... + e^x[i])` along `axis`, without overflow: the running sum is kept as a
    /// logarithm.
    ///
    /// For f32 and f64. Gradient: `dx[i] = sum over k >= i of g[k] e^(x[i] - y[k])`, likewise
    /// without overflow. As in PyTorch it is NaN for elements whose own result is minus infinity,
    /// and for those that are plus infinity.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([1000.0f32, 1000.0]).logcumsumexp(0);
    /// assert_eq!(y.to_vec::<f32>(), [1000.0, 1000.0 + 2f32.ln()]);
    /// ```
    pub fn logcumsumexp / try_logcumsumexp(&self, axis: i64) -> Tensor {
        let axis = self.shape().axis("logcumsumexp", axis)?;
        apply(LogCumSumExp { axis }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logcumsumexp",
    family: Family::Reduce,
    signature: "x.logcumsumexp(axis)",
    python: &[Binding::with("logcumsumexp", &[ALONG], |x, a| {
        along_axis(x, a.int(0), |x| x.try_logcumsumexp(a.int(0)))
    })],
    formula: "y[i] = log(e^x[0] + ... + e^x[i])",
    gradient: "dx[i] = sum over k >= i of g[k] * e^(x[i] - y[k])",
    at_kinks: "where the own result is minus infinity, or the element plus infinity, the gradient is NaN",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| x.try_logcumsumexp(axis));
        let far = Tensor::from([[95.0, -95.0, 96.0, 94.5], [-95.0, -96.0, -200.0, -94.0]]);
        out.push(Sample::new("far from 0", vec![far], |x| x[0].try_logcumsumexp(1)));
        out
    },
    mistakes: &[
        Mistake {
            name: "own place only",
            what: "each element gets the gradient of its own place, without those of the sums after it",
            rule: |_, at, g, _| {
                let weight = at.input(0).try_sub(at.output())?.try_exp()?;
                Ok(smallvec![Some(g.try_mul(&weight)?)])
            },
        },
        Mistake {
            name: "not normalised",
            what: "e^x is taken for e^x divided by the running sums",
            rule: |op, at, g, _| {
                let axis = op.downcast::<LogCumSumExp>()?.axis;
                let back = Recurrence { axis, reverse: true, lagged: false };
                let sum = apply(back, &[&g.ones_like(), g])?;
                Ok(smallvec![Some(at.input(0).try_exp()?.try_mul(&sum)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    /// Results and gradients that PyTorch 2.15 gives; NaN stands for NaN.
    #[test]
    fn infinities_do_as_pytorch() {
        for (x, y, dx) in [
            ([-INF, -INF, 1.0], [-INF, -INF, 1.0], [NAN, NAN, 1.0]),
            (
                [1.0, -INF, 2.0],
                [1.0, 1.0, 2.313261687518223],
                [2.268941421369995, 0.0, 0.7310585786300048],
            ),
            ([INF, 1.0, 2.0], [INF, INF, INF], [NAN, 0.0, 0.0]),
            ([1.0, INF, INF], [1.0, INF, INF], [1.0, NAN, NAN]),
            ([1.0, NAN, 2.0], [1.0, NAN, NAN], [NAN, NAN, NAN]),
        ] {
            let leaf = Tensor::from(x).parameter();
            let out = leaf.logcumsumexp(0);
            out.sum_all().backward();
            let same =
                |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-14;
            let (out, got) = (out.to_vec::<f64>(), leaf.grad().unwrap().to_vec::<f64>());
            assert!(out.iter().zip(&y).all(|(a, b)| same(a, b)), "{x:?}: {out:?}");
            assert!(got.iter().zip(&dx).all(|(a, b)| same(a, b)), "{x:?}: {got:?}");
        }
    }
}
