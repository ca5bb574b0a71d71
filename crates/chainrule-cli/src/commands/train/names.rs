//! `chainrule train names --model ...`: the other models of names, from a table of pairs to a
//! transformer.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use chainrule::data::text::{NameDataset, NameList, Vocabulary};
use chainrule::data::{Batch, Dataset, RandomBatches, TensorDataset, Words};
use chainrule::nn::{Layer, Module, summary};
use chainrule::rng::PythonRandom;
use chainrule::train::{Evaluation, Metrics, Task};
use chainrule::{CrossEntropy, DType, Generator, Tensor, no_grad};
use chainrule_lab::models::NamesFamily;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::args::train::{FamilyKind, OptimizerKind, ScheduleKind, TrainFamily};
use crate::args::{Eval, PartKind, Sample};
use crate::commands::eval::choose;
use crate::commands::export::TrainedModel;
use crate::train::{Checked, Config, DataSums, Defaults, Outcome, Session, absolute, load_weights};
use crate::{output, report};

pub const KIND: &str = crate::train::FAMILY;

/// As the lectures train them.
const DEFAULTS: Defaults = Defaults {
    steps: 50_000,
    batch: 32,
    lr: 5e-4,
    optimizer: OptimizerKind::Adamw,
    betas: (0.9, 0.99),
    weight_decay: 0.01,
    seed: 3407,
    ..Defaults::new()
};

const WAVENET: Defaults = Defaults {
    steps: 200_000,
    lr: 0.1,
    optimizer: OptimizerKind::Sgd,
    schedule: ScheduleKind::Late,
    weight_decay: 0.0,
    seed: 42,
    ..DEFAULTS
};

/// With the settings of the others it learns the names by heart, and its loss over new ones rises
/// again after 10,000 steps.
const TRANSFORMER: Defaults = Defaults {
    steps: 20_000,
    schedule: ScheduleKind::Cosine,
    weight_decay: 0.3,
    ema: Some(0.999),
    ..DEFAULTS
};

const CONTEXT: usize = 16;
const WAVENET_CONTEXT: usize = 8;

/// The most names that are tested on.
const MOST_TESTED: usize = 1_000;

/// Examples that go through the model at once when it is measured.
const PART: usize = 500;

const SAMPLES: usize = 20;

#[derive(Serialize, Deserialize)]
struct FamilyConfig {
    model: FamilyKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// The models have sizes of their own, which no setting changes; the widest layer has 1,024 values
/// for each letter.
impl Checked for FamilyConfig {
    fn check(&self, _: usize) -> Result<(), String> {
        Ok(())
    }
}

impl FamilyConfig {
    fn family(&self) -> NamesFamily {
        match self.model {
            FamilyKind::Bigram => NamesFamily::Bigram,
            FamilyKind::Mlp => NamesFamily::Mlp,
            FamilyKind::Wavenet => NamesFamily::Wavenet,
            FamilyKind::Rnn => NamesFamily::Rnn,
            FamilyKind::Gru => NamesFamily::Gru,
            FamilyKind::Lstm => NamesFamily::Lstm,
            FamilyKind::Bow => NamesFamily::Bow,
            FamilyKind::Transformer => NamesFamily::Transformer,
        }
    }

    fn context(&self) -> usize {
        if self.model == FamilyKind::Wavenet { WAVENET_CONTEXT } else { CONTEXT }
    }

    fn list(&self, data: Option<&Path>) -> Result<NameList> {
        crate::names::read_list(data.or(self.data.as_deref().map(Path::new)))
    }

    /// The names to learn from and those that are not shown.
    fn split(&self, list: &NameList, seed: u64) -> Result<(Vec<String>, Vec<String>)> {
        if self.model == FamilyKind::Wavenet {
            let split = list.split(|names| PythonRandom::seed(42).shuffle(names))?;
            return Ok((split.train, split.validation));
        }
        let n = list.len();
        if n < 10 {
            bail!(
                "{}: too few names ({n}), at least 10 are needed; give a longer list",
                list.label()
            );
        }
        let order = Generator::manual_seed(seed).randperm(n);
        let mut train: Vec<String> =
            order.iter().map(|&i| list.names()[i as usize].clone()).collect();
        let test = train.split_off(n - (n / 10).min(MOST_TESTED));
        Ok((train, test))
    }

    /// The part that the second list of [`FamilyConfig::split`] is.
    fn held_out(&self) -> PartKind {
        if self.model == FamilyKind::Wavenet { PartKind::Validation } else { PartKind::Test }
    }

    /// The checksums of the list and of its two parts.
    fn sums(list: &NameList, train: &[String], test: &[String]) -> DataSums {
        DataSums::names(list).texts("training names", train).texts("test names", test)
    }

