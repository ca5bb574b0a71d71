//! Attention over a cache of earlier positions.

use chainrule_core::error::Result;
use chainrule_core::ops::Attention;
use chainrule_core::tensor::Tensor;

/// Splits heads: `[batch, time, heads * each]` to `[batch, heads, time, each]`.
pub fn split(x: &Tensor, heads: usize) -> Result<Tensor> {
    let shape = x.shape();
    let (batch, time, width) = (shape[0], shape[1], shape[2]);
    x.try_reshape([batch, time, heads, width / heads])?.try_transpose(1, 2)
}

/// Joins heads: `[batch, heads, time, each]` to `[batch, time, heads * each]`.
pub fn join(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let (batch, heads, time, each) = (shape[0], shape[1], shape[2], shape[3]);
    x.try_transpose(1, 2)?.try_reshape([batch, time, heads * each])
}

/// Causal attention of queries `[batch, heads, time, each]`, the last `time` of all positions, over
/// keys and values `[batch, groups, all, each]`; `heads / groups` queries share a key.
pub fn attend(q: &Tensor, k: &Tensor, v: &Tensor, scale: Option<f64>) -> Result<Tensor> {
    let (of_q, of_k) = (q.shape(), k.shape());
    let (batch, heads, time, each) = (of_q[0], of_q[1], of_q[2], of_q[3]);
    let (groups, all) = (of_k[1], of_k[2]);
    let mut options = Attention { scale, ..Attention::default() };
    match all - time {
        0 => options.causal = true,
        // A single query at the end attends to everything.
        _ if time == 1 => {}
        past => {
            let (i, j) = (Tensor::arange(0, time as i64), Tensor::arange(0, all as i64));
            options.mask = Some(j.try_le(&i.try_add(past as i64)?.try_reshape([time, 1])?)?);
        }
    }
    if heads == groups {
        return q.try_attention(k, v, &options);
    }
    let q = q.try_reshape([batch, groups, heads / groups, time, each])?;
    let y = q.try_attention(&k.try_unsqueeze(2)?, &v.try_unsqueeze(2)?, &options)?;
    y.try_reshape([batch, heads, time, each])
}
