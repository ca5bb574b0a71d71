//! GPT-2 (Radford et al. 2019), in the layout of OpenAI and `transformers`.

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_formats::NameMap;
use chainrule_nn::nn::{Layer, LayerNorm, Linear, Module, PositionalEmbedding, StateDict};

use crate::attend::{attend, join, split};
use crate::cache::KvCache;
use crate::config::Json;
use crate::decoder::{Decoder, check_tokens};
use crate::parts::{Activation, Taking, TokenTable};

/// Configuration of a [`Gpt2`], under the names of its `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpt2Config {
    /// Vocabulary size, `vocab_size`.
    pub vocabulary: usize,
    /// Context length, `n_positions`.
    pub context: usize,
    /// Width of the embedding, `n_embd`.
    pub width: usize,
    /// The number of blocks, `n_layer`.
    pub layers: usize,
    /// The number of heads, `n_head`.
    pub heads: usize,
    /// The width inside the MLP, `n_inner`; four times the width by default.
    pub inner: usize,
    /// Epsilon of layer norm, `layer_norm_epsilon`.
    pub eps: f64,
    /// Whether the output layer shares the token embedding, `tie_word_embeddings`.
    pub tied: bool,
    activation: Activation,
    scaled: bool,
    scaled_by_layer: bool,
}

impl Gpt2Config {
    pub(crate) fn read(json: &Json) -> Result<Gpt2Config> {
        if json.flag("add_cross_attention", false)? {
            return Err(
                json.error("a model with cross attention reads a second text; that is not known")
            );
        }
        let context = match json.size("n_positions")? {
            Some(n) => n,
            None => json.needed_size("n_ctx")?,
        };
        let width = json.needed_size("n_embd")?;
        let heads = json.needed_size("n_head")?;
        if !width.is_multiple_of(heads) {
            return Err(json.error(format!("{heads} heads cannot share a width of {width}")));
        }
        let activation = json.text("activation_function")?.unwrap_or("gelu_new");
        Ok(Gpt2Config {
            vocabulary: json.needed_size("vocab_size")?,
            context,
            width,
            layers: json.needed_size("n_layer")?,
            heads,
            inner: json.size("n_inner")?.unwrap_or(4 * width),
            eps: json.number("layer_norm_epsilon")?.unwrap_or(1e-5),
            tied: json.flag("tie_word_embeddings", true)?,
            activation: Activation::parse(activation).map_err(|why| json.error(why))?,
            scaled: json.flag("scale_attn_weights", true)?,
            scaled_by_layer: json.flag("scale_attn_by_inverse_layer_idx", false)?,
        })
    }

    /// Scale of the scores in a layer.
    fn scale(&self, layer: usize) -> f64 {
        let root = if self.scaled { ((self.width / self.heads) as f64).sqrt() } else { 1.0 };
        let depth = if self.scaled_by_layer { (layer + 1) as f64 } else { 1.0 };
        1.0 / (root * depth)
    }
}

/// GPT-2: token and position embeddings, blocks of causal attention and an MLP, layer norm, logits.
/// Parameters have their published names without `transformer.`; matrices are `[out, in]` here, as
/// in [`Linear`], and `[in, out]` in the files.
#[derive(Debug, Module)]
pub struct Gpt2 {
    wte: TokenTable,
    wpe: PositionalEmbedding,
    h: Vec<Gpt2Block>,
    ln_f: LayerNorm,
    lm_head: Option<Linear>,
    #[module(skip)]
    config: Gpt2Config,
}

#[derive(Debug, Module)]
struct Gpt2Block {
    ln_1: LayerNorm,
    attn: Gpt2Attention,
    ln_2: LayerNorm,
    mlp: Gpt2Mlp,
}

#[derive(Debug, Module)]
struct Gpt2Attention {
    c_attn: Linear,
    c_proj: Linear,
}

#[derive(Debug, Module)]
struct Gpt2Mlp {
    c_fc: Linear,
    c_proj: Linear,
}

/// Maps the names of files to those of [`Gpt2`]. Attention buffers in the files hold the causal
/// mask, which isn't needed.
pub fn names() -> Result<NameMap> {
    NameMap::parse(
        "prefix transformer.
         drop h.*.attn.bias
         drop h.*.attn.masked_bias
         h.*.attn.c_*.weight -> h.$1.attn.c_$2.weight transposed
         h.*.mlp.c_*.weight -> h.$1.mlp.c_$2.weight transposed",
    )
}

