//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all; `keepdim` keeps them with size 1.

mod argmax;
mod logsumexp;
mod max;
mod max_axis;
mod mean;
mod std;
pub(crate) mod sum;
mod var;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[
    &sum::ENTRY,
    &mean::ENTRY,
    &var::ENTRY,
    &std::ENTRY,
    &max::ENTRY,
    &max_axis::ENTRY,
    &argmax::ENTRY,
    &logsumexp::ENTRY,
];
