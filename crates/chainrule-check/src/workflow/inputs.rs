//! Inputs that the loss does not depend on, entirely or in some columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{Address, Flow, Passage, passage, place, scalar};
use super::numbers::all;
use crate::tensor::Tensor;
use crate::tensor::reading::Reading;
use crate::tensor::value::Value;
use crate::tensor::watch::{Given, Ran};

/// Steps at which an input must be left out.
const STEPS: usize = 3;

#[derive(Default)]
pub(super) struct Inputs {
    /// For each input the steps seen, and of these the ones without any use of it.
    unused: HashMap<usize, (usize, usize)>,
    /// For each input and axis the positions that no step has read so far.
    unread: HashMap<(usize, usize), Vec<bool>>,
}

impl Inputs {
    pub fn look(&mut self, at: &Forward<'_>, findings: &mut Findings) {
        for (k, x) in at.inputs.iter().enumerate() {
            let places = at.flow.places_of(x);
            let seen = self.unused.entry(k).or_default();
            seen.0 += 1;
            if is_read(at, &places) {
                // Numbers that were read out can be used in ways that the tape does not show.
                self.unread.clear();
                continue;
            }
            if !reaches_loss(at, &places) {
                seen.1 += 1;
                if seen.1 >= STEPS && seen.1 == seen.0 {
                    tell_unused(k, x, seen.1, findings);
                }
                continue;
            }
            // Pictures are cropped and sequences cut: only a table is meant to have all of its
            // columns read.
            if x.rank() == 2 && seen.0 > seen.1 {
                let read = read(&at.flow, x, &places);
                self.columns(k, x, &read, findings);
            }
        }
    }

    /// Along each axis but the first: positions that no step has read.
    fn columns(&mut self, k: usize, x: &Tensor, read: &[bool], findings: &mut Findings) {
        let shape = x.shape();
        let steps = self.unused[&k].0;
        for axis in 1..shape.rank() {
            let inner: usize = shape[axis + 1..].iter().product();
            let mut unread = vec![true; shape[axis]];
            for (i, &r) in read.iter().enumerate() {
                unread[i / inner % shape[axis]] &= !r;
            }
            let so_far = self.unread.entry((k, axis)).or_insert_with(|| unread.clone());
            if so_far.len() != unread.len() {
                // With sequences of changing length, positions cannot be compared from step to
                // step.
                so_far.clear();
                continue;
            }
            so_far.iter_mut().zip(&unread).for_each(|(a, &b)| *a &= b);
            let left: Vec<usize> = (0..so_far.len()).filter(|&i| so_far[i]).collect();
            if left.is_empty() || steps < STEPS {
                continue;
            }
            findings.add(
                Mistake::UnusedInput,
                format!("input {k} along axis {axis}"),
                None,
                format!(
                    "of its {} positions along axis {axis}, {} are read by no op on the way to the loss: {:?}",
                    so_far.len(),
                    left.len(),
                    &left[..left.len().min(8)]
                ),
                vec![("positions", so_far.len() as f64), ("positions never read", left.len() as f64), ("the first of them", left[0] as f64)],
            );
        }
    }
}

fn tell_unused(k: usize, x: &Tensor, steps: usize, findings: &mut Findings) {
    findings.add(
        Mistake::UnusedInput,
        format!("input {k}, {} {}", x.dtype(), x.shape()),
        None,
        format!("no op on the way to the loss takes it or anything computed from it, at any of {steps} steps: the gradient with respect to it is 0"),
        vec![("steps without it", steps as f64), ("gradient with respect to it", 0.0)],
    );
}

/// Whether the elements of these values, or of anything computed from them, were read as plain
/// numbers.
fn is_read(at: &Forward<'_>, places: &HashSet<Address>) -> bool {
    let from = at.flow.computed_from(places);
    let computed = at.flow.ran.iter().zip(from).filter(|(_, from)| *from);
    places.iter().any(|p| at.read.contains_key(p))
        || computed.flat_map(|(op, _)| &op.outputs).any(|v| at.read.contains_key(&place(v)))
}