    fn dataset(&self, names: &[String]) -> Result<Arc<dyn Dataset>> {
        if self.model != FamilyKind::Wavenet {
            return Ok(Arc::new(Words::new(names, CONTEXT)?));
        }
        let pairs = NameDataset::build(names, WAVENET_CONTEXT)?;
        let x = Tensor::try_from_slice(&pairs.contexts, [pairs.count, WAVENET_CONTEXT])?;
        let y = Tensor::try_from_slice(&pairs.targets, [pairs.count])?;
        Ok(Arc::new(TensorDataset::try_new(&x, &y)?))
    }
}

struct FamilyTask {
    net: Box<dyn Layer>,
    context: usize,
    test: Option<Arc<dyn Dataset>>,
}

impl FamilyTask {
    fn new(
        model: &FamilyConfig,
        test: Option<Arc<dyn Dataset>>,
        generator: &mut Generator,
    ) -> Result<FamilyTask> {
        let context = model.context();
        Ok(FamilyTask {
            net: model.family().model(Vocabulary::SIZE, context, generator)?,
            context,
            test,
        })
    }

    /// The mean loss over a set of examples.
    fn mean_loss(&self, test: &dyn Dataset) -> chainrule::Result<f64> {
        let (mut sum, mut count) = (0.0, 0.0);
        for part in 0..test.len().div_ceil(PART) {
            let [loss, n] = self.loss_of_part(test, part)?;
            (sum, count) = (sum + loss, count + n);
        }
        Ok(sum / count)
    }

    /// The sum of the losses of a part of the examples, and their number.
    fn loss_of_part(&self, test: &dyn Dataset, part: usize) -> chainrule::Result<[f64; 2]> {
        let rows: Vec<usize> = (part * PART..test.len().min((part + 1) * PART)).collect();
        let batch = test.batch(&rows)?;
        let n = batch.y.try_to_vec::<i64>()?.iter().filter(|&&y| y != Words::IGNORED).count();
        Ok([no_grad(|| self.loss(&batch))?.try_item()? * n as f64, n as f64])
    }

    /// Makes up names, in evaluation mode.
    fn samples(&self, count: usize, seed: u64) -> Result<Vec<String>> {
        self.net.eval();
        let g = &mut Generator::manual_seed(seed);
        (0..count).map(|_| Ok(no_grad(|| self.one(g))?)).collect()
    }

    fn one(&self, g: &mut Generator) -> chainrule::Result<String> {
        // The models of all letters at once see the start and what follows; the other a window that
        // begins with starts.
        let window = self.context == WAVENET_CONTEXT;
        let mut seen = vec![Vocabulary::END; if window { WAVENET_CONTEXT } else { 1 }];
        let mut name = String::new();
        while name.len() < CONTEXT {
            let last = &seen[seen.len() - seen.len().min(self.context)..];
            let logits = self.net.try_forward(&Tensor::try_from_slice(last, [1, last.len()])?)?;
            let logits = logits.try_reshape([-1, Vocabulary::SIZE as i64])?;
            let rows = logits.shape()[0];
            let chances = logits.try_narrow(0, rows - 1, 1)?.try_softmax(1)?.try_to_vec::<f32>()?;
            let next = g.multinomial(&chances, 1, true)?[0];
            let Some(letter) = Vocabulary.decode(next).filter(|_| next != Vocabulary::END) else {
                break;
            };
            name.push(letter);
            seen.push(next);
        }
        Ok(name)
    }
}

impl Task for FamilyTask {
    fn module(&self) -> &dyn Module {
        &self.net
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        let logits = self.net.try_forward(&batch.x)?.try_reshape([-1, Vocabulary::SIZE as i64])?;
        let options =
            CrossEntropy { ignore_index: Some(Words::IGNORED), ..CrossEntropy::default() };
        logits.try_cross_entropy_with(&batch.y.try_reshape([-1])?, &options)
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        self.test.is_some().then_some(self as &dyn Evaluation)
    }
}

impl Evaluation for FamilyTask {
    fn parts(&self) -> usize {
        self.test.as_ref().map_or(0, |test| test.len().div_ceil(PART))
    }

    fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
        self.test
            .as_ref()
            .map_or(Ok(Vec::new()), |test| self.loss_of_part(&**test, number).map(Vec::from))
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        let &[loss, n] = sums else { return Metrics::new() };
        vec![("test_loss", loss / n)]
    }
}

