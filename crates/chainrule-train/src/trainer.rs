//! The training loop.

mod around;
mod average;
mod builder;
mod engine;
mod inner;
mod ranks;
mod rare;
mod saving;
mod seen;
mod state;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Instant;

pub use self::around::WatchedLoop;
use self::average::Average;
pub use self::builder::TrainerBuilder;
pub(super) use self::engine::{Engine, eager};
use self::inner::Inner;
use self::ranks::Ranks;
use self::watch::Watch;
use super::explain::Kept;
use super::runner::ProgramRunner;
use super::saver::{Save, Saver};
use super::sync_norm::SharedExchange;
use super::{Best, End, Event, Listener, Metrics, StepEvent, Task};
use crate::data::{Batch, Batches};
use crate::dtype::DType;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::io::CheckpointFolder;
use crate::monitor::Monitor;
use crate::optim::Optimizer;
use crate::optim::schedule::Schedule;
use crate::tensor::{Tensor, no_grad, try_autocast};

/// The options of a [`Trainer`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerOptions {
    /// Total number of steps.
    pub steps: u64,
    /// Steps between evaluations, the last one at the end; 0 for the end alone,
    /// [`TrainerOptions::NEVER`] for none.
    pub eval_every: u64,
    /// Steps between checkpoints, if there is a folder for them; 0 for the end and the best alone.
    pub save_every: u64,
    /// Micro-batches per update (gradient accumulation); their gradients are averaged, in an order
    /// that does not depend on the ranks.
    pub accumulate: usize,
    /// Norm to which gradients are clipped.
    pub clip: Option<f64>,
    /// Decay of the moving average of weights, which is then evaluated in their place.
    pub ema: Option<f64>,
    /// Patience of early stopping: measurements in a row without improvement.
    pub patience: Option<u64>,
    /// Overfits the first batch: a working model reaches a loss of about zero.
    pub overfit_batch: bool,
    /// Shards the optimizer state across ranks by whole parameters: each rank updates its part, and
    /// all receive the new weights. For optimizers that update each parameter by itself, as all of
    /// [`optim`](crate::optim) do; bitwise equal.
    pub sharded: bool,
    /// Compiles a step to a program, where possible.
    pub compiled: bool,
    /// Allows algebraic simplification of the program: the last digits of the losses may differ
    /// from eager ones.
    pub simplified: bool,
    /// Runs the last step op by op for [`Task::look`]; a program runs it too, and its result
    /// counts.
    pub looks_at_the_last: bool,
    /// Dtype to which operands of products are rounded, as in
    /// [`try_autocast`](crate::tensor::try_autocast). Weights, optimizer state and measurements
    /// keep full precision.
    pub autocast: Option<DType>,
}

impl TrainerOptions {
    /// A step count that no run reaches.
    pub const NEVER: u64 = u64::MAX;
}

/// Runs part of a step under [`TrainerOptions::autocast`].
pub(super) fn rounded<R>(to: Option<DType>, f: impl FnOnce() -> Result<R>) -> Result<R> {
    match to {
        Some(dtype) => try_autocast(dtype, f)?,
        None => f(),
    }
}

impl Default for TrainerOptions {
    /// 1,000 eager steps, evaluated at the end.
    fn default() -> Self {
        TrainerOptions {
            steps: 1_000,
            eval_every: 0,
            save_every: 0,
            accumulate: 1,
            clip: None,
            ema: None,
            patience: None,
            overfit_batch: false,
            sharded: false,
            compiled: false,
            simplified: true,
            looks_at_the_last: false,
            autocast: None,
        }
    }
}

/// A training run, which can be stopped at any step, saved, and resumed bitwise. See [the
/// module](super).
pub struct Trainer<'a> {
    pub(super) task: &'a dyn Task,
    pub(super) optimizer: Box<dyn Optimizer>,
    pub(super) rest: Rest,
    runner: Option<Box<dyn ProgramRunner>>,
}

