//! Evaluation: an output must depend on its own input alone, not on chance nor on its neighbours in
//! the batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::finding::{Findings, Mistake};
use super::flow::place;
use super::numbers::all;
use super::parameters::few;
use crate::nn::{Field, Module};
use crate::tensor::Tensor;
use crate::tensor::reading::{Fold, Reading};
use crate::tensor::role::{NormRole, Role};
use crate::tensor::value::Value;
use crate::tensor::watch::{self, Given, Ran, Watching};

/// One evaluation, watched.
pub(super) struct Evaluation<'a> {
    pub module: Option<&'a dyn Module>,
    /// The axis of the examples.
    pub axis: usize,
}

/// Differences below this share of the size are rounding: sums over another batch may be taken in
/// another order.
const ROUNDING: f64 = 1e-4;

impl Evaluation<'_> {
    /// Calls `f`, and twice more: on the same batch to find randomness, and with other neighbours.
    pub fn run(
        &self,
        x: &Tensor,
        f: &mut dyn FnMut(&Tensor) -> Tensor,
        watching: &Watching,
        findings: &mut Findings,
    ) -> Tensor {
        let buffers = self.module.map(|m| m.named_buffers()).unwrap_or_default();
        let before: Vec<Tensor> = buffers.iter().map(|(_, b)| b.detach()).collect();
        let mut run = |x: &Tensor| {
            watching.take();
            watching.resume();
            let y = f(x);
            let _unseen = watch::unseen();
            (y, watching.take().ran)
        };
        let (first, log) = run(x);
        let kept: Vec<Tensor> = buffers.iter().map(|(_, b)| b.detach()).collect();
        let (again, log_again) = run(x);
        let random = share_apart(&first, &again);
        if random > 0.0 {
            self.chance(&log, &log_again, &first, &again, findings);
        } else if let Some((other, n)) = mixed(x, self.axis) {
            // Same buffers as the first time: a batch norm in training moves them.
            put_back(&buffers, &before);
            let (beside, log_beside) = run(&other);
            self.neighbours(&log, &log_beside, (&first, &beside), n, findings);
        }
        put_back(&buffers, &kept);
        first
    }

    /// Two evaluations of one input differ.
    fn chance(
        &self,
        a: &[Ran],
        b: &[Ran],
        first: &Tensor,
        again: &Tensor,
        findings: &mut Findings,
    ) {
        let Some((op, mask)) = first_difference(a, b) else { return };
        if !mask {
            return;
        }
        let most = largest_difference(&first.to_f64_vec(), &again.to_f64_vec());
        let share = share_apart(first, again);
        findings.add(
            Mistake::DropoutInEvaluation,
            format!("`{}` drops{}", op.op, self.training()),
            Some(op.location),
            format!(
                "two evaluations of one input differ in {:.1}% of the outputs, by {most:.4} at most; the first op whose results differ multiplies by a random mask",
                share * 100.0
            ),
            vec![("largest difference", most), ("share of the outputs that differ", share)],
        );
    }

    /// The first half of the batch came with other examples beside it.
    fn neighbours(
        &self,
        a: &[Ran],
        b: &[Ran],
        (first, beside): (&Tensor, &Tensor),
        n: usize,
        findings: &mut Findings,
    ) {
        let (Some(x), Some(y)) = (kept(first, self.axis, n), kept(beside, self.axis, n)) else {
            return;
        };
        let most = largest_difference(&x, &y);
        let size = x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        if most.is_nan() || most <= ROUNDING * size.max(1e-3) {
            return;
        }
        let Some(op) = mixing(a, b, n) else { return };
        findings.add(
            Mistake::BatchStatistics,
            format!("`{}` takes the statistics of the batch{}", op.op, self.training()),
            Some(op.location),
            format!(
                "with other examples beside them the outputs of the first {} examples change by up to {most:.4} (the largest is {size:.4})",
                n / 2
            ),
            vec![("largest change", most), ("largest output", size)],
        );
    }

    /// The layers that are in training mode, for the text.
    fn training(&self) -> String {
        let Some(module) = self.module else { return String::new() };
        let on = |fields: &[(String, Field<'_>)]| {
            fields.iter().any(|(_, f)| matches!(f, Field::Training(t) if t.is_on()))
        };
        let mut names: Vec<String> = Vec::new();
        for (name, inner) in module.named_modules() {
            if on(&inner.fields()) {
                names.push(format!("{name} ({})", inner.kind()));
            }
        }
        if on(&module.fields()) {
            names.push(module.kind().to_string());
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match names.len() {
            0 => String::new(),
            _ => format!("; in training mode are {}", few(&names)),
        }
    }
}

fn put_back(buffers: &[(String, Tensor)], values: &[Tensor]) {
    for ((_, buffer), value) in buffers.iter().zip(values) {
        // A buffer keeps its shape, so this cannot fail; if it did, only the old value would be
        // lost.
        let _ = buffer.try_set(value);
    }
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// The share of the elements that differ; NaN equals NaN.
fn share_apart(a: &Tensor, b: &Tensor) -> f64 {
    let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
    let differ = a.iter().zip(&b).filter(|(x, y)| x != y && !(x.is_nan() && y.is_nan())).count();
    differ as f64 / a.len().max(1) as f64
}

/// The inputs with the second half of the batch replaced by the first, and how many examples there
/// are.
fn mixed(x: &Tensor, axis: usize) -> Option<(Tensor, usize)> {
    let n = *x.shape().get(axis)?;
    if n < 2 {
        return None;
    }
    let half = n / 2;
    let order: Vec<i64> = (0..n).map(|i| if i < half { i } else { i % half } as i64).collect();
    let other = x.detach().try_index_select(axis as i64, &Tensor::from(order)).ok()?;
    (other.to_f64_vec() != x.to_f64_vec()).then_some((other, n))
}

/// The numbers of the first half of the examples in an output; `None` if it does not show which are
/// whose.
fn kept(y: &Tensor, axis: usize, n: usize) -> Option<Vec<f64>> {
    let shape = y.shape();
    if shape.get(axis) == Some(&n) {
        return Some(y.try_narrow(axis as i64, 0, n / 2).ok()?.to_f64_vec());
    }
    let rows = *shape.first()?;
    let each = rows / n;
    (axis == 0 && each > 0 && rows == each * n)
        .then(|| y.try_narrow(0, 0, n / 2 * each).ok().map(|part| part.to_f64_vec()))
        .flatten()
}

/// The first op whose results differ between the runs though its operands do not, and whether a
/// random mask is the reason.
fn first_difference<'r>(a: &'r [Ran], b: &[Ran]) -> Option<(&'r Ran, bool)> {
    // Only values computed from parameters count: noise and holes in the inputs are legitimate.
    let mut learned: HashSet<*const Value> = HashSet::new();
    for (x, y) in a.iter().zip(b).take_while(|(x, y)| x.op == y.op) {
        let hidden = |g: &Given| g.leaf || learned.contains(&place(&g.value));
        let of_model = x.inputs.iter().any(hidden);
        if of_model {
            learned.extend(x.outputs.iter().map(place));
        }
        let inputs = || x.inputs.iter().zip(&y.inputs);
        let differing: Vec<&Arc<Value>> = inputs()
            .filter(|(p, q)| all(&p.value) != all(&q.value))
            .map(|(p, _)| &p.value)
            .collect();
        if differing.is_empty() && all(&x.outputs[0]) == all(&y.outputs[0]) {
            continue;
        }
        // The op draws itself, or takes a mask that was drawn.
        let drawn = matches!(x.role, Role::Dropout | Role::Attention);
        let masks = differing.iter().any(|value| is_mask(&all(value)));
        if drawn || masks {
            let chosen = x.reading == Reading::Mul || x.role == Role::Selects;
            if of_model && (drawn || chosen && has_zeros(x, y)) {
                return Some((x, true));
            }
            continue;
        }
        // Random numbers that a mask is made of are judged by the mask.
        let made = x.role == Role::Steps
            || matches!(x.reading, Reading::Cast | Reading::Div | Reading::Mul | Reading::Add);
        if !made {
            return Some((x, false));
        }
    }
    None
}

/// Whether elements that one run has are 0 in the other.
fn has_zeros(a: &Ran, b: &Ran) -> bool {
    let (x, y) = (all(&a.outputs[0]), all(&b.outputs[0]));
    x.iter().zip(&y).all(|(x, y)| x == y || *x == 0.0 || *y == 0.0)
}

/// Zeros and one other number.
fn is_mask(x: &[f64]) -> bool {
    let kept = x.iter().copied().fold(0.0, f64::max);
    kept > 0.0 && x.contains(&0.0) && x.iter().all(|&m| m == 0.0 || m == kept)
}

/// The op through which examples take part in each other's results, if it is one that takes
/// statistics of the batch.
fn mixing<'r>(a: &'r [Ran], b: &[Ran], n: usize) -> Option<&'r Ran> {
    // For each value, whether the part of the first half of the examples is the same in both runs.
    let mut same: HashMap<*const Value, bool> = HashMap::new();
    for (x, y) in a.iter().zip(b).take_while(|(x, y)| x.op == y.op) {
        let mut inputs = x.inputs.iter().zip(&y.inputs);
        let untouched = inputs.all(|(p, q)| {
            let known = same.get(&place(&p.value)).copied();
            known.unwrap_or_else(|| same_half(&p.value, &q.value, n))
        });
        for (p, q) in x.outputs.iter().zip(&y.outputs) {
            same.insert(place(p), same_half(p, q, n));
        }
        let differs = x.outputs.iter().zip(&y.outputs).any(|(p, q)| !same_half(p, q, n));
        if untouched && differs {
            return is_statistic(x).then_some(x);
        }
    }
    None
}

/// Whether an op takes a statistic: a reduction other than a softmax's, or batch normalisation.
fn is_statistic(op: &Ran) -> bool {
    match op.reading {
        Reading::Fold { fold: Fold::LogSumExp, .. } => false,
        Reading::Fold { .. } => true,
        _ => op.axes.is_some() || op.role == Role::Norm(NormRole::Batch),
    }
}

/// Whether two values agree in what belongs to the first half of the examples: the leading part
/// where the first axis counts examples, else all.
fn same_half(a: &Arc<Value>, b: &Arc<Value>, n: usize) -> bool {
    if Arc::ptr_eq(a, b) {
        return true;
    }
    let (x, y) = (all(a), all(b));
    if x.len() != y.len() {
        return false;
    }
    let rows = a.shape().first().copied().unwrap_or(1);
    let part = if rows >= n && rows % n == 0 { x.len() / n * (n / 2) } else { x.len() };
    let size = x[..part].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    largest_difference(&x[..part], &y[..part]) <= ROUNDING * size.max(1e-6)
}
