//! Monitoring of a compiled step: its program with the observed values among the results.
//!
//! Such a program replaces the plain one, so that a look costs little more than the step. Extra
//! results may block a rewrite, and then the last bits could differ. So each is run once beside the
//! plain program from the same state, and the loss, parameters and all other state are compared bit
//! for bit; on any difference, as when an update is fused with a product that the look needs, a
//! program of the loss and its gradients alone runs beside the step.

use std::time::Instant;

use super::engine::kept;
use super::watch::{Watch, looked_at};
use crate::Task;
use crate::data::Batch;
use crate::error::Result;
use crate::monitor::OutputKind;
use crate::nn::{Field, Module, StateDict};
use crate::program::{CompiledStep, Passes, Program, Validated};
use crate::tensor::Tensor;

/// Programs, one per set of shapes.
pub(crate) struct SeenPrograms {
    passes: Passes,
    programs: Vec<Known>,
    /// Number of looks; the first is eager, which creates the optimizer state.
    looks: u64,
    is_left: bool,
    results: Vec<Tensor>,
}

/// A program, its model modes, and the indices of its results.
struct Known {
    program: Validated,
    modes: Vec<bool>,
    plan: Plan,
    /// Whether it includes the update.
    has_update: bool,
}

/// Outcome of a look at a step.
pub(super) enum SeenStep {
    /// Done and observed, with this loss.
    Done(f64),
    /// Observed, but still to be run.
    Seen,
    /// To be observed and run eagerly.
    Open,
}

/// Indices of observed values among the results.
#[derive(Default)]
struct Plan {
    /// Outputs, with indices of them and of their gradients.
    outputs: Vec<(String, OutputKind, usize, Option<usize>)>,
    /// Index of each parameter's gradient.
    gradients: Vec<Option<usize>>,
    /// Indices of the last layer's output and of its gradient, with its bounds.
    answer: Option<(usize, usize, Bounds)>,
}

/// Bounds of a layer's output, if any.
type Bounds = Option<(f64, f64)>;

impl SeenPrograms {
    pub fn new(simplified: bool) -> SeenPrograms {
        let passes = Passes { simplification: simplified, ..Passes::default() };
        SeenPrograms { passes, programs: Vec::new(), looks: 0, is_left: false, results: Vec::new() }
    }

    /// Observes a step. Changes nothing if the step isn't run.
    pub(super) fn step(
        &mut self,
        task: &dyn Task,
        step: &mut CompiledStep<'_>,
        batch: &Batch,
        watch: &mut Watch,
    ) -> Result<SeenStep> {
        self.looks += 1;
        if self.is_left || self.looks == 1 {
            return Ok(SeenStep::Open);
        }
        let given = [&batch.x, &batch.y];
        let now = modes(task.module());
        let fits = |known: &Known| {
            known.modes == now && known.program.program().mismatch(&given).is_none()
        };
        let at = match self.programs.iter().position(fits) {
            Some(at) => at,
            None => {
                let began = Instant::now();
                let made = self.found(task, step, batch)?;
                watch.spend(began);
                let Some(made) = made else {
                    self.is_left = true;
                    return Ok(SeenStep::Open);
                };
                self.programs.push(made);
                self.programs.len() - 1
            }
        };
        let trained = task.module().named_parameters();
        let trained = trained.into_iter().filter(|(_, p)| p.requires_grad());
        let before: Vec<(String, Tensor)> = trained.map(|(name, p)| (name, p.detach())).collect();
        let Known { program, plan, has_update, .. } = &mut self.programs[at];
        let began = Instant::now();
        match has_update {
            true => program.run_into(&given, &mut self.results)?,
            false => {
                let module = task.module();
                let buffers = module.named_buffers().into_iter();
                let buffers: Vec<_> = buffers.map(|(_, b)| (b.clone(), b.detach())).collect();
                let generators = module.generator_states();
                program.run_into(&given, &mut self.results)?;
                buffers.iter().try_for_each(|(buffer, before)| buffer.try_set(before))?;
                module.set_generator_states(&generators)?;
            }
        }
        // A step takes its time whoever observes it.
        let began = if *has_update { Instant::now() } else { began };
        let loss = self.results[0].try_item()?;
        plan.tell(watch, loss, &before, &self.results);
        watch.spend(began);
        Ok(if *has_update { SeenStep::Done(loss) } else { SeenStep::Seen })
    }

