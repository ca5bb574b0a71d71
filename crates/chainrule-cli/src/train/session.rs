//! A run from its folder to its results: new or gone on with, stopped in good order, saved, told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Error, Result, anyhow, bail};
use chainrule::data::Batches;
use chainrule::io::{self, CheckpointFolder, Kept};
use chainrule::nn::Module;
use chainrule::train::{End, Listeners, RangeOptions, Task, Trainer, TrainerOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::listen::{Bar, Losses, Metrics, Replace, stride};
use super::settings::{CONFIG_FILE, Config, Defaults, Settings, Versions};
use crate::args::train::{Common, KeptKind};
use crate::interrupt::{self, Interrupt};
use crate::names::MODEL_FILE;
use crate::run_folder::RunFolder;
use crate::{machine, output, plot, report};

/// A training that is about to begin.
pub struct Session<'a> {
    kind: &'static str,
    args: &'a Common,
    pub settings: Settings,
    pub ways: Ways,
    /// What is said of the data before training, if there is something to say.
    pub of_data: Option<String>,
    model: toml::Table,
    interrupt: Interrupt,
}

/// What differs between models.
pub struct Ways {
    /// Whether a step as a program may be simplified by algebra.
    pub simplified: bool,
    /// Whether the task looks at the last step.
    pub looks_at_the_last: bool,
    /// Whether the model is measured if nothing is said of it.
    pub measures: bool,
}

impl<'a> Session<'a> {
    /// With the settings of the command line, or with those of the run that `--resume` names; the model's then come from there too.
    pub fn open<M: Serialize + DeserializeOwned>(
        kind: &'static str,
        args: &'a Common,
        defaults: &Defaults,
        model: M,
    ) -> Result<(Session<'a>, M)> {
        let interrupt = Interrupt::listen()?;
        machine::use_threads(args.threads);
        let (config, model) = match &args.resume {
            Some(folder) => {
                let mut config = Config::read(folder, kind)?;
                let model = config.model(folder)?;
                if let Some(steps) = args.steps {
                    (config.training.steps, config.training.epochs) = (steps, None);
                }
                config.training.epochs = args.epochs.or(config.training.epochs);
                config.training.eager |= args.eager;
                (config, model)
            }
            None => (Config::new(kind, &model, Settings::new(args, defaults))?, model),
        };
        let Config { model: table, training: settings, .. } = config;
        let ways = Ways { simplified: true, looks_at_the_last: false, measures: true };
        Ok((Session { kind, args, settings, ways, of_data: None, model: table, interrupt }, model))
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
        let schedule = self.settings.schedule();
        let mut trainer = Trainer::try_new(task, optimizer, schedule, batches, options)?;
        if self.args.dry_run {
            return self.dry_run(task, trainer);
        }
        if self.args.find_lr {
            return self.find_lr(trainer);
        }
        let about = self.config()?.to_text()?;
        let (folder, mut metrics, mut losses) = self.folder(&mut trainer)?;
        let takes_a_place = self.args.resume.is_none() && folder.file(CONFIG_FILE).exists();
        if !takes_a_place {
            folder.write(CONFIG_FILE, about.as_bytes())?;
        }
        self.announce(task, &folder, trainer.step());
        let kept = CheckpointFolder::new(folder.path());
        let mut trainer = trainer.with_checkpoints(kept, about.clone());
        let mut bar = Bar::new(self.args.quiet || self.args.json);
        let mut replace = Replace { folder: &folder, config: &about, is_done: !takes_a_place };
        let began = Instant::now();
        let ran = {
            let all = Listeners::new().with(&mut metrics).with(&mut losses);
            let mut all = all.with(&mut bar).with(&mut replace);
            trainer.run(&mut all, &|| self.interrupt.asked())
        };
        let seconds = began.elapsed().as_secs_f64();
        bar.finish();
        let steps = trainer.step();
        let end = match ran {
            Ok(end) => end,
            Err(error) => return Err(self.broken(error, trainer, task, metrics, &folder)),
        };
        let numbers = match (&end, trainer.metrics().is_empty()) {
            (End::Finished | End::NoBetter { .. }, false) => trainer.metrics().clone(),
            _ => trainer.evaluate()?,
        };
        let best = trainer.best().value();
        save_model(&mut trainer, task, &folder)?;
        let [svg, png] = ["loss.svg", "loss.png"].map(|name| folder.file(name));
        let title = format!("{}: loss over {}", self.kind, report::steps(steps));
        plot::loss_curve(&losses.points, &title, &svg, &png)?;
        let epochs =
            per_epoch.map(|n| steps as f64 * self.settings.accumulate as f64 / n.max(1) as f64);
        let parameters = task.module().parameter_count();
        let json = self.args.json;
        let lr = self.settings.lr;
        let ran = Ran {
            complaint: None,
            folder,
            metrics,
            end,
            steps,
            epochs,
            seconds,
            numbers,
            best,
            parameters,
            json,
            lr,
        };
        Ok(Outcome::Ran(Box::new(ran)))
    }

