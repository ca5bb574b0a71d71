//! Ops that move elements without changing them. Where memory allows, the result is a view.

mod cat;
mod expand;
mod permute;
mod reshape;
pub(crate) mod slice;
mod squeeze;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[
    &reshape::ENTRY,
    &permute::ENTRY,
    &expand::ENTRY,
    &cat::ENTRY,
    &slice::ENTRY,
    &squeeze::ENTRY,
];
