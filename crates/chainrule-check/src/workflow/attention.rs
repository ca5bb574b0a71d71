//! Attention: the scale of the scores, the place of the mask, and the axis along which the weights
//! sum to 1.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{
    Flow, OperandRef, Passage, SourcePosition, is_sum, moves, passage, place, position, scaling,
};
use super::numbers::{CLOSE, all, dot, farthest_from_one, sums};
use super::softmax::{Soft, SoftmaxForm};
use crate::param::Param;
use crate::tensor::reading::Reading;
use crate::tensor::role::{NormRole, Role};
use crate::tensor::value::Value;
use crate::tensor::watch::{Given, Ran};

/// Weights on their way from softmax to the product with the values.
struct Weights {
    /// The ops between, in order, each with the number of its input that holds the weights.
    path: Vec<OperandRef>,
    /// The weights as the product takes them.
    last: Arc<Value>,
    /// The axis along which the product sums.
    axis: usize,
}

/// Fewest scores over which their spread is averaged.
const SIGHTS: usize = 4;

#[derive(Default)]
pub(super) struct Attention {
    /// Number of times that scores without a scale were met, and the logarithm of their mean spread
    /// in the beginning: near 1, the scale is in the starting weights.
    unscaled: HashMap<SourcePosition, (usize, f64)>,
    /// Masks after softmax; none any more once one was seen to be random.
    masks: HashMap<SourcePosition, Option<Masks>>,
}

/// The masks of one line, step after step.
struct Masks {
    first: Vec<bool>,
    steps: usize,
    /// Whether all of them were the same.
    same: bool,
}

impl Masks {
    /// Whether chance would not have hidden weights in this way in all of these forward passes.
    /// Dropout of few weights can look like a mask of positions.
    fn is_no_chance(&self, keys: usize) -> bool {
        let size = self.first.len();
        let again = self.same && self.steps >= 3 && self.steps * size >= 32;
        again || (self.steps >= 6 && size >= 16 && keys >= 4)
    }
}

impl Attention {
    pub fn look(&mut self, at: &Forward<'_>, soft: &[Soft], findings: &mut Findings) {
        let flow = &at.flow;
        for (_, op) in flow.ops().filter(|(_, op)| op.role == Role::Attention) {
            self.fused(flow, op, findings);
        }
        for soft in soft.iter().filter(|s| s.kind == SoftmaxForm::Probabilities) {
            let Some(weights) = weights(flow, soft) else { continue };
            // A softmax of something else than products of computed values is a gate or a mixture,
            // with rules of its own.
            if !has_product(flow, &soft.logits) {
                continue;
            }
            self.scale(flow, soft, findings);
            if !axis(flow, soft, &weights, findings) {
                self.mask(flow, soft, &weights, findings);
            }
        }
    }

    /// The scale of the fused op, which is one of its parameters.
    fn fused(&mut self, flow: &Flow<'_>, op: &Ran, findings: &mut Findings) {
        let own = op.parameters.field("scale").and_then(Param::number);
        let (Some(own), Some(&d)) = (own, op.inputs[0].value.shape().last()) else { return };
        self.judge(flow, own, d, [&op.inputs[0].value, &op.inputs[1].value], op, findings);
    }

    /// The factor between the product of queries and keys and the softmax.
    fn scale(&mut self, flow: &Flow<'_>, soft: &Soft, findings: &mut Findings) {
        let Some((factor, product)) = factor(flow, &soft.logits) else { return };
        let (q, k) = (&product.inputs[0], &product.inputs[1]);
        let Some(&d) = q.value.shape().last() else { return };
        self.judge(flow, factor, d, [&q.value, &k.value], product, findings);
    }

