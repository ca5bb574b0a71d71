//! A sequence of layers.

use super::{AsField, Field, Layer, Module};
use crate::error::Result;
use crate::tensor::Tensor;

/// A sequence of layers, named `0`, `1`, ...
///
/// ```
/// use chainrule::nn::{Layer, Linear, Module, Sequential, Tanh};
/// use chainrule::{Generator, Tensor};
/// let g = &mut Generator::manual_seed(0);
/// let net = Sequential::new().with(Linear::new(2, 8, g)).with(Tanh).with(Linear::new(8, 1, g));
/// assert_eq!(net.forward(&Tensor::zeros([5, 2])).shape(), [5, 1]);
/// assert_eq!(net.named_parameters()[2].0, "2.weight");
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// No layers: the identity.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer.
    pub fn with(mut self, layer: impl Layer + 'static) -> Sequential {
        self.layers.push(Box::new(layer));
        self
    }

    /// The layers in order.
    pub fn layers(&self) -> &[Box<dyn Layer>] {
        &self.layers
    }
}

impl Module for Sequential {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        match self.layers.as_field() {
            Some(Field::List(list)) => list,
            _ => Vec::new(),
        }
    }
}

impl Layer for Sequential {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.try_forward(&x))
    }
}
