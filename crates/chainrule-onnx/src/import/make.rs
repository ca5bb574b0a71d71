//! Ops that create tensors, and matrix products.

use std::f64::consts::PI;

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{
    Call, CallAttr, NodeResult, axis, bounded, dims, integers, numbers, one, signed, sizes,
};
use super::{stored, wrong};

pub(super) fn constant(c: &Call<'_>) -> NodeResult {
    let row = |all: &[f64]| {
        let all: Vec<f32> = all.iter().map(|&x| x as f32).collect();
        Tensor::try_from_slice(&all, [all.len()])
    };
    if let Some((name, attr)) = c.step.attrs.iter().next() {
        return one(match (name.as_str(), attr) {
            ("value", CallAttr::Tensor(t)) => t.clone(),
            ("value_float", CallAttr::Float(x)) => Tensor::scalar(*x as f32),
            ("value_int", CallAttr::Int(n)) => Tensor::scalar(*n),
            ("value_floats", CallAttr::Floats(all)) => row(all)?,
            ("value_ints", CallAttr::Ints(all)) => super::call::row(all)?,
            _ => return Err(wrong(format!("`{name}` is no tensor of numbers"))),
        });
    }
    Err(wrong("its value is missing"))
}

pub(super) fn constant_of_shape(c: &Call<'_>) -> NodeResult {
    let shape = sizes(&integers(c.x(0)?)?)?;
    one(match c.attr("value") {
        Some(CallAttr::Tensor(value)) => value.try_reshape(())?.try_expand(shape.as_slice())?,
        _ => Tensor::try_full(shape.as_slice(), 0.0, DType::F32)?,
    })
}

pub(super) fn range(c: &Call<'_>) -> NodeResult {
    let dtype = c.x(0)?.dtype();
    let bound = |i| c.float_at(i).map(Option::unwrap_or_default);
    let (start, end, step) = (bound(0)?, bound(1)?, bound(2)?);
    let count = ((end - start) / step).ceil();
    if step == 0.0 || count.is_nan() {
        return Err(wrong(format!("no row goes from {start} to {end} by {step}")));
    }
    let line = Tensor::arange(0, bounded(&[count.max(0.0) as usize])? as i64);
    one(match dtype.is_float() {
        true => line.try_to_dtype(DType::F64)?.try_mul(step)?.try_add(start)?,
        false => {
            line.try_mul(Tensor::scalar(step as i64))?.try_add(Tensor::scalar(start as i64))?
        }
    }
    .try_to_dtype(dtype)?)
}

pub(super) fn mat_mul(c: &Call<'_>) -> NodeResult {
    let (a, b) = (c.x(0)?, c.x(1)?);
    if a.dtype().is_float() {
        return one(a.try_matmul(b)?);
    }
    // Integer products are exact in f64 up to 2^53.
    let wide = |t: &Tensor| t.try_to_dtype(DType::F64);
    one(wide(a)?.try_matmul(&wide(b)?)?.try_to_dtype(a.dtype())?)
}

pub(super) fn gemm(c: &Call<'_>) -> NodeResult {
    let dtype = c.x(0)?.dtype();
    let operand = |i: usize, name: &str| {
        let t = c.x(i)?;
        let t = if dtype.is_float() { t.clone() } else { t.try_to_dtype(DType::F64)? };
        if c.flag(name) { t.try_transpose(0, 1) } else { Ok(t) }
    };
    let (alpha, beta) = (c.float("alpha", 1.0), c.float("beta", 1.0));
    let mut y = operand(0, "transA")?.try_matmul(&operand(1, "transB")?)?;
    if alpha != 1.0 {
        y = y.try_mul(alpha)?;
    }
    if let Some(bias) = c.opt(2) {
        let bias = bias.try_to_dtype(y.dtype())?;
        y = y.try_add(&if beta == 1.0 { bias } else { bias.try_mul(beta)? })?;
    }
    one(y.try_to_dtype(dtype)?)
}

pub(super) fn einsum(c: &Call<'_>) -> NodeResult {
    let all = c.all()?;
    let equation: String = c.text("equation", "").chars().filter(|c| *c != ' ').collect();
    one(Tensor::try_einsum(&equation, &all)?)
}

