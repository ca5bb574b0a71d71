//! Tensors, the table of ops, gradients and random numbers: the layer of `chainrule` on which
//! modules, programs and checks stand.
//!
//! `chainrule` re-exports what users need. The rest is public for the layers above alone and
//! promises nothing.
//!
//! - [`tensor`]: values, handles, what is recorded of an op, and how an op runs.
//! - [`ops`]: one file an op, and the table of them.
//! - [`autograd`]: the backward pass, and everything that shows it.
//! - [`memory`]: what is kept of the memory of dropped tensors.
//! - [`rng`]: random numbers with the bits of PyTorch's and of Python's generators.
//! - [`shape`], [`error`]: sizes and axes as callers write them, and the one error type.

#![deny(missing_docs)]

#[doc(hidden)]
pub use chainrule_kernels::{self as kernels, dtype, param};

pub mod autograd;
pub mod error;
pub mod memory;
pub mod ops;
pub mod rng;
pub mod shape;
#[doc(hidden)]
pub mod tensor;

pub use dtype::{DType, Element};
pub use error::{Error, Result};
pub use ops::{
    Attention, AvgPool, Bce, BceWithLogits, Conv, ConvTranspose, CosineEmbedding, CrossEntropy,
    HingeEmbedding, Huber, Index, Indexing, Interpolation, KlDiv, MaxPool, NllLoss, PadMode,
    Padding, Reduction, Slice, SmoothL1,
};
pub use rng::Generator;
pub use shape::{IntoAxes, IntoShape, IntoSizes, MAX_RANK, Shape};
pub use tensor::{
    Elements, HookHandle, IntoTensor, Tensor, autocast, autocast_dtype, enable_grad,
    is_grad_enabled, no_grad, record_all, try_autocast,
};