    /// Whether a step between softmax and the product sets weights to 0 (or to nonsense) without
    /// any compensation.
    fn mask(&mut self, flow: &Flow<'_>, soft: &Soft, weights: &Weights, findings: &mut Findings) {
        let broken = all(&weights.last).iter().any(|w| !w.is_finite());
        if (farthest_from_one(&weights.last, weights.axis) - 1.0).abs() < CLOSE && !broken {
            return;
        }
        let out: HashSet<_> = soft.out.iter().map(place).collect();
        let from_weights = flow.computed_from(&out);
        for &(i, k) in &weights.path {
            let op = &flow.ran[i];
            // A mask made from the weights themselves selects the largest; weights whose sum is
            // taken are divided by it somewhere.
            let of_weights =
                |given: &Given| flow.maker(&given.value).is_some_and(|m| from_weights[m]);
            let others = op.inputs.iter().enumerate().filter(|&(j, _)| j != k);
            if others.map(|(_, given)| given).any(of_weights) || is_summed(flow, &op.outputs[0]) {
                continue;
            }
            let key = position(op);
            let multiplied = matches!(op.reading, Reading::Mul | Reading::Add);
            if !multiplied && op.role != Role::Selects {
                continue;
            }
            if is_dropout(op, k) {
                self.masks.insert(key, None);
                continue;
            }
            let (x, y) = (all(&op.inputs[k].value), all(&op.outputs[0]));
            if x.len() != y.len() {
                continue;
            }
            let hidden: Vec<f64> =
                x.iter().zip(&y).filter(|(x, y)| x != y && **x > 1e-6).map(|(x, _)| *x).collect();
            let kept = x.iter().zip(&y).all(|(x, y)| x == y || *y == 0.0 || !y.is_finite());
            let rank = op.outputs[0].shape().rank();
            let axis = (rank + weights.axis).saturating_sub(weights.last.shape().rank());
            let axis = axis.min(rank - 1);
            // Rows that are hidden as a whole belong to padded queries.
            let part = |s: &f64| s.abs() > 1e-6 && (s - 1.0).abs() > CLOSE;
            let parts = sums(&op.outputs[0], axis).iter().any(|s| part(s) || !s.is_finite());
            if hidden.is_empty() || !kept || !parts {
                continue;
            }
            let holes: Vec<bool> = x.iter().zip(&y).map(|(x, y)| x != y).collect();
            let start = || Some(Masks { first: holes.clone(), steps: 0, same: true });
            let Some(seen) = self.masks.entry(key).or_insert_with(start) else { continue };
            seen.steps += 1;
            seen.same &= seen.first == holes;
            if !seen.is_no_chance(op.outputs[0].shape()[axis]) {
                return;
            }
            let sum = farthest_from_one(&op.outputs[0], axis);
            findings.add(
            Mistake::MaskAfterSoftmax,
            format!("`{}` masks {} of {} attention weights", op.op, hidden.len(), x.len()),
            Some(op.location),
            format!(
                "after it a row of weights sums to {sum:.4} instead of 1; the hidden weights held {:.4} of the {:.0} rows' total",
                hidden.iter().sum::<f64>(),
                x.iter().sum::<f64>()
            ),
            vec![("row sum farthest from 1", sum), ("sum of the hidden weights", hidden.iter().sum())],
        );
            return;
        }
    }

    fn judge(
        &mut self,
        flow: &Flow<'_>,
        factor: f64,
        d: usize,
        [q, k]: [&Arc<Value>; 2],
        op: &Ran,
        findings: &mut Findings,
    ) {
        // Hidden states that are compared as they are have no scale to forget.
        if !(is_projection(flow, q) && is_projection(flow, k)) {
            return;
        }
        let (Some(of_q), Some(of_k)) = (side(flow, q), side(flow, k)) else { return };
        let factor = factor * of_q * of_k;
        let due = 1.0 / (d as f64).sqrt();
        let is = |x: f64| (factor / x - 1.0).abs() < 0.01;
        if d < 2 || !(is(1.0) || is(1.0 / due)) {
            return;
        }
        let spread = rms(q) * rms(k) / (of_q * of_k) * factor / due;
        let key = position(op);
        let (met, mean) = self.unscaled.entry(key).or_default();
        *met += 1;
        if *met <= SIGHTS {
            *mean += spread.ln() / SIGHTS as f64;
        }
        if *met < SIGHTS || (0.5..1.7).contains(&mean.exp()) {
            return;
        }
        let spread = mean.exp();
        let what =
            if is(1.0) { "is not scaled" } else { "is multiplied by sqrt(d) instead of divided" };
        findings.add(
            Mistake::AttentionScale,
            format!("the product of queries and keys {what}"),
            Some(op.location),
            format!(
                "between the product over d = {d} numbers and its softmax the factors multiply to {factor:.4}; due is 1/sqrt({d}) = {due:.4}, so the scores spread {:.2} times as wide as they should (by {spread:.3})",
                factor / due
            ),
            vec![
                ("factor found", factor),
                ("factor due", due),
                ("width of a head", d as f64),
                ("rms(q) * rms(k) * sqrt(d) times the factor", spread),
            ],
        );
    }
}

/// The root of the mean square.
fn rms(value: &Arc<Value>) -> f64 {
    let x = all(value);
    (dot(&x, &x) / x.len().max(1) as f64).sqrt()
}