    /// An observing program equivalent to the plain one, or one that only observes; `None` if there
    /// is none.
    fn found(
        &mut self,
        task: &dyn Task,
        step: &mut CompiledStep<'_>,
        batch: &Batch,
    ) -> Result<Option<Known>> {
        // If none can be made, the plain program reports the fault, unless only observing failed.
        if let Ok(mut made) = self.make(task, step, batch, true)
            && self.has_same_bits(task, step, batch, &mut made.program)?
        {
            return Ok(Some(made));
        }
        Ok(self.make(task, step, batch, false).ok())
    }

    fn make(
        &self,
        task: &dyn Task,
        step: &mut CompiledStep<'_>,
        batch: &Batch,
        has_update: bool,
    ) -> Result<Known> {
        let optimizer = step.optimizer();
        optimizer.zero_grad();
        let mut plan = Plan::default();
        let program = Program::trace([("x", &batch.x), ("y", &batch.y)], |args| {
            let batch = Batch { x: args[0].clone(), y: args[1].clone() };
            let (loss, layers) = kept(task.module(), || task.loss(&batch))?;
            loss.try_backward()?;
            let mut results = vec![loss.clone()];
            let mut place = |t: &Tensor| match results.iter().position(|known| known.is_same(t)) {
                Some(at) => at,
                None => {
                    results.push(t.clone());
                    results.len() - 1
                }
            };
            for (name, kind, t) in looked_at(&loss, &layers) {
                let (at, gradient) = (place(&t), t.grad().map(|g| place(&g)));
                plan.outputs.push((name, kind, at, gradient));
            }
            if let Some(layer) = layers.last()
                && let Some(g) = layer.output.grad()
            {
                plan.answer = Some((place(&layer.output), place(&g), layer.bounds));
            }
            let trained = task.module().named_parameters();
            for (_, p) in trained.iter().filter(|(_, p)| p.requires_grad()) {
                plan.gradients.push(p.grad().map(|g| place(&g)));
            }
            if has_update {
                optimizer.step()?;
            }
            Ok(results)
        })?;
        let (program, modes) = (program.seen().validated(self.passes), modes(task.module()));
        Ok(Known { program, modes, plan, has_update })
    }

    /// Whether this program and the plain one agree from one state, which is then restored.
    fn has_same_bits(
        &mut self,
        task: &dyn Task,
        step: &mut CompiledStep<'_>,
        batch: &Batch,
        seen: &mut Validated,
    ) -> Result<bool> {
        let module = task.module();
        let given = [&batch.x, &batch.y];
        let generators = module.generator_states();
        let (weights, others) = (module.state_dict(), step.optimizer().state_dict());
        let back = |step: &mut CompiledStep<'_>| -> Result<()> {
            module.load_state_dict(&weights)?;
            module.set_generator_states(&generators)?;
            step.optimizer().load_state_dict(&others)
        };
        let states = |step: &mut CompiledStep<'_>| {
            [module.state_dict(), step.optimizer().state_dict()].map(|state| bits(&state))
        };
        seen.run_into(&given, &mut self.results)?;
        let first = (self.results[0].try_item()?.to_bits(), states(step));
        back(step)?;
        let loss = step.run(&given)?.try_item()?;
        let second = (loss.to_bits(), states(step));
        back(step)?;
        Ok(first == second)
    }
}

impl Plan {
    fn tell(&self, watch: &mut Watch, loss: f64, before: &[(String, Tensor)], all: &[Tensor]) {
        let monitor = &mut watch.monitor;
        for (name, kind, at, gradient) in &self.outputs {
            monitor.output(name, *kind, &all[*at]);
            if let Some(gradient) = gradient {
                monitor.output_gradient(name, &all[*gradient]);
            }
        }
        if let Some((output, gradient, bounds)) = self.answer {
            monitor.answer(loss, &all[output], &all[gradient], bounds);
        }
        for ((name, value), gradient) in before.iter().zip(&self.gradients) {
            monitor.parameter(name, value, gradient.map(|at| &all[at]));
        }
    }
}

/// Names and bits of all values.
fn bits(state: &StateDict) -> Vec<(String, Vec<u64>)> {
    let of = |t: &Tensor| t.to_f64_vec().into_iter().map(f64::to_bits).collect();
    state.iter().map(|(name, t)| (name.clone(), of(t))).collect()
}

/// Mode of each part of a model.
fn modes(module: &dyn Module) -> Vec<bool> {
    let inside = module.named_modules().into_iter().map(|(_, module)| module);
    let fields = std::iter::once(module).chain(inside).flat_map(|module| module.fields());
    let mode = |(_, field)| match field {
        Field::Training(switch) => Some(switch.is_on()),
        _ => None,
    };
    fields.filter_map(mode).collect()
}
