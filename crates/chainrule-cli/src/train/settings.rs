//! The settings of a training, filled with the defaults of its kind, and what is made of them.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use chainrule::Tensor;
use chainrule::optim::schedule::{ConstantLr, CosineLr, MultiStepLr, OneCycleLr, Schedule, StepLr};
use chainrule::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Group, Lion, LionOptions,
    Muon, MuonOptions, Optimizer, RmsProp, RmsPropOptions, Sgd, SgdOptions,
};
use chainrule::train::TrainerOptions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::DataSums;
use super::metrics_sums::MetricsSums;
use crate::args::train::{Autocast, Common, OptimizerKind, ScheduleKind, check_settings};

/// The file's name in the folder of a run.
pub const CONFIG_FILE: &str = "config.toml";

/// Kind of the models of names beside the main one. Files call both `names`, and say which of the
/// others it is in `model`.
pub const FAMILY: &str = "names --model";

/// The way this file is laid out.
const FORMAT: u32 = 2;

/// The largest file of settings that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Rate of AdamW beside that of Muon: 3e-4 beside 0.02, as Muon's author has it.
const BESIDE_MUON: f64 = 0.015;

/// Defaults of a kind of training.
#[derive(Clone, Copy)]
pub struct Defaults {
    pub epochs: Option<u64>,
    pub steps: u64,
    pub batch: usize,
    pub lr: f64,
    /// The last rate of the cosine schedule, as a share of the first.
    pub last: f64,
    pub optimizer: OptimizerKind,
    pub betas: (f64, f64),
    pub schedule: ScheduleKind,
    pub warm_up: u64,
    pub momentum: f64,
    pub weight_decay: f64,
    pub clip: Option<f64>,
    pub ema: Option<f64>,
    pub seed: u64,
}

impl Defaults {
    /// The defaults of most.
    pub const fn new() -> Defaults {
        Defaults {
            epochs: None,
            steps: 1_000,
            batch: 32,
            lr: 0.01,
            last: 0.1,
            optimizer: OptimizerKind::Adam,
            betas: (0.9, 0.999),
            schedule: ScheduleKind::Constant,
            warm_up: 0,
            momentum: 0.0,
            weight_decay: 0.0,
            clip: None,
            ema: None,
            seed: 1,
        }
    }
}

/// Settings of a training: all that decides its numbers, but for model and data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// 0 while the epochs are not counted in steps.
    pub steps: u64,
    pub batch: usize,
    pub lr: f64,
    pub last_lr: f64,
    pub optimizer: OptimizerKind,
    pub betas: (f64, f64),
    pub schedule: ScheduleKind,
    /// The step at which the rate falls to a tenth, instead of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenth_at: Option<u64>,
    pub warm_up: u64,
    pub momentum: f64,
    pub weight_decay: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    pub accumulate: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ema: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_every: Option<u64>,
    pub seed: u64,
    pub eager: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocast: Option<Autocast>,
    pub overfit_batch: bool,
}

impl Settings {
    /// The options of the command line, and the defaults for the rest.
    pub fn new(args: &Common, defaults: &Defaults) -> Settings {
        let lr = args.lr.unwrap_or(defaults.lr);
        let optimizer = args.optimizer.unwrap_or(defaults.optimizer);
        // As a part of the gradient, decay would be many times as strong as beside it.
        let usual_decay = if optimizer == defaults.optimizer { defaults.weight_decay } else { 0.0 };
        let epochs = match args.steps {
            Some(_) => None,
            None => args.epochs.or(defaults.epochs),
        };
        Settings {
            epochs,
            steps: if epochs.is_some() { 0 } else { args.steps.unwrap_or(defaults.steps) },
            batch: args.batch.unwrap_or(defaults.batch),
            lr,
            last_lr: lr * defaults.last,
            optimizer,
            betas: defaults.betas,
            schedule: args.schedule.unwrap_or(defaults.schedule),
            tenth_at: None,
            warm_up: args.warm_up.unwrap_or(defaults.warm_up),
            momentum: args.momentum.unwrap_or(defaults.momentum),
            weight_decay: args.weight_decay.unwrap_or(usual_decay),
            clip: args.clip.or(defaults.clip),
            accumulate: args.accumulate.unwrap_or(1),
            ema: args.ema.or(defaults.ema),
            patience: args.patience,
            eval_every: args.eval_every,
            save_every: args.save_every,
            log_every: args.log_every,
            seed: args.seed.unwrap_or(defaults.seed),
            eager: args.eager,
            autocast: args.autocast,
            overfit_batch: args.overfit_batch,
        }
    }

