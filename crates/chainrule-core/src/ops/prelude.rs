//! Imports of nearly every op file.

pub(crate) use std::borrow::Cow;
pub(crate) use std::sync::Arc;

pub(crate) use smallvec::smallvec;

pub(crate) use super::binding::{
    ALONG, Argument, Arguments, Binding, KEEPDIM, Parameter, REDUCTION, SORTED, along_axis,
    along_axis_pair, or_of_bools, with_axis,
};
pub(crate) use super::{Entry, Family, Mistake, Name, OpId, Sample, elementwise, methods, row};
pub(crate) use crate::dtype::{DType, Stored};
pub(crate) use crate::error::{Error, Result};
pub(crate) use crate::kernels::chain::Arithmetic;
pub(crate) use crate::param::{Param, Parameters};
pub(crate) use crate::rng::Generator;
pub(crate) use crate::shape::{Axes, IntoAxes, IntoShape, IntoSizes, MAX_RANK, Shape};
pub(crate) use crate::tensor::log;
pub(crate) use crate::tensor::op::{
    Array, Extent, Grads, Input, Kernel, MapKernel, Op, Outcome, Output, ReduceKernel, Saved,
    Saves, ViewKernel, Wanted, WholeKernel, by_dtype, tile, tile_slice,
};
pub(crate) use crate::tensor::reading::{self, Fold, Linear, Reading};
pub(crate) use crate::tensor::role::{LossRole, NormRole, Role};
pub(crate) use crate::tensor::run::{Offered, apply, apply_extra, apply_offered, array, output};
pub(crate) use crate::tensor::value::{Layout, Meta, Value};
pub(crate) use crate::tensor::work::{self, last, numel};
pub(crate) use crate::tensor::{IntoTensor, Tensor};

/// Random normal f64 elements, for samples.
pub(crate) fn normal(g: &mut Generator, shape: impl IntoShape) -> Tensor {
    Tensor::try_randn(shape, DType::F64, g).expect("a sample's shape is possible")
}

/// Random f64 elements from `low` to `high`, for samples of ops with a smaller domain.
pub(crate) fn between(g: &mut Generator, low: f64, high: f64, shape: impl IntoShape) -> Tensor {
    let u = Tensor::try_rand(shape, DType::F64, g).expect("a sample's shape is possible");
    &u * (high - low) + low
}

/// The dtypes agree and are float: the result has them too.
pub(crate) fn float_inputs(op: &'static str, inputs: &[Meta]) -> Result<DType> {
    let dtype = inputs[0].dtype;
    if inputs.iter().any(|m| m.dtype != dtype) {
        let dtypes: Vec<_> = inputs.iter().map(|m| m.dtype).collect();
        return Err(Error::dtype(
            op,
            &dtypes,
            "the inputs must have one dtype; convert with to_dtype",
        ));
    }
    if !dtype.is_float() {
        return Err(Error::dtype(op, &[dtype], "defined for floats; convert with to_dtype first"));
    }
    Ok(dtype)
}

/// The inference of an elementwise op on one float tensor.
pub(crate) fn infer_float_unary(op: &'static str, inputs: &[Meta]) -> Result<Meta> {
    Ok(Meta::new(inputs[0].shape, float_inputs(op, inputs)?))
}

/// The inference of an elementwise op on one number tensor (not bool).
pub(crate) fn infer_number_unary(op: &'static str, inputs: &[Meta]) -> Result<Meta> {
    match inputs[0].dtype {
        DType::Bool => Err(Error::dtype(
            op,
            &[DType::Bool],
            "not defined for bool; convert with to_dtype first",
        )),
        _ => Ok(inputs[0]),
    }
}

/// The common shape of operands, or the error.
pub(crate) fn broadcast_shapes(op: &'static str, inputs: &[Meta]) -> Result<Shape> {
    let mut shape = inputs[0].shape;
    for m in &inputs[1..] {
        shape = shape.broadcast(&m.shape).ok_or_else(|| {
            let shapes: Vec<_> = inputs.iter().map(|m| &m.shape).collect();
            Error::shape(
                op,
                &shapes,
                "the shapes do not broadcast: from the last axis on, sizes must be equal or 1",
            )
        })?;
    }
    Ok(shape)
}

/// The inference of an elementwise op on two number tensors of one dtype, which [`promoted`] sees
/// to.
pub(crate) fn infer_number_binary(op: &'static str, inputs: &[Meta]) -> Result<Meta> {
    let shape = broadcast_shapes(op, inputs)?;
    match inputs[0].dtype {
        DType::Bool => Err(Error::dtype(
            op,
            &[DType::Bool; 2],
            "not defined for bools; convert with to_dtype first",
        )),
        dtype => Ok(Meta::new(shape, dtype)),
    }
}

/// The tangent of an op from the parts that its inputs bring, of those that have a tangent: one at
/// least.
pub(crate) fn sum_of_parts(
    parts: impl IntoIterator<Item = Option<Result<Tensor>>>,
) -> Result<Tensor> {
    let mut parts = parts.into_iter().flatten();
    let first = parts.next().expect("at least one tangent is given")?;
    parts.try_fold(first, |sum, part| sum.try_add(&part?))
}

/// The tangent of `f`, which is linear in each of two inputs: `f(da, b) + f(a, db)`.
pub(crate) fn bilinear_tangent(
    at: &Saved<'_>,
    tangents: &[Option<Tensor>],
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let by_a = tangents[0].as_ref().map(|da| f(da, &at.input(1)));
    let by_b = tangents[1].as_ref().map(|db| f(&at.input(0), db));
    sum_of_parts([by_a, by_b])
}

