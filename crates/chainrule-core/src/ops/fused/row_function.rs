//! Functions of the rows of an array, softmax and its logarithm: one op for both, and one for the
//! backward from the result. A function is an implementation of [`RowFunction`] in a file of its
//! own.

use std::fmt::Debug;

use super::axis_last;
use crate::kernels::softmax::Row;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// A function of a row, the last axis.
pub(crate) trait RowFunction: Parameters + Copy + Debug + Send + Sync + 'static {
    /// The row of the table.
    const ID: OpId;

    /// The name of its backward in listings: `softmax_grad`.
    const GRAD: &'static str;

    /// As [`Op::numpy`]: the function, and its backward.
    const NUMPY: [&'static str; 2];

    /// As [`Op::reading`]: the function, and its backward.
    const READINGS: [Reading; 2];

    /// The function of rows of `n` elements.
    fn rows<T: Row>(x: &[T], n: usize, out: &mut [T]);

    /// The gradient of `x` from the result and its gradient.
    fn grad_rows<T: Row>(y: &[T], g: &[T], n: usize, out: &mut [T]);

    /// The function in primitive ops.
    fn in_steps(x: &Tensor) -> Result<Tensor>;

    /// The tangent of the result, written independently of the gradient.
    fn tangent(x: &Tensor, dx: &Tensor) -> Result<Tensor>;
}

/// The function, of each row.
#[derive(Debug, Parameters)]
pub(crate) struct RowWise<F>(#[parameters(skip)] pub F);

impl<F: RowFunction> Op for RowWise<F> {
    fn name(&self) -> &'static str {
        F::ID.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(F::ID)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(F::NUMPY[0].into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(5, inputs, outputs)
    }

    fn reading(&self) -> Reading {
        F::READINGS[0].clone()
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
        Ok(smallvec![Some(apply(RowWiseGrad(self.0), &[&at.output(), cotangent])?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        F::tangent(&at.input(0), tangents[0].as_ref().expect("the only tangent"))
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|x| F::in_steps(&x[0])))
    }
}

impl<F: RowFunction> WholeKernel for RowWise<F> {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| F::rows(x.elements::<T>(), n, value.elements_mut()));
        Ok(value.into())
    }
}

/// The backward of a function of rows, from its result.
#[derive(Debug, Parameters)]
pub(crate) struct RowWiseGrad<F>(#[parameters(skip)] pub F);

impl<F: RowFunction> Op for RowWiseGrad<F> {
    fn name(&self) -> &'static str {
        F::GRAD
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(F::NUMPY[1].into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(4, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::Last
    }

    fn reading(&self) -> Reading {
        F::READINGS[1].clone()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl<F: RowFunction> WholeKernel for RowWiseGrad<F> {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (y, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let n = out.shape[out.shape.rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(y.dtype(), [F32, F64], |T| F::grad_rows(
            y.elements::<T>(),
            g.elements(),
            n,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The function along `axis`.
#[track_caller]
pub(super) fn along<F: RowFunction>(function: F, x: &Tensor, axis: i64) -> Result<Tensor> {
    let (x, axis) = axis_last(F::ID.name(), x, axis)?;
    apply(RowWise(function), &[&x])?.try_transpose(axis, -1)
}

/// Samples of a function of rows.
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
        .into_iter()
        .map(|(note, shape, axis)| {
            let x = normal(g, shape) * 3.0;
            Sample::new(note, vec![x], move |x| call(&x[0], axis))
        })
        .collect();
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
