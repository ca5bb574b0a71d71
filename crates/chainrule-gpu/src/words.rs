//! Elements as a device has them: in WebGPU all are of 32 bits.

use std::sync::Arc;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::tensor::value::{Meta, Value};

use crate::device::fault;
use crate::dialect::Dialect;

/// Bytes of an element on the device.
pub(crate) fn width(dialect: Dialect, dtype: DType) -> usize {
    if dialect == Dialect::Wgsl { 4 } else { dtype.size() }
}

/// The bytes of elements for a device. Errors for integers that WebGPU cannot hold.
pub(crate) fn to_device(dialect: Dialect, dtype: DType, bytes: &[u8]) -> Result<Vec<u8>> {
    if dialect == Dialect::Cuda {
        return Ok(bytes.to_vec());
    }
    let eight = || bytes.as_chunks::<8>().0.iter();
    Ok(match dtype {
        DType::F64 => eight().flat_map(|b| (f64::from_le_bytes(*b) as f32).to_le_bytes()).collect(),
        DType::I64 => {
            let mut out = Vec::with_capacity(bytes.len() / 2);
            for b in eight() {
                let x = i64::from_le_bytes(*b);
                let word = i32::try_from(x).map_err(|_| {
                    fault(format!("{x} is beyond the 32 bits of integers in WebGPU"))
                })?;
                out.extend(word.to_le_bytes());
            }
            out
        }
        DType::Bool | DType::U8 => bytes.iter().flat_map(|b| u32::from(*b).to_le_bytes()).collect(),
        _ => bytes.to_vec(),
    })
}

/// The value of elements from a device.
pub(crate) fn to_value(dialect: Dialect, meta: Meta, bytes: &[u8]) -> Result<Arc<Value>> {
    let mut value = Value::uninit("device", meta)?;
    let out = value.bytes_mut();
    let words = bytes.as_chunks::<4>().0.iter();
    match (dialect, meta.dtype) {
        (Dialect::Wgsl, DType::F64) => {
            let to = out.as_chunks_mut::<8>().0.iter_mut();
            to.zip(words).for_each(|(o, w)| *o = f64::from(f32::from_le_bytes(*w)).to_le_bytes());
        }
        (Dialect::Wgsl, DType::I64) => {
            let to = out.as_chunks_mut::<8>().0.iter_mut();
            to.zip(words).for_each(|(o, w)| *o = i64::from(i32::from_le_bytes(*w)).to_le_bytes());
        }
        (Dialect::Wgsl, DType::Bool | DType::U8) => {
            out.iter_mut().zip(words).for_each(|(o, w)| *o = w[0]);
        }
        _ => out.copy_from_slice(bytes),
    }
    Ok(value.share())
}
