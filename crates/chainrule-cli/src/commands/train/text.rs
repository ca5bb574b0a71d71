//! `chainrule train text`: a GPT that guesses the next character of a text, or the answers of sums.

mod model;
mod sample;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use chainrule::Generator;
use chainrule::data::{CharText, Dataset, RandomBatches, Sums};
use serde_json::{Map, json};

use self::model::{Corpus, TextConfig, TextTask};
use crate::args::train::{OptimizerKind, ScheduleKind, TrainText};
use crate::args::{Eval, PartKind, Sample};
use crate::commands::eval::choose;
use crate::commands::export::TrainedModel;
use crate::train::{Config, DataSums, Defaults, Outcome, Session, absolute, load_weights};
use crate::{output, report};

pub const KIND: &str = "text";

const DEFAULTS: Defaults = Defaults {
    steps: 2_000,
    batch: 12,
    lr: 1e-3,
    optimizer: OptimizerKind::Adamw,
    betas: (0.9, 0.99),
    schedule: ScheduleKind::Cosine,
    warm_up: 100,
    weight_decay: 0.1,
    clip: Some(1.0),
    seed: 1337,
    ..Defaults::new()
};

/// Sums are short, so more of them make a step.
const SUMS_BATCH: usize = 64;

/// The share of a text that is learned from; the rest is for validation.
const TRAIN_SHARE: f64 = 0.9;

/// Stretches of the held-out text in a measurement.
const HELD_OUT: usize = 400;

/// Runs the command.
pub fn run(args: &TrainText) -> Result<ExitCode> {
    let text = match (&args.data, &args.common.resume) {
        (Some(path), None) => Some(CharText::read(path)?),
        _ => None,
    };
    let model = TextConfig {
        data: args.data.as_deref().map(absolute),
        digits: args.digits,
        symbols: match &text {
            Some(text) => text.symbols().iter().collect(),
            None => Sums::SYMBOLS.iter().collect(),
        },
        context: args.context,
        layers: args.layers,
        heads: args.heads,
        width: args.width,
        dropout: args.dropout,
        recompute: args.recompute,
    };
    let batch = if args.data.is_some() { DEFAULTS.batch } else { SUMS_BATCH };
    let defaults = Defaults { batch, ..DEFAULTS };
    let (mut session, model) = Session::open(KIND, &args.common, &defaults, model)?;
    // A program would see that something is computed twice, and do it once.
    session.settings.eager |= model.recompute > 0;
    let seed = session.settings.seed;
    let g = &mut Generator::manual_seed(seed);
    let (corpus, data): (Corpus, Arc<dyn Dataset>) = match &model.data {
        Some(path) => {
            let text = match text {
                Some(text) => text,
                None => CharText::read(path)?,
            };
            session.set_data(sums_of(&text))?;
            // The numbers of the symbols are those that the model learned, whatever else the text
            // may hold now.
            let text = text.with_numbers_of(&model.symbols.chars().collect::<Vec<_>>())?;
            let (train, held_out) = text.split(TRAIN_SHARE);
            let (train, held_out) =
                (train.with_context(model.context), held_out.with_context(model.context));
            if train.is_empty() || held_out.is_empty() {
                let n = text.numbers().len();
                bail!(
                    "{path}: {n} characters are too few for a context of {}; give a longer text or a smaller --context",
                    model.context
                );
            }
            (Corpus::text(text.clone(), &held_out, HELD_OUT)?, Arc::new(train))
        }
        None => {
            let (train, test) = Sums::split(model.digits, 1)?;
            session.set_data(sums_of_sums(&train, &test))?;
            (Corpus::sums(&test)?, Arc::new(train))
        }
    };
    let task = TextTask::new(&model, corpus, g)?;
    if args.common.summary && !args.common.json {
        output::line(&task.summary(&model)?)?;
    }
    let batches = RandomBatches::try_new(data, session.settings.batch, g.clone())?;
    let ran = match session.run(&task, Box::new(batches))? {
        Outcome::Ran(ran) => ran,
        Outcome::Done(status) => return Ok(status),
    };
    let sample = task.show(500)?;
    let more = Map::from_iter([("sample".to_owned(), json!(sample))]);
    ran.finish(more, &[format!("\n{sample}\n")])
}

/// The checksums of a text, its symbols and the two parts that it is cut into.
fn sums_of(text: &CharText) -> DataSums {
    let (train, held_out) = text.split(TRAIN_SHARE);
    let symbols: String = text.symbols().iter().collect();
    DataSums::new()
        .chars("text", &text.decode(text.numbers()))
        .chars("symbols", &symbols)
        .wholes("training part", train.numbers())
        .wholes("held-out part", held_out.numbers())
}