impl Gpt2 {
    /// The model of a configuration, with weights under their mapped names.
    pub(crate) fn new(config: Gpt2Config, mut state: StateDict) -> Result<Gpt2> {
        if config.tied {
            // Some files repeat the table.
            state.remove("lm_head.weight");
        }
        let Gpt2Config { vocabulary, context, width, layers, inner, eps, .. } = config;
        let mut from = Taking::new(state);
        let wte = from.table("wte", vocabulary, width)?;
        let wpe = PositionalEmbedding { weight: from.take("wpe.weight", &[context, width])? };
        let mut block = |i: usize| -> Result<Gpt2Block> {
            let name = |part: &str| format!("h.{i}.{part}");
            Ok(Gpt2Block {
                ln_1: from.layer_norm(&name("ln_1"), width, eps)?,
                attn: Gpt2Attention {
                    c_attn: from.linear(&name("attn.c_attn"), [width, 3 * width], true)?,
                    c_proj: from.linear(&name("attn.c_proj"), [width, width], true)?,
                },
                ln_2: from.layer_norm(&name("ln_2"), width, eps)?,
                mlp: Gpt2Mlp {
                    c_fc: from.linear(&name("mlp.c_fc"), [width, inner], true)?,
                    c_proj: from.linear(&name("mlp.c_proj"), [inner, width], true)?,
                },
            })
        };
        let h = (0..layers).map(&mut block).collect::<Result<Vec<_>>>()?;
        let ln_f = from.layer_norm("ln_f", width, eps)?;
        let lm_head = match config.tied {
            true => None,
            false => Some(from.linear("lm_head", [width, vocabulary], false)?),
        };
        from.finish()?;
        Ok(Gpt2 { wte, wpe, h, ln_f, lm_head, config })
    }

    /// Its configuration.
    pub fn config(&self) -> &Gpt2Config {
        &self.config
    }

    fn attention(&self, i: usize, x: &Tensor, cache: Option<&mut KvCache>) -> Result<Tensor> {
        let block = &self.h[i];
        let width = self.config.width;
        let qkv = block.attn.c_attn.try_forward(&block.ln_1.try_forward(x)?)?;
        let part = |at: usize| split(&qkv.try_narrow(2, at * width, width)?, self.config.heads);
        let (q, mut k, mut v) = (part(0)?, part(1)?, part(2)?);
        if let Some(cache) = cache {
            (k, v) = cache.extend(i, k, v)?;
        }
        let y = attend(&q, &k, &v, Some(self.config.scale(i)))?;
        block.attn.c_proj.try_forward(&join(&y)?)
    }
}

impl Decoder for Gpt2 {
    fn hidden(&self, tokens: &Tensor, mut cache: Option<&mut KvCache>) -> Result<Tensor> {
        let past = cache.as_ref().map_or(0, |cache| cache.len());
        let time = check_tokens("Gpt2", tokens, past, self.config.context)?;
        let positions = self.wpe.weight.try_narrow(0, past, time)?;
        let mut x = self.wte.weight.try_embedding(tokens)?.try_add(&positions)?;
        for (i, block) in self.h.iter().enumerate() {
            x = x.try_add(&self.attention(i, &x, cache.as_deref_mut())?)?;
            let wide = block.mlp.c_fc.try_forward(&block.ln_2.try_forward(&x)?)?;
            x = x.try_add(&block.mlp.c_proj.try_forward(&self.config.activation.of(&wide)?)?)?;
        }
        if let Some(cache) = cache {
            cache.advance(time);
        }
        self.ln_f.try_forward(&x)
    }

    fn head(&self, hidden: &Tensor) -> Result<Tensor> {
        match &self.lm_head {
            Some(head) => head.try_forward(hidden),
            None => hidden.try_linear(&self.wte.weight, None),
        }
    }

    fn vocabulary(&self) -> usize {
        self.config.vocabulary
    }

    fn context(&self) -> usize {
        self.config.context
    }

    fn published(&self) -> Result<StateDict> {
        let back = NameMap::new()
            .transposing("h.*.attn.c_*.weight", "transformer.h.$1.attn.c_$2.weight")?
            .transposing("h.*.mlp.c_*.weight", "transformer.h.$1.mlp.c_$2.weight")?
            .renaming("lm_head.**", "lm_head.$1")?
            .renaming("**", "transformer.$1")?;
        back.apply(self.state_dict())
    }
}
