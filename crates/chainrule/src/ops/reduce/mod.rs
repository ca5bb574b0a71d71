//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all; `keepdim` keeps them with size 1.

pub(crate) mod sum;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[&sum::ENTRY];
