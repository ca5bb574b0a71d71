//! Convolutions and pooling as layers.

use super::init::{Gain, kaiming_uniform, uniform};
use super::{Layer, Module};
use crate::error::{Error, Result, raise};
use crate::ops::{AvgPool, Conv, MaxPool};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The weight `[out, in / groups, kernel..]` and the bias of a convolution, as PyTorch starts them:
/// uniform within `± 1 / sqrt(fan_in)`.
fn start(
    name: &'static str,
    [inputs, outputs, groups]: [usize; 3],
    kernel: &[usize],
    bias: bool,
    generator: &mut Generator,
) -> Result<(Tensor, Option<Tensor>)> {
    let split = groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups);
    if inputs == 0 || outputs == 0 || kernel.contains(&0) || !split {
        let why = format!(
            "needs channels and kernel sizes of 1 at least and groups that divide the channels, got {inputs} to {outputs} channels, \
             kernel {kernel:?}, {groups} groups"
        );
        return Err(Error::argument(name, why));
    }
    let shape: Vec<usize> = [outputs, inputs / groups].iter().chain(kernel).copied().collect();
    let weight = kaiming_uniform(shape.as_slice(), Gain::LeakyRelu(5f64.sqrt()), generator)?;
    let fan_in: usize = shape[1..].iter().product();
    let bound = 1.0 / (fan_in as f64).sqrt();
    let bias =
        bias.then(|| uniform(outputs, -bound, bound, generator)?.try_parameter()).transpose()?;
    Ok((weight.try_parameter()?, bias))
}

/// Options of a convolution layer.
///
/// ```
/// use chainrule::nn::{Conv2d, ConvOptions};
/// use chainrule::{Conv, Generator};
/// let options = ConvOptions {
///     bias: false,
///     ..ConvOptions::from(Conv { stride: [2, 2], ..Conv::default() })
/// };
/// let layer = Conv2d::with_options(1, 4, [3, 3], options, &mut Generator::manual_seed(0));
/// assert!(layer.bias.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConvOptions<const N: usize> {
    /// Stride, padding, dilation and groups.
    pub conv: Conv<N>,
    /// Whether there is a bias; on.
    pub bias: bool,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> Self {
        ConvOptions::from(Conv::default())
    }
}

impl<const N: usize> From<Conv<N>> for ConvOptions<N> {
    /// With a bias.
    fn from(conv: Conv<N>) -> Self {
        ConvOptions { conv, bias: true }
    }
}

