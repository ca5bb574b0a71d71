//! Ops of one and two tensors, element by element.

use chainrule::{DType, Result, Tensor};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::args::{Operand, default_float, meet};
use crate::error::run;
use crate::tensor::{PyTensor, work};

#[inline]
fn one(
    py: Python<'_>,
    x: &PyTensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let t = x.tensor();
    work(py, t.numel(), || f(&t)).map(PyTensor::from)
}

/// As [`one`]; integers and bools become the default float first, as in PyTorch.
#[inline]
fn float(
    py: Python<'_>,
    x: &PyTensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let t = as_float(x.tensor())?;
    work(py, t.numel(), || f(&t)).map(PyTensor::from)
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
    work(py, elements, move || {
        let (a, b) = match b {
            Operand::Tensor(b) => meet(a, b)?,
            number => {
                let b = number.beside(&a)?;
                (a, b)
            }
        };
        f(&a, &b)
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

/// PyTorch's sums, products, larger and smaller ones of bools, which the library refuses.
trait OfBools: Sized {
    fn sum_any(&self, other: &Tensor) -> Result<Tensor>;
    fn product_any(&self, other: &Tensor) -> Result<Tensor>;
    fn larger_any(&self, other: &Tensor) -> Result<Tensor>;
    fn smaller_any(&self, other: &Tensor) -> Result<Tensor>;
}

macro_rules! of_bools {
    ($($name:ident $op:ident $of_bools:ident,)*) => {
        impl OfBools for Tensor {
            $(#[inline]
            fn $name(&self, other: &Tensor) -> Result<Tensor> {
                match self.$op(other) {
                    // Asked only then, since small ops are many.
                    Err(_) if self.dtype() == DType::Bool && other.dtype() == DType::Bool => {
                        self.$of_bools(other)
                    }
                    out => out,
                }
            })*
        }
    };
}

of_bools! {
    sum_any try_add try_logical_or, product_any try_mul try_logical_and,
    larger_any try_maximum try_logical_or, smaller_any try_minimum try_logical_and,
}

macro_rules! unary {
    ($how:ident: $($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>) -> PyResult<PyTensor> {
                $how(py, self, Tensor::$try_name)
            })*
        }
    };
}

unary! { float:
    acos try_acos, acosh try_acosh, asin try_asin, asinh try_asinh, atan try_atan, atanh try_atanh, cos try_cos, cosh try_cosh,
    erf try_erf, erfc try_erfc, erfinv try_erfinv, exp try_exp, exp2 try_exp2, expm1 try_expm1, log try_log, log10 try_log10,
    log1p try_log1p, log2 try_log2, reciprocal try_reciprocal, rsqrt try_rsqrt, sigmoid try_sigmoid, sin try_sin,
    sinh try_sinh, sqrt try_sqrt, tan try_tan, tanh try_tanh, silu try_silu, mish try_mish, softsign try_softsign,
    hardsigmoid try_hardsigmoid, hardswish try_hardswish, selu try_selu, relu6 try_relu6, logsigmoid try_log_sigmoid,
    isnan try_isnan, isinf try_isinf, isfinite try_isfinite,
}

#[cfg(feature = "linalg")]
unary! { float: inverse try_inverse, det try_det, cholesky try_cholesky, }

unary! { one:
    abs try_abs, ceil try_ceil, floor try_floor, trunc try_trunc, neg try_neg, relu try_relu, sign try_sign, square try_square,
    frac try_frac, logical_not try_logical_not, bitwise_not try_bitwise_not, nonzero_ try_nonzero,
    __neg__ try_neg, __abs__ try_abs, __invert__ try_bitwise_not,
}

macro_rules! binary {
    ($($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
                two(py, self, other, |a, b| a.$try_name(b))
            })*
        }
    };
}

