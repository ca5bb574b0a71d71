//! Attention.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::ops::PadMode;

use super::call::{Call, NodeResult, scalar, signed};
use super::{stored, wrong};

/// Splits heads: `[batch, heads, positions, size]`.
fn heads(x: &Tensor, count: i64) -> Result<Tensor> {
    match signed(x)[..] {
        [_, _, _, _] => Ok(x.clone()),
        [b, s, h] if count > 0 && h % count == 0 => {
            x.try_reshape(&[b, s, count, h / count][..])?.try_transpose(1, 2)
        }
        _ => Err(wrong(format!("shape {:?} for {count} heads", x.shape()))),
    }
}

/// Additive mask of the scores: 0, or minus infinity where a key is masked.
struct Bias {
    sum: Option<Tensor>,
    dtype: DType,
}

impl Bias {
    fn add(&mut self, t: Tensor) -> Result<()> {
        self.sum = Some(match &self.sum {
            Some(sum) => sum.try_add(&t)?,
            None => t,
        });
        Ok(())
    }

    /// Drops what the mask lacks.
    fn allow(&mut self, mask: &Tensor) -> Result<()> {
        let no = scalar(f64::NEG_INFINITY, self.dtype)?;
        self.add(mask.try_where(&scalar(0.0, self.dtype)?, &no)?)
    }
}

pub(super) fn attention(c: &Call<'_>) -> NodeResult {
    let (q, k, v) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let is_flat = q.rank() == 3;
    let (q_heads, kv_heads) = (c.int("q_num_heads", 0), c.int("kv_num_heads", 0));
    let (q, mut k, mut v) = (heads(q, q_heads)?, heads(k, kv_heads)?, heads(v, kv_heads)?);
    let before = c.opt(4).map_or(0, |past| past.shape()[2]) as i64;
    if let (Some(past_k), Some(past_v)) = (c.opt(4), c.opt(5)) {
        k = Tensor::try_cat(&[past_k, &k], 2)?;
        v = Tensor::try_cat(&[past_v, &v], 2)?;
    }
    let present = (k.clone(), v.clone());
    let dtype = q.dtype();
    let (queries, keys) = (q.shape()[2] as i64, k.shape()[2] as i64);
    let mut bias = Bias { sum: None, dtype };
    if let Some(mask) = c.opt(3) {
        let short = keys - mask.size(-1) as i64;
        let is_bool = mask.dtype() == DType::Bool;
        let mask = match short {
            1.. if is_bool => {
                let all = mask.try_to_dtype(DType::U8)?;
                all.try_pad(&[(-1, [0, short])], PadMode::Constant(0.0))?
                    .try_to_dtype(mask.dtype())?
            }
            1.. => mask.try_pad(&[(-1, [0, short])], PadMode::Constant(f64::NEG_INFINITY))?,
            _ => mask.clone(),
        };
        if is_bool { bias.allow(&mask)? } else { bias.add(mask)? }
    }
    let valid = c.opt(6).map(|n| n.try_to_dtype(DType::I64)).transpose()?;
    let column = Tensor::arange(0, keys);
    // Positions of the queries among the keys: per batch, if the keys' lengths differ.
    let mut row = Tensor::arange(0, queries).try_unsqueeze(1)?;
    row = match &valid {
        Some(valid) if c.opt(4).is_none() => {
            let first = valid.try_sub(Tensor::scalar(queries))?;
            row.try_add(&first.try_reshape(&[-1, 1, 1, 1][..])?)?
        }
        _ => row.try_add(Tensor::scalar(before))?,
    };
    if c.flag("is_causal") {
        bias.allow(&column.try_le(&row)?)?;
    }
    let (left, right) = (c.int("left_window_size", -1), c.int("right_window_size", -1));
    if left >= 0 {
        bias.allow(&column.try_ge(&row.try_sub(Tensor::scalar(left))?)?)?;
    }
    if right >= 0 {
        bias.allow(&column.try_le(&row.try_add(Tensor::scalar(right))?)?)?;
    }
    if let Some(valid) = &valid {
        bias.allow(&column.try_lt(&valid.try_reshape(&[-1, 1, 1, 1][..])?)?)?;
    }
    let (own, shared) = (q.shape()[1], k.shape()[1]);
    if own != shared && shared > 0 && own % shared == 0 {
        k = k.try_repeat_interleave(own / shared, 1)?;
        v = v.try_repeat_interleave(own / shared, 1)?;
    }
    let scale = c.float_or_none("scale").unwrap_or_else(|| 1.0 / (q.size(3) as f64).sqrt());
    let scale = scalar(scale.sqrt(), dtype)?;
    let keys = k.try_mul(&scale)?.try_transpose(2, 3)?;
    let mut scores = q.try_mul(&scale)?.try_matmul(&keys)?;
    // Stage of the scores in the last result.
    let mode = c.int("qk_matmul_output_mode", 0);
    let mut shown = scores.clone();
    let cap = c.float("softcap", 0.0);
    if cap > 0.0 {
        scores = scores.try_div(cap)?.try_tanh()?.try_mul(cap)?;
    }
    if mode == 1 {
        shown = scores.clone();
    }
    if let Some(bias) = &bias.sum {
        scores = scores.try_add(bias)?;
    }
    if mode == 2 {
        shown = scores.clone();
    }
    let precision = c.int_or_none("softmax_precision").map(stored::dtype).transpose()?;
    let wide = scores.try_to_dtype(precision.unwrap_or(dtype))?;
    let mut weights = wide.try_softmax(-1)?.try_to_dtype(dtype)?;
    if let Some(bias) = &bias.sum {
        // A query whose keys are all masked gives zeros.
        let none = bias.try_amax(&[-1i64][..], true)?.try_eq(f64::NEG_INFINITY)?;
        weights = none.try_where(&weights.zeros_like(), &weights)?;
    }
    if mode == 3 {
        shown = weights.clone();
    }
    let mut y = weights.try_matmul(&v)?;
    if is_flat {
        y = y.try_transpose(1, 2)?.try_flatten(2, 3)?;
    }
    Ok(vec![y, present.0, present.1, shown])
}
