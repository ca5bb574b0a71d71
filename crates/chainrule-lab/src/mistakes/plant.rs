//! A mistake in a real backward pass: the walker makes it, and everything below gets its
//! consequences.

use std::sync::Arc;

use crate::autograd::walk::{Observer, Planted, Walk};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use crate::tensor::value::Meta;
use chainrule_check::catalogue::Fault;
use chainrule_check::catalogue::fault::{clip, scale};
use chainrule_check::verdict::tape::with_saved;

/// A fault in the tensor with this number.
#[derive(Clone, Copy)]
pub struct Planting {
    /// Number of the tensor on the tape.
    pub place: u64,
    /// The mistake.
    pub fault: Fault,
}

impl Planted for Planting {
    fn rule(
        &self,
        node: &Arc<Node>,
        op: &dyn Op,
        at: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Option<Result<Grads>> {
        if node.number != self.place {
            return None;
        }
        let changed = |f: &dyn Fn(&mut Grads) -> Result<()>| {
            let mut grads = op.vjp(at, gradient, wanted)?;
            f(&mut grads)?;
            Ok(grads)
        };
        match self.fault {
            Fault::Rule(mistake) => {
                let rule = |at: &Saved<'_>| (mistake.rule)(op, at, gradient, wanted);
                Some(with_saved(node, rule).flatten())
            }
            Fault::Factor { input, factor } => Some(changed(&|g| scale(g, input, factor))),
            Fault::Clip { input, bound } => Some(changed(&|g| clip(g, input, bound))),
            Fault::Unbroadcast { .. } | Fault::Overwrite { .. } => None,
        }
    }

    fn unbroadcast(
        &self,
        node: &Arc<Node>,
        i: usize,
        part: &Tensor,
        to: Meta,
    ) -> Option<Result<Tensor>> {
        match self.fault {
            Fault::Unbroadcast { input, how } if node.number == self.place && i == input => {
                how.apply(part, &to.shape)
            }
            _ => None,
        }
    }

    fn overwrites(&self, number: u64) -> Option<usize> {
        match self.fault {
            Fault::Overwrite { kept } if number == self.place => Some(kept),
            _ => None,
        }
    }
}

/// Keeps the gradients of some tensors.
struct Keeper<'a> {
    targets: &'a [Tensor],
    found: Vec<Option<Tensor>>,
}

impl Observer for Keeper<'_> {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        for (t, found) in self.targets.iter().zip(&mut self.found) {
            if t.source().number() == target.number() {
                *found = Some(gradient.clone());
            }
        }
    }
}

/// The gradients of `targets` by a backward pass with the mistake, if there is one; zeros where
/// nothing arrives.
pub(crate) fn gradients(
    root: &Tensor,
    upstream: &Tensor,
    targets: &[Tensor],
    planting: Option<&Planting>,
) -> Result<Vec<Tensor>> {
    let mut keeper = Keeper { targets, found: vec![None; targets.len()] };
    let walk = Walk {
        keep_graph: true,
        targets: Some(targets),
        observer: Some(&mut keeper),
        planted: planting.map(|p| p as &dyn Planted),
        ..Walk::default()
    };
    walk.run(&[(root, upstream.clone())])?;
    let zeros = |(found, t): (Option<Tensor>, &Tensor)| found.unwrap_or_else(|| t.zeros_like());
    Ok(keeper.found.into_iter().zip(targets).map(zeros).collect())
}
