//! `softmax`: exponentials that sum to 1 along an axis.

use super::row_function::{RowFunction, along, row_samples};
use super::shifted;
use crate::kernels::softmax::{self, Row};
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
pub(crate) struct Softmax;

impl RowFunction for Softmax {
    const ID: OpId = OpId::softmax;
    const GRAD: &'static str = "softmax_grad";
    const NUMPY: [&'static str; 2] = ["_softmax({0})", "_softmax_grad({0}, {1})"];
    const READINGS: [Reading; 2] = [Reading::Softmax, Reading::SoftmaxGrad];

    fn rows<T: Row>(x: &[T], n: usize, out: &mut [T]) {
        softmax::softmax_rows(x, n, out);
    }

    /// `y * (g - sum(y * g))`.
    fn grad_rows<T: Row>(y: &[T], g: &[T], n: usize, out: &mut [T]) {
        softmax::softmax_grad_rows(y, g, n, out);
    }

    fn in_steps(x: &Tensor) -> Result<Tensor> {
        let e = shifted(x)?.try_exp()?;
        e.try_div(&e.try_sum(-1, true)?)
    }

    /// The rule of the quotient on `e / s`, where `e = exp(x)` and `s = sum(e)`: `(de * s - e * ds)
    /// / s^2`.
    fn tangent(x: &Tensor, dx: &Tensor) -> Result<Tensor> {
        let e = shifted(x)?.try_exp()?;
        let s = e.try_sum(-1, true)?;
        let de = e.try_mul(dx)?;
        let ds = de.try_sum(-1, true)?;
        de.try_mul(&s)?.try_sub(&e.try_mul(&ds)?)?.try_div(&s.try_mul(&s)?)
    }
}

methods! {
    /// The exponentials divided by their sum along `axis`: `exp(x) / sum(exp(x))`, computed from
    /// `x` less its largest element. For f32 and f64.
    ///
    /// A logit of minus infinity has probability 0. If all are minus infinity, or one is plus
    /// infinity or NaN, the result is NaN, as in PyTorch. Gradient: `dx = y * (g - sum(y * g))`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[0.0f32, 0.0], [5.0, f32::NEG_INFINITY]]);
    /// assert_eq!(x.softmax(-1).to_vec::<f32>(), [0.5, 0.5, 1.0, 0.0]);
    /// ```
    pub fn softmax / try_softmax(&self, axis: i64) -> Tensor {
        along(Softmax, self, axis)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "softmax",
    family: Family::Fused,
    signature: "x.softmax(axis)",
    python: &[Binding::with("softmax", &[Parameter::int("dim"), Parameter::dtype()], |x, a| {
        along_axis(&a.cast(1, x)?, a.int(0), |x| x.try_softmax(a.int(0)))
    })],
    formula: "exp(x) / sum(exp(x))",
    gradient: "dx = y * (g - sum(y * g))",
    at_kinks: "a row of minus infinities, or with plus infinity or NaN, gives NaN",
    samples: |g| row_samples(g, |x, axis| x.try_softmax(axis)),
    mistakes: &[
        Mistake {
            name: "softmax treated as diagonal",
            what: "y * (1 - y) * g: each output was taken to depend on its own input alone",
            rule: |_, at, g, _| {
                let y = at.output();
                Ok(smallvec![Some(g.try_mul(&(&y * &(1.0 - &y)))?)])
            },
        },
        Mistake {
            name: "normalisation forgotten",
            what: "y * g: the sum that the exponentials are divided by was taken for a constant",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?)]),
        },
    ],
};
