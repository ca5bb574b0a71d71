//! Ops that move elements without changing them. The result is a view if memory allows it.

pub(super) mod cat;
pub(super) mod diag_embed;
pub(super) mod diagonal;
pub(super) mod expand;
pub(super) mod flip;
pub(super) mod meshgrid;
pub(super) mod movedim;
pub(super) mod pad;
pub(super) mod permute;
pub(super) mod repeat;
pub(super) mod repeat_interleave;
pub(super) mod reshape;
pub(super) mod roll;
pub(super) mod slice;
pub(super) mod split;
pub(super) mod squeeze;
pub(super) mod tril;
pub(super) mod unflatten;
pub(super) mod unfold;

include!(concat!(env!("OUT_DIR"), "/shape.rs"));

mod remap;
mod window;
