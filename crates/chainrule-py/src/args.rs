//! Arguments as Python gives them: numbers or tensors, axes, shapes, dtypes.

use chainrule::ops::binding::Argument;
use chainrule::{DType, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType,
};

use crate::error::argument_error;
use crate::tensor::PyTensor;

/// A tensor or a Python number.
pub enum Operand {
    Tensor(Tensor),
    Float(f64),
    Int(i64),
    Bool(bool),
}

impl Operand {
    /// `None` for what is neither: then Python may ask the other operand.
    pub fn of(x: &Bound<'_, PyAny>) -> PyResult<Option<Operand>> {
        if let Ok(t) = x.cast::<PyTensor>() {
            return Ok(Some(Operand::Tensor(t.get().tensor())));
        }
        if let Ok(f) = x.cast::<PyFloat>() {
            return Ok(Some(Operand::Float(f.value())));
        }
        if let Ok(b) = x.cast::<PyBool>() {
            return Ok(Some(Operand::Bool(b.is_true())));
        }
        if x.cast::<PyInt>().is_ok() {
            return Ok(Some(match x.extract::<i64>() {
                Ok(i) => Operand::Int(i),
                Err(_) => Operand::Float(x.extract()?),
            }));
        }
        if is_array(x)? {
            return crate::interchange::tensor_of(x).map(|t| Some(Operand::Tensor(t)));
        }
        Ok(None)
    }

    /// The tensor for use beside `other`: a number takes its dtype, and so does a tensor without
    /// axes unless its kind is higher.
    pub fn beside(self, other: &Tensor) -> chainrule::Result<Tensor> {
        Argument::from(self).beside(other)
    }

    /// As it is, a number with the dtype that [`crate::create::tensor`] gives it.
    pub fn alone(self) -> Tensor {
        Argument::from(self).alone(default_float())
    }

    pub fn number(&self) -> Option<f64> {
        match *self {
            Operand::Tensor(_) => None,
            Operand::Float(x) => Some(x),
            Operand::Int(x) => Some(x as f64),
            Operand::Bool(x) => Some(x as u8 as f64),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Operand {
    type Error = PyErr;
    fn extract(x: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Operand::of(&x)?.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "expected a tensor or a number, not {}",
                x.get_type().name().map(|n| n.to_string()).unwrap_or_default()
            ))
        })
    }
}

/// Whether `x` is an array of NumPy, or a number of it.
fn is_array(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    x.hasattr("__array_interface__")
}

static DEFAULT_F64: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// The dtype of tensors made from Python floats.
pub fn default_float() -> DType {
    match DEFAULT_F64.load(std::sync::atomic::Ordering::Relaxed) {
        true => DType::F64,
        false => DType::F32,
    }
}

/// The dtype of tensors made from floats of Python.
#[pyfunction]
pub fn get_default_dtype() -> PyDType {
    PyDType(default_float())
}

/// Sets the dtype of tensors made from floats of Python: float32 or float64.
#[pyfunction]
pub fn set_default_dtype(d: DTypeArg) -> PyResult<()> {
    if !matches!(d.0, DType::F32 | DType::F64) {
        return Err(PyTypeError::new_err(
            "set_default_dtype: only float32 and float64 can be the default",
        ));
    }
    DEFAULT_F64.store(d.0 == DType::F64, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// A dtype as an object of Python.
#[pyclass(name = "dtype", module = "chainrule", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDType(pub DType);

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("chainrule.{}", self.name())
    }

    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    #[getter]
    fn is_complex(&self) -> bool {
        false
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// The name that NumPy has for it.
    #[getter]
    pub fn name(&self) -> &'static str {
        self.0.numpy_name()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("chainrule._chainrule")?.getattr("_dtype")?, (self.name(),)))
    }
}

#[pyfunction]
pub fn _dtype(x: DTypeArg) -> PyDType {
    PyDType(x.0)
}

