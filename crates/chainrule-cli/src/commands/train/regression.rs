//! `chainrule train regression`: a line through points.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use chainrule::data::{Batch, DataLoader, LoaderOptions, Table, TensorDataset};
use chainrule::nn::{Layer, Linear, Module};
use chainrule::rng::CounterRng;
use chainrule::train::Task;
use chainrule::{Generator, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::args::train::{OptimizerKind, TrainRegression};
use crate::commands::export::TrainedModel;
use crate::output;
use crate::train::{Checked, Config, DataSums, Defaults, Outcome, Session, absolute, load_weights};

const DEFAULTS: Defaults = Defaults {
    steps: 400,
    batch: 1_000_000,
    lr: 0.5,
    optimizer: OptimizerKind::Sgd,
    seed: 0,
    ..Defaults::new()
};

#[derive(Serialize, Deserialize)]
struct RegressionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// A line has no sizes.
impl Checked for RegressionConfig {
    fn check(&self, _: usize) -> Result<(), String> {
        Ok(())
    }
}

/// `y = w x + b`, computed from `x` brought to mean 0 and deviation 1: then any column is learned
/// with the same rate.
#[derive(Module)]
struct Line {
    line: Linear,
    #[module(buffer)]
    mean: Tensor,
    #[module(buffer)]
    deviation: Tensor,
}

impl Line {
    fn new(mean: f64, deviation: f64, generator: &mut Generator) -> Result<Line> {
        let [mean, deviation] = [mean, deviation].map(|x| Tensor::scalar(x as f32).buffer());
        Ok(Line { line: Linear::try_new(1, 1, generator)?, mean, deviation })
    }

    fn of(&self, x: &Tensor) -> chainrule::Result<Tensor> {
        self.line.try_forward(&x.try_sub(&self.mean)?.try_div(&self.deviation)?)
    }

    /// Weight and bias for `x` as it is in the table.
    fn unscaled(&self) -> (f64, f64) {
        let bias = self.line.bias.as_ref().map_or(0.0, Tensor::item);
        let w = self.line.weight.item() / self.deviation.item();
        (w, bias - w * self.mean.item())
    }
}

impl Task for Line {
    fn module(&self) -> &dyn Module {
        self
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        self.of(&batch.x)?.try_mse(&batch.y)
    }
}

/// Runs the command.
pub fn run(args: &TrainRegression) -> Result<ExitCode> {
    let model = RegressionConfig { data: args.data.as_deref().map(absolute) };
    let (mut session, model) = Session::open("regression", &args.common, &DEFAULTS, model)?;
    let table = match &model.data {
        Some(path) => Table::read(path)?,
        None => made_up()?,
    };
    let label = model.data.as_deref().unwrap_or("the table");
    if table.names().len() != 2 {
        bail!("{label}: {} columns where two are wanted, x and y", table.names().len());
    }
    let (x, y) = (table.column(0), table.column(1));
    let sums = DataSums::new().texts("columns", table.names());
    session.set_data(sums.numbers("rows of x", &x).numbers("rows of y", &y))?;
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let deviation = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    // As f32, in which the model computes.
    if deviation as f32 == 0.0 || !(deviation as f32).is_finite() {
        bail!(
            "{label}: all values of `{}` are the same to f32, so no line is better than another",
            table.names()[0]
        );
    }
    let column = |numbers: &[f64]| {
        let numbers: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
        Tensor::try_from_slice(&numbers, [numbers.len(), 1])
    };
    let all = Batch { x: column(&x)?, y: column(&y)? };
    let data = Arc::new(TensorDataset::try_new(&all.x, &all.y)?);
    let batch = session.settings.batch.min(x.len());
    let options = LoaderOptions { batch, shuffle: None, ..LoaderOptions::default() };
    let generator = &mut Generator::manual_seed(session.settings.seed);
    let task = Line::new(mean, deviation, generator)?;
    let mut ran = match session.run(&task, Box::new(DataLoader::try_new(data, options)?))? {
        Outcome::Ran(ran) => ran,
        Outcome::Done(status) => return Ok(status),
    };
    let loss = task.loss(&all)?.try_item()?;
    let (w, b) = task.unscaled();
    for (name, x) in [("loss", loss), ("slope", w), ("intercept", b)] {
        if !x.is_finite() {
            ran.complain(format!("the {name} is {x} after the last update; try a smaller --lr"));
        }
    }
    let [first, second] = [0, 1].map(|i| table.names()[i].as_str());
    let lines =
        [format!("{second} = {w:.4} {first} {} {:.4}", if b < 0.0 { '-' } else { '+' }, b.abs())];
    let more = [("loss", json!(loss)), ("w", json!(w)), ("b", json!(b))];
    ran.finish(
        more.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
        &lines,
    )
}

/// A hundred temperatures in degrees Celsius and Fahrenheit, read from a thermometer that trembles.
fn made_up() -> Result<Table> {
    let rng = &mut CounterRng::new(32, 0);
    let mut text = "Celsius,Fahrenheit\n".to_owned();
    for i in 0..100 {
        let celsius = -30.0 + 0.8 * f64::from(i);
        // Twelve uniform numbers make nearly a normal one, of deviation 1.
        let tremble: f64 = (0..12).map(|_| rng.uniform_f64()).sum::<f64>() - 6.0;
        text += &format!("{celsius},{}\n", 1.8 * celsius + 32.0 + tremble);
    }
    Ok(Table::parse(&text)?)
}

/// `chainrule predict DIR NUMBER`: y for an x.
pub fn predict(run: &Path, x: &str, json: bool) -> Result<()> {
    let Some(x) = x.trim().parse::<f32>().ok().filter(|x| x.is_finite()) else {
        bail!("{x:?} is not a number of f32; give the value that y is wanted for");
    };
    let line = load(run)?;
    let y = line.of(&Tensor::try_from_slice(&[x], [1, 1])?)?.try_item()?;
    output::number("the prediction", y)?;
    match json {
        true => output::json(&json!({"x": x, "y": y})),
        false => output::line(&format!("{y:.6}")),
    }
}

/// The model of a run, for `chainrule export`.
pub fn trained(run: &Path) -> Result<TrainedModel> {
    let line = load(run)?;
    Ok(TrainedModel::new(&[1], false, line, |line| line, |line, x| line.of(x)))
}

fn load(run: &Path) -> Result<Line> {
    Config::read(run, "regression")?.model::<RegressionConfig>(run)?;
    let line = Line::new(0.0, 1.0, &mut Generator::manual_seed(0))?;
    load_weights(run, &line)?;
    Ok(line)
}
