//! Tensors, automatic differentiation and training, with a backward pass that is open.
//!
//! `loss.backward()` is a black box in most libraries: it works until it does not, and then it cannot say why. Here
//! every gradient of every intermediate can be seen, followed to the line that made it, and checked by a second, independent path.
//!
//! ```
//! use chainrule::Tensor;
//!
//! let a = Tensor::scalar(2.0f64).parameter().named("a");
//! let b = Tensor::scalar(-3.0f64).parameter().named("b");
//! let loss = (&a * &b + &a).tanh().named("loss");
//!
//! println!("{}", loss.trace()); // the backward pass, step by step: what came in, the rule, what went out
//! for part in loss.contributions(&a)? {
//!     println!("{} gave {}", part.op(), part.gradient());
//! }
//!
//! loss.backward();
//! let slope = 1.0 - loss.item().powi(2);
//! assert!((a.grad().unwrap().item() - slope * (-3.0 + 1.0)).abs() < 1e-12);
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! # Where things are
//!
//! - [`Tensor`]: an immutable value of up to eight axes in one of four dtypes, with all ops as methods. Operators and methods panic on a
//!   mistake with the full message; each has a twin `try_...` that returns an [`Error`].
//! - [`autograd`]: traces, graphs, contributions, derivatives as functions, custom ops, checkpoints.
//! - [`ops`]: the table of all ops, and the reference page made from it.
//! - [`nn`] and [`optim`]: modules, layers, models and optimizers.
//! - [`rng`]: random numbers with the bits of PyTorch's and of Python's generators.
//! - [`data`] and [`io`]: examples and the files they come from, weights in the safetensors format, checkpoints.
//! - [`train`]: the loop of a training, and its events.
//! - [`check`]: gradients against paths that share no code with the backward pass.
//!
//! The command `chainrule` (crate `chainrule-cli`) trains a first model: `chainrule train names`. The book in the folder `docs` explains
//! all of this at length.

#![deny(missing_docs)]

// The derive macro names the library by its path from outside.
extern crate self as chainrule;

use chainrule_kernels::{self as kernels, dtype, param};

pub mod autograd;
pub mod check;
pub mod data;
mod error;
pub mod io;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod program;
pub mod rng;
mod shape;
mod tensor;
pub mod train;

/// Kernels for the benchmark that writes a training step by hand; no part of the interface.
#[doc(hidden)]
pub mod by_hand {
    pub use crate::kernels::gather::{add_rows_to, take_rows};
    pub use crate::kernels::gemm::{Accum, Batch, Mat, affine_f32, batched_f32};
    pub use crate::kernels::math::tanh_slice;
    pub use crate::kernels::norm::{
        Columns, Upstream, batch_norm_apply, batch_norm_grad, batch_norm_stats, inv_std,
    };
    pub use crate::kernels::optim::update0;
    pub use crate::kernels::reduce::sum;
    pub use crate::kernels::softmax::{cross_entropy_grad_rows, cross_entropy_rows};
}

pub use dtype::{DType, Element};
pub use error::{Error, Result};
pub use kernels::simd::{Level as SimdLevel, level as simd_level};
pub use kernels::threads::{num_threads, set_num_threads};
pub use ops::{
    Attention, AvgPool, Bce, BceWithLogits, Conv, ConvTranspose, CosineEmbedding, CrossEntropy,
    HingeEmbedding, Huber, Index, Indexing, Interpolation, KlDiv, MaxPool, NllLoss, PadMode,
    Padding, Reduction, Slice, SmoothL1,
};
pub use rng::Generator;
pub use shape::{IntoAxes, IntoShape, IntoSizes, MAX_RANK, Shape};
pub use tensor::foreign::{Memory, set_grad_enabled, set_record_all};
pub use tensor::{
    Elements, HookHandle, IntoTensor, Tensor, enable_grad, is_grad_enabled, no_grad, record_all,
};

/// The examples of the README and of the book run as tests.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../README.md")]
    mod readme {}

    macro_rules! pages {
        ($($name:ident $file:literal,)*) => {$(
            #[doc = include_str!(concat!("../../../docs/src/", $file))]
            mod $name {}
        )*};
    }
    pages! {
        introduction "introduction.md",
        getting_started "getting-started.md",
        names_model "names-model.md",
        tensors "tensors.md",
        ops "ops.md",
        adding_an_op "adding-an-op.md",
        autograd "autograd.md",
        open_backward "open-backward.md",
        custom_ops "custom-ops.md",
        checking "checking.md",
        invariants "invariants.md",
        workflow "workflow.md",
        why_wrong "why-wrong.md",
        mistakes "mistakes.md",
        random "random.md",
        modules "modules.md",
        programs "programs.md",
        algebra "algebra.md",
        explain "explain.md",
        files "files.md",
        training "training.md",
        python "python.md",
        speed "speed.md",
        kernel_speed "kernel-speed.md",
        pytorch "pytorch.md",
        glossary "glossary.md",
    }
}
