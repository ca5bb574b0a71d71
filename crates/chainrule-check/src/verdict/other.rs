//! Readings of the numbers where no classic mistake gives them: edits of the right backward pass,
//! one at a time, and two factors at once.
//!
//! A rule uses the incoming gradient and values of the forward pass. The edits put another
//! gradient, or another value, of the same shape in place of each; the result is walked down as
//! with any mistake. Two factors are solved for, since every given gradient depends linearly on the
//! parts above it.

use std::fmt;
use std::sync::Arc;

use super::super::follow::{Edited, WORK, edited};
use super::case::{Case, GradientChange, label};
use super::evidence::short;
use super::report::times;
use super::search::Effort;
use super::tape::with_saved;
use crate::catalogue::fault::fitted;
use crate::error::Result;
use crate::program::Place;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::op::Saved;
use crate::tensor::value::Value;

/// The most products of parts by elements that are laid beside each other in pairs.
const MOST: usize = 20_000_000;

/// An edit that turns the right gradients into the given ones, where no classic mistake does.
#[derive(Clone, Debug)]
pub struct Deviation {
    op: &'static str,
    tensor: String,
    place: Option<Place>,
    text: String,
}

impl Deviation {
    /// The op whose backward is wrong.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The op's result: its name, or `op#number`.
    pub fn tensor(&self) -> &str {
        &self.tensor
    }

    /// The line that called the op: the backward of this line is the one to change.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The quantity that was used, and the right one.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn of(node: &Arc<Node>, text: String) -> Deviation {
        let tensor = label(&Source::Node(node.clone()));
        Deviation { op: node.op.name(), tensor, place: node.place(), text }
    }

    /// A fault in the gradient of a tensor, whatever caused it.
    pub(super) fn at(node: Option<&Arc<Node>>, tensor: String, text: String) -> Deviation {
        let op = node.map_or("leaf", |node| node.op.name());
        Deviation { op, tensor, place: node.and_then(|node| node.place()), text }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tensor.is_empty() {
            write!(f, "in the right backward pass, at `{}`", self.op)?;
            if let Some(at) = &self.place {
                write!(f, " ({at})")?;
            }
            return write!(f, ": {}", self.text);
        }
        write!(f, "in the backward of `{}` (result `{}`", self.op, self.tensor)?;
        if let Some(at) = &self.place {
            write!(f, ", {at}")?;
        }
        write!(f, "): {}", self.text)
    }
}

/// All single exchanges that explain the case; if there is none, the two factors that do.
pub(super) fn search(
    case: &mut Case,
    nodes: &[Arc<Node>],
    effort: &mut Effort,
) -> Result<Vec<Deviation>> {
    let mut found = Vec::new();
    let values = values(case);
    for node in nodes {
        gradients(case, node, effort, &mut found)?;
        operands(case, node, &values, effort, &mut found)?;
    }
    if found.is_empty() {
        found = super::repeated::search(case, effort)?;
    }
    if found.is_empty() {
        found = super::softmaxes::search(case, nodes, effort)?;
    }
    if found.is_empty() {
        found = two_factors(case, effort)?;
    }
    if found.is_empty() {
        found = super::meant::search(case, nodes, effort)?;
    }
    if found.is_empty() {
        found = super::fit::search(case, effort)?;
    }
    if found.is_empty() {
        found = instructions(case, effort)?;
    }
    Ok(found)
}

/// Edits of the instructions that the right backward pass is made of.
fn instructions(case: &Case, effort: &mut Effort) -> Result<Vec<Deviation>> {
    let (found, tried) = edited(case, WORK)?;
    effort.replays += tried;
    let one =
        |e: Edited| Deviation { op: e.op, tensor: String::new(), place: e.place, text: e.text };
    Ok(found.into_iter().flatten().map(one).collect())
}

