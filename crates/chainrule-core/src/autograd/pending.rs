//! The parts of gradients that are waiting in a walk.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::walk::Planted;
use crate::error::Result;
use crate::ops::{SliceOp, add_values, join};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};

/// The heap of a walk: parts of gradients, the largest number first.
#[derive(Default)]
pub(super) struct Pending {
    heap: BinaryHeap<PendingPart>,
    arrivals: u64,
}

/// A part of the gradient of `target`.
struct PendingPart {
    number: u64,
    /// The order of arrival, so that sums are always taken in the same order.
    arrival: u64,
    target: Source,
    gradient: Tensor,
    /// The slice of the target that it is the gradient of, where it is not that of the whole.
    of: Option<Arc<Node>>,
}

impl Pending {
    /// Adds a part of the gradient of `target`; with `of`, of that slice of it.
    #[inline]
    pub fn push(&mut self, target: Source, gradient: Tensor, of: Option<Arc<Node>>) {
        self.arrivals += 1;
        let (number, arrival) = (target.number(), self.arrivals);
        self.heap.push(PendingPart { number, arrival, target, gradient, of });
    }

    /// The tensor with the largest number and its whole gradient.
    #[inline]
    pub fn pop(&mut self, planted: Option<&dyn Planted>) -> Result<Option<(Source, Tensor)>> {
        let Some(PendingPart { number, target, gradient, of, .. }) = self.heap.pop() else {
            return Ok(None);
        };
        let whole = if of.is_none() && !self.has(number) {
            gradient
        } else if let Some(kept) = planted.and_then(|planted| planted.overwrites(number)) {
            self.overwritten(kept, gradient, number)
        } else {
            self.total(&target, (of, gradient))?
        };
        Ok(Some((target, whole)))
    }

    /// Whether the next part is one of tensor `number`.
    #[inline]
    fn has(&self, number: u64) -> bool {
        self.heap.peek().is_some_and(|next| next.number == number)
    }

    /// The sum of the first part of `target` and the further ones: those of slices joined, the
    /// others in the order in which they arrived.
    fn total(&mut self, target: &Source, first: (Option<Arc<Node>>, Tensor)) -> Result<Tensor> {
        let (mut whole, mut slices) = (None, SmallVec::<[(Arc<Node>, Tensor); 3]>::new());
        let mut next = Some(first);
        while let Some((of, gradient)) = next {
            match of {
                Some(node) => slices.push((node, gradient)),
                None => {
                    whole = Some(match whole.take() {
                        Some(before) => add_values(before, &gradient)?,
                        None => gradient,
                    });
                }
            }
            let more = self.has(target.number());
            next = if more { self.heap.pop().map(|part| (part.of, part.gradient)) } else { None };
        }
        let parts = slices.iter().map(|(node, g)| (slice(node).expect("a slice"), g));
        let parts: SmallVec<[_; 3]> = parts.collect();
        let joined = match target.meta() {
            Some(meta) if !parts.is_empty() => Some(join(meta, &parts)?),
            _ => None,
        };
        match (whole, joined) {
            (Some(whole), Some(joined)) => add_values(whole, &joined),
            (whole, joined) => Ok(whole.or(joined).expect("one part at least")),
        }
    }

    /// Makes the mistake of assigning where adding is due: of the parts of tensor `number`, one
    /// stands for all of them.
    fn overwritten(&mut self, kept: usize, first: Tensor, number: u64) -> Tensor {
        let mut parts = vec![first];
        while self.has(number) {
            parts.extend(self.heap.pop().map(|part| part.gradient));
        }
        let kept = kept.min(parts.len() - 1);
        parts.swap_remove(kept)
    }
}

/// The slice that a node is, if it is one.
#[inline]
pub(super) fn slice(node: &Node) -> Option<&SliceOp> {
    (node.op.as_ref() as &dyn Any).downcast_ref()
}

impl PartialEq for PendingPart {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PendingPart {}

impl PartialOrd for PendingPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PendingPart {
    /// Largest number first; of one number, the first to arrive.
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number).then(other.arrival.cmp(&self.arrival))
    }
}