/// Runs the command.
pub fn run(args: &TrainFamily) -> Result<ExitCode> {
    let Some(kind) = args.model.or(args.common.resume.is_some().then_some(FamilyKind::Bigram))
    else {
        bail!("say which model with --model");
    };
    let model = FamilyConfig { model: kind, data: args.data.as_deref().map(absolute) };
    let defaults = match kind {
        FamilyKind::Wavenet => WAVENET,
        FamilyKind::Transformer => TRANSFORMER,
        _ => DEFAULTS,
    };
    let (mut session, model) = Session::open(KIND, &args.common, &defaults, model)?;
    let seed = session.settings.seed;
    let list = model.list(None)?;
    let (train, test) = model.split(&list, seed)?;
    session.set_data(FamilyConfig::sums(&list, &train, &test))?;
    session.ways.label = "names";
    let data = model.dataset(&train)?;
    let g = &mut Generator::manual_seed(seed);
    let task = FamilyTask::new(&model, Some(model.dataset(&test)?), g)?;
    if args.common.summary && !args.common.json {
        let x = Tensor::zeros([1, task.context]).try_to_dtype(DType::I64)?;
        output::line(&summary(&task.net, &x)?.to_string())?;
    }
    let batches = RandomBatches::try_new(data, session.settings.batch, g.clone())?;
    let ran = match session.run(&task, Box::new(batches))? {
        Outcome::Ran(ran) => ran,
        Outcome::Done(status) => return Ok(status),
    };
    let samples = task.samples(SAMPLES, 7)?;
    let [train, test] =
        [&train, &test].map(|names| names.iter().map(String::as_str).collect::<BTreeSet<_>>());
    let standing = |name: &String| match name.as_str() {
        name if train.contains(name) => "train",
        name if test.contains(name) => "test",
        _ => "new",
    };
    let marked: Vec<(&String, &str)> = samples.iter().map(|name| (name, standing(name))).collect();
    let of = |which: &str| {
        let names = marked.iter().filter(|(_, standing)| *standing == which);
        names.map(|(name, _)| (*name).clone()).collect::<Vec<_>>()
    };
    let lines: Vec<String> =
        [("train", "in the training set"), ("test", "in the test set"), ("new", "new")]
            .into_iter()
            .filter(|(which, _)| !of(which).is_empty())
            .map(|(which, words)| format!("names that are {words}\n{}", report::wrap(&of(which))))
            .collect();
    let samples: Vec<_> =
        marked.iter().map(|(name, standing)| json!({"name": name, "in": standing})).collect();
    let more = [("model", json!(model.model)), ("samples", json!(samples))];
    ran.finish(
        more.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
        &lines,
    )
}

fn load(run: &Path) -> Result<(FamilyTask, FamilyConfig, u64)> {
    let config = Config::read(run, KIND)?;
    let model: FamilyConfig = config.model(run)?;
    let names = FamilyTask::new(&model, None, &mut Generator::manual_seed(0))?;
    load_weights(run, &names.net)?;
    Ok((names, model, config.training.seed))
}

/// `chainrule sample DIR` for a run of these models.
pub fn sample(args: &Sample) -> Result<()> {
    let (names, ..) = load(&args.run)?;
    let samples = names.samples(args.count, args.seed)?;
    if args.json {
        let model = args.run.display().to_string();
        return output::json(
            &json!({"model": model, "seed": args.seed, "count": samples.len(), "samples": samples}),
        );
    }
    samples.iter().try_for_each(|name| output::line(name))
}

/// `chainrule eval DIR [--data FILE | --split PART]`: the loss over the names that were not shown,
/// over all names of a file, or over one part of the run's names.
pub fn eval(args: &Eval) -> Result<()> {
    let (task, model, seed) = load(&args.run)?;
    let list = model.list(args.data.as_deref())?;
    let names = match (&args.data, args.split) {
        (Some(_), _) => list.names().to_vec(),
        (None, None) => model.split(&list, seed)?.1,
        (None, Some(part)) => {
            let (train, held_out) = model.split(&list, seed)?;
            let config = Config::read(&args.run, KIND)?;
            config.check_data(&args.run, &FamilyConfig::sums(&list, &train, &held_out))?;
            choose(part, [(PartKind::Train, train), (model.held_out(), held_out)])?
        }
    };
    let loss = output::number("the loss", task.mean_loss(&*model.dataset(&names)?)?)?;
    if args.json {
        let run = args.run.display().to_string();
        return output::json(
            &json!({"model": run, "data": list.label(), "names": names.len(), "loss": loss}),
        );
    }
    output::line(&format!(
        "loss {loss:.4} over {} names of {}",
        report::count(names.len() as u64),
        list.label()
    ))
}

/// The model of a run, for `chainrule export`.
pub fn trained(run: &Path) -> Result<TrainedModel> {
    let (task, model, _) = load(run)?;
    Ok(TrainedModel::new(
        &[model.context()],
        true,
        task.net,
        |net| net,
        |net, x| net.try_forward(x),
    ))
}