/// Applies a binary op after bringing both operands to their common dtype.
#[track_caller]
pub(crate) fn apply_promoted(op: impl Op, a: &Tensor, b: impl IntoTensor) -> Result<Tensor> {
    apply_from(&mut Some(op), a, b.into_tensor(a)?, |dtype| dtype)
}

/// As [`apply_promoted`], for ops that leave the integers: those become the default float.
#[track_caller]
pub(crate) fn apply_promoted_float(op: impl Op, a: &Tensor, b: impl IntoTensor) -> Result<Tensor> {
    apply_from(&mut Some(op), a, b.into_tensor(a)?, DType::to_float)
}

/// Applies a binary op in the dtype that `to` makes of the operands' common one.
#[inline(never)]
#[track_caller]
fn apply_from(
    op: &mut dyn Offered,
    a: &Tensor,
    b: Tensor,
    to: fn(DType) -> DType,
) -> Result<Tensor> {
    let (da, db) = (a.dtype(), b.dtype());
    let dtype = to(da.promote(db));
    if da == dtype && db == dtype {
        return apply_offered(op, &[a, &b]);
    }
    apply_offered(op, &[&a.try_to_dtype(dtype)?, &b.try_to_dtype(dtype)?])
}

/// Shapes that every elementwise unary op is sampled on: plain, 0-d, empty, and a large odd one.
pub(crate) const UNARY_SHAPES: [(&str, &[usize]); 4] =
    [("matrix", &[3, 5]), ("0-d", &[]), ("empty", &[2, 0]), ("odd rows", &[2, 3, 17])];

/// Samples of a unary op whose inputs `draw` makes.
pub(crate) fn unary_samples(
    g: &mut Generator,
    draw: fn(&mut Generator, &[usize]) -> Tensor,
    call: fn(&Tensor) -> Result<Tensor>,
) -> Vec<Sample> {
    let sample = |(note, shape): (&'static str, &[usize])| {
        Sample::new(note, vec![draw(g, shape)], move |x| call(&x[0]))
    };
    UNARY_SHAPES.into_iter().map(sample).collect()
}

/// Samples of a binary op whose operands `draw` makes: same shapes, every kind of broadcasting,
/// 0-d, empty, an operand used twice, a view.
pub(crate) fn binary_samples(
    g: &mut Generator,
    draw: fn(&mut Generator, &[usize]) -> Tensor,
    call: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Vec<Sample> {
    let shapes: [(&str, &[usize], &[usize]); 8] = [
        ("same shapes", &[3, 4], &[3, 4]),
        ("row", &[3, 17], &[17]),
        ("column", &[3, 4], &[3, 1]),
        ("both stretched", &[3, 1, 2], &[4, 1]),
        ("0-d with a matrix", &[], &[2, 3]),
        ("0-d", &[], &[]),
        ("empty", &[0, 3], &[1, 3]),
        ("inner axis stretched", &[2, 3, 4], &[2, 1, 4]),
    ];
    let mut out = Vec::new();
    for (note, a, b) in shapes {
        out.push(Sample::new(note, vec![draw(g, a), draw(g, b)], move |x| call(&x[0], &x[1])));
    }
    out.push(Sample::new("an operand used twice", vec![draw(g, &[3, 4])], move |x| {
        call(&x[0], &x[0])
    }));
    out.push(Sample::new(
        "a transposed view",
        vec![draw(g, &[4, 3]), draw(g, &[3, 4])],
        move |x| call(&x[0].try_transpose(0, 1)?, &x[1]),
    ));
    out
}

/// Samples of a reduction: one axis, several (adjacent and apart), all; with and without `keepdim`;
/// 0-d, empty, a view.
pub(crate) fn reduce_samples(
    g: &mut Generator,
    call: fn(&Tensor, &[i64], bool) -> Result<Tensor>,
) -> Vec<Sample> {
    let cases: [(&str, &[usize], &[i64], bool); 8] = [
        ("last axis", &[3, 17], &[-1], false),
        ("first axis, kept", &[5, 4], &[0], true),
        ("middle axis", &[2, 3, 4], &[1], false),
        ("axes apart", &[2, 3, 4], &[0, 2], true),
        ("all axes", &[3, 4], &[0, 1], false),
        ("an axis of size 1", &[3, 1, 2], &[1], false),
        ("0-d", &[], &[], false),
        ("no rows", &[0, 3], &[1], false),
    ];
    let mut out = Vec::new();
    for (note, shape, axes, keepdim) in cases {
        out.push(Sample::new(note, vec![normal(g, shape)], move |x| call(&x[0], axes, keepdim)));
    }
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3, 2])], move |x| {
        call(&x[0].try_transpose(0, 2)?, &[1], false)
    }));
    out
}

/// Samples of an op along one axis: the last, the first, a middle one, one of size 1, none of its
/// elements, a 0-d tensor given an axis, a view.
pub(crate) fn axis_samples(
    g: &mut Generator,
    call: fn(&Tensor, i64) -> Result<Tensor>,
) -> Vec<Sample> {
    let cases: [(&str, &[usize], i64); 5] = [
        ("last axis", &[3, 17], -1),
        ("first axis", &[5, 4], 0),
        ("middle axis", &[2, 3, 4], 1),
        ("an axis of size 1", &[3, 1, 2], 1),
        ("no rows", &[0, 3], 1),
    ];
    let mut out = Vec::new();
    for (note, shape, axis) in cases {
        out.push(Sample::new(note, vec![normal(g, shape)], move |x| call(&x[0], axis)));
    }
    out.push(Sample::new("0-d with an axis", vec![normal(g, ())], move |x| {
        call(&x[0].try_reshape([1])?, 0)
    }));
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3])], move |x| {
        call(&x[0].try_t()?, 1)
    }));
    out
}
