//! The Llama family (Touvron et al. 2023): RMS norm, rotary positions, SwiGLU, grouped queries.

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_formats::NameMap;
use chainrule_nn::nn::{Layer, Linear, Module, RmsNorm, StateDict};

use crate::attend::{attend, join, split};
use crate::cache::KvCache;
use crate::config::Json;
use crate::decoder::{Decoder, check_tokens};
use crate::parts::{Activation, Taking, TokenTable};
use crate::rope::{RopeScaling, Rotary};

/// Configuration of a [`Llama`], under the names of its `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct LlamaConfig {
    /// Vocabulary size, `vocab_size`.
    pub vocabulary: usize,
    /// Context length, `max_position_embeddings`.
    pub context: usize,
    /// Width of the embedding, `hidden_size`.
    pub width: usize,
    /// The width inside the MLP, `intermediate_size`.
    pub inner: usize,
    /// The number of blocks, `num_hidden_layers`.
    pub layers: usize,
    /// Number of query heads, `num_attention_heads`.
    pub heads: usize,
    /// Number of key and value heads, `num_key_value_heads`; as many as queries by default.
    pub groups: usize,
    /// The width of a head, `head_dim`.
    pub each: usize,
    /// Epsilon of RMS norm, `rms_norm_eps`.
    pub eps: f64,
    /// Base of the rotary positions, `rope_theta`.
    pub rope_base: f64,
    /// Their scaling.
    pub rope_scaling: RopeScaling,
    /// Whether the output layer shares the token embedding, `tie_word_embeddings`.
    pub tied: bool,
    /// Whether there are biases: of queries, keys and values; of the attention's output; of the
    /// MLP.
    biases: [bool; 3],
    activation: Activation,
}

impl LlamaConfig {
    /// The types `llama`, `mistral` and `qwen2` differ in their biases.
    pub(crate) fn read(json: &Json, kind: &str) -> Result<LlamaConfig> {
        let context = json.size("max_position_embeddings")?.unwrap_or(2048);
        let (width, heads) =
            (json.needed_size("hidden_size")?, json.needed_size("num_attention_heads")?);
        let groups = json.size("num_key_value_heads")?.unwrap_or(heads);
        let each = json.size("head_dim")?.unwrap_or(width / heads);
        if !heads.is_multiple_of(groups) || each == 0 || !each.is_multiple_of(2) {
            return Err(json.error(format!(
                "{heads} queries of {each} numbers cannot share {groups} keys; the heads must be a \
                 multiple of the keys, and their width even"
            )));
        }
        let window = json.size("sliding_window")?.filter(|w| *w < context);
        if window.is_some() && json.flag("use_sliding_window", kind == "mistral")? {
            return Err(json.error("attention within a `sliding_window` is not known"));
        }
        let rope = match json.object("rope_parameters")? {
            Some(rope) => Some(rope),
            None => json.object("rope_scaling")?,
        };
        let base = match rope.as_ref().map(|r| r.number("rope_theta")).transpose()?.flatten() {
            Some(base) => base,
            None => json.number("rope_theta")?.unwrap_or(10_000.0),
        };
        let scaling = rope.map_or(Ok(RopeScaling::Default), |r| RopeScaling::read(&r, context))?;
        let attention = json.flag("attention_bias", false)?;
        Ok(LlamaConfig {
            vocabulary: json.needed_size("vocab_size")?,
            context,
            width,
            inner: json.needed_size("intermediate_size")?,
            layers: json.needed_size("num_hidden_layers")?,
            heads,
            groups,
            each,
            eps: json.number("rms_norm_eps")?.unwrap_or(1e-6),
            rope_base: base,
            rope_scaling: scaling,
            tied: json.flag("tie_word_embeddings", false)?,
            biases: [attention || kind == "qwen2", attention, json.flag("mlp_bias", false)?],
            activation: Activation::parse(json.text("hidden_act")?.unwrap_or("silu"))
                .map_err(|why| json.error(why))?,
        })
    }
}

/// A decoder of the Llama family. Parameters have their published names without `model.`.
#[derive(Debug, Module)]
pub struct Llama {
    embed_tokens: TokenTable,
    layers: Vec<LlamaBlock>,
    norm: RmsNorm,
    lm_head: Option<Linear>,
    #[module(skip)]
    rotary: Rotary,
    #[module(skip)]
    config: LlamaConfig,
}

#[derive(Debug, Module)]
struct LlamaBlock {
    input_layernorm: RmsNorm,
    self_attn: LlamaAttention,
    post_attention_layernorm: RmsNorm,
    mlp: LlamaMlp,
}

#[derive(Debug, Module)]
struct LlamaAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
}

#[derive(Debug, Module)]
struct LlamaMlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

/// Maps the names of files to those of [`Llama`]. Older files hold the rotary frequencies, which
/// follow from the configuration.
pub fn names() -> Result<NameMap> {
    NameMap::parse(
        "prefix model.
         drop **.rotary_emb.inv_freq",
    )
}

