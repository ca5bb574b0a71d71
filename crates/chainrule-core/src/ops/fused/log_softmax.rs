//! `log_softmax`: the logarithm of softmax.

use super::row_function::{RowFunction, along, row_samples};
use super::{log_softmax_in_steps, shifted};
use crate::kernels::softmax::{self, Row};
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
pub(crate) struct LogSoftmax;

impl RowFunction for LogSoftmax {
    const ID: OpId = OpId::log_softmax;
    const GRAD: &'static str = "log_softmax_grad";
    const NUMPY: [&'static str; 2] = ["_log_softmax({0})", "_log_softmax_grad({0}, {1})"];
    const READINGS: [Reading; 2] = [Reading::LogSoftmax, Reading::LogSoftmaxGrad];

    fn rows<T: Row>(x: &[T], n: usize, out: &mut [T]) {
        softmax::log_softmax_rows(x, n, out);
    }

    /// `g - exp(y) * sum(g)`.
    fn grad_rows<T: Row>(y: &[T], g: &[T], n: usize, out: &mut [T]) {
        softmax::log_softmax_grad_rows(y, g, n, out);
    }

    fn in_steps(x: &Tensor) -> Result<Tensor> {
        log_softmax_in_steps(x)
    }

    /// `dx` less its mean under the probabilities, which are taken from the input: `dx - sum(e *
    /// dx) / sum(e)`.
    fn tangent(x: &Tensor, dx: &Tensor) -> Result<Tensor> {
        let e = shifted(x)?.try_exp()?;
        let mean = e.try_mul(dx)?.try_sum(-1, true)?.try_div(&e.try_sum(-1, true)?)?;
        dx.try_sub(&mean)
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
        along(LogSoftmax, self, axis)
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
