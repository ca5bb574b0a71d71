//! The interface of all models.

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::{Module, StateDict};

use crate::cache::KvCache;

/// A model that predicts the next token at each position.
pub trait Decoder: Module + Send + Sync {
    /// Hidden states after the last layer, `[batch, time, width]`, of tokens `[batch, time]` that
    /// follow those in the cache, to which they are added.
    fn hidden(&self, tokens: &Tensor, cache: Option<&mut KvCache>) -> Result<Tensor>;

    /// Logits `[batch, time, vocabulary]` of [`Decoder::hidden`]'s output.
    fn head(&self, hidden: &Tensor) -> Result<Tensor>;

    /// Vocabulary size.
    fn vocabulary(&self) -> usize;

    /// Context length.
    fn context(&self) -> usize;

    /// Parameters with the names and layout of the published model.
    fn published(&self) -> Result<StateDict>;

    /// Logits `[batch, time, vocabulary]` of tokens `[batch, time]`.
    fn logits(&self, tokens: &Tensor) -> Result<Tensor> {
        self.head(&self.hidden(tokens, None)?)
    }

    /// Mean cross-entropy of each next token of `[batch, time + 1]` tokens, in nats.
    fn loss(&self, tokens: &Tensor) -> Result<Tensor> {
        let shape = tokens.shape();
        if shape.rank() != 2 || shape[1] < 2 {
            let why = "the tokens must be [batch, time + 1] with at least two in a row";
            return Err(Error::shape("loss", &[&shape], why));
        }
        let time = shape[1] - 1;
        let logits = self.logits(&tokens.try_narrow(1, 0, time)?)?;
        let rows = logits.try_reshape([shape[0] * time, self.vocabulary()])?;
        rows.try_cross_entropy(&tokens.try_narrow(1, 1, time)?.try_reshape(shape[0] * time)?)
    }
}

/// Number of new positions, if the tokens are `[batch, time]` and all positions fit.
pub fn check_tokens(
    name: &'static str,
    tokens: &Tensor,
    past: usize,
    context: usize,
) -> Result<usize> {
    let shape = tokens.shape();
    if shape.rank() != 2 || shape[1] == 0 || tokens.dtype() != DType::I64 {
        let why = "the tokens must be i64, [batch, time] with at least one in a row";
        return Err(Error::shape(name, &[&shape], why));
    }
    let all = past + shape[1];
    if all > context {
        let why = format!("{all} tokens are more than the {context} positions of the model");
        return Err(Error::argument(name, why));
    }
    Ok(shape[1])
}
