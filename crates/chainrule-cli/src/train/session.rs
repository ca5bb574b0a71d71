//! A run from its folder to its results: new or gone on with, stopped in good order, saved, told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Error, Result, anyhow, bail};
use chainrule::data::Batches;
use chainrule::exchange::Exchange;
use chainrule::gpu::DeviceName;
use chainrule::io::{self, CheckpointFolder};
use chainrule::nn::Module;
use chainrule::train::{
    End, Event, Listeners, ProgramRunner, RangeOptions, Task, Trainer, TrainerOptions,
};
use chainrule_diagnose::Suspicion;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::DataSums;
use super::branch::Source;
use super::device;
use super::events::Events;
use super::experiments::{self, Beginning, Experiments, SharedBatches};
use super::listen::{Bar, Losses, Metrics, Replace, stride};
use super::page::Page;
use super::ran::{Outcome, Ran, StepTime, not_finite};
use super::ranks;
use super::resumed::Resumed;
use super::settings::{CONFIG_FILE, Checked, Config, Defaults, Settings, Versions};
use super::watching::{self, Watched};
use crate::args::train::Common;
use crate::interrupt::{self, Interrupt};
use crate::names::MODEL_FILE;
use crate::run_folder::{OldFiles, RunFolder};
use crate::{machine, output, plot, report};

/// The page of the diagnosis in the folder of a run.
pub const DIAGNOSIS_FILE: &str = "diagnosis.html";

/// A training that is about to begin.
pub struct Session<'a> {
    kind: &'static str,
    args: &'a Common,
    pub settings: Settings,
    pub ways: Ways,
    /// Remark on the data before training, if there is one.
    pub of_data: Option<String>,
    model: toml::Table,
    /// The data as read; every command says it before it trains.
    data: Option<DataSums>,
    resumed: Option<Resumed>,
    interrupt: Interrupt,
    /// The way to the other ranks, if there are any.
    exchange: Option<Box<dyn Exchange>>,
}

/// The steps that differ between models.
pub struct Ways {
    /// Whether a step as a program may be simplified by algebra.
    pub simplified: bool,
    /// Whether the task looks at the last step.
    pub looks_at_the_last: bool,
    /// Whether the model is measured if nothing is said of it.
    pub measures: bool,
    /// The name of the training in texts and folders.
    pub label: &'static str,
}

impl<'a> Session<'a> {
    /// With the settings of the command line, or with those of the run that `--resume` names; the
    /// model's then come from there too.
    pub fn open<M: Serialize + DeserializeOwned + Checked>(
        kind: &'static str,
        args: &'a Common,
        defaults: &Defaults,
        model: M,
    ) -> Result<(Session<'a>, M)> {
        machine::use_threads(args.threads);
        let mut exchange = ranks::join(args)?;
        // Not before: there is nothing to save yet, and a rank that waits for others ends at once.
        let interrupt = Interrupt::listen()?;
        let is_first = exchange.as_ref().is_none_or(|exchange| exchange.rank() == 0);
        let (config, model, resumed) = match &ranks::resumed(args) {
            Some(path) => {
                let read = || {
                    let folder = is_first.then(|| RunFolder::existing(path)).transpose()?;
                    let config = Config::read(path, kind)?;
                    let model = config.model(path)?;
                    let resumed = Resumed::read(path, folder, args.checkpoint, &config)?;
                    Ok((config, model, resumed))
                };
                let (mut config, model, resumed) = ranks::in_turn(&mut exchange, read)?;
                if let Some(steps) = args.steps {
                    (config.training.steps, config.training.epochs) = (steps, None);
                }
                config.training.epochs = args.epochs.or(config.training.epochs);
                config.training.eager |= args.eager;
                (config, model, Some(resumed))
            }
            None => {
                let mut settings = Settings::new(args, defaults);
                settings.accumulate = ranks::micro_batches(&exchange, settings.accumulate)?;
                model.check(settings.batch).map_err(|why| anyhow!("{why}"))?;
                (Config::new(kind, &model, settings)?, model, None)
            }
        };
        let Config { model: table, training: settings, .. } = config;
        let ways = Ways { simplified: true, looks_at_the_last: false, measures: true, label: kind };
        let session = Session {
            kind,
            args,
            settings,
            ways,
            of_data: None,
            model: table,
            data: None,
            resumed,
            interrupt,
            exchange,
        };
        Ok((session, model))
    }

