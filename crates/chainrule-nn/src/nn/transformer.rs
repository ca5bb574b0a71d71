//! Multi-head attention, positional embedding, and the transformer block.

use super::{Dropout, GeluTanh, Layer, LayerNorm, Linear, Module};
use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::ops::{Attention, Slice};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Multi-head causal self-attention (Vaswani et al. 2017): each position attends to itself and
/// those before.
///
/// `x` is `[batch, time, width]`. One product gives queries, keys and values; each head has `width
/// / heads` of their columns.
#[derive(Debug, Module)]
pub struct CausalSelfAttention {
    /// Queries, keys and values: `width` to `3 * width`.
    pub qkv: Linear,
    /// Output projection: `width` to `width`.
    pub out: Linear,
    dropout: Dropout,
    heads: usize,
}

/// Options of a [`TransformerBlock`] and of its [`CausalSelfAttention`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransformerOptions {
    /// Dropout probability, on attention weights and on both residual branches; 0.
    pub dropout: f64,
}

impl CausalSelfAttention {
    /// Attention of `heads` heads at this width, without dropout.
    #[track_caller]
    pub fn new(width: usize, heads: usize, generator: &mut Generator) -> Self {
        Self::try_new(width, heads, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`CausalSelfAttention::new`], but returns the error: if the heads do not divide the
    /// width.
    pub fn try_new(width: usize, heads: usize, generator: &mut Generator) -> Result<Self> {
        Self::try_with_options(width, heads, TransformerOptions::default(), generator)
    }

    /// As [`CausalSelfAttention::new`], with options.
    #[track_caller]
    pub fn with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        generator: &mut Generator,
    ) -> Self {
        Self::try_with_options(width, heads, options, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`CausalSelfAttention::with_options`], but returns the error: if the heads do not divide
    /// the width, or for a dropout outside 0 to 1.
    pub fn try_with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        generator: &mut Generator,
    ) -> Result<Self> {
        if heads == 0 || !width.is_multiple_of(heads) {
            let why = format!("a width of {width} cannot be split among {heads} heads");
            return Err(Error::argument("CausalSelfAttention", why));
        }
        let qkv = Linear::try_new(width, 3 * width, generator)?;
        let out = Linear::try_new(width, width, generator)?;
        let dropout = Dropout::try_new(options.dropout, generator)?;
        Ok(CausalSelfAttention { qkv, out, dropout, heads })
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

/// Learned positional embedding, added to the input: `[batch, time, width]` for times up to
/// `length`.
#[derive(Debug, Module)]
pub struct PositionalEmbedding {
    /// The embeddings, `[length, width]`.
    pub weight: Tensor,
}

impl PositionalEmbedding {
    /// Embeddings for `length` positions, initialised standard normal.
    #[track_caller]
    pub fn new(length: usize, width: usize, generator: &mut Generator) -> Self {
        Self::try_new(length, width, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`PositionalEmbedding::new`], but returns the error: for sizes of 0.
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

/// One block of a GPT: `x += attention(norm(x))`, then `x += mlp(norm(x))`, with the MLP four times
/// as wide and GELU (tanh form) in it.
///
/// ```
/// use chainrule::nn::{Layer, TransformerBlock};
/// use chainrule::{Generator, Tensor};
/// let block = TransformerBlock::new(32, 4, &mut Generator::manual_seed(0));
/// assert_eq!(block.forward(&Tensor::zeros([2, 5, 32])).shape(), [2, 5, 32]);
/// ```
#[derive(Debug, Module)]
pub struct TransformerBlock {
    /// Before attention.
    pub norm1: LayerNorm,
    /// Attention.
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
    /// A block of this width with this many heads, without dropout.
    #[track_caller]
    pub fn new(width: usize, heads: usize, generator: &mut Generator) -> Self {
        TransformerBlock::try_new(width, heads, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`TransformerBlock::new`], but returns the error: if the heads do not divide the width.
    pub fn try_new(width: usize, heads: usize, generator: &mut Generator) -> Result<Self> {
        Self::try_with_options(width, heads, TransformerOptions::default(), generator)
    }

    /// As [`TransformerBlock::new`], with options.
    #[track_caller]
    pub fn with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        generator: &mut Generator,
    ) -> Self {
        Self::try_with_options(width, heads, options, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`TransformerBlock::with_options`], but returns the error, as
    /// [`CausalSelfAttention::try_with_options`] does.
    pub fn try_with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        generator: &mut Generator,
    ) -> Result<Self> {
        Ok(TransformerBlock {
            norm1: LayerNorm::try_new(width)?,
            attention: CausalSelfAttention::try_with_options(width, heads, options, generator)?,
            norm2: LayerNorm::try_new(width)?,
            expand: Linear::try_new(width, 4 * width, generator)?,
            gelu: GeluTanh,
            project: Linear::try_new(4 * width, width, generator)?,
            dropout: Dropout::try_new(options.dropout, generator)?,
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
