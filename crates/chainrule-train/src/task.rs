//! The task of a training: a model and its data.

use crate::data::Batch;
use crate::error::Result;
use crate::nn::Module;
use crate::tensor::Tensor;

/// A model, the loss of a batch, and how the model is measured.
pub trait Task {
    /// The model: its parameters are trained; all its state is saved.
    fn module(&self) -> &dyn Module;

    /// The mean loss of a batch, in training mode.
    fn loss(&self, batch: &Batch) -> Result<Tensor>;

    /// The loss of a batch, after its gradients were added to those of the parameters.
    ///
    /// A model whose backward pass is written by hand does this its own way.
    fn gradients(&self, batch: &Batch) -> Result<Tensor> {
        let loss = self.loss(batch)?;
        loss.try_backward()?;
        Ok(loss)
    }

    /// Whether [`Task::gradients`] is the backward pass of [`Task::loss`], so that a step can be
    /// made a program of.
    fn has_plain_gradients(&self) -> bool {
        true
    }

    /// Measures the model on examples that it does not learn from. The first measure decides what
    /// is best; see [`Task::higher_is_better`].
    fn evaluate(&self) -> Result<Metrics> {
        Ok(Metrics::new())
    }

    /// Whether a higher first measure is better, as for an accuracy. A loss is better when lower.
    fn higher_is_better(&self) -> bool {
        false
    }

    /// Looks at the last step, if [`TrainerOptions::looks_at_the_last`](super::TrainerOptions) is
    /// set: its loss, of which all intermediates are recorded and all gradients are there, and the
    /// rate of the update that follows.
    fn look(&self, loss: &Tensor, lr: f64) {
        let _ = (loss, lr);
    }

    /// Something that the model makes, to be shown after a measurement.
    fn sample(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Unit of [`Task::count`]: `examples`, `tokens`.
    fn counted(&self) -> &'static str {
        "examples"
    }

    /// Number of examples, or tokens, in a batch.
    fn count(&self, batch: &Batch) -> u64 {
        batch.x.shape().first().map_or(1, |&n| n as u64)
    }
}

/// Measures by name.
pub type Metrics = Vec<(&'static str, f64)>;
