//! Initialisation of parameters, as in PyTorch.
//!
//! `fan_in` is the number of inputs of one unit and `fan_out` the number of units that one input
//! reaches; for a weight `[out, in]` they are `in` and `out`.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::shape::{IntoShape, Shape};
use crate::tensor::Tensor;

/// The gain of a nonlinearity, which makes up for its shrinking of the variance: PyTorch's
/// `calculate_gain`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// 1, for linear layers and the sigmoid.
    Linear,
    /// 5/3.
    Tanh,
    /// The square root of 2.
    Relu,
    /// sqrt(2 / (1 + slope^2)).
    LeakyRelu(f64),
}

impl Gain {
    /// The factor.
    pub fn value(self) -> f64 {
        match self {
            Gain::Linear => 1.0,
            Gain::Tanh => 5.0 / 3.0,
            Gain::Relu => 2f64.sqrt(),
            Gain::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        }
    }
}

/// Normal samples with this mean and standard deviation, f32.
pub fn normal(
    shape: impl IntoShape,
    mean: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<Tensor> {
    let x = Tensor::try_randn(shape, DType::F32, generator)?;
    x.try_mul(std)?.try_add(mean)
}

/// Uniform samples between `low` and `high`, f32.
pub fn uniform(
    shape: impl IntoShape,
    low: f64,
    high: f64,
    generator: &mut Generator,
) -> Result<Tensor> {
    let x = Tensor::try_rand(shape, DType::F32, generator)?;
    x.try_mul(high - low)?.try_add(low)
}

/// Fan-in and fan-out of a weight `[out, in, ...]`: further axes (of a kernel) multiply both.
pub fn fans(shape: &Shape) -> Result<(usize, usize)> {
    if shape.rank() < 2 {
        let why = "fan-in and fan-out need a weight of two axes at least, [out, in]";
        return Err(Error::shape("init", &[shape], why));
    }
    let field: usize = shape[2..].iter().product();
    Ok((shape[1] * field, shape[0] * field))
}

/// Kaiming (He) normal: standard deviation `gain / sqrt(fan_in)`. He et al. 2015.
pub fn kaiming_normal(
    shape: impl IntoShape,
    gain: Gain,
    generator: &mut Generator,
) -> Result<Tensor> {
    let shape = shape.into_shape("kaiming_normal")?;
    let (fan_in, _) = fans(&shape)?;
    normal(shape, 0.0, gain.value() / (fan_in as f64).sqrt(), generator)
}

/// Kaiming (He) uniform: bounds `± gain * sqrt(3 / fan_in)`.
pub fn kaiming_uniform(
    shape: impl IntoShape,
    gain: Gain,
    generator: &mut Generator,
) -> Result<Tensor> {
    let shape = shape.into_shape("kaiming_uniform")?;
    let (fan_in, _) = fans(&shape)?;
    let bound = gain.value() * (3.0 / fan_in as f64).sqrt();
    uniform(shape, -bound, bound, generator)
}

/// Xavier (Glorot) normal: standard deviation `gain * sqrt(2 / (fan_in + fan_out))`. Glorot and
/// Bengio 2010.
pub fn xavier_normal(
    shape: impl IntoShape,
    gain: Gain,
    generator: &mut Generator,
) -> Result<Tensor> {
    let shape = shape.into_shape("xavier_normal")?;
    let (fan_in, fan_out) = fans(&shape)?;
    normal(shape, 0.0, gain.value() * (2.0 / (fan_in + fan_out) as f64).sqrt(), generator)
}

/// Xavier (Glorot) uniform: bounds `± gain * sqrt(6 / (fan_in + fan_out))`.
pub fn xavier_uniform(
    shape: impl IntoShape,
    gain: Gain,
    generator: &mut Generator,
) -> Result<Tensor> {
    let shape = shape.into_shape("xavier_uniform")?;
    let (fan_in, fan_out) = fans(&shape)?;
    let bound = gain.value() * (6.0 / (fan_in + fan_out) as f64).sqrt();
    uniform(shape, -bound, bound, generator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_as_the_formulas_say() {
        let g = &mut Generator::manual_seed(3);
        let spread = |t: &Tensor| {
            let v = t.to_f64_vec();
            let mean = v.iter().sum::<f64>() / v.len() as f64;
            (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64).sqrt()
        };
        // 200,000 samples: the relative error of a standard deviation is about 1/sqrt(400,000),
        // 0.16%.
        let cases = [
            (kaiming_normal([400, 500], Gain::Tanh, g), 5.0 / 3.0 / 500f64.sqrt()),
            (kaiming_uniform([400, 500], Gain::Relu, g), (2.0f64 / 500.0).sqrt()),
            (xavier_normal([400, 500], Gain::Linear, g), (2.0f64 / 900.0).sqrt()),
            (xavier_uniform([400, 500], Gain::Linear, g), (2.0f64 / 900.0).sqrt()),
        ];
        for (t, expected) in cases {
            assert!((spread(&t.unwrap()) / expected - 1.0).abs() < 0.01);
        }
        assert!(kaiming_normal([5], Gain::Linear, g).is_err());
    }
}
