//! The fully connected network for pictures of digits.

use crate::error::{Result, raise};
use crate::nn::{Layer, Linear, Module, Relu, Sequential};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// 784 pixels, hidden layers with ReLU, 10 logits.
///
/// ```
/// use chainrule_lab::models::DigitsMlp;
/// use chainrule::nn::{Layer, Module};
/// use chainrule::{Generator, Tensor};
/// let model = DigitsMlp::try_new(&[64, 32], &mut Generator::manual_seed(0))?;
/// assert_eq!(model.parameter_count(), 785 * 64 + 65 * 32 + 33 * 10);
/// assert_eq!(model.forward(&Tensor::zeros([5, 784])).shape(), [5, 10]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Module)]
pub struct DigitsMlp {
    /// Linear layers with ReLU between them.
    pub layers: Sequential,
}

impl DigitsMlp {
    /// The number of pixels.
    pub const PIXELS: usize = 784;
    /// The number of digits.
    pub const DIGITS: usize = 10;

    /// The widths of the hidden layers of the published recipe.
    pub const HIDDEN: [usize; 3] = [1024; 3];

    /// A model with hidden layers of these widths and PyTorch's starting values.
    #[track_caller]
    pub fn new(hidden: &[usize], generator: &mut Generator) -> DigitsMlp {
        DigitsMlp::try_new(hidden, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`DigitsMlp::new`], but returns the error: for a width of 0.
    pub fn try_new(hidden: &[usize], generator: &mut Generator) -> Result<DigitsMlp> {
        let (mut layers, mut inputs) = (Sequential::new(), Self::PIXELS);
        for &width in hidden {
            layers = layers.with(Linear::try_new(inputs, width, generator)?).with(Relu);
            inputs = width;
        }
        let last = Linear::try_new(inputs, Self::DIGITS, generator)?;
        Ok(DigitsMlp { layers: layers.with(last) })
    }
}

impl Layer for DigitsMlp {
    fn compute(&self, pictures: &Tensor) -> Result<Tensor> {
        self.layers.try_forward(pictures)
    }
}
