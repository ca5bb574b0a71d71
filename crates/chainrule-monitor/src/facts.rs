//! Facts about the data, the model and its settings that a caller reports beside tensors.

use chainrule_core::tensor::Tensor;

use crate::Monitor;
use crate::detect;
use crate::numbers::with;
use crate::series::Series;
use crate::stats::Stats;

/// Something that an output depends on, but must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dependence {
    /// The other examples of the batch.
    OtherExamples,
    /// Later places of the sequence.
    LaterPlaces,
}

/// Facts about the data and the model that callers report beside tensors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The largest input, its spread, and the step of one that is not finite.
    pub inputs: Series<f64>,
    pub bad_input: Option<u64>,
    /// Rows of a batch that never changes, and of the data that it is part of.
    pub same: Option<(u64, u64)>,
    /// Passes of training in evaluation mode, and of evaluation in training mode.
    pub modes: (u64, u64),
    pub dependence: Option<(Dependence, f64)>,
    pub settings: Vec<(String, f64)>,
    /// Steps whose gradients were there after backward and gone at the update.
    pub emptied: (u64, u64),
    /// Steps whose gradients were reversed before the update, out of those whose gradients were
    /// changed.
    pub turned: (u64, u64),
    /// The largest input of the batch with the spike.
    pub of_spike: Option<f64>,
}

impl Monitor {
    /// Takes the inputs of a step that [is due](Monitor::is_due), or of one with a
    /// [spike](Monitor::is_spike).
    pub fn inputs(&mut self, inputs: &Tensor) {
        let all = with(inputs, |all| Stats::of_all(all, false));
        if all.not_finite() > 0 {
            self.told.bad_input.get_or_insert(self.steps);
        }
        let largest = all.largest();
        if self.is_spike() {
            self.told.of_spike = Some(largest);
        } else {
            self.told.inputs.push(self.steps, largest);
        }
    }

    /// Whether the loss of the last finished step was a spike.
    pub fn is_spike(&self) -> bool {
        self.spike.is_some_and(|(step, ..)| step + 1 == self.steps)
    }

    /// Every step so far had the same `rows` examples, out of `of` in the data.
    pub fn same_batch(&mut self, rows: u64, of: u64) {
        self.told.same = Some((rows, of));
    }

    /// The batches differ.
    pub fn other_batch(&mut self) {
        self.told.same = None;
    }

    /// A pass in the wrong mode, of a model whose modes differ: its gradient is taken in evaluation
    /// mode, or it measures in training mode.
    pub fn wrong_mode(&mut self, is_training: bool) {
        let count = if is_training { &mut self.told.modes.0 } else { &mut self.told.modes.1 };
        *count += 1;
    }

    /// The output moved by that share when something changed that it must not depend on.
    pub fn depends(&mut self, on: Dependence, share: f64) {
        self.told.dependence.get_or_insert((on, share));
    }

    /// A setting of the optimizer or the model: `momentum`, `dampening`, `beta1`, `beta2`, `eps`,
    /// `weight_decay`, `dropout`, and `other_optimizers`, which step unreported parameters and so
    /// move the loss too. The newest value counts.
    pub fn setting(&mut self, name: &str, value: f64) {
        match self.told.settings.iter_mut().find(|s| s.0 == name) {
            Some(setting) => setting.1 = value,
            None => self.told.settings.push((name.to_owned(), value)),
        }
    }

    /// The loss on examples that the model does not learn from.
    pub fn validated(&mut self, loss: f64) {
        self.validated_at(self.steps, loss);
    }

    pub(crate) fn validated_at(&mut self, step: u64, loss: f64) {
        let spans = self.losses.spans();
        let tail = &spans[spans.len().saturating_sub(5)..];
        let trained = detect::median(tail.iter().map(|s| s.mean).collect()).unwrap_or(f64::NAN);
        self.validations.push(step, (loss, trained));
    }
}
