//! Elementwise ops.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, CallAttr, NodeResult, one, scalar};
use super::{stored, wrong};

/// Rules with one op of one operand.
macro_rules! unary {
    ($($name:ident $method:ident),* $(,)?) => {
        $(pub(super) fn $name(c: &Call<'_>) -> NodeResult {
            one(c.x(0)?.$method()?)
        })*
    };
}

unary! {
    acos try_acos, acosh try_acosh, asin try_asin, asinh try_asinh, atan try_atan,
    atanh try_atanh, bitwise_not try_bitwise_not, cos try_cos, cosh try_cosh, erf try_erf,
    exp try_exp, is_nan try_isnan, log try_log, neg try_neg, not try_logical_not,
    reciprocal try_reciprocal, sigmoid try_sigmoid, sin try_sin, sinh try_sinh,
    softsign try_softsign, sqrt try_sqrt, tan try_tan, tanh try_tanh, mish try_mish,
    hard_swish try_hardswish,
}

/// Rules that pass unsigned operands, integers or both unchanged.
macro_rules! same_for {
    ($($name:ident $method:ident $is_same:expr),* $(,)?) => {
        $(pub(super) fn $name(c: &Call<'_>) -> NodeResult {
            let x = c.x(0)?;
            let is_same: fn(DType) -> bool = $is_same;
            one(if is_same(x.dtype()) { x.clone() } else { x.$method()? })
        })*
    };
}

same_for! {
    abs try_abs |d| !d.is_signed(),
    floor try_floor DType::is_integer,
    ceil try_ceil DType::is_integer,
    round try_round DType::is_integer,
    relu try_relu |d| !d.is_signed(),
    sign_of_signed try_sign |d| !d.is_signed(),
}

pub(super) fn sign(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    match x.dtype().is_signed() {
        true => sign_of_signed(c),
        false => one(x.try_ne(0.0)?.try_to_dtype(x.dtype())?),
    }
}

pub(super) fn identity(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.clone())
}

pub(super) fn softplus(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_softplus(1.0, 20.0)?)
}

pub(super) fn celu(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_celu(c.float("alpha", 1.0))?)
}

pub(super) fn elu(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_elu(c.float("alpha", 1.0))?)
}

pub(super) fn selu(c: &Call<'_>) -> NodeResult {
    let alpha = c.float("alpha", 1.673_263_192_176_818_8);
    let gamma = c.float("gamma", 1.050_701_022_148_132_3);
    one(c.x(0)?.try_elu(alpha)?.try_mul(gamma)?)
}

pub(super) fn leaky_relu(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_leaky_relu(c.float("alpha", 0.01))?)
}

pub(super) fn thresholded_relu(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let above = x.try_gt(c.float("alpha", 1.0))?;
    one(above.try_where(x, 0.0)?)
}

pub(super) fn shrink(c: &Call<'_>) -> NodeResult {
    let (x, bias, lambda) = (c.x(0)?, c.float("bias", 0.0), c.float("lambd", 0.5));
    let dtype = x.dtype();
    let zero = x.zeros_like();
    let low = x.try_add(&scalar(bias, dtype)?)?;
    let high = x.try_sub(&scalar(bias, dtype)?)?;
    let inner = x.try_gt(&scalar(lambda, dtype)?)?.try_where(&high, &zero)?;
    one(x.try_lt(&scalar(-lambda, dtype)?)?.try_where(&low, &inner)?)
}

pub(super) fn gelu(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    one(match c.text("approximate", "none") {
        "tanh" => x.try_gelu_tanh()?,
        _ => x.try_gelu()?,
    })
}

pub(super) fn hard_sigmoid(c: &Call<'_>) -> NodeResult {
    let (alpha, beta) = (c.float("alpha", 0.2), c.float("beta", 0.5));
    one(c.x(0)?.try_mul(alpha)?.try_add(beta)?.try_clamp(0.0, 1.0)?)
}

fn gated(x: &Tensor, alpha: f64) -> Result<Tensor> {
    x.try_mul(&x.try_mul(alpha)?.try_sigmoid()?)
}

pub(super) fn swish(c: &Call<'_>) -> NodeResult {
    one(gated(c.x(0)?, c.float("alpha", 1.0))?)
}

pub(super) fn swiglu(c: &Call<'_>) -> NodeResult {
    one(gated(c.x(0)?, c.float("alpha", 1.0))?.try_mul(c.x(1)?)?)
}

pub(super) fn is_inf(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let (low, high) = (c.int("detect_negative", 1) != 0, c.int("detect_positive", 1) != 0);
    let infinite = x.try_isinf()?;
    one(match (low, high) {
        (true, true) => infinite,
        (true, false) => infinite.try_logical_and(&x.try_lt(0.0)?)?,
        (false, true) => infinite.try_logical_and(&x.try_gt(0.0)?)?,
        (false, false) => infinite.zeros_like(),
    })
}

/// The first operand broadcast to the second one, from an `axis` attribute on (before opset 7).
fn placed(c: &Call<'_>) -> Result<(Tensor, Tensor)> {
    let (a, b) = (c.x(0)?.clone(), c.x(1)?.clone());
    match c.int_or_none("axis").filter(|_| c.opset() < 7 && c.flag("broadcast")) {
        Some(axis) if b.rank() > 0 => {
            let after = (a.rank() as i64 - axis).max(0) as usize;
            let mut sizes = b.shape().to_vec();
            sizes.resize(after.max(sizes.len()), 1);
            Ok((a, b.try_reshape(sizes.as_slice())?))
        }
        _ => Ok((a, b)),
    }
}

