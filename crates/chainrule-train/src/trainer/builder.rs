//! Builder of a trainer.

use super::average::Average;
use super::inner::Inner;
use super::ranks::Ranks;
use super::{Place, Rest, Trainer, TrainerOptions, rounded};
use crate::data::Batches;
use crate::error::{Error, Result};
use crate::optim::schedule::{ConstantLr, Schedule};
use crate::optim::{Clipped, Optimizer};
use crate::{Best, Metrics, Task};

/// A [`Trainer`] before its first step; made by [`Trainer::builder`].
///
/// By default the learning rate stays that of the optimizer, and the options are
/// [`TrainerOptions::default`].
pub struct TrainerBuilder<'a> {
    task: &'a dyn Task,
    optimizer: Box<dyn Optimizer>,
    batches: Box<dyn Batches>,
    schedule: Box<dyn Schedule>,
    options: TrainerOptions,
}

impl<'a> TrainerBuilder<'a> {
    pub(super) fn new(
        task: &'a dyn Task,
        optimizer: Box<dyn Optimizer>,
        batches: Box<dyn Batches>,
    ) -> TrainerBuilder<'a> {
        let schedule = Box::new(ConstantLr { lr: optimizer.lr() });
        TrainerBuilder { task, optimizer, batches, schedule, options: TrainerOptions::default() }
    }

    /// Sets the learning rate schedule.
    pub fn schedule(mut self, schedule: impl Schedule + 'static) -> Self {
        self.schedule = Box::new(schedule);
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: TrainerOptions) -> Self {
        self.options = options;
        self
    }

    /// Builds the trainer. Errors for options or a schedule out of range.
    pub fn build(self) -> Result<Trainer<'a>> {
        let TrainerBuilder { task, optimizer, batches, schedule, options } = self;
        schedule.check()?;
        if options.accumulate == 0 {
            return Err(Error::argument("Trainer", "a step needs one batch at least"));
        }
        rounded(options.autocast, || Ok(()))?;
        let ema = match options.ema {
            Some(decay) => Some(Average::new(task.module().parameters(), decay)?),
            None => None,
        };
        let (optimizer, grad_norm, unclipped): (Box<dyn Optimizer>, _, _) = match options.clip {
            Some(clip) => {
                let inner = Inner::new(optimizer);
                let clipped = Clipped::try_new(Box::new(inner.clone()), clip)?;
                let norm = clipped.norm().clone();
                (Box::new(clipped), Some(norm), Some(inner))
            }
            None => (optimizer, None, None),
        };
        let best = if task.higher_is_better() { Best::highest() } else { Best::lowest() };
        let place = Place { step: 0, best, loss_sum: 0.0, loss_count: 0 };
        let rest = Rest {
            schedule,
            batches,
            options,
            ema,
            grad_norm,
            unclipped,
            place,
            kept: None,
            is_past: false,
            batch: None,
            saver: None,
            watch: None,
            ranks: Ranks::alone(),
            last_metrics: Metrics::new(),
        };
        Ok(Trainer { task, optimizer, rest, runner: None })
    }
}
