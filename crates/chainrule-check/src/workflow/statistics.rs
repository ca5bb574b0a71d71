//! Normalisation by running statistics in training.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{Flow, SourcePosition, moves, place, position, power, scalar};
use super::numbers::{all, apart};
use crate::nn::{Field, Module};
use crate::tensor::reading::Reading;
use crate::tensor::value::Value;
use crate::tensor::watch::Ran;

/// Steps at which it must be seen.
const STEPS: usize = 2;

#[derive(Default)]
pub(super) struct Statistics {
    seen: HashMap<SourcePosition, usize>,
}

impl Statistics {
    pub fn look(&mut self, at: &Forward<'_>, findings: &mut Findings) {
        let flow = &at.flow;
        if at.module.is_some_and(is_training) {
            // A user who switches single layers means it.
            return;
        }
        let parameters: HashSet<_> =
            at.parameters.all.iter().map(|p| place(&p.leaf.value())).collect();
        let learned = flow.computed_from(&parameters);
        let depends = |value: &Arc<Value>| flow.maker(value).is_some_and(|i| learned[i]);
        for (_, op) in flow.ops() {
            let Some((x, scaled)) = scaled(flow, op) else { continue };
            let Some((centred, mean)) = centred(flow, &x) else { continue };
            let fixed = !depends(&scaled.var) || is_another(&scaled.var, &centred);
            if !depends(&centred) || !fixed || frozen(at, op) {
                continue;
            }
            let key = position(op);
            let seen = self.seen.entry(key).or_insert(0);
            *seen += 1;
            if *seen >= STEPS {
                tell(&centred, &mean, &scaled, op, findings);
            }
        }
    }
}

/// Whether any layer is in training mode.
fn is_training(module: &dyn Module) -> bool {
    let on = |module: &dyn Module| {
        module.fields().iter().any(|(_, f)| matches!(f, Field::Training(t) if t.is_on()))
    };
    on(module) || module.named_modules().into_iter().any(|(_, inner)| on(inner))
}

/// A scale that was made of a variance: `(var + eps)^-1/2`.
struct Scaled {
    var: Arc<Value>,
}

/// `x / sqrt(var + eps)`, however written, with a constant variance of several features: gives `x`.
fn scaled(flow: &Flow<'_>, op: &Ran) -> Option<(Arc<Value>, Scaled)> {
    let sides: &[(usize, usize)] = match op.reading {
        Reading::Div => &[(0, 1)],
        Reading::Mul => &[(0, 1), (1, 0)],
        _ => return None,
    };
    sides.iter().find_map(|&(x, by)| {
        let by = &op.inputs[by];
        if by.requires_grad || by.value.numel() > op.inputs[x].value.numel() {
            return None;
        }
        let (_, root) = flow.source(&by.value)?;
        let fits = match power(root) {
            Some(0.5) => op.reading == Reading::Div,
            Some(-0.5) => op.reading == Reading::Mul,
            Some(-1.0) => return reciprocal(flow, root, op, x),
            _ => false,
        };
        let sum = &root.inputs[0].value;
        let (_, sum) = flow.source(sum).filter(|(_, sum)| sum.reading == Reading::Add)?;
        let eps = scalar(sum, 1).map(|e| (0, e)).or_else(|| scalar(sum, 0).map(|e| (1, e)));
        let (k, eps) = eps?;
        let small = (0.0..0.1).contains(&eps);
        (fits && small).then(|| {
            (op.inputs[x].value.clone(), Scaled { var: flow.before_views(&sum.inputs[k].value) })
        })
    })
}

/// `x * (1 / sqrt(var + eps))`.
fn reciprocal(flow: &Flow<'_>, inverse: &Ran, op: &Ran, x: usize) -> Option<(Arc<Value>, Scaled)> {
    let (_, root) = flow.source(&inverse.inputs[0].value).filter(|(_, r)| power(r) == Some(0.5))?;
    let (_, sum) = flow.source(&root.inputs[0].value).filter(|(_, s)| s.reading == Reading::Add)?;
    let k = if scalar(sum, 1).is_some() { 0 } else { 1 };
    Some((op.inputs[x].value.clone(), Scaled { var: flow.before_views(&sum.inputs[k].value) }))
}

