//! `chainrule check names`: the four exercises of the lecture on backpropagation by hand.

use std::process::ExitCode;

use anyhow::{Result, bail};
use chainrule::check::compare::{Comparison, ComparisonRow, Standing};
use chainrule::data::text::{NameDataset, Vocabulary};
use chainrule::{DType, Generator, Tensor};
use chainrule_lab::names::{self as exercises, Batch, Parameters, Training};
use serde::Serialize;

use crate::args::CheckNames;
use crate::names::{self, NamesData};
use crate::plot::{self, GradientMap};
use crate::run_folder::{OldFiles, RunFolder};
use crate::{machine, output, report};

/// The sizes of the lecture.
const BATCH: usize = 32;
const CONTEXT: usize = 3;
const LR: f64 = 0.1;

/// In f64 two right runs of any length stay this close; a wrong gradient takes them apart within a
/// few steps.
const CLOSE: f64 = 1e-9;

const PICTURES: [&str; 2] = ["dlogits.svg", "dlogits.png"];
const FILE: &str = "check.json";

/// Everything that was found.
#[derive(Serialize)]
struct ExercisesReport {
    passed: bool,
    parameters: usize,
    exercises: Vec<Exercise>,
    training: Vec<Trained>,
    folder: String,
}

/// One of the first three exercises, in one dtype.
#[derive(Serialize)]
struct Exercise {
    exercise: usize,
    title: &'static str,
    dtype: String,
    passed: bool,
    first_wrong: Option<String>,
    rows: Vec<Gradient>,
    #[serde(skip)]
    table: String,
}

/// A line of the table. A number that is not finite is `null`.
#[derive(Serialize)]
struct Gradient {
    name: String,
    shape: Option<Vec<usize>>,
    exact: Option<bool>,
    approximate: Option<bool>,
    largest: Option<f64>,
    at: Option<Vec<usize>>,
    by_hand: Option<f64>,
    autograd: Option<f64>,
    mean_relative: Option<f64>,
    standing: &'static str,
    follows_from: Vec<String>,
}

/// The fourth exercise, in one dtype.
#[derive(Serialize)]
struct Trained {
    dtype: String,
    steps: usize,
    losses_apart: f64,
    parameters_apart: f64,
    /// The step, and the loss there by hand and by autograd.
    losses: Vec<(usize, f64, f64)>,
    /// Only f64 can tell: in f32 the rounding of two right runs grows from step to step.
    judged: bool,
    passed: bool,
}

/// Runs the command.
pub fn run(args: &CheckNames) -> Result<ExitCode> {
    let list = names::read_list(args.data.as_deref())?;
    let data = NamesData::split(&list, CONTEXT)?;
    if data.train.count < BATCH {
        bail!(
            "{}: {} training examples are fewer than a batch of {BATCH}; give a longer list",
            list.label(),
            data.train.count
        );
    }
    let folder =
        RunFolder::create("check-names", args.out.as_deref(), OldFiles::forced(args.force))?;
    machine::use_threads(args.threads);
    let found = check(args, &data.train, &folder)?;
    let mut text = serde_json::to_vec(&found)?;
    text.push(b'\n');
    folder.write(FILE, &text)?;
    match args.json {
        true => output::json(&found)?,
        false => print(&found)?,
    }
    Ok(if found.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(args: &CheckNames, pairs: &NameDataset, folder: &RunFolder) -> Result<ExercisesReport> {
    let (mut all, mut training) = (Vec::new(), Vec::new());
    let mut parameters = 0;
    for dtype in [DType::F32, DType::F64] {
        // The same draws for both, in the order of the lecture: the weights, the first batch, the
        // others.
        let mut generator = Generator::manual_seed(args.seed);
        let start = Parameters::new(dtype, &mut generator)?;
        parameters = start.list().iter().map(|(_, t)| t.numel()).sum();
        let batch = draw(pairs, &mut generator)?;
        for (i, (title, report)) in [
            ("every step by hand", exercises::exercise_1(&start, &batch)?),
            ("cross-entropy in one formula", exercises::exercise_2(&start, &batch)?),
            ("batch norm in one formula", exercises::exercise_3(&start, &batch)?),
        ]
        .into_iter()
        .enumerate()
        {
            all.push(Exercise::new(i + 1, title, dtype, &report));
        }
        if dtype == DType::F32 {
            picture(&start, &batch, folder)?;
        }
        let batches = (0..args.steps).map(|_| draw_batch(pairs, &mut generator));
        training.push(Trained::new(dtype, &exercises::train(&start, LR, batches)?));
    }
    Ok(ExercisesReport {
        passed: all.iter().all(|e| e.passed) && training.iter().all(|t| t.passed),
        parameters,
        exercises: all,
        training,
        folder: folder.path().display().to_string(),
    })
}

/// Draws a batch as the lecture does.
fn draw(pairs: &NameDataset, generator: &mut Generator) -> Result<Batch> {
    Ok(draw_batch(pairs, generator)?)
}

fn draw_batch(pairs: &NameDataset, generator: &mut Generator) -> chainrule::Result<Batch> {
    let rows = Tensor::try_randint(0, pairs.count as i64, [BATCH], generator)?;
    let (mut contexts, mut targets) = (Vec::new(), Vec::new());
    for row in rows.try_to_vec::<i64>()?.into_iter().map(|row| row as usize) {
        contexts.extend_from_slice(&pairs.contexts[row * CONTEXT..(row + 1) * CONTEXT]);
        targets.push(pairs.targets[row]);
    }
    let contexts = Tensor::try_from_slice(&contexts, [BATCH, CONTEXT])?;
    Batch::new(contexts, Tensor::try_from_slice(&targets, [BATCH])?)
}

fn picture(start: &Parameters, batch: &Batch, folder: &RunFolder) -> Result<()> {
    let logits = exercises::forward(start, batch)?.logits;
    let dlogits = exercises::cross_entropy_collapse(&logits, batch);
    let symbols = batch.contexts().try_to_vec::<i64>()?;
    let letter = |n: i64| Vocabulary.decode(n).unwrap_or('?');
    let rows = symbols.chunks(CONTEXT).map(|c| c.iter().map(|&n| letter(n)).collect());
    let map = GradientMap {
        title: "names: the gradient of the logits".to_owned(),
        rows: rows.collect(),
        columns: (0..Vocabulary::SIZE as i64).map(|n| letter(n).to_string()).collect(),
        values: dlogits.to_f64_vec(),
        correct: batch.targets().try_to_vec::<i64>()?.into_iter().map(|n| n as usize).collect(),
    };
    let [svg, png] = PICTURES.map(|name| folder.file(name));
    plot::gradient_map(&map, &svg, &png)
}

impl Exercise {
    fn new(exercise: usize, title: &'static str, dtype: DType, report: &Comparison) -> Exercise {
        Exercise {
            exercise,
            title,
            dtype: dtype.to_string(),
            passed: report.passed(),
            first_wrong: report.first_wrong().map(|row| row.name.clone()),
            rows: report.rows.iter().map(Gradient::new).collect(),
            table: report.to_string(),
        }
    }

    /// The largest difference among the rows.
    fn largest(&self) -> f64 {
        let each = self.rows.iter().map(|row| row.largest.unwrap_or(f64::NAN));
        each.fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m })
    }
}

