//! Softmax in any form: as an op, inside a loss, or written out. Twice in a row, and over the wrong
//! axis before a loss.

use std::collections::HashMap;
use std::sync::Arc;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{
    Flow, Passage, SourcePosition, is_sum, passage, place, position, power, scalar, scaling,
};
use super::numbers::{CLOSE, all, are_probabilities, farthest_from_one, sums, varied};
use crate::tensor::reading::{Fold, Reading};
use crate::tensor::role::{LossRole, Role};
use crate::tensor::value::Value;
use crate::tensor::watch::Ran;

/// A normalisation by exponentials.
pub(super) struct Soft {
    /// The op that ends it.
    pub op: usize,
    /// The logits.
    pub logits: Arc<Value>,
    /// The axis along which the exponentials are summed.
    pub axis: usize,
    /// The probabilities, unless they are inside a loss.
    pub out: Option<Arc<Value>>,
    pub kind: SoftmaxForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SoftmaxForm {
    Probabilities,
    Logarithms,
    /// Inside a loss, or the logarithm of the sum alone.
    Within,
}

/// All of them on the way to the loss.
pub(super) fn collect(flow: &Flow<'_>) -> Vec<Soft> {
    flow.ops().filter_map(|(i, op)| soft(flow, i, op)).collect()
}

fn soft(flow: &Flow<'_>, i: usize, op: &Ran) -> Option<Soft> {
    let logits = op.inputs.first()?.value.clone();
    let last = logits.shape().rank().checked_sub(1)?;
    let out = Some(op.outputs[0].clone());
    let (axis, out, kind) = match (&op.reading, op.role) {
        (Reading::Softmax, _) => (last, out, SoftmaxForm::Probabilities),
        (Reading::LogSoftmax, _) => (last, out, SoftmaxForm::Logarithms),
        (_, Role::Loss(LossRole::CrossEntropy | LossRole::SoftCrossEntropy)) => {
            (last.min(1), None, SoftmaxForm::Within)
        }
        (Reading::Fold { fold: Fold::LogSumExp, axes, .. }, _) => {
            (axes.iter().next()?, None, SoftmaxForm::Within)
        }
        (Reading::Div | Reading::Mul, _) => return quotient(flow, i, op),
        (Reading::Log, _) => return logarithm(flow, i, op),
        _ => return None,
    };
    Some(Soft { op: i, logits, axis, out, kind })
}

/// `exp(z) / sum(exp(z))`, or times the reciprocal of the sum.
fn quotient(flow: &Flow<'_>, i: usize, op: &Ran) -> Option<Soft> {
    let sides = [(0, 1), (1, 0)];
    let sides = if op.reading == Reading::Div { &sides[..1] } else { &sides[..] };
    sides.iter().find_map(|&(e, s)| {
        let exponentials = &op.inputs[e].value;
        let (_, exp) = flow.source(exponentials).filter(|(_, ran)| ran.reading == Reading::Exp)?;
        let mut by = op.inputs[s].value.clone();
        if op.reading == Reading::Mul {
            let (_, inverse) = flow.source(&by)?;
            by = (power(inverse) == Some(-1.0)).then(|| inverse.inputs[0].value.clone())?;
        }
        let axis = summed(flow, &by, exp)?;
        let logits = unshifted(flow, &exp.inputs[0].value, axis);
        let out = Some(op.outputs[0].clone());
        Some(Soft { op: i, logits, axis, out, kind: SoftmaxForm::Probabilities })
    })
}

/// `log(sum(exp(z)))`.
fn logarithm(flow: &Flow<'_>, i: usize, op: &Ran) -> Option<Soft> {
    let (_, sum) = flow.source(&op.inputs[0].value).filter(|(_, ran)| is_sum(ran))?;
    let (_, exp) =
        flow.source(&sum.inputs[0].value).filter(|(_, ran)| ran.reading == Reading::Exp)?;
    let axis = summed(flow, &op.inputs[0].value, exp)?;
    let logits = unshifted(flow, &exp.inputs[0].value, axis);
    Some(Soft { op: i, logits, axis, out: None, kind: SoftmaxForm::Within })
}

/// The axis along which the results of `exp` were summed to give this value.
fn summed(flow: &Flow<'_>, value: &Arc<Value>, exp: &Ran) -> Option<usize> {
    let (_, sum) = flow.source(value).filter(|(_, ran)| is_sum(ran))?;
    let from = flow.before_views(&sum.inputs[0].value);
    let same = place(&from) == place(&exp.outputs[0])
        && sum.inputs[0].value.shape() == exp.outputs[0].shape();
    let axes: Vec<usize> = sum.axes?.iter().collect();
    (same && axes.len() == 1).then(|| axes[0])
}

/// Logits before a value that is constant along the axis was subtracted from them, mostly their
/// maximum.
fn unshifted(flow: &Flow<'_>, z: &Arc<Value>, axis: usize) -> Arc<Value> {
    match flow.maker(z).map(|i| &flow.ran[i]) {
        Some(op) if op.reading == Reading::Sub => {
            let (x, shift) = (&op.inputs[0].value, &op.inputs[1].value);
            let behind = z.shape().rank() - axis;
            let sizes = shift.shape();
            let constant = sizes.rank() < behind || sizes[sizes.rank() - behind] == 1;
            if constant && x.shape() == z.shape() { x.clone() } else { z.clone() }
        }
        _ => z.clone(),
    }
}

/// Rows of probabilities that must be seen where no softmax is on the tape.
const ROWS: usize = 8;

#[derive(Default)]
pub(super) struct Softmax {
    /// Rows of probabilities that each loss was given without a softmax in sight; none any more
    /// once it got others.
    rows: HashMap<SourcePosition, Option<usize>>,
}

impl Softmax {
    /// Looks for a softmax of probabilities, and for classes picked along another axis than
    /// softmax's.
    pub fn look(&mut self, at: &Forward<'_>, all: &[Soft], findings: &mut Findings) {
        for soft in all {
            self.double(&at.flow, soft, all, findings);
        }
        sigmoid(&at.flow, findings);
        for (_, op) in at.flow.ops() {
            picked(&at.flow, op, all, findings);
        }
    }

