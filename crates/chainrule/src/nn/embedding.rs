//! The table of vectors, one for each symbol.

use super::init::normal;
use super::{Layer, Module};
use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// A vector for each of `symbols` symbols: indices of any shape `[...]` give `[..., width]`. Starts standard normal.
///
/// ```
/// use chainrule::nn::{Embedding, Layer};
/// use chainrule::{Generator, Tensor};
/// let table = Embedding::new(27, 10, &mut Generator::manual_seed(0));
/// assert_eq!(table.forward(&Tensor::from([[1i64, 2, 2]])).shape(), [1, 3, 10]);
/// ```
#[derive(Debug, Module)]
pub struct Embedding {
    /// The vectors, `[symbols, width]`.
    pub weight: Tensor,
}

impl Embedding {
    /// A table of `symbols` vectors of `width` numbers, f32.
    #[track_caller]
    pub fn new(symbols: usize, width: usize, generator: &mut Generator) -> Embedding {
        match Embedding::try_new(symbols, width, generator) {
            Ok(layer) => layer,
            Err(e) => raise(e),
        }
    }

    /// Like [`Embedding::new`], but returns the error.
    pub fn try_new(symbols: usize, width: usize, generator: &mut Generator) -> Result<Embedding> {
        if symbols == 0 || width == 0 {
            let why =
                format!("needs at least one symbol and a width of one, got {symbols} and {width}");
            return Err(Error::argument("Embedding", why));
        }
        Ok(Embedding { weight: normal([symbols, width], 0.0, 1.0, generator)?.try_parameter()? })
    }
}

impl Layer for Embedding {
    fn compute(&self, indices: &Tensor) -> Result<Tensor> {
        self.weight.try_embedding(indices)
    }
}
