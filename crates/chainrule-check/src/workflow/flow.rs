//! The flow of values through the ops of one forward pass, recorded on the tape or not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::numbers::same_numbers;
use crate::tensor::Tensor;
use crate::tensor::reading::{Fold, Reading};
use crate::tensor::role::Role;
use crate::tensor::value::Value;
use crate::tensor::watch::Ran;

/// The identity of a value: its address.
pub(super) type Address = *const Value;

pub(super) fn place(value: &Arc<Value>) -> Address {
    Arc::as_ptr(value)
}

/// A place in the program: file, line and column.
pub(super) type SourcePosition = (&'static str, u32, u32);

pub(super) fn position(op: &Ran) -> SourcePosition {
    (op.location.file(), op.location.line(), op.location.column())
}

/// A use of a value: the position of the op among those that ran, and of the operand.
pub(super) type OperandRef = (usize, usize);

/// The ops of one forward pass, and the values that flow between them.
pub(super) struct Flow<'a> {
    pub ran: &'a [Ran],
    made: HashMap<Address, usize>,
    used: HashMap<Address, Vec<OperandRef>>,
    /// Ops that the loss was computed from.
    reaching: Vec<bool>,
    leaves: HashSet<Address>,
    pub loss: Arc<Value>,
}

impl<'a> Flow<'a> {
    pub fn new(ran: &'a [Ran], loss: &Tensor) -> Flow<'a> {
        let (mut made, mut used) = (HashMap::new(), HashMap::<_, Vec<OperandRef>>::new());
        for (i, op) in ran.iter().enumerate() {
            for (k, given) in op.inputs.iter().enumerate() {
                used.entry(place(&given.value)).or_default().push((i, k));
            }
            for value in &op.outputs {
                made.entry(place(value)).or_insert(i);
            }
        }
        // Parameters are where a forward pass begins, whatever gave them their values.
        let given = ran.iter().flat_map(|op| &op.inputs).filter(|given| given.leaf);
        let leaves: HashSet<Address> = given.map(|given| place(&given.value)).collect();
        made.retain(|value, _| !leaves.contains(value));
        let loss = loss.value();
        let mut wanted: HashSet<Address> = HashSet::from([place(&loss)]);
        let mut reaching = vec![false; ran.len()];
        for (i, op) in ran.iter().enumerate().rev() {
            let of_this = |value: &Arc<Value>| made.get(&place(value)) == Some(&i);
            if op.outputs.iter().any(|v| of_this(v) && wanted.contains(&place(v))) {
                reaching[i] = true;
                wanted.extend(op.inputs.iter().map(|given| place(&given.value)));
            }
        }
        Flow { ran, made, used, reaching, leaves, loss }
    }

    /// The op that made a value, if it was seen.
    pub fn maker(&self, value: &Arc<Value>) -> Option<usize> {
        self.made.get(&place(value)).copied()
    }

    /// The ops that take a value.
    pub fn uses(&self, value: &Arc<Value>) -> &[OperandRef] {
        self.used.get(&place(value)).map_or(&[], Vec::as_slice)
    }

    /// Whether the loss was computed from the result of op `i`.
    pub fn reaches(&self, i: usize) -> bool {
        self.reaching[i]
    }

    /// The ops that the loss was computed from.
    pub fn ops(&self) -> impl Iterator<Item = (usize, &'a Ran)> + '_ {
        self.ran.iter().enumerate().filter(|&(i, _)| self.reaching[i])
    }

    /// Ops computed from one of these values, along detached paths too.
    pub fn computed_from(&self, values: &HashSet<Address>) -> Vec<bool> {
        let mut from = vec![false; self.ran.len()];
        let mut reached = values.clone();
        for (i, op) in self.ran.iter().enumerate() {
            if op.inputs.iter().any(|given| reached.contains(&place(&given.value))) {
                from[i] = true;
                reached.extend(op.outputs.iter().map(place));
            }
        }
        from
    }

    /// The places of a tensor given from outside: its own, and those of constants with the same
    /// numbers.
    pub fn places_of(&self, given: &Tensor) -> HashSet<Address> {
        let own = given.value();
        let mut out = HashSet::from([place(&own)]);
        for (_, op) in self.ops() {
            for input in &op.inputs {
                let outside = !self.made.contains_key(&place(&input.value));
                if outside && !input.requires_grad && same_numbers(&input.value, &own) {
                    out.insert(place(&input.value));
                }
            }
        }
        out
    }

    /// Follows a value back through ops that only move elements or change their type.
    pub fn before_views(&self, value: &Arc<Value>) -> Arc<Value> {
        let mut value = value.clone();
        while let Some(i) = self.maker(&value).filter(|&i| moves(&self.ran[i])) {
            value = self.ran[i].inputs[0].value.clone();
        }
        value
    }

    /// Whether a value is a parameter or a buffer, or a view of one.
    pub fn is_of_leaf(&self, value: &Arc<Value>) -> bool {
        self.leaves.contains(&place(&self.before_views(value)))
    }

    /// The op that made a value, seen through ops that only move elements.
    pub fn source(&self, value: &Arc<Value>) -> Option<(usize, &'a Ran)> {
        let i = self.maker(&self.before_views(value))?;
        Some((i, &self.ran[i]))
    }
}

/// Whether an op leaves its elements unchanged: views, copies, changes of dtype.
pub(super) fn moves(op: &Ran) -> bool {
    let moved = matches!(
        op.reading,
        Reading::Reshape | Reading::Permute(_) | Reading::Expand | Reading::Cast
    );
    op.inputs.len() == 1 && (op.view || moved || op.role == Role::Moves)
}

/// Change of a value on its way through an op that keeps its elements apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// As they are, in other places.
    Moved,
    /// Plus or minus something.
    Shifted,
    /// Times a number, or divided by one.
    Scaled,
    Negated,
    /// Some of them replaced by others.
    Masked,
    /// Clamped between bounds.
    Bounded,
    /// Zeroed by chance.
    Dropped,
    /// Beside others.
    Joined,
    /// Anything else.
    Opaque,
}

pub(super) fn passage(op: &Ran) -> Passage {
    if moves(op) {
        return Passage::Moved;
    }
    match (&op.reading, op.role) {
        (Reading::Add | Reading::Sub, _) => Passage::Shifted,
        (Reading::Mul | Reading::Div, _) => Passage::Scaled,
        (Reading::Neg, _) => Passage::Negated,
        (_, Role::Joins) => Passage::Joined,
        (_, Role::Selects) => Passage::Masked,
        (_, Role::Bounds) => Passage::Bounded,
        (_, Role::Dropout) => Passage::Dropped,
        (
            _,
            Role::Plain
            | Role::Moves
            | Role::Seed
            | Role::Steps
            | Role::Picks
            | Role::Logarithm
            | Role::Product
            | Role::LinearLayer
            | Role::Attention
            | Role::Norm(_)
            | Role::Loss(_),
        ) => Passage::Opaque,
    }
}

/// The operand that an op multiplies by a number, and the number; a divisor counts as its inverse.
pub(super) fn scaling(op: &Ran) -> Option<(usize, f64)> {
    match (&op.reading, scalar(op, 0), scalar(op, 1)) {
        (Reading::Mul, _, Some(by)) => Some((0, by)),
        (Reading::Mul, Some(by), None) => Some((1, by)),
        (Reading::Div, _, Some(by)) => Some((0, 1.0 / by)),
        _ => None,
    }
}

/// The exponent, of an op that raises its operand to a power: `sqrt` has 0.5.
pub(super) fn power(op: &Ran) -> Option<f64> {
    match op.reading {
        Reading::Power(exponent) => Some(exponent),
        Reading::Pow => scalar(op, 1),
        _ => None,
    }
}

/// Whether an op sums along axes.
pub(super) fn is_sum(op: &Ran) -> bool {
    matches!(op.reading, Reading::Fold { fold: Fold::Sum, .. })
}

/// The number that an op adds, multiplies by or divides by, if its operand `k` is a constant of one
/// element.
pub(super) fn scalar(op: &Ran, k: usize) -> Option<f64> {
    let given = op.inputs.get(k)?;
    let constant = given.number == 0 && given.value.numel() == 1;
    constant.then(|| super::numbers::all(&given.value)[0])
}
