//! The exercises of the lecture on backpropagation by hand, on the names model: an embedding, a
//! hidden layer with batch norm and tanh, an output layer and cross-entropy.
//!
//! 1. The backward pass through every small step: [`backward()`] beside autograd, all 19
//!    intermediates and 7 parameters.
//! 2. Cross-entropy in one formula, [`cross_entropy_collapse`].
//! 3. Batch norm in one formula, [`batch_norm_collapse`].
//! 4. Training with [`backward_collapsed`] instead of autograd, [`train`].
//!
//! ```
//! use chainrule::{DType, Generator, Tensor};
//! use chainrule_lab::names::{self, Batch, Parameters};
//!
//! let parameters = Parameters::new(DType::F64, &mut Generator::manual_seed(2147483647))?;
//! let batch = Batch::new(
//!     Tensor::from([[0i64, 0, 5], [0, 5, 13], [5, 13, 13]]),
//!     Tensor::from([13i64, 13, 1]),
//! )?;
//! let report = names::exercise_1(&parameters, &batch)?;
//! assert_eq!(report.rows.len(), 26);
//! assert!(report.passed(), "{report}");
//! # Ok::<(), chainrule::Error>(())
//! ```

mod backward;
mod collapse;
mod forward;
#[cfg(test)]
mod tests;
mod training;

pub use backward::{Gradients, backward};
pub use collapse::{backward_collapsed, batch_norm_collapse, cross_entropy_collapse};
pub use forward::{Batch, Parameters, Pass, forward};
pub use training::{Training, train};

use crate::error::Result;
use crate::tensor::no_grad;
use chainrule_check::compare::{Comparison, compare};

/// The first exercise: all 26 gradients, step by step.
pub fn exercise_1(parameters: &Parameters, batch: &Batch) -> Result<Comparison> {
    let pass = forward(parameters, batch)?;
    compare(&pass.loss, backward(parameters, &pass, batch))
}

/// The second: the gradient of the logits in one formula. The loss is the fused cross-entropy.
pub fn exercise_2(parameters: &Parameters, batch: &Batch) -> Result<Comparison> {
    let logits = forward(parameters, batch)?.logits;
    let loss = logits.try_cross_entropy(&batch.targets)?;
    compare(&loss, [("logits", &logits, cross_entropy_collapse(&logits, batch))])
}

/// The third: the gradient of the hidden layer before batch norm in one formula.
pub fn exercise_3(parameters: &Parameters, batch: &Batch) -> Result<Comparison> {
    let pass = forward(parameters, batch)?;
    let dhpreact = no_grad(|| {
        let dh = cross_entropy_collapse(&pass.logits, batch).matmul(&parameters.w2.t());
        (1.0 - pass.h.square()) * dh
    });
    let dhprebn = batch_norm_collapse(parameters, &pass, &dhpreact);
    compare(&pass.loss, [("hpreact", dhpreact), ("hprebn", dhprebn)])
}
