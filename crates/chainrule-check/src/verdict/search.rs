//! The search: which mistake in which place turns the right gradients into the given ones.

use std::collections::HashSet;
use std::sync::Arc;

use super::case::{Case, GradientChange};
use super::other::{self, Deviation};
use super::tape::with_saved;
use crate::catalogue::fault::fitted;
use crate::catalogue::{Fault, Unbroadcast};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Mode, Node, Source};

/// A fault in its place, which explains the case.
#[derive(Clone)]
pub(crate) struct Suspect {
    pub place: Source,
    pub fault: Fault,
}

/// Effort of the search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    /// Nodes that were replayed with mistakes.
    pub nodes: usize,
    /// Mistakes that were tried.
    pub replays: usize,
}

/// All faults that explain the case, those nearest to the loss first.
pub(crate) fn search(case: &mut Case) -> Result<(Vec<Suspect>, Effort)> {
    let _guard = Mode::get().with(Mode::NO_GRAD).enter();
    let (nodes, tensors) = places(case);
    let mut effort = Effort { nodes: nodes.len(), replays: 0 };
    let mut found = Vec::new();
    for node in &nodes {
        search_node(case, node, &mut effort, &mut found)?;
    }
    for &number in &tensors {
        overwritten(case, number, &mut effort, &mut found)?;
    }
    if found.is_empty() {
        for node in &nodes {
            super::clipped::search(case, node, &mut effort, &mut found)?;
        }
    }
    Ok((found, effort))
}

/// Other deviations from the right rules, for when no classic mistake gives the numbers.
pub(crate) fn search_others(case: &mut Case, effort: &mut Effort) -> Result<Vec<Deviation>> {
    let _guard = Mode::get().with(Mode::NO_GRAD).enter();
    let (nodes, _) = places(case);
    other::search(case, &nodes, effort)
}

/// The nodes whose rule may be wrong, and the tensors that may have lost parts: every wrong
/// gradient is reached from each of them by a path without a right one.
fn places(case: &Case) -> (Vec<Arc<Node>>, Vec<u64>) {
    let right = case.numbers(false);
    let mut common: Option<HashSet<u64>> = None;
    let mut common_nodes: Option<HashSet<u64>> = None;
    for wrong in case.numbers(true) {
        let tensors = case.tape.suspects(wrong, &right);
        let parts = tensors.iter().filter_map(|n| case.tape.parts.get(n)).flatten();
        let nodes: HashSet<u64> = parts.map(|p| p.node.number).collect();
        common = Some(match common {
            None => tensors,
            Some(before) => before.intersection(&tensors).copied().collect(),
        });
        common_nodes = Some(match common_nodes {
            None => nodes,
            Some(before) => before.intersection(&nodes).copied().collect(),
        });
    }
    let mut nodes: Vec<u64> = common_nodes.unwrap_or_default().into_iter().collect();
    nodes.sort_unstable_by(|a, b| b.cmp(a));
    let nodes = nodes.into_iter().filter_map(|n| case.tape.nodes.get(&n).cloned()).collect();
    let several = |n: &u64| case.tape.parts.get(n).is_some_and(|parts| parts.len() > 1);
    let mut tensors: Vec<u64> = common.unwrap_or_default().into_iter().filter(several).collect();
    tensors.sort_unstable_by(|a, b| b.cmp(a));
    (nodes, tensors)
}

/// Tries every mistake at one node.
fn search_node(
    case: &mut Case,
    node: &Arc<Node>,
    effort: &mut Effort,
    found: &mut Vec<Suspect>,
) -> Result<()> {
    let place = Source::Node(node.clone());
    let mut own = Vec::new();
    for mistake in node.op.entry().map_or(&[][..], |e| e.mistakes) {
        effort.replays += 1;
        let fault = Fault::Rule(mistake);
        if let Some(changes) = changes(case, node, &fault)?
            && case.explains(&without_inputs(&changes))?
        {
            own.extend(touched(&changes).map(|input| (input, mistake.name)));
            found.push(Suspect { place: place.clone(), fault });
        }
    }
    for input in 0..node.inputs.len() {
        let Some(part) = case.tape.part(node, input).cloned() else { continue };
        for how in Unbroadcast::ALL {
            effort.replays += 1;
            let fault = Fault::Unbroadcast { input, how };
            if let Some(changes) = changes(case, node, &fault)?
                && case.explains(&without_inputs(&changes))?
            {
                own.push((input, fault.name()));
                found.push(Suspect { place: place.clone(), fault });
            }
        }
        let source = node.inputs[input].clone();
        effort.replays += 1;
        if let Some(change) = case.factor(&[(source.clone(), part)])? {
            let factor = tidy(1.0 + change);
            let alone = case.tape.parts.get(&source.number()).map_or(0, Vec::len) == 1;
            // If one of two parts is lost, that is an overwritten gradient, which is tried by
            // itself.
            let lost = factor == 0.0 && !alone && two_parts(case, source.number());
            let said = own.iter().any(|(i, name)| *i == input && says(name, factor));
            if !lost && !said {
                found
                    .push(Suspect { place: place.clone(), fault: Fault::Factor { input, factor } });
            }
        }
    }
    Ok(())
}