/// Everything but what the step itself borrows.
pub(super) struct Rest {
    pub schedule: Box<dyn Schedule>,
    pub batches: Box<dyn Batches>,
    pub options: TrainerOptions,
    pub ema: Option<Average>,
    /// Gradient norm of the last step, if gradients are clipped.
    grad_norm: Option<Tensor>,
    /// The optimizer inside the clipping one.
    unclipped: Option<Inner>,
    pub place: Place,
    pub kept: Option<Kept>,
    /// Whether the weights include the update of the step that ended the run, or later ones.
    pub is_past: bool,
    /// Batch of the current step, to find the cause of a bad loss.
    pub batch: Option<Batch>,
    saver: Option<Saver>,
    watch: Option<Watch>,
    /// Ranks for steps of several micro-batches.
    ranks: Option<Ranks>,
    last_metrics: Metrics,
}

/// Progress of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub step: u64,
    pub best: Best,
    /// Sum of the losses for the next measurement, and how many they are.
    pub loss_sum: f64,
    pub loss_count: u64,
}

/// The most steps that `train_loss` is a mean of where there are no epochs: earlier ones were those
/// of another model.
const NEWEST: u64 = 1000;

impl<'a> Trainer<'a> {
    /// Trains the task's model with an optimizer on batches.
    pub fn builder(
        task: &'a dyn Task,
        optimizer: Box<dyn Optimizer>,
        batches: Box<dyn Batches>,
    ) -> TrainerBuilder<'a> {
        TrainerBuilder::new(task, optimizer, batches)
    }

    /// Saves checkpoints in a folder, each with the text `about`, on a background thread.
    pub fn with_checkpoints(mut self, folder: CheckpointFolder, about: String) -> Self {
        self.rest.saver = Some(Saver::new(folder, about));
        self
    }

    /// Appends a text to that of each checkpoint, as it is at [`Event::Saving`]: a listener may
    /// write there what belongs to the checkpoint.
    pub fn with_notes(mut self, notes: Arc<Mutex<String>>) -> Self {
        self.rest.saver = self.rest.saver.map(|saver| saver.with_notes(notes));
        self
    }

    /// Attaches a monitor, which reports problems by [`Event::Found`]. The run has the same bits.
    ///
    /// A step of a program that is monitored is run once more, op by op. With `share` the looks
    /// after the first ten take at most that share of the time, such as 0.02; without, the monitor
    /// looks whenever it [is due](Monitor::is_due).
    pub fn with_monitor(mut self, monitor: Monitor, share: Option<f64>) -> Self {
        self.rest.watch = Some(Watch::new(monitor, share));
        self
    }

    /// Runs the steps on a device. Parameters and optimizer state live there and are fetched where
    /// needed: by an evaluation, a checkpoint, the monitor, the end.
    ///
    /// The steps must be programs: [`Trainer::run`] errors without [`TrainerOptions::compiled`],
    /// for several micro-batches, and for a task with an explicit backward pass.
    pub fn with_runner(mut self, runner: Box<dyn ProgramRunner>) -> Self {
        self.runner = Some(runner);
        self
    }

    /// Distributes the micro-batches of each step over ranks: threads, or processes on one or
    /// several machines, each with this same run. After each step all have the same weights,
    /// bitwise those of a single rank; [`TrainerOptions::accumulate`] is the number of
    /// micro-batches.
    ///
    /// `facts` are named values that must be equal on all ranks, such as a checksum of the data;
    /// the model, its initial weights and the options are compared too. An error on one rank ends
    /// all of them, each with one line that names it. A stop on one rank stops all after the
    /// current step.
    pub fn with_exchange(self, exchange: Box<dyn Exchange>, facts: &[(&str, &str)]) -> Self {
        let shared = Arc::new(Mutex::new(exchange));
        self.with_ranks(shared, facts, false)
    }

    /// As [`Trainer::with_exchange`], over a channel that layers of the model use too, such as
    /// [`SyncBatchNorm`](crate::SyncBatchNorm): its statistics then span all micro-batches of a
    /// step.
    ///
    /// Layers of all ranks exchange sums during the micro-batches, so these must run at the same
    /// time: there must be as many ranks as [`TrainerOptions::accumulate`] says, also after a
    /// resume, and the steps must be eager. [`Trainer::run`] errors on all ranks otherwise.
    pub fn with_shared_exchange(self, exchange: &SharedExchange, facts: &[(&str, &str)]) -> Self {
        self.with_ranks(exchange.clone(), facts, true)
    }

    fn with_ranks(
        mut self,
        exchange: SharedExchange,
        facts: &[(&str, &str)],
        in_layers: bool,
    ) -> Self {
        let facts = facts.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let ranks = Ranks::new(exchange, facts.collect(), in_layers);
        if self.rest.options.sharded
            && let Some(average) = &mut self.rest.ema
        {
            // A whole average can be sharded later.
            average.share_out(&ranks).unwrap_or_else(|e| unreachable!("{e}"));
        }
        self.rest.ranks = Some(ranks);
        self
    }

    /// The monitor, if there is one.
    pub fn monitor(&self) -> Option<&Monitor> {
        self.rest.watch.as_ref().map(|watch| &watch.monitor)
    }

    /// Number of steps done.
    pub fn step(&self) -> u64 {
        self.rest.place.step
    }

    /// The best measurement so far.
    pub fn best(&self) -> Best {
        self.rest.place.best
    }

    /// The loss at which an overfitted batch ends, if its labels are classes: their
    /// [entropy](Batch::label_entropy). `None` without [`TrainerOptions::overfit_batch`].
    pub fn overfit_floor(&self) -> Result<Option<f64>> {
        match &self.rest.batch {
            Some(batch) if self.rest.options.overfit_batch => batch.label_entropy(),
            _ => Ok(None),
        }
    }

    /// Latest measurements of the run; the first in it is `train_loss`, the mean loss of the
    /// steps since the measurement before, as they were made: of those of an epoch at most, or of
    /// 1,000 where there are no epochs.
    pub fn metrics(&self) -> &Metrics {
        &self.rest.last_metrics
    }

    /// Loss and gradients of the next batch, without an update: a dry run. The data source
    /// advances.
    pub fn trial_loss(&mut self) -> Result<f64> {
        self.task.module().train();
        let batch = self.rest.draw()?;
        rounded(self.rest.options.autocast, || self.task.gradients(&batch)?.try_item())
    }

    /// Evaluates the model now, with the averaged weights if there are any. It does not count for
    /// the best.
    pub fn evaluate(&mut self) -> Result<Metrics> {
        let (task, module) = (self.task, self.task.module());
        module.eval();
        let measured = match &mut self.rest.ema {
            Some(ema) => ema.averaged(&None, || no_grad(|| task.evaluate()))?,
            None => no_grad(|| task.evaluate()),
        };
        module.train();
        measured
    }

    /// Replaces the weights by their average, if there is one; call it at the end.
    pub fn use_average(&mut self) -> Result<()> {
        self.rest.ema.as_mut().map_or(Ok(()), Average::swap)
    }

    /// Runs until all steps are done, early stopping, a loss that is not finite, or `stop`.
    ///
    /// `stop` is asked before each step; the state is then that after the previous step, and a
    /// checkpoint of it is saved. Errors of the task, of a listener, and of a checkpoint end it
    /// too.
    pub fn run(&mut self, listener: &mut dyn Listener, stop: &dyn Fn() -> bool) -> Result<End> {
        let Trainer { task, optimizer, rest, runner } = self;
        let task = *task;
        task.module().train();
        let started = Event::Started {
            step: rest.place.step,
            steps: rest.options.steps,
            per_epoch: rest.batches.per_epoch(),
            parameters: task.module().trained_count(),
            counted: task.counted(),
        };
        listener.hear(&started)?;
        if let Some(watch) = &mut rest.watch {
            watch.begin(rest.place.step);
        }
        let ran = rest.agree(task).and_then(|()| {
            let mut runner = runner.as_deref_mut();
            if let Some(runner) = &mut runner {
                runner.begin(rest.place.step);
            }
            let verdicts = rest.ranks.as_ref().map(|ranks| ranks.verdicts.clone());
            let verdicts = verdicts.unwrap_or_default();
            let mut engine = Engine::new(task, &mut **optimizer, &rest.options, runner, verdicts)?;
            let ran = rest.run(task, &mut engine, listener, stop);
            // Also after another error, such as a full disk.
            let fetched = engine.fetch();
            ran.and_then(|end| fetched.map(|()| end))
        });
        if let (Err(e), Some(ranks)) = (&ran, &mut rest.ranks) {
            ranks.abort(&e.to_string());
        }
        let end = ran?;
        let end = match end {
            End::NotFinite { step, loss, .. } => {
                End::NotFinite { step, loss, why: self.explain()? }
            }
            other => other,
        };
        listener.hear(&Event::Ended { step: self.rest.place.step, how: &end })?;
        Ok(end)
    }
}

