//! The losses of descriptions, as their names define them.

use chainrule_core::tensor::Tensor;

use crate::data::Targets;
use crate::description::Loss;
use crate::error::{Result, wrong};

/// The targets as the loss expects them: numbers of classes, or one number for each class, for an
/// output with this many units. An error if a class has no unit.
pub(crate) fn targets(loss: Loss, y: &Targets, rows: usize, units: usize) -> Result<Tensor> {
    let Targets::Classes(classes) = y else { return y.tensor(rows) };
    if let Some(class) = classes.iter().find(|&&c| c >= units) {
        return Err(wrong(format!("class {class} has no unit; the output has {units}")));
    }
    if matches!(loss, Loss::ScceLogits | Loss::ScceProbs) {
        return y.tensor(rows);
    }
    let mut numbers = vec![0.0f32; rows * units];
    for (row, &class) in numbers.chunks_exact_mut(units).zip(classes) {
        row[class] = 1.0;
    }
    Tensor::try_from_slice(&numbers, [rows, units])
}

/// `-(y log p)`, summed by row.
fn crossed(y: &Tensor, logs: &Tensor) -> Result<Tensor> {
    y.try_mul(logs)?.try_neg()?.try_sum(-1, false)
}

/// `-(y log p + (1 - y) log (1 - p))`.
fn binary(p: &Tensor, y: &Tensor) -> Result<Tensor> {
    let rest = (1.0 - y).try_mul(&(1.0 - p).try_log()?)?;
    y.try_mul(&p.try_log()?)?.try_add(&rest)?.try_neg()
}

/// The loss of output `o` for targets `y`.
pub(crate) fn loss(name: Loss, o: &Tensor, y: &Tensor) -> Result<Tensor> {
    let apart = || o.try_sub(y);
    match name {
        Loss::Mse => apart()?.try_square()?.try_mean_all(),
        Loss::Mae => apart()?.try_abs()?.try_mean_all(),
        Loss::Sse => apart()?.try_square()?.try_sum_all(),
        Loss::MseHalf => apart()?.try_square()?.try_sum_all()?.try_div(2.0 * o.size(0) as f32),
        Loss::MseBroadcast => {
            let flat = y.try_reshape([1, y.numel()])?;
            o.try_sub(&flat)?.try_square()?.try_mean_all()
        }
        Loss::Poisson => o.try_sub(&y.try_mul(&o.try_add(1e-7f32)?.try_log()?)?)?.try_mean_all(),
        Loss::BceProbs => binary(&o.try_clamp(1e-7f32, 1.0 - 1e-7f32)?, y)?.try_mean_all(),
        Loss::BceLogits => {
            let y = if y.shape() == o.shape() { y.clone() } else { y.try_expand(o.shape())? };
            o.try_bce_with_logits(&y)
        }
        Loss::BceRawSum => binary(o, y)?.try_sum(-1, false)?.try_mean_all(),
        Loss::CceProbs => {
            let sum = o.try_sum(-1, true)?;
            let p = o.try_div(&sum)?.try_clamp(1e-7f32, 1.0 - 1e-7f32)?;
            crossed(y, &p.try_log()?)?.try_mean_all()
        }
        Loss::CeClip32 => crossed(y, &o.try_clamp(1e-32f32, 1.0)?.try_log()?)?.try_mean_all(),
        Loss::CeSumClip => {
            y.try_mul(&o.try_clamp(1e-10f32, 1.0)?.try_log()?)?.try_sum_all()?.try_neg()
        }
        Loss::CceLogits => crossed(y, &o.try_log_softmax(-1)?)?.try_mean_all(),
        Loss::CceSumOver10 => crossed(y, &o.try_log_softmax(-1)?)?.try_sum_all()?.try_div(10.0f32),
        Loss::CceSumNaive => crossed(y, &o.try_softmax(-1)?.try_log()?)?.try_sum_all(),
        Loss::CceSoftmaxAxis0 => {
            let p = o.try_softmax(0)?.try_clamp(1e-32f32, 1.0)?;
            crossed(y, &p.try_log()?)?.try_mean_all()
        }
        Loss::MseSoftmax => o.try_softmax(-1)?.try_sub(y)?.try_square()?.try_mean_all(),
        Loss::ScceLogits => o.try_cross_entropy(y),
        Loss::ScceProbs => {
            let p = o.try_clamp(1e-7f32, 1.0 - 1e-7f32)?;
            let p = p.try_div(&p.try_sum(-1, true)?)?;
            p.try_log()?.try_nll_loss(y)
        }
    }
}
