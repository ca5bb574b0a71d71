//! Layers and modules.
//!
//! A [`Module`] names its parameters and buffers; a [`Layer`] is a module that maps a tensor to a
//! tensor. A new layer is a file here with a struct, `#[derive(Module)]`, a constructor that takes
//! the [`Generator`](crate::Generator) for its initial values, and `Layer`.

mod activation;
mod batch_norm;
mod containers;
mod conv;
mod dropout;
mod embedding;
pub mod explicit;
pub mod init;
mod layer;
mod linear;
mod module;
mod norm;
mod rnn;
mod scopes;
mod sequential;
mod stack;
mod summary;
mod transformer;

pub use activation::{
    Celu, Elu, Gelu, GeluTanh, Hardsigmoid, Hardswish, Hardtanh, LeakyRelu, LogSigmoid, LogSoftmax,
    Mish, Relu, Relu6, Selu, Sigmoid, Silu, Softmax, Softplus, Softsign, Tanh,
};
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNormOptions};
pub use chainrule_derive::Module;
pub use containers::{Flatten, FlattenConsecutive, ModuleList, Residual};
pub use conv::{
    AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, Conv1d, Conv2d, ConvOptions, MaxPool1d, MaxPool2d,
};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use layer::{Layer, LayerOutput, watched};
pub use linear::{Linear, LinearOptions};
#[doc(hidden)]
pub use module::buffer_field;
pub use module::{AsField, Field, Module, StateDict, Training};
pub use norm::{GroupNorm, LayerNorm, LayerNormOptions, RmsNorm};
pub use rnn::{Cell, Gru, GruCell, Lstm, Recurrent, RecurrentOptions, Rnn, RnnCell, Unrolled};
#[doc(hidden)]
pub use scopes::LayerNames;
pub use scopes::with_scopes;
pub use sequential::Sequential;
pub use stack::Stack;
pub use summary::{Summary, SummaryRow, summary};
pub use transformer::{
    CausalSelfAttention, PositionalEmbedding, TransformerBlock, TransformerOptions,
};