/// Whether a value is a linear layer's result: a product with a parameter, plus a bias, whose
/// elements were moved, scaled or rotated since.
fn is_projection(flow: &Flow<'_>, value: &Arc<Value>) -> bool {
    let mut open = vec![(value.clone(), 0)];
    while let Some((value, depth)) = open.pop() {
        let Some(op) = flow.maker(&value).map(|i| &flow.ran[i]) else { continue };
        let of_leaf = || op.inputs.iter().any(|given| flow.is_of_leaf(&given.value));
        if op.role == Role::LinearLayer || op.role == Role::Product && of_leaf() {
            return true;
        }
        match passage(op) {
            Passage::Moved
            | Passage::Shifted
            | Passage::Scaled
            | Passage::Negated
            | Passage::Joined
            | Passage::Dropped => {}
            Passage::Masked | Passage::Bounded | Passage::Opaque if op.view => {}
            Passage::Masked | Passage::Bounded | Passage::Opaque => continue,
        }
        if depth < 12 {
            open.extend(op.inputs.iter().map(|given| (given.value.clone(), depth + 1)));
        }
    }
    false
}

/// The way from a softmax to a product of its result with something computed.
fn weights(flow: &Flow<'_>, soft: &Soft) -> Option<Weights> {
    let out = soft.out.clone()?;
    let mut open = vec![(out, Vec::new())];
    while let Some((value, path)) = open.pop() {
        for &(i, k) in flow.uses(&value).iter().filter(|&&(i, _)| flow.reaches(i)) {
            let op = &flow.ran[i];
            let rank = value.shape().rank();
            if op.role == Role::Product
                && rank >= 2
                && op.inputs[1 - k].number != 0
                && !op.inputs[1 - k].leaf
            {
                let axis = if k == 0 { rank - 1 } else { rank - 2 };
                return Some(Weights { path, last: value, axis });
            }
            let same = op.outputs[0].numel() == value.numel();
            let passes = match passage(op) {
                Passage::Moved
                | Passage::Shifted
                | Passage::Scaled
                | Passage::Masked
                | Passage::Bounded
                | Passage::Dropped => true,
                Passage::Negated | Passage::Joined | Passage::Opaque => false,
            };
            if same && path.len() < 12 && passes {
                let mut longer = path.clone();
                longer.push((i, k));
                open.push((op.outputs[0].clone(), longer));
            }
        }
    }
    None
}

/// Follows scores back to the product that they come from, with the numbers that they were
/// multiplied by on the way. `None` if something else happened to them: a learned temperature, a
/// function.
fn factor<'a>(flow: &Flow<'a>, scores: &Arc<Value>) -> Option<(f64, &'a Ran)> {
    let (mut value, mut factor) = (scores.clone(), 1.0);
    loop {
        let op = &flow.ran[flow.maker(&value)?];
        if op.role == Role::Product {
            return Some((factor, op));
        }
        let k = match passage(op) {
            Passage::Moved | Passage::Dropped => 0,
            Passage::Scaled => {
                let (k, by) = scaling(op)?;
                factor *= by;
                k
            }
            // A mask or a positional bias is added: the scores are the side that was computed from
            // a product.
            Passage::Shifted | Passage::Masked | Passage::Bounded => {
                let from_product = |k: &usize| has_product(flow, &op.inputs[*k].value);
                (0..op.inputs.len()).find(from_product)?
            }
            Passage::Negated | Passage::Joined | Passage::Opaque => return None,
        };
        value = op.inputs[k].value.clone();
    }
}

/// Whether a value comes from a product by a few elementwise steps.
fn has_product(flow: &Flow<'_>, value: &Arc<Value>) -> bool {
    let mut open = vec![(value.clone(), 0)];
    while let Some((value, depth)) = open.pop() {
        let Some(op) = flow.maker(&value).map(|i| &flow.ran[i]) else { continue };
        let product = op.role == Role::Product
            && !op.inputs.iter().any(|given| flow.is_of_leaf(&given.value));
        if product {
            return true;
        }
        let passes = match passage(op) {
            Passage::Moved
            | Passage::Shifted
            | Passage::Scaled
            | Passage::Masked
            | Passage::Bounded => true,
            Passage::Negated | Passage::Joined | Passage::Dropped | Passage::Opaque => false,
        };
        if passes && depth < 8 {
            open.extend(op.inputs.iter().map(|given| (given.value.clone(), depth + 1)));
        }
    }
    false
}

