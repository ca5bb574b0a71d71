//! Tensors, automatic differentiation and training, with a backward pass that is open.
//!
//! `loss.backward()` is a black box in most libraries: it works until it does not, and then it
//! cannot say why. Here every gradient of every intermediate can be seen, followed to the line that
//! made it, and checked by a second, independent path.
//!
//! ```
//! use chainrule::Tensor;
//!
//! let a = Tensor::scalar(2.0f64).parameter().named("a");
//! let b = Tensor::scalar(-3.0f64).parameter().named("b");
//! let loss = (&a * &b + &a).tanh().named("loss");
//!
//! // the backward pass, step by step: what came in, the rule, what went out
//! println!("{}", loss.trace());
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
//! # Modules
//!
//! - [`Tensor`]: an immutable value of up to eight axes in one of four dtypes, with all ops as
//!   methods. Operators and methods panic on a mistake with the full message; each has a twin
//!   `try_...` that returns an [`Error`].
//! - [`autograd`]: traces, graphs, contributions, derivatives as functions, custom ops,
//!   checkpoints.
//! - [`ops`]: the table of all ops.
//! - [`nn`] and [`optim`]: modules, layers and optimizers; models are in the crate `chainrule-lab`.
//! - [`rng`]: random numbers with the bits of PyTorch's and of Python's generators.
//! - [`data`] and [`io`]: examples and the files they come from, weights in the safetensors format,
//!   checkpoints.
//! - [`train`]: the loop of a training, and its events.
//! - [`monitor`]: statistics of a training over time, and what goes wrong in it.
//! - [`check`]: gradients against paths that share no code with the backward pass.
//! - [`json`]: traces, graphs, contributions, verdicts and programs for other programs to read.
//! - `diagnose`, a feature: why a training does not learn, proved by short runs.
//! - `formats`, a feature: weights that other programs wrote.
//! - `models`, a feature: language models that others published, GPT-2 and Llama.
//!
//! The command `chainrule` (crate `chainrule-cli`) trains a first model: `chainrule train names`.
//! The book in the folder `docs` explains all of this at length.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod json;

pub use chainrule_core::{autograd, memory, ops, rng};
pub use chainrule_nn::{data, io, nn, optim};

#[cfg(feature = "check")]
pub use chainrule_check as check;
/// Causes of a training that does not learn, proved by short runs with one thing changed.
#[cfg(feature = "diagnose")]
pub mod diagnose {
    pub use chainrule_diagnose::{
        Cause, Change, Course, Effort, Proof, Reason, Suspicion, Trainable, before, mixes_examples,
        prove, sees_the_future,
    };
}
#[cfg(feature = "formats")]
pub use chainrule_formats as formats;
#[cfg(feature = "gpu")]
pub use chainrule_gpu as gpu;
#[cfg(feature = "models")]
pub use chainrule_models as models;
#[cfg(feature = "monitor")]
pub use chainrule_monitor as monitor;
#[cfg(feature = "onnx")]
pub use chainrule_onnx as onnx;
#[cfg(feature = "program")]
pub use chainrule_program as program;
#[cfg(feature = "train")]
pub use chainrule_train as train;
#[cfg(feature = "train")]
pub use chainrule_train::exchange;

pub use chainrule_core::dtype::{DType, Element};
pub use chainrule_core::error::{Error, Result};
pub use chainrule_core::kernels::simd::{Level as SimdLevel, level as simd_level};
pub use chainrule_core::kernels::threads::{num_threads, set_num_threads};
pub use chainrule_core::ops::{
    Attention, AvgPool, Bce, BceWithLogits, Conv, ConvTranspose, CosineEmbedding, CrossEntropy,
    HingeEmbedding, Huber, Index, Indexing, Interpolation, KlDiv, MaxPool, NllLoss, PadMode,
    Padding, Reduction, Slice, SmoothL1,
};
pub use chainrule_core::rng::Generator;
pub use chainrule_core::shape::{IntoAxes, IntoShape, IntoSizes, MAX_RANK, Shape};
#[doc(hidden)]
pub use chainrule_core::tensor::foreign::{Lent, check_lent, set_check_nan};
pub use chainrule_core::tensor::foreign::{Memory, set_grad_enabled, set_record_all};
pub use chainrule_core::tensor::{
    Elements, HookHandle, IntoTensor, Tensor, autocast, autocast_dtype, enable_grad,
    is_grad_enabled, no_grad, record_all, try_autocast,
};
pub use chainrule_core::{ix, s};

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
        extending "extending.md",
        public_surface "public-surface.md",
        public_names "public-names.md",
        autograd "autograd.md",
        open_backward "open-backward.md",
        custom_ops "custom-ops.md",
        checking "checking.md",
        invariants "invariants.md",
        workflow "workflow.md",
        why_wrong "why-wrong.md",
        diagnosis "diagnosis.md",
        monitor "monitor.md",
        mistakes "mistakes.md",
        random "random.md",
        modules "modules.md",
        programs "programs.md",
        algebra "algebra.md",
        explain "explain.md",
        studio "studio.md",
        json_page "json.md",
        files "files.md",
        onnx_page "onnx.md",
        gpu_page "gpu.md",
        from_pytorch "from-pytorch.md",
        ranks_cost "ranks-cost.md",
        ranks_page "ranks.md",
        weights "weights.md",
        language_models "language-models.md",
        training "training.md",
        python "python.md",
        speed "speed.md",
        kernel_speed "kernel-speed.md",
        pytorch "pytorch.md",
        glossary "glossary.md",
    }
}
