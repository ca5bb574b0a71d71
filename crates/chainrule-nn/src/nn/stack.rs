//! Many layers of one type, with recomputation to save memory.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{AsField, Field, Layer, Module};
use crate::autograd::checkpoint;
use crate::error::Result;
use crate::rng::GeneratorState;
use crate::tensor::{Tensor, is_grad_enabled};

/// A sequence of layers of one type, named `0`, `1`, ... Derefs to a slice.
///
/// The tape of a deep stack is large. After [`Stack::recompute_every`] it saves only the input of
/// every `n`th layer, and the backward pass recomputes the rest: with `n` about the square root of
/// the depth, memory grows with that root, for about a third more time. The gradients are bitwise
/// equal, with dropout too, if the mode does not change between the passes.
///
/// ```
/// use chainrule::nn::{Layer, Linear, Module, Stack};
/// use chainrule::{Generator, Tensor};
/// let g = &mut Generator::manual_seed(0);
/// let mut stack: Stack<Linear> = (0..9).map(|_| Linear::new(4, 4, g)).collect();
/// stack.recompute_every(3);
/// stack.forward(&Tensor::ones([2, 4])).sum_all().backward();
/// assert!(stack[0].weight.grad().is_some());
/// assert_eq!((stack.len(), stack.named_parameters()[2].0.as_str()), (9, "1.weight"));
/// ```
#[derive(Debug)]
pub struct Stack<L: Layer> {
    layers: Arc<Vec<L>>,
    every: usize,
}

impl<L: Layer> Stack<L> {
    /// Saves only the input of every `n`th layer; 0, the default, saves everything that backward
    /// needs.
    pub fn recompute_every(&mut self, n: usize) {
        self.every = n;
    }
}

impl<L: Layer> FromIterator<L> for Stack<L> {
    fn from_iter<I: IntoIterator<Item = L>>(layers: I) -> Self {
        Stack { layers: Arc::new(layers.into_iter().collect()), every: 0 }
    }
}

impl<L: Layer> Deref for Stack<L> {
    type Target = [L];

    fn deref(&self) -> &[L] {
        &self.layers
    }
}

impl<L: Layer> Module for Stack<L> {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        match self.layers.as_field() {
            Some(Field::List(list)) => list,
            _ => Vec::new(),
        }
    }
}

impl<L: Layer + Send + Sync + 'static> Layer for Stack<L> {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        if self.every == 0 || !is_grad_enabled() {
            return through(&self.layers, x);
        }
        let mut x = x.clone();
        for start in (0..self.len()).step_by(self.every) {
            let end = (start + self.every).min(self.len());
            let part = Part::new(&self.layers, start..end);
            x = checkpoint(move |inputs| part.run(&inputs[0]), &[&x])?;
        }
        Ok(x)
    }
}

fn through<L: Layer>(layers: &[L], x: &Tensor) -> Result<Tensor> {
    layers.iter().try_fold(x.clone(), |x, layer| layer.try_forward(&x))
}

/// A segment of layers that draws the same random numbers each time it runs.
struct Part<L> {
    layers: Arc<Vec<L>>,
    range: Range<usize>,
    before: Vec<BTreeMap<String, GeneratorState>>,
    again: AtomicBool,
}

impl<L: Layer> Part<L> {
    fn new(layers: &Arc<Vec<L>>, range: Range<usize>) -> Part<L> {
        let before = layers[range.clone()].iter().map(Module::generator_states).collect();
        Part { layers: Arc::clone(layers), range, before, again: AtomicBool::new(false) }
    }

    fn run(&self, x: &Tensor) -> Result<Tensor> {
        let layers = &self.layers[self.range.clone()];
        let is_again = self.again.swap(true, Ordering::Relaxed);
        if !is_again || self.before.iter().all(BTreeMap::is_empty) {
            return through(layers, x);
        }
        let now: Vec<_> = layers.iter().map(Module::generator_states).collect();
        let set = |states: &[BTreeMap<String, GeneratorState>]| {
            layers.iter().zip(states).try_for_each(|(layer, s)| layer.set_generator_states(s))
        };
        set(&self.before)?;
        let y = through(layers, x);
        set(&now)?;
        y
    }
}
