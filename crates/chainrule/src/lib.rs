//! Tensors, automatic differentiation and training, with a backward pass that is open.

#![deny(missing_docs)]

// The derive macro names the library by its path from outside.
extern crate self as chainrule;

pub mod autograd;
pub mod check;
pub mod data;
mod dtype;
mod error;
pub mod io;
pub(crate) mod kernels;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod rng;
mod shape;
mod tensor;

pub use dtype::{DType, Element};
pub use error::{Error, Result};
pub use ops::Slice;
pub use rng::Generator;
pub use shape::{IntoAxes, IntoShape, IntoSizes, MAX_RANK, Shape};
pub use tensor::{
    Elements, HookHandle, IntoTensor, Tensor, enable_grad, is_grad_enabled, no_grad, record_all,
};
