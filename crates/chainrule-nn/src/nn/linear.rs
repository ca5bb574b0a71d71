//! The fully connected layer.

use super::init::{Gain, kaiming_uniform, uniform};
use super::{Layer, Module};
use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// `y = x W^T + b` with a weight `[out, in]`, as in PyTorch.
///
/// `x` is `[..., in]`, `y` is `[..., out]`. Both parameters are initialised uniform within `± 1 /
/// sqrt(in)`.
///
/// ```
/// use chainrule::nn::{Layer, Linear};
/// use chainrule::{Generator, Tensor};
/// let layer = Linear::new(3, 2, &mut Generator::manual_seed(0));
/// assert_eq!(layer.forward(&Tensor::zeros([4, 3])).shape(), [4, 2]);
/// ```
#[derive(Debug, Module)]
pub struct Linear {
    /// The weight, `[out, in]`.
    pub weight: Tensor,
    /// The bias, `[out]`.
    pub bias: Option<Tensor>,
}

/// Options of a [`Linear`] layer.
///
/// ```
/// use chainrule::Generator;
/// use chainrule::nn::{Linear, LinearOptions};
/// let options = LinearOptions::default().no_bias();
/// let layer = Linear::with_options(3, 2, options, &mut Generator::manual_seed(0));
/// assert!(layer.bias.is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearOptions {
    /// Whether there is a bias; on.
    pub bias: bool,
}

impl Default for LinearOptions {
    fn default() -> Self {
        LinearOptions { bias: true }
    }
}

impl LinearOptions {
    /// Without a bias. None is drawn, so a seed gives PyTorch's initial values here as well.
    pub fn no_bias(self) -> LinearOptions {
        LinearOptions { bias: false }
    }
}

impl Linear {
    /// A layer of `outputs` units with `inputs` inputs each and a bias, in f32.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, generator: &mut Generator) -> Linear {
        Linear::try_new(inputs, outputs, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`Linear::new`], but returns the error: for sizes of 0.
    pub fn try_new(inputs: usize, outputs: usize, generator: &mut Generator) -> Result<Linear> {
        Linear::try_with_options(inputs, outputs, LinearOptions::default(), generator)
    }

    /// As [`Linear::new`], with options.
    #[track_caller]
    pub fn with_options(
        inputs: usize,
        outputs: usize,
        options: LinearOptions,
        generator: &mut Generator,
    ) -> Linear {
        Linear::try_with_options(inputs, outputs, options, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`Linear::with_options`], but returns the error.
    pub fn try_with_options(
        inputs: usize,
        outputs: usize,
        options: LinearOptions,
        generator: &mut Generator,
    ) -> Result<Linear> {
        if inputs == 0 || outputs == 0 {
            let why =
                format!("needs at least one input and one output, got {inputs} and {outputs}");
            return Err(Error::argument("Linear", why));
        }
        // PyTorch writes this as Kaiming with slope sqrt(5), which comes to 1 / sqrt(fan_in).
        let weight = kaiming_uniform([outputs, inputs], Gain::LeakyRelu(5f64.sqrt()), generator)?
            .try_parameter()?;
        let bound = 1.0 / (inputs as f64).sqrt();
        let bias = options
            .bias
            .then(|| uniform(outputs, -bound, bound, generator)?.try_parameter())
            .transpose()?;
        Ok(Linear { weight, bias })
    }
}

impl Layer for Linear {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_linear(&self.weight, self.bias.as_ref())
    }
}
