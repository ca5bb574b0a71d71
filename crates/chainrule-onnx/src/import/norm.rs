//! Normalisation, dropout, rotary embedding and optimizer ops.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::ops::PadMode;

use super::call::{Call, NodeResult, dims, one, scalar, signed};
use super::wrong;

/// A per-channel tensor, broadcast along the channel axis.
fn channels(t: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1i64; rank.saturating_sub(1).max(1)];
    shape[0] = -1;
    t.try_reshape(shape.as_slice())
}

pub(super) fn batch(c: &Call<'_>) -> NodeResult {
    let (x, eps) = (c.x(0)?, c.float("epsilon", 1e-5));
    let (gain, bias, mean, var) = (c.x(1)?, c.x(2)?, c.x(3)?, c.x(4)?);
    let training = c.flag("training_mode") || c.opset() < 7 && c.opset() >= 6 && !c.flag("is_test");
    let (used, spread) = match training {
        false => (mean.clone(), var.clone()),
        true => {
            let axes: Vec<i64> = (0..x.rank() as i64).filter(|&a| a != 1).collect();
            (x.try_mean(axes.as_slice(), false)?, x.try_var(axes.as_slice(), 0, false)?)
        }
    };
    let wide = |t: &Tensor| channels(&t.try_to_dtype(x.dtype())?, x.rank());
    let scale = wide(gain)?.try_div(&wide(&spread)?.try_add(eps)?.try_sqrt()?)?;
    let y = x.try_sub(&wide(&used)?)?.try_mul(&scale)?.try_add(&wide(bias)?)?;
    if !training {
        return one(y);
    }
    let share = c.float("momentum", 0.9);
    let moved = |old: &Tensor, new: &Tensor| {
        let new = new.try_to_dtype(old.dtype())?.detach();
        old.try_mul(share)?.try_add(&new.try_mul(1.0 - share)?)
    };
    Ok(vec![y, moved(mean, &used)?, moved(var, &spread)?])
}

/// Converts to the dtype of the statistics, and back.
fn stashed(c: &Call<'_>, x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::F64 => Ok(x.clone()),
        _ if c.int("stash_type", 1) == 1 => x.try_to_dtype(DType::F32),
        _ => Ok(x.clone()),
    }
}

pub(super) fn layer(c: &Call<'_>) -> NodeResult {
    let (x, eps) = (c.x(0)?, c.float("epsilon", 1e-5));
    let at = c.axis("axis", -1, x.rank())?;
    let axes: Vec<i64> = (at as i64..x.rank() as i64).collect();
    let wide = stashed(c, x)?;
    if !c.wants(1) && !c.wants(2) {
        // As one op, which saves less for its gradient.
        let shape = &dims(x)[at..];
        let fits =
            |t: Option<&Tensor>| t.is_none_or(|t| dims(t) == shape && t.dtype() == x.dtype());
        if fits(c.opt(1)) && fits(c.opt(2)) && wide.dtype() == x.dtype() {
            return one(x.try_layer_norm(shape, c.opt(1), c.opt(2), eps)?);
        }
    }
    let mean = wide.try_mean(axes.as_slice(), true)?;
    let centred = wide.try_sub(&mean)?;
    let var = centred.try_mul(&centred)?.try_mean(axes.as_slice(), true)?;
    let inverse = var.try_add(eps)?.try_sqrt()?.try_reciprocal()?;
    let mut y = centred.try_mul(&inverse)?.try_to_dtype(x.dtype())?.try_mul(c.x(1)?)?;
    if let Some(bias) = c.opt(2) {
        y = y.try_add(bias)?;
    }
    Ok(vec![y, mean, inverse])
}

