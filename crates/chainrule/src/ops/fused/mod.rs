//! Ops that do several steps in one kernel. Each carries its definition in primitive ops, which gives its higher derivatives and is the
//! oracle that its kernels are tested against.

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[];
