//! `chainrule train digits`: which digit a picture shows.

mod model;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use chainrule::data::{DataLoader, Digits, LoaderOptions};
use chainrule::train::{ConfusionMatrix, Task};
use serde::Serialize;
use serde_json::{Map, json};

pub use self::model::{DigitsConfig, load};
use self::model::{DigitsTask, Seen};
use crate::args::train::{Backprop, DigitsModelKind, OptimizerKind, ScheduleKind, TrainDigits};
use crate::args::{Eval, PartKind};
use crate::commands::eval::choose;
use crate::commands::export::TrainedModel;
use crate::plot::{self, Mistake};
use crate::train::{Config, DataSums, Defaults, Outcome, Session, absolute};
use crate::{output, report};

pub const KIND: &str = "digits";

const DEFAULTS: Defaults = Defaults {
    epochs: Some(5),
    batch: 512,
    lr: 1e-3,
    last: 0.0,
    optimizer: OptimizerKind::Adamw,
    schedule: ScheduleKind::Cosine,
    weight_decay: 0.01,
    ..Defaults::new()
};

/// Small batches and the average of the weights are worth more to it than time.
const CNN_DEFAULTS: Defaults = Defaults {
    epochs: Some(10),
    batch: 64,
    lr: 2e-3,
    weight_decay: 0.05,
    ema: Some(0.999),
    ..DEFAULTS
};

/// Number of digits to test on, as a share of those to train on.
const TEST_SHARE: usize = 6;

/// Number of the worst mistakes drawn.
const WORST: usize = 36;

/// Runs the command.
pub fn run(args: &TrainDigits) -> Result<ExitCode> {
    if args.backprop == Backprop::Explicit {
        if args.model == DigitsModelKind::Cnn {
            bail!("--backprop explicit has no convolutions; use it with --model mlp");
        }
        if args.common.accumulate.is_some_and(|n| n > 1) {
            bail!(
                "--backprop explicit replaces gradients and does not add to them; leave out --accumulate"
            );
        }
    }
    let model = DigitsConfig {
        architecture: args.model,
        hidden: args.hidden.clone(),
        backprop: args.backprop,
        data: args.data.as_deref().map(absolute),
        examples: args.examples,
    };
    let defaults = match args.model {
        DigitsModelKind::Mlp => DEFAULTS,
        DigitsModelKind::Cnn => CNN_DEFAULTS,
    };
    let (mut session, model) = Session::open(KIND, &args.common, &defaults, model)?;
    let (train, test) = data(&model)?;
    session.set_data(sums(&train, &test))?;
    let (train, test) = (Arc::new(train), Arc::new(test));
    let seed = session.settings.seed;
    let batch = session.settings.batch.min(train.len());
    let loader = LoaderOptions { batch, shuffle: Some(seed), drop_last: false, prefetch: 2 };
    let batches = DataLoader::try_new(train, loader)?;
    let task = DigitsTask::new(&model, Arc::clone(&test), seed)?;
    if args.common.summary && !args.common.json {
        output::line(&task.summary()?)?;
    }
    let ran = match session.run(&task, Box::new(batches))? {
        Outcome::Ran(ran) => ran,
        Outcome::Done(status) => return Ok(status),
    };
    let seen = task.see(&test)?;
    let confusion = confusion(&seen);
    let [svg, png] = ["mistakes.svg", "mistakes.png"].map(|name| ran.folder.file(name));
    let wrong = draw_mistakes(&test, &seen, &svg, &png)?;
    let lines = [
        table(&confusion),
        format!(
            "{} of {} are wrong; the worst are drawn in {}",
            report::count(wrong as u64),
            report::count(test.len() as u64),
            svg.display()
        ),
    ];
    let more = [
        ("epochs", json!(ran.epochs.unwrap_or(0.0))),
        ("confusion", json!(confusion.rows())),
        ("backprop", json!(model.backprop)),
    ];
    ran.finish(
        more.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
        &lines,
    )
}

fn sums(train: &Digits, test: &Digits) -> DataSums {
    DataSums::new().digits("training pictures", train).digits("test pictures", test)
}

/// The digits to learn from and those to test on.
fn data(model: &DigitsConfig) -> Result<(Digits, Digits)> {
    Ok(match &model.data {
        Some(folder) => Digits::read_folder(folder)?,
        // Seeds of their own: the pictures are the same for each seed of the run.
        None => (Digits::draw(model.examples, 1), Digits::draw(model.examples / TEST_SHARE, 2)),
    })
}