    /// Counts epochs in steps.
    pub fn count_steps(&mut self, per_epoch: Option<u64>) {
        if let Some(epochs) = self.epochs {
            let batches = per_epoch.unwrap_or(1).saturating_mul(epochs);
            self.steps = batches.div_ceil(self.accumulate as u64).max(1);
        }
        // A warm-up that a short run does not get out of is shortened.
        self.warm_up = self.warm_up.min(self.steps / 2);
    }

    /// The steps between two measurements: an epoch, or a tenth of the run.
    pub fn eval_every(&self, per_epoch: Option<u64>) -> u64 {
        let by_epoch = |n: u64| n.div_ceil(self.accumulate as u64);
        let usual = || match (self.epochs, per_epoch) {
            (Some(_), Some(n)) => by_epoch(n),
            _ => self.steps.div_ceil(10),
        };
        self.eval_every.unwrap_or_else(usual).max(1)
    }

    /// The options of the library's trainer.
    pub fn options(&self, per_epoch: Option<u64>) -> TrainerOptions {
        let eval_every = self.eval_every(per_epoch);
        TrainerOptions {
            steps: self.steps,
            eval_every,
            save_every: self.save_every.unwrap_or(eval_every),
            accumulate: self.accumulate,
            clip: self.clip,
            ema: self.ema,
            patience: self.patience,
            overfit_batch: self.overfit_batch,
            // All optimizers of the command update each parameter by itself.
            sharded: true,
            compiled: !self.eager,
            autocast: self.autocast.map(Autocast::dtype),
            ..TrainerOptions::default()
        }
    }

