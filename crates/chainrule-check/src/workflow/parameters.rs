//! The parameters that a session knows: the model's, the optimizer's, and those found in the graph.

use std::sync::Arc;

use crate::autograd::walk::reachable;
use crate::tensor::Tensor;
use crate::tensor::node::{Leaf, Source};

/// A parameter with its record over the steps.
pub(super) struct Parameter {
    pub name: String,
    pub leaf: Arc<Leaf>,
    /// The optimizer of the session that holds it, by number; 0 for parameters that the loop
    /// updates by hand.
    pub held: Option<usize>,
    /// Whether it belongs to the model that is watched.
    pub of_module: bool,
}

impl Parameter {
    pub fn source(&self) -> Source {
        Source::Leaf(self.leaf.clone())
    }

    pub fn tensor(&self) -> Tensor {
        Tensor::from_parts(self.leaf.value(), self.source())
    }

    /// The gradient at present.
    pub fn grad(&self) -> Option<Vec<f64>> {
        self.tensor().grad().map(|g| g.to_f64_vec())
    }

    pub fn requires_grad(&self) -> bool {
        self.source().requires_grad()
    }
}

/// All parameters, in the order in which they were met.
#[derive(Default)]
pub(super) struct Parameters {
    pub all: Vec<Parameter>,
}

impl Parameters {
    /// Adds a leaf, if it is one and not known yet; a name replaces one that was made up.
    pub fn add(&mut self, tensor: &Tensor, name: Option<&str>, held: Option<usize>) {
        let Source::Leaf(leaf) = tensor.source() else { return };
        let number = leaf.number;
        if let Some(known) = self.all.iter_mut().find(|p| p.leaf.number == number) {
            known.held = known.held.or(held);
            if let Some(name) = name {
                known.name = name.to_string();
            }
            return;
        }
        let name = name.map(str::to_string).or_else(|| tensor.name());
        let name = name.unwrap_or_else(|| format!("parameter {}", leaf.meta.shape));
        self.all.push(Parameter { name, leaf: leaf.clone(), held, of_module: false });
    }

    /// Notes that a known parameter is the model's.
    pub fn of_module(&mut self, tensor: &Tensor) {
        let number = tensor.source().number();
        self.all.iter_mut().filter(|p| p.leaf.number == number).for_each(|p| p.of_module = true);
    }

    /// Adds the leaves behind a loss that require gradients, but for those given as inputs.
    pub fn add_behind(&mut self, loss: &Tensor, inputs: &[Tensor]) {
        for node in reachable([loss.source()].into_iter(), 0) {
            for source in &node.inputs {
                let input = inputs.iter().any(|x| x.source().number() == source.number());
                if let Source::Leaf(leaf) = source
                    && !input
                    && source.requires_grad()
                {
                    self.add(&Tensor::from_parts(leaf.value(), source.clone()), None, None);
                }
            }
        }
    }
}

/// Names joined by commas; of many the first few.
pub(super) fn few(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}