/// The number of times each digit was taken for each.
fn confusion(seen: &[Seen]) -> ConfusionMatrix {
    let mut matrix = ConfusionMatrix::new(10);
    seen.iter().for_each(|seen| matrix.add_answer(seen.is, seen.taken_for));
    matrix
}

fn table(confusion: &ConfusionMatrix) -> String {
    format!("\nrows: the digit; columns: the answer\n{confusion}")
}

/// Draws the mistakes of which the model was surest; how many mistakes there are.
fn draw_mistakes(
    test: &Digits,
    seen: &[Seen],
    svg: &std::path::Path,
    png: &std::path::Path,
) -> Result<usize> {
    let mut wrong: Vec<(usize, &Seen)> =
        seen.iter().enumerate().filter(|(_, seen)| seen.is != seen.taken_for).collect();
    wrong.sort_by(|a, b| b.1.sure.total_cmp(&a.1.sure));
    let worst: Vec<Mistake<'_>> = wrong
        .iter()
        .take(WORST)
        .map(|&(i, &Seen { is, taken_for, sure, .. })| Mistake {
            pixels: test.picture(i),
            is,
            taken_for,
            sure,
        })
        .collect();
    let title = match wrong.len() {
        0 => "no mistakes".to_owned(),
        n => format!("the worst of {n} mistakes: the digit, and as what it was seen"),
    };
    plot::mistakes(&worst, &title, svg, png)?;
    Ok(wrong.len())
}

#[derive(Serialize)]
struct DigitsEvaluation<'a> {
    model: String,
    data: &'a str,
    examples: usize,
    loss: f64,
    accuracy: f64,
}

/// `chainrule eval DIR [--data FOLDER | --split PART]` for a run of digits.
pub fn eval(args: &Eval) -> Result<()> {
    let (task, mut model) = load(&args.run)?;
    if let Some(folder) = &args.data {
        model.data = Some(absolute(folder));
    }
    let (train, test) = data(&model)?;
    let part = match args.split {
        None => test,
        Some(part) => {
            Config::read(&args.run, KIND)?.check_data(&args.run, &sums(&train, &test))?;
            choose(part, [(PartKind::Train, train), (PartKind::Test, test)])?
        }
    };
    let seen = task.see(&part)?;
    let (loss, accuracy) = model::measure(&seen);
    output::number("the loss", loss)?;
    let label = model.data.as_deref().unwrap_or("the digits that the program draws");
    if args.json {
        let model = args.run.display().to_string();
        return output::json(&DigitsEvaluation {
            model,
            data: label,
            examples: part.len(),
            loss,
            accuracy,
        });
    }
    output::line(&table(&confusion(&seen)))?;
    output::line(&format!(
        "loss {loss:.4}, accuracy {accuracy:.4} on {} pictures of {label}",
        report::count(part.len() as u64)
    ))
}

/// `chainrule predict DIR FILE`: the digits of the pictures of an IDX file.
pub fn predict(run: &std::path::Path, input: &std::path::Path, json: bool) -> Result<()> {
    let (task, _) = load(run)?;
    let idx = chainrule::data::Idx::read(input)?;
    let side = Digits::SIDE;
    if idx.shape.len() != 3 || idx.shape[1..] != [side, side] {
        bail!("{}: holds {:?}, not pictures of 28 by 28", input.display(), idx.shape);
    }
    let pictures = Digits { labels: vec![0; idx.shape[0]], pixels: idx.data };
    for (i, seen) in task.see(&pictures)?.iter().enumerate() {
        output::number(&format!("the probability of picture {i}"), seen.sure)?;
        match json {
            true => output::json(
                &json!({"picture": i, "digit": seen.taken_for, "probability": seen.sure}),
            )?,
            false => output::line(&format!("{} ({:.1}%)", seen.taken_for, seen.sure * 100.0))?,
        }
    }
    Ok(())
}

/// The model of a run, for `chainrule export`.
pub fn trained(run: &std::path::Path) -> Result<TrainedModel> {
    let (task, _) = load(run)?;
    let example = [chainrule_lab::models::DigitsMlp::PIXELS];
    Ok(TrainedModel::new(&example, false, task, |t| t.module(), |t, x| t.logits(x)))
}
