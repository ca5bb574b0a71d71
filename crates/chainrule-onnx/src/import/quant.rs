//! Quantised tensors, with a scale and a zero point.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, axis, one};
use super::{conv, stored, wrong};

/// Per-axis or blocked scales, broadcast to the input.
fn placed(c: &Call<'_>, t: &Tensor, x: &Tensor) -> Result<Tensor> {
    if t.numel() == 1 && t.rank() <= 1 {
        return t.try_reshape(());
    }
    let at = axis(c.int("axis", 1), x.rank())?;
    if t.rank() == 1 && c.int("block_size", 0) == 0 {
        let mut shape = vec![1i64; x.rank() - at];
        shape[0] = -1;
        return t.try_reshape(shape.as_slice());
    }
    let (has, wanted) = (t.size(at as i64), x.shape()[at]);
    let each = match c.int("block_size", 0) {
        0 => wanted.div_ceil(has.max(1)),
        n => n.max(1) as usize,
    };
    t.try_repeat_interleave(each, at as i64)?.try_narrow(at as i64, 0, wanted)
}

/// Range of a quantised dtype.
fn bounds(dtype: DType) -> Result<(f64, f64)> {
    Ok(match dtype {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65_535.0),
        DType::I16 => (-32_768.0, 32_767.0),
        _ => return Err(wrong(format!("{dtype} is no dtype of few bits"))),
    })
}

/// Quantises: rounds, adds the zero point, and saturates.
fn quantized(x: &Tensor, scale: &Tensor, zero: Option<&Tensor>, dtype: DType) -> Result<Tensor> {
    let (least, most) = bounds(dtype)?;
    let mut y = x.try_div(scale)?.try_round()?.try_to_dtype(DType::F64)?;
    if let Some(zero) = zero {
        y = y.try_add(&zero.try_to_dtype(DType::F64)?)?;
    }
    y.try_clamp(least, most)?.try_to_dtype(dtype)
}

pub(super) fn quantize(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let float = if x.dtype().is_float() { x.clone() } else { x.try_to_dtype(DType::F32)? };
    let scale = placed(c, c.x(1)?, x)?;
    let scale = scale.try_to_dtype(float.dtype())?;
    let zero = c.opt(2).map(|zero| placed(c, zero, x)).transpose()?;
    let dtype = match (&zero, c.int("output_dtype", 0)) {
        (Some(zero), _) => zero.dtype(),
        (None, 0) => DType::U8,
        (None, number) => stored::dtype(number)?,
    };
    one(quantized(&float, &scale, zero.as_ref(), dtype)?)
}

pub(super) fn dequantize(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let scale = placed(c, c.x(1)?, x)?;
    let mut wide = x.try_to_dtype(DType::F32)?;
    if let Some(zero) = c.opt(2) {
        wide = wide.try_sub(&placed(c, zero, x)?.try_to_dtype(DType::F32)?)?;
    }
    let dtype = match c.int("output_dtype", 0) {
        0 => scale.dtype(),
        number => stored::dtype(number)?,
    };
    one(wide.try_mul(&scale.try_to_dtype(DType::F32)?)?.try_to_dtype(dtype)?)
}

/// Scale and zero point from the range of the input, extended to include 0.
pub(super) fn dynamic(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let low = x.try_min_all()?.try_minimum(0.0)?;
    let high = x.try_max_all()?.try_maximum(0.0)?;
    let scale = high.try_sub(&low)?.try_div(255.0)?;
    let zero = low.try_neg()?.try_div(&scale)?.try_round()?.try_clamp(0.0, 255.0)?;
    let zero = zero.try_to_dtype(DType::U8)?;
    Ok(vec![quantized(x, &scale, Some(&zero), DType::U8)?, scale, zero])
}

/// A parameter per row or column of a matrix.
fn beside(t: &Tensor, is_row: bool) -> Result<Tensor> {
    match t.rank() == 1 && t.numel() > 1 && is_row {
        true => t.try_unsqueeze(1),
        false if t.numel() == 1 => t.try_reshape(()),
        false => Ok(t.clone()),
    }
}

fn shifted(x: &Tensor, zero: Option<&Tensor>, is_row: bool) -> Result<Tensor> {
    let wide = x.try_to_dtype(DType::F64)?;
    match zero {
        Some(zero) => wide.try_sub(&beside(zero, is_row)?.try_to_dtype(DType::F64)?),
        None => Ok(wide),
    }
}

pub(super) fn mat_mul_integer(c: &Call<'_>) -> NodeResult {
    let (a, b) = (shifted(c.x(0)?, c.opt(2), true)?, shifted(c.x(1)?, c.opt(3), false)?);
    one(a.try_matmul(&b)?.try_to_dtype(DType::I32)?)
}

pub(super) fn q_linear_mat_mul(c: &Call<'_>) -> NodeResult {
    let (a, b) = (shifted(c.x(0)?, Some(c.x(2)?), true)?, shifted(c.x(3)?, Some(c.x(5)?), false)?);
    let wide = |t: &Tensor, is_row| beside(&t.try_to_dtype(DType::F64)?, is_row);
    let scale = wide(c.x(1)?, true)?.try_mul(&wide(c.x(4)?, false)?)?;
    let y = a.try_matmul(&b)?.try_mul(&scale)?;
    let zero = beside(c.x(7)?, true)?;
    one(quantized(&y, &wide(c.x(6)?, true)?, Some(&zero), zero.dtype())?)
}

pub(super) fn q_linear_conv(c: &Call<'_>) -> NodeResult {
    let wide = |t: &Tensor| t.try_to_dtype(DType::F64);
    let (x, w) = (wide(c.x(0)?)?, wide(c.x(3)?)?);
    // Kernels may have parameters of their own.
    let of_kernel = |t: &Tensor, rank: usize| {
        let mut shape = vec![1i64; rank];
        shape[0] = -1;
        wide(t)?.try_reshape(shape.as_slice())
    };
    let x = x.try_sub(&wide(c.x(2)?)?.try_reshape(())?)?;
    let w = w.try_sub(&of_kernel(c.x(5)?, c.x(3)?.rank())?)?;
    let mut y = conv::of(c, &x, &w)?;
    let after = y.rank() - 1;
    if let Some(bias) = c.opt(8) {
        y = y.try_add(&of_kernel(bias, after)?)?;
    }
    let scale = wide(c.x(1)?)?.try_reshape(())?.try_mul(&of_kernel(c.x(4)?, after)?)?;
    let (out, zero) = (wide(c.x(6)?)?.try_reshape(())?, c.x(7)?.try_reshape(())?);
    one(quantized(&y.try_mul(&scale)?, &out, Some(&zero), zero.dtype())?)
}