/// Determinants by elimination, which is differentiable.
pub(super) fn det(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let [.., n, m] = dims(x)[..] else { return Err(wrong("its input is no matrix")) };
    if n != m {
        return Err(wrong(format!("a matrix of {n} rows and {m} columns")));
    }
    let batch = dims(x)[..x.rank() - 2].to_vec();
    let mut rows: Vec<Tensor> = Vec::new();
    let flat = x.try_reshape(&[-1, n as i64, n as i64][..])?;
    for b in 0..flat.shape()[0] {
        let mut a = flat.try_narrow(0, b, 1)?.try_squeeze(&[0][..])?;
        let mut product = Tensor::try_full((), 1.0, x.dtype())?;
        for k in (1..=n).rev() {
            // Pivot: the largest element of the column.
            let column = numbers(&a.try_narrow(1, 0, 1)?)?;
            let best = (0..k).max_by(|&i, &j| column[i].abs().total_cmp(&column[j].abs()));
            let best = best.unwrap_or(0);
            let mut order: Vec<i64> = (0..k as i64).collect();
            order.swap(0, best);
            a = a.try_index_select(0, &super::call::row(&order)?)?;
            let pivot = a.try_narrow(0, 0, 1)?.try_narrow(1, 0, 1)?;
            let factor = pivot.try_reshape(())?;
            product = product.try_mul(&if best == 0 { factor } else { factor.try_neg()? })?;
            if k == 1 || column[best] == 0.0 {
                break;
            }
            let below = a.try_narrow(0, 1, k - 1)?;
            let share = below.try_narrow(1, 0, 1)?.try_div(&pivot)?;
            let first = a.try_narrow(0, 0, 1)?.try_narrow(1, 1, k - 1)?;
            a = below.try_narrow(1, 1, k - 1)?.try_sub(&share.try_mul(&first)?)?;
        }
        rows.push(product);
    }
    let all = Tensor::try_stack(&rows.iter().collect::<Vec<_>>(), 0)?;
    one(all.try_reshape(&batch.iter().map(|&d| d as i64).collect::<Vec<_>>()[..])?)
}

/// A cosine-sum window.
fn window(c: &Call<'_>, factors: &[f64]) -> NodeResult {
    let size = c.int_at(0)?.unwrap_or(0).max(0);
    bounded(&[size as usize])?;
    let dtype = stored::dtype(c.int("output_datatype", 1))?;
    let period = if c.int("periodic", 1) != 0 { size } else { size - 1 };
    let at = |i: i64| {
        let angle = 2.0 * PI * i as f64 / period.max(1) as f64;
        factors.iter().enumerate().map(|(k, f)| f * (k as f64 * angle).cos()).sum::<f64>()
    };
    let all: Vec<f64> = (0..size).map(at).collect();
    one(Tensor::try_from_slice(&all, [all.len()])?.try_to_dtype(dtype)?)
}

pub(super) fn hann(c: &Call<'_>) -> NodeResult {
    window(c, &[0.5, -0.5])
}

pub(super) fn hamming(c: &Call<'_>) -> NodeResult {
    window(c, &[25.0 / 46.0, -21.0 / 46.0])
}

pub(super) fn blackman(c: &Call<'_>) -> NodeResult {
    window(c, &[0.42, -0.5, 0.08])
}