    /// Notes what was read. A run that goes on must have read the same, or know that it did not.
    pub fn set_data(&mut self, data: DataSums) -> Result<()> {
        if let Some(resumed) = &mut self.resumed {
            let label = self.model.get("data").and_then(toml::Value::as_str);
            let label = label.unwrap_or("the data that the program makes");
            resumed.compare(&data, label, self.args.data_changed)?;
        }
        self.data = Some(data);
        Ok(())
    }

    /// Notes what became known of the model only from its data.
    pub fn set_model(&mut self, model: &impl Serialize) -> Result<()> {
        self.model = Config::new(self.kind, model, self.settings.clone())?.model;
        Ok(())
    }

    /// The options of the library's trainer.
    fn options(&self, per_epoch: Option<u64>) -> TrainerOptions {
        let mut options = self.settings.options(per_epoch);
        let asked = self.settings.eval_every.is_some() || self.settings.patience.is_some();
        if !self.ways.measures && !asked {
            options.eval_every = TrainerOptions::NEVER;
            options.save_every = self.settings.save_every.unwrap_or(0);
        }
        options.simplified = self.ways.simplified;
        options.looks_at_the_last = self.ways.looks_at_the_last;
        options
    }

    /// Trains. Nothing is written before this.
    pub fn run(mut self, task: &dyn Task, batches: Box<dyn Batches>) -> Result<Outcome> {
        let per_epoch = batches.per_epoch();
        self.settings.count_steps(per_epoch);
        let options = self.options(per_epoch);
        let optimizer = self.settings.optimizer(task.module().parameters())?;
        let page = Page::of(self.args, self.ways.label, self.exchange.is_none(), &self.interrupt)?;
        let schedule = Page::steered(page.as_ref(), self.settings.schedule());
        let shared = SharedBatches::new(batches);
        let signs = match self.resumed.is_some() {
            true => Vec::new(),
            false => experiments::signs(task, &shared)?,
        };
        let beginning = self.args.diagnose.map(|_| Beginning::of(task, &shared));
        let trainer = Trainer::builder(task, optimizer, Box::new(shared.clone()));
        let mut trainer = trainer.schedule(schedule).options(options.clone()).build()?;
        if !self.args.json {
            let tell =
                |sign: &Suspicion| format!("before the first step: {}: {}", sign.place, sign.text);
            signs.iter().for_each(|sign| output::complain(&tell(sign)));
        }
        if let Some(runner) = self.runner(task, &options)? {
            trainer = trainer.with_runner(runner);
        }
        if self.args.dry_run {
            ranks::agree_on(&mut self.exchange, "a trial (--dry-run)")?;
            return self.dry_run(task, trainer);
        }
        let rank = self.exchange.as_ref().map_or(0, |exchange| exchange.rank());
        if self.args.find_lr {
            ranks::agree_on(&mut self.exchange, "a search for a rate (--find-lr)")?;
            return if rank == 0 {
                self.find_lr(trainer)
            } else {
                Ok(Outcome::Done(ExitCode::SUCCESS))
            };
        }
        let about = self.config()?.to_text()?;
        if let Some(mut exchange) = self.exchange.take() {
            let facts = ranks::facts(&about);
            let facts: Vec<(&str, &str)> = facts.iter().map(|(n, v)| (&n[..], *v)).collect();
            ranks::agree_with(&mut exchange, &facts)?;
            trainer = trainer.with_exchange(exchange, &facts);
        }
        if rank > 0 {
            return self.follow(trainer);
        }
        let (folder, mut metrics, mut losses) = self.folder(&mut trainer)?;
        folder.write(CONFIG_FILE, about.as_bytes())?;
        self.announce(task, &folder, trainer.step());
        let kept = CheckpointFolder::new(folder.place());
        let trainer = trainer.with_checkpoints(kept.clone(), about).with_notes(metrics.notes());
        let mut trainer = watching::attach(trainer, self.args, &folder);
        // A clone, which tells the trainer where its checkpoints are from then on.
        let mut replace = Replace { folder: &folder, kept };
        let (ran, pace) =
            self.train(&mut trainer, &mut replace, page.as_ref(), (&mut metrics, &mut losses));
        let steps = trainer.step();
        let end = match ran {
            Ok(end) => end,
            Err(error) => return Err(self.broken(error, trainer, task, metrics, &folder)),
        };
        if folder.is_beside() {
            return Err(self.came_to_nothing(end, metrics, &folder));
        }
        let numbers = match (&end, trainer.metrics().is_empty()) {
            (End::Finished | End::NoBetter { .. }, false) => trainer.metrics().clone(),
            _ => trainer.evaluate()?,
        };
        let best = trainer.best().value();
        let overfit_floor = trainer.overfit_floor()?;
        save_model(&mut trainer, task, &folder)?;
        let [svg, png] = ["loss.svg", "loss.png"].map(|name| folder.file(name));
        let title = format!("{}: loss over {}", self.ways.label, report::steps(steps));
        plot::loss_curve(&losses.points, &losses.held, &title, &svg, &png)?;
        let watched = Watched::of(&trainer, &title);
        let experiments = beginning.map(|beginning| Experiments {
            task,
            batches: shared,
            settings: &self.settings,
            options,
            beginning,
            reached: losses.at_the_end(),
            signs: signs.clone(),
        });
        let asked = self.args.diagnose.flatten();
        let proof = experiments.map(|all| all.prove(pace.seconds, asked)).transpose()?;
        if let Some(proof) = &proof {
            let page = proof.html(&format!("{}: why it does not learn", self.ways.label));
            folder.write(DIAGNOSIS_FILE, page.as_bytes())?;
        }
        let epochs =
            per_epoch.map(|n| steps as f64 * self.settings.accumulate as f64 / n.max(1) as f64);
        let parameters = task.module().parameter_count();
        let json = self.args.json;
        let lr = self.settings.lr;
        let ran = Ran {
            kind: self.kind,
            watched,
            signs,
            proof,
            complaint: None,
            folder,
            metrics,
            end,
            steps,
            epochs,
            pace,
            numbers,
            best,
            overfit_floor,
            parameters,
            json,
            lr,
            page,
        };
        Ok(Outcome::Ran(Box::new(ran)))
    }

