//! The loop of a training.

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
    /// The number of steps in all.
    pub steps: u64,
    /// Steps between two measurements of the model, the last at the end; 0 for the end alone,
    /// [`TrainerOptions::NEVER`] for not at all.
    pub eval_every: u64,
    /// Steps between two checkpoints, where there is a folder for them; 0 for the end and the best
    /// alone.
    pub save_every: u64,
    /// The number of micro-batches of one update; their gradients are averaged, in an order that
    /// does not depend on the ranks they are shared out to.
    pub accumulate: usize,
    /// The largest norm of the gradients.
    pub clip: Option<f64>,
    /// The decay of an average of the weights, with which the model is measured.
    pub ema: Option<f64>,
    /// Measurements in a row no better than the best after which it ends.
    pub patience: Option<u64>,
    /// Learns the first batch only, again and again: a model that works gets its loss to about
    /// zero.
    pub overfit_batch: bool,
    /// Shares out the optimizer's state to the ranks, whole parameters at a time: each rank updates
    /// its part, and all take over the new weights. For optimizers that update each parameter by
    /// itself, as all of [`optim`](crate::optim) do; to the same bits.
    pub sharded: bool,
    /// Runs a step as a program, where that is possible.
    pub compiled: bool,
    /// Lets the program be simplified by algebra: the last digits of the losses may differ from the
    /// eager ones.
    pub simplified: bool,
    /// Runs the last step op by op for [`Task::look`]; a program does it too, and its result
    /// counts.
    pub looks_at_the_last: bool,
    /// The dtype to which the products of a step round their operands, as in
    /// [`try_autocast`](crate::tensor::try_autocast). Weights, the optimizer's state and
    /// measurements stay whole.
    pub autocast: Option<DType>,
}

impl TrainerOptions {
    /// A number of steps that no run reaches.
    pub const NEVER: u64 = u64::MAX;
}

/// Runs a part of a step with the products that [`TrainerOptions::autocast`] asks for.
pub(super) fn rounded<R>(to: Option<DType>, f: impl FnOnce() -> Result<R>) -> Result<R> {
    match to {
        Some(dtype) => try_autocast(dtype, f)?,
        None => f(),
    }
}

impl Default for TrainerOptions {
    /// 1,000 eager steps, measured at the end.
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

/// A training: can be run, stopped at any step, saved, and taken up to the same bits. See [the
/// module](super).
pub struct Trainer<'a> {
    pub(super) task: &'a dyn Task,
    pub(super) optimizer: Box<dyn Optimizer>,
    pub(super) rest: Rest,
    runner: Option<Box<dyn ProgramRunner>>,
}

/// All but what the step itself borrows.
pub(super) struct Rest {
    pub schedule: Box<dyn Schedule>,
    pub batches: Box<dyn Batches>,
    pub options: TrainerOptions,
    pub ema: Option<Average>,
    /// Norm of the last step's gradient, if gradients are clipped.
    grad_norm: Option<Tensor>,
    /// The optimizer under the one that clips.
    unclipped: Option<Inner>,
    pub place: Place,
    pub kept: Option<Kept>,
    /// Whether the weights have the update of the step that ended the training, or later ones.
    pub is_past: bool,
    /// The batch of the present step, to look for the cause of a bad loss.
    pub batch: Option<Batch>,
    saver: Option<Saver>,
    watch: Option<Watch>,
    /// Ranks of a step of several micro-batches.
    ranks: Option<Ranks>,
    last_metrics: Metrics,
}

/// Position in the training.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub step: u64,
    pub best: Best,
    /// Sum of the losses since the last measurement.
    pub loss_sum: f64,
    pub loss_count: u64,
}