/// Discrete Fourier transform of real or complex numbers along the last axis, by its matrix.
fn fourier(x: &Tensor, at: usize, len: usize, inverse: bool, onesided: bool) -> Result<Tensor> {
    let last = x.rank() - 1;
    let x = x.try_movedim(&[at as i64], &[last as i64 - 1])?;
    let has = x.shape()[last - 1];
    let x = match has >= len {
        true => x.try_narrow(last as i64 - 1, 0, len)?,
        false => {
            let more = [0, (len - has) as i64];
            let zero = chainrule_core::ops::PadMode::Constant(0.0);
            x.try_pad(&[(last as i64 - 1, more)], zero)?
        }
    };
    let is_real = x.shape()[last] == 1;
    bounded(&[len, len])?;
    let count = if onesided { len / 2 + 1 } else { len };
    let (mut cos, mut sin) = (Vec::new(), Vec::new());
    for j in 0..len {
        for k in 0..count {
            let angle = 2.0 * PI * ((j * k) % len.max(1)) as f64 / len.max(1) as f64;
            cos.push(angle.cos());
            sin.push(if inverse { angle.sin() } else { -angle.sin() });
        }
    }
    let matrix = |all: &[f64]| Tensor::try_from_slice(all, [len, count])?.try_to_dtype(x.dtype());
    let (cos, sin) = (matrix(&cos)?, matrix(&sin)?);
    let part = |i| x.try_narrow(last as i64, i, 1)?.try_squeeze(&[last as i64][..]);
    let re = part(0)?;
    let (mut a, mut b) = (re.try_matmul(&cos)?, re.try_matmul(&sin)?);
    if !is_real {
        let im = part(1)?;
        a = a.try_sub(&im.try_matmul(&sin)?)?;
        b = b.try_add(&im.try_matmul(&cos)?)?;
    }
    let y = Tensor::try_stack(&[&a, &b], last as i64)?;
    let y = if inverse { y.try_div(len as f64)? } else { y };
    y.try_movedim(&[last as i64 - 1], &[at as i64])
}

/// Inverse of a one-sided transform; the other half is its mirror image.
fn real_inverse(x: &Tensor, at: usize, len: usize) -> Result<Tensor> {
    let half = len / 2 + 1;
    bounded(&[half, len])?;
    let last = x.rank() as i64 - 1;
    let has = x.shape()[at];
    if last < 1 || x.shape()[last as usize] != 2 || has < half {
        return Err(wrong(format!("{len} numbers need {half} complex ones, and {has} are there")));
    }
    let (mut cos, mut sin) = (Vec::new(), Vec::new());
    for k in 0..half {
        let times = if k == 0 || 2 * k == len { 1.0 } else { 2.0 };
        for j in 0..len {
            let angle = 2.0 * PI * ((j * k) % len) as f64 / len as f64;
            cos.push(times * angle.cos() / len as f64);
            sin.push(-times * angle.sin() / len as f64);
        }
    }
    let matrix = |all: &[f64]| Tensor::try_from_slice(all, [half, len])?.try_to_dtype(x.dtype());
    let moved = x.try_movedim(&[at as i64], &[last - 1])?.try_narrow(last - 1, 0, half)?;
    let part = |i| moved.try_narrow(last, i, 1)?.try_squeeze(&[last][..]);
    let y = part(0)?.try_matmul(&matrix(&cos)?)?;
    let y = y.try_add(&part(1)?.try_matmul(&matrix(&sin)?)?)?;
    y.try_unsqueeze(last)?.try_movedim(&[last - 1], &[at as i64])
}

pub(super) fn dft(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = match c.int_at(2)? {
        Some(at) => at,
        None => c.int("axis", if c.opset() < 20 { 1 } else { -2 }),
    };
    let at = axis(at, x.rank())?;
    let (inverse, onesided) = (c.flag("inverse"), c.flag("onesided"));
    if inverse && onesided {
        let usual = 2 * (signed(x)[at] - 1);
        return one(real_inverse(x, at, c.int_at(1)?.unwrap_or(usual).max(0) as usize)?);
    }
    let len = c.int_at(1)?.unwrap_or(signed(x)[at]).max(0) as usize;
    one(fourier(x, at, len, inverse, onesided)?)
}

pub(super) fn stft(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let step = c.int_at(1)?.unwrap_or(0).max(1) as usize;
    let len = match (c.int_at(3)?, c.opt(2)) {
        (Some(len), _) => len.max(1) as usize,
        (None, Some(window)) => window.numel(),
        (None, None) => return Err(wrong("neither a window nor a length is given")),
    };
    let x = match x.rank() {
        2 => x.try_unsqueeze(2)?,
        _ => x.clone(),
    };
    // [batch, frames, parts, len] to [batch, frames, len, parts].
    let mut frames = x.try_unfold(1, len, step)?.try_transpose(2, 3)?;
    if let Some(window) = c.opt(2) {
        frames = frames.try_mul(&window.try_unsqueeze(1)?)?;
    }
    one(fourier(&frames, 2, len, false, c.int("onesided", 1) != 0)?)
}
