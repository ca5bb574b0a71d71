//! Memory to and from NumPy and DLPack.

use std::sync::Arc;

use chainrule::{DType, Memory, Tensor};
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::alias::Shown;
use crate::error::{GradientError, argument_error, run};
use crate::handle::Outside;
use crate::tensor::PyTensor;

/// Owner of the memory of a NumPy array.
#[pyclass(frozen)]
#[expect(dead_code, reason = "both are held")]
struct Keeper(Held, Option<Arc<Shown>>);

/// The memory itself.
#[expect(dead_code, reason = "it is held")]
enum Held {
    Tensor(Memory),
    Array(Py<PyAny>),
}

/// The address of the first element.
fn first_of(array: &Bound<'_, PyUntypedArray>) -> usize {
    // SAFETY: the array is alive, and its head does not change while it is read.
    unsafe { (*array.as_array_ptr()).fields.data.expose_provenance() }
}

/// A tensor of an array, without a copy where its type is one of ours.
pub fn tensor_of(x: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = x.py();
    let array = match x.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => {
            py.import("numpy")?.call_method1("asarray", (x,))?.cast_into::<PyUntypedArray>()?
        }
    };
    crate::session::array_read(array.as_any())?;
    let descr = array.dtype();
    let to = match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        // NumPy has none of its own; that of ml_dtypes goes by its name.
        (_, 2) if descr.getattr("name")?.eq(DType::BF16.numpy_name())? => DType::BF16,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "an array of dtype {descr} has no counterpart; there are {}: convert it \
                 with astype",
                names()
            )));
        }
    };
    let same = descr.byteorder() != b'>';
    let native = to.numpy_name();
    let array = match same {
        true => array,
        false => array.call_method1("astype", (native,))?.cast_into::<PyUntypedArray>()?,
    };
    let size = to.size() as isize;
    if array.ndim() > chainrule::MAX_RANK {
        return Err(argument_error(format!(
            "an array of {} axes: a tensor has at most 8",
            array.ndim()
        )));
    }
    let odd = array.strides().iter().any(|s| s % size != 0);
    let array = match odd || !first_of(&array).is_multiple_of(to.size()) {
        false => array,
        true => array.call_method0("copy")?.cast_into::<PyUntypedArray>()?,
    };
    let address = first_of(&array);
    let strides: Vec<isize> = array.strides().iter().map(|s| s / size).collect();
    let shape = array.shape().to_vec();
    let owner: Py<PyAny> = array.into_any().unbind();
    // SAFETY: NumPy keeps the memory while the array lives, and gave its shape and strides. The
    // documentation of `from_numpy` asks that nobody writes to it meanwhile; all other callers copy
    // at once.
    run(|| unsafe {
        let first = std::ptr::with_exposed_provenance(address);
        Tensor::from_foreign(first, &shape[..], &strides, to, Box::new(owner))
    })
}

/// A tensor over the memory of an array, which it shares.
#[pyfunction]
pub fn from_numpy(ndarray: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    if ndarray.cast::<PyUntypedArray>().is_err() {
        let name = ndarray.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "from_numpy: expected an array of NumPy, not {name}"
        )));
    }
    let tensor = PyTensor::from(tensor_of(ndarray)?);
    let outside = Outside { array: Some(ndarray.clone().unbind()), ..Outside::default() };
    tensor.lock().rest().outside = Some(outside);
    Ok(tensor)
}

/// Whether anybody holds the array, or one that it is a part of, beside `own` holders that are
/// known.
pub fn is_held(array: &Bound<'_, PyAny>, own: isize) -> PyResult<bool> {
    // SAFETY: the object is alive. The handle that asks is one more holder.
    if unsafe { pyo3::ffi::Py_REFCNT(array.as_ptr()) } > own + 1 {
        return Ok(true);
    }
    let base = array.getattr("base")?;
    if base.is_none() {
        return Ok(false);
    }
    match base.is_instance_of::<PyUntypedArray>() {
        true => is_held(&base, 1),
        // Memory of somebody else: who knows.
        false => Ok(true),
    }
}

/// The names of all dtypes.
pub fn names() -> String {
    DType::ALL.map(DType::numpy_name).join(", ")
}

/// NumPy's dtype. The package ml_dtypes has bfloat16, if it is installed.
fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    let name = dtype.numpy_name();
    match dtype {
        DType::F32 => return Ok(numpy::dtype::<f32>(py)),
        DType::F64 => return Ok(numpy::dtype::<f64>(py)),
        DType::I64 => return Ok(numpy::dtype::<i64>(py)),
        DType::Bool => return Ok(numpy::dtype::<bool>(py)),
        DType::BF16 => {}
        _ => return PyArrayDescr::new(py, name),
    }
    let lacking = |_| {
        PyTypeError::new_err(
            "numpy: NumPy has no bfloat16; install ml_dtypes, or convert with x.float()",
        )
    };
    PyArrayDescr::new(py, py.import("ml_dtypes").map_err(lacking)?.getattr(name)?)
}