impl Gradient {
    fn new(row: &ComparisonRow) -> Gradient {
        let found = row.outcome.as_ref().ok();
        let (standing, follows_from) = match &row.standing {
            Standing::Right => ("right", Vec::new()),
            Standing::Rounding => ("rounding", Vec::new()),
            Standing::First => ("first wrong", Vec::new()),
            Standing::AlsoWrong => ("also wrong", Vec::new()),
            Standing::Consequence(of) => ("consequence", of.clone()),
            _ => ("not compared", Vec::new()),
        };
        Gradient {
            name: row.name.clone(),
            shape: row.shape.map(|shape| shape.to_vec()),
            exact: found.map(|d| d.exact),
            approximate: found.map(|d| d.approximate),
            largest: found.map(|d| d.largest),
            at: found.map(|d| d.at.clone()),
            by_hand: found.map(|d| d.by_hand),
            autograd: found.map(|d| d.autograd),
            mean_relative: found.map(|d| d.mean_relative),
            standing,
            follows_from,
        }
    }
}

impl Trained {
    fn new(dtype: DType, run: &Training) -> Trained {
        let steps = run.by_hand.len();
        // The first step, the last, and the tenths between.
        let mut shown: Vec<usize> = (0..=10).map(|k| (k * steps / 10).max(1)).collect();
        shown.dedup();
        let judged = dtype == DType::F64;
        let close = run.losses_apart <= CLOSE && run.parameters_apart <= CLOSE;
        Trained {
            dtype: dtype.to_string(),
            steps,
            losses_apart: run.losses_apart,
            parameters_apart: run.parameters_apart,
            losses: shown.iter().map(|&k| (k, run.by_hand[k - 1], run.autograd[k - 1])).collect(),
            judged,
            passed: !judged || close,
        }
    }
}

fn print(found: &ExercisesReport) -> Result<()> {
    let shown = |e: &&Exercise| e.dtype == "f32" || !e.passed;
    for e in found.exercises.iter().filter(shown) {
        output::line(&format!("{}. {} ({})", e.exercise, e.title, e.dtype))?;
        output::line(&format!("{}\n", e.table))?;
    }
    for run in &found.training {
        output::line(&format!(
            "4. {} of training by hand ({})",
            report::steps(run.steps as u64),
            run.dtype
        ))?;
        output::line("    step     by hand    autograd  difference")?;
        for (step, hand, tape) in &run.losses {
            let step = report::count(*step as u64);
            output::line(&format!(
                "{step:>8}  {hand:>10.6}  {tape:>10.6}  {:>10.1e}",
                (hand - tape).abs()
            ))?;
        }
        output::line(&format!(
            "losses at most {:.1e} apart, weights at the end {:.1e}\n",
            run.losses_apart, run.parameters_apart
        ))?;
    }
    for e in found.exercises.iter().filter(|e| e.dtype == "f64") {
        let verdict = if e.passed { "right" } else { "WRONG" };
        output::line(&format!(
            "{}. {}: {verdict}, {} gradients, in f64 at most {:.1e} from autograd",
            e.exercise,
            e.title,
            e.rows.len(),
            e.largest()
        ))?;
    }
    for run in found.training.iter().filter(|run| run.judged) {
        let verdict = if run.passed { "right" } else { "WRONG" };
        output::line(&format!(
            "4. training by hand: {verdict}, in f64 the losses are at most {:.1e} from autograd's",
            run.losses_apart
        ))?;
    }
    let [svg, png] = PICTURES;
    output::line(&format!(
        "the picture of the logits' gradient is in {} ({svg}, {png})",
        found.folder
    ))
}
