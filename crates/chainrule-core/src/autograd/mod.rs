//! Walks over the recorded graph: backward, forward mode, derivatives as functions, checkpoints,
//! custom ops, traces.

mod backward;
mod chart;
mod checkpoint;
mod contributions;
#[doc(hidden)]
pub mod custom;
#[doc(hidden)]
pub mod functional;
mod graph;
mod inspect;
mod pending;
mod svg;
mod trace;
#[doc(hidden)]
pub mod walk;

pub use backward::Backward;
#[doc(hidden)]
pub use backward::upstream;
pub use checkpoint::checkpoint;
pub use contributions::Contribution;
pub use custom::{CustomContext, CustomFn, CustomOp, apply_custom, custom};
#[doc(hidden)]
pub use custom::{context as custom_context, op_of as custom_of};
#[doc(hidden)]
#[doc(hidden)]
pub use functional::leads_beside;
pub use functional::{
    GradOptions, grad, grad_with, hessian, hvp, jacobian, jvp, value_and_grad, vjp,
};
pub use graph::{Graph, GraphTensor};
pub use inspect::NonFinite;
pub use trace::{Part, Step, Trace};

use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use walk::Walk;

/// The gradients of a fused op by way of its definition in primitive ops, recorded; `None` if the
/// op is not a fused one.
#[doc(hidden)]
pub fn by_definition(
    op: &dyn Op,
    at: &Saved<'_>,
    cotangent: &Tensor,
    wanted: Wanted,
) -> Option<Result<Grads>> {
    let definition = op.definition()?;
    let differentiate = || {
        // Aliases tell apart an input that is given twice, and one that is computed from another.
        let inputs = at.inputs().iter().map(Tensor::alias).collect::<Result<Vec<_>>>()?;
        let output = definition(&inputs)?;
        let targets: Vec<Tensor> =
            (0..inputs.len()).filter(|&i| wanted.get(i)).map(|i| inputs[i].clone()).collect();
        let walk = Walk { create_graph: true, targets: Some(&targets), ..Walk::default() };
        let mut found = walk.run(&[(&output, cotangent.clone())])?.into_iter();
        Ok((0..inputs.len())
            .map(|i| if wanted.get(i) { found.next().flatten() } else { None })
            .collect())
    };
    Some(differentiate())
}

#[cfg(test)]
mod tests;
