//! The quality of an output: 0 for the best constant answer, 1 for a perfect one.

use crate::data::{Targets, argmax};
use crate::description::{Program, Task};

/// The skill of outputs, given row by row with this many columns, and whether all were finite.
pub(crate) fn score(
    program: &Program,
    outputs: &[f32],
    columns: usize,
    y: &Targets,
) -> (f64, bool) {
    let finite = outputs.iter().all(|v| v.is_finite());
    let outputs: Vec<f32> = outputs.iter().map(|&v| if v.is_finite() { v } else { 0.0 }).collect();
    let skill = match program.task {
        Task::Regression | Task::Autoencoder => numbers(&outputs, columns, y),
        Task::Multilabel => labels(program, &outputs, columns, y),
        Task::Binary | Task::Multiclass => classes(program, &outputs, columns, y),
    };
    (skill, finite)
}

fn threshold(program: &Program) -> f32 {
    if program.loss.takes_logits() { 0.0 } else { 0.5 }
}

/// The share of the variance that is explained, by column, from -1 on.
fn numbers(outputs: &[f32], columns: usize, y: &Targets) -> f64 {
    let (width, values) = match y {
        Targets::Numbers { numbers, .. } => (y.columns(), numbers.clone()),
        Targets::Classes(c) => (1, c.iter().map(|&c| c as f32).collect()),
    };
    let rows = values.len() / width;
    let all = width.max(columns);
    let explained = (0..all).map(|j| {
        let (a, b) = (j.min(columns - 1), j.min(width - 1));
        let y = |i: usize| f64::from(values[i * width + b]);
        let mean = (0..rows).map(y).sum::<f64>() / rows as f64;
        let variance = (0..rows).map(|i| (y(i) - mean).powi(2)).sum::<f64>() / rows as f64;
        let o = |i: usize| f64::from(outputs[i * columns + a]);
        let error = (0..rows).map(|i| (o(i) - y(i)).powi(2)).sum::<f64>() / rows as f64;
        (1.0 - error / variance.max(1e-12)).max(-1.0)
    });
    explained.sum::<f64>() / all as f64
}

fn labels(program: &Program, outputs: &[f32], columns: usize, y: &Targets) -> f64 {
    let Targets::Numbers { numbers, .. } = y else { return 0.0 };
    let width = y.columns();
    let (rows, cut) = (numbers.len() / width, threshold(program));
    let (mut right, mut usual) = (0.0f64, 0.0f64);
    for j in 0..width {
        let o = |i: usize| outputs[i * columns + j.min(columns - 1)] > cut;
        let y = |i: usize| numbers[i * width + j];
        right += (0..rows).filter(|&i| f32::from(o(i)) == y(i)).count() as f64;
        let share = (0..rows).map(|i| f64::from(y(i))).sum::<f64>() / rows as f64;
        usual += share.max(1.0 - share);
    }
    let (accuracy, usual) = (right / (rows * width) as f64, usual / width as f64);
    (accuracy - usual) / (1.0 - usual).max(1e-9)
}

/// The answer and the label of each row.
fn answers(
    program: &Program,
    outputs: &[f32],
    columns: usize,
    y: &Targets,
) -> (Vec<f32>, Vec<f32>) {
    let labels: Vec<f32> = match y {
        Targets::Classes(classes) => classes.iter().map(|&c| c as f32).collect(),
        Targets::Numbers { numbers, .. } => match y.columns() {
            1 => numbers.clone(),
            k => numbers.chunks_exact(k).map(|row| argmax(row) as f32).collect(),
        },
    };
    let signs = labels.iter().any(|&l| l < 0.0);
    let cut = threshold(program);
    let answer = |row: &[f32]| match row {
        [one] if program.task == Task::Multiclass => round_even(*one),
        [one] if signs => {
            if *one > 0.0 {
                1.0
            } else {
                -1.0
            }
        }
        [one] => f32::from(*one > cut),
        many => argmax(many) as f32,
    };
    (outputs.chunks_exact(columns).map(answer).collect(), labels)
}

fn classes(program: &Program, outputs: &[f32], columns: usize, y: &Targets) -> f64 {
    let (answers, mut labels) = answers(program, outputs, columns, y);
    let rows = labels.len().max(1);
    let right = answers.iter().zip(&labels).filter(|(answer, label)| answer == label);
    let accuracy = right.count() as f64 / rows as f64;
    labels.sort_by(f32::total_cmp);
    let most = labels.chunk_by(|a, b| a == b).map(<[f32]>::len).max().unwrap_or(0);
    let usual = most as f64 / rows as f64;
    ((accuracy - usual) / (1.0 - usual).max(1e-9)).max(-1.0)
}

/// The ratio of right answers on the rows of these classes to those on all rows. None if no row
/// belongs to one of them.
pub(crate) fn share_on(
    program: &Program,
    outputs: &[f32],
    columns: usize,
    y: &Targets,
    of: &[i64],
) -> Option<f64> {
    let (answers, labels) = answers(program, outputs, columns, y);
    let share = |rows: &[bool]| {
        let right = rows.iter().filter(|&&is_right| is_right).count();
        right as f64 / rows.len().max(1) as f64
    };
    let is_right = answers.iter().zip(&labels).map(|(answer, label)| answer == label);
    let all: Vec<bool> = is_right.collect();
    let of_them = all.iter().zip(&labels).filter(|(_, label)| of.contains(&(label.round() as i64)));
    let asked: Vec<bool> = of_them.map(|(is_right, _)| *is_right).collect();
    (!asked.is_empty()).then(|| share(&asked) / share(&all).max(1e-9))
}

/// Halves round to the even neighbour, as in NumPy and PyTorch.
fn round_even(x: f32) -> f32 {
    x.round_ties_even()
}
