//! Gradients that include those of earlier steps: a missing `zero_grad`, a stale gradient of an
//! intermediate.

use std::collections::HashMap;

use super::Pending;
use super::finding::{Findings, Mistake};
use super::numbers::{apart, dot, norm};
use super::parameters::{Parameters, few};

/// Tolerance of a sum of two gradients, in f32.
const EXACT: f64 = 1e-4;

/// With fewer numbers than this, any vector is a mixture of two others.
const FEWEST: usize = 8;

/// Composition of a gradient.
#[derive(Clone, Copy, PartialEq)]
enum Made {
    /// This pass's own.
    Own,
    /// The old gradient plus this pass's own.
    Sum,
    /// Neither: it was scaled since, or is of another kind.
    Other,
}

/// `after` is one of `own` and `before + own`.
fn made(before: &[f64], own: &[f64], after: &[f64]) -> Made {
    if apart(after, own) < EXACT {
        return Made::Own;
    }
    let sum: Vec<f64> = before.iter().zip(own).map(|(b, o)| b + o).collect();
    if apart(after, &sum) < EXACT { Made::Sum } else { Made::Other }
}

/// `after = a * before + b * own`, if it can be written so and the two can be told apart.
fn mixture(before: &[f64], own: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    if before.len() < FEWEST {
        return None;
    }
    let (bb, bo, oo) = (dot(before, before), dot(before, own), dot(own, own));
    let det = bb * oo - bo * bo;
    if det.is_nan() || det <= 1e-6 * bb * oo {
        return None;
    }
    let (ba, oa) = (dot(before, after), dot(own, after));
    let (a, b) = ((ba * oo - oa * bo) / det, (oa * bb - ba * bo) / det);
    let fitted: Vec<f64> = before.iter().zip(own).map(|(x, y)| a * x + b * y).collect();
    (apart(after, &fitted) < 1e-3).then_some((a, b))
}

/// Follows gradients from step to step.
#[derive(Default)]
pub(super) struct Gradients {
    /// Gradients used by the last step, by the parameters' numbers; empty once a backward pass has
    /// come after it.
    used: HashMap<u64, Vec<f64>>,
    /// The parameters to whose used gradients the last backward added, with the sizes of both
    /// parts.
    added: Vec<(u64, f64, f64)>,
}

impl Gradients {
    pub fn backward(
        &mut self,
        pending: &Pending,
        grads: &HashMap<u64, Vec<f64>>,
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        let used = std::mem::take(&mut self.used);
        let mut fresh = true;
        let (mut befores, mut owns, mut afters) = (Vec::new(), Vec::new(), Vec::new());
        let mut scaled = Vec::new();
        for parameter in &parameters.all {
            let number = parameter.leaf.number;
            let (Some(own), Some(after)) = (pending.own.get(&number), grads.get(&number)) else {
                continue;
            };
            fresh &= apart(after, own) < EXACT || norm(after) == norm(own);
            let Some(before) = used.get(&number).filter(|before| norm(before) > 0.0) else {
                continue;
            };
            match made(before, own, after) {
                Made::Own => {}
                Made::Sum => self.added.push((number, norm(before), norm(own))),
                Made::Other => {
                    scaled.push((number, norm(before), norm(own)));
                    befores.extend_from_slice(before);
                    owns.extend_from_slice(own);
                    afters.extend_from_slice(after);
                }
            }
        }
        // Clipping scales both parts, a scaled loss only the new one. A share that decays on
        // purpose fits neither.
        if let Some((a, b)) = mixture(&befores, &owns, &afters)
            && b > 0.0
            && ((a / b - 1.0).abs() < 0.01 || (a - 1.0).abs() < 0.01)
        {
            self.added.extend(scaled);
        }
        if fresh {
            stale(pending, findings);
        }
    }

    /// After a step: which of the gradients it used had been used before?
    pub fn step(&mut self, changed: &[u64], parameters: &Parameters, findings: &mut Findings) {
        let added = std::mem::take(&mut self.added);
        let used_again: Vec<_> =
            added.iter().filter(|(number, ..)| changed.contains(number)).collect();
        self.used.clear();
        for parameter in &parameters.all {
            if let Some(grad) = parameter.grad()
                && changed.contains(&parameter.leaf.number)
            {
                self.used.insert(parameter.leaf.number, grad);
            }
        }
        if used_again.is_empty() {
            return;
        }
        let size = |pick: fn(&&&(u64, f64, f64)) -> f64| {
            used_again.iter().map(|x| pick(&x).powi(2)).sum::<f64>().sqrt()
        };
        let (before, own) = (size(|x| x.1), size(|x| x.2));
        let name = |(number, ..): &&(u64, f64, f64)| {
            parameters.all.iter().find(|p| p.leaf.number == *number).map(|p| p.name.as_str())
        };
        let names: Vec<&str> = used_again.iter().filter_map(name).collect();
        findings.add(
            Mistake::MissingZeroGrad,
            "the gradients of all that the optimizer updates".into(),
            None,
            format!(
                "the gradients of {} of {} parameters ({}) are those that the last step used (norm {before:.4}) plus this step's own (norm {own:.4})",
                names.len(),
                parameters.all.iter().filter(|p| changed.contains(&p.leaf.number)).count(),
                few(&names)
            ),
            vec![("norm of the part already used", before), ("norm of this step's own", own)],
        );
    }
}

/// Retained intermediates whose gradients are not this pass's, while those of the parameters are.
fn stale(pending: &Pending, findings: &mut Findings) {
    for kept in &pending.retained {
        let Some(after) = kept.tensor.grad().map(|g| g.to_f64_vec()) else { continue };
        let size = dot(&kept.own, &kept.own);
        if size == 0.0 {
            continue;
        }
        let times = dot(&after, &kept.own) / size;
        let multiple: Vec<f64> = kept.own.iter().map(|g| g * times).collect();
        let twice = times > 1.5 && apart(&after, &multiple) < EXACT;
        let before = kept.before.as_deref().unwrap_or_default();
        let sum = norm(before) > 0.0 && made(before, &kept.own, &after) == Made::Sum;
        if !(twice || sum) {
            continue;
        }
        let (whole, own) = (norm(&after), size.sqrt());
        findings.add(
            Mistake::StaleGradient,
            format!("the gradient of {}", kept.label),
            kept.location,
            format!(
                "its norm is {whole:.4}, of which this pass gave {own:.4}; the rest is from earlier passes, while the parameters' gradients are this pass's alone"
            ),
            vec![("norm of the gradient", whole), ("norm of this pass's own", own)],
        );
    }
}