/// The checksums of the sums to learn from and to test on, and their symbols.
fn sums_of_sums(train: &Sums, test: &Sums) -> DataSums {
    let lines = |sums: &Sums| sums.lines().collect::<Vec<_>>();
    DataSums::new()
        .texts("training sums", &lines(train))
        .texts("test sums", &lines(test))
        .chars("symbols", &Sums::SYMBOLS.iter().collect::<String>())
}

/// `chainrule sample DIR` for a run of text.
pub fn sample(args: &Sample) -> Result<()> {
    let config = Config::read(&args.run, KIND)?;
    let model: TextConfig = config.model(&args.run)?;
    let symbols: Vec<char> = model.symbols.chars().collect();
    let text = CharText::with_symbols("", &symbols)?;
    let gpt = model.gpt(&mut Generator::manual_seed(0))?;
    load_weights(&args.run, &gpt)?;
    let start = match args.start.as_str() {
        "" => vec![0],
        start => text.encode(start)?,
    };
    let how = sample::How { temperature: args.temperature, top_k: args.top_k };
    let g = &mut Generator::manual_seed(args.seed);
    // Sums, one line after the other, or one long piece of a text.
    let numbers = match model.data {
        Some(_) => sample::generate(&gpt, &start, args.length, how, None, g)?,
        None => sample::generate(&gpt, &start, args.length, how, Some(0), g)?,
    };
    let written = format!("{}{}", args.start, text.decode(&numbers));
    match args.json {
        true => output::json(
            &json!({"model": args.run.display().to_string(), "seed": args.seed, "text": written}),
        ),
        false => output::line(&written),
    }
}

/// `chainrule eval DIR [--data FILE | --split PART]` for a run of text: the loss over the whole
/// held-out part, over a whole file, or over the training part.
pub fn eval(args: &Eval) -> Result<()> {
    let (run, file) = (&args.run, args.data.as_deref());
    let config = Config::read(run, KIND)?;
    let model: TextConfig = config.model(run)?;
    let symbols: Vec<char> = model.symbols.chars().collect();
    let path = file.or(model.data.as_deref().map(Path::new));
    let corpus = match path {
        Some(path) => {
            let text = CharText::read(path)?;
            if args.split.is_some() {
                config.check_data(run, &sums_of(&text))?;
            }
            let text = text.with_numbers_of(&symbols)?;
            let share = if file.is_some() { 0.0 } else { TRAIN_SHARE };
            let (train, held_out) = text.split(share);
            let part = match args.split {
                None => held_out,
                Some(part) => {
                    choose(part, [(PartKind::Train, train), (PartKind::Validation, held_out)])?
                }
            };
            let part = part.with_context(model.context);
            if part.is_empty() {
                bail!("{}: too short for a context of {}", path.display(), model.context);
            }
            Corpus::text(text, &part, usize::MAX)?
        }
        None => {
            let (train, test) = Sums::split(model.digits, 1)?;
            Corpus::sums(&match args.split {
                None => test,
                Some(part) => {
                    config.check_data(run, &sums_of_sums(&train, &test))?;
                    choose(part, [(PartKind::Train, train), (PartKind::Test, test)])?
                }
            })?
        }
    };
    let task = TextTask::new(&model, corpus, &mut Generator::manual_seed(0))?;
    load_weights(run, &task.gpt)?;
    let measures = task.measure()?;
    for (name, x) in &measures {
        output::number(&format!("the {}", name.replace('_', " ")), *x)?;
    }
    if args.json {
        let mut all = Map::from_iter([("model".to_owned(), json!(run.display().to_string()))]);
        all.extend(measures.iter().map(|(name, x)| ((*name).to_owned(), json!(x))));
        return output::json(&all);
    }
    let parts: Vec<String> =
        measures.iter().map(|(name, x)| format!("{} {x:.4}", name.replace('_', " "))).collect();
    output::line(&format!(
        "{} ({} parameters)",
        parts.join(", "),
        report::count(chainrule::nn::Module::parameter_count(&task.gpt) as u64)
    ))
}

/// The model of a run, for `chainrule export`: of texts as long as its context.
pub fn trained(run: &Path) -> Result<TrainedModel> {
    let model: TextConfig = Config::read(run, KIND)?.model(run)?;
    let gpt = model.gpt(&mut Generator::manual_seed(0))?;
    load_weights(run, &gpt)?;
    let forward = |gpt: &_, x: &_| chainrule::nn::Layer::try_forward(gpt, x);
    Ok(TrainedModel::new(&[model.context], true, gpt, |gpt| gpt, forward))
}