impl Rest {
    fn run(
        &mut self,
        task: &dyn Task,
        engine: &mut Engine<'_>,
        listener: &mut dyn Listener,
        stop: &dyn Fn() -> bool,
    ) -> Result<End> {
        let mut saved_at = None;
        let end = loop {
            if self.place.step >= self.options.steps {
                break End::Finished;
            }
            // Reports steps that a device has finished first.
            if self.stops(stop()) && !engine.is_ahead() {
                break End::Stopped;
            }
            if let Some(patience) = self.options.patience
                && self.place.best.since() > patience
            {
                break End::NoBetter { evaluations: self.place.best.since() };
            }
            self.keep_now_and_then(task, engine)?;
            let step = self.one_step(task, engine)?;
            self.watched(&step, listener)?;
            if !step.loss.is_finite() {
                self.is_past = engine.always_updates();
                self.gather_shards(task, engine)?;
                self.gather_average()?;
                self.saved(listener, Saver::wait)?;
                return Ok(End::NotFinite { step: step.step, loss: step.loss, why: String::new() });
            }
            listener.hear(&Event::Step(step))?;
            self.saved(listener, Saver::poll)?;
            let is_best = self.is_due(self.options.eval_every) && {
                engine.fetch()?;
                self.measure(task, step.epoch, listener)?
            };
            if is_best || (self.options.save_every > 0 && self.is_due(self.options.save_every)) {
                self.save(task, engine, listener, is_best)?;
                saved_at = Some(self.place.step);
            }
        };
        if saved_at != Some(self.place.step) {
            self.save(task, engine, listener, false)?;
        }
        self.gather_average()?;
        self.saved(listener, Saver::wait)?;
        Ok(end)
    }