impl Llama {
    /// The model of a configuration, with weights under their mapped names.
    pub(crate) fn new(config: LlamaConfig, mut state: StateDict) -> Result<Llama> {
        if config.tied {
            state.remove("lm_head.weight");
        }
        let LlamaConfig { vocabulary, width, inner, layers, heads, groups, each, eps, .. } = config;
        let [qkv, out, mlp] = config.biases;
        let mut from = Taking::new(state);
        let embed_tokens = from.table("embed_tokens", vocabulary, width)?;
        let mut block = |i: usize| -> Result<LlamaBlock> {
            let name = |part: &str| format!("layers.{i}.{part}");
            Ok(LlamaBlock {
                input_layernorm: from.rms_norm(&name("input_layernorm"), width, eps)?,
                self_attn: LlamaAttention {
                    q_proj: from.linear(&name("self_attn.q_proj"), [width, heads * each], qkv)?,
                    k_proj: from.linear(&name("self_attn.k_proj"), [width, groups * each], qkv)?,
                    v_proj: from.linear(&name("self_attn.v_proj"), [width, groups * each], qkv)?,
                    o_proj: from.linear(&name("self_attn.o_proj"), [heads * each, width], out)?,
                },
                post_attention_layernorm: from.rms_norm(
                    &name("post_attention_layernorm"),
                    width,
                    eps,
                )?,
                mlp: LlamaMlp {
                    gate_proj: from.linear(&name("mlp.gate_proj"), [width, inner], mlp)?,
                    up_proj: from.linear(&name("mlp.up_proj"), [width, inner], mlp)?,
                    down_proj: from.linear(&name("mlp.down_proj"), [inner, width], mlp)?,
                },
            })
        };
        let blocks = (0..layers).map(&mut block).collect::<Result<Vec<_>>>()?;
        let norm = from.rms_norm("norm", width, eps)?;
        let lm_head = match config.tied {
            true => None,
            false => Some(from.linear("lm_head", [width, vocabulary], false)?),
        };
        from.finish()?;
        let rotary = Rotary::new(each, config.rope_base, config.rope_scaling);
        Ok(Llama { embed_tokens, layers: blocks, norm, lm_head, rotary, config })
    }

    /// Its configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    fn attention(
        &self,
        i: usize,
        x: &Tensor,
        angles: &(Tensor, Tensor),
        cache: Option<&mut KvCache>,
    ) -> Result<Tensor> {
        let at = &self.layers[i].self_attn;
        let x = self.layers[i].input_layernorm.try_forward(x)?;
        let q = Rotary::turn(&split(&at.q_proj.try_forward(&x)?, self.config.heads)?, angles)?;
        let mut k = Rotary::turn(&split(&at.k_proj.try_forward(&x)?, self.config.groups)?, angles)?;
        let mut v = split(&at.v_proj.try_forward(&x)?, self.config.groups)?;
        if let Some(cache) = cache {
            (k, v) = cache.extend(i, k, v)?;
        }
        at.o_proj.try_forward(&join(&attend(&q, &k, &v, None)?)?)
    }

    fn mlp(&self, i: usize, x: &Tensor) -> Result<Tensor> {
        let mlp = &self.layers[i].mlp;
        let x = self.layers[i].post_attention_layernorm.try_forward(x)?;
        let gate = self.config.activation.of(&mlp.gate_proj.try_forward(&x)?)?;
        mlp.down_proj.try_forward(&gate.try_mul(&mlp.up_proj.try_forward(&x)?)?)
    }
}

impl Decoder for Llama {
    fn hidden(&self, tokens: &Tensor, mut cache: Option<&mut KvCache>) -> Result<Tensor> {
        let past = cache.as_ref().map_or(0, |cache| cache.len());
        let time = check_tokens("Llama", tokens, past, self.config.context)?;
        let angles = self.rotary.angles(past, time)?;
        let mut x = self.embed_tokens.weight.try_embedding(tokens)?;
        for i in 0..self.layers.len() {
            x = x.try_add(&self.attention(i, &x, &angles, cache.as_deref_mut())?)?;
            x = x.try_add(&self.mlp(i, &x)?)?;
        }
        if let Some(cache) = cache {
            cache.advance(time);
        }
        self.norm.try_forward(&x)
    }

    fn head(&self, hidden: &Tensor) -> Result<Tensor> {
        match &self.lm_head {
            Some(head) => head.try_forward(hidden),
            None => hidden.try_linear(&self.embed_tokens.weight, None),
        }
    }

    fn vocabulary(&self) -> usize {
        self.config.vocabulary
    }

    fn context(&self) -> usize {
        self.config.context
    }

    fn published(&self) -> Result<StateDict> {
        let back =
            NameMap::new().renaming("lm_head.**", "lm_head.$1")?.renaming("**", "model.$1")?;
        back.apply(self.state_dict())
    }
}
