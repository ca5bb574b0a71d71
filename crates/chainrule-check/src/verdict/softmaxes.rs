//! Another softmax in place of the one that an op computes: along another axis, or of a multiple of
//! its operand, as with a temperature.

use std::sync::Arc;

use super::case::{Case, GradientChange, label};
use super::meant::{values, with_operand};
use super::other::{Deviation, fraction};
use super::search::Effort;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};
use crate::tensor::reading::Reading;
use crate::tensor::role::{LossRole, Role};

/// The use that an op makes of the softmax of the last axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SoftmaxKind {
    Result,
    Logarithm,
    Loss,
}

impl SoftmaxKind {
    fn of(node: &Node) -> Option<SoftmaxKind> {
        match (node.op.reading(), node.op.role()) {
            (Reading::Softmax, _) => Some(SoftmaxKind::Result),
            (Reading::LogSoftmax, _) => Some(SoftmaxKind::Logarithm),
            (_, Role::Loss(LossRole::CrossEntropy)) => Some(SoftmaxKind::Loss),
            _ => None,
        }
    }
}

/// The other softmaxes that explain the case.
pub(super) fn search(
    case: &mut Case,
    nodes: &[Arc<Node>],
    effort: &mut Effort,
) -> Result<Vec<Deviation>> {
    let mut found = Vec::new();
    let all = values(case);
    for node in nodes {
        let Some(kind) = SoftmaxKind::of(node) else { continue };
        let Some(x) = node.inputs.first().and_then(|input| all.get(&input.number())) else {
            continue;
        };
        let x = Tensor::from_parts(x.clone(), Source::None);
        if x.rank() == 0 {
            continue;
        }
        for (other, words) in others(&x)? {
            effort.replays += 1;
            if explains(case, node, kind, (&x, &other))? {
                let own = label(&node.inputs[0]);
                let text = format!("the softmax {words} stands where that of `{own}` is due");
                found.push(Deviation::of(node, text));
            }
        }
        found.truncate(3);
    }
    Ok(found)
}

/// Softmaxes that may be mistaken for that of the last axis.
fn others(x: &Tensor) -> Result<Vec<(Tensor, String)>> {
    let last = x.rank() as i64 - 1;
    let mut out = Vec::new();
    for axis in 0..last {
        out.push((x.try_softmax(axis)?, format!("along axis {axis}")));
    }
    let mut factors = vec![2.0, 3.0, 4.0, 10.0];
    factors.extend(x.shape().iter().filter(|&&n| n > 1).map(|&n| n as f64));
    let roots: Vec<f64> = factors.iter().map(|n| n.sqrt()).collect();
    factors.extend(roots);
    factors.sort_unstable_by(f64::total_cmp);
    factors.dedup();
    let inverse: Vec<f64> = factors.iter().map(|n| 1.0 / n).collect();
    for factor in factors.into_iter().chain(inverse).chain([-1.0]) {
        let scaled = x.try_mul(factor)?;
        out.push((scaled.try_softmax(last)?, format!("of {} times its operand", fraction(factor))));
    }
    Ok(out)
}

/// Whether another softmax in the rule of a node explains the case.
fn explains(
    case: &mut Case,
    node: &Arc<Node>,
    kind: SoftmaxKind,
    (x, other): (&Tensor, &Tensor),
) -> Result<bool> {
    let last = x.rank() as i64 - 1;
    if kind == SoftmaxKind::Loss {
        // Its gradient is the softmax less the labels, times a number.
        let change = other.try_sub(&x.try_softmax(last)?)?;
        let factor = case.factor(&[(node.inputs[0].clone(), change)])?;
        return Ok(factor.is_some_and(|factor| natural(case, node, x, factor)));
    }
    let output = if kind == SoftmaxKind::Logarithm { other.try_log()? } else { other.clone() };
    let Some(gradient) = case.tape.gradients.get(&node.number).cloned() else { return Ok(false) };
    let place = (node.inputs.len(), output.value());
    let Some(parts) = with_operand(case, node, &gradient, place) else { return Ok(false) };
    let mut changes: Vec<GradientChange> = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        if let (Some(part), Some(right)) = (part, case.tape.part(node, i)) {
            changes.push((node.inputs[i].clone(), part.try_sub(right)?));
        }
    }
    Ok(!changes.is_empty() && case.explains(&changes)?)
}

/// Whether a softmax is multiplied by what the right one is multiplied by.
fn natural(case: &Case, node: &Arc<Node>, x: &Tensor, factor: f64) -> bool {
    let Some(right) = case.tape.part(node, 0) else { return false };
    let Ok(p) = x.try_softmax(x.rank() as i64 - 1) else { return false };
    // The gradient is the softmax times it in all columns but the label's.
    let pairs = p.to_f64_vec().into_iter().zip(right.to_f64_vec());
    let near = |(p, g): (f64, f64)| (p * factor - g).abs() <= 1e-9 * g.abs().max(1e-12);
    pairs.filter(|pair| near(*pair)).count() * 2 >= right.numel()
}
