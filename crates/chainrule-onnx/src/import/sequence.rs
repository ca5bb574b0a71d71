//! Flex attention, linear attention and stateful convolution.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, bounded, dims, one, signed};
use super::conv::of_window;
use super::{stored, wrong};

/// Repeats shared heads for each query head.
fn repeated(t: &Tensor, own: usize) -> Result<Tensor> {
    let shared = t.shape()[1];
    match own == shared || shared == 0 || !own.is_multiple_of(shared) {
        true => Ok(t.clone()),
        false => t.try_repeat_interleave(own / shared, 1),
    }
}

/// Attention whose scores and weights pass through subgraphs.
pub(super) fn flex(c: &Call<'_>) -> NodeResult {
    let (q, k, v) = (c.x(0)?, c.x(1)?, c.x(2)?);
    if [q, k, v].iter().any(|t| t.rank() != 4) {
        return Err(wrong("its inputs have not 4 axes each"));
    }
    let own = q.shape()[1];
    let (k, v) = (repeated(k, own)?, repeated(v, own)?);
    let scale = c.float_or_none("scale").unwrap_or_else(|| 1.0 / (q.size(3) as f64).sqrt());
    let usual = if q.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let wide = c.int_or_none("softmax_precision").map(stored::dtype).transpose()?.unwrap_or(usual);
    let changed = |name: &str, t: Tensor| match c.attr(name) {
        None => Ok(t),
        Some(_) => {
            let made = c.graph(name)?.call(c.scope, vec![t])?.into_iter().next();
            made.ok_or_else(|| wrong(format!("its graph `{name}` gives nothing")))
        }
    };
    let scores = q.try_matmul(&k.try_transpose(2, 3)?)?.try_to_dtype(wide)?.try_mul(scale)?;
    let weights = changed("score_mod", scores)?.try_softmax(-1)?;
    let weights = changed("prob_mod", weights)?.try_to_dtype(q.dtype())?;
    one(weights.try_matmul(&v)?)
}

/// Linear attention: a state of keys by values that each step updates and each query reads.
pub(super) fn linear(c: &Call<'_>) -> NodeResult {
    let rule = c.text("update_rule", "gated_delta");
    let (gated, delta) = match rule {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(wrong(format!("the update rule {other:?} is not known"))),
    };
    let (own, shared) = (c.int("q_num_heads", 0), c.int("kv_num_heads", 0));
    if own < 1 || shared < 1 || own % shared != 0 {
        return Err(wrong(format!("{own} heads of queries share {shared} of keys")));
    }
    // [batch, heads, steps, size], in f32 or wider.
    let dtype = c.x(0)?.dtype();
    let inner = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let heads = |t: &Tensor, count: i64| match signed(t)[..] {
        [b, t_len, size] if size % count == 0 => t
            .try_to_dtype(inner)?
            .try_reshape(&[b, t_len, count, size / count][..])?
            .try_transpose(1, 2),
        _ => Err(wrong(format!("shape {:?} for {count} heads", t.shape()))),
    };
    let q = heads(c.x(0)?, own)?;
    let (k, v) = (heads(c.x(1)?, shared)?, heads(c.x(2)?, shared)?);
    let decay = if gated { Some(heads(c.x(4)?, shared)?.try_exp()?) } else { None };
    let rate = match delta {
        true => {
            let rate = c.x(5)?;
            Some(heads(rate, if rate.size(-1) == 1 { 1 } else { shared })?)
        }
        false => None,
    };
    let (steps, keys, values) = (q.size(2), k.size(3), v.size(3));
    let mut state = match c.opt(3) {
        Some(past) => past.try_to_dtype(inner)?,
        None => Tensor::try_full([k.size(0), k.size(1), keys, values], 0.0, inner)?,
    };
    let scale = match c.float("scale", 0.0) {
        0.0 => 1.0 / (q.size(3) as f64).sqrt(),
        scale => scale,
    };
    // A column of each head: [batch, heads, size, 1].
    let column = |t: &Tensor, at: usize| t.try_narrow(2, at, 1)?.try_transpose(2, 3);
    let mut rows = Vec::new();
    for at in 0..steps {
        let (key, value) = (column(&k, at)?, v.try_narrow(2, at, 1)?);
        if let Some(decay) = &decay {
            state = state.try_mul(&column(decay, at)?)?;
        }
        let change = match &rate {
            None => value,
            Some(rate) => {
                let known = key.try_transpose(2, 3)?.try_matmul(&state)?;
                value.try_sub(&known)?.try_mul(&rate.try_narrow(2, at, 1)?)?
            }
        };
        state = state.try_add(&key.try_matmul(&change)?)?;
        let read = repeated(&state, own as usize)?;
        rows.push(q.try_narrow(2, at, 1)?.try_matmul(&read)?);
    }
    if rows.is_empty() {
        return Err(wrong("it has no steps"));
    }
    let y = Tensor::try_cat(&rows.iter().collect::<Vec<_>>(), 2)?.try_mul(scale)?;
    let y = y.try_transpose(1, 2)?.try_flatten(2, 3)?.try_to_dtype(dtype)?;
    let kept = c.opt(3).map_or(dtype, Tensor::dtype);
    Ok(vec![y, state.try_to_dtype(kept)?])
}

