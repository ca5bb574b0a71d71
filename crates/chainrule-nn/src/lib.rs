//! Modules, optimizers, data and files: the layer of `chainrule` above tensors.
//!
//! - [`nn`]: modules, layers and models.
//! - [`optim`]: optimizers, schedules and clipping.
//! - [`data`]: examples and the files they come from, batches.
//! - [`io`]: weights, checkpoints, atomic writes.
//!
//! `chainrule` re-exports what users need. The rest is public for the layers above alone and
//! promises nothing.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

// The derive macro names the library by its path from outside.
extern crate self as chainrule;

pub use chainrule_core::{DType, Error, Generator, Result, Shape, Tensor};
use chainrule_core::{autograd, dtype, error, kernels, ops, param, rng, shape, tensor};

pub mod data;
pub mod io;
pub mod nn;
pub mod optim;
