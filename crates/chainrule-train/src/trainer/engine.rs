//! Execution of a step: eager, or as a program.

mod device;
#[cfg(test)]
mod tests;

use std::time::Instant;

use self::device::OnDevice;
use super::ranks::{ProgramKey, Programs, Verdicts, spread};
use super::rare;
use super::seen::{SeenPrograms, SeenStep};
use super::watch::{Watch, bounded};
use super::{Rest, TrainerOptions};
use crate::Task;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::nn::{LayerOutput, Module, watched as watched_layers};
use crate::optim::Optimizer;
use crate::program;
use crate::runner::ProgramRunner;
use crate::tensor::{Tensor, record_all};

/// Execution mode of a step.
pub(crate) enum Engine<'e> {
    Eager(&'e mut dyn Optimizer),
    Compiled(Box<program::CompiledStep<'e>>, SeenPrograms),
    /// Programs of micro-batches, the exchange, and the updates.
    Spread(&'e mut dyn Optimizer, Box<Programs<'e>>),
    Device(OnDevice<'e>),
}

/// Result of a step.
pub(crate) struct Done {
    pub loss: f64,
    pub examples: u64,
}

impl<'e> Engine<'e> {
    /// A program if one is asked for and supports the options. Errors if a step for a device cannot
    /// be compiled.
    pub fn new(
        task: &'e dyn Task,
        optimizer: &'e mut dyn Optimizer,
        options: &TrainerOptions,
        runner: Option<&'e mut (dyn ProgramRunner + 'static)>,
        verdicts: Verdicts,
    ) -> Result<Engine<'e>> {
        if !(options.compiled && options.accumulate == 1 && task.has_plain_gradients()) {
            if runner.is_none() && options.compiled && task.has_plain_gradients() {
                let programs = Programs::new(task, options.simplified, verdicts);
                return Ok(Engine::Spread(optimizer, Box::new(programs)));
            }
            if runner.is_none() {
                return Ok(Engine::Eager(optimizer));
            }
            let why = match (options.compiled, options.accumulate) {
                (false, _) => "it runs a step as a program, and this training is to run eagerly",
                (_, 1) => "this model computes its gradients by hand, outside of any program",
                _ => "several batches that make one update together are no single program",
            };
            return Err(Error::argument("device", why));
        }
        let loss = |args: &[Tensor]| task.loss(&Batch { x: args[0].clone(), y: args[1].clone() });
        let step = program::compile(task.module(), optimizer, ["x", "y"], loss);
        let step = Box::new(step.with_simplification(options.simplified));
        Ok(match runner {
            Some(runner) => Engine::Device(OnDevice::new(step, runner)),
            None => Engine::Compiled(step, SeenPrograms::new(options.simplified)),
        })
    }

    /// Downloads the model and the optimizer state from the device. Call it before they are read.
    pub fn fetch(&mut self) -> Result<()> {
        match self {
            Engine::Device(device) => device.fetch(),
            _ => Ok(()),
        }
    }

    /// As [`Engine::fetch`], for one value.
    pub fn fetch_one(&mut self, tensor: &Tensor) -> Result<()> {
        match self {
            Engine::Device(device) => device.fetch_one(tensor),
            _ => Ok(()),
        }
    }

    /// Whether a device is ahead with steps that were not asked for yet.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Engine::Device(device) if device.is_ahead())
    }

    /// Whether a step updates the weights even if its loss is not finite, as a single program does.
    pub fn always_updates(&self) -> bool {
        matches!(self, Engine::Compiled(..) | Engine::Device(_))
    }

    pub fn optimizer(&mut self) -> &mut dyn Optimizer {
        match self {
            Engine::Eager(optimizer) => &mut **optimizer,
            Engine::Compiled(step, _) => step.optimizer(),
            Engine::Device(device) => device.optimizer(),
            Engine::Spread(optimizer, _) => &mut **optimizer,
        }
    }

    /// Runs the next batch. If the loss is not finite, an eager step leaves the weights unchanged.
    pub fn step(&mut self, task: &dyn Task, rest: &mut Rest) -> Result<Done> {
        let is_last = rest.place.step + 1 == rest.options.steps;
        let looks = rest.options.looks_at_the_last && is_last && rest.options.accumulate == 1;
        match self {
            Engine::Eager(optimizer) if looks => watched(task, *optimizer, rest),
            Engine::Eager(optimizer) => eager(task, *optimizer, rest),
            Engine::Spread(optimizer, programs) => spread(task, *optimizer, rest, Some(programs)),
            Engine::Compiled(step, seen) => {
                let batch = rest.draw()?;
                let unknown = known_before(task, step, &batch, rest)?;
                if looks {
                    show(task, step.optimizer(), &batch)?;
                }
                let mut seen_step = SeenStep::Seen;
                if let Some(watch) = rest.due() {
                    rarely(task, step.optimizer(), &batch, watch)?;
                    watch.labels(&batch);
                    seen_step = seen.step(task, step, &batch, watch)?;
                    if matches!(seen_step, SeenStep::Open) {
                        probe(task, step.optimizer(), &batch, watch)?;
                    }
                }
                let loss = match seen_step {
                    SeenStep::Done(loss) => loss,
                    _ => step.run(&[&batch.x, &batch.y])?.try_item()?,
                };
                if let (Some(key), Some(ranks)) = (unknown, &rest.ranks) {
                    let verdict = step.verdict(&[&batch.x, &batch.y]);
                    ranks.verdicts.extend(verdict.map(|is_plain| (key, is_plain)));
                }
                rest.due().into_iter().for_each(|watch| watch.after(task.module()));
                Ok(Done { loss, examples: task.count(&batch) })
            }
            Engine::Device(device) => device.step(task, rest, looks),
        }
    }
}

