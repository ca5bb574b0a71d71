//! The preparation of data that a description lists, and the resulting tensors.

use chainrule_core::tensor::Tensor;

use super::{Array, Table};
use crate::description::{Labels, Program, Step};
use crate::error::{Result, wrong};

/// Tables with more columns are standardised as a whole, as images are.
const WIDE: usize = 200;

/// Targets, ready for a loss.
#[derive(Clone, Debug)]
pub enum Targets {
    /// The number of each row's class.
    Classes(Vec<usize>),
    /// This many numbers for each row.
    Numbers {
        /// The sizes after the rows.
        shape: Vec<usize>,
        /// Row by row.
        numbers: Vec<f32>,
    },
}

/// Inputs and targets after the preparation.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Sizes of an example.
    pub shape: Vec<usize>,
    /// Inputs, row by row.
    pub x: Vec<f32>,
    /// Targets.
    pub y: Targets,
    /// Rows.
    pub rows: usize,
}

impl Targets {
    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        match self {
            Targets::Classes(_) => 1,
            Targets::Numbers { shape, .. } => shape.iter().product(),
        }
    }

    /// The class of each row, for scoring; none for numbers that are no classes.
    pub fn classes(&self) -> Vec<i64> {
        match self {
            Targets::Classes(classes) => classes.iter().map(|&c| c as i64).collect(),
            Targets::Numbers { numbers, .. } => {
                let columns = self.columns();
                let class = |row: &[f32]| match row {
                    [one] => one.round() as i64,
                    many => argmax(many) as i64,
                };
                numbers.chunks_exact(columns).map(class).collect()
            }
        }
    }

    /// Some of the rows.
    pub fn rows(&self, rows: &[usize]) -> Targets {
        match self {
            Targets::Classes(classes) => {
                Targets::Classes(rows.iter().map(|&i| classes[i]).collect())
            }
            Targets::Numbers { shape, numbers } => Targets::Numbers {
                shape: shape.clone(),
                numbers: pick(numbers, self.columns(), rows),
            },
        }
    }

    /// As a tensor: i64 for classes, else f32.
    pub fn tensor(&self, rows: usize) -> Result<Tensor> {
        match self {
            Targets::Classes(classes) => {
                let numbers: Vec<i64> = classes.iter().map(|&c| c as i64).collect();
                Tensor::try_from_slice(&numbers, rows)
            }
            Targets::Numbers { shape, numbers } => {
                Tensor::try_from_slice(numbers, &[&[rows], &shape[..]].concat()[..])
            }
        }
    }
}

/// The place of the largest number, the first of several.
pub(crate) fn argmax(row: &[f32]) -> usize {
    (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best })
}

fn pick(numbers: &[f32], columns: usize, rows: &[usize]) -> Vec<f32> {
    rows.iter().flat_map(|&i| &numbers[i * columns..(i + 1) * columns]).copied().collect()
}

impl Prepared {
    /// Numbers in an example.
    pub fn columns(&self) -> usize {
        self.shape.iter().product()
    }

    /// Some of the rows.
    pub fn pick(&self, rows: &[usize]) -> Prepared {
        Prepared {
            shape: self.shape.clone(),
            x: pick(&self.x, self.columns(), rows),
            y: self.y.rows(rows),
            rows: rows.len(),
        }
    }

    /// The inputs as a tensor.
    pub fn inputs(&self) -> Result<Tensor> {
        Tensor::try_from_slice(&self.x, &[&[self.rows], &self.shape[..]].concat()[..])
    }

    /// Whether all numbers are finite.
    pub fn is_finite(&self) -> bool {
        let y = match &self.y {
            Targets::Classes(_) => true,
            Targets::Numbers { numbers, .. } => numbers.iter().all(|v| v.is_finite()),
        };
        y && self.x.iter().all(|v| v.is_finite())
    }
}

/// The numbers of column `j`.
fn column(a: &Array, j: usize) -> impl Iterator<Item = f64> + Clone + '_ {
    a.numbers.iter().skip(j).step_by(a.columns()).copied()
}

fn mean(x: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = x.fold((0.0, 0usize), |(s, n), v| (s + v, n + 1));
    sum / n.max(1) as f64
}

/// Mean and deviation.
fn moments(x: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let m = mean(x.clone());
    (m, mean(x.map(|v| (v - m) * (v - m))).sqrt())
}

fn range(x: impl Iterator<Item = f64>) -> (f64, f64) {
    x.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
}

/// Applies a function of its own to each column.
fn by_column<F: Fn(f64) -> f64>(a: &mut Array, made: impl Fn(&Array, usize) -> F) {
    let columns = a.columns();
    let functions: Vec<F> = (0..columns).map(|j| made(a, j)).collect();
    for row in a.numbers.chunks_exact_mut(columns) {
        row.iter_mut().zip(&functions).for_each(|(v, f)| *v = f(*v));
    }
}

