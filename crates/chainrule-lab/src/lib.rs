//! The laboratory of `chainrule`: ready-made models, exercises, and the tests that the library's
//! checks are put to. The command and the library's own tests use it; a user of the library never
//! compiles it.
//!
//! - [`models`]: the names models, the digits models, a GPT.
//! - [`formulas`]: functions from textbooks, and the steps of the models, whose backward passes
//!   `chainrule explain` simplifies.
//! - [`names`]: the exercises of the lecture on backpropagation by hand.
//! - [`mistakes`]: every classic mistake of the catalogue, planted wherever it can be made.
//! - [`loops`]: training loops with a mistake in each, and without.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

use chainrule_core::{autograd, dtype, error, ops, rng, shape, tensor};
use chainrule_nn::{nn, optim};

pub mod formulas;
pub mod loops;
pub mod mistakes;
pub mod models;
pub mod names;
mod op_reference;
mod why_wrong;

pub use op_reference::op_reference;
pub use why_wrong::why_wrong;