/// `x - mean` behind a value that may have been multiplied since: gives `x` and the mean.
fn centred(flow: &Flow<'_>, value: &Arc<Value>) -> Option<(Arc<Value>, Arc<Value>)> {
    let mut value = value.clone();
    for _ in 0..4 {
        let op = &flow.ran[flow.maker(&value)?];
        match op.reading {
            Reading::Sub if !op.inputs[1].requires_grad => {
                let mean = flow.before_views(&op.inputs[1].value);
                return Some((op.inputs[0].value.clone(), mean));
            }
            Reading::Mul => {
                let larger = usize::from(op.inputs[1].value.numel() > op.inputs[0].value.numel());
                value = op.inputs[larger].value.clone();
            }
            _ if moves(op) => value = op.inputs[0].value.clone(),
            _ => return None,
        }
    }
    None
}

/// The features, if they lie last: their number, and the values of each, one after the other.
fn columns(x: &Arc<Value>, features: usize) -> Option<Vec<Vec<f64>>> {
    let fits = features > 0 && x.shape().last() == Some(&features);
    let rows = fits.then(|| all(x))?;
    Some((0..features).map(|j| rows.iter().skip(j).step_by(features).copied().collect()).collect())
}

/// Whether a variance that was moved towards that of the batch is not the batch's own.
fn is_another(var: &Arc<Value>, x: &Arc<Value>) -> bool {
    let Some(columns) = columns(x, var.numel()) else { return false };
    let of_batch = |correction: f64| -> Vec<f64> {
        let variance = |c: &Vec<f64>| {
            let n = c.len() as f64;
            let mean = c.iter().sum::<f64>() / n;
            c.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - correction)
        };
        columns.iter().map(variance).collect()
    };
    let used = all(var);
    columns[0].len() > 1 && [0.0, 1.0].iter().all(|&c| apart(&used, &of_batch(c)) > 1e-2)
}

/// Whether a frozen gain is multiplied in afterwards: then the layer is meant to stay as it is.
fn frozen(at: &Forward<'_>, op: &Ran) -> bool {
    let flow = &at.flow;
    let fixed = |op: &Ran| {
        op.reading == Reading::Mul
            && op.inputs.iter().any(|g| g.leaf && !g.requires_grad && g.value.numel() > 1)
    };
    if op.inputs.iter().filter_map(|g| flow.source(&g.value)).any(|(_, before)| fixed(before)) {
        return true;
    }
    let mut value = op.outputs[0].clone();
    for _ in 0..3 {
        let Some(&(i, k)) = flow.uses(&value).iter().find(|&&(i, _)| flow.reaches(i)) else {
            return false;
        };
        let next = &flow.ran[i];
        let affine = matches!(next.reading, Reading::Mul | Reading::Add);
        if !(affine || moves(next)) {
            return false;
        }
        if affine && next.inputs.get(1 - k).is_some_and(|g| g.leaf && !g.requires_grad) {
            return true;
        }
        value = next.outputs[0].clone();
    }
    false
}

fn tell(x: &Arc<Value>, mean: &Arc<Value>, scaled: &Scaled, op: &Ran, findings: &mut Findings) {
    let mean_of = |c: &Vec<f64>| c.iter().sum::<f64>() / c.len() as f64;
    let own: Vec<f64> = columns(x, mean.numel()).iter().flatten().map(mean_of).collect();
    let used = all(mean);
    let off = if own.len() == used.len() { apart(&used, &own) } else { f64::NAN };
    let var = all(&scaled.var);
    let average = var.iter().sum::<f64>() / var.len().max(1) as f64;
    findings.add(
        Mistake::RunningStatistics,
        format!("`{}` normalises by a mean and a variance that the batch has no part in", op.op),
        Some(op.location),
        format!(
            "the mean that is subtracted is off the batch's own by {off:.3} of its size; the variances used average {average:.4}; no gradient flows through them"
        ),
        vec![("distance from the batch's mean, relative", off), ("average of the variances used", average)],
    );
}