/// The numbers that one side of the product was multiplied by; `None` if the side is a parameter, a
/// constant, or was normalised.
fn side(flow: &Flow<'_>, value: &Arc<Value>) -> Option<f64> {
    let (mut value, mut factor) = (value.clone(), 1.0);
    loop {
        let op = &flow.ran[flow.maker(&value)?];
        let k = match (passage(op), op.role) {
            (Passage::Moved, _) => 0,
            // None where the divisor is a norm, or something learned.
            (Passage::Scaled, _) => {
                let (k, by) = scaling(op)?;
                factor *= by;
                k
            }
            (_, Role::Norm(NormRole::Layer | NormRole::RootMeanSquare | NormRole::Group)) => {
                return None;
            }
            _ => return Some(factor),
        };
        value = op.inputs[k].value.clone();
    }
}

/// Whether softmax ran along another axis than the one that the product sums over.
fn axis(flow: &Flow<'_>, soft: &Soft, weights: &Weights, findings: &mut Findings) -> bool {
    // The weights after changes of view alone.
    let views = weights.path.iter().take_while(|&&(i, _)| moves(&flow.ran[i])).last();
    let first = match views {
        Some(&(i, _)) => flow.ran[i].outputs[0].clone(),
        None => soft.out.clone().unwrap_or_else(|| weights.last.clone()),
    };
    let (rank, last) = (first.shape().rank(), weights.last.shape().rank());
    let Some(along) = (rank + weights.axis).checked_sub(last) else { return false };
    if first.shape()[along] != weights.last.shape()[weights.axis] {
        return false;
    }
    let sum = farthest_from_one(&first, along);
    let end = farthest_from_one(&weights.last, weights.axis);
    let off = |s: f64| (s - 1.0).abs() > CLOSE;
    let other = (0..rank).find(|&a| a != along && !off(farthest_from_one(&first, a)));
    let (true, true, Some(other)) = (off(sum), off(end), other) else { return false };
    let op = &flow.ran[soft.op];
    findings.add(
        Mistake::SoftmaxAxis,
        format!("`{}` normalises attention weights along axis {other} of {}, the product sums along axis {along}", op.op, first.shape()),
        Some(op.location),
        format!("along the axis of the keys a sum of weights is {sum:.4}; along axis {other} all are 1"),
        vec![("sum along the keys farthest from 1", sum), ("the axis that sums to 1", other as f64)],
    );
    true
}

/// Whether the values are summed on the way to the loss.
fn is_summed(flow: &Flow<'_>, value: &Arc<Value>) -> bool {
    flow.uses(value).iter().any(|&(i, _)| flow.reaches(i) && is_sum(&flow.ran[i]))
}

/// Whether an op hides weights by a random mask. Dropout scales the rest up, or hides weights
/// without the order that masks of positions have.
fn is_dropout(op: &Ran, weights: usize) -> bool {
    if op.reading != Reading::Mul && op.role != Role::Selects {
        return false;
    }
    let others =
        op.inputs.iter().enumerate().filter(|&(k, given)| k != weights && given.number == 0);
    others.map(|(_, given)| &given.value).filter(|v| v.numel() > 1).any(|mask| {
        let x = all(mask);
        let kept = x.iter().copied().fold(0.0, f64::max);
        let two = x.iter().all(|&m| m == 0.0 || m == kept);
        two && ((kept - 1.0).abs() > 1e-6 || !is_of_positions(&x, mask, &op.outputs[0]))
    })
}

/// Whether a mask is the same for all sequences, or hides the same keys from all queries, or shows
/// each query one stretch of keys.
fn is_of_positions(x: &[f64], mask: &Arc<Value>, weights: &Arc<Value>) -> bool {
    let shape = *mask.shape();
    let keys = shape.last().copied().unwrap_or(1).max(1);
    let queries = if shape.rank() < 2 { 1 } else { shape[shape.rank() - 2].max(1) };
    let size = keys * queries;
    if mask.numel() < weights.numel() && x.len() == size {
        return true;
    }
    let repeats = x.len() > size && x.chunks(size).all(|each| each == &x[..size]);
    let columns =
        queries > 1 && x.chunks(size).all(|each| each.chunks(keys).all(|row| row == &each[..keys]));
    let changes = |row: &[f64]| row.windows(2).filter(|w| w[0] != w[1]).count();
    repeats || columns || x.chunks(keys).all(|row| changes(row) <= 1)
}
