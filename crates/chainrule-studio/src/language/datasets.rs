//! Data of the lessons: points in the plane, and names.

use std::f64::consts::PI;

use chainrule::data::text::{NameDataset, NameList};
use chainrule::rng::PythonRandom;
use chainrule::{DType, Tensor};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};
use chainrule_lab::names::Parameters;

use super::fault::{Fault, Outcome};
use super::interpreter::Interpreter;
use super::value::Data;

/// Letters that the names model sees.
const CONTEXT: usize = 3;

/// The seed of the shuffle before the list of names is split, as in training.
const SPLIT_SEED: i64 = 42;

/// Hidden units of the names model that is trained, and the most that are drawn.
const HIDDEN: i64 = 200;

/// The most points or examples.
const MOST: i64 = 20_000;

/// The data of this name; `None` if there is none.
pub fn call(run: &mut Interpreter, name: &str, count: Option<&Data>) -> Outcome<Option<Data>> {
    let shape: fn(f64, usize, &[f64; 2]) -> [f64; 2] = match name {
        "moons" => moon,
        "circles" => circle,
        "spiral" => spiral,
        "names_batch" => return names_batch(run, size(count, 32)?).map(Some),
        "names_parameters" => return names_parameters(run, count).map(Some),
        _ => return Ok(None),
    };
    let n = size(count, 100)?;
    let x = run.drawn(|g| {
        let noise = Tensor::try_randn([n, 2], DType::F64, g)?.to_f64_vec();
        let half = n.div_ceil(2);
        let points = (0..n).flat_map(|i| {
            let along = (i / 2) as f64 / (half.max(2) - 1) as f64;
            shape(along, i % 2, &[noise[2 * i], noise[2 * i + 1]])
        });
        Ok(Tensor::try_from_slice(&points.collect::<Vec<f64>>(), [n, 2])?)
    })?;
    let y: Vec<i64> = (0..n).map(|i| (i % 2) as i64).collect();
    Ok(Some(Data::List(vec![Data::Tensor(x), Data::Tensor(Tensor::try_from_slice(&y, [n])?)])))
}

fn size(count: Option<&Data>, default: i64) -> Outcome<usize> {
    let n = count.map_or(Some(default), Data::whole).filter(|n| (2..=MOST).contains(n));
    n.map(|n| n as usize)
        .ok_or_else(|| Fault::request(format!("the number of examples lies in 2 to {MOST}")))
}

fn moon(along: f64, class: usize, noise: &[f64; 2]) -> [f64; 2] {
    let (s, c) = (PI * along).sin_cos();
    let [x, y] = if class == 0 { [c, s] } else { [1.0 - c, 0.5 - s] };
    [x + 0.1 * noise[0], y + 0.1 * noise[1]]
}

fn circle(along: f64, class: usize, noise: &[f64; 2]) -> [f64; 2] {
    let (s, c) = (2.0 * PI * along).sin_cos();
    let radius = if class == 0 { 1.0 } else { 0.45 };
    [radius * c + 0.07 * noise[0], radius * s + 0.07 * noise[1]]
}

fn spiral(along: f64, class: usize, noise: &[f64; 2]) -> [f64; 2] {
    let (s, c) = (3.5 * along + PI * class as f64).sin_cos();
    [(0.1 + along) * c + 0.03 * noise[0], (0.1 + along) * s + 0.03 * noise[1]]
}

/// Contexts `[n, 3]` and the letter after each, drawn with replacement from the training part of
/// the built-in list, as `check names` does.
fn names_batch(run: &mut Interpreter, n: usize) -> Outcome<Data> {
    let problem = |e: &dyn std::fmt::Display| Fault::request(e.to_string());
    let list = NameList::embedded();
    let shuffle = |names: &mut [String]| PythonRandom::seed(SPLIT_SEED).shuffle(names);
    let split = list.split(shuffle).map_err(|e| problem(&e))?;
    let pairs = NameDataset::build(&split.train, CONTEXT).map_err(|e| problem(&e))?;
    let mut rows = Vec::new();
    let contexts = run.drawn(|g| {
        rows = Tensor::try_randint(0, pairs.count as i64, [n], g)?.try_to_vec::<i64>()?;
        let window = |&row: &i64| &pairs.contexts[row as usize * CONTEXT..][..CONTEXT];
        let contexts: Vec<i64> = rows.iter().flat_map(window).copied().collect();
        Ok(Tensor::try_from_slice(&contexts, [n, CONTEXT])?)
    })?;
    let targets = run.drawn(|_| {
        let targets: Vec<i64> = rows.iter().map(|&row| pairs.targets[row as usize]).collect();
        Ok(Tensor::try_from_slice(&targets, [n])?)
    })?;
    Ok(Data::List(vec![Data::Tensor(contexts), Data::Tensor(targets)]))
}

/// The seven parameters of the names model as leaves, drawn as for training. The draws are f32 and
/// the computation is f64, so that a backward pass by hand can be told from a nearly right one.
fn names_parameters(run: &mut Interpreter, hidden: Option<&Data>) -> Outcome<Data> {
    let hidden = hidden.map_or(Some(HIDDEN), Data::whole).filter(|n| (1..=HIDDEN).contains(n));
    let hidden = hidden.ok_or_else(|| {
        Fault::request(format!("the number of hidden units lies in 1 to {HIDDEN}"))
    })?;
    let sizes = NamesMlpConfig { hidden: hidden as usize, ..NamesMlpConfig::default() };
    let drawn = NamesMlp::try_new(sizes, &mut run.generator)?;
    let drawn = Parameters::of(&drawn, DType::F64)?;
    let mut leaves = Vec::new();
    for (_, parameter) in drawn.list() {
        leaves.push(Data::Tensor(run.leaf(parameter)?));
    }
    Ok(Data::List(leaves))
}