pub(super) fn rms(c: &Call<'_>) -> NodeResult {
    let (x, eps) = (c.x(0)?, c.float("epsilon", 1e-5));
    let at = c.axis("axis", -1, x.rank())?;
    let axes: Vec<i64> = (at as i64..x.rank() as i64).collect();
    let wide = stashed(c, x)?;
    let square = wide.try_mul(&wide)?.try_mean(axes.as_slice(), true)?;
    let y = wide.try_div(&square.try_add(eps)?.try_sqrt()?)?;
    one(y.try_to_dtype(x.dtype())?.try_mul(c.x(1)?)?)
}

pub(super) fn instance(c: &Call<'_>) -> NodeResult {
    let (x, eps) = (c.x(0)?, c.float("epsilon", 1e-5));
    one(x.try_instance_norm(Some(c.x(1)?), Some(c.x(2)?), eps)?)
}

pub(super) fn group(c: &Call<'_>) -> NodeResult {
    let (x, eps) = (c.x(0)?, c.float("epsilon", 1e-5));
    let groups = usize::try_from(c.int("num_groups", 1)).ok().filter(|&g| g > 0);
    let groups = groups.ok_or_else(|| wrong("its number of groups is 0"))?;
    let each = x.shape().get(1).copied().unwrap_or(0) / groups;
    // Before opset 21 the scale is per group.
    let spread = |t: &Tensor| match t.numel() == groups && each > 1 {
        true => t.try_repeat_interleave(each, 0),
        false => Ok(t.clone()),
    };
    one(x.try_group_norm(groups, Some(&spread(c.x(1)?)?), Some(&spread(c.x(2)?)?), eps)?)
}

/// Local response normalisation: each element divided by a power of the squares of the channels
/// around it.
pub(super) fn local_response(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let size = usize::try_from(c.int("size", 1)).ok().filter(|&s| s > 0);
    let size = size.ok_or_else(|| wrong("its size is 0"))?;
    let (alpha, beta) = (c.float("alpha", 1e-4), c.float("beta", 0.75));
    let before = (size - 1) / 2;
    let around = [before as i64, (size - 1 - before) as i64];
    let squares = x.try_mul(x)?.try_pad(&[(1, around)], PadMode::Constant(0.0))?;
    let sum = squares.try_unfold(1, size, 1)?.try_sum(&[-1i64][..], false)?;
    let base = sum.try_mul(alpha / size as f64)?.try_add(c.float("bias", 1.0))?;
    one(x.try_div(&base.try_pow(beta)?)?)
}

pub(super) fn lp(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = c.axis("axis", -1, x.rank())? as i64;
    let norm = match c.int("p", 2) {
        1 => x.try_abs()?.try_sum(&[at][..], true)?,
        _ => x.try_mul(x)?.try_sum(&[at][..], true)?.try_sqrt()?,
    };
    // Rows of zeros stay zero.
    let zero = norm.try_eq(0.0)?;
    one(x.try_div(&zero.try_where(&norm.ones_like(), &norm)?)?)
}

pub(super) fn mean_variance(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let axes = c.ints("axes").unwrap_or_else(|| vec![0, 2, 3]);
    let mean = x.try_mean(axes.as_slice(), true)?;
    let spread = x.try_mul(x)?.try_mean(axes.as_slice(), true)?.try_sub(&mean.try_mul(&mean)?)?;
    one(x.try_sub(&mean)?.try_div(&spread.try_sqrt()?.try_add(1e-9)?)?)
}

/// Dropout outside of training: the identity.
pub(super) fn dropout(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let ratio = c.float_at(1)?.unwrap_or_else(|| c.float("ratio", 0.5));
    let training = c.float_at(2)?.is_some_and(|on| on != 0.0);
    if training && ratio != 0.0 {
        return Err(wrong(
            "it draws numbers, which is not done here; export the model for inference",
        ));
    }
    let mask = Tensor::try_full(x.shape(), 1.0, DType::Bool)?;
    // Older opsets had a mask of the input's dtype.
    let mask = if c.opset() < 10 { mask.try_to_dtype(x.dtype())? } else { mask };
    Ok(vec![x.clone(), mask])
}