    /// The optimizer; matrices are decayed, biases and gains are not. Muon is for matrices alone:
    /// beside it AdamW trains the rest.
    pub fn optimizer(&self, parameters: Vec<Tensor>) -> Result<Box<dyn Optimizer>> {
        fn groups<R>(parameters: Vec<Tensor>, decay: f64) -> Vec<Group<R>> {
            let (matrices, rest): (Vec<Tensor>, Vec<Tensor>) =
                parameters.into_iter().partition(|p| p.rank() >= 2);
            let parts =
                [Group::new(matrices).weight_decay(decay), Group::new(rest).weight_decay(0.0)];
            parts.into_iter().collect()
        }
        let (lr, betas, momentum) = (self.lr, self.betas, self.momentum);
        let decay = self.weight_decay;
        Ok(match self.optimizer {
            OptimizerKind::Sgd => {
                let options = SgdOptions { momentum, ..SgdOptions::default() };
                Box::new(Sgd::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Adam => {
                let options = AdamOptions { betas, ..AdamOptions::default() };
                Box::new(Adam::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Adamw => {
                let options = AdamWOptions { betas, ..AdamWOptions::default() };
                Box::new(AdamW::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Rmsprop => {
                let options = RmsPropOptions { momentum, ..RmsPropOptions::default() };
                Box::new(RmsProp::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Adagrad => {
                let options = AdagradOptions::default();
                Box::new(Adagrad::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Lion => {
                let options = LionOptions::default();
                Box::new(Lion::try_with_groups(groups(parameters, decay), lr, options)?)
            }
            OptimizerKind::Muon => {
                let (matrices, rest): (Vec<Tensor>, Vec<Tensor>) =
                    parameters.into_iter().partition(|p| p.rank() == 2);
                let matrices = [Group::new(matrices).weight_decay(decay)];
                let muon = Muon::try_with_groups(matrices, lr, MuonOptions::default())?;
                let rest = Group::new(rest).lr(lr * BESIDE_MUON).weight_decay(0.0);
                Box::new(muon.try_and(rest, AdamWOptions { betas, ..AdamWOptions::default() })?)
            }
        })
    }

    /// The schedule over all steps.
    pub fn schedule(&self) -> Box<dyn Schedule> {
        let Settings { lr, last_lr: min_lr, warm_up, steps, .. } = *self;
        if let Some(at) = self.tenth_at {
            return Box::new(Tenth { lr, at });
        }
        match self.schedule {
            ScheduleKind::Constant => Box::new(ConstantLr { lr }),
            ScheduleKind::Cosine => Box::new(CosineLr { lr, min_lr, warm_up, steps }),
            ScheduleKind::Step => Box::new(StepLr { lr, every: (steps / 2).max(1), gamma: 0.1 }),
            ScheduleKind::Late => {
                Box::new(MultiStepLr { lr, milestones: vec![steps - steps / 4], gamma: 0.1 })
            }
            ScheduleKind::Onecycle => Box::new(OneCycleLr::new(lr, steps)),
        }
    }
}

/// Full at first, a tenth from a step on.
#[derive(Debug)]
struct Tenth {
    lr: f64,
    at: u64,
}

impl Schedule for Tenth {
    fn lr(&self, step: u64) -> f64 {
        if step < self.at { self.lr } else { self.lr / 10.0 }
    }

    fn check(&self) -> chainrule::Result<()> {
        ConstantLr { lr: self.lr }.check()
    }
}

/// Versions of the program that wrote the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    pub format: u32,
    pub chainrule: String,
}

impl Versions {
    /// The versions of this program.
    pub fn current() -> Versions {
        Versions { format: FORMAT, chainrule: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// `config.toml` of a run: its model (a table with its `kind`), its settings, and what wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub model: toml::Table,
    pub training: Settings,
    pub versions: Versions,
    /// The data that the run read; none in files of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSums>,
    /// The files of metrics so far, in checkpoints alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSums>,
}

/// The settings of a model, as they stand in a file: of sizes that the options for them allow.
pub trait Checked {
    /// An error that says which setting is beyond which limit, for a model that learns from this
    /// many examples at once.
    fn check(&self, batch: usize) -> Result<(), String>;
}

impl Config {
    /// The settings of a model of that kind.
    pub fn new(kind: &str, model: &impl Serialize, training: Settings) -> Result<Config> {
        let mut table = toml::Table::try_from(model)?;
        let word = if kind == FAMILY { "names" } else { kind };
        table.insert("kind".into(), word.into());
        let versions = Versions::current();
        Ok(Config { model: table, training, versions, data: None, metrics: None })
    }

    /// The text of the file.
    pub fn to_text(&self) -> Result<String> {
        let head = "# The settings of a training run. `eval`, `sample`, `predict` and `--resume` read this file.\n\n";
        Ok(format!("{head}{}", toml::to_string(self)?))
    }

    /// The kind of the model.
    pub fn kind(&self) -> &str {
        kind_in(&self.model)
    }

    /// The settings of the model, within the limits of the options.
    pub fn model<M: DeserializeOwned + Checked>(&self, folder: &Path) -> Result<M> {
        let model: M =
            self.model.clone().try_into().map_err(|e| broken(folder, &format!("{e}")))?;
        let checked = model.check(self.training.batch);
        checked.map_err(|why| broken(folder, &format!("under [model]: {why}")))?;
        Ok(model)
    }

    /// Errors if the data are not those that the run learned from, as far as it kept checksums.
    pub fn check_data(&self, folder: &Path, now: &DataSums) -> Result<()> {
        match self.data.as_ref().and_then(|then| now.changes_since(then)) {
            None => Ok(()),
            Some(changes) => bail!(
                "{}: not the data that the run learned from: {changes}; restore them, or name other data with --data",
                folder.display()
            ),
        }
    }

    /// Reads the file of a run, which must be of that kind.
    pub fn read(folder: &Path, kind: &str) -> Result<Config> {
        Config::parse(&read_text(folder)?, kind).map_err(|why| broken(folder, &why))
    }

    fn parse(text: &str, kind: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |at| text[..at.start].matches('\n').count() + 1);
            format!("line {line}: {}", e.message())
        })?;
        if config.versions.format != FORMAT {
            return Err(format!("written in format {}, not {FORMAT}", config.versions.format));
        }
        if config.kind() != kind {
            return Err(format!("the model is of kind `{}`, not `{kind}`", config.kind()));
        }
        check_settings(&config.training)?;
        Ok(config)
    }
}

fn broken(folder: &Path, why: &str) -> anyhow::Error {
    let why = why.trim().replace('\n', " ");
    anyhow!("{}: {why}; train again or restore the file", folder.join(CONFIG_FILE).display())
}

/// The kind of the model of a run.
pub fn kind_of(folder: &Path) -> Result<String> {
    let table: toml::Table = toml::from_str(&read_text(folder)?).unwrap_or_default();
    let model = table.get("model").and_then(toml::Value::as_table);
    Ok(model.map(kind_in).unwrap_or_default().to_owned())
}

/// The kind of the model of this table.
fn kind_in(model: &toml::Table) -> &str {
    match model.get("kind").and_then(toml::Value::as_str).unwrap_or_default() {
        "names" if model.contains_key("model") => FAMILY,
        // The word of earlier versions.
        "names-family" => FAMILY,
        kind => kind,
    }
}

fn read_text(folder: &Path) -> Result<String> {
    if !folder.is_dir() {
        let what = if folder.exists() { "is not a folder" } else { "there is no such folder" };
        bail!("{}: {what}; give the folder of a training run", folder.display());
    }
    let path = folder.join(CONFIG_FILE);
    if !path.exists() {
        bail!("{}: no such file; give the folder of a training run", path.display());
    }
    let again = |why: String| {
        anyhow!("{}: cannot be read ({why}); train again or restore it", path.display())
    };
    let bytes = chainrule::io::read_bounded(&path, MOST_BYTES).map_err(again)?;
    String::from_utf8(bytes).map_err(|_| again("it is not UTF-8 text".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_to_a_tenth() {
        let rates = |at| [0, 1, 2, 9].map(|step| Tenth { lr: 0.1, at }.lr(step));
        assert_eq!((rates(2), rates(0)), ([0.1, 0.1, 0.01, 0.01], [0.01; 4]));
    }

    fn text() -> String {
        let settings = Settings::new(&Common::default(), &Defaults::new());
        let model = toml::Table::from_iter([("hidden".to_owned(), 20.into())]);
        Config::new("moons", &model, settings).unwrap().to_text().unwrap()
    }

    #[test]
    fn models_of_names_share_a_word_and_are_told_apart() {
        let settings = || Settings::new(&Common::default(), &Defaults::new());
        let table = |name: &str, value: &str| {
            toml::Table::from_iter([(name.to_owned(), toml::Value::from(value))])
        };
        let text = Config::new(FAMILY, &table("model", "gru"), settings()).unwrap().to_text();
        let text = text.unwrap();
        assert!(text.contains("kind = \"names\"") && !text.contains("family"), "{text}");
        assert_eq!(Config::parse(&text, FAMILY).unwrap().kind(), FAMILY);
        let why = Config::parse(&text, "names").unwrap_err();
        assert!(why.contains("of kind `names --model`, not `names`"), "{why}");
        let main = Config::new("names", &table("data", "a"), settings()).unwrap();
        assert_eq!(Config::parse(&main.to_text().unwrap(), "names").unwrap().kind(), "names");
        // Folders of earlier versions can be read.
        let old = text.replace("kind = \"names\"", "kind = \"names-family\"");
        assert_eq!(Config::parse(&old, FAMILY).unwrap().kind(), FAMILY);
    }

    #[test]
    fn broken_settings_are_told_in_one_line() {
        let good = text();
        assert!(Config::parse(&good, "moons").is_ok());
        for (from, to, part) in [
            ("batch = 32", "batch = 0", "batch = 0 under [training]"),
            ("batch = 32", "batch = -1", "line "),
            ("batch = 32", "batch = ", "line "),
            ("batch = 32", "", "batch"),
            ("lr = 0.01", "lr = nan", "lr = NaN under [training]"),
            ("batch = 32", "batch = 4000000000000000000", "a whole number from 1 to 1000000"),
            ("accumulate = 1", "accumulate = 4611686018427387904", "the number of batches"),
            ("accumulate = 1", "accumulate = 0", "the number of batches"),
            ("steps = 1000", "steps = 0", "the number of steps"),
            ("momentum = 0.0", "momentum = 1.0", "below 1"),
            ("format = 2", "format = 1", "format 1"),
            ("kind = \"moons\"", "kind = \"gpt\"", "of kind `gpt`"),
        ] {
            assert!(good.contains(from), "{from} in {good}");
            let why = Config::parse(&good.replacen(from, to, 1), "moons").unwrap_err();
            assert!(why.contains(part), "{why}");
            assert!(!format!("{}", broken(Path::new("run"), &why)).contains('\n'), "{why}");
        }
    }

    /// Damaged settings are told, and never end the program. `CHAINRULE_FUZZ=10000000` sets how
    /// many are tried.
    #[test]
    fn damaged_settings_are_no_panic() {
        let inputs = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok());
        let rng = &mut chainrule::rng::CounterRng::new(0xF022, 7);
        let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
        let good = text().into_bytes();
        let mut accepted = 0u64;
        for _ in 0..inputs.unwrap_or(5_000u64) {
            let mut bytes = good.clone();
            for _ in 0..=below(4) {
                let at = below(bytes.len());
                match below(5) {
                    _ if bytes.is_empty() => bytes.push(b'['),
                    0 => bytes[at] = b"[]={}\"'.-+09e\n"[below(14)],
                    1 => bytes[at] ^= 1 << below(8),
                    2 => bytes.truncate(at),
                    3 => drop(bytes.remove(at)),
                    _ => {
                        let end = (at + 1 + below(40)).min(bytes.len());
                        let piece = bytes[at..end].to_vec();
                        let to = below(bytes.len());
                        drop(bytes.splice(to..to, piece));
                    }
                }
            }
            accepted += u64::from(Config::parse(&String::from_utf8_lossy(&bytes), "moons").is_ok());
        }
        println!("{accepted} accepted");
    }
}
