//! The catalogue of classic mistakes: those that the op files list, those that can be made at any op, and what people should know
//! of each.
//!
//! A mistake is a [`Fault`]; its place is a node of the tape, or a tensor of whose gradient the parts are not summed. [`verdict`](super::verdict())
//! replays faults to find the one that was made. The subjects of the catalogue, in `topics.rs`, become the page *Why is my gradient wrong?*.

mod example;
pub(crate) mod fault;
mod general;
mod page;
#[cfg(test)]
mod tests;
mod topics;

pub(crate) use fault::{Fault, Unbroadcast};
pub(crate) use general::GENERAL;
pub use page::why_wrong;
