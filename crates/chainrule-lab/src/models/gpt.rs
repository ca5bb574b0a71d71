//! The generative pre-trained transformer, small enough to train here.

use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::nn::{
    Dropout, Embedding, Layer, LayerNorm, Linear, LinearOptions, Module, PositionalEmbedding,
    Stack, TransformerBlock, TransformerOptions,
};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The sizes of a [`Gpt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GptConfig {
    /// The number of symbols.
    pub symbols: usize,
    /// Symbols that the model sees at most.
    pub context: usize,
    /// The number of blocks.
    pub layers: usize,
    /// The number of heads; it divides the width.
    pub heads: usize,
    /// The width of a symbol's vector.
    pub width: usize,
    /// The share of numbers that training drops.
    pub dropout: f64,
}

/// Predicts the next symbol at each position (Radford et al. 2019): symbols and positions as
/// vectors, blocks of attention and MLP, layer norm, logits.
///
/// `[batch, time]` symbols give `[batch, time, symbols]` logits. Weights start as GPT-2's: normal
/// with standard deviation 0.02, those that write to the residual stream divided by sqrt(2 *
/// layers); biases at 0.
///
/// ```
/// use chainrule::nn::{Layer, Module};
/// use chainrule::{Generator, Tensor};
/// use chainrule_lab::models::{Gpt, GptConfig};
/// let config =
///     GptConfig { symbols: 27, context: 16, layers: 4, heads: 4, width: 64, dropout: 0.0 };
/// let model = Gpt::new(config, &mut Generator::manual_seed(0));
/// assert_eq!(model.parameter_count(), 204544);
/// assert_eq!(model.forward(&Tensor::from([[0i64, 5, 13]])).shape(), [1, 3, 27]);
/// ```
#[derive(Debug, Module)]
pub struct Gpt {
    /// A vector for each symbol.
    pub symbols: Embedding,
    /// A vector for each position.
    pub positions: PositionalEmbedding,
    dropout: Dropout,
    /// The blocks.
    pub blocks: Stack<TransformerBlock>,
    /// Before the logits.
    pub norm: LayerNorm,
    /// From vectors to logits, without a bias.
    pub head: Linear,
    #[module(skip)]
    config: GptConfig,
}

impl Gpt {
    /// A model with random weights.
    #[track_caller]
    pub fn new(config: GptConfig, generator: &mut Generator) -> Gpt {
        Gpt::try_new(config, generator).unwrap_or_else(|e| raise(e))
    }

    /// Like [`Gpt::new`], but returns the error.
    pub fn try_new(config: GptConfig, generator: &mut Generator) -> Result<Gpt> {
        let model = Gpt::with_layer_starts(config, generator)?;
        model.start(generator)?;
        Ok(model)
    }

    /// A model whose layers start as each does by itself, and not as GPT-2: vectors from the
    /// standard normal distribution, the other weights uniform. A small model may learn faster from
    /// there.
    pub fn with_layer_starts(config: GptConfig, generator: &mut Generator) -> Result<Gpt> {
        let GptConfig { symbols, context, layers, heads, width, dropout } = config;
        if [symbols, context, layers, heads, width].contains(&0) {
            return Err(Error::argument(
                "Gpt",
                format!("every size must be 1 at least, got {config:?}"),
            ));
        }
        let blocks: Result<Stack<_>> = (0..layers)
            .map(|_| {
                TransformerBlock::try_with_options(
                    width,
                    heads,
                    TransformerOptions { dropout },
                    generator,
                )
            })
            .collect();
        Ok(Gpt {
            symbols: Embedding::try_new(symbols, width, generator)?,
            positions: PositionalEmbedding::try_new(context, width, generator)?,
            dropout: Dropout::try_new(dropout, generator)?,
            blocks: blocks?,
            norm: LayerNorm::try_new(width)?,
            head: Linear::try_with_options(
                width,
                symbols,
                LinearOptions::default().no_bias(),
                generator,
            )?,
            config,
        })
    }

    /// The sizes.
    pub fn config(&self) -> GptConfig {
        self.config
    }

    /// Keeps the input of every `n`th block alone for the backward pass, which computes the rest
    /// again: less memory, more time, the same bits. 0, as at first, keeps all. See [`Stack`].
    pub fn recompute_every(&mut self, n: usize) {
        self.blocks.recompute_every(n);
    }

    /// Gives the weights their starting values.
    fn start(&self, generator: &mut Generator) -> Result<()> {
        let residual = 1.0 / (2.0 * self.config.layers as f64).sqrt();
        for (name, p) in self.named_parameters() {
            if name.ends_with("bias") {
                p.try_set(&p.detach().zeros_like())?;
            } else if !name.contains("norm") {
                let writes = name.ends_with("out.weight") || name.ends_with("project.weight");
                let std = 0.02 * if writes { residual } else { 1.0 };
                p.try_set(&Tensor::try_randn(p.shape(), DType::F32, generator)?.try_mul(std)?)?;
            }
        }
        Ok(())
    }
}

impl Layer for Gpt {
    fn compute(&self, symbols: &Tensor) -> Result<Tensor> {
        let shape = symbols.shape();
        if shape.rank() != 2 || shape[1] > self.config.context {
            let why = format!(
                "the input must be [batch, time] with at most {} steps",
                self.config.context
            );
            return Err(Error::shape("Gpt", &[&shape], why));
        }
        let x = self.positions.try_forward(&self.symbols.try_forward(symbols)?)?;
        let x = self.dropout.try_forward(&x)?;
        let x = self.blocks.try_forward(&x)?;
        self.head.try_forward(&self.norm.try_forward(&x)?)
    }
}
