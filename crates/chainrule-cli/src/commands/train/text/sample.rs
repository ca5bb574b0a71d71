//! Writing: one symbol after the other, each drawn by what the model expects.

use chainrule::nn::Layer;
use chainrule::{Error, Generator, Result, Tensor, no_grad};
use chainrule_lab::models::Gpt;

/// Options of drawing symbols.
#[derive(Clone, Copy)]
pub struct How {
    /// Above 1 bolder, below 1 more careful, 0 always the likeliest.
    pub temperature: f64,
    /// Only among this many of the likeliest.
    pub top_k: Option<usize>,
}

/// Up to `length` symbols that follow `start`; ends at the symbol `end`, if there is one.
pub fn generate(
    gpt: &Gpt,
    start: &[i64],
    length: usize,
    how: How,
    end: Option<i64>,
    generator: &mut Generator,
) -> Result<Vec<i64>> {
    let context = gpt.config().context;
    let mut all = start.to_vec();
    for _ in 0..length {
        let seen = &all[all.len().saturating_sub(context)..];
        let logits = no_grad(|| gpt.try_forward(&Tensor::try_from_slice(seen, [1, seen.len()])?))?;
        let logits = logits.try_to_vec::<f32>()?;
        let next = draw(&logits[logits.len() - gpt.config().symbols..], how, generator)?;
        if end == Some(next) {
            break;
        }
        all.push(next);
    }
    all.drain(..start.len());
    Ok(all)
}

fn draw(logits: &[f32], how: How, generator: &mut Generator) -> Result<i64> {
    if let Some(bad) = logits.iter().find(|x| !x.is_finite()) {
        let why = format!(
            "the model expects the next symbol with {bad}, which is not a number; train again with a smaller --lr"
        );
        return Err(Error::argument("sample", why));
    }
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    if how.temperature == 0.0 {
        return Ok(order[0] as i64);
    }
    order.truncate(how.top_k.unwrap_or(usize::MAX).max(1));
    let highest = f64::from(logits[order[0]]);
    let mut chances = vec![0.0f64; logits.len()];
    for &i in &order {
        chances[i] = ((f64::from(logits[i]) - highest) / how.temperature).exp();
    }
    Ok(generator.multinomial(&chances, 1, true)?[0])
}
