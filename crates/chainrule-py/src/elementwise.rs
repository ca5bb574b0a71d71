//! The operators of Python. The methods beside them come from the table of ops.

use chainrule::ops::binding::{meet, or_of_bools};
use chainrule::{Result, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;

use crate::args::{Operand, default_float};
use crate::complex::{self, Other};
use crate::error::run;
use crate::laid::{of_one, of_two};
use crate::tensor::{PyTensor, work};

#[inline]
fn one(
    py: Python<'_>,
    x: &PyTensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let t = x.tensor();
    work(py, t.numel(), || of_one(&t, f)).map(PyTensor::from)
}

pub fn as_float(t: Tensor) -> PyResult<Tensor> {
    if t.dtype().is_float() { Ok(t) } else { run(|| t.try_to_dtype(default_float())) }
}

#[inline]
fn two(
    py: Python<'_>,
    a: &PyTensor,
    b: Operand,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let a = a.tensor();
    let elements = match &b {
        Operand::Tensor(b) => a.numel().max(b.numel()),
        _ => a.numel(),
    };
    work(py, elements, move || match b {
        Operand::Tensor(b) if a.dtype() == b.dtype() => of_two(&a, &b, f),
        Operand::Tensor(b) => of_two(&a, &b, |a, b| {
            let (a, b) = meet(a.clone(), b.clone())?;
            f(&a, &b)
        }),
        number => of_one(&a, |a| f(a, &number.beside(a)?)),
    })
    .map(PyTensor::from)
}

/// As [`two`], with the operands the other way round.
#[inline]
fn reversed(
    py: Python<'_>,
    a: &PyTensor,
    b: Operand,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    two(py, a, b, |a, b| f(b, a))
}

/// PyTorch's sums and products of bools, which the library refuses.
trait OfBools: Sized {
    fn sum_any(&self, other: &Tensor) -> Result<Tensor>;
    fn product_any(&self, other: &Tensor) -> Result<Tensor>;
}

macro_rules! of_bools {
    ($($name:ident $op:ident $of_bools:ident,)*) => {
        impl OfBools for Tensor {
            $(#[inline]
            fn $name(&self, other: &Tensor) -> Result<Tensor> {
                or_of_bools(self, other, |a, b| a.$op(b), |a, b| a.$of_bools(b))
            })*
        }
    };
}

of_bools! {
    sum_any try_add try_logical_or, product_any try_mul try_logical_and,
}

macro_rules! unary {
    ($($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>) -> PyResult<PyTensor> {
                one(py, self, Tensor::$try_name)
            })*
        }
    };
}

unary! { __neg__ try_neg, __abs__ try_abs, __invert__ try_bitwise_not, }

macro_rules! binary {
    ($call:ident: $($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(slf: &Bound<'_, Self>, other: Other<'_>) -> PyResult<Py<PyAny>> {
                let py = slf.py();
                match other {
                    Other::Real(other) => {
                        $call(py, slf.get(), other, |a, b| a.$try_name(b))?.into_py_any(py)
                    }
                    Other::Complex(other) => complex::operator(stringify!($name), slf, &other),
                }
            })*
        }
    };
}

binary! { two:
    __add__ sum_any, __mul__ product_any, __sub__ try_sub, __truediv__ try_div, __floordiv__ try_floor_divide,
    __mod__ try_remainder, __and__ try_bitwise_and, __or__ try_bitwise_or, __xor__ try_bitwise_xor,
    __lshift__ try_bitwise_left_shift, __rshift__ try_bitwise_right_shift,
}

binary! { reversed:
    __radd__ sum_any, __rmul__ product_any, __rsub__ try_sub, __rtruediv__ try_div, __rfloordiv__ try_floor_divide,
    __rmod__ try_remainder, __rand__ try_bitwise_and, __ror__ try_bitwise_or, __rxor__ try_bitwise_xor,
    __rlshift__ try_bitwise_left_shift, __rrshift__ try_bitwise_right_shift,
}

