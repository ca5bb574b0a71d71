//! Weights before the first step.

use chainrule_core::rng::Generator;
use chainrule_core::tensor::Tensor;

use crate::description::Init;
use crate::error::Result;

/// Weights of this shape.
pub(super) fn make(
    shape: &[usize],
    inputs: usize,
    outputs: usize,
    init: Init,
    draw: &mut Generator,
) -> Result<Tensor> {
    let mut numbers = vec![0.0f32; shape.iter().product()];
    let (inputs, both) = (inputs as f64, (inputs + outputs) as f64);
    let mut uniform = |numbers: &mut [f32], bound: f64| {
        draw.fill_uniform_f32(numbers);
        numbers.iter_mut().for_each(|x| *x = (*x * 2.0 - 1.0) * bound as f32);
    };
    match init {
        Init::GlorotUniform => uniform(&mut numbers, (6.0 / both).sqrt()),
        Init::HeUniform => uniform(&mut numbers, (6.0 / inputs).sqrt()),
        Init::Uniform { bound } => uniform(&mut numbers, bound),
        Init::Constant(value) => numbers.fill(value as f32),
        Init::GlorotNormal | Init::HeNormal | Init::Normal { .. } => {
            let (mean, std) = match init {
                Init::GlorotNormal => (0.0, (2.0 / both).sqrt()),
                Init::HeNormal => (0.0, (2.0 / inputs).sqrt()),
                Init::Normal { mean, std } => (mean, std),
                _ => unreachable!("the others are not normal"),
            };
            draw.fill_normal_f32(&mut numbers);
            numbers.iter_mut().for_each(|x| *x = *x * std as f32 + mean as f32);
        }
    }
    Tensor::try_from_slice(&numbers, shape)
}
