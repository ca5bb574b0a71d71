//! What a transformer is made of: attention of several heads, positions, and the block.

use super::{Dropout, GeluTanh, Layer, LayerNorm, Linear, Module};
use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::ops::{Attention, Slice};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Causal self-attention with several heads (Vaswani et al. 2017): each position takes from itself and those before.
///
/// `x` is `[batch, time, width]`. Queries, keys and values come from one product; each head works on `width / heads` of their numbers.
#[derive(Debug, Module)]
pub struct CausalSelfAttention {
    /// Queries, keys and values: `width` to `3 * width`.
    pub qkv: Linear,
    /// What the heads give, mixed: `width` to `width`.
    pub out: Linear,
    dropout: Dropout,
    heads: usize,
}

impl CausalSelfAttention {
    /// Errors if the heads do not divide the width, or for a `dropout` outside 0 to 1.
    pub fn try_new(
        width: usize,
        heads: usize,
        dropout: f64,
        generator: &mut Generator,
    ) -> Result<Self> {
        if heads == 0 || !width.is_multiple_of(heads) {
            let why = format!("a width of {width} cannot be split among {heads} heads");
            return Err(Error::argument("CausalSelfAttention", why));
        }
        let qkv = Linear::try_new(width, 3 * width, true, generator)?;
        let out = Linear::try_new(width, width, true, generator)?;
        Ok(CausalSelfAttention { qkv, out, dropout: Dropout::try_new(dropout, generator)?, heads })
    }
}

impl Layer for CausalSelfAttention {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        let &[batch, time, width] = &*shape else {
            let why = "the input must be [batch, time, width]";
            return Err(Error::shape("CausalSelfAttention", &[&shape], why));
        };
        let each = width / self.heads;
        // [batch, time, 3, heads, each] seen as [batch, heads, time, each], three times.
        let qkv = self.qkv.try_forward(x)?.try_reshape([batch, time, 3, self.heads, each])?;
        let all = Slice::from(..);
        let part = |i: i64| qkv.try_slice(&[all, all, Slice::At(i)])?.try_transpose(1, 2);
        let mut options = Attention::causal();
        if self.dropout.rate() > 0.0 {
            options = self.dropout.draw(|g| options.with_dropout(self.dropout.rate(), g));
        }
        let y = part(0)?.try_attention(&part(1)?, &part(2)?, &options)?;
        self.out.try_forward(&y.try_transpose(1, 2)?.try_reshape([batch, time, width])?)
    }
}

/// A vector for each position, added to what stands there: `[batch, time, width]` for times up to `length`.
#[derive(Debug, Module)]
pub struct PositionalEmbedding {
    /// The vectors, `[length, width]`.
    pub weight: Tensor,
}

impl PositionalEmbedding {
    /// Vectors for `length` positions, from the standard normal distribution.
    pub fn try_new(length: usize, width: usize, generator: &mut Generator) -> Result<Self> {
        if length == 0 || width == 0 {
            let why =
                format!("needs at least one position and a width of one, got {length} and {width}");
            return Err(Error::argument("PositionalEmbedding", why));
        }
        let weight = Tensor::try_randn([length, width], DType::F32, generator)?;
        Ok(PositionalEmbedding { weight: weight.try_parameter()? })
    }
}

impl Layer for PositionalEmbedding {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        let length = self.weight.size(0);
        if shape.rank() < 2 || shape[shape.rank() - 2] > length {
            let why =
                format!("the input must be [.., time, width] with at most {length} positions");
            return Err(Error::shape("PositionalEmbedding", &[&shape], why));
        }
        x.try_add(&self.weight.try_narrow(0, 0, shape[shape.rank() - 2])?)
    }
}

/// One block of a GPT: `x += attention(norm(x))`, then `x += mlp(norm(x))`, with the MLP four times as wide and GELU (tanh form) in it.
///
/// ```
/// use chainrule::nn::{Layer, TransformerBlock};
/// use chainrule::{Generator, Tensor};
/// let block = TransformerBlock::new(32, 4, 0.0, &mut Generator::manual_seed(0));
/// assert_eq!(block.forward(&Tensor::zeros([2, 5, 32])).shape(), [2, 5, 32]);
/// ```
#[derive(Debug, Module)]
pub struct TransformerBlock {
    /// Before attention.
    pub norm1: LayerNorm,
    /// Where positions take from each other.
    pub attention: CausalSelfAttention,
    /// Before the MLP.
    pub norm2: LayerNorm,
    /// To four times the width.
    pub expand: Linear,
    gelu: GeluTanh,
    /// Back to the width.
    pub project: Linear,
    dropout: Dropout,
}

impl TransformerBlock {
    /// A block of this width with this many heads; `dropout` acts on attention weights and on what the two branches give.
    #[track_caller]
    pub fn new(width: usize, heads: usize, dropout: f64, generator: &mut Generator) -> Self {
        TransformerBlock::try_new(width, heads, dropout, generator).unwrap_or_else(|e| raise(e))
    }

    /// Like [`TransformerBlock::new`], but returns the error.
    pub fn try_new(
        width: usize,
        heads: usize,
        dropout: f64,
        generator: &mut Generator,
    ) -> Result<Self> {
        Ok(TransformerBlock {
            norm1: LayerNorm::try_new(width, true, 1e-5)?,
            attention: CausalSelfAttention::try_new(width, heads, dropout, generator)?,
            norm2: LayerNorm::try_new(width, true, 1e-5)?,
            expand: Linear::try_new(width, 4 * width, true, generator)?,
            gelu: GeluTanh,
            project: Linear::try_new(4 * width, width, true, generator)?,
            dropout: Dropout::try_new(dropout, generator)?,
        })
    }
}

impl Layer for TransformerBlock {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let taken = self.attention.try_forward(&self.norm1.try_forward(x)?)?;
        let x = x.try_add(&self.dropout.try_forward(&taken)?)?;
        let wide =
            self.gelu.try_forward(&self.expand.try_forward(&self.norm2.try_forward(&x)?)?)?;
        x.try_add(&self.dropout.try_forward(&self.project.try_forward(&wide)?)?)
    }
}
