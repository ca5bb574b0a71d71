//! Steps on a device, batched where nothing needs the processor between them.

use std::collections::VecDeque;

use super::{Done, Rest, probe, rarely, show};
use crate::Task;
use crate::data::Batch;
use crate::error::Result;
use crate::explain::KEEP_EVERY;
use crate::optim::Optimizer;
use crate::program::CompiledStep;
use crate::runner::ProgramRunner;
use crate::tensor::Tensor;

/// A step on a device.
pub(crate) struct OnDevice<'e> {
    step: Box<CompiledStep<'e>>,
    runner: &'e mut dyn ProgramRunner,
    /// Its programs, one per set of shapes.
    loaded: Vec<usize>,
    /// Whether the step falls back to the processor.
    is_left: bool,
    /// Batches and losses of finished steps that were not asked for yet.
    ahead: VecDeque<(Batch, f64)>,
}

/// The loss among the results of a program.
fn loss(results: &[Tensor]) -> Result<f64> {
    results.first().map_or(Ok(f64::NAN), Tensor::try_item)
}

impl<'e> OnDevice<'e> {
    pub fn new(step: Box<CompiledStep<'e>>, runner: &'e mut dyn ProgramRunner) -> OnDevice<'e> {
        let (loaded, ahead) = Default::default();
        OnDevice { step, runner, loaded, is_left: false, ahead }
    }

    pub fn fetch(&mut self) -> Result<()> {
        self.runner.fetch()
    }

    pub fn fetch_one(&mut self, tensor: &Tensor) -> Result<()> {
        self.runner.fetch_one(tensor)
    }

    pub fn optimizer(&mut self) -> &mut dyn Optimizer {
        self.step.optimizer()
    }

    pub fn is_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Runs the next batch on the device; the task and the monitor look on the processor, at values
    /// of the device.
    pub fn step(&mut self, task: &dyn Task, rest: &mut Rest, looks: bool) -> Result<Done> {
        if let Some((batch, loss)) = self.ahead.pop_front() {
            let examples = task.count(&batch);
            rest.batch = Some(batch);
            return Ok(Done { loss, examples });
        }
        let batch = rest.draw()?;
        if looks || rest.due().is_some() {
            self.runner.fetch()?;
        }
        if looks {
            show(task, self.step.optimizer(), &batch)?;
        }
        if let Some(watch) = rest.due() {
            rarely(task, self.step.optimizer(), &batch, watch)?;
            watch.labels(&batch);
            probe(task, self.step.optimizer(), &batch, watch)?;
        }
        let loss = self.first_of_some(&batch, rest)?;
        if let Some(watch) = rest.due() {
            self.runner.fetch()?;
            watch.after(task.module());
        }
        Ok(Done { loss, examples: task.count(&batch) })
    }

    /// Loss of a step; the device runs ahead as far as nothing is read in between.
    fn first_of_some(&mut self, batch: &Batch, rest: &mut Rest) -> Result<f64> {
        let program = self.found(&[&batch.x, &batch.y]);
        let Some(program) = program.filter(|&p| self.runner.at_once(p) > 1) else {
            return loss(&self.run(&[&batch.x, &batch.y])?);
        };
        let count = rest.alone().min(self.runner.at_once(program) as u64);
        let mut batches = vec![batch.clone()];
        let mut other = None;
        while (batches.len() as u64) < count && other.is_none() {
            let next = rest.draw()?;
            match self.runner.mismatch(program, &[&next.x, &next.y]) {
                None => batches.push(next),
                Some(_) => other = Some(next),
            }
        }
        let given: Vec<Vec<&Tensor>> = batches.iter().map(|b| vec![&b.x, &b.y]).collect();
        let results = self.runner.run_steps(program, &given)?;
        for (batch, results) in batches.into_iter().zip(&results) {
            self.ahead.push_back((batch, loss(results)?));
        }
        if let Some(batch) = other {
            let last = loss(&self.run(&[&batch.x, &batch.y])?)?;
            self.ahead.push_back((batch, last));
        }
        let (batch, loss) = self.ahead.pop_front().unwrap_or_else(|| (batch.clone(), f64::NAN));
        rest.batch = Some(batch);
        Ok(loss)
    }

    /// The loaded program that accepts these arguments, if any.
    fn found(&self, given: &[&Tensor]) -> Option<usize> {
        let fits = |&&p: &&usize| self.runner.mismatch(p, given).is_none();
        self.loaded.iter().find(fits).copied().filter(|_| !self.is_left)
    }

    fn run(&mut self, given: &[&Tensor]) -> Result<Vec<Tensor>> {
        if self.is_left {
            return Ok(vec![self.step.run(given)?]);
        }
        if let Some(program) = self.found(given) {
            return self.runner.run(program, given);
        }
        // Tracing runs the step once on the processor.
        self.runner.fetch()?;
        let traced = self.step.trace(given)?;
        match self.runner.load(&traced) {
            Ok(program) => {
                self.loaded.push(program);
                self.runner.run(program, given)
            }
            Err(e) if self.runner.gives_way(&e) => {
                self.is_left = true;
                Ok(vec![self.step.run(given)?])
            }
            Err(e) => Err(e),
        }
    }
}

impl Rest {
    /// Number of steps, from the next one on, that a device can run without the processor: up to
    /// the next evaluation, checkpoint, look or change of learning rate.
    fn alone(&self) -> u64 {
        let has_ranks = self.ranks.as_ref().is_some_and(|ranks| ranks.are_many());
        if self.grad_norm.is_some() || self.ema.is_some() || has_ranks {
            return 1;
        }
        let (step, options) = (self.place.step, &self.options);
        let to_next = |every: u64| if every == 0 { u64::MAX } else { every - step % every };
        let last = options.steps.saturating_sub(step);
        let look = self.watch.as_ref().map_or(u64::MAX, |watch| watch.monitor.steps_to_look());
        let bounds = [
            last.saturating_sub(u64::from(options.looks_at_the_last)),
            to_next(options.eval_every),
            to_next(options.save_every),
            to_next(KEEP_EVERY),
            look,
        ];
        let most = bounds.into_iter().min().unwrap_or(1).max(1);
        let lr = self.schedule.lr(step);
        // Limit on steps per launch.
        (1..most.min(4096)).find(|i| self.schedule.lr(step + i) != lr).unwrap_or(most)
    }
}
