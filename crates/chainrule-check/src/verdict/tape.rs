//! The right backward pass, kept: the gradient of every tensor, and the parts that arrived for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::autograd::custom::is_custom;
use crate::autograd::walk::{Observer, Walk};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::{Mode, Node, Source, lock};
use crate::tensor::op::{Saved, Wanted};
use crate::tensor::run::compute;
use crate::tensor::value::{Meta, Value};

/// The most elements that are recomputed.
const MOST: usize = 4_000_000;

/// A part of a gradient, as it arrived.
pub struct Incoming {
    /// The node that passed it on.
    pub node: Arc<Node>,
    /// As the gradient of which of its inputs.
    pub input: usize,
    pub part: Tensor,
}

/// A recorded backward pass between roots and the tensors of interest.
#[derive(Default)]
pub struct RecordedPass {
    /// The nodes whose rules were applied, by number.
    pub nodes: HashMap<u64, Arc<Node>>,
    /// Sources by number.
    pub sources: HashMap<u64, Source>,
    /// The whole gradients.
    pub gradients: HashMap<u64, Tensor>,
    /// The parts of each gradient, in the order of their arrival.
    pub parts: HashMap<u64, Vec<Incoming>>,
}

impl Observer for RecordedPass {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        self.gradients.insert(target.number(), gradient.clone());
        self.sources.insert(target.number(), target.clone());
    }

    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        self.nodes.insert(node.number, node.clone());
        let parts = self.parts.entry(node.inputs[i].number()).or_default();
        parts.push(Incoming { node: node.clone(), input: i, part: part.clone() });
    }
}

impl RecordedPass {
    /// Walks back from `roots`, as far as there are `targets`.
    pub fn record(roots: &[(&Tensor, Tensor)], targets: &[Tensor]) -> Result<RecordedPass> {
        let mut tape = RecordedPass::default();
        let walk = Walk {
            keep_graph: true,
            targets: Some(targets),
            observer: Some(&mut tape),
            ..Walk::default()
        };
        walk.run(roots)?;
        Ok(tape)
    }

    /// The part that `node` passes on to its input.
    pub fn part(&self, node: &Node, input: usize) -> Option<&Tensor> {
        let incoming = self.parts.get(&node.inputs[input].number())?;
        let own = incoming.iter().find(|p| p.node.number == node.number && p.input == input)?;
        Some(&own.part)
    }

    /// Values of the forward pass that no rule saved, by the numbers of their nodes: recomputed, as
    /// far as their inputs are known.
    pub fn computed(&self) -> Vec<(u64, Arc<Value>)> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let mut numbers: Vec<&u64> = self.nodes.keys().collect();
        numbers.sort_unstable();
        let mut known: HashMap<u64, Arc<Value>> = HashMap::new();
        for number in &numbers {
            let node = &self.nodes[number];
            let saved = lock(&node.saved).clone();
            for (input, value) in node.inputs.iter().zip(&saved.inputs) {
                if let (Some(value), true) = (value, input.number() > 0) {
                    known.insert(input.number(), value.clone());
                }
            }
            known.extend(saved.output.map(|v| (**number, v)));
        }
        let (mut out, mut elements) = (Vec::new(), 0);
        for number in numbers.into_iter().filter(|n| !known.contains_key(n)).collect::<Vec<_>>() {
            let node = &self.nodes[number];
            let saved = lock(&node.saved).clone();
            let of = |(i, input): (usize, &Source)| match input {
                Source::Leaf(leaf) => leaf.value.get().ok(),
                Source::Node(node) => known.get(&node.number).cloned(),
                Source::None => saved.inputs.get(i).cloned().flatten(),
            };
            let given: Option<Vec<_>> = node.inputs.iter().enumerate().map(of).collect();
            elements += node.meta.shape.numel();
            if node.op.generator().is_some() || is_custom(node.op.as_ref()) || elements > MOST {
                continue;
            }
            let value = given.and_then(|given| compute(node.op.as_ref(), &given).ok());
            if let Some(value) = value.map(|v| v.value).filter(|v| v.dtype().is_float()) {
                known.insert(*number, value.clone());
                out.push((*number, value));
            }
        }
        out
    }

    /// The values of leaves, by their numbers.
    pub fn leaves(&self) -> Vec<(u64, Arc<Value>)> {
        let of = |(number, source): (&u64, &Source)| match source {
            Source::Leaf(leaf) => Some((*number, leaf.value.get().ok()?)),
            _ => None,
        };
        let mut found: Vec<_> = self.sources.iter().filter_map(of).collect();
        found.retain(|(_, value)| value.dtype().is_float());
        found.sort_unstable_by_key(|(number, _)| *number);
        found
    }

    /// The inputs of `node` that parts went to.
    pub fn wanted(&self, node: &Node) -> Wanted {
        let mut wanted = Wanted::NONE;
        for i in (0..node.inputs.len()).filter(|&i| self.part(node, i).is_some()) {
            wanted = wanted.with(i);
        }
        wanted
    }

    /// The tensors whose gradient may be wrong if that of `wrong` is, seen from below: it, and the
    /// tensors between it and the nearest ones in `right`, which are known to be right.
    pub fn suspects(&self, wrong: u64, right: &HashSet<u64>) -> HashSet<u64> {
        let mut seen = HashSet::from([wrong]);
        let mut open = vec![wrong];
        while let Some(number) = open.pop() {
            for incoming in self.parts.get(&number).into_iter().flatten() {
                let above = incoming.node.number;
                if !right.contains(&above) && seen.insert(above) {
                    open.push(above);
                }
            }
        }
        seen
    }
}

/// Calls `f` with the values that the tape saved for the rule of `node`. A wrong rule may ask for
/// more than the right one, which saved only what the gradients that are wanted need; missing
/// values are NaN to it, so that a part which depends on it explains nothing.
pub fn with_saved<T>(node: &Arc<Node>, f: impl FnOnce(&Saved<'_>) -> T) -> Result<T> {
    let mut saved = lock(&node.saved).clone();
    if saved.freed {
        let why = "its saved values were freed by an earlier backward; keep the graph there (Backward::keep_graph)";
        return Err(Error::gradient(node.op.name(), why).at(node.location));
    }
    saved.inputs.resize(node.inputs.len(), None);
    for (value, input) in saved.inputs.iter_mut().zip(&node.inputs) {
        if value.is_none() {
            let meta = input.meta().unwrap_or(Meta::new(Shape::SCALAR, node.meta.dtype));
            *value = Some(unknown(meta)?);
        }
    }
    if saved.output.is_none() {
        saved.output = Some(unknown(node.meta)?);
    }
    Ok(f(&Saved::new(node, &saved, false)))
}

/// Whether the tape saved all that the op saves where every gradient is wanted.
pub fn is_complete(node: &Node) -> bool {
    let all = (0..node.inputs.len()).fold(Wanted::NONE, Wanted::with);
    let (saves, saved) = (node.op.saves(all), lock(&node.saved));
    let kept = |i: usize| matches!(saved.inputs.get(i), Some(Some(_)));
    (0..node.inputs.len()).all(|i| kept(i) || !saves.has_input(i))
}

fn unknown(meta: Meta) -> Result<Arc<Value>> {
    Ok(Tensor::try_full((), f64::NAN, meta.dtype)?.try_expand(meta.shape)?.value())
}

/// A tensor that stands for `source` as the root of a walk; its value is never used.
pub(crate) fn root(source: &Source, like: &Tensor) -> Tensor {
    Tensor::from_parts(like.value(), source.clone())
}
