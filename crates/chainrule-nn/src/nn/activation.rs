//! Activation functions as layers, for [`Sequential`](super::Sequential).

use super::{Layer, Module};
use crate::error::Result;
use crate::tensor::Tensor;

/// Layers without options; each calls the method of the tensor.
macro_rules! activations {
    ($($name:ident $method:ident $doc:literal $(within $low:literal to $high:literal)?,)*) => {$(
        #[doc = concat!("[`Tensor::", $doc, "`] as a layer.")]
        #[derive(Debug, Default, Module)]
        pub struct $name;

        impl Layer for $name {
            fn compute(&self, x: &Tensor) -> Result<Tensor> {
                x.$method()
            }

            $(fn bounds(&self) -> Option<(f64, f64)> {
                Some(($low, $high))
            })?
        }
    )*};
}
activations! {
    Tanh try_tanh "tanh" within -1.0 to 1.0,
    Relu try_relu "relu",
    Relu6 try_relu6 "relu6",
    Sigmoid try_sigmoid "sigmoid" within 0.0 to 1.0,
    LogSigmoid try_log_sigmoid "log_sigmoid",
    Selu try_selu "selu",
    Silu try_silu "silu",
    Mish try_mish "mish",
    Hardsigmoid try_hardsigmoid "hardsigmoid" within 0.0 to 1.0,
    Hardswish try_hardswish "hardswish",
    Softsign try_softsign "softsign" within -1.0 to 1.0,
    Gelu try_gelu "gelu",
    GeluTanh try_gelu_tanh "gelu_tanh",
}

/// Layers with options, which have PyTorch's defaults.
macro_rules! settable {
    ($($name:ident($($field:ident: $ty:ty = $default:literal $what:literal),*) $method:ident $doc:literal,)*) => {$(
        #[doc = concat!("[`Tensor::", $doc, "`] as a layer; the defaults are PyTorch's.")]
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            $(#[doc = $what] pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default),* }
            }
        }

        impl Layer for $name {
            fn compute(&self, x: &Tensor) -> Result<Tensor> {
                x.$method($(self.$field),*)
            }
        }
    )*};
}
settable! {
    LeakyRelu(slope: f64 = 0.01 "The slope below 0.") try_leaky_relu "leaky_relu",
    Elu(alpha: f64 = 1.0 "Limit far below 0, with the other sign.") try_elu "elu",
    Celu(alpha: f64 = 1.0 "Limit far below 0, with the other sign.") try_celu "celu",
    Hardtanh(min: f64 = -1.0 "The smallest value.", max: f64 = 1.0 "The largest value.") try_hardtanh "hardtanh",
    Softplus(beta: f64 = 1.0 "How sharp the bend is.", threshold: f64 = 20.0 "Above this size of beta x it is x.") try_softplus "softplus",
    Softmax(axis: i64 = -1 "The axis whose elements sum to 1.") try_softmax "softmax",
    LogSoftmax(axis: i64 = -1 "The axis whose exponentials sum to 1.") try_log_softmax "log_softmax",
}