fn minmax(a: &mut Array, to: impl Fn(f64) -> f64 + Copy) {
    by_column(a, |a, j| {
        let (low, high) = range(column(a, j));
        let size = if high > low { high - low } else { 1.0 };
        move |v| to((v - low) / size)
    });
}

/// The quantile of sorted numbers, interpolated linearly.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (i, rest) = (at.floor() as usize, at.fract());
    let next = sorted[(i + 1).min(sorted.len() - 1)];
    sorted[i] + rest * (next - sorted[i])
}

fn standardize_x(x: &mut Array) {
    if x.shape.len() > 2 || x.columns() > WIDE {
        let (m, s) = moments(x.numbers.iter().copied());
        x.numbers.iter_mut().for_each(|v| *v = (*v - m) / (s + 1e-12));
    } else {
        standardize(x);
    }
}

fn standardize(a: &mut Array) {
    by_column(a, |a, j| {
        let (m, s) = moments(column(a, j));
        let s = if s > 1e-12 { s } else { 1.0 };
        move |v| (v - m) / s
    });
}

/// Inputs and targets of a program after its preparation.
pub fn prepare(program: &Program, x: &Array, y: &Array) -> Result<Prepared> {
    let (mut x, mut y) = (x.clone(), y.clone());
    for step in &program.preprocessing {
        match step {
            Step::StandardizeX => standardize_x(&mut x),
            Step::StandardizeY => standardize(&mut y),
            Step::MinmaxX => minmax(&mut x, |v| v),
            Step::MinmaxXTwice => by_column(&mut x, |a, j| {
                let (low, high) = range(column(a, j));
                let size = if high > low { high - low } else { 1.0 };
                move |v| (v - low) / size / size
            }),
            Step::MinmaxXPm1 => minmax(&mut x, |v| 2.0 * v - 1.0),
            Step::MinmaxXPm192 => minmax(&mut x, |v| 1.92 * (2.0 * v - 1.0)),
            Step::MinmaxY => minmax(&mut y, |v| v),
            Step::MinmaxYPm1 => minmax(&mut y, |v| 2.0 * v - 1.0),
            Step::ClipYQuantile => by_column(&mut y, |a, j| {
                let mut sorted: Vec<f64> = column(a, j).collect();
                sorted.sort_by(f64::total_cmp);
                let (low, high) = (quantile(&sorted, 0.02), quantile(&sorted, 0.98));
                move |v: f64| v.max(low).min(high)
            }),
            Step::Over255 => x.numbers.iter_mut().for_each(|v| *v /= 255.0),
            Step::YIsX => y = Array { whole: false, ..x.clone() },
        }
        let scales_y = [Step::StandardizeY, Step::MinmaxY, Step::MinmaxYPm1, Step::ClipYQuantile];
        if scales_y.contains(step) {
            y.whole = false;
        }
    }
    if x.shape[1..] != program.input[..] {
        let (have, want) = (&x.shape[1..], &program.input);
        return Err(wrong(format!("the rows of `X` have the shape {have:?}, `input` is {want:?}")));
    }
    let rows = x.rows();
    let y = targets(program, y)?;
    Ok(Prepared { shape: program.input.clone(), x: as_f32(&x.numbers), y, rows })
}

fn as_f32(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&v| v as f32).collect()
}

fn targets(program: &Program, y: Array) -> Result<Targets> {
    let class = |v: f64| match (0.0..1e6).contains(&v) {
        true => Ok(v.round() as usize),
        false => Err(wrong(format!("a label is {v}; the number of a class is 0 or more"))),
    };
    let numbers =
        |y: &Array| Targets::Numbers { shape: y.shape[1..].to_vec(), numbers: as_f32(&y.numbers) };
    let is_flat = y.shape.len() == 1;
    match program.labels {
        Labels::Class if !is_flat => {
            let numbers = as_f32(&y.numbers);
            let rows = numbers.chunks_exact(y.columns());
            let classes = rows.map(|row| match row {
                [one] => class(f64::from(*one)),
                many => Ok(argmax(many)),
            });
            Ok(Targets::Classes(classes.collect::<Result<_>>()?))
        }
        Labels::ZeroOne => {
            let above = y.numbers.iter().map(|&v| if v > 0.0 { 1.0 } else { 0.0 }).collect();
            Ok(numbers(&Array { numbers: above, whole: false, ..y }))
        }
        _ if y.whole && is_flat => {
            Ok(Targets::Classes(y.numbers.iter().map(|&v| class(v)).collect::<Result<_>>()?))
        }
        _ => Ok(numbers(&y)),
    }
}

/// The data of a table, and those of its own validation.
pub(crate) fn both(program: &Program, table: &Table) -> Result<(Prepared, Option<Prepared>)> {
    let own = table.validation.as_ref().map(|(x, y)| prepare(program, x, y)).transpose()?;
    Ok((prepare(program, &table.x, &table.y)?, own))
}