    fn double(&mut self, flow: &Flow<'_>, second: &Soft, all_of: &[Soft], findings: &mut Findings) {
        if !is_of_loss(flow, second) {
            return;
        }
        let op = &flow.ran[second.op];
        let first = probabilities_behind(flow, &second.logits, all_of);
        if first.is_none() {
            let key = position(op);
            let rows = self.rows.entry(key).or_insert(Some(0));
            if !are_probabilities(&second.logits, second.axis) || !varied(&second.logits) {
                *rows = None;
            }
            let Some(rows) = rows else { return };
            *rows += second.logits.numel() / second.logits.shape()[second.axis].max(1);
            if *rows < ROWS {
                return;
            }
        }
        let numbers = all(&second.logits);
        let within = |f: fn(f64, f64) -> f64, from: f64| numbers.iter().copied().fold(from, f);
        let (low, high) = (within(f64::min, f64::INFINITY), within(f64::max, f64::NEG_INFINITY));
        let sum = farthest_from_one(&second.logits, second.axis);
        let by = match first {
            Some(i) => {
                format!(" (they come from `{}` at {})", flow.ran[i].op, flow.ran[i].location)
            }
            None => String::new(),
        };
        findings.add(
            Mistake::DoubleSoftmax,
            format!("`{}` is given probabilities", op.op),
            Some(op.location),
            format!(
                "its {} rows lie between {low:.4} and {high:.4}, and of their sums the farthest from 1 is {sum:.6}{by}",
                numbers.len() / second.logits.shape()[second.axis].max(1)
            ),
            vec![("smallest element", low), ("largest element", high), ("row sum farthest from 1", sum)],
        );
    }
}

/// Whether a softmax belongs to a loss: its logarithm is taken, at once or after a class was
/// picked. Weights of attention may be normalised twice.
fn is_of_loss(flow: &Flow<'_>, soft: &Soft) -> bool {
    let Some(out) = soft.out.as_ref().filter(|_| soft.kind == SoftmaxForm::Probabilities) else {
        return true;
    };
    let mut open = vec![(out.clone(), 0)];
    while let Some((value, depth)) = open.pop() {
        for &(i, _) in flow.uses(&value).iter().filter(|&&(i, _)| flow.reaches(i)) {
            let op = &flow.ran[i];
            let constant = || op.inputs.iter().any(|given| given.number == 0);
            let passes = match passage(op) {
                Passage::Moved | Passage::Bounded => true,
                Passage::Shifted => op.reading == Reading::Add,
                Passage::Scaled => op.reading == Reading::Mul && constant(),
                Passage::Negated
                | Passage::Masked
                | Passage::Dropped
                | Passage::Joined
                | Passage::Opaque => op.role == Role::Picks,
            };
            if op.role == Role::Logarithm {
                return true;
            }
            if passes && depth < 8 {
                open.push((op.outputs[0].clone(), depth + 1));
            }
        }
    }
    false
}

/// The softmax whose probabilities these are, as they are or multiplied, shifted or clamped.
fn probabilities_behind(flow: &Flow<'_>, value: &Arc<Value>, all: &[Soft]) -> Option<usize> {
    let mut value = value.clone();
    loop {
        let made = |s: &&Soft| s.out.as_ref().is_some_and(|out| place(out) == place(&value));
        if let Some(soft) = all.iter().find(made) {
            return (soft.kind == SoftmaxForm::Probabilities).then_some(soft.op);
        }
        let op = &flow.ran[flow.maker(&value)?];
        let k = match passage(op) {
            Passage::Moved | Passage::Bounded | Passage::Dropped => 0,
            Passage::Scaled => scaling(op)?.0,
            Passage::Shifted if scalar(op, 1).is_some() => 0,
            Passage::Shifted if op.reading == Reading::Add && scalar(op, 0).is_some() => 1,
            Passage::Shifted
            | Passage::Negated
            | Passage::Masked
            | Passage::Joined
            | Passage::Opaque => return None,
        };
        value = op.inputs[k].value.clone();
    }
}

/// A sigmoid before the binary loss that takes logits.
fn sigmoid(flow: &Flow<'_>, findings: &mut Findings) {
    for (_, op) in flow.ops().filter(|(_, op)| op.role == Role::Loss(LossRole::BinaryLogits)) {
        let Some((_, before)) = flow.source(&op.inputs[0].value) else { continue };
        if before.reading != Reading::Sigmoid && !is_logistic(flow, before) {
            continue;
        }
        let x = all(&op.inputs[0].value);
        let low = x.iter().copied().fold(f64::INFINITY, f64::min);
        let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        findings.add(
            Mistake::DoubleSoftmax,
            "`bce_with_logits` is given probabilities".into(),
            Some(op.location),
            format!(
                "its {} inputs lie between {low:.4} and {high:.4}: they come from a sigmoid at {}",
                x.len(),
                before.location
            ),
            vec![("smallest element", low), ("largest element", high)],
        );
    }
}

/// `1 / (1 + exp(..))`.
fn is_logistic(flow: &Flow<'_>, op: &Ran) -> bool {
    let below = match op.reading {
        Reading::Div if scalar(op, 0) == Some(1.0) => 1,
        _ if power(op) == Some(-1.0) => 0,
        _ => return false,
    };
    let Some((_, sum)) = flow.source(&op.inputs[below].value) else { return false };
    let one = |k| scalar(sum, k) == Some(1.0);
    let exp = |k: usize| {
        flow.source(&sum.inputs[k].value).is_some_and(|(_, e)| e.reading == Reading::Exp)
    };
    sum.reading == Reading::Add && ((one(0) && exp(1)) || (one(1) && exp(0)))
}

/// A loss that picks each row's class along one axis, of probabilities that sum to 1 along another.
fn picked(flow: &Flow<'_>, op: &Ran, soft: &[Soft], findings: &mut Findings) {
    let is_loss = op.role == Role::Loss(LossRole::NegativeLogLikelihood);
    let (given, axis) = match (&op.reading, op.role) {
        _ if is_loss => (op.inputs[0].value.clone(), 1),
        (&Reading::Gather { axis }, _) => (op.inputs[0].value.clone(), axis),
        (_, Role::Picks) => match row_wise(flow, op) {
            Some(rows) => (rows, 1),
            None => return,
        },
        _ => return,
    };
    if given.shape().rank() <= axis || given.shape()[axis] < 2 {
        return;
    }
    if !is_loss && !picks_classes(&op.inputs[1].value, &given, axis) {
        return;
    }
    let Some(source) = distribution(flow, &given, soft) else { return };
    let shares = |x: &Arc<Value>, axis: usize| match source.1 {
        true => sums_of_exp(x, axis),
        false => sums(x, axis),
    };
    let off = |axis: usize| {
        let sums = shares(&given, axis);
        sums.into_iter().filter(|s| s.is_finite()).fold(1.0, |worst: f64, s| {
            if (s - 1.0).abs() > (worst - 1.0).abs() { s } else { worst }
        })
    };
    let along = off(axis);
    if (along - 1.0).abs() < CLOSE {
        return;
    }
    let Some(other) =
        (0..given.shape().rank()).find(|&a| a != axis && (off(a) - 1.0).abs() < CLOSE)
    else {
        return;
    };
    let softmax = &flow.ran[source.0.op];
    findings.add(
        Mistake::SoftmaxAxis,
        format!("`{}` normalises along axis {other}, the classes lie on axis {axis}", softmax.op),
        Some(softmax.location),
        format!("along the axis of the classes a sum of probabilities is {along:.4}; along axis {other} all are 1"),
        vec![("sum along the classes farthest from 1", along), ("the axis that sums to 1", other as f64)],
    );
}

/// Whether indices pick a class for each example: one each, not the diagonal, and not the same
/// places for all examples or all channels.
fn picks_classes(indices: &Arc<Value>, given: &Arc<Value>, axis: usize) -> bool {
    let (n, classes) = (given.numel() / given.shape()[axis], given.shape()[axis]);
    let picked: Vec<usize> = all(indices).into_iter().map(|i| i as usize).collect();
    let column = |(row, &i): (usize, &usize)| {
        if indices.shape().rank() == 1 && picked.len() == n {
            i % classes == row % classes
        } else {
            i == row % classes
        }
    };
    let diagonal = n == classes && picked.iter().enumerate().all(column);
    let one_each = indices.shape().rank() == 1 || indices.shape().get(axis) == Some(&1);
    one_each && picked.len() == n && given.shape().rank() == 2 && !diagonal
}

fn sums_of_exp(value: &Arc<Value>, axis: usize) -> Vec<f64> {
    let shape = *value.shape();
    let inner: usize = shape[axis + 1..].iter().product();
    let mut out = vec![0.0; value.numel() / shape[axis].max(1)];
    for (i, x) in all(value).into_iter().enumerate() {
        out[i / (inner * shape[axis]) * inner + i % inner] += x.exp();
    }
    out
}

/// The softmax behind a value, and whether the value is its logarithm.
fn distribution<'s>(
    flow: &Flow<'_>,
    value: &Arc<Value>,
    all: &'s [Soft],
) -> Option<(&'s Soft, bool)> {
    let mut value = value.clone();
    let mut logarithm = false;
    loop {
        let made = |s: &&Soft| s.out.as_ref().is_some_and(|out| place(out) == place(&value));
        if let Some(soft) = all.iter().find(made) {
            return Some((soft, logarithm || soft.kind == SoftmaxForm::Logarithms));
        }
        let op = &flow.ran[flow.maker(&value)?];
        match (&op.reading, passage(op)) {
            (Reading::Log, _) if !logarithm => logarithm = true,
            (Reading::Add, _) | (_, Passage::Bounded) if !logarithm => {}
            (_, Passage::Moved) => {}
            _ => return None,
        }
        value = op.inputs[0].value.clone();
    }
}

/// The rows `[n, classes]` of which one element each is taken by position in the flat array.
fn row_wise(flow: &Flow<'_>, op: &Ran) -> Option<Arc<Value>> {
    let (flat, indices) = (&op.inputs[0].value, &op.inputs.get(1)?.value);
    let rows = flow.before_views(flat);
    let &[n, classes] = &**rows.shape() else { return None };
    let each = flat.shape().rank() == 1 && indices.numel() == n && flat.numel() == n * classes;
    let inside = |(row, i): (usize, f64)| i >= 0.0 && i as usize / classes.max(1) == row;
    (each && all(indices).into_iter().enumerate().all(inside)).then_some(rows)
}
