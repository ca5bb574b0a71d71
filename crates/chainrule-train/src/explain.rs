//! Diagnosis of a loss that is not finite: replays the steps since the last good state, op by op,
//! up to the first bad value.

use super::Task;
use super::trainer::{Engine, Rest, Trainer, eager, rounded};
use crate::error::Result;
use crate::nn::StateDict;
use crate::tensor::{Tensor, record_all};

/// Steps between snapshots, from which a broken run can be replayed.
pub(crate) const KEEP_EVERY: u64 = 256;

/// A snapshot of all training state.
pub(super) struct Kept(StateDict);

impl Rest {
    /// Takes a snapshot at intervals: tensors are shared until they change.
    #[inline]
    pub(super) fn keep_now_and_then(
        &mut self,
        task: &dyn Task,
        engine: &mut Engine<'_>,
    ) -> Result<()> {
        let step = self.place.step;
        if self.kept.is_none() || step.is_multiple_of(KEEP_EVERY) {
            engine.fetch()?;
            self.kept = Some(Kept(self.state_dict(task, engine.optimizer())));
        }
        Ok(())
    }
}

impl Trainer<'_> {
    /// Finds the cause of a loss that is not finite for the last batch, and restores the last good
    /// state: the weights before that batch, or, if an update had already spoilt them, those before
    /// that update.
    pub(super) fn explain(&mut self) -> Result<String> {
        rounded(self.rest.options.autocast, || self.explain_again())
    }

    fn explain_again(&mut self) -> Result<String> {
        let end = self.step();
        if !self.rest.is_past
            && self.is_finite()
            && let Some(batch) = self.rest.batch.clone()
        {
            let loss = record_all(|| self.task.loss(&batch))?;
            return Ok(first_non_finite(&loss));
        }
        let Some(Kept(state)) = self.rest.kept.take() else { return Ok(UNKNOWN.to_string()) };
        self.load_state_dict(&state)?;
        while self.step() <= end {
            let before = self.state_dict();
            let batch = self.rest.draw()?;
            let loss = record_all(|| self.task.loss(&batch))?;
            if !loss.try_item()?.is_finite() {
                return Ok(first_non_finite(&loss));
            }
            let culprit = first_bad_gradient(&loss)?;
            self.load_state_dict(&before)?;
            let lr = self.rest.schedule.lr(self.step());
            self.optimizer.set_lr(lr)?;
            eager(self.task, &mut *self.optimizer, &mut self.rest)?;
            self.rest.place.step += 1;
            if !self.is_finite() {
                let why = culprit.unwrap_or_else(|| self.first_bad_update());
                self.load_state_dict(&before)?;
                return Ok(why);
            }
        }
        Ok(UNKNOWN.to_string())
    }

    fn is_finite(&self) -> bool {
        self.optimizer.parameters().iter().all(Tensor::is_finite)
    }

    fn first_bad_update(&self) -> String {
        let named = self.task.module().named_parameters();
        let bad = named.iter().find(|(_, p)| !p.is_finite());
        let name = bad.map_or("a parameter", |(name, _)| name);
        format!("the update of step {} made `{name}` overflow", self.step())
    }
}

const UNKNOWN: &str = "the training did not repeat itself, so the op is not known";

/// Describes the first op whose value is not finite.
fn first_non_finite(loss: &Tensor) -> String {
    match loss.first_non_finite() {
        Some(first) => {
            let made = match &first.name {
                Some(name) => format!(" (which made `{name}`)"),
                None => String::new(),
            };
            let from = first.input.map(|(i, x)| format!(", where its input {i} is {x}"));
            let from = from.unwrap_or_default();
            format!("the first op that gave {} was `{}`{made}{from}", first.value, first.op)
        }
        None => "no op gave it when the batch was run again".to_owned(),
    }
}

/// The op whose backward first gives a gradient that is not finite, if one does.
fn first_bad_gradient(loss: &Tensor) -> Result<Option<String>> {
    let trace = loss.try_trace()?;
    let bad = trace.steps().iter().find(|step| {
        step.cotangent().is_finite() && step.sent().iter().any(|part| !part.gradient().is_finite())
    });
    Ok(bad.map(|step| {
        let op = step.op().unwrap_or("the loss");
        let made = match step.tensor() {
            label if label.contains('#') => String::new(),
            label => format!(" (which made `{label}`)"),
        };
        format!("the first op whose gradient overflowed was `{op}`{made}")
    }))
}

#[cfg(test)]
mod tests;
