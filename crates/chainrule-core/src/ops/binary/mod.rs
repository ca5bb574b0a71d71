//! Ops on two or three tensors, element by element, with broadcasting. The operators `+ - * / -`
//! are here too.
//!
//! The rules give gradients of the output's shape; the walker sums them over broadcast axes.

pub(super) mod add;
pub(super) mod atan2;
pub(super) mod bitwise;
pub(super) mod clamp_tensors;
pub(super) mod compare;
pub(super) mod copysign;
pub(super) mod div;
pub(super) mod floor_divide;
pub(super) mod fmod;
pub(super) mod hypot;
pub(super) mod isclose;
pub(super) mod lerp;
pub(super) mod logaddexp;
pub(super) mod logical;
pub(super) mod maximum;
pub(super) mod minimum;
pub(super) mod mul;
pub(super) mod pow;
pub(super) mod remainder;
pub(super) mod sub;
pub(super) mod where_;

include!(concat!(env!("OUT_DIR"), "/binary.rs"));

mod operators;
#[cfg(test)]
mod testing;

#[doc(hidden)]
pub use add::add_values;
pub(in crate::ops) use clamp_tensors::clamp_tensors;
