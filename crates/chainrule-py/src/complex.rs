//! Complex numbers beside real tensors. Complex tensors are a class of the Python layer; where an
//! operator or a function of real tensors meets one, or a complex number, that class takes over.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyTuple};

use crate::args::Operand;
use crate::tensor::PyTensor;

/// The other operand of an operator.
pub enum Other<'py> {
    Real(Operand),
    /// A complex number, or an array of them.
    Complex(Bound<'py, PyAny>),
}

impl Other<'_> {
    /// The operand, which the result of `x.name(operand)` is written to `x` for.
    pub fn real(self, name: &str, x: &PyTensor) -> PyResult<Operand> {
        let (name, dtype) = (name.trim_matches('_'), x.tensor().dtype().numpy_name());
        match self {
            Other::Real(real) => Ok(real),
            Other::Complex(_) => Err(PyTypeError::new_err(format!(
                "{name}: a complex result does not fit into a tensor of {dtype}; write x = x op z"
            ))),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Other<'py> {
    type Error = PyErr;
    fn extract(x: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match x.extract::<Operand>() {
            Ok(real) => Ok(Other::Real(real)),
            Err(_) if is_number(&x) => Ok(Other::Complex((*x).clone())),
            Err(error) => Err(error),
        }
    }
}

/// Whether `x` is a complex number of Python or NumPy, or an array of them.
fn is_number(x: &Bound<'_, PyAny>) -> bool {
    let kind = || x.getattr("dtype").and_then(|d| d.getattr("kind")?.extract::<char>());
    x.is_instance_of::<PyComplex>() || kind().is_ok_and(|kind| kind == 'c')
}

fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("chainrule._complex._making")?.getattr(name)
}

/// `x.name(other)` for a complex `other`.
pub fn operator(
    name: &str,
    x: &Bound<'_, PyTensor>,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    helper(x.py(), "of_operator")?.call1((name, x, other)).map(Bound::unbind)
}

/// The call of a function of real tensors as one of complex tensors, or of sparse ones, if an
/// argument is one; else the error.
pub fn instead<'py>(
    error: PyErr,
    name: &str,
    args: Vec<Bound<'py, PyAny>>,
    named: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = named.py();
    let class = py.import("chainrule")?.getattr("ComplexTensor")?;
    let mut found = false;
    for x in args.iter().cloned().chain(named.values()) {
        if let Ok(own) = x.getattr("_takes_over") {
            return own.call1((name, PyTuple::new(py, args)?, named));
        }
        found |= is_number(&x) || x.is_instance(&class)?;
    }
    match found {
        true => helper(py, "of_function")?.call1((name, PyTuple::new(py, args)?, named)),
        false => Err(error),
    }
}

/// A tensor of complex data, or of a complex dtype, if they are; else the error.
pub fn tensor(
    error: PyErr,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<Py<PyAny>> {
    let py = data.py();
    match helper(py, "has_complex")?.call1((data, dtype))?.extract()? {
        true => helper(py, "tensor")?.call1((data, dtype, requires_grad)).map(Bound::unbind),
        false => Err(error),
    }
}