/// Rotary position embedding.
pub(super) fn rotary(c: &Call<'_>) -> NodeResult {
    let (x, cos, sin) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let four = x.rank() == 4;
    let (heads, sizes) = (c.int("num_heads", 0), signed(x));
    let x = match sizes[..] {
        // [batch, positions, heads, size]
        [_, _, _, _] => x.try_permute(&[0, 2, 1, 3])?,
        [b, s, h] if heads > 0 && h % heads == 0 => x.try_reshape(&[b, s, heads, h / heads][..])?,
        _ => return Err(wrong("its input has neither 4 axes nor 3 and a number of heads")),
    };
    let size = x.size(3);
    let turned = match c.int("rotary_embedding_dim", 0) {
        0 => size,
        n => usize::try_from(n).ok().filter(|&n| n <= size).ok_or_else(|| wrong("its size"))?,
    };
    let angles = |t: &Tensor| {
        let t = match c.opt(3) {
            Some(at) => {
                let shape = [&signed(at)[..], &signed(t)[1..]].concat();
                t.try_index_select(0, &at.try_reshape(&[-1][..])?)?.try_reshape(shape.as_slice())?
            }
            None => t.clone(),
        };
        t.try_unsqueeze(2)
    };
    let (cos, sin) = (angles(cos)?, angles(sin)?);
    let (x, rest) = (x.try_narrow(3, 0, turned)?, x.try_narrow(3, turned, size - turned)?);
    let interleaved = c.flag("interleaved");
    let half = turned / 2;
    let (a, b) = match interleaved {
        false => (x.try_narrow(3, 0, half)?, x.try_narrow(3, half, half)?),
        true => {
            let pairs = x.try_unflatten(3, &[half as i64, 2][..])?;
            let part = |i| pairs.try_narrow(4, i, 1)?.try_squeeze(&[4i64][..]);
            (part(0)?, part(1)?)
        }
    };
    let real = cos.try_mul(&a)?.try_sub(&sin.try_mul(&b)?)?;
    let imaginary = sin.try_mul(&a)?.try_add(&cos.try_mul(&b)?)?;
    let y = match interleaved {
        false => Tensor::try_cat(&[&real, &imaginary], 3)?,
        true => Tensor::try_stack(&[&real, &imaginary], 4)?.try_flatten(3, 4)?,
    };
    let y = Tensor::try_cat(&[&y, &rest], 3)?;
    one(if four { y.try_permute(&[0, 2, 1, 3])? } else { y.try_reshape(sizes.as_slice())? })
}

/// An affine grid for each batch.
pub(super) fn affine_grid(c: &Call<'_>) -> NodeResult {
    let (theta, size) = (c.x(0)?, super::call::integers(c.x(1)?)?);
    let image = size.get(2..).ok_or_else(|| wrong("its size has no axes of an image"))?;
    let corners = c.flag("align_corners");
    let n = image.len();
    let mut lines = Vec::new();
    // Coordinates are in reverse order of the axes.
    for (i, &d) in image.iter().enumerate().rev() {
        let step = |j: i64| match corners {
            true if d == 1 => 0.0,
            true => -1.0 + 2.0 * j as f64 / (d - 1) as f64,
            false => -1.0 + (2.0 * j as f64 + 1.0) / d as f64,
        };
        let line: Vec<f64> = (0..d).map(step).collect();
        let mut shape = vec![1i64; n];
        shape[i] = d;
        let line = Tensor::try_from_slice(&line, [line.len()])?.try_to_dtype(theta.dtype())?;
        let full: Vec<usize> = image.iter().map(|&d| d.max(0) as usize).collect();
        lines.push(line.try_reshape(shape.as_slice())?.try_expand(full.as_slice())?);
    }
    lines.push(lines[0].ones_like());
    let grid = Tensor::try_stack(&lines.iter().collect::<Vec<_>>(), n as i64)?;
    let flat = grid.try_reshape(&[-1, n as i64 + 1][..])?;
    let y = flat.try_matmul(&theta.try_transpose(1, 2)?)?;
    let shape = [&[size[0]], image, &[n as i64]].concat();
    one(y.try_reshape(shape.as_slice())?)
}

