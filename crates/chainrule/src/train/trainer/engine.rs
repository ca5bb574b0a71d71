//! How one step is computed: op by op, or as a program.

use super::{Rest, TrainerOptions};
use crate::data::Batch;
use crate::error::Result;
use crate::optim::Optimizer;
use crate::program;
use crate::tensor::{Tensor, record_all};
use crate::train::Task;

/// What computes a step.
pub(in crate::train) enum Engine<'e> {
    Eager(&'e mut dyn Optimizer),
    Compiled(Box<program::Step<'e>>),
}

/// What a step gave.
pub(in crate::train) struct Done {
    pub loss: f64,
    pub examples: u64,
}

impl<'e> Engine<'e> {
    /// A program where one is wanted and can do what the options ask for.
    pub fn new(
        task: &'e dyn Task,
        optimizer: &'e mut dyn Optimizer,
        options: &TrainerOptions,
    ) -> Engine<'e> {
        if !(options.compiled && options.accumulate == 1 && task.has_plain_gradients()) {
            return Engine::Eager(optimizer);
        }
        let loss = |args: &[Tensor]| task.loss(&Batch { x: args[0].clone(), y: args[1].clone() });
        let step = program::compile(task.module(), optimizer, ["x", "y"], loss);
        Engine::Compiled(Box::new(step.with_simplification(options.simplified)))
    }

    pub fn optimizer(&mut self) -> &mut dyn Optimizer {
        match self {
            Engine::Eager(optimizer) => &mut **optimizer,
            Engine::Compiled(step) => step.optimizer(),
        }
    }

    /// A step on the next batch. If the loss is not finite, an eager one leaves the weights as they are.
    pub fn step(&mut self, task: &dyn Task, rest: &mut Rest) -> Result<Done> {
        let is_last = rest.place.step + 1 == rest.options.steps;
        if rest.options.looks_at_the_last && is_last && rest.options.accumulate == 1 {
            return watched(task, self.optimizer(), rest);
        }
        match self {
            Engine::Eager(optimizer) => eager(task, *optimizer, rest),
            Engine::Compiled(step) => {
                let batch = rest.draw()?;
                let loss = step.run(&[&batch.x, &batch.y])?.try_item()?;
                Ok(Done { loss, examples: task.count(&batch) })
            }
        }
    }
}

/// A step of one batch, shown to the task between the backward pass and the update.
fn watched(task: &dyn Task, optimizer: &mut dyn Optimizer, rest: &mut Rest) -> Result<Done> {
    optimizer.zero_grad();
    let batch = rest.draw()?;
    let loss = record_all(|| task.loss(&batch))?;
    let loss = if loss.name().is_none() { loss.named("loss") } else { loss };
    let done = Done { loss: loss.try_item()?, examples: task.count(&batch) };
    if done.loss.is_finite() {
        loss.try_backward()?;
        task.look(&loss, optimizer.lr());
        optimizer.step()?;
    }
    Ok(done)
}

/// Gradients of one batch or the mean of those of several, and the update.
pub(in crate::train) fn eager(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
) -> Result<Done> {
    let n = rest.options.accumulate;
    let mut done = Done { loss: 0.0, examples: 0 };
    optimizer.zero_grad();
    for _ in 0..n {
        let batch = rest.draw()?;
        done.examples += task.count(&batch);
        done.loss += task.gradients(&batch)?.try_item()? / n as f64;
        if !done.loss.is_finite() {
            return Ok(done);
        }
    }
    if n > 1 {
        for p in optimizer.parameters() {
            if let Some(g) = p.grad() {
                p.set_grad(Some(g.try_div(n as f64)?))?;
            }
        }
    }
    optimizer.step()?;
    Ok(done)
}
