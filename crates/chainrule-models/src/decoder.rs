//! The common interface of the models.

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::{Module, StateDict};

use crate::cache::KvCache;

/// A model that expects the next token after each position.
pub trait Decoder: Module + Send + Sync {
    /// The vectors behind the last layer, `[batch, time, width]`, of tokens `[batch, time]` that
    /// stand behind those of the cache, which takes the new ones up.
    fn hidden(&self, tokens: &Tensor, cache: Option<&mut KvCache>) -> Result<Tensor>;

    /// Logits `[batch, time, vocabulary]` of what [`Decoder::hidden`] gave.
    fn head(&self, hidden: &Tensor) -> Result<Tensor>;

    /// The number of tokens that the model knows.
    fn vocabulary(&self) -> usize;

    /// Positions that the model has at most.
    fn context(&self) -> usize;

    /// Parameters under the names and in the form in which the model is published.
    fn published(&self) -> Result<StateDict>;

    /// Logits `[batch, time, vocabulary]` of tokens `[batch, time]`.
    fn logits(&self, tokens: &Tensor) -> Result<Tensor> {
        self.head(&self.hidden(tokens, None)?)
    }

    /// The mean loss of expecting each next token of `[batch, time + 1]` tokens, in nats.
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

/// The number of new positions, if the tokens are `[batch, time]` and all positions fit.
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
