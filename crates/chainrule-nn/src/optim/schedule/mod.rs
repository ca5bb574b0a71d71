//! Learning rate schedules.
//!
//! A [`Schedule`] is a pure function of the step: it can be plotted, tested, and resumed anywhere.
//! A [`Scheduler`] sets an optimizer's rate by it. [`Plateau`] depends on a metric instead, so it
//! has a state. Steps count from 0: `lr(0)` is the rate of the first update. Groups with their own
//! rate keep their ratio to it.

mod cosine;
mod one_cycle;
mod plateau;
mod simple;

pub use cosine::{CosineAnnealingLr, CosineLr};
pub use one_cycle::OneCycleLr;
pub use plateau::{Goal, Plateau, PlateauOptions};
pub use simple::{ConstantLr, ExponentialLr, LinearLr, MultiStepLr, StepLr};

use super::descent::state;
use super::{Optimizer, checked_lr};
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// A learning rate for each step.
pub trait Schedule {
    /// The rate of the update after `step` updates.
    fn lr(&self, step: u64) -> f64;

    /// An error for invalid settings.
    fn check(&self) -> Result<()>;
}

impl Schedule for Box<dyn Schedule> {
    fn lr(&self, step: u64) -> f64 {
        (**self).lr(step)
    }

    fn check(&self) -> Result<()> {
        (**self).check()
    }
}

/// Sets the learning rate of an optimizer by a schedule.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::schedule::{Scheduler, StepLr};
/// use chainrule::optim::{Optimizer, Sgd};
/// let w = Tensor::from([1.0f32]).parameter();
/// let mut sgd = Sgd::new(vec![w.clone()], 0.1);
/// let mut scheduler = Scheduler::new(StepLr { lr: 0.1, every: 2, gamma: 0.5 }, &mut sgd)?;
/// let mut rates = Vec::new();
/// for _ in 0..4 {
///     sgd.zero_grad();
///     (&w * &w).sum_all().backward();
///     sgd.step()?;
///     rates.push(sgd.lr());
///     scheduler.step(&mut sgd)?;
/// }
/// assert_eq!(rates, [0.1, 0.1, 0.05, 0.05]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler<S> {
    schedule: S,
    steps: u64,
}

impl<S: Schedule> Scheduler<S> {
    /// Sets the rate of the first update. Errors for invalid settings.
    pub fn new(schedule: S, optimizer: &mut dyn Optimizer) -> Result<Scheduler<S>> {
        schedule.check()?;
        optimizer.set_lr(schedule.lr(0))?;
        Ok(Scheduler { schedule, steps: 0 })
    }

    /// Advances to the next update; call it after the optimizer's step.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.set_steps(self.steps + 1, optimizer)
    }

    /// Moves to the state after `steps` updates.
    pub fn set_steps(&mut self, steps: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        optimizer.set_lr(self.schedule.lr(steps))?;
        self.steps = steps;
        Ok(())
    }

    /// Number of updates done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The schedule.
    pub fn schedule(&self) -> &S {
        &self.schedule
    }

    /// The state to resume from: `steps`. The rate itself is in the optimizer's state.
    pub fn state_dict(&self) -> StateDict {
        StateDict::from([("steps".to_string(), Tensor::scalar(self.steps as i64))])
    }

    /// Resumes from [`Scheduler::state_dict`], and sets the rate.
    pub fn load_state_dict(
        &mut self,
        state: &StateDict,
        optimizer: &mut dyn Optimizer,
    ) -> Result<()> {
        let steps: i64 = state::scalar("Scheduler", "steps", state.get("steps"))?;
        match u64::try_from(steps) {
            Ok(steps) if state.len() == 1 => self.set_steps(steps, optimizer),
            _ => Err(Error::argument("Scheduler", "the state must be `steps` alone, 0 or more")),
        }
    }
}

/// An error unless `factor` is 0 or more and finite.
fn checked_factor(op: &'static str, name: &str, factor: f64) -> Result<()> {
    super::not_negative(op, name, factor)
}

/// An error for a count of 0.
fn checked_count(op: &'static str, name: &str, count: u64) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    Err(Error::argument(op, format!("{name} must be 1 or more")))
}

#[cfg(test)]
mod tests;