/// Whether the loss was computed from these values, other than by a product with zeros or as
/// targets alone.
fn reaches_loss(at: &Forward<'_>, places: &HashSet<Address>) -> bool {
    let flow = &at.flow;
    let targets: HashSet<Address> = at.targets.iter().map(|t| place(&t.value())).collect();
    let mut reached = places.clone();
    // Values computed from targets that were themselves computed from the input.
    let mut of_targets: HashSet<Address> = HashSet::new();
    for (_, op) in flow.ops() {
        let takes = |g: &Given| reached.contains(&place(&g.value));
        let through_targets = |g: &Given| of_targets.contains(&place(&g.value));
        let outputs = || op.outputs.iter().map(place);
        if op.inputs.iter().any(takes) && !annihilates(op, &reached) {
            let (aims, values): (Vec<_>, Vec<_>) = outputs().partition(|p| targets.contains(p));
            of_targets.extend(aims);
            reached.extend(values);
        } else if op.inputs.iter().any(through_targets) {
            // A model that reads its targets reads the input with them.
            if op.inputs.iter().any(|g| flow.is_of_leaf(&g.value)) {
                return true;
            }
            of_targets.extend(outputs());
        }
    }
    reached.contains(&place(&flow.loss))
}

/// Whether an op multiplies these values by nothing but zeros.
fn annihilates(op: &Ran, reached: &HashSet<Address>) -> bool {
    let zero =
        |g: &Given| !reached.contains(&place(&g.value)) && all(&g.value).iter().all(|&x| x == 0.0);
    op.reading == Reading::Mul && op.inputs.iter().any(zero)
}

/// Elements of an input that are read by ops on the way to the loss.
fn read(flow: &Flow<'_>, x: &Tensor, places: &HashSet<Address>) -> Vec<bool> {
    let mut read = vec![false; x.numel()];
    // For each value that holds elements of the input and nothing else, their positions, row-major.
    let mut origin: HashMap<Address, Vec<usize>> =
        places.iter().map(|&p| (p, (0..x.numel()).collect())).collect();
    for (i, op) in flow.ran.iter().enumerate() {
        for given in &op.inputs {
            let Some(from) = origin.get(&place(&given.value)) else { continue };
            if let Some(moved) = moved(op, &given.value, from) {
                origin.insert(place(&op.outputs[0]), moved);
            } else if flow.reaches(i) {
                from.iter().for_each(|&e| read[e] = true);
            }
        }
    }
    // The loss may be an element of the input itself.
    read
}

/// The elements of an op's result, if it holds those of its input one by one.
fn moved(op: &Ran, input: &Arc<Value>, from: &[usize]) -> Option<Vec<usize>> {
    let out = &op.outputs[0];
    let others_are_numbers = (0..op.inputs.len())
        .all(|k| Arc::ptr_eq(&op.inputs[k].value, input) || scalar(op, k).is_some());
    let elementwise = match passage(op) {
        Passage::Shifted | Passage::Scaled | Passage::Bounded => true,
        Passage::Moved => matches!(op.reading, Reading::Cast | Reading::Reshape),
        Passage::Negated
        | Passage::Masked
        | Passage::Dropped
        | Passage::Joined
        | Passage::Opaque => false,
    };
    if !op.recorded && others_are_numbers && elementwise && out.numel() == input.numel() && !op.view
    {
        return Some(from.to_vec());
    }
    if !op.view {
        return None;
    }
    // A view shares memory with its input, so an element is identified by its address.
    let at: HashMap<isize, usize> =
        positions(input).into_iter().zip(from.iter().copied()).collect();
    positions(out).into_iter().map(|p| at.get(&p).copied()).collect()
}

/// Addresses of the elements in the memory that they are a window of, row-major.
fn positions(value: &Arc<Value>) -> Vec<isize> {
    let (shape, layout) = (*value.shape(), value.layout());
    let mut out = vec![layout.offset as isize];
    for (axis, &size) in shape.iter().enumerate() {
        let steps = (0..size as isize).map(|i| i * layout.strides[axis]);
        out = out.iter().flat_map(|p| steps.clone().map(move |s| p + s)).collect();
    }
    out
}