/// The named values of the forward pass, and those that rules saved.
fn values(case: &Case) -> Vec<(String, Arc<Value>)> {
    let mut numbers: Vec<&u64> = case.tape.nodes.keys().collect();
    numbers.sort_unstable();
    let mut found: Vec<(String, Arc<Value>)> = Vec::new();
    let mut add = |name: String, value: &Arc<Value>| {
        if !found.iter().any(|(_, v)| Arc::ptr_eq(v, value)) {
            found.push((name, value.clone()));
        }
    };
    for number in numbers {
        let node = &case.tape.nodes[number];
        let saved = lock(&node.saved).clone();
        for (input, value) in node.inputs.iter().zip(&saved.inputs) {
            if let (Some(value), true) = (value, input.number() > 0) {
                add(label(input), value);
            }
        }
        if let Some(value) = &saved.output {
            add(label(&Source::Node(node.clone())), value);
        }
    }
    for (number, value) in case.tape.computed() {
        add(label(&Source::Node(case.tape.nodes[&number].clone())), &value);
    }
    for (number, value) in case.tape.leaves() {
        add(label(&case.tape.sources[&number]), &value);
    }
    let mut gradients: Vec<(&u64, &Tensor)> = case.tape.gradients.iter().collect();
    gradients.sort_unstable_by_key(|(number, _)| **number);
    for (number, gradient) in gradients {
        add(format!("d_{}", label(&case.tape.sources[number])), &gradient.value());
    }
    found
}

/// Tries the gradients of other tensors in place of the one that comes into `node`.
fn gradients(
    case: &mut Case,
    node: &Arc<Node>,
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    let Some(right) = case.tape.gradients.get(&node.number).cloned() else { return Ok(()) };
    let mut others: Vec<(u64, Tensor)> = case
        .tape
        .gradients
        .iter()
        .filter(|(n, g)| **n != node.number && g.meta() == right.meta())
        .map(|(n, g)| (*n, g.clone()))
        .collect();
    others.sort_unstable_by_key(|(n, _)| *n);
    for (number, other) in others {
        effort.replays += 1;
        let wanted = case.tape.wanted(node);
        let Ok(parts) = with_saved(node, |at| node.op.vjp(at, &other, wanted))? else { continue };
        let Ok(parts) = fitted(node, parts, wanted) else { continue };
        for (only, changes) in choices(case, node, parts)? {
            if case.explains(&changes)? {
                let to = only.map_or(String::new(), |i| format!(" on the way to input {i}"));
                let (was, due) =
                    (label(&case.tape.sources[&number]), label(&Source::Node(node.clone())));
                let text =
                    format!("the gradient of `{was}` stands{to} where that of `{due}` is due");
                found.push(Deviation::of(node, text));
                break;
            }
        }
    }
    Ok(())
}

