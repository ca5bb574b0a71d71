//! The embedding table.

use super::init::normal;
use super::{Layer, Module};
use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// An embedding for each of `symbols` symbols: indices of any shape `[...]` give `[..., width]`.
/// Initialised standard normal.
///
/// ```
/// use chainrule::nn::{Embedding, Layer};
/// use chainrule::{Generator, Tensor};
/// let table = Embedding::new(27, 10, &mut Generator::manual_seed(0));
/// assert_eq!(table.forward(&Tensor::from([[1i64, 2, 2]])).shape(), [1, 3, 10]);
/// ```
#[derive(Debug, Module)]
pub struct Embedding {
    /// The embeddings, `[symbols, width]`.
    pub weight: Tensor,
    /// Padding symbol: its embedding starts at 0 and gets no gradient.
    #[module(skip)]
    padding: Option<usize>,
}

impl Embedding {
    /// A table of `symbols` embeddings of `width` elements, f32.
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
        let weight = normal([symbols, width], 0.0, 1.0, generator)?.try_parameter()?;
        Ok(Embedding { weight, padding: None })
    }

    /// With a padding symbol, as at the end of short sentences. An error for a symbol that is not
    /// in the table.
    ///
    /// ```
    /// use chainrule::nn::{Embedding, Layer};
    /// use chainrule::{Generator, Tensor};
    /// let table = Embedding::new(5, 2, &mut Generator::manual_seed(0)).with_padding(0)?;
    /// table.forward(&Tensor::from([0i64, 3])).sum_all().backward();
    /// assert_eq!(table.weight.grad().unwrap().narrow(0, 0, 1).to_vec::<f32>(), [0.0, 0.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn with_padding(mut self, padding: usize) -> Result<Embedding> {
        let symbols = self.weight.size(0);
        if padding >= symbols {
            let why =
                format!("the padding {padding} is no symbol; they run from 0 to {}", symbols - 1);
            return Err(Error::argument("Embedding", why));
        }
        let keep: Vec<bool> = (0..symbols).map(|i| i != padding).collect();
        let keep = Tensor::from(keep).try_unsqueeze(1)?;
        self.weight.try_set(&keep.try_where(&self.weight.detach(), 0)?)?;
        self.padding = Some(padding);
        Ok(self)
    }
}

impl Layer for Embedding {
    fn compute(&self, indices: &Tensor) -> Result<Tensor> {
        if let Some(padding) = self.padding {
            return self.weight.try_embedding_padded(indices, padding);
        }
        self.weight.try_embedding(indices)
    }
}