/// Rules with one op of two operands.
macro_rules! binary {
    ($($name:ident $method:ident),* $(,)?) => {
        $(pub(super) fn $name(c: &Call<'_>) -> NodeResult {
            let (a, b) = placed(c)?;
            one(a.$method(&b)?)
        })*
    };
}

binary! {
    add try_add, sub try_sub, mul try_mul, equal try_eq, greater try_gt, greater_equal try_ge,
    less try_lt, less_equal try_le, and try_logical_and, or try_logical_or, xor try_logical_xor,
    bitwise_and try_bitwise_and, bitwise_or try_bitwise_or, bitwise_xor try_bitwise_xor,
}

/// Integer division truncates.
pub(super) fn div(c: &Call<'_>) -> NodeResult {
    let (a, b) = placed(c)?;
    if a.dtype().is_float() {
        return one(a.try_div(&b)?);
    }
    let rest = if a.dtype().is_signed() { a.try_fmod(&b)? } else { a.try_remainder(&b)? };
    one(a.try_sub(&rest)?.try_floor_divide(&b)?)
}

pub(super) fn pow(c: &Call<'_>) -> NodeResult {
    let (a, b) = placed(c)?;
    let dtype = a.dtype();
    one(match dtype.is_float() || !b.dtype().is_float() {
        true => a.try_pow(&b.try_to_dtype(dtype)?)?,
        false => a.try_to_dtype(DType::F64)?.try_pow(&b.try_to_dtype(DType::F64)?)?,
    }
    .try_to_dtype(dtype)?)
}

pub(super) fn modulo(c: &Call<'_>) -> NodeResult {
    let (a, b) = placed(c)?;
    one(if c.flag("fmod") { a.try_fmod(&b)? } else { a.try_remainder(&b)? })
}

pub(super) fn bit_shift(c: &Call<'_>) -> NodeResult {
    let (a, b) = (c.x(0)?, c.x(1)?);
    one(match c.text("direction", "") {
        "LEFT" => a.try_bitwise_left_shift(b)?,
        "RIGHT" => a.try_bitwise_right_shift(b)?,
        other => return Err(wrong(format!("direction {other:?} is neither LEFT nor RIGHT"))),
    })
}

fn fold(c: &Call<'_>, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let all = c.all()?;
    let (first, rest) = all.split_first().ok_or_else(|| wrong("it has no inputs"))?;
    rest.iter().try_fold((*first).clone(), |sum, x| f(&sum, x))
}

pub(super) fn max(c: &Call<'_>) -> NodeResult {
    one(fold(c, |a, b| a.try_maximum(b))?)
}

pub(super) fn min(c: &Call<'_>) -> NodeResult {
    one(fold(c, |a, b| a.try_minimum(b))?)
}

pub(super) fn sum(c: &Call<'_>) -> NodeResult {
    one(fold(c, |a, b| a.try_add(b))?)
}

pub(super) fn mean(c: &Call<'_>) -> NodeResult {
    one(fold(c, |a, b| a.try_add(b))?.try_div(c.inputs.len() as f64)?)
}

pub(super) fn where_(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_where(c.x(1)?, c.x(2)?)?)
}

pub(super) fn prelu(c: &Call<'_>) -> NodeResult {
    let (x, slope) = (c.x(0)?, c.x(1)?);
    // Before opset 7 a slope has one element per channel.
    let slope = match slope.rank() == 1 && x.rank() > 2 && c.opset() < 7 {
        true => slope.try_reshape([&[-1], vec![1; x.rank() - 2].as_slice()].concat().as_slice())?,
        false => slope.clone(),
    };
    one(x.try_lt(x.zeros_like())?.try_where(&x.try_mul(&slope)?, x)?)
}

pub(super) fn clip(c: &Call<'_>) -> NodeResult {
    let mut x = c.x(0)?.clone();
    let bound = |i: usize, name: &str| match (c.opt(i), c.float_or_none(name)) {
        (Some(t), _) => Ok(Some(t.clone())),
        (None, Some(value)) => scalar(value, x.dtype()).map(Some),
        (None, None) => Ok(None),
    };
    let (low, high) = (bound(1, "min")?, bound(2, "max")?);
    if let Some(low) = low {
        x = x.try_maximum(&low)?;
    }
    if let Some(high) = high {
        x = x.try_minimum(&high)?;
    }
    one(x)
}

pub(super) fn cast(c: &Call<'_>) -> NodeResult {
    let to = match c.attr("to") {
        Some(CallAttr::Int(n)) => *n,
        // Opset 1 had names of dtypes.
        Some(CallAttr::Text(name)) => match name.as_str() {
            "FLOAT" => 1,
            "INT32" => 6,
            "INT64" => 7,
            "BOOL" => 9,
            "DOUBLE" => 11,
            _ => return Err(wrong(format!("dtype {name:?} is not known"))),
        },
        _ => return Err(wrong("its parameter `to` is missing")),
    };
    one(c.x(0)?.try_to_dtype(stored::dtype(to)?)?)
}

pub(super) fn cast_like(c: &Call<'_>) -> NodeResult {
    one(c.x(0)?.try_to_dtype(c.x(1)?.dtype())?)
}

/// Bitcast to another dtype.
pub(super) fn bit_cast(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let dtype = stored::dtype(c.int("to", 0))?;
    if dtype.size() != x.dtype().size() {
        return Err(wrong(format!("{} and {dtype} have other sizes", x.dtype())));
    }
    one(Tensor::try_from_bytes(&x.try_to_bytes()?, x.shape(), dtype)?)
}