impl<'a> Trainer<'a> {
    /// A training of the task's model by an optimizer on batches.
    pub fn builder(
        task: &'a dyn Task,
        optimizer: Box<dyn Optimizer>,
        batches: Box<dyn Batches>,
    ) -> TrainerBuilder<'a> {
        TrainerBuilder::new(task, optimizer, batches)
    }

    /// Saves checkpoints in a folder, each with the text `about`, on a thread of their own while
    /// the training goes on.
    pub fn with_checkpoints(mut self, folder: CheckpointFolder, about: String) -> Self {
        self.rest.saver = Some(Saver::new(folder, about));
        self
    }

    /// Puts a text behind that of each checkpoint, as it is when [`Event::Saving`] was heard:
    /// whoever hears it may write there what belongs to the checkpoint.
    pub fn with_notes(mut self, notes: Arc<Mutex<String>>) -> Self {
        self.rest.saver = self.rest.saver.map(|saver| saver.with_notes(notes));
        self
    }

    /// Has the steps watched by a monitor, which tells of what goes wrong by [`Event::Found`]. The
    /// training has the same bits.
    ///
    /// Steps of a program that are looked at are run once more, op by op. With `share` the looks
    /// after the first ten take at most that share of the time, such as 0.02; without, the monitor
    /// looks whenever it [is due](Monitor::is_due).
    pub fn with_monitor(mut self, monitor: Monitor, share: Option<f64>) -> Self {
        self.rest.watch = Some(Watch::new(monitor, share));
        self
    }

    /// Has a device run the steps. Parameters and the optimizer's state live there and are fetched
    /// where something reads them: a measurement, a checkpoint, the monitor, the end.
    ///
    /// The steps must be programs: [`Trainer::run`] errors without [`TrainerOptions::compiled`],
    /// for several micro-batches, and for a task whose gradients are computed by hand.
    pub fn with_runner(mut self, runner: Box<dyn ProgramRunner>) -> Self {
        self.runner = Some(runner);
        self
    }

    /// Shares out the micro-batches of each step to ranks: threads, or processes on one or several
    /// machines, each with this same training. After each step all have the same weights, to the
    /// bits of one rank alone; [`TrainerOptions::accumulate`] is the number of micro-batches.
    ///
    /// `facts` are names and values that all ranks must have alike, such as a sum of the data;
    /// the model, its first weights and the options are compared too. Errors of a rank end all of
    /// them, each with one line that names it. A rank that is asked to stop stops all after the
    /// step that is on.
    pub fn with_exchange(self, exchange: Box<dyn Exchange>, facts: &[(&str, &str)]) -> Self {
        let shared = Arc::new(Mutex::new(exchange));
        self.with_ranks(shared, facts, false)
    }

    /// As [`Trainer::with_exchange`], over a way that layers of the model use too, such as
    /// [`SyncBatchNorm`](crate::SyncBatchNorm): its statistics are then those of all micro-batches
    /// of a step.
    ///
    /// Layers of all ranks exchange sums while the micro-batches are computed, so these must be
    /// computed at the same time: there must be as many ranks as
    /// [`TrainerOptions::accumulate`] says, also after a resume, and the steps must be eager.
    /// [`Trainer::run`] errors on all ranks otherwise.
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
            // Parameters that were averaged whole can be averaged in parts.
            average.share_out(&ranks).unwrap_or_else(|e| unreachable!("{e}"));
        }
        self.rest.ranks = Some(ranks);
        self
    }

    /// The monitor, if there is one.
    pub fn monitor(&self) -> Option<&Monitor> {
        self.rest.watch.as_ref().map(|watch| &watch.monitor)
    }

    /// The number of steps that are done.
    pub fn step(&self) -> u64 {
        self.rest.place.step
    }

    /// The best measurement so far.
    pub fn best(&self) -> Best {
        self.rest.place.best
    }

    /// The loss that one batch learned by heart ends at, where its labels are classes: their
    /// [entropy](Batch::label_entropy). `None` without [`TrainerOptions::overfit_batch`].
    pub fn overfit_floor(&self) -> Result<Option<f64>> {
        match &self.rest.batch {
            Some(batch) if self.rest.options.overfit_batch => batch.label_entropy(),
            _ => Ok(None),
        }
    }

    /// The newest measurements of the run; the first in it is `train_loss`, the mean over the steps
    /// before.
    pub fn metrics(&self) -> &Metrics {
        &self.rest.last_metrics
    }

    /// The loss of the next batch, with its gradients and without an update: a trial whether all
    /// fits together. The place in the data moves on.
    pub fn trial_loss(&mut self) -> Result<f64> {
        self.task.module().train();
        let batch = self.rest.draw()?;
        rounded(self.rest.options.autocast, || self.task.gradients(&batch)?.try_item())
    }

    /// Measures the model now, with the averaged weights if there are any. It does not count for
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

    /// Makes the average of the weights the weights, if there is one; to be called at the end.
    pub fn use_average(&mut self) -> Result<()> {
        self.rest.ema.as_mut().map_or(Ok(()), Average::swap)
    }

    /// Steps until all are done, the measure has not become better for too long, a loss is not
    /// finite, or `stop` says so.
    ///
    /// `stop` is asked before each step; then the model, the optimizer and all else are as after
    /// the step before, and a checkpoint of that is saved. Errors of the task, of a listener, and
    /// of a checkpoint that cannot be written end it too.
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
            // Also after an error of something else, such as a full disk.
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
            // Steps that a device has done by now are told of first.
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

    /// Whether the training stops here. With several ranks a wish to stop goes through a step
    /// first, so that all end after the same one.
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

    /// Whether something is to be done after this step that is done after this many each, and at
    /// the end.
    fn is_due(&self, every: u64) -> bool {
        let step = self.place.step;
        every != TrainerOptions::NEVER && step == self.options.steps
            || (every > 0 && step.is_multiple_of(every))
    }

    /// The next batch, which is kept.
    pub fn draw(&mut self) -> Result<Batch> {
        if let (true, Some(batch)) = (self.options.overfit_batch, &self.batch) {
            return Ok(batch.clone());
        }
        let batch = self.batches.next_batch()?;
        self.batch = Some(batch.clone());
        Ok(batch)
    }

    /// One step, if its loss is finite; else nothing but the draw (or, in a program, a spoilt
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

    /// Tells the monitor of the step, and the listeners of what it saw.
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

    fn epoch_after(&self, step: u64) -> Option<f64> {
        let batches = step as f64 * self.options.accumulate as f64;
        self.batches.per_epoch().map(|n| batches / n.max(1) as f64)
    }

    /// Measures the model, with the averaged weights if there are any; whether it is the best so
    /// far.
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
        let train_loss = self.place.loss_sum / self.place.loss_count.max(1) as f64;
        (self.place.loss_sum, self.place.loss_count) = (0.0, 0);
        // Without a measure of its own a training is as good as its loss.
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
        listener.hear(&Event::Evaluated { step, epoch, metrics, seconds, is_best })?;
        if let (Some(watch), Some(text)) = (&mut self.watch, &sample) {
            watch.monitor.sampled(text);
        }
        if let Some(text) = &sample {
            listener.hear(&Event::Sampled { step, text })?;
        }
        Ok(is_best)
    }

    /// Tells of the checkpoint that is saved by now, if there is one.
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

/// The measures, shared out to the ranks, and a sample.
fn evaluate(task: &dyn Task, ranks: &Option<Ranks>) -> Result<(Metrics, Option<String>)> {
    let measures = match ranks {
        Some(ranks) => ranks.evaluate(task),
        None => task.evaluate(),
    };
    Ok((measures?, task.sample()?))
}

#[cfg(test)]
mod tests;