/// A causal depthwise convolution.
pub(super) fn causal_conv(c: &Call<'_>) -> NodeResult {
    let (x, weight) = (c.x(0)?, c.x(1)?);
    let ([batch, channels, steps], [_, _, size]) = (&dims(x)[..], &dims(weight)[..]) else {
        return Err(wrong("its input and kernels have not 3 axes each"));
    };
    let before = size.saturating_sub(1);
    let past = match c.opt(3) {
        Some(past) => past.clone(),
        None => Tensor::try_full([*batch, *channels, before], 0.0, x.dtype())?,
    };
    let all = Tensor::try_cat(&[&past, x], 2)?;
    let mut y = of_window(&all, weight, *channels)?;
    if let Some(bias) = c.opt(2) {
        y = y.try_add(&bias.try_unsqueeze(1)?)?;
    }
    y = match c.text("activation", "none") {
        "none" => y,
        "silu" | "swish" => y.try_mul(&y.try_sigmoid()?)?,
        other => return Err(wrong(format!("the activation {other:?} is not known"))),
    };
    Ok(vec![y, all.try_narrow(2, *steps, before)?])
}

/// The mel filter bank: a matrix from frequencies to bands.
pub(super) fn mel(c: &Call<'_>) -> NodeResult {
    let (bands, len) = (c.int_at(0)?.unwrap_or(0), c.int_at(1)?.unwrap_or(0));
    let rate = c.int_at(2)?.unwrap_or(0).max(1) as f64;
    let (low, high) = (c.float_at(3)?.unwrap_or(0.0), c.float_at(4)?.unwrap_or(0.0));
    if !(0..1 << 16).contains(&bands) || !(0..1 << 24).contains(&len) {
        return Err(wrong(format!("{bands} bands of {len} frequencies")));
    }
    let (bands, rows) = (bands as usize, len as usize / 2 + 1);
    bounded(&[bands, rows])?;
    let pitch = |f: f64| 2595.0 * (1.0 + f / 700.0).log10();
    let (first, last) = (pitch(low), pitch(high));
    let step = (last - first) / (bands as f64 + 2.0);
    let bin = |i: usize| {
        let f = 700.0 * (10f64.powf((first + i as f64 * step) / 2595.0) - 1.0);
        ((len as f64 + 1.0) * f / rate).floor()
    };
    let mut all = vec![0.0; rows * bands];
    for band in 0..bands {
        let (from, middle, to) = (bin(band), bin(band + 1), bin(band + 2));
        for row in 0..rows {
            let at = row as f64;
            all[row * bands + band] = if at == middle && from == middle {
                1.0
            } else if (from..=middle).contains(&at) {
                (at - from) / (middle - from)
            } else if (middle..to).contains(&at) {
                (to - at) / (to - middle)
            } else {
                0.0
            };
        }
    }
    let dtype = stored::dtype(c.int("output_datatype", 1))?;
    one(Tensor::try_from_slice(&all, [rows, bands])?.try_to_dtype(dtype)?)
}
