//! Containers of layers, and layers that only reshape.

use std::ops::Deref;

use super::{AsField, Field, Layer, Module};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Residual connection `y = x + f(x)` (He et al. 2016).
///
/// ```
/// use chainrule::nn::{Layer, Residual, Tanh};
/// use chainrule::Tensor;
/// let y = Residual::new(Tanh).forward(&Tensor::from([0.0f32]));
/// assert_eq!(y.item(), 0.0);
/// ```
#[derive(Debug, Module)]
pub struct Residual<L: Layer> {
    /// The branch, whose result is added.
    pub layer: L,
}

impl<L: Layer> Residual<L> {
    /// A residual connection around `layer`, whose result must have the shape of its input.
    pub fn new(layer: L) -> Residual<L> {
        Residual { layer }
    }
}

impl<L: Layer> Layer for Residual<L> {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.layer.try_forward(x)?;
        if y.shape() != x.shape() {
            let why = "the layer must give the shape that it takes, since the two are added";
            return Err(Error::shape("Residual", &[&x.shape(), &y.shape()], why));
        }
        x.try_add(&y)
    }
}

/// A list of modules, named `0`, `1`, ..., without a forward of its own. Derefs to a slice.
///
/// ```
/// use chainrule::nn::{Layer, Linear, LinearOptions, Module, ModuleList};
/// use chainrule::{Generator, Tensor};
/// let g = &mut Generator::manual_seed(0);
/// let no_bias = LinearOptions::default().no_bias();
/// let layers: ModuleList<Linear> =
///     (0..3).map(|_| Linear::with_options(4, 4, no_bias, g)).collect();
/// let x = layers.iter().fold(Tensor::ones([1, 4]), |x, layer| layer.forward(&x).tanh());
/// assert_eq!((x.shape().to_vec(), layers.len(), layers.parameter_count()), (vec![1, 4], 3, 48));
/// assert_eq!(layers.named_parameters()[1].0, "1.weight");
/// ```
#[derive(Debug)]
pub struct ModuleList<M: Module> {
    modules: Vec<M>,
}

impl<M: Module> ModuleList<M> {
    /// An empty list.
    pub fn new() -> ModuleList<M> {
        ModuleList { modules: Vec::new() }
    }

    /// Adds a module at the end.
    pub fn push(&mut self, module: M) {
        self.modules.push(module);
    }
}

impl<M: Module> Default for ModuleList<M> {
    fn default() -> Self {
        ModuleList::new()
    }
}

impl<M: Module> FromIterator<M> for ModuleList<M> {
    fn from_iter<I: IntoIterator<Item = M>>(modules: I) -> Self {
        ModuleList { modules: modules.into_iter().collect() }
    }
}

impl<M: Module> Deref for ModuleList<M> {
    type Target = [M];

    fn deref(&self) -> &[M] {
        &self.modules
    }
}

impl<M: Module> Module for ModuleList<M> {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        match self.modules.as_field() {
            Some(Field::List(list)) => list,
            _ => Vec::new(),
        }
    }
}

/// Flattens axes 1 and up: `[n, a, b, ...]` becomes `[n, a * b * ...]`.
///
/// ```
/// use chainrule::nn::{Flatten, Layer};
/// assert_eq!(Flatten.forward(&chainrule::Tensor::zeros([2, 3, 4])).shape(), [2, 12]);
/// ```
#[derive(Debug, Default, Module)]
pub struct Flatten;

impl Layer for Flatten {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        match x.rank() {
            0 => Err(Error::shape("Flatten", &[&x.shape()], "the input needs an axis of examples")),
            1 => x.try_unsqueeze(1),
            _ => x.try_flatten(1, -1),
        }
    }
}

/// Concatenates every `n` consecutive time steps: `[b, t, c]` becomes `[b, t / n, n * c]`, and `[b,
/// n * c]` where one is left.
///
/// Merges time steps between the layers of a WaveNet-like model.
///
/// ```
/// use chainrule::nn::{FlattenConsecutive, Layer};
/// use chainrule::Tensor;
/// assert_eq!(FlattenConsecutive::new(2).forward(&Tensor::zeros([4, 8, 10])).shape(), [4, 4, 20]);
/// assert_eq!(FlattenConsecutive::new(8).forward(&Tensor::zeros([4, 8, 10])).shape(), [4, 80]);
/// ```
#[derive(Debug, Module)]
pub struct FlattenConsecutive {
    n: usize,
}

impl FlattenConsecutive {
    /// Merges `n` consecutive steps.
    pub fn new(n: usize) -> FlattenConsecutive {
        FlattenConsecutive { n }
    }
}

impl Layer for FlattenConsecutive {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        let &[b, t, c] = &*shape else {
            let why = "the input must be [batch, time, channels]";
            return Err(Error::shape("FlattenConsecutive", &[&shape], why));
        };
        if self.n == 0 || t % self.n != 0 {
            let why = format!("{t} steps cannot be taken {} at a time; choose a divisor", self.n);
            return Err(Error::shape("FlattenConsecutive", &[&shape], why));
        }
        match t / self.n {
            1 => x.try_reshape([b, t * c]),
            steps => x.try_reshape([b, steps, self.n * c]),
        }
    }
}
