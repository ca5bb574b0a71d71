//! `softmax`: exponentials that sum to 1 along an axis, and the backward of it as one kernel.

use super::{axis_last, shifted};
use crate::kernels::softmax;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// Over the last axis.
#[derive(Debug, Parameters)]
pub(crate) struct Softmax;

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::softmax)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_softmax({0})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(5, inputs, outputs)
    }

    fn reading(&self) -> Reading {
        Reading::Softmax
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
        let dx = apply(SoftmaxGrad, &[&at.output(), cotangent])?;
        Ok(smallvec![Some(dx)])
    }

    /// The rule of the quotient on `e / s`, where `e = exp(x)` and `s = sum(e)`:
    /// `(de * s - e * ds) / s^2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let e = shifted(&at.input(0))?.try_exp()?;
        let s = e.try_sum(-1, true)?;
        let de = e.try_mul(tangents[0].as_ref().expect("the only tangent"))?;
        let ds = de.try_sum(-1, true)?;
        de.try_mul(&s)?.try_sub(&e.try_mul(&ds)?)?.try_div(&s.try_mul(&s)?)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|x| {
            let e = shifted(&x[0])?.try_exp()?;
            e.try_div(&e.try_sum(-1, true)?)
        }))
    }
}

impl WholeKernel for Softmax {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| softmax::softmax_rows(
            x.elements::<T>(),
            n,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// `y * (g - sum(y * g))`: the backward of softmax, from its result.
#[derive(Debug, Parameters)]
pub(crate) struct SoftmaxGrad;

impl Op for SoftmaxGrad {
    fn name(&self) -> &'static str {
        "softmax_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_softmax_grad({0}, {1})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(4, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::Last
    }

    fn reading(&self) -> Reading {
        Reading::SoftmaxGrad
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for SoftmaxGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (y, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(y.dtype(), [F32, F64], |T| softmax::softmax_grad_rows(
            y.elements::<T>(),
            g.elements(),
            n,
            value.elements_mut()
        ));
        Ok(value.into())
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
        let (x, axis) = axis_last("softmax", self, axis)?;
        apply(Softmax, &[&x])?.try_transpose(axis, -1)
    }
}

/// Samples of softmax and its logarithm.
pub(super) fn row_samples(
    g: &mut Generator,
    call: fn(&Tensor, i64) -> Result<Tensor>,
) -> Vec<Sample> {
    let cases: [(&str, &[usize], i64); 9] = [
        ("rows", &[3, 5], -1),
        ("columns", &[4, 3], 0),
        ("middle axis", &[2, 3, 4], 1),
        ("odd rows", &[2, 2, 17], 2),
        ("many rows", &[70, 27], 1),
        ("a vector", &[7], 0),
        ("an axis of size 1", &[3, 1], 1),
        ("no rows", &[0, 3], 1),
        ("rows of no elements", &[3, 0], 1),
    ];
    let mut out: Vec<Sample> = cases
        .map(|(note, shape, axis)| {
            let x = normal(g, shape) * 3.0;
            Sample::new(note, vec![x], move |x| call(&x[0], axis))
        })
        .into();
    out.push(Sample::new(
        "far from zero",
        vec![normal(g, [3, 4]) + Tensor::from([[-2000.0f64], [700.0], [0.0]])],
        move |x| call(&x[0], -1),
    ));
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3])], move |x| {
        call(&x[0].try_t()?, -1)
    }));
    out
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
