//! Ops on two or three tensors, element by element, with broadcasting. The operators `+ - * / -` are here too.
//!
//! The rules give gradients of the output's shape; the walker sums them over broadcast axes.

mod add;
mod compare;
mod div;
mod maximum;
mod mul;
mod operators;
mod pow;
mod sub;
mod ternary;
#[cfg(test)]
mod testing;
mod where_;

pub(crate) use add::add_values;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[
    &add::ENTRY,
    &mul::ENTRY,
    &sub::ENTRY,
    &div::ENTRY,
    &pow::ENTRY,
    &maximum::ENTRY,
    &where_::ENTRY,
    &compare::ENTRY,
];
