//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all; `keepdim` keeps them with size 1.

mod logsumexp;
mod max;
mod mean;
pub(crate) mod sum;
mod var;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[
    &sum::ENTRY,
    &mean::ENTRY,
    &var::VAR,
    &var::STD,
    &max::MAX,
    &max::MAX_AXIS,
    &max::ARGMAX,
    &logsumexp::ENTRY,
];
