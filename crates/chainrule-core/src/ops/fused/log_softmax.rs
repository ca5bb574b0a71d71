//! `log_softmax`: the logarithm of softmax, and the backward of it as one kernel.

use super::softmax::row_samples;
use super::{axis_last, log_softmax_in_steps, shifted};
use crate::kernels::softmax;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// Over the last axis.
#[derive(Debug, Parameters)]
pub(crate) struct LogSoftmax;

impl Op for LogSoftmax {
    fn name(&self) -> &'static str {
        "log_softmax"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::log_softmax)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_log_softmax({0})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(5, inputs, outputs)
    }

    fn reading(&self) -> Reading {
        Reading::LogSoftmax
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

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let dx = apply(LogSoftmaxGrad, &[&at.output(), cotangent])?;
        Ok(smallvec![Some(dx)])
    }

    /// `dx` less its mean under the probabilities, which are taken from the input:
    /// `dx - sum(e * dx) / sum(e)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let e = shifted(&at.input(0))?.try_exp()?;
        let mean = e.try_mul(dx)?.try_sum(-1, true)?.try_div(&e.try_sum(-1, true)?)?;
        dx.try_sub(&mean)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|x| log_softmax_in_steps(&x[0])))
    }
}

impl WholeKernel for LogSoftmax {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| softmax::log_softmax_rows(
            x.elements::<T>(),
            n,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// `g - exp(y) * sum(g)`: the backward of log-softmax, from its result.
#[derive(Debug, Parameters)]
struct LogSoftmaxGrad;

impl Op for LogSoftmaxGrad {
    fn name(&self) -> &'static str {
        "log_softmax_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_log_softmax_grad({0}, {1})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(4, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::Last
    }

    fn reading(&self) -> Reading {
        Reading::LogSoftmaxGrad
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for LogSoftmaxGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (y, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(y.dtype(), [F32, F64], |T| softmax::log_softmax_grad_rows(
            y.elements::<T>(),
            g.elements(),
            n,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The logarithm of [`Tensor::softmax`] along `axis`, `x - log(sum(exp(x)))`, without the loss
    /// of digits that a logarithm of small probabilities would bring. For f32 and f64.
    ///
    /// Infinities and NaN do what they do in PyTorch: see [`Tensor::softmax`]. Gradient:
    /// `dx = g - softmax(x) * sum(g)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([1000.0f64, 0.0]).log_softmax(0);
    /// assert_eq!(y.to_vec::<f64>(), [0.0, -1000.0]);
    /// ```
    pub fn log_softmax / try_log_softmax(&self, axis: i64) -> Tensor {
        let (x, axis) = axis_last("log_softmax", self, axis)?;
        apply(LogSoftmax, &[&x])?.try_transpose(axis, -1)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log_softmax",
    family: Family::Fused,
    signature: "x.log_softmax(axis)",
    python: &[Binding::with(
        "log_softmax",
        &[Parameter::int("dim"), Parameter::dtype()],
        |x, a| along_axis(&a.cast(1, x)?, a.int(0), |x| x.try_log_softmax(a.int(0))),
    )],
    formula: "x - log(sum(exp(x)))",
    gradient: "dx = g - softmax(x) * sum(g)",
    at_kinks: "a row of minus infinities, or with plus infinity or NaN, gives NaN",
    samples: |g| row_samples(g, |x, axis| x.try_log_softmax(axis)),
    mistakes: &[
        Mistake {
            name: "softmax treated as diagonal",
            what: "g * (1 - p): each output was taken to depend on its own input alone",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&(1.0 - at.output().try_exp()?))?)]),
        },
        Mistake {
            name: "sum forgotten",
            what: "g: the logarithm of the sum, which depends on every input of the row, was taken for a constant",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "upstream sum taken for 1",
            what: "g - p: the sum of the upstream gradient, by which p is multiplied, was left out",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_sub(&at.output().try_exp()?)?)]),
        },
    ],
};
