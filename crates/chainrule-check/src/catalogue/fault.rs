//! One mistake in one place of a backward pass: how it changes the parts that a node passes on.

use std::sync::Arc;

use crate::autograd::walk::fit;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::Node;
use crate::tensor::op::{Grads, Saved, Wanted};
use chainrule_core::ops::{Entry, Mistake, OpId, sum_to};

/// A mistake, without its place.
#[derive(Clone, Copy)]
pub enum Fault {
    /// One of the op's own list.
    Rule(&'static Mistake),
    /// The part that goes to an input is multiplied by a number that is not 1.
    Factor { input: usize, factor: f64 },
    /// The part that goes to an input is clipped to `-bound..bound`, inside the rule.
    Clip { input: usize, bound: f64 },
    /// The part that goes to a broadcast input is brought to its shape by something other than the
    /// sum.
    Unbroadcast { input: usize, how: Unbroadcast },
    /// One part of a tensor's gradient, in order of arrival, stands for all of them. The place is
    /// the tensor.
    Overwrite { kept: usize },
}

/// A wrong reduction, in place of the sum over the axes along which an input was stretched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbroadcast {
    /// The mean over them.
    Mean,
    /// The first slice.
    Slice,
    /// The sum over other axes, which have the same sizes.
    WrongAxis,
    /// The sum over everything, for each element.
    Everything,
}

impl Unbroadcast {
    pub const ALL: [Unbroadcast; 4] =
        [Unbroadcast::Mean, Unbroadcast::Slice, Unbroadcast::WrongAxis, Unbroadcast::Everything];

    /// The wrong gradient of a tensor of shape `to`; `None` where the mistake cannot be made or
    /// changes nothing.
    pub fn apply(self, part: &Tensor, to: &Shape) -> Option<Result<Tensor>> {
        let from = part.shape();
        let count = from.numel() / to.numel().max(1);
        if count < 2 || to.numel() == 0 {
            return None;
        }
        match self {
            Unbroadcast::Mean => Some(sum_to(part, to).and_then(|sum| sum.try_div(count as f64))),
            Unbroadcast::Slice => Some(first(part, to)),
            Unbroadcast::WrongAxis => other_axes(part, to),
            Unbroadcast::Everything if to.numel() > 1 => {
                Some(part.try_sum_all().and_then(|sum| sum.try_expand(to)))
            }
            Unbroadcast::Everything => None,
        }
    }
}

/// The first element along every axis that was broadcast.
fn first(part: &Tensor, to: &Shape) -> Result<Tensor> {
    let mut slice = part.clone();
    let lead = part.rank() - to.rank();
    for axis in 0..part.rank() {
        if axis < lead || to[axis - lead] == 1 {
            slice = slice.try_narrow(axis as i64, 0, 1)?;
        }
    }
    slice.try_reshape(to)
}

/// The sum over the last axes instead of the first: for a row that was broadcast to a square, or a
/// column instead of a row.
fn other_axes(part: &Tensor, to: &Shape) -> Option<Result<Tensor>> {
    let from = part.shape();
    let (rank, lead) = (from.rank(), from.rank() - to.rank());
    let stretched: Vec<bool> =
        (0..rank).map(|a| a < lead || (to[a - lead] == 1 && from[a] != 1)).collect();
    let kept: Vec<usize> = (0..rank).filter(|&a| !stretched[a] && from[a] != 1).collect();
    let gone: Vec<usize> = (0..rank).filter(|&a| stretched[a] && from[a] != 1).collect();
    // One axis stays and another of the same size is summed away: the mistake exchanges them.
    let (&stays, &goes) = kept
        .iter()
        .flat_map(|k| gone.iter().map(move |g| (k, g)))
        .find(|(k, g)| from[**k] == from[**g])?;
    let swapped = part.try_transpose(stays as i64, goes as i64);
    Some(swapped.and_then(|x| sum_to(&x, to)))
}

impl Fault {
    /// The parts that `node` passes on with this mistake, by input, from the gradient of its
    /// output; `None` where the mistake cannot be made.
    pub fn parts(
        &self,
        node: &Arc<Node>,
        at: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Option<Result<Vec<Option<Tensor>>>> {
        let op = node.op.as_ref();
        let fitted = |grads: Grads| fitted(node, grads, wanted);
        let right = || op.vjp(at, gradient, wanted);
        match *self {
            Fault::Rule(mistake) => Some((mistake.rule)(op, at, gradient, wanted).and_then(fitted)),
            Fault::Factor { input, factor } => Some(right().and_then(|mut grads| {
                scale(&mut grads, input, factor)?;
                fitted(grads)
            })),
            Fault::Clip { input, bound } => Some(right().and_then(|mut grads| {
                clip(&mut grads, input, bound)?;
                fitted(grads)
            })),
            Fault::Unbroadcast { input, how } => {
                let meta = node.inputs[input].meta()?;
                let mut grads = match right() {
                    Ok(grads) => grads,
                    Err(e) => return Some(Err(e)),
                };
                let part = grads.get(input)?.clone()?;
                if part.meta() == meta {
                    return None;
                }
                let wrong = match how.apply(&part, &meta.shape)? {
                    Ok(wrong) => wrong,
                    Err(e) => return Some(Err(e)),
                };
                grads[input] = Some(wrong);
                Some(fitted(grads))
            }
            Fault::Overwrite { .. } => None,
        }
    }
}

/// Scales the part of one input.
pub fn scale(grads: &mut Grads, input: usize, factor: f64) -> Result<()> {
    if let Some(grad) = grads.get_mut(input).and_then(Option::as_mut) {
        *grad = grad.try_mul(factor)?;
    }
    Ok(())
}

/// Clips the part of one input.
pub fn clip(grads: &mut Grads, input: usize, bound: f64) -> Result<()> {
    if let Some(grad) = grads.get_mut(input).and_then(Option::as_mut) {
        *grad = grad.try_clamp(-bound, bound)?;
    }
    Ok(())
}

/// The parts that a rule gives, summed to the shapes of the inputs.
pub fn fitted(node: &Arc<Node>, grads: Grads, wanted: Wanted) -> Result<Vec<Option<Tensor>>> {
    let mut parts = vec![None; node.inputs.len()];
    for (i, grad) in grads.into_iter().enumerate() {
        if i < parts.len()
            && wanted.get(i)
            && let Some(grad) = grad
            && let Some(meta) = node.inputs[i].meta()
        {
            parts[i] = Some(fit(node, i, &grad, meta)?);
        }
    }
    Ok(parts)
}

/// The row of the op table that the catalogue names.
pub fn entry(op: &str) -> Option<&'static Entry> {
    OpId::named(op).map(OpId::entry)
}