binary! {
    mul product_any, atan2 try_atan2, copysign try_copysign, fmod try_fmod, floor_divide try_floor_divide,
    hypot try_hypot, logaddexp try_logaddexp, maximum larger_any, minimum smaller_any, remainder try_remainder,
    bitwise_and try_bitwise_and, bitwise_or try_bitwise_or, bitwise_xor try_bitwise_xor,
    bitwise_left_shift try_bitwise_left_shift, bitwise_right_shift try_bitwise_right_shift,
    logical_and try_logical_and, logical_or try_logical_or, logical_xor try_logical_xor,
    eq try_eq, ne try_ne, lt try_lt, le try_le, gt try_gt, ge try_ge,
    __add__ sum_any, __mul__ product_any, __sub__ try_sub, __truediv__ try_div, __floordiv__ try_floor_divide,
    __mod__ try_remainder, __and__ try_bitwise_and, __or__ try_bitwise_or, __xor__ try_bitwise_xor,
    __lshift__ try_bitwise_left_shift, __rshift__ try_bitwise_right_shift,
}

macro_rules! right {
    ($($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
                reversed(py, self, other, |a, b| a.$try_name(b))
            })*
        }
    };
}

right! {
    __radd__ sum_any, __rmul__ product_any, __rsub__ try_sub, __rtruediv__ try_div, __rfloordiv__ try_floor_divide,
    __rmod__ try_remainder, __rand__ try_bitwise_and, __ror__ try_bitwise_or, __rxor__ try_bitwise_xor,
    __rlshift__ try_bitwise_left_shift, __rrshift__ try_bitwise_right_shift,
}

macro_rules! in_place {
    ($($name:ident $try_name:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(slf: &Bound<'_, Self>, py: Python<'_>, other: Operand) -> PyResult<()> {
                let new = two(py, slf.get(), other, |a, b| a.$try_name(b))?;
                PyTensor::assign(slf, new.tensor())
            })*
        }
    };
}

in_place! {
    __iadd__ sum_any, __imul__ product_any, __isub__ try_sub, __itruediv__ try_div, __ifloordiv__ try_floor_divide,
    __imod__ try_remainder, __iand__ try_bitwise_and, __ior__ try_bitwise_or, __ixor__ try_bitwise_xor,
    __ilshift__ try_bitwise_left_shift, __irshift__ try_bitwise_right_shift, __imatmul__ try_matmul,
}

fn power(py: Python<'_>, x: &PyTensor, exponent: Operand) -> PyResult<PyTensor> {
    match exponent {
        Operand::Float(p) => one(py, x, |t| t.try_pow(p)),
        Operand::Int(p) => one(py, x, |t| t.try_pow(p)),
        other => two(py, x, other, |a, b| a.try_pow(b)),
    }
}

fn scaled(py: Python<'_>, other: Operand, alpha: Option<Operand>) -> PyResult<Operand> {
    match alpha {
        None | Some(Operand::Int(1) | Operand::Bool(true)) => Ok(other),
        Some(alpha) => {
            let other = PyTensor::from(other.alone());
            Ok(Operand::Tensor(two(py, &other, alpha, |a, b| a.try_mul(b))?.tensor()))
        }
    }
}

#[pymethods]
impl PyTensor {
    fn __pow__(
        &self,
        py: Python<'_>,
        exponent: Operand,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let _ = modulo;
        power(py, self, exponent)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        base: Operand,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let _ = modulo;
        reversed(py, self, base, |a, b| a.try_pow(b))
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        exponent: Operand,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = modulo;
        let new = power(py, slf.get(), exponent)?;
        PyTensor::assign(slf, new.tensor())
    }

    fn pow(&self, py: Python<'_>, exponent: Operand) -> PyResult<PyTensor> {
        power(py, self, exponent)
    }

    fn __pos__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __richcmp__(&self, py: Python<'_>, other: Operand, how: CompareOp) -> PyResult<PyTensor> {
        two(py, self, other, |a, b| match how {
            CompareOp::Lt => a.try_lt(b),
            CompareOp::Le => a.try_le(b),
            CompareOp::Eq => a.try_eq(b),
            CompareOp::Ne => a.try_ne(b),
            CompareOp::Gt => a.try_gt(b),
            CompareOp::Ge => a.try_ge(b),
        })
    }