macro_rules! in_place {
    ($($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(slf: &Bound<'_, Self>, py: Python<'_>, other: Other<'_>) -> PyResult<()> {
                let other = other.real(stringify!($name), slf.get())?;
                let new = two(py, slf.get(), other, |a, b| a.$try_name(b))?;
                PyTensor::assign(slf, new.tensor())
            })*
        }
    };
}

in_place! {
    __iadd__ sum_any, __imul__ product_any, __isub__ try_sub, __itruediv__ try_div, __ifloordiv__ try_floor_divide,
    __imod__ try_remainder, __iand__ try_bitwise_and, __ior__ try_bitwise_or, __ixor__ try_bitwise_xor,
    __ilshift__ try_bitwise_left_shift, __irshift__ try_bitwise_right_shift,
}

fn power(py: Python<'_>, x: &PyTensor, exponent: Operand) -> PyResult<PyTensor> {
    match exponent {
        Operand::Float(p) => one(py, x, |t| t.try_pow(p)),
        Operand::Int(p) => one(py, x, |t| t.try_pow(p)),
        other => two(py, x, other, |a, b| a.try_pow(b)),
    }
}

#[pymethods]
impl PyTensor {
    fn __pow__(
        slf: &Bound<'_, Self>,
        exponent: Other<'_>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, _) = (slf.py(), modulo);
        match exponent {
            Other::Real(exponent) => power(py, slf.get(), exponent)?.into_py_any(py),
            Other::Complex(exponent) => complex::operator("__pow__", slf, &exponent),
        }
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        base: Other<'_>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, _) = (slf.py(), modulo);
        match base {
            Other::Real(base) => {
                reversed(py, slf.get(), base, |a, b| a.try_pow(b))?.into_py_any(py)
            }
            Other::Complex(base) => complex::operator("__rpow__", slf, &base),
        }
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        exponent: Other<'_>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = modulo;
        let exponent = exponent.real("__ipow__", slf.get())?;
        let new = power(py, slf.get(), exponent)?;
        PyTensor::assign(slf, new.tensor())
    }

    fn __pos__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __richcmp__(slf: &Bound<'_, Self>, other: Other<'_>, how: CompareOp) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let other = match other {
            Other::Real(other) => other,
            Other::Complex(other) => {
                let name = match how {
                    CompareOp::Eq => "__eq__",
                    CompareOp::Ne => "__ne__",
                    CompareOp::Lt => "__lt__",
                    CompareOp::Le => "__le__",
                    CompareOp::Gt => "__gt__",
                    CompareOp::Ge => "__ge__",
                };
                return complex::operator(name, slf, &other);
            }
        };
        let out = two(py, slf.get(), other, |a, b| match how {
            CompareOp::Lt => a.try_lt(b),
            CompareOp::Le => a.try_le(b),
            CompareOp::Eq => a.try_eq(b),
            CompareOp::Ne => a.try_ne(b),
            CompareOp::Gt => a.try_gt(b),
            CompareOp::Ge => a.try_ge(b),
        });
        out?.into_py_any(py)
    }

    fn __matmul__(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
        product(py, self.tensor(), other.alone())
    }

    fn __rmatmul__(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
        product(py, other.alone(), self.tensor())
    }

    fn __imatmul__(slf: &Bound<'_, Self>, py: Python<'_>, other: Operand) -> PyResult<()> {
        let new = product(py, slf.get().tensor(), other.alone())?;
        PyTensor::assign(slf, new.tensor())
    }

    fn _nonzero(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        let found = work(py, t.numel(), || t.try_nonzero()).map(PyTensor::from)?;
        found.lock().rest().loose = true;
        Ok(found)
    }

    /// `self` where the condition holds, else `other`.
    #[pyo3(name = "where")]
    fn where_(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyTensor>,
        other: Operand,
    ) -> PyResult<PyTensor> {
        crate::create::_where(py, condition, Operand::Tensor(self.tensor()), other)
    }
}

/// A product; the lock of the interpreter is released for large ones.
fn product(py: Python<'_>, a: Tensor, b: Tensor) -> PyResult<PyTensor> {
    work(py, (a.numel() + b.numel()) * 4, || a.try_matmul(&b)).map(PyTensor::from)
}
