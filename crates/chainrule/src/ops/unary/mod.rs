//! Ops on one tensor, element by element.

mod exp;
mod neg;
mod tanh;
mod to_dtype;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[&exp::ENTRY, &neg::ENTRY, &tanh::ENTRY, &to_dtype::ENTRY];
