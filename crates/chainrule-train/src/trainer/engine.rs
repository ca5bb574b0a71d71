//! The engine of a step: op by op, or as a program.

use std::time::Instant;

use super::ranks::spread;
use super::rare;
use super::watch::{Watch, bounded};
use super::{Rest, TrainerOptions};
use crate::Task;
use crate::data::Batch;
use crate::error::Result;
use crate::nn::{LayerOutput, Module, watched as watched_layers};
use crate::optim::Optimizer;
use crate::program;
use crate::tensor::{Tensor, record_all};

/// Engine of a step.
pub(crate) enum Engine<'e> {
    Eager(&'e mut dyn Optimizer),
    Compiled(Box<program::CompiledStep<'e>>),
}

/// Result of a step.
pub(crate) struct Done {
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

    /// A step on the next batch. If the loss is not finite, an eager one leaves the weights as they
    /// are.
    pub fn step(&mut self, task: &dyn Task, rest: &mut Rest) -> Result<Done> {
        let is_last = rest.place.step + 1 == rest.options.steps;
        let looks = rest.options.looks_at_the_last && is_last && rest.options.accumulate == 1;
        match self {
            Engine::Eager(optimizer) if looks => watched(task, *optimizer, rest),
            Engine::Eager(optimizer) => eager(task, *optimizer, rest),
            Engine::Compiled(step) => {
                let batch = rest.draw()?;
                if looks {
                    show(task, step.optimizer(), &batch)?;
                }
                if let Some(watch) = rest.due() {
                    probe(task, step.optimizer(), &batch, watch)?;
                }
                let loss = step.run(&[&batch.x, &batch.y])?.try_item()?;
                rest.due().into_iter().for_each(|watch| watch.after(task.module()));
                Ok(Done { loss, examples: task.count(&batch) })
            }
        }
    }
}

/// Shows the monitor a step that a program will do. Nothing of it stays.
fn probe(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    batch: &Batch,
    watch: &mut Watch,
) -> Result<()> {
    let began = Instant::now();
    let module = task.module();
    let buffers: Vec<(Tensor, Tensor)> =
        module.named_buffers().into_iter().map(|(_, b)| (b.clone(), b.detach())).collect();
    let generators = module.generator_states();
    if watch.is_rare() {
        rare::look(task, optimizer, batch, watch)?;
    }
    optimizer.zero_grad();
    let (loss, layers) = shown(task, batch, watch)?;
    watch.labels(batch);
    watch.outputs(&loss, &layers);
    watch.before(task.module());
    optimizer.zero_grad();
    for (buffer, before) in &buffers {
        buffer.try_set(before)?;
    }
    module.set_generator_states(&generators)?;
    watch.spend(began);
    Ok(())
}

/// The loss of a batch after its backward pass, and the results of the layers with their gradients.
fn shown(task: &dyn Task, batch: &Batch, watch: &mut Watch) -> Result<(Tensor, Vec<LayerOutput>)> {
    let (loss, layers) = kept(task.module(), || task.loss(batch))?;
    watch.computation(&loss);
    loss.try_backward()?;
    Ok((loss, layers))
}

/// A loss whose intermediates are recorded, and the results of the layers that it called; these and
/// those of bounded functions keep their gradients.
pub(super) fn kept(
    module: &dyn Module,
    f: impl FnOnce() -> Result<Tensor>,
) -> Result<(Tensor, Vec<LayerOutput>)> {
    let (loss, layers) = watched_layers(module, || record_all(f));
    let loss = loss?;
    let all = layers.iter().map(|layer| layer.output.clone()).chain(bounded(&loss));
    all.filter(Tensor::requires_grad).for_each(|t| {
        t.retain_grad();
    });
    Ok((loss, layers))
}

/// A step of one batch, shown to the task between the backward pass and the update.
fn watched(task: &dyn Task, optimizer: &mut dyn Optimizer, rest: &mut Rest) -> Result<Done> {
    let batch = rest.draw()?;
    let loss = look(task, optimizer, &batch)?;
    if loss.is_finite() {
        update(task, optimizer, rest)?;
    }
    Ok(Done { loss, examples: task.count(&batch) })
}

/// Shows the task a step that a program will do. Nothing of it stays, so that the last step before
/// a stop has the bits of any other.
fn show(task: &dyn Task, optimizer: &mut dyn Optimizer, batch: &Batch) -> Result<()> {
    let module = task.module();
    let (state, generators) = (module.state_dict(), module.generator_states());
    look(task, optimizer, batch)?;
    optimizer.zero_grad();
    module.load_state_dict(&state)?;
    module.set_generator_states(&generators)
}

/// The loss of a batch, op by op; the task looks at it and its gradients if it is finite.
fn look(task: &dyn Task, optimizer: &mut dyn Optimizer, batch: &Batch) -> Result<f64> {
    optimizer.zero_grad();
    let loss = record_all(|| task.loss(batch))?;
    let loss = if loss.name().is_none() { loss.named("loss") } else { loss };
    let number = loss.try_item()?;
    if number.is_finite() {
        loss.try_backward()?;
        task.look(&loss, optimizer.lr());
    }
    Ok(number)
}

/// Gradients of one batch or the mean of those of several, and the update.
pub(crate) fn eager(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
) -> Result<Done> {
    if rest.options.accumulate > 1 {
        return spread(task, optimizer, rest);
    }
    optimizer.zero_grad();
    let batch = rest.draw()?;
    rest.due().into_iter().for_each(|watch| watch.labels(&batch));
    if let Some(watch) = rest.due().filter(|watch| watch.is_rare() && task.has_plain_gradients()) {
        let began = Instant::now();
        rare::look(task, optimizer, &batch, watch)?;
        watch.spend(began);
    }
    let loss = match rest.due() {
        // Intermediates are kept for the monitor.
        Some(watch) if task.has_plain_gradients() => {
            let (loss, layers) = shown(task, &batch, watch)?;
            watch.outputs(&loss, &layers);
            loss
        }
        _ => task.gradients(&batch)?,
    };
    let done = Done { loss: loss.try_item()?, examples: task.count(&batch) };
    if done.loss.is_finite() {
        update(task, optimizer, rest)?;
    }
    Ok(done)
}

/// The update, before and after which the monitor looks if it is due.
pub(super) fn update(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
) -> Result<()> {
    rest.due().into_iter().for_each(|watch| watch.before(task.module()));
    optimizer.step()?;
    rest.due().into_iter().for_each(|watch| watch.after(task.module()));
    Ok(())
}
