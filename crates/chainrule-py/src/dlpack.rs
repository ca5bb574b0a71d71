//! Exchange of memory by DLPack: capsules of the older protocol and of the versioned one, which
//! says what may be written to.

use chainrule::{DType, Lent, Tensor};
use dlpark::allocation::dynamic::Allocation;
use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase, python};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;

use crate::error::{GradientError, argument_error, run};
use crate::tensor::{PyTensor, copied};

/// The type of DLPack for a dtype.
fn in_dlpack(dtype: DType) -> DLDataType {
    let code = match dtype {
        DType::Bool => DLDataTypeCode::BOOL,
        DType::BF16 => DLDataTypeCode::BFLOAT,
        float if float.is_float() => DLDataTypeCode::FLOAT,
        signed if signed.is_signed() => DLDataTypeCode::INT,
        _ => DLDataTypeCode::UINT,
    };
    DLDataType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyBufferError::new_err(format!("__dlpack__: {error}"))
}

/// The memory of a tensor, kept alive by what is returned. If it is `shared`, a checksum tells
/// whether the consumer writes into it.
fn managed<M: ManagedTensorBase>(
    t: &Tensor,
    flags: DlpackFlags,
    shared: bool,
) -> PyResult<Managed<M>> {
    let memory = run(|| t.memory())?;
    let rank = memory.shape().len();
    let mut allocation = Allocation::<M>::allocate(2 * rank).map_err(refused)?;
    let sizes = memory.shape().iter().map(|&n| n as i64);
    let all = sizes.chain(memory.strides().iter().map(|&s| s as i64));
    allocation.extra_mut().iter_mut().zip(all).for_each(|(to, n)| *to = n);
    let address = memory.address();
    let dtype = in_dlpack(memory.dtype());
    // A copy that nobody else has may be written to.
    let keeper: Box<dyn Send + Sync> = match shared {
        true => Box::new(Lent::new(memory)),
        false => Box::new(memory),
    };
    let mut made = allocation.initialize(Box::new(keeper), rank).map_err(refused)?;
    let extra = made.extra_mut().as_mut_ptr();
    made.set_data(address.cast_mut().cast()).set_device(DLDevice::CPU).set_dtype(dtype);
    made.tensor_mut().shape = extra;
    // SAFETY: `extra` has the sizes and then the strides, in memory that lives as long as what is
    // made here; the memory of the elements lives as long as its context. Memory that others see is
    // marked as read-only, and what is marked as copied nobody else has.
    unsafe {
        made.tensor_mut().strides = extra.add(rank);
        made.set_flags_unchecked(flags);
        Ok(made.finish())
    }
}

#[pymethods]
impl PyTensor {
    /// A capsule that is marked as read-only, over a copy of its own: some consumers write in spite
    /// of the mark, and the tape may hold these elements. With `copy=False` it is over the memory
    /// of the tensor, and a consumer that writes into it makes the next backward pass an error. The
    /// older protocol has no mark and gets a copy that may be written to, as does `copy=True`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = python::ExportRequest::parse(stream, max_version, dl_device, copy)?;
        if let Some(device) = request.device().filter(|d| *d != DLDevice::CPU) {
            return Err(refused(format!(
                "there is one device, the processor (1, 0), not ({}, {})",
                device.device_type.0, device.device_id
            )));
        }
        if stream.is_some() {
            return Err(refused("the processor has no streams"));
        }
        let t = self.tensor();
        if t.requires_grad() {
            return Err(GradientError::new_err(
                "__dlpack__: the tensor requires a gradient, which a capsule cannot carry; use x.detach()",
            ));
        }
        let old = request.abi() == python::ExportAbi::Legacy;
        if old && copy == Some(false) {
            return Err(refused(
                "the consumer speaks a version without read-only memory, which needs a copy; copy=False forbids it",
            ));
        }
        let may_write = old || copy == Some(true);
        let shared = !may_write && copy == Some(false);
        let t = if shared { t } else { run(|| copied(&t))? };
        let flags = if may_write { DlpackFlags::IS_COPIED } else { DlpackFlags::READ_ONLY };
        match old {
            true => managed::<DLManagedTensor>(&t, DlpackFlags::empty(), shared)?.into_pyobject(py),
            false => managed::<DLManagedTensorVersioned>(&t, flags, shared)?.into_pyobject(py),
        }
    }

    /// The processor, in DLPack's numbers.
    fn __dlpack_device__(&self) -> (u32, i32) {
        (DLDevice::CPU.device_type.0, DLDevice::CPU.device_id)
    }
}

/// A tensor over the memory of whoever speaks DLPack. A `TypeError` for elements that have no
/// counterpart here.
#[pyfunction]
pub fn _from_dlpack(x: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<PyTensor> {
    let imported = python::from_dlpack(x.as_borrowed(), None, copy)?;
    let wrong = |error: &dyn std::fmt::Display| argument_error(format!("from_dlpack: {error}"));
    let view = imported.validate().map_err(|e| wrong(&e))?;
    if view.device() != DLDevice::CPU {
        return Err(wrong(&"the memory is not that of the processor"));
    }
    let Some(dtype) = DType::ALL.into_iter().find(|d| in_dlpack(*d) == view.dtype()) else {
        return Err(PyTypeError::new_err("from_dlpack: the elements have no counterpart here"));
    };
    let shape: Vec<usize> = view.shape().iter().map(|&n| n as usize).collect();
    let strides = view.strides_or_compact().map_err(|e| wrong(&e))?;
    let strides: Vec<isize> = strides.iter().map(|&s| s as isize).collect();
    let first = view.data_ptr().cast::<u8>().wrapping_add(view.byte_offset() as usize);
    // SAFETY: the producer keeps the memory until what it gave is dropped. The documentation of
    // `from_dlpack` asks that nobody writes to it meanwhile.
    run(|| unsafe { Tensor::from_foreign(first, &shape[..], &strides, dtype, Box::new(imported)) })
        .map(PyTensor::from)
}