    /// Whether the run stops here. With several ranks a stop is exchanged in a step first, so that
    /// all end after the same one.
    fn stops(&mut self, asked: bool) -> bool {
        match &mut self.ranks {
            Some(ranks) if ranks.are_many() => {
                ranks.asked_to_stop |= asked;
                ranks.stopped
            }
            _ => asked,
        }
    }

    fn agree(&mut self, task: &dyn Task) -> Result<()> {
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        ranks.agree(task, self.place.step, &self.options)
    }

    /// Whether a periodic action is due after this step, or at the end.
    fn is_due(&self, every: u64) -> bool {
        let step = self.place.step;
        every != TrainerOptions::NEVER && step == self.options.steps
            || (every > 0 && step.is_multiple_of(every))
    }

    /// Next batch, which is kept.
    pub fn draw(&mut self) -> Result<Batch> {
        if let (true, Some(batch)) = (self.options.overfit_batch, &self.batch) {
            return Ok(batch.clone());
        }
        let batch = self.batches.next_batch()?;
        self.batch = Some(batch.clone());
        Ok(batch)
    }

    /// One step, if its loss is finite; else only the draw of a batch (or, in a program, a spoilt
    /// update).
    fn one_step(&mut self, task: &dyn Task, engine: &mut Engine<'_>) -> Result<StepEvent> {
        let lr = self.schedule.lr(self.place.step);
        if lr != engine.optimizer().lr() {
            engine.optimizer().set_lr(lr)?;
        }
        let done = rounded(self.options.autocast, || engine.step(task, self))?;
        let step = self.place.step + 1;
        let epoch = self.epoch_after(step);
        if done.loss.is_finite() {
            self.place.step = step;
            if self.begins_the_mean(step) {
                (self.place.loss_sum, self.place.loss_count) = (0.0, 0);
            }
            self.place.loss_sum += done.loss;
            self.place.loss_count += 1;
            if let Some(ema) = &mut self.ema {
                engine.fetch()?;
                ema.update()?;
            }
        }
        if let Some(norm) = &self.grad_norm {
            engine.fetch_one(norm)?;
        }
        let grad_norm = self.grad_norm.as_ref().map(Tensor::try_item).transpose()?;
        let (loss, examples) = (done.loss, done.examples);
        Ok(StepEvent { step, epoch, loss, lr, grad_norm, examples })
    }