/// Restores the choice between the optimised and the plain program of this batch, as an earlier
/// part of the run made it. A new comparison, on other numbers, might turn out otherwise. Returns
/// the key of a program without a verdict yet: its verdict is part of the state after the step.
fn known_before(
    task: &dyn Task,
    step: &mut program::CompiledStep<'_>,
    batch: &Batch,
    rest: &Rest,
) -> Result<Option<u64>> {
    let given = [&batch.x, &batch.y];
    let (Some(ranks), None) = (&rest.ranks, step.verdict(&given)) else { return Ok(None) };
    let parameters = step.optimizer().parameters().to_vec();
    let key = ProgramKey::of(task.module()).number(&parameters, batch, rest.options.simplified);
    match ranks.verdicts.is_plain(key) {
        Some(is_plain) => step.take_verdict(&given, is_plain).map(|()| None),
        None => Ok(Some(key)),
    }
}

/// Takes expensive looks, if they are due.
fn rarely(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    batch: &Batch,
    watch: &mut Watch,
) -> Result<()> {
    if watch.is_rare() {
        let began = Instant::now();
        rare::look(task, optimizer, batch, watch)?;
        watch.spend(began);
    }
    Ok(())
}

/// Shows the monitor a step that a program will do, and restores the state.
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
    optimizer.zero_grad();
    let (loss, layers) = shown(task, batch, watch)?;
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

/// Loss of a batch after its backward pass, and outputs of layers with their gradients.
fn shown(task: &dyn Task, batch: &Batch, watch: &mut Watch) -> Result<(Tensor, Vec<LayerOutput>)> {
    let (loss, layers) = kept(task.module(), || task.loss(batch))?;
    watch.computation(&loss);
    loss.try_backward()?;
    Ok((loss, layers))
}

/// A loss with recorded intermediates, and outputs of the layers that it called; these and those of
/// bounded functions retain their gradients.
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

/// An eager step of one batch, shown to the task between backward and update.
fn watched(task: &dyn Task, optimizer: &mut dyn Optimizer, rest: &mut Rest) -> Result<Done> {
    let batch = rest.draw()?;
    let loss = look(task, optimizer, &batch)?;
    if loss.is_finite() {
        update(task, rest, || optimizer.step())?;
    }
    Ok(Done { loss, examples: task.count(&batch) })
}

/// Shows the task a step that a program will do, and restores the state, so that the last step
/// before a stop has the bits of any other.
fn show(task: &dyn Task, optimizer: &mut dyn Optimizer, batch: &Batch) -> Result<()> {
    let module = task.module();
    let (state, generators) = (module.state_dict(), module.generator_states());
    look(task, optimizer, batch)?;
    optimizer.zero_grad();
    module.load_state_dict(&state)?;
    module.set_generator_states(&generators)
}

/// Loss of a batch, eager; the task inspects it and its gradients if it is finite.
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

/// Gradients of one batch or the mean of several, then the update.
pub(crate) fn eager(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
) -> Result<Done> {
    if rest.options.accumulate > 1 {
        return spread(task, optimizer, rest, None);
    }
    optimizer.zero_grad();
    let batch = rest.draw()?;
    rest.due().into_iter().for_each(|watch| watch.labels(&batch));
    if let Some(watch) = rest.due().filter(|_| task.has_plain_gradients()) {
        rarely(task, optimizer, &batch, watch)?;
    }
    let loss = match rest.due() {
        // Retains intermediates for the monitor.
        Some(watch) if task.has_plain_gradients() => {
            let (loss, layers) = shown(task, &batch, watch)?;
            watch.outputs(&loss, &layers);
            loss
        }
        _ => task.gradients(&batch)?,
    };
    let done = Done { loss: loss.try_item()?, examples: task.count(&batch) };
    if done.loss.is_finite() {
        update(task, rest, || optimizer.step())?;
    }
    Ok(done)
}

/// The update, around which the monitor looks if it is due.
pub(super) fn update(
    task: &dyn Task,
    rest: &mut Rest,
    step: impl FnOnce() -> Result<()>,
) -> Result<()> {
    rest.due().into_iter().for_each(|watch| watch.before(task.module()));
    step()?;
    rest.due().into_iter().for_each(|watch| watch.after(task.module()));
    Ok(())
}
