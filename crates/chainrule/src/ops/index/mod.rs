//! Ops that pick elements by index. Repeated indices accumulate their gradients.

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[];