/// An array over the memory of a tensor, which cannot be written to.
pub fn array_over<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    array_of(py, t, None)
}

fn array_of<'py>(
    py: Python<'py>,
    t: &Tensor,
    shown: Option<Arc<Shown>>,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = run(|| t.memory())?;
    let size = memory.dtype().size() as isize;
    let dims = memory.shape().iter().map(|&d| d as isize).collect();
    let strides = memory.strides().iter().map(|s| s * size).collect();
    let address = memory.address();
    let descr = numpy_dtype(py, memory.dtype())?;
    address.expose_provenance();
    let place = Place { dims, strides, address };
    // SAFETY: sizes and strides are those of the memory, which the keeper holds.
    unsafe { read_only(place, descr, Keeper(Held::Tensor(memory), shown)) }
}

/// An array over the memory of another one, which cannot be written to by way of this one.
fn array_beside<'py>(
    py: Python<'py>,
    own: Py<PyAny>,
    shown: Arc<Shown>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = own.bind(py).cast::<PyUntypedArray>()?;
    let dims = array.shape().iter().map(|&d| d as isize).collect();
    let strides = array.strides().into();
    let place =
        Place { dims, strides, address: std::ptr::with_exposed_provenance(first_of(array)) };
    let descr = array.dtype();
    // SAFETY: sizes and strides are those of the array, which the keeper holds.
    unsafe { read_only(place, descr, Keeper(Held::Array(own), Some(shown))) }
}

/// A new array of the elements, in memory of its own.
pub fn copied_array<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if !t.is_contiguous() {
        return array_over(py, t)?.call_method1("copy", ("K",));
    }
    let memory = run(|| t.memory())?;
    let mut dims: Extents = memory.shape().iter().map(|&d| d as isize).collect();
    let bytes = t.numel() * memory.dtype().size();
    let descr = numpy_dtype(py, memory.dtype())?;
    // SAFETY: without an address NumPy takes memory for the elements in row-major order, which is
    // that of the tensor's.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descr.into_dtype_ptr(),
            dims.len() as i32,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let to = (*array.as_ptr().cast::<PyArrayObject>()).fields.data;
        std::ptr::copy_nonoverlapping(memory.address(), to.cast(), bytes);
        Ok(array)
    }
}

/// Sizes or strides of an array.
type Extents = SmallVec<[isize; 4]>;

/// The place of an array's elements; strides count bytes.
struct Place {
    dims: Extents,
    strides: Extents,
    address: *const u8,
}

/// An array of these elements, which cannot be written to.
///
/// # Safety
///
/// The elements must be there while the keeper lives.
unsafe fn read_only<'py>(
    mut place: Place,
    descr: Bound<'py, PyArrayDescr>,
    keeper: Keeper,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let keeper = Bound::new(py, keeper)?;
    // SAFETY: the caller promises that the keeper, the base of the array, holds the elements;
    // without the flag nobody may write.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descr.into_dtype_ptr(),
            place.dims.len() as i32,
            place.dims.as_mut_ptr(),
            place.strides.as_mut_ptr(),
            place.address.cast_mut().cast(),
            0,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), keeper.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        debug_assert!(
            !array.getattr("flags")?.getattr("writeable")?.extract::<bool>()?,
            "{NPY_ARRAY_WRITEABLE}"
        );
        Ok(array)
    }
}

#[pymethods]
impl PyTensor {
    /// The elements as an array of NumPy, which sees each later write to the tensor and cannot be
    /// written to. A large one of a tensor that was not written yet lies over its memory, as does
    /// one of `from_numpy`, and a write is an error then. `force` detaches first.
    #[pyo3(signature = (*, force=false))]
    fn numpy<'py>(slf: &Bound<'py, Self>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        let (py, t) = (slf.py(), slf.get().tensor());
        if t.requires_grad() && !force {
            return Err(GradientError::new_err(
                "numpy: the tensor requires a gradient, which an array cannot carry; use x.detach().numpy()",
            ));
        }
        match PyTensor::show_array(slf, &t)? {
            (shown, Some(copy)) => array_beside(py, copy, shown),
            (shown, None) => array_of(py, &t, Some(shown)),
        }
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = PyTensor::numpy(slf, false)?;
        let array = match dtype {
            Some(d) if !array.getattr("dtype")?.eq(d)? => {
                if copy == Some(false) {
                    return Err(argument_error(
                        "__array__: another dtype needs a copy, which copy=False forbids",
                    ));
                }
                return array.call_method1("astype", (d,));
            }
            _ => array,
        };
        if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
    }

    /// The elements as nested lists of numbers; a number for a tensor without axes.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut t = self.untaped()?;
        if t.dtype().is_half() {
            t = run(|| t.try_to_dtype(DType::F32))?;
        }
        array_over(py, &t)?.call_method0("tolist")
    }
}
