//! The catalogue of classic mistakes: those that the op files list, those that can be made at any
//! op, and what readers should know about each.
//!
//! A mistake is a [`Fault`]; its place is a node of the tape, or a tensor whose gradient is not the
//! sum of its parts. [`verdict`](super::verdict()) replays faults to find the one that was made.
//! The page *Why is my gradient wrong?* is generated from the catalogue by the laboratory.

pub mod fault;
mod general;
#[cfg(test)]
mod tests;

pub use fault::{Fault, Unbroadcast};
pub use general::GENERAL;
