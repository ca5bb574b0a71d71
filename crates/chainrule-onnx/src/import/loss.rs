//! Loss ops.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, one};
use super::wrong;

/// Negative log likelihood of log-probabilities `[rows, classes, ...]` and class indices.
fn likelihood(c: &Call<'_>, logs: &Tensor) -> Result<Tensor> {
    let target = c.x(1)?.try_to_dtype(DType::I64)?;
    if logs.rank() < 2 || target.rank() + 1 != logs.rank() {
        let (a, b) = (logs.shape(), target.shape());
        return Err(wrong(format!("targets of shape {b:?} for values of shape {a:?}")));
    }
    let kept = match c.int_or_none("ignore_index") {
        Some(left) => Some(target.try_ne(Tensor::scalar(left))?),
        None => None,
    };
    let class = match &kept {
        Some(kept) => kept.try_where(&target, target.zeros_like())?,
        None => target,
    };
    let chosen = logs.try_gather(1, &class.try_unsqueeze(1)?)?.try_squeeze(&[1i64][..])?;
    let mut weight = match c.opt(2) {
        Some(all) => {
            let flat = all.try_index_select(0, &class.try_reshape(&[-1][..])?)?;
            flat.try_reshape(class.shape())?
        }
        None => Tensor::try_full(class.shape(), 1.0, logs.dtype())?,
    };
    if let Some(kept) = &kept {
        weight = kept.try_where(&weight, 0.0)?;
    }
    let each = chosen.try_neg()?.try_mul(&weight)?;
    match c.text("reduction", "mean") {
        "none" => Ok(each),
        "sum" => each.try_sum_all(),
        "mean" => each.try_sum_all()?.try_div(&weight.try_sum_all()?),
        other => Err(wrong(format!("reduction {other:?} is not known"))),
    }
}

pub(super) fn negative_log_likelihood(c: &Call<'_>) -> NodeResult {
    one(likelihood(c, c.x(0)?)?)
}

pub(super) fn softmax_cross_entropy(c: &Call<'_>) -> NodeResult {
    let logs = c.x(0)?.try_log_softmax(1)?;
    Ok(vec![likelihood(c, &logs)?, logs])
}
