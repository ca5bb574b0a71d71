//! The settings of a training before its first step.

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
/// Without a schedule the learning rate stays that of the optimizer, and without options those of
/// [`TrainerOptions::default`] hold.
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

    /// The learning rate of each step.
    pub fn schedule(mut self, schedule: impl Schedule + 'static) -> Self {
        self.schedule = Box::new(schedule);
        self
    }

    /// The options of the training.
    pub fn options(mut self, options: TrainerOptions) -> Self {
        self.options = options;
        self
    }

    /// The trainer. Errors for options or a schedule out of range.
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