    /// Runs the steps with all that listens to them; gives their end, and their time.
    fn train(
        &self,
        trainer: &mut Trainer<'_>,
        replace: &mut Replace<'_>,
        page: Option<&Page>,
        (metrics, losses): (&mut Metrics, &mut Losses),
    ) -> (chainrule::Result<End>, StepTime) {
        let folder = replace.folder;
        let mut events = Events::of(self.args.tensorboard, folder);
        let mut bar = Bar::new(self.args.quiet || self.args.json);
        let mut measuring = 0.0;
        let mut clock = |event: &Event<'_>| {
            if let Event::Evaluated { seconds, .. } = event {
                measuring += seconds;
            }
            Ok(())
        };
        let before = trainer.step();
        let began = Instant::now();
        let ran = {
            let all = Listeners::new().with(metrics).with(losses).with(&mut clock);
            let mut all = all.with(&mut bar).with(replace).with(&mut events);
            let mut shown = page.map(Page::run);
            if let Some(shown) = &mut shown {
                all = all.with(shown);
            }
            let asked = || self.interrupt.asked();
            let stop = || page.is_some_and(|page| page.pass(&asked)) || asked();
            loop {
                let ran = trainer.run(&mut all, &stop);
                let (kind, step) = (self.kind, trainer.step());
                let source =
                    Source { folder: folder.path(), kind, step, threads: self.args.threads };
                let is_stop = matches!(ran, Ok(End::Stopped)) && !asked();
                if !(is_stop && page.is_some_and(|page| page.branch(&source))) {
                    break ran;
                }
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        bar.finish();
        (ran, StepTime { steps: trainer.step() - before, seconds, measuring })
    }

    /// The device that runs the steps, if one is asked for. Errors for a step that cannot be run
    /// there, before anything is written.
    fn runner(
        &self,
        task: &dyn Task,
        options: &TrainerOptions,
    ) -> Result<Option<Box<dyn ProgramRunner>>> {
        if self.args.device.is_none_or(|device| device == DeviceName::Cpu) {
            return Ok(None);
        }
        let why = match options {
            _ if self.exchange.is_some() => "this training has ranks",
            o if o.accumulate > 1 => "--accumulate makes several programs of a step",
            o if !o.compiled => "this run goes on eagerly",
            o if o.autocast.is_some() => "this run rounds its products by --autocast",
            _ if !task.has_plain_gradients() => "this model computes its gradients by hand",
            _ => return device::runner(self.args, self.settings.seed),
        };
        bail!("--device runs a step as one program, and {why}; leave --device out")
    }

    /// Trains as another rank than the first, which keeps nothing and tells nothing.
    fn follow(mut self, mut trainer: Trainer<'_>) -> Result<Outcome> {
        if let Some(resumed) = self.resumed.take() {
            resumed.load(&mut trainer)?;
        }
        let stop = || self.interrupt.asked();
        let end = trainer.run(&mut Listeners::new(), &stop).map_err(|e| anyhow!("{e}"))?;
        if let End::Finished | End::NoBetter { .. } = end {
            return Ok(Outcome::Done(ExitCode::SUCCESS));
        }
        // A launcher ends all ranks when one has failed: the first one saves the model before.
        ranks::wait_for_the_first();
        match not_finite(&end, self.settings.lr) {
            Some(why) => Err(anyhow!(why)),
            None => Ok(Outcome::Done(ExitCode::from(interrupt::EXIT_STATUS as u8))),
        }
    }

    /// A run that was to replace another one and ended before it had a checkpoint: the other one
    /// stays.
    fn came_to_nothing(&self, end: End, metrics: Metrics, folder: &RunFolder) -> Error {
        drop(metrics);
        let place = folder.path().display();
        let stays = match folder.withdraw() {
            Ok(()) => format!("the earlier run in {place} is as it was"),
            Err(why) => return why,
        };
        match not_finite(&end, self.settings.lr) {
            Some(why) => anyhow!("{why}; {stays}"),
            None => anyhow!("ended before the first checkpoint; {stays}"),
        }
    }

    /// The error that ended the training. If it was the metrics alone, the model so far is saved.
    fn broken(
        &self,
        error: chainrule::Error,
        mut trainer: Trainer<'_>,
        task: &dyn Task,
        mut metrics: Metrics,
        folder: &RunFolder,
    ) -> Error {
        let (steps, place) = (report::steps(trainer.step()), folder.path().display());
        let failed = metrics.failed();
        if folder.is_beside() {
            drop(metrics);
            let why = failed.unwrap_or_else(|| anyhow!("{error}"));
            return match folder.withdraw() {
                Ok(()) => why.context(format!(
                    "stopped after {steps}; the earlier run in {place} is as it was"
                )),
                Err(other) => why.context(format!("stopped after {steps} of {place} ({other:#})")),
            };
        }
        match failed {
            // Its own text names the cause already.
            None => anyhow!("{error}").context(format!("stopped after {steps} of {place}")),
            Some(why) => {
                let saved = trainer.evaluate().map_err(Error::new);
                let saved = saved.and_then(|_| save_model(&mut trainer, task, folder));
                let saved = saved
                    .and_then(|()| folder.write(CONFIG_FILE, self.config()?.to_text()?.as_bytes()));
                let also = if saved.is_ok() { " and saved the model in" } else { " of" };
                why.context(format!("stopped after {steps}{also} {place}"))
            }
        }
    }

    fn config(&self) -> Result<Config> {
        Ok(Config {
            model: self.model.clone(),
            training: self.settings.clone(),
            versions: Versions::current(),
            data: self.data.clone(),
            metrics: None,
        })
    }

    /// The folder of the run and the files in it that grow; a run that goes on has its trainer set
    /// to where it was.
    fn folder(&mut self, trainer: &mut Trainer<'_>) -> Result<(RunFolder, Metrics, Losses)> {
        let every = self.settings.log_every.unwrap_or_else(|| stride(self.settings.steps));
        let losses = Losses::new(self.settings.steps);
        let Some(resumed) = self.resumed.take() else {
            let is_forced = self.args.force || ranks::is_again(self.args);
            let old = OldFiles::forced(is_forced);
            let folder = RunFolder::create(self.ways.label, self.args.out.as_deref(), old)?;
            if folder.file(CONFIG_FILE).exists() {
                folder.begin_beside()?;
            }
            let metrics = Metrics::create(&folder, every, watching::is_wanted(self.args))?;
            return Ok((folder, metrics, losses));
        };
        let sums = resumed.metrics();
        let folder = resumed.load(trainer)?;
        let folder = folder.ok_or_else(|| anyhow!("the folder of the run is not open"))?;
        let losses = losses.with_earlier(&folder, trainer.step());
        let is_watched = watching::is_wanted(self.args);
        let metrics = Metrics::resume(&folder, every, trainer.step(), is_watched, &sums)?;
        Ok((folder, metrics, losses))
    }

    /// Says what is about to happen. A reader who has gone is met again when the results are
    /// printed.
    fn announce(&self, task: &dyn Task, folder: &RunFolder, done: u64) {
        if !self.args.json {
            let from = match done {
                0 => String::new(),
                done => format!(", going on after {}", report::steps(done)),
            };
            if let Some(text) = &self.of_data {
                let _ = output::line(text);
            }
            let _ = output::line(&format!(
                "{}: {} parameters; {}{from}; results in {}",
                self.ways.label,
                report::count(task.module().parameter_count() as u64),
                report::steps(self.settings.steps),
                folder.path().display()
            ));
        }
    }

    /// One loss and its gradients, and what would be done.
    fn dry_run(&self, task: &dyn Task, mut trainer: Trainer<'_>) -> Result<Outcome> {
        let loss = trainer.trial_loss()?;
        if self.args.json {
            output::json(&json!({
                "dry_run": true, "steps": self.settings.steps, "first_loss": loss,
                "parameters": task.module().parameter_count(),
            }))?;
        } else {
            output::line(&toml::to_string(&self.settings)?)?;
            output::line(&format!(
                "{} parameters, loss of the first batch {loss:.4}; nothing was written",
                report::count(task.module().parameter_count() as u64)
            ))?;
        }
        Ok(Outcome::Done(ExitCode::SUCCESS))
    }

    fn find_lr(&self, mut trainer: Trainer<'_>) -> Result<Outcome> {
        let found = trainer.find_range(RangeOptions::default())?;
        let folder = RunFolder::create(
            self.ways.label,
            self.args.out.as_deref(),
            OldFiles::forced(self.args.force),
        )?;
        let [svg, png] = ["lr.svg", "lr.png"].map(|name| folder.file(name));
        let title = format!("{}: loss at growing learning rates", self.ways.label);
        plot::range_curve(&found.points, found.steepest, &title, &svg, &png)?;
        let place = folder.path().display().to_string();
        if self.args.json {
            output::json(&json!({
                "steepest": found.steepest, "points": found.points, "folder": place,
            }))?;
        } else {
            output::line(&match found.steepest {
                Some(lr) => {
                    format!("the loss falls fastest at a rate of {lr:.2e}: try --lr {lr:.1e}")
                }
                None => "the loss does not fall at any of the rates".to_owned(),
            })?;
            output::line(&format!("the picture is {}", folder.file("lr.svg").display()))?;
        }
        Ok(Outcome::Done(ExitCode::SUCCESS))
    }
}

/// Writes the weights, or their average.
fn save_model(trainer: &mut Trainer<'_>, task: &dyn Task, folder: &RunFolder) -> Result<()> {
    trainer.use_average()?;
    task.module().eval();
    let bytes = io::serialize_checked(&task.module().state_dict(), &BTreeMap::new())?;
    folder.write(MODEL_FILE, &bytes)
}

/// A path as it is kept in settings: whole, so that it holds from other folders too.
pub fn absolute(path: &Path) -> String {
    let path: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

/// Sets a module to the weights of a run.
pub fn load_weights(run: &Path, module: &dyn Module) -> Result<()> {
    let path = run.join(MODEL_FILE);
    let state = io::load(&path).map_err(|e| anyhow!("{e}"))?;
    let help = "train again or restore the file";
    module.load_state_dict(&state).map_err(|e| anyhow!("{}: {e}; {help}", path.display()))?;
    if let Some((name, _)) = state.iter().find(|(_, tensor)| !tensor.is_finite()) {
        bail!("{}: `{name}` holds values that are not finite; {help}", path.display());
    }
    module.eval();
    Ok(())
}