    /// What ended the training. If it was the metrics alone, the model so far is saved.
    fn broken(
        &self,
        error: chainrule::Error,
        mut trainer: Trainer<'_>,
        task: &dyn Task,
        mut metrics: Metrics,
        folder: &RunFolder,
    ) -> Error {
        let (steps, place) = (report::steps(trainer.step()), folder.path().display());
        match metrics.failed() {
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
        })
    }

    /// The folder of the run and the files in it that grow; a run that goes on has its trainer set to where it was.
    fn folder(&self, trainer: &mut Trainer<'_>) -> Result<(RunFolder, Metrics, Losses)> {
        let every = self.settings.log_every.unwrap_or_else(|| stride(self.settings.steps));
        let losses = Losses::new(self.settings.steps);
        let Some(path) = &self.args.resume else {
            let folder = RunFolder::create(self.kind, self.args.out.as_deref(), self.args.force)?;
            let metrics = Metrics::create(&folder, every)?;
            return Ok((folder, metrics, losses));
        };
        self.load(path, trainer)?;
        let folder = RunFolder::existing(path);
        let losses = losses.with_earlier(&folder, trainer.step());
        let metrics = Metrics::resume(&folder, every, trainer.step())?;
        Ok((folder, metrics, losses))
    }

    /// Sets the trainer to a checkpoint of the run.
    fn load(&self, path: &Path, trainer: &mut Trainer<'_>) -> Result<()> {
        let which = match self.args.checkpoint {
            KeptKind::Last => Kept::Last,
            KeptKind::Earlier => Kept::Earlier,
            KeptKind::Best => Kept::Best,
        };
        let folder = CheckpointFolder::new(path);
        let checkpoint = folder.load(which).map_err(|e| {
            let text = e.to_string();
            match text.split_once("; the checkpoint `") {
                Some((why, whole)) => {
                    let other = whole.split('`').next().unwrap_or_default();
                    anyhow!(
                        "{why}; the checkpoint `{whole}: go on from there with --checkpoint {other}"
                    )
                }
                None => anyhow!("{text}"),
            }
        })?;
        let file = folder.file(which);
        let about: Option<Config> = toml::from_str(&checkpoint.about).ok();
        if about.is_some_and(|about| about.model != self.model) {
            bail!("{}: a checkpoint of another model than config.toml says", file.display());
        }
        trainer.load_state_dict(&checkpoint.state).map_err(|e| anyhow!("{}: {e}", file.display()))
    }

    /// Says what is about to happen. A reader who has gone is met again when the results are printed.
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
                self.kind,
                report::count(task.module().parameter_count() as u64),
                report::steps(self.settings.steps),
                folder.path().display()
            ));
        }
    }

    /// One loss and its gradients, and what would be done.
    fn dry_run(&self, task: &dyn Task, mut trainer: Trainer<'_>) -> Result<Outcome> {
        let loss = trainer.try_step()?;
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
        Ok(Outcome::Done)
    }

    fn find_lr(&self, mut trainer: Trainer<'_>) -> Result<Outcome> {
        let found = trainer.find_range(RangeOptions::default())?;
        let folder = RunFolder::create(self.kind, self.args.out.as_deref(), self.args.force)?;
        let [svg, png] = ["lr.svg", "lr.png"].map(|name| folder.file(name));
        let title = format!("{}: loss at growing learning rates", self.kind);
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
        Ok(Outcome::Done)
    }
}