/// An optimizer step, as ONNX's training ops define it.
pub(super) fn momentum(c: &Call<'_>) -> NodeResult {
    let (alpha, beta) = (c.float("alpha", 0.0), c.float("beta", 0.0));
    let decay = c.float("norm_coefficient", 0.0);
    let (rate, step) = (c.x(0)?, c.float_at(1)?.unwrap_or(0.0));
    let count = (c.inputs.len() - 2) / 3;
    let (mut weights, mut kept) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (x, g, v) = (c.x(2 + i)?, c.x(2 + count + i)?, c.x(2 + 2 * count + i)?);
        let g = x.try_mul(decay)?.try_add(g)?;
        let share = if step > 0.0 { beta } else { 1.0 };
        let v = v.try_mul(alpha)?.try_add(&g.try_mul(share)?)?;
        let change = match c.text("mode", "standard") {
            "nesterov" => g.try_add(&v.try_mul(alpha)?)?,
            _ => v.clone(),
        };
        weights.push(x.try_sub(&change.try_mul(rate)?)?);
        kept.push(v);
    }
    Ok([weights, kept].concat())
}

pub(super) fn adagrad(c: &Call<'_>) -> NodeResult {
    let (decay, eps) = (c.float("norm_coefficient", 0.0), c.float("epsilon", 1e-6));
    let (rate, step) = (c.float_at(0)?.unwrap_or(0.0), c.float_at(1)?.unwrap_or(0.0));
    let rate = rate / (1.0 + step * c.float("decay_factor", 0.0));
    let count = (c.inputs.len() - 2) / 3;
    let (mut weights, mut kept) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (x, g, h) = (c.x(2 + i)?, c.x(2 + count + i)?, c.x(2 + 2 * count + i)?);
        let g = x.try_mul(decay)?.try_add(g)?;
        let h = h.try_add(&g.try_mul(&g)?)?;
        let change = g.try_div(&h.try_sqrt()?.try_add(eps)?)?;
        weights.push(x.try_sub(&change.try_mul(rate)?)?);
        kept.push(h);
    }
    Ok([weights, kept].concat())
}

pub(super) fn adam(c: &Call<'_>) -> NodeResult {
    let (alpha, beta) = (c.float("alpha", 0.9), c.float("beta", 0.999));
    let (decay, after) = (c.float("norm_coefficient", 0.0), c.float("norm_coefficient_post", 0.0));
    let eps = c.float("epsilon", 0.0);
    let (rate, step) = (c.float_at(0)?.unwrap_or(0.0), c.float_at(1)?.unwrap_or(0.0));
    let rate = match step > 0.0 {
        true => rate * (1.0 - beta.powf(step)).sqrt() / (1.0 - alpha.powf(step)),
        false => rate,
    };
    let count = (c.inputs.len() - 2) / 4;
    let (mut weights, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..count {
        let at = |part: usize| c.x(2 + part * count + i);
        let (x, g, v, h) = (at(0)?, at(1)?, at(2)?, at(3)?);
        let g = x.try_mul(decay)?.try_add(g)?;
        let v = v.try_mul(alpha)?.try_add(&g.try_mul(1.0 - alpha)?)?;
        let h = h.try_mul(beta)?.try_add(&g.try_mul(&g)?.try_mul(1.0 - beta)?)?;
        let change = v.try_mul(rate)?.try_div(&h.try_sqrt()?.try_add(eps)?)?;
        let x = x.try_sub(&change)?;
        weights.push(x.try_mul(&scalar(1.0 - after, x.dtype())?)?);
        first.push(v);
        second.push(h);
    }
    Ok([weights, first, second].concat())
}
