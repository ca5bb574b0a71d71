//! The task of a run: a model and its loss.

use crate::data::Batch;
use crate::error::Result;
use crate::nn::Module;
use crate::tensor::Tensor;

/// A model, the loss of a batch, and the model's evaluation.
pub trait Task {
    /// The model: its parameters are trained; all its state is saved.
    fn module(&self) -> &dyn Module;

    /// The mean loss of a batch, in training mode.
    fn loss(&self, batch: &Batch) -> Result<Tensor>;

    /// The loss of a batch, after adding its gradients to those of the parameters.
    ///
    /// Override it for a model with an explicit backward pass.
    fn gradients(&self, batch: &Batch) -> Result<Tensor> {
        let loss = self.loss(batch)?;
        loss.try_backward()?;
        Ok(loss)
    }

    /// Whether [`Task::gradients`] is the backward pass of [`Task::loss`], so that a step can be
    /// compiled.
    fn has_plain_gradients(&self) -> bool {
        true
    }

    /// Evaluates the model on held-out examples. The first measure decides on the best; see
    /// [`Task::higher_is_better`].
    fn evaluate(&self) -> Result<Metrics> {
        self.evaluation().map_or(Ok(Metrics::new()), Evaluation::whole)
    }

    /// Evaluation in parts, which ranks share; [`Task::evaluate`] is its default sum. Without it
    /// every rank runs all of [`Task::evaluate`].
    fn evaluation(&self) -> Option<&dyn Evaluation> {
        None
    }

    /// Whether a higher first measure is better, as for an accuracy. A loss is better when lower.
    fn higher_is_better(&self) -> bool {
        false
    }

    /// Inspects the last step, if [`TrainerOptions::looks_at_the_last`](super::TrainerOptions) is
    /// set: its loss with all recorded intermediates and gradients, and the rate of the update that
    /// follows.
    fn look(&self, loss: &Tensor, lr: f64) {
        let _ = (loss, lr);
    }

    /// A sample of the model's output, shown after an evaluation.
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

/// Evaluation as sums over the examples, in parts.
///
/// ```
/// use chainrule::train::{Evaluation, Metrics};
/// struct Squares;
/// impl Evaluation for Squares {
///     fn parts(&self) -> usize {
///         3
///     }
///     fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
///         Ok(vec![(number * number) as f64, 1.0]) // a sum, and the count of its examples
///     }
///     fn measures(&self, sums: &[f64]) -> Metrics {
///         vec![("mean", sums[0] / sums[1])]
///     }
/// }
/// assert_eq!(Squares.whole()?, [("mean", 5.0 / 3.0)]);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub trait Evaluation {
    /// The number of parts, such as batches; the same on all ranks.
    fn parts(&self) -> usize;

    /// Work of all ranks before the first part, such as calibrating batch norm.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Sums over the examples of part `number`, from 0; the same count for each part.
    fn part(&self, number: usize) -> Result<Vec<f64>>;

    /// Measures from the total sums.
    fn measures(&self, sums: &[f64]) -> Metrics;

    /// Measures of all parts, summed in order.
    fn whole(&self) -> Result<Metrics> {
        self.prepare()?;
        let parts: Result<Vec<Vec<f64>>> = (0..self.parts()).map(|i| self.part(i)).collect();
        Ok(self.measures(&added(parts?)))
    }
}

/// Total sums, added in order, so that their bits do not depend on the ranks.
pub(crate) fn added(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut sums = Vec::new();
    for part in parts {
        if sums.is_empty() {
            sums = vec![0.0; part.len()];
        }
        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    sums
}

/// Measures by name.
pub type Metrics = Vec<(&'static str, f64)>;