    /// Passes the step to the monitor, and its findings to the listeners.
    fn watched(&mut self, step: &StepEvent, listener: &mut dyn Listener) -> Result<()> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let has_looked = watch.end(step, self.options.clip);
        // The step of a bad loss is in no file of metrics.
        if has_looked && step.loss.is_finite() {
            let began = Instant::now();
            listener.hear(&Event::Looked { step: step.step, monitor: &watch.monitor })?;
            watch.spend(began);
        }
        for symptom in watch.news(has_looked, !step.loss.is_finite()) {
            listener.hear(&Event::Found { step: step.step, symptom: &symptom })?;
        }
        Ok(())
    }

    /// Whether `train_loss` of the next measurement is the mean from this step on.
    fn begins_the_mean(&self, step: u64) -> bool {
        let (every, steps) = (self.options.eval_every, self.options.steps);
        let next = match every {
            0 => steps,
            _ => step.div_ceil(every).saturating_mul(every).min(steps),
        };
        let per_epoch = self.batches.per_epoch();
        let most = per_epoch.map_or(NEWEST, |n| n.div_ceil(self.options.accumulate as u64).max(1));
        next.checked_sub(step).is_some_and(|left| left + 1 == most)
    }

    fn epoch_after(&self, step: u64) -> Option<f64> {
        let batches = step as f64 * self.options.accumulate as f64;
        self.batches.per_epoch().map(|n| batches / n.max(1) as f64)
    }

    /// Evaluates the model, with the averaged weights if there are any; returns whether it is the
    /// best so far.
    fn measure(
        &mut self,
        task: &dyn Task,
        epoch: Option<f64>,
        listener: &mut dyn Listener,
    ) -> Result<bool> {
        let began = Instant::now();
        let module = task.module();
        module.eval();
        let measured = match &mut self.ema {
            Some(ema) => ema.averaged(&self.ranks, || no_grad(|| evaluate(task, &self.ranks)))?,
            None => no_grad(|| evaluate(task, &self.ranks)),
        };
        module.train();
        let (measures, sample) = measured?;
        let averaged = self.place.loss_count;
        let train_loss = self.place.loss_sum / averaged.max(1) as f64;
        (self.place.loss_sum, self.place.loss_count) = (0.0, 0);
        // Without a measure the training loss decides.
        let first = measures.first().map_or(train_loss, |&(_, value)| value);
        let is_best = self.place.best.take(first);
        self.last_metrics.clear();
        self.last_metrics.push(("train_loss", train_loss));
        self.last_metrics.extend(measures);
        if let (Some(watch), false) = (&mut self.watch, self.options.overfit_batch) {
            watch.validated(&self.last_metrics[1..]);
        }
        let step = self.place.step;
        let seconds = began.elapsed().as_secs_f64();
        let metrics = &self.last_metrics;
        listener.hear(&Event::Evaluated { step, epoch, metrics, averaged, seconds, is_best })?;
        if let (Some(watch), Some(text)) = (&mut self.watch, &sample) {
            watch.monitor.sampled(text);
        }
        if let Some(text) = &sample {
            listener.hear(&Event::Sampled { step, text })?;
        }
        Ok(is_best)
    }

    /// Reports the checkpoint that has finished by now, if there is one.
    fn saved(
        &mut self,
        listener: &mut dyn Listener,
        ask: fn(&mut Saver) -> Result<Option<Save>>,
    ) -> Result<()> {
        match self.saver.as_mut().map_or(Ok(None), ask)? {
            Some(Save { step, is_best }) => listener.hear(&Event::Saved { step, is_best }),
            None => Ok(()),
        }
    }
}

/// The measures, evaluated across ranks, and a sample.
fn evaluate(task: &dyn Task, ranks: &Option<Ranks>) -> Result<(Metrics, Option<String>)> {
    let measures = match ranks {
        Some(ranks) => ranks.evaluate(task),
        None => task.evaluate(),
    };
    Ok((measures?, task.sample()?))
}

#[cfg(test)]
mod tests;
