//! Products.

mod matmul;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[&matmul::ENTRY];
