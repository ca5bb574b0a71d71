//! Rotary position embedding: pairs of elements rotated by angles proportional to the position.

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;

use crate::config::Json;

/// Scaling of the frequencies, for contexts longer than in pretraining.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// None.
    Default,
    /// All frequencies are divided by the factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3's: wavelengths above the original context divided by the low factor are scaled,
    /// those below it divided by the high factor are kept, and those between are interpolated.
    Llama3 {
        /// Divisor for long wavelengths.
        factor: f64,
        /// Low factor: the original context divided by the longest wavelength that is interpolated.
        low_factor: f64,
        /// High factor: the original context divided by the shortest wavelength that is
        /// interpolated.
        high_factor: f64,
        /// Original context length.
        first_context: f64,
    },
}

impl RopeScaling {
    /// From `rope_parameters` or `rope_scaling` of a configuration.
    pub(crate) fn read(json: &Json, context: usize) -> Result<RopeScaling> {
        let kind = match json.text("rope_type")? {
            Some(kind) => kind,
            None => json.text("type")?.unwrap_or("default"),
        };
        let needed = |key: &str| {
            let none = || json.error(format!("the rotary positions of type {kind} need `{key}`"));
            json.number(key)?.ok_or_else(none)
        };
        Ok(match kind {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear { factor: needed("factor")? },
            "llama3" => {
                let (low_factor, high_factor) =
                    (needed("low_freq_factor")?, needed("high_freq_factor")?);
                if low_factor >= high_factor {
                    return Err(json.error("`low_freq_factor` must be below `high_freq_factor`"));
                }
                RopeScaling::Llama3 {
                    factor: needed("factor")?,
                    low_factor,
                    high_factor,
                    first_context: json
                        .number("original_max_position_embeddings")?
                        .unwrap_or(context as f64),
                }
            }
            other => {
                return Err(json.error(format!(
                    "rotary positions of type `{other}` are not known; there are default, linear \
                     and llama3"
                )));
            }
        })
    }
}

/// Rotary position embedding (Su et al. 2021): pair `i` of `width / 2` at position `t` is rotated
/// by `t / base^(2 i / width)`, after scaling. Elements `i` and `i + width / 2` form a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    /// Frequencies, in f32 as in training of the models.
    frequencies: Vec<f32>,
}

impl Rotary {
    /// For vectors of `width` numbers.
    pub fn new(width: usize, base: f64, scaling: RopeScaling) -> Rotary {
        let plain = (0..width / 2).map(|i| 1.0 / (base as f32).powf((2 * i) as f32 / width as f32));
        Rotary { frequencies: plain.map(|f| scaled(f, scaling)).collect() }
    }

    /// Cosines and sines of the positions from `first` on, `[count, width / 2]` each.
    pub fn angles(&self, first: usize, count: usize) -> Result<(Tensor, Tensor)> {
        let mut parts = [Vec::new(), Vec::new()];
        for t in first..first + count {
            for f in &self.frequencies {
                let angle = t as f32 * f;
                parts[0].push(angle.cos());
                parts[1].push(angle.sin());
            }
        }
        let shape = [count, self.frequencies.len()];
        let [cos, sin] = parts.map(|part| Tensor::try_from_slice(&part, shape));
        Ok((cos?, sin?))
    }

    /// Rotates the pairs of `[.., time, width]`.
    pub(crate) fn turn(x: &Tensor, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor> {
        let half = x.size(-1) / 2;
        let (a, b) = (x.try_narrow(-1, 0, half)?, x.try_narrow(-1, half, half)?);
        let first = a.try_mul(cos)?.try_sub(&b.try_mul(sin)?)?;
        let second = b.try_mul(cos)?.try_add(&a.try_mul(sin)?)?;
        Tensor::try_cat(&[&first, &second], -1)
    }
}

fn scaled(f: f32, scaling: RopeScaling) -> f32 {
    match scaling {
        RopeScaling::Default => f,
        RopeScaling::Linear { factor } => f / factor as f32,
        RopeScaling::Llama3 { factor, low_factor, high_factor, first_context } => {
            let wave = 2.0 * std::f64::consts::PI / f64::from(f);
            let (low, high) = (first_context / low_factor, first_context / high_factor);
            if wave < high {
                f
            } else if wave > low {
                f / factor as f32
            } else {
                let share = (first_context / wave - low_factor) / (high_factor - low_factor);
                let f = f64::from(f);
                ((1.0 - share) * f / factor + share * f) as f32
            }
        }
    }
}
