//! Ops that do several steps in one kernel. Each carries its definition in primitive ops, which
//! gives its higher derivatives and is the oracle that its kernels are tested against.
//!
//! The backward of each is one op with a kernel, too. It only ever runs unrecorded, since a
//! recorded backward pass goes through the definition; so it has no rules of its own.

pub(super) mod attention;
pub(super) mod batch_norm;
pub(super) mod bce;
pub(super) mod bce_with_logits;
pub(super) mod cosine_embedding;
pub(super) mod cosine_similarity;
pub(super) mod cross_entropy;
pub(super) mod cross_entropy_probabilities;
pub(super) mod group_norm;
pub(super) mod hinge;
pub(super) mod hinge_embedding;
pub(super) mod huber;
pub(super) mod instance_norm;
pub(super) mod kl_div;
pub(super) mod l1_loss;
pub(super) mod layer_norm;
pub(super) mod linear;
pub(super) mod log_softmax;
pub(super) mod lstm_cell;
pub(super) mod mse;
pub(super) mod nll_loss;
pub(super) mod rms_norm;
pub(super) mod smooth_l1;
pub(super) mod softmax;

include!(concat!(env!("OUT_DIR"), "/fused.rs"));

mod attention_options;
mod bounded;
mod classes;
mod learned;
mod pointwise;
mod reduction;
pub(super) mod row_function;
mod row_norm;
mod shift;
mod weights_of_runs;

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
