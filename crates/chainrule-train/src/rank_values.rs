//! Tensors as numbers that ranks add up; for the layers above, too.

use chainrule_exchange::{Values, ValuesLayout};

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Names and values of what decides about bits beside data and settings: all ranks must have them
/// alike.
pub fn facts_of_the_program() -> [(&'static str, String); 2] {
    let level = chainrule_core::kernels::simd::level().name();
    let version = env!("CARGO_PKG_VERSION");
    let facts = [("version", version), ("set of vector instructions (CHAINRULE_SIMD)", level)];
    facts.map(|(name, value)| (name, value.to_string()))
}

/// The numbers of a float tensor; halves are added up in f32.
pub fn values(t: &Tensor) -> Result<Values> {
    Ok(match t.dtype() {
        DType::F64 => Values::F64(t.try_to_vec()?),
        DType::F32 => Values::F32(t.try_to_vec()?),
        _ => Values::F32(t.try_to_dtype(DType::F32)?.try_to_vec()?),
    })
}

/// The layout of the numbers of such a tensor.
pub fn layout(like: &Tensor) -> ValuesLayout {
    match like.dtype() {
        DType::F64 => ValuesLayout::F64(like.numel()),
        _ => ValuesLayout::F32(like.numel()),
    }
}

/// The numbers as a tensor of the shape and dtype of `like`.
pub fn tensor(values: &Values, like: &Tensor) -> Result<Tensor> {
    wide(values, like)?.try_to_dtype(like.dtype())
}

/// The numbers as a tensor of the shape of `like`, in the dtype that they have.
pub(crate) fn wide(values: &Values, like: &Tensor) -> Result<Tensor> {
    match values {
        Values::F32(x) => Tensor::try_from_slice(x, like.shape()),
        Values::F64(x) => Tensor::try_from_slice(x, like.shape()),
    }
}
