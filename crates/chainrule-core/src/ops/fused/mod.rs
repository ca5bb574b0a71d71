//! Ops that do several steps in one kernel. Each carries its definition in primitive ops, which
//! gives its higher derivatives and is the oracle that its kernels are tested against.
//!
//! The backward of each is one op with a kernel, too. It only ever runs unrecorded, since a
//! recorded backward pass goes through the definition; so it has no rules of its own.

family! { Fused:
    attention
    batch_norm
    bce
    bce_with_logits
    cosine_embedding
    cosine_similarity
    cross_entropy
    cross_entropy_probabilities
    group_norm
    hinge
    hinge_embedding
    huber
    instance_norm
    kl_div
    l1_loss
    layer_norm
    linear
    log_softmax
    mse
    nll_loss
    rms_norm
    smooth_l1
    softmax
}

mod attention_options;
mod classes;
mod learned;
mod pointwise;
mod reduction;
mod row_norm;
mod shift;

pub use attention_options::Attention;
pub use bce::Bce;
pub use bce_with_logits::BceWithLogits;
pub use cosine_embedding::CosineEmbedding;
pub use cross_entropy::CrossEntropy;
pub use hinge_embedding::HingeEmbedding;
pub use huber::Huber;
pub use kl_div::KlDiv;
pub use nll_loss::NllLoss;
pub use reduction::Reduction;
pub use smooth_l1::SmoothL1;

use shift::shifted;

use crate::error::Result;
use crate::tensor::Tensor;

/// The tensor with `axis` moved to the end by an exchange with the last, and the axis as a number
/// from 0.
#[track_caller]
fn axis_last(op: &'static str, x: &Tensor, axis: i64) -> Result<(Tensor, i64)> {
    let axis = x.shape().axis(op, axis)? as i64;
    Ok((x.try_transpose(axis, -1)?, axis))
}

/// The logarithm of softmax over the last axis in primitive ops.
fn log_softmax_in_steps(x: &Tensor) -> Result<Tensor> {
    let z = shifted(x)?;
    z.try_sub(&z.try_exp()?.try_sum(-1, true)?.try_log()?)
}

#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod torch_tests;