fn two_parts(case: &Case, number: u64) -> bool {
    case.tape.parts.get(&number).is_some_and(|parts| parts.len() == 2)
}

/// A factor that rounding moved away from a number with a meaning.
fn tidy(factor: f64) -> f64 {
    let whole = factor.round();
    let inverse = (1.0 / factor).round();
    match () {
        _ if (factor - whole).abs() <= 1e-6 * whole.abs().max(1.0) => whole,
        _ if inverse != 0.0 && (factor * inverse - 1.0).abs() <= 1e-6 => 1.0 / inverse,
        _ => factor,
    }
}

/// Whether a named mistake that explains the same numbers makes a factor superfluous as a name. A
/// factor that has a name and also comes from sizes or zeros, like the 2 of a mean of two, is
/// listed as both.
fn says(own: &str, factor: f64) -> bool {
    let by_chance = ["1/n", "divided twice", "mean ", "slice ", "sum over "];
    !(by_chance.iter().any(|s| own.contains(s)) && [-1.0, 0.0, 0.5, 2.0].contains(&factor))
}

/// The changes of parts, with the inputs that they go to.
type Changes = Vec<(usize, GradientChange)>;

fn without_inputs(changes: &Changes) -> Vec<GradientChange> {
    changes.iter().map(|(_, change)| change.clone()).collect()
}

/// The inputs whose parts really change.
fn touched(changes: &Changes) -> impl Iterator<Item = usize> {
    let real =
        |(_, (_, change)): &&(usize, GradientChange)| change.to_f64_vec().iter().any(|x| *x != 0.0);
    changes.iter().filter(real).map(|(input, _)| *input)
}

/// The changes that a fault of `node` makes to its parts; `None` where it cannot be made.
fn changes(case: &Case, node: &Arc<Node>, fault: &Fault) -> Result<Option<Changes>> {
    let Some(gradient) = case.tape.gradients.get(&node.number) else { return Ok(None) };
    let wanted = case.tape.wanted(node);
    let parts = with_saved(node, |at| fault.parts(node, at, gradient, wanted))?;
    // A wrong rule may ask for shapes that are not there: then the user's code cannot contain it.
    let Some(Ok(parts)) = parts else { return Ok(None) };
    let mut out = Vec::new();
    for (i, part) in parts.into_iter().enumerate().filter(|(i, _)| wanted.get(*i)) {
        let Some(right) = case.tape.part(node, i) else { continue };
        let change = match part {
            Some(part) => part.try_sub(right)?,
            None => right.try_neg()?,
        };
        out.push((i, (node.inputs[i].clone(), change)));
    }
    Ok(Some(out))
}

/// Tries to take one part of a tensor's gradient for all of it.
fn overwritten(
    case: &mut Case,
    number: u64,
    effort: &mut Effort,
    found: &mut Vec<Suspect>,
) -> Result<()> {
    let parts: Vec<Tensor> = case.tape.parts[&number].iter().map(|p| p.part.clone()).collect();
    let (total, source) = (&case.tape.gradients[&number], case.tape.sources[&number].clone());
    let total = total.clone();
    for (kept, part) in parts.iter().enumerate() {
        effort.replays += 1;
        let changes = [(source.clone(), part.try_sub(&total)?)];
        if case.explains(&changes)? {
            found.push(Suspect { place: source.clone(), fault: Fault::Overwrite { kept } });
            // Equal parts: it makes no difference which of them was kept.
            return Ok(());
        }
    }
    Ok(())
}

/// The parts of a node by its right rule, before they are summed to the shapes of the inputs.
pub(crate) fn unfitted(case: &Case, node: &Arc<Node>) -> Result<Vec<Option<Tensor>>> {
    let Some(gradient) = case.tape.gradients.get(&node.number) else { return Ok(Vec::new()) };
    let wanted = case.tape.wanted(node);
    let grads = with_saved(node, |at| node.op.vjp(at, gradient, wanted))??;
    Ok(grads.into_iter().collect())
}

/// The same, summed.
pub(crate) fn summed(
    case: &Case,
    node: &Arc<Node>,
    grads: Vec<Option<Tensor>>,
) -> Result<Vec<Option<Tensor>>> {
    fitted(node, grads.into(), case.tape.wanted(node))
}
