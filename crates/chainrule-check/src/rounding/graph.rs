//! The tape behind a loss: which tensors are on it, the order in which their gradients are
//! completed, and which of the named tensors feed which.

use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::Arc;

use crate::autograd::walk::{Observer, Planted, Walk, reachable};
use crate::error::Result;
use crate::program::Place;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};
use crate::tensor::op::{Op, Saved, shown};
use crate::tensor::value::Value;
use chainrule_core::ops::OpId;

/// A use of a tensor by an op, whose rule gives a part of the tensor's gradient.
#[derive(Clone, Debug)]
pub struct Use {
    /// The op.
    pub op: &'static str,
    /// Its row of the table.
    pub(crate) id: Option<OpId>,
    /// Its result: the name, or nothing if it has none.
    pub result: Option<String>,
    /// The line of Rust code that called it.
    pub location: &'static Location<'static>,
    /// The user's line that called it, if it is known.
    pub place: Option<Place>,
}

/// The nodes and leaves behind a loss.
pub(crate) struct LossGraph {
    /// In rising order: each after its inputs.
    nodes: Vec<Arc<Node>>,
    /// Nodes and leaves that take part in the backward pass, by their numbers.
    pub sources: HashMap<u64, Source>,
    /// The time at which the gradient of a source is complete; larger is earlier.
    times: HashMap<u64, u64>,
}

impl LossGraph {
    pub fn of(loss: &Tensor) -> LossGraph {
        let nodes = reachable([loss.source()].into_iter(), 0);
        let mut sources = HashMap::from([(loss.source().number(), loss.source().clone())]);
        let mut times = HashMap::from([(loss.source().number(), u64::MAX)]);
        for node in nodes.iter().rev() {
            sources.insert(node.number, Source::Node(node.clone()));
            times.insert(node.number, 2 * node.number);
            for input in node.inputs.iter().filter(|input| input.requires_grad()) {
                sources.insert(input.number(), input.clone());
                // A leaf's gradient is complete when the first op that took it has passed on its
                // part.
                times.insert(input.number(), 2 * node.number - 1);
            }
        }
        LossGraph { nodes, sources, times }
    }

    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The values of the leaves, by their numbers.
    pub fn leaves(&self) -> impl Iterator<Item = (u64, Arc<Value>)> {
        self.sources.iter().filter_map(|(&number, source)| match source {
            Source::Leaf(leaf) => Some((number, leaf.value())),
            _ => None,
        })
    }

    /// A tensor that stands for a source, with zeros for its elements.
    pub fn tensor(&self, number: u64) -> Option<Tensor> {
        let source = self.sources.get(&number)?;
        let meta = source.meta()?;
        let like = Tensor::try_full(meta.shape, 0.0, meta.dtype).ok()?;
        Some(Tensor::from_parts(like.value(), source.clone()))
    }

    pub fn source(&self, number: u64) -> &Source {
        &self.sources[&number]
    }

    /// Key of the sources in the order of the backward pass: larger is earlier.
    pub fn time(&self, number: u64) -> (u64, u64) {
        (self.times[&number], number)
    }

    /// The ops that take the source, the last first.
    pub fn uses(&self, number: u64) -> Vec<Use> {
        let takes = |node: &&Arc<Node>| node.inputs.iter().any(|input| input.number() == number);
        let used = |node: &Arc<Node>| Use {
            op: node.op.name(),
            id: node.op.id(),
            result: Source::Node(node.clone()).shown_name(),
            location: node.location,
            place: node.place(),
        };
        self.nodes.iter().rev().filter(takes).map(used).collect()
    }

    /// For each of these numbers, those among them whose gradients its own is made from, with none
    /// of them between.
    pub fn made_from(&self, numbers: &HashSet<u64>) -> HashMap<u64, Vec<u64>> {
        let mut above: HashMap<u64, Vec<u64>> = HashMap::new();
        for node in self.nodes.iter().rev() {
            let passes_on = match numbers.contains(&node.number) {
                true => vec![node.number],
                false => above.get(&node.number).cloned().unwrap_or_default(),
            };
            for input in node.inputs.iter().filter(|input| input.requires_grad()) {
                let known = above.entry(input.number()).or_default();
                known.extend(&passes_on);
                known.sort_unstable();
                known.dedup();
            }
        }
        above.retain(|number, _| numbers.contains(number));
        above
    }

    /// The gradients of these sources by a backward pass that changes nothing; where `given` has
    /// one, the pass goes on with that instead.
    pub fn gradients(
        &self,
        loss: (&Tensor, Tensor),
        wanted: &HashSet<u64>,
        given: &HashMap<u64, Tensor>,
    ) -> Result<HashMap<u64, Tensor>> {
        let substitute = |node: &Arc<Node>, op: &dyn Op, at: &Saved<'_>, _: &Tensor, wanted| {
            let gradient = shown(op, given.get(&node.number)?.clone());
            let found = gradient.and_then(|gradient| op.vjp(at, &gradient, wanted));
            Some(found.map_err(|e| e.at(node.location)))
        };
        self.gradients_by(loss, wanted, &substitute)
    }

    /// The same with a rule that may replace those of the ops.
    pub fn gradients_by(
        &self,
        loss: (&Tensor, Tensor),
        wanted: &HashSet<u64>,
        rule: &dyn Planted,
    ) -> Result<HashMap<u64, Tensor>> {
        let targets: Vec<Tensor> = self.sources.values().filter_map(leaf).collect();
        let mut seen = WantedGradients { wanted, gradients: HashMap::new() };
        let walk = Walk {
            keep_graph: true,
            targets: Some(&targets),
            observer: Some(&mut seen),
            planted: Some(rule),
            ..Walk::default()
        };
        walk.run(&[loss])?;
        Ok(seen.gradients)
    }
}

fn leaf(source: &Source) -> Option<Tensor> {
    match source {
        Source::Leaf(leaf) => Some(Tensor::from_parts(leaf.value(), source.clone())),
        _ => None,
    }
}

struct WantedGradients<'a> {
    wanted: &'a HashSet<u64>,
    gradients: HashMap<u64, Tensor>,
}

impl Observer for WantedGradients<'_> {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        let number = target.number();
        if self.wanted.contains(&number) {
            self.gradients.insert(number, gradient.clone());
        }
    }
}
