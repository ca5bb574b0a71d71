//! Nonlinearities as layers, for [`Sequential`](super::Sequential).

use super::{Layer, Module};
use crate::error::Result;
use crate::tensor::Tensor;

/// [`Tensor::tanh`] as a layer.
#[derive(Debug, Default, Module)]
pub struct Tanh;

impl Layer for Tanh {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_tanh()
    }
}

/// [`Tensor::relu`] as a layer.
#[derive(Debug, Default, Module)]
pub struct Relu;

impl Layer for Relu {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_relu()
    }
}