/// Writes the weights, or their average.
fn save_model(trainer: &mut Trainer<'_>, task: &dyn Task, folder: &RunFolder) -> Result<()> {
    trainer.use_average()?;
    task.module().eval();
    let bytes = io::serialize(&task.module().state_dict(), &BTreeMap::new())?;
    folder.write(MODEL_FILE, &bytes)
}

/// What became of a session.
pub enum Outcome {
    /// It was not to train, and all is said.
    Done,
    Ran(Box<Ran>),
}

/// A training that has ended, with its model saved.
pub struct Ran {
    pub folder: RunFolder,
    metrics: Metrics,
    pub end: End,
    pub steps: u64,
    pub epochs: Option<f64>,
    pub seconds: f64,
    /// The newest measurements.
    pub numbers: chainrule::train::Metrics,
    best: Option<f64>,
    parameters: usize,
    json: bool,
    pub lr: f64,
    complaint: Option<String>,
}

impl Ran {
    /// Says that the model is of no use, and why; the status is then 1.
    pub fn complain(&mut self, why: String) {
        self.complaint = Some(why);
    }

    /// The results that all trainings have, with `more`.
    fn summary(&self, more: Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::new();
        all.extend(self.numbers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
        all.insert("seconds".into(), json!((self.seconds * 1e6).round() / 1e6));
        all.extend(self.epochs.map(|epochs| ("epochs".to_owned(), json!(epochs))));
        all.insert("steps".into(), json!(self.steps));
        all.insert("parameters".into(), json!(self.parameters));
        all.insert("best".into(), json!(self.best));
        all.extend(more);
        all.insert("interrupted".into(), json!(matches!(self.end, End::Stopped)));
        all.insert("folder".into(), json!(self.folder.path().display().to_string()));
        all.extend(self.error().map(|error| ("error".to_owned(), json!(error))));
        all
    }

    fn error(&self) -> Option<String> {
        let End::NotFinite { step, loss, why } = &self.end else { return self.complaint.clone() };
        Some(format!(
            "the loss of step {step} is {loss}: {why}; try a smaller --lr (it is {:?})",
            self.lr
        ))
    }

    /// Writes the last line of the metrics, prints the results (`lines` for people) and gives the status.
    pub fn finish(self, more: Map<String, Value>, lines: &[String]) -> Result<ExitCode> {
        let summary = self.summary(more);
        let error = self.error();
        let place = self.folder.path().display().to_string();
        let mut last = Map::from_iter([("final".to_owned(), json!(true))]);
        last.extend(summary.clone());
        let Ran { metrics, steps, seconds, numbers, end, json, .. } = self;
        metrics.finish(&last)?;
        if json {
            output::json(&summary)?;
        } else {
            lines.iter().try_for_each(|line| output::line(line))?;
            let numbers: Vec<String> = numbers
                .iter()
                .map(|(name, x)| format!("{} {x:.4}", name.replace('_', " ")))
                .collect();
            let each = match seconds / steps.max(1) as f64 {
                each if each < 1e-3 => format!("{:.1} us", each * 1e6),
                each => format!("{:.2} ms", each * 1e3),
            };
            let steps = report::steps(steps);
            output::line(&format!("{steps} in {seconds:.1} s, {each} each"))?;
            if !numbers.is_empty() {
                output::line(&numbers.join(", "))?;
            }
        }
        if let Some(error) = error {
            bail!("{error}; the model after {} is in {place}", report::steps(steps));
        }
        let text = match end {
            End::Stopped => {
                let text = format!(
                    "interrupted after {}; go on with --resume {place}",
                    report::steps(steps)
                );
                match json {
                    true => output::complain(&text),
                    false => output::line(&text)?,
                }
                return Ok(ExitCode::from(interrupt::EXIT_STATUS as u8));
            }
            End::NoBetter { evaluations } => {
                format!("no better for {evaluations} measurements; the model is in {place}")
            }
            _ => format!("the model is in {place}"),
        };
        if !json {
            output::line(&text)?;
        }
        Ok(ExitCode::SUCCESS)
    }
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
