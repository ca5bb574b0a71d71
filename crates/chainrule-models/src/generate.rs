//! Text generation, token by token.

use chainrule_core::error::{Error, Result};
use chainrule_core::rng::Generator;
use chainrule_core::tensor::{Tensor, no_grad};

use crate::cache::KvCache;
use crate::decoder::Decoder;

/// Options of generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Limit on new tokens; 50.
    pub length: usize,
    /// Temperature; 0, which is greedy.
    pub temperature: f64,
    /// Top-k: samples from this many of the likeliest tokens; none.
    pub top_k: Option<usize>,
    /// Seed of the samples; 7.
    pub seed: u64,
    /// Whether to cache keys and values instead of recomputing them for every token; on.
    pub cache: bool,
    /// Additional stop tokens, beside those of the model's folder; none.
    pub stops: Vec<i64>,
    /// Whether the model's own end-of-text token stops generation; on.
    pub ends: bool,
}

impl Default for Generation {
    fn default() -> Self {
        Generation {
            length: 50,
            temperature: 0.0,
            top_k: None,
            seed: 7,
            cache: true,
            stops: Vec::new(),
            ends: true,
        }
    }
}

/// Generates the tokens after `prompt`, up to one of `stops`; `each` is called with each of them.
pub fn generate(
    model: &dyn Decoder,
    prompt: &[i64],
    options: &Generation,
    stops: &[i64],
    mut each: impl FnMut(i64) -> Result<()>,
) -> Result<Vec<i64>> {
    check(model, prompt, options)?;
    let mut generator = Generator::manual_seed(options.seed);
    let mut cache = options.cache.then(KvCache::new);
    let mut all = prompt.to_vec();
    for _ in 0..options.length {
        let seen = cache.as_ref().map_or(0, KvCache::len);
        let logits = no_grad(|| last_logits(model, &all[seen..], cache.as_mut()))?;
        let next = draw(&logits, options, &mut generator)?;
        if stops.contains(&next) || options.stops.contains(&next) {
            break;
        }
        each(next)?;
        all.push(next);
    }
    all.drain(..prompt.len());
    Ok(all)
}

fn check(model: &dyn Decoder, prompt: &[i64], options: &Generation) -> Result<()> {
    let error = |why: String| Err(Error::argument("generate", why));
    if prompt.is_empty() {
        return error("the prompt has no token; give a text to begin with".into());
    }
    let known = model.vocabulary();
    if let Some(bad) = prompt.iter().find(|&&t| t < 0 || t as usize >= known) {
        return error(format!("token {bad} is none of the model's, 0 to {}", known - 1));
    }
    if !(options.temperature >= 0.0 && options.temperature.is_finite()) {
        return error(format!("the temperature must be 0 or more, it is {}", options.temperature));
    }
    if options.top_k == Some(0) {
        return error("top_k must be 1 at least, or absent".into());
    }
    // The last new token is never an input.
    let all = prompt.len() + options.length.saturating_sub(1);
    if all > model.context() {
        return error(format!(
            "{} tokens of prompt and {} new ones are more than the model's {} positions; use a \
             shorter prompt or fewer new tokens",
            prompt.len(),
            options.length,
            model.context()
        ));
    }
    Ok(())
}

/// Logits after the last token.
fn last_logits(
    model: &dyn Decoder,
    tokens: &[i64],
    cache: Option<&mut KvCache>,
) -> Result<Vec<f32>> {
    let tokens = Tensor::try_from_slice(tokens, [1, tokens.len()])?;
    let hidden = model.hidden(&tokens, cache)?;
    model.head(&hidden.try_narrow(1, tokens.size(1) - 1, 1)?)?.try_to_vec()
}

fn draw(logits: &[f32], options: &Generation, generator: &mut Generator) -> Result<i64> {
    if let Some(bad) = logits.iter().find(|x| !x.is_finite()) {
        let why = format!("the model expects the next token with {bad}, which is no number");
        return Err(Error::argument("generate", why));
    }
    // The first of equals, as in argmax.
    let best = (1..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
    if options.temperature == 0.0 {
        return Ok(best as i64);
    }
    let least = match options.top_k {
        Some(k) if k < logits.len() => {
            let mut sorted = logits.to_vec();
            *sorted.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
        }
        _ => f32::NEG_INFINITY,
    };
    let highest = f64::from(logits[best]);
    let chance = |&x: &f32| match x < least {
        true => 0.0,
        false => ((f64::from(x) - highest) / options.temperature).exp(),
    };
    let chances: Vec<f64> = logits.iter().map(chance).collect();
    Ok(generator.multinomial(&chances, 1, true)?[0])
}
