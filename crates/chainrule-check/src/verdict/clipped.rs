//! Gradients clipped by value inside a rule: the bound is solved for, then it is replayed like any
//! other mistake.
//!
//! Between two neighbouring magnitudes the effect of a bound is linear in it, so Newton's method
//! takes few steps.

use std::sync::Arc;

use super::case::{Case, GradientChange};
use super::numbers::largest;
use super::search::{Effort, Suspect, summed, unfitted};
use crate::catalogue::Fault;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};

/// First guesses of a bound, as fractions of the largest magnitude.
const STARTS: [f64; 5] = [0.5, 0.2, 0.8, 0.05, 0.95];
const STEPS: usize = 8;

/// Tries to clip each part of `node`.
pub(crate) fn search(
    case: &mut Case,
    node: &Arc<Node>,
    effort: &mut Effort,
    found: &mut Vec<Suspect>,
) -> Result<()> {
    let parts = unfitted(case, node)?;
    for (input, part) in parts.iter().enumerate() {
        let Some(part) = part else { continue };
        if !node.inputs[input].requires_grad() || part.numel() < 2 {
            continue;
        }
        effort.replays += 1;
        if let Some(bound) = bound(case, node, input, part)? {
            let place = Source::Node(node.clone());
            found.push(Suspect { place, fault: Fault::Clip { input, bound } });
        }
    }
    Ok(())
}

/// The bound that explains the case, if there is one.
fn bound(case: &mut Case, node: &Arc<Node>, input: usize, part: &Tensor) -> Result<Option<f64>> {
    let most = largest(&part.to_f64_vec());
    if most == 0.0 {
        return Ok(None);
    }
    for start in STARTS {
        let mut at = start * most;
        for _ in 0..STEPS {
            let step = 1e-6 * at;
            let (here, there) =
                (effect(case, node, input, part, at)?, effect(case, node, input, part, at + step)?);
            let (Some(here), Some(there)) = (here, there) else { return Ok(None) };
            if explained(case, &here) {
                let changes = cut(case, node, input, part, at)?;
                return Ok(case.explains(&changes)?.then_some(at));
            }
            let moved = newton(case, &here, &there, step);
            let next = (at + moved).clamp(1e-9 * most, most);
            if !moved.is_finite() || next == at {
                break;
            }
            at = next;
        }
    }
    Ok(None)
}

/// Effect of a bound on the observed gradients, or on the one that shows it without a walk.
type Effects = Vec<(usize, Vec<f64>)>;

fn effect(
    case: &mut Case,
    node: &Arc<Node>,
    input: usize,
    part: &Tensor,
    bound: f64,
) -> Result<Option<Effects>> {
    let changes = cut(case, node, input, part, bound)?;
    if let Some(one) = case.at_once(&changes) {
        return Ok(Some(vec![one]));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    Ok(Some(case.effect(&changes)?.into_iter().enumerate().collect()))
}

fn cut(
    case: &Case,
    node: &Arc<Node>,
    input: usize,
    part: &Tensor,
    bound: f64,
) -> Result<Vec<GradientChange>> {
    let change = part.try_clamp(-bound, bound)?.try_sub(part)?;
    let mut parts = vec![None; node.inputs.len()];
    parts[input] = Some(change);
    let parts = summed(case, node, parts)?;
    let change = parts.into_iter().nth(input).flatten();
    Ok(change.into_iter().map(|c| (node.inputs[input].clone(), c)).collect())
}

fn explained(case: &Case, effects: &Effects) -> bool {
    effects.iter().all(|(place, change)| case.explains_one(*place, change, 1.0))
}

/// A Newton step of the bound towards the least squared rest.
fn newton(case: &Case, here: &Effects, there: &Effects, step: f64) -> f64 {
    let (mut along, mut length) = (0.0, 0.0);
    for ((place, here), (_, there)) in here.iter().zip(there) {
        let o = &case.observed[*place];
        for (((r, g), a), b) in o.right.iter().zip(&o.given).zip(here).zip(there) {
            let slope = (b - a) / step;
            let left = g - r - a;
            if slope.is_finite() && left.is_finite() {
                along += slope * left;
                length += slope * slope;
            }
        }
    }
    along / length
}
