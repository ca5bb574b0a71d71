//! Losses of classes whose weights are others in each run of a program. The ops of these losses
//! hold the weights as numbers, and a program would keep those of its trace: here the weights are
//! an input of ops.

use super::classes::{batch, class_weight, rows};
use super::cross_entropy::CrossEntropy;
use super::nll_loss::NllLoss;
use super::reduction::Reduction;
use crate::ops::prelude::*;
use crate::tensor::log;

/// The weights, if they may be others in the next run of a program that is being traced.
pub(super) fn varying(weight: &Option<Tensor>) -> Option<&Tensor> {
    weight.as_ref().filter(|w| log::varies(w))
}

/// `cross_entropy` of class numbers. A row's loss is `(1 - s) w[y] nll + s / classes * sum(w nll)`.
#[track_caller]
pub(super) fn cross_entropy(
    x: &Tensor,
    targets: &Tensor,
    weight: &Tensor,
    options: &CrossEntropy,
) -> Result<Tensor> {
    let CrossEntropy { reduction, ignore_index, label_smoothing: s, .. } = *options;
    let weight = class_weight("cross_entropy", weight, x)?;
    let plain =
        CrossEntropy { reduction: Reduction::None, ignore_index, ..CrossEntropy::default() };
    let own = x.try_cross_entropy_with(targets, &plain)?;
    let weights = of_targets(&weight, targets, ignore_index)?;
    let mut losses = own.try_mul(&weights)?;
    if s != 0.0 {
        let share = s / weight.numel().max(1) as f64;
        let logp = rows(x)?.try_log_softmax(-1)?;
        let all = logp.try_matmul(&weight)?.try_reshape(targets.shape())?.try_mul(-share)?;
        let all = match ignore_index {
            Some(ignored) => all.try_mul(&targets.try_ne(ignored)?.try_to_dtype(x.dtype())?)?,
            None => all,
        };
        losses = losses.try_mul(1.0 - s)?.try_add(&all)?;
    }
    reduced(&losses, &weights, reduction, batch(x))
}

/// `nll_loss`: a row's loss is `-w[y] x[y]`.
#[track_caller]
pub(super) fn nll_loss(
    x: &Tensor,
    targets: &Tensor,
    weight: &Tensor,
    options: &NllLoss,
) -> Result<Tensor> {
    let weight = class_weight("nll_loss", weight, x)?;
    let ignore_index = options.ignore_index;
    let plain = NllLoss { reduction: Reduction::None, ignore_index, weight: None };
    let own = x.try_nll_loss_with(targets, &plain)?;
    let weights = of_targets(&weight, targets, ignore_index)?;
    reduced(&own.try_mul(&weights)?, &weights, options.reduction, batch(x))
}

/// The weight of each target, 0 for those that do not count.
fn of_targets(weight: &Tensor, targets: &Tensor, ignored: Option<i64>) -> Result<Tensor> {
    let n = targets.numel();
    let pick = |at: &Tensor| {
        weight.try_index_select(0, &at.try_reshape([n])?)?.try_reshape(targets.shape())
    };
    let Some(ignored) = ignored else {
        return pick(targets);
    };
    let kept = targets.try_ne(ignored)?;
    let safe = targets.try_mul(&kept.try_to_dtype(targets.dtype())?)?;
    pick(&safe)?.try_mul(&kept.try_to_dtype(weight.dtype())?)
}

fn reduced(
    losses: &Tensor,
    weights: &Tensor,
    reduction: Reduction,
    batch: usize,
) -> Result<Tensor> {
    match reduction {
        Reduction::Mean => losses.try_sum_all()?.try_div(&weights.try_sum_all()?),
        _ => reduction.apply(losses, batch as f64),
    }
}
