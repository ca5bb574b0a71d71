//! `chainrule train moons`: which of two half circles a point is on.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use chainrule::data::{Batch, RandomBatches, TensorDataset, moons};
use chainrule::nn::{Layer, Linear, Module, Sequential, Tanh};
use chainrule::train::{Evaluation, Metrics, Task};
use chainrule::{Generator, Tensor, no_grad};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::args::train::{TrainMoons, check_moons};
use crate::commands::export::TrainedModel;
use crate::plot::{self, Plane};
use crate::train::{Checked, Config, DataSums, Defaults, Outcome, Session, load_weights};

const DEFAULTS: Defaults = Defaults { batch: 64, lr: 0.01, ..Defaults::new() };

/// The grid of the picture.
const COLUMNS: usize = 120;
const ROWS: usize = 80;

#[derive(Serialize, Deserialize)]
struct MoonsConfig {
    points: usize,
    noise: f64,
    hidden: usize,
}

impl Checked for MoonsConfig {
    fn check(&self, batch: usize) -> Result<(), String> {
        check_moons(self.points, self.noise, self.hidden, batch)
    }
}

struct Moons {
    net: Sequential,
    held_out: Batch,
}

impl Task for Moons {
    fn module(&self) -> &dyn Module {
        &self.net
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        self.net.try_forward(&batch.x)?.try_cross_entropy(&batch.y)
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        Some(self)
    }
}

/// Points that go through the model at once when it is measured.
const PART: usize = 500;

impl Evaluation for Moons {
    fn parts(&self) -> usize {
        self.held_out.y.numel().div_ceil(PART)
    }

    /// Sum of the losses, right answers, and number of points.
    fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
        let from = number * PART;
        let count = PART.min(self.held_out.y.numel() - from);
        let part = |t: &Tensor| t.try_narrow(0, from, count);
        let (x, y) = (part(&self.held_out.x)?, part(&self.held_out.y)?);
        let logits = self.net.try_forward(&x)?;
        let loss = logits.try_cross_entropy(&y)?.try_item()?;
        let guesses = logits.try_argmax(1, false)?.try_to_vec::<i64>()?;
        let wanted = y.try_to_vec::<i64>()?;
        let right = guesses.iter().zip(&wanted).filter(|(a, b)| a == b).count();
        Ok(vec![loss * count as f64, right as f64, count as f64])
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        let &[loss, right, count] = sums else { return Metrics::new() };
        vec![("test_loss", loss / count), ("test_accuracy", right / count)]
    }
}

/// Runs the command.
pub fn run(args: &TrainMoons) -> Result<ExitCode> {
    let model = MoonsConfig { points: args.points, noise: args.noise, hidden: args.hidden };
    let (mut session, model) = Session::open("moons", &args.common, &DEFAULTS, model)?;
    let seed = session.settings.seed;
    let train = moons(model.points, model.noise, seed)?;
    let held_out = moons(model.points, model.noise, seed ^ 0x5eed)?;
    let sums = [("training points", &train), ("test points", &held_out)].into_iter();
    session.set_data(sums.fold(DataSums::new(), |sums, (name, part)| {
        sums.numbers(name, &[part.x.to_f64_vec(), part.y.to_f64_vec()].concat())
    }))?;
    let g = &mut Generator::manual_seed(seed);
    let net = net(&model, g)?;
    let data = Arc::new(TensorDataset::try_new(&train.x, &train.y)?);
    let batches = RandomBatches::try_new(data, session.settings.batch, g.clone())?;
    let task = Moons { net, held_out };
    let ran = match session.run(&task, Box::new(batches))? {
        Outcome::Ran(ran) => ran,
        Outcome::Done(status) => return Ok(status),
    };
    let [svg, png] = ["boundary.svg", "boundary.png"].map(|name| ran.folder.file(name));
    draw(&task, &train, &svg, &png)?;
    let lines = [format!("the boundary is drawn in {}", svg.display())];
    let more = Map::from_iter([("picture".to_owned(), json!(svg.display().to_string()))]);
    ran.finish(more, &lines)
}

/// Draws the net's prediction all over the plane, with the points that it learned from.
fn draw(task: &Moons, train: &Batch, svg: &std::path::Path, png: &std::path::Path) -> Result<()> {
    let (low, high) = ((-1.6, -1.2), (2.6, 1.7));
    let at =
        |i: usize, n: usize, low: f64, high: f64| low + (high - low) * (i as f64 + 0.5) / n as f64;
    let grid: Vec<f32> = (0..ROWS * COLUMNS)
        .flat_map(|i| {
            let x = at(i % COLUMNS, COLUMNS, low.0, high.0);
            [x as f32, at(i / COLUMNS, ROWS, low.1, high.1) as f32]
        })
        .collect();
    let grid = Tensor::try_from_slice(&grid, [ROWS * COLUMNS, 2])?;
    let chances = no_grad(|| task.net.try_forward(&grid)?.try_softmax(1))?.to_f64_vec();
    let chances: Vec<f64> = chances.chunks(2).map(|pair| pair[1]).collect();
    let (places, classes) = (train.x.to_f64_vec(), train.y.try_to_vec::<i64>()?);
    let points: Vec<(f64, f64, i64)> =
        places.chunks(2).zip(classes).map(|(p, class)| (p[0], p[1], class)).collect();
    let plane = Plane { low, high, columns: COLUMNS, chances: &chances, points: &points };
    plot::plane(&plane, "two moons: what the model says", svg, png)
}

fn net(model: &MoonsConfig, g: &mut Generator) -> Result<Sequential> {
    let h = model.hidden;
    Ok(Sequential::new()
        .with(Linear::try_new(2, h, g)?)
        .with(Tanh)
        .with(Linear::try_new(h, h, g)?)
        .with(Tanh)
        .with(Linear::try_new(h, 2, g)?))
}

/// The model of a run, for `chainrule export`.
pub fn trained(run: &Path) -> Result<TrainedModel> {
    let model: MoonsConfig = Config::read(run, "moons")?.model(run)?;
    let net = net(&model, &mut Generator::manual_seed(0))?;
    load_weights(run, &net)?;
    Ok(TrainedModel::new(&[2], false, net, |net| net, |net, x| net.try_forward(x)))
}
