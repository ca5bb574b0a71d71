//! The convolutional network for pictures of digits.

use crate::error::{Result, raise};
use crate::nn::{Conv2d, Layer, Linear, MaxPool2d, Module, Relu, Sequential};
use crate::ops::Conv;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Two convolutions of 5 by 5 with ReLU and max-pooling, then 128 hidden units and 10 logits: LeCun
/// et al. 1998, with more channels.
///
/// Takes pictures as rows of 784 numbers, as [`DigitsMlp`](super::DigitsMlp) does.
///
/// ```
/// use chainrule_lab::models::DigitsCnn;
/// use chainrule::nn::{Layer, Module};
/// use chainrule::{Generator, Tensor};
/// let model = DigitsCnn::try_new(&mut Generator::manual_seed(0))?;
/// assert_eq!(model.parameter_count(), 25 * 16 + 16 + 25 * 16 * 32 + 32 + 801 * 128 + 129 * 10);
/// assert_eq!(model.forward(&Tensor::zeros([5, 784])).shape(), [5, 10]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Module)]
pub struct DigitsCnn {
    /// Convolutions, ReLU and pooling.
    pub features: Sequential,
    /// The fully connected layers.
    pub classifier: Sequential,
}

impl DigitsCnn {
    /// A model with PyTorch's starting values.
    #[track_caller]
    pub fn new(generator: &mut Generator) -> DigitsCnn {
        DigitsCnn::try_new(generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`DigitsCnn::new`], but returns the error: where memory does not suffice.
    pub fn try_new(generator: &mut Generator) -> Result<DigitsCnn> {
        let g = generator;
        let same = Conv { padding: [2, 2].into(), ..Conv::default() };
        let features = Sequential::new()
            .with(Conv2d::try_with_options(1, 16, [5, 5], same, g)?)
            .with(Relu)
            .with(MaxPool2d::new([2, 2]))
            .with(Conv2d::try_new(16, 32, [5, 5], g)?)
            .with(Relu)
            .with(MaxPool2d::new([2, 2]));
        let classifier = Sequential::new()
            .with(Linear::try_new(800, 128, g)?)
            .with(Relu)
            .with(Linear::try_new(128, 10, g)?);
        Ok(DigitsCnn { features, classifier })
    }
}

impl Layer for DigitsCnn {
    fn compute(&self, pictures: &Tensor) -> Result<Tensor> {
        let pictures = pictures.try_reshape([-1, 1, 28, 28])?;
        let features = self.features.try_forward(&pictures)?;
        self.classifier.try_forward(&features.try_flatten(1, -1)?)
    }
}
