//! Ops as values, for whoever writes programs instead of applying ops to tensors.

use std::sync::Arc;

use super::{binary, fused, index, reduce, shape, unary};
use crate::dtype::DType;
use crate::shape::{Axes, Shape};
use crate::tensor::op::Op;

macro_rules! plain {
    ($($name:ident: $op:expr;)*) => {
        $(pub fn $name() -> Arc<dyn Op> { Arc::new($op) })*
    };
}

plain! {
    add: binary::add::Add;
    sub: binary::sub::Sub;
    mul: binary::mul::Mul;
    div: binary::div::Div;
    pow: binary::pow::Pow;
    gt: binary::compare::Compare::Gt;
    neg: unary::neg::Neg;
    square: unary::square::Square;
    reciprocal: unary::reciprocal::Reciprocal;
    sqrt: unary::sqrt::Sqrt;
    rsqrt: unary::rsqrt::Rsqrt;
    exp: unary::exp::Exp;
    log: unary::log::Log;
    tanh: unary::tanh::Tanh;
    sigmoid: unary::sigmoid::Sigmoid;
    softmax: fused::row_function::RowWise(fused::softmax::Softmax);
    softmax_grad: fused::row_function::RowWiseGrad(fused::softmax::Softmax);
    log_softmax_grad: fused::row_function::RowWiseGrad(fused::log_softmax::LogSoftmax);
}

fn set(axes: &[usize]) -> Axes {
    Axes::of(axes)
}

pub fn sum(axes: &[usize], keepdim: bool) -> Arc<dyn Op> {
    Arc::new(reduce::sum::Sum { axes: set(axes), keepdim })
}

pub fn mean(axes: &[usize], keepdim: bool) -> Arc<dyn Op> {
    Arc::new(reduce::mean::Mean { axes: set(axes), keepdim })
}

pub fn logsumexp(axes: &[usize], keepdim: bool) -> Arc<dyn Op> {
    Arc::new(reduce::logsumexp::LogSumExp { axes: set(axes), keepdim })
}

pub fn reshape(shape: Shape) -> Arc<dyn Op> {
    Arc::new(shape::reshape::Reshape { shape })
}

pub fn expand(shape: Shape) -> Arc<dyn Op> {
    Arc::new(shape::expand::Expand { shape })
}

/// The first element along these axes, which stay with size 1.
pub fn first_along(axes: &[usize], shape: &Shape) -> Arc<dyn Op> {
    Arc::new(shape::slice::SliceOp::first_along(axes, shape))
}

pub fn permute(from: &[u8]) -> Arc<dyn Op> {
    Arc::new(shape::permute::Permute { from: from.iter().copied().collect() })
}

pub fn gather(axis: usize) -> Arc<dyn Op> {
    Arc::new(index::gather::Gather { axis })
}

pub fn gather_grad(axis: usize, shape: Shape) -> Arc<dyn Op> {
    Arc::new(index::gather::GatherGrad { axis, shape })
}

pub fn to_dtype(dtype: DType) -> Arc<dyn Op> {
    Arc::new(unary::to_dtype::ToDType { dtype })
}