    fn __matmul__(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
        self.matmul(py, other)
    }

    fn __rmatmul__(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
        product(py, other.alone(), self.tensor())
    }

    fn matmul(&self, py: Python<'_>, other: Operand) -> PyResult<PyTensor> {
        product(py, self.tensor(), other.alone())
    }

    #[pyo3(signature = (other, *, alpha=None))]
    fn add(&self, py: Python<'_>, other: Operand, alpha: Option<Operand>) -> PyResult<PyTensor> {
        two(py, self, scaled(py, other, alpha)?, |a, b| a.sum_any(b))
    }

    #[pyo3(signature = (other, *, alpha=None))]
    fn sub(&self, py: Python<'_>, other: Operand, alpha: Option<Operand>) -> PyResult<PyTensor> {
        two(py, self, scaled(py, other, alpha)?, |a, b| a.try_sub(b))
    }

    #[pyo3(signature = (other, *, rounding_mode=None))]
    fn div(
        &self,
        py: Python<'_>,
        other: Operand,
        rounding_mode: Option<&str>,
    ) -> PyResult<PyTensor> {
        match rounding_mode {
            None => two(py, self, other, |a, b| a.try_div(b)),
            Some("floor") => two(py, self, other, |a, b| a.try_floor_divide(b)),
            Some("trunc") => two(py, self, other, |a, b| {
                let out = a.dtype().promote(b.dtype());
                match out {
                    // Exact for integers, which a float quotient is not.
                    DType::I64 => a.try_sub(&a.try_fmod(b)?)?.try_floor_divide(b),
                    _ => a.try_div(b)?.try_trunc()?.try_to_dtype(out),
                }
            }),
            Some(other) => Err(PyValueError::new_err(format!(
                "div: rounding_mode is None, 'trunc' or 'floor', not '{other}'"
            ))),
        }
    }

    #[pyo3(signature = (min=None, max=None))]
    fn clamp(
        &self,
        py: Python<'_>,
        min: Option<Operand>,
        max: Option<Operand>,
    ) -> PyResult<PyTensor> {
        match (min, max) {
            (None, None) => {
                Err(PyValueError::new_err("clamp: at least one of min and max must be given"))
            }
            (Some(a), None) => {
                bound(py, self, a, |t, a| t.try_clamp_min(a), |t, a| t.try_clamp_min(a))
            }
            (None, Some(b)) => {
                bound(py, self, b, |t, b| t.try_clamp_max(b), |t, b| t.try_clamp_max(b))
            }
            (Some(a), Some(b)) => match (a.number(), b.number()) {
                (Some(low), Some(high)) if !stays_whole(self, &[&a, &b]) => {
                    number_bounds(py, self, &[low, high], |t| t.try_clamp(low, high))
                }
                _ => {
                    let t = self.tensor();
                    work(py, t.numel(), || t.try_clamp(&a.beside(&t)?, &b.beside(&t)?))
                        .map(PyTensor::from)
                }
            },
        }
    }

    #[pyo3(signature = (*, decimals=0))]
    fn round(&self, py: Python<'_>, decimals: i32) -> PyResult<PyTensor> {
        if decimals == 0 {
            return one(py, self, |t| t.try_round());
        }
        let scale = 10f64.powi(decimals.abs());
        one(py, self, |t| match decimals > 0 {
            true => t.try_mul(scale)?.try_round()?.try_div(scale),
            false => t.try_div(scale)?.try_round()?.try_mul(scale),
        })
    }