/// The dtype that two tensors of these become.
#[pyfunction]
pub fn _promoted(a: DTypeArg, b: DTypeArg) -> PyDType {
    PyDType(a.0.promote(b.0))
}

/// A dtype given as an object, a name, a Python type or a dtype of NumPy.
#[derive(Clone, Copy)]
pub struct DTypeArg(pub DType);

impl<'py> FromPyObject<'_, 'py> for DTypeArg {
    type Error = PyErr;
    fn extract(x: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(d) = x.cast::<PyDType>() {
            return Ok(DTypeArg(d.get().0));
        }
        let py = x.py();
        if let Ok(t) = x.cast::<PyType>() {
            if t.is(py.get_type::<PyFloat>()) {
                return Ok(DTypeArg(DType::F64));
            } else if t.is(py.get_type::<PyBool>()) {
                return Ok(DTypeArg(DType::Bool));
            } else if t.is(py.get_type::<PyInt>()) {
                return Ok(DTypeArg(DType::I64));
            }
        }
        let name = match x.cast::<PyString>() {
            Ok(s) => s.to_string(),
            Err(_) => x
                .getattr_opt("name")?
                .or(x.getattr_opt("__name__")?)
                .map(|n| n.to_string())
                .unwrap_or_default(),
        };
        let alias = match name.as_str() {
            "bool_" => Some(DType::Bool),
            "long" => Some(DType::I64),
            "int" => Some(DType::I32),
            "short" => Some(DType::I16),
            "half" => Some(DType::F16),
            "float" => Some(DType::F32),
            "double" => Some(DType::F64),
            _ => None,
        };
        let named = |d: &DType| [d.numpy_name(), d.name()].contains(&name.as_str());
        alias.or_else(|| DType::ALL.into_iter().find(named)).map(DTypeArg).ok_or_else(|| {
            let names = crate::interchange::names();
            PyTypeError::new_err(format!("there is no dtype {}; there are {names}", x.to_owned()))
        })
    }
}

/// Axes: none (all of them), one, or several.
#[derive(Clone)]
pub struct Axes(pub Option<Vec<i64>>);

impl<'py> FromPyObject<'_, 'py> for Axes {
    type Error = PyErr;
    fn extract(x: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if x.is_none() {
            return Ok(Axes(None));
        }
        match x.extract::<i64>() {
            Ok(axis) => Ok(Axes(Some(vec![axis]))),
            Err(_) => x.extract().map(|axes| Axes(Some(axes))).map_err(|_| {
                let kind = x.get_type().name().map(|n| n.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!("expected an axis or a list of axes, not {kind}"))
            }),
        }
    }
}

/// Sizes given one by one or as one list: `x.view(2, -1)`, `x.view((2, -1))`.
pub fn sizes(args: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if args.len() == 1 {
        let first = args.get_item(0)?;
        if first.is_instance_of::<PyTuple>() || first.is_instance_of::<PyList>() {
            return first.extract();
        }
    }
    args.extract::<Vec<i64>>()
}

/// Sizes that cannot be negative.
pub fn shape(sizes: Vec<i64>) -> PyResult<Vec<usize>> {
    sizes
        .iter()
        .map(|&n| {
            usize::try_from(n).map_err(|_| {
                argument_error(format!("a shape has no negative sizes, got {sizes:?}"))
            })
        })
        .collect()
}

/// A shape: a number or a list of them.
pub struct ShapeArg(pub Vec<usize>);

impl<'py> FromPyObject<'_, 'py> for ShapeArg {
    type Error = PyErr;
    fn extract(x: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let sizes = match x.extract::<i64>() {
            Ok(n) => vec![n],
            // Bytes are a sequence of numbers, but nobody means sizes by them.
            Err(_) if x.cast::<PyBytes>().is_ok() || x.cast::<PyByteArray>().is_ok() => {
                return Err(PyTypeError::new_err("bytes are not a shape"));
            }
            Err(_) => x.extract::<Vec<i64>>()?,
        };
        Ok(ShapeArg(shape(sizes)?))
    }
}