/// Tries other values of the forward pass in place of those that the rule of `node` uses.
fn operands(
    case: &mut Case,
    node: &Arc<Node>,
    values: &[(String, Arc<Value>)],
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    let Some(gradient) = case.tape.gradients.get(&node.number).cloned() else { return Ok(()) };
    let wanted = case.tape.wanted(node);
    let saved = lock(&node.saved).clone();
    let places = saved.inputs.iter().map(Option::as_ref).chain([saved.output.as_ref()]);
    for (place, right) in places.enumerate() {
        let Some(right) = right else { continue };
        for (name, other) in values {
            if Arc::ptr_eq(other, right) || other.meta != right.meta {
                continue;
            }
            effort.replays += 1;
            let mut changed = saved.clone();
            let due = match changed.inputs.get_mut(place) {
                Some(input) => {
                    *input = Some(other.clone());
                    label(&node.inputs[place])
                }
                None => {
                    changed.output = Some(other.clone());
                    label(&Source::Node(node.clone()))
                }
            };
            let parts = node.op.vjp(&Saved::new(node, &changed, false), &gradient, wanted);
            let Ok(parts) = parts.and_then(|parts| fitted(node, parts, wanted)) else { continue };
            for (_, changes) in choices(case, node, parts)? {
                if case.explains(&changes)? {
                    let text = format!("`{name}` stands where `{due}` is due");
                    found.push(Deviation::of(node, text));
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The changes of all parts of a node together, and where there are several each by itself.
fn choices(
    case: &Case,
    node: &Arc<Node>,
    parts: Vec<Option<Tensor>>,
) -> Result<Vec<(Option<usize>, Vec<GradientChange>)>> {
    let mut all = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        if let (Some(part), Some(right)) = (part, case.tape.part(node, i)) {
            all.push((i, (node.inputs[i].clone(), part.try_sub(right)?)));
        }
    }
    let mut out = vec![(None, all.iter().map(|(_, change)| change.clone()).collect())];
    if all.len() > 1 {
        out.extend(all.into_iter().map(|(i, change)| (Some(i), vec![change])));
    }
    Ok(out)
}

/// Two parts that are multiplied by numbers of their own.
fn two_factors(case: &mut Case, effort: &mut Effort) -> Result<Vec<Deviation>> {
    let mut places: Vec<(Arc<Node>, usize)> = Vec::new();
    for parts in case.tape.parts.values() {
        places.extend(parts.iter().map(|p| (p.node.clone(), p.input)));
    }
    places.sort_unstable_by_key(|(node, input)| (std::cmp::Reverse(node.number), *input));
    let elements: usize = case.observed.iter().map(|o| o.right.len()).sum();
    if places.len() * places.len() * elements > MOST {
        return Ok(Vec::new());
    }
    let flat = |of: &dyn Fn(usize) -> Vec<f64>, case: &Case| -> Vec<f64> {
        let each = case.observed.iter().enumerate();
        let scaled = |(i, o)| {
            let scale = super::fit::scale(case, o);
            of(i).into_iter().map(move |x| x * scale)
        };
        each.flat_map(scaled).collect()
    };
    let missing = flat(
        &|i| {
            let o = &case.observed[i];
            o.given.iter().zip(&o.right).map(|(g, r)| g - r).collect()
        },
        case,
    );
    let mut effects = Vec::new();
    for (node, input) in &places {
        effort.replays += 1;
        let Some(part) = case.tape.part(node, *input).cloned() else { continue };
        let effect = case.effect(&[(node.inputs[*input].clone(), part)])?;
        effects.push((node.clone(), *input, flat(&|i| effect[i].clone(), case)));
    }
    for (i, a) in effects.iter().enumerate() {
        for b in &effects[i + 1..] {
            let Some([x, y]) = solve(&a.2, &b.2, &missing) else { continue };
            if x.abs() < 1e-9 || y.abs() < 1e-9 {
                continue;
            }
            let fits = a.2.iter().zip(&b.2).zip(&missing);
            if fits.map(|((a, b), m)| (x * a + y * b - m).abs()).fold(0.0, f64::max) > 1e-9 {
                continue;
            }
            let said = |node: &Arc<Node>, input: usize, change: f64| {
                let times = times(1.0 + change, node);
                Deviation::of(node, format!("the part that goes to input {input} is {times}"))
            };
            return Ok(vec![said(&a.0, a.1, x), said(&b.0, b.1, y)]);
        }
    }
    Ok(Vec::new())
}

/// The numbers with which two rows best add up to a third; `None` where the rows point the same
/// way.
fn solve(a: &[f64], b: &[f64], sum: &[f64]) -> Option<[f64; 2]> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (aa, ab, bb) = (dot(a, a), dot(a, b), dot(b, b));
    let (ax, bx) = (dot(a, sum), dot(b, sum));
    let size = aa * bb - ab * ab;
    let enough = size > 1e-9 * aa * bb && size.is_finite();
    enough.then(|| [(ax * bb - bx * ab) / size, (bx * aa - ax * ab) / size])
}

/// A number as a fraction of small numbers, where it is one.
pub(crate) fn fraction(x: f64) -> String {
    let near = (1..=64).find(|d| {
        let top = x * f64::from(*d);
        (top - top.round()).abs() <= 1e-8 * top.abs().max(1.0)
    });
    match near {
        Some(1) => format!("{}", x.round() + 0.0),
        Some(below) => format!("{}/{below}", (x * f64::from(below)).round()),
        None => short(x),
    }
}
