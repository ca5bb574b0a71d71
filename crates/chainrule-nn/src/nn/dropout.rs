//! Dropout with its own generator.

use std::sync::{Mutex, PoisonError};

use super::{Field, Layer, Module, Training};
use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// In training, zeroes each element with probability `p` and divides the others by `1 - p`; the
/// identity in evaluation.
///
/// The layer has its own generator, seeded from the one that it is constructed with, so that runs
/// are reproducible.
///
/// ```
/// use chainrule::nn::{Dropout, Layer, Module};
/// use chainrule::{Generator, Tensor};
/// let layer = Dropout::new(0.5, &mut Generator::manual_seed(0));
/// let y = layer.forward(&Tensor::ones([1000])).to_vec::<f32>();
/// assert!(y.iter().all(|&x| x == 0.0 || x == 2.0));
/// layer.eval();
/// assert_eq!(layer.forward(&Tensor::ones([3])).to_vec::<f32>(), [1.0; 3]);
/// ```
#[derive(Debug)]
pub struct Dropout {
    p: f64,
    generator: Mutex<Generator>,
    training: Training,
}

impl Dropout {
    /// Dropout with probability `p`, 0 to 1.
    #[track_caller]
    pub fn new(p: f64, generator: &mut Generator) -> Dropout {
        Dropout::try_new(p, generator).unwrap_or_else(|e| raise(e))
    }

    /// Like [`Dropout::new`], but returns the error.
    pub fn try_new(p: f64, generator: &mut Generator) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            let why = format!("the probability must lie between 0 and 1; it is {p}");
            return Err(Error::argument("Dropout", why));
        }
        let generator = Mutex::new(Generator::manual_seed(generator.random_u64()));
        Ok(Dropout { p, generator, training: Training::default() })
    }

    /// The current probability: 0 in evaluation.
    pub fn rate(&self) -> f64 {
        if self.training.is_on() { self.p } else { 0.0 }
    }

    /// Calls `f` with the layer's generator.
    pub(super) fn draw<R>(&self, f: impl FnOnce(&mut Generator) -> R) -> R {
        f(&mut self.generator.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Module for Dropout {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        vec![
            ("training".to_string(), Field::Training(&self.training)),
            ("generator".to_string(), Field::Random(&self.generator)),
        ]
    }
}

impl Layer for Dropout {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        if self.rate() == 0.0 {
            return Ok(x.clone());
        }
        self.draw(|g| x.try_dropout(self.p, true, g))
    }
}