macro_rules! convolution {
    ($name:ident, $n:literal, $method:ident, $shapes:literal, $kernel:literal, $example:literal) => {
        #[doc = concat!("A convolution of ", $shapes, ": see [`Tensor::", stringify!($method), "`].")]
        ///
        /// ```
        /// use chainrule::nn::Layer;
        #[doc = concat!("use chainrule::nn::", stringify!($name), ";")]
        /// use chainrule::{Generator, Tensor};
        #[doc = $example]
        /// ```
        #[derive(Debug, Module)]
        pub struct $name {
            #[doc = concat!("The kernels, `[out, in / groups, ", $kernel, "]`.")]
            pub weight: Tensor,
            /// The bias, `[out]`.
            pub bias: Option<Tensor>,
            #[module(skip)]
            options: Conv<$n>,
        }

        impl $name {
            /// A layer with a bias, from `inputs` to `outputs` channels, in f32: stride 1, no
            /// padding.
            #[track_caller]
            pub fn new(
                inputs: usize,
                outputs: usize,
                kernel: [usize; $n],
                generator: &mut Generator,
            ) -> $name {
                $name::try_new(inputs, outputs, kernel, generator).unwrap_or_else(|e| raise(e))
            }

            #[doc = concat!("As [`", stringify!($name), "::new`], but returns the error: for sizes of 0.")]
            pub fn try_new(
                inputs: usize,
                outputs: usize,
                kernel: [usize; $n],
                generator: &mut Generator,
            ) -> Result<$name> {
                $name::try_with_options(inputs, outputs, kernel, Conv::default(), generator)
            }

            #[doc = concat!("As [`", stringify!($name), "::new`], with options: a [`Conv`], or [`ConvOptions`].")]
            #[track_caller]
            pub fn with_options(
                inputs: usize,
                outputs: usize,
                kernel: [usize; $n],
                options: impl Into<ConvOptions<$n>>,
                generator: &mut Generator,
            ) -> $name {
                $name::try_with_options(inputs, outputs, kernel, options, generator)
                    .unwrap_or_else(|e| raise(e))
            }

            #[doc = concat!("As [`", stringify!($name), "::with_options`], but returns the error: for sizes of 0")]
            /// and groups that do not divide the channels.
            pub fn try_with_options(
                inputs: usize,
                outputs: usize,
                kernel: [usize; $n],
                options: impl Into<ConvOptions<$n>>,
                generator: &mut Generator,
            ) -> Result<$name> {
                let ConvOptions { conv, bias } = options.into();
                let sizes = [inputs, outputs, conv.groups];
                let (weight, bias) = start(stringify!($name), sizes, &kernel, bias, generator)?;
                Ok($name { weight, bias, options: conv })
            }
        }

        impl Layer for $name {
            fn compute(&self, x: &Tensor) -> Result<Tensor> {
                x.$method(&self.weight, self.bias.as_ref(), &self.options)
            }
        }
    };
}
convolution!(
    Conv1d,
    1,
    try_conv1d_with,
    "`[n, in, length]`",
    "k",
    "let layer = Conv1d::new(2, 4, [3], &mut Generator::manual_seed(0));
assert_eq!(layer.forward(&Tensor::zeros([5, 2, 8])).shape(), [5, 4, 6]);"
);
convolution!(
    Conv2d,
    2,
    try_conv2d_with,
    "`[n, in, height, width]`",
    "kh, kw",
    "let layer = Conv2d::new(1, 4, [3, 3], &mut Generator::manual_seed(0));
assert_eq!(layer.forward(&Tensor::zeros([5, 1, 8, 8])).shape(), [5, 4, 6, 6]);"
);

macro_rules! pools {
    ($($name:ident $options:ident<$n:literal> $method:ident,)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($method), "`] as a layer.")]
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            #[module(skip)]
            kernel: [usize; $n],
            #[module(skip)]
            options: $options<$n>,
        }

        impl $name {
            /// With windows of this size and the same stride.
            pub fn new(kernel: [usize; $n]) -> $name {
                $name::with_options(kernel, $options::default())
            }

            /// With these options.
            pub fn with_options(kernel: [usize; $n], options: $options<$n>) -> $name {
                $name { kernel, options }
            }
        }
    )*};
}
pools! {
    MaxPool1d MaxPool<1> try_max_pool1d_with,
    MaxPool2d MaxPool<2> try_max_pool2d_with,
    AvgPool1d AvgPool<1> try_avg_pool1d_with,
    AvgPool2d AvgPool<2> try_avg_pool2d_with,
}

impl Layer for MaxPool1d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_max_pool1d_with(self.kernel[0], &self.options)
    }
}

impl Layer for MaxPool2d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_max_pool2d_with(self.kernel, &self.options)
    }
}

impl Layer for AvgPool1d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_avg_pool1d_with(self.kernel[0], &self.options)
    }
}

impl Layer for AvgPool2d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_avg_pool2d_with(self.kernel, &self.options)
    }
}

/// [`Tensor::adaptive_avg_pool2d`] as a layer: average pooling to a given output size.
#[derive(Clone, Copy, Debug, Module)]
pub struct AdaptiveAvgPool2d {
    /// Height and width of the result.
    #[module(skip)]
    pub sizes: [usize; 2],
}

impl Layer for AdaptiveAvgPool2d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_adaptive_avg_pool2d(self.sizes)
    }
}
