//! The operations of a plan, on the results of earlier ones, and what each costs.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::samples::Sample;
use super::term::{BaseId, Dims, Fun, TermId, Var, Vars};
use crate::dtype::DType;
use crate::ir::Id;

/// The place of an operation in [`Plan::nodes`].
pub(super) type NodeId = usize;

/// An operation of a plan, on the results of earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// The number 1.
    One,
    /// A value that the program has, with these axes.
    Have(Id, Dims),
    /// One-hot rows.
    Hot(BaseId),
    Add(NodeId, NodeId),
    Sub(NodeId, NodeId),
    Mul(NodeId, NodeId),
    Div(NodeId, NodeId),
    /// Times a number, given by its bits.
    Scale(NodeId, u64),
    /// To a power, given by its bits.
    Pow(NodeId, u64),
    Apply(Fun, NodeId),
    Sum(NodeId, Vars),
    /// The element of each row that the one-hot rows name.
    Pick(NodeId, BaseId),
    /// The slope of a function of rows at its result, times a gradient: one op of the table.
    RowSlope(RowSlope, NodeId, NodeId, Var),
}

/// A function of rows whose slope is an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowSlope {
    /// `p (g - sum(p g))`, of the probabilities.
    Softmax,
    /// `g - exp(l) sum(g)`, of the logarithms of probabilities.
    LogSoftmax,
}

pub(super) struct Node {
    pub operation: Operation,
    pub vars: Vars,
    pub cost: f64,
    /// Its numbers at the points of accuracy, if they have been asked for.
    pub sample: Option<Rc<Sample>>,
}

/// Operations in the order in which they run.
#[derive(Default)]
pub(super) struct Plan {
    pub nodes: Vec<Node>,
    /// The cost of all operations.
    pub total: f64,
    pub index: FxHashMap<Operation, NodeId>,
    pub done: FxHashMap<TermId, (f64, NodeId)>,
    pub order: Vec<TermId>,
    /// Live values, with those that the plan uses: they are already paid for.
    pub paid: Vec<Id>,
    /// Values defined from this position on may not be used.
    pub limit: usize,
    pub depth: usize,
    /// Whether a coefficient of the whole costs another instruction.
    pub is_exact: bool,
}

impl Plan {
    pub fn new(limit: usize) -> Plan {
        Plan { limit, ..Plan::default() }
    }

    pub fn cost(&self) -> f64 {
        self.total
    }

    pub fn mark(&self) -> Mark {
        Mark { nodes: self.nodes.len(), order: self.order.len(), paid: self.paid.len() }
    }

    pub fn back_to(&mut self, mark: Mark) {
        self.take(mark);
    }

    /// Removes the operations since the mark and returns them.
    pub fn take(&mut self, mark: Mark) -> Kept {
        let paid = self.paid.split_off(mark.paid);
        let nodes: Vec<Node> = self.nodes.drain(mark.nodes..).collect();
        for node in &nodes {
            // Costs are multiples of a half, so that floats hold them exactly.
            self.total -= node.cost;
            self.index.remove(&node.operation);
        }
        let done = &mut self.done;
        let terms = self.order.drain(mark.order..);
        let terms = terms.filter_map(|t| Some((t, done.remove(&t)?))).collect();
        Kept { nodes, terms, paid }
    }

    /// Appends operations that [`Plan::take`] removed.
    pub fn put(&mut self, kept: Kept) {
        for node in kept.nodes {
            self.total += node.cost;
            self.index.insert(node.operation.clone(), self.nodes.len());
            self.nodes.push(node);
        }
        for (t, done) in kept.terms {
            self.done.insert(t, done);
            self.order.push(t);
        }
        self.paid.extend(kept.paid);
    }
}

/// A part of a plan that was taken out of it.
pub(super) struct Kept {
    nodes: Vec<Node>,
    terms: Vec<(TermId, (f64, NodeId))>,
    paid: Vec<Id>,
}

/// A state of a plan, to return to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub nodes: usize,
    order: usize,
    paid: usize,
}

/// The cost of an operation for each element.
pub(super) fn weight(step: &Operation) -> f64 {
    match step {
        Operation::One | Operation::Have(..) => 0.0,
        Operation::Div(..) => 1.5,
        Operation::Pow(_, e) => match f64::from_bits(*e) {
            2.0 => 1.0,
            -1.0 | 0.5 | -0.5 => 2.0,
            _ => 8.0,
        },
        Operation::Apply(..) | Operation::RowSlope(RowSlope::LogSoftmax, ..) => 8.0,
        Operation::RowSlope(RowSlope::Softmax, ..) => 3.0,
        _ => 1.0,
    }
}

/// The cost of the slope of a log-softmax for each element: about an exponential, of which f32
/// makes as many at once as of other numbers.
pub(super) fn log_slope_weight(dtype: DType) -> f64 {
    if dtype == DType::F32 { 3.0 } else { 8.0 }
}

impl Plan {
    /// Whether the plan uses a value with another coefficient, so that the number might fit better
    /// elsewhere.
    pub fn is_multiple(&self, c: f64, root: NodeId) -> bool {
        c != 1.0 && matches!(self.nodes[root].operation, Operation::Have(..))
    }

    /// The numbers of an operation at the points of accuracy, once computed.
    pub fn sample(&self, n: NodeId) -> &Sample {
        self.nodes[n].sample.as_deref().expect("operations come after their operands")
    }

    /// The cost of an operation with all that it depends on.
    pub fn cost_to(&self, root: NodeId) -> f64 {
        let needed = self.needed(root);
        self.nodes.iter().zip(needed).filter(|(_, needed)| *needed).map(|(n, _)| n.cost).sum()
    }

    /// Marks the operations that the last one depends on.
    pub fn needed(&self, root: NodeId) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        needed[root] = true;
        for n in (0..self.nodes.len()).rev().filter(|n| *n <= root) {
            if needed[n] {
                for input in self.nodes[n].operation.inputs() {
                    needed[input] = true;
                }
            }
        }
        needed
    }
}

impl Operation {
    pub fn inputs(&self) -> SmallVec<[NodeId; 2]> {
        match self {
            Operation::One | Operation::Have(..) | Operation::Hot(_) => SmallVec::new(),
            Operation::Add(a, b)
            | Operation::Sub(a, b)
            | Operation::Mul(a, b)
            | Operation::Div(a, b)
            | Operation::RowSlope(_, a, b, _) => [*a, *b].into_iter().collect(),
            Operation::Scale(a, _)
            | Operation::Pow(a, _)
            | Operation::Apply(_, a)
            | Operation::Sum(a, _)
            | Operation::Pick(a, _) => [*a].into_iter().collect(),
        }
    }
}