    #[pyo3(signature = (nan=0.0, posinf=None, neginf=None))]
    fn nan_to_num(
        &self,
        py: Python<'_>,
        nan: f64,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> PyResult<PyTensor> {
        one(py, self, |t| t.try_nan_to_num(nan, posinf, neginf))
    }

    #[pyo3(signature = (end, weight))]
    fn lerp(
        &self,
        py: Python<'_>,
        end: &Bound<'_, PyTensor>,
        weight: Operand,
    ) -> PyResult<PyTensor> {
        let end = end.get().tensor();
        one(py, self, |t| match weight.number() {
            Some(w) => t.try_lerp(&end, w),
            None => t.try_lerp(&end, &weight.beside(t)?),
        })
    }

    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    fn isclose(
        &self,
        py: Python<'_>,
        other: Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> PyResult<PyTensor> {
        two(py, self, other, |a, b| a.try_isclose(b, rtol, atol, equal_nan))
    }

    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    fn allclose(
        &self,
        py: Python<'_>,
        other: Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> PyResult<bool> {
        let close = two(py, self, other, |a, b| a.try_isclose(b, rtol, atol, equal_nan))?;
        Ok(run(|| close.tensor().try_all(.., false)?.try_item())? != 0.0)
    }

    /// `self` where the condition holds, else `other`.
    #[pyo3(name = "where")]
    fn where_(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyTensor>,
        other: Operand,
    ) -> PyResult<PyTensor> {
        let condition = condition.get().tensor();
        two(py, self, other, |a, b| condition.try_where(a, b))
    }

    #[pyo3(signature = (alpha=1.0))]
    fn _elu(&self, py: Python<'_>, alpha: f64) -> PyResult<PyTensor> {
        float(py, self, |t| t.try_elu(alpha))
    }

    #[pyo3(signature = (alpha=1.0))]
    fn _celu(&self, py: Python<'_>, alpha: f64) -> PyResult<PyTensor> {
        float(py, self, |t| t.try_celu(alpha))
    }

    fn _gelu(&self, py: Python<'_>, tanh: bool) -> PyResult<PyTensor> {
        float(py, self, |t| if tanh { t.try_gelu_tanh() } else { t.try_gelu() })
    }

    fn _leaky_relu(&self, py: Python<'_>, slope: f64) -> PyResult<PyTensor> {
        float(py, self, |t| t.try_leaky_relu(slope))
    }

    fn _hardtanh(&self, py: Python<'_>, min: f64, max: f64) -> PyResult<PyTensor> {
        float(py, self, |t| t.try_hardtanh(min, max))
    }

    fn _softplus(&self, py: Python<'_>, beta: f64, threshold: f64) -> PyResult<PyTensor> {
        float(py, self, |t| t.try_softplus(beta, threshold))
    }
}

/// One bound that is a number or a tensor.
fn bound(
    py: Python<'_>,
    x: &PyTensor,
    limit: Operand,
    number: impl FnOnce(&Tensor, f64) -> Result<Tensor> + Send,
    tensor: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    match limit.number() {
        Some(at) if !stays_whole(x, &[&limit]) => number_bounds(py, x, &[at], |t| number(t, at)),
        _ => two(py, x, limit, tensor),
    }
}

/// Whether integers stay what they are between these bounds.
fn stays_whole(x: &PyTensor, limits: &[&Operand]) -> bool {
    x.tensor().dtype() == DType::I64
        && limits.iter().all(|l| matches!(l, Operand::Int(_) | Operand::Bool(_)))
}

/// Integers with a bound that is not whole become floats, as in PyTorch.
fn number_bounds(
    py: Python<'_>,
    x: &PyTensor,
    limits: &[f64],
    f: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    if limits.iter().all(|l| l.fract() == 0.0) { one(py, x, f) } else { float(py, x, f) }
}

/// A product; the lock of the interpreter is released for large ones.
fn product(py: Python<'_>, a: Tensor, b: Tensor) -> PyResult<PyTensor> {
    work(py, (a.numel() + b.numel()) * 4, || a.try_matmul(&b)).map(PyTensor::from)
}
