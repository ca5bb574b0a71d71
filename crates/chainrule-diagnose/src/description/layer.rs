//! The layers of a description, which mean the same as in Keras.

use super::read::Fields;
use super::words;
use crate::error::{Result, wrong};
use serde_json::Value;

/// Types that a description refers to by a word.
pub trait Named: Copy + PartialEq + 'static {
    /// Name of the type in errors.
    const WHAT: &'static str;
    /// The words.
    const ALL: &'static [(&'static str, Self)];

    /// Its word.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, x)| *x == self).map_or("", |(word, _)| word)
    }

    /// Reads the value of a word at a place of the description.
    fn read(value: &Value, place: &str) -> Result<Self> {
        let found = value.as_str().and_then(|w| Self::ALL.iter().find(|(word, _)| *word == w));
        found.map(|(_, x)| *x).ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|(word, _)| *word).collect();
            wrong(format!(
                "`{place}` is {value}, no {}; there are {}",
                Self::WHAT,
                words.join(", ")
            ))
        })
    }
}

words! {
    /// An activation.
    Activation: "activation" {
        /// None.
        Linear = "linear",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `x`, or `0.3 x` below 0.
        LeakyRelu = "leaky_relu",
        /// `x`, or `exp(x) - 1` below 0.
        Elu = "elu",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// `1 / (1 + exp(-x))`.
        Sigmoid = "sigmoid",
        /// Over the last axis.
        Softmax = "softmax",
        /// ELU with the scale that keeps mean and variance.
        Selu = "selu",
        /// `ln(1 + exp(x))`.
        Softplus = "softplus",
    }
}

/// How weights are initialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform with the variance `2 / (in + out)`.
    GlorotUniform,
    /// Normal with the variance `2 / (in + out)`.
    GlorotNormal,
    /// Uniform with the variance `2 / in`.
    HeUniform,
    /// Normal with the variance `2 / in`.
    HeNormal,
    /// Normal.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its deviation.
        std: f64,
    },
    /// Uniform between `-bound` and `bound`.
    Uniform {
        /// The bound.
        bound: f64,
    },
    /// One number.
    Constant(f64),
}

impl Init {
    fn read(value: &Value, place: &str) -> Result<Init> {
        Ok(match value.as_str() {
            Some("glorot_uniform") => Init::GlorotUniform,
            Some("glorot_normal") => Init::GlorotNormal,
            Some("he_uniform") => Init::HeUniform,
            Some("he_normal") => Init::HeNormal,
            Some("zeros") => Init::Constant(0.0),
            Some("ones") => Init::Constant(1.0),
            Some(other) => {
                let known = "glorot_uniform, glorot_normal, he_uniform, he_normal, zeros, ones, and objects with the name normal, uniform or constant";
                return Err(wrong(format!("`{place}` is `{other}`, no init; there are {known}")));
            }
            None => {
                let all = Fields::of(value, place)?;
                match all.text("name")? {
                    "normal" => {
                        Init::Normal { mean: all.number_or("mean", 0.0)?, std: all.number("std")? }
                    }
                    "uniform" => Init::Uniform { bound: all.number("bound")? },
                    "constant" => Init::Constant(all.number("value")?),
                    other => {
                        let why = format!(
                            "`{place}/name` is `{other}`; there are normal, uniform and constant"
                        );
                        return Err(wrong(why));
                    }
                }
            }
        })
    }
}

/// A layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `x @ w + b`.
    Dense {
        /// Columns of the result.
        units: usize,
        /// Activation after it.
        activation: Activation,
        /// First values of the weights.
        init: Init,
        /// First values of the bias; none without one.
        bias: Option<Init>,
        /// Whether it is trained.
        trainable: bool,
        /// The share of the squared weights in the loss.
        l2: f64,
    },
    /// A convolution with the channels last.
    Conv {
        /// 1 or 2.
        axes: usize,
        /// Channels of the result.
        filters: usize,
        /// Length of the kernel's sides.
        kernel: usize,
        /// Distance of two windows.
        stride: usize,
        /// Whether the result is as large as the input.
        same: bool,
        /// Activation after it.
        activation: Activation,
        /// First values of the weights.
        init: Init,
        /// First values of the bias.
        bias: Init,
        /// The share of the squared weights in the loss.
        l2: f64,
    },
    /// The largest of a window.
    MaxPool {
        /// 1 or 2.
        axes: usize,
        /// Length of its sides.
        size: usize,
        /// Distance of two windows.
        stride: usize,
        /// Whether a last window that is not full counts.
        same: bool,
    },
    /// The mean over the steps of a sequence.
    GlobalAvgPool1d,
    /// All axes of an example as one.
    Flatten,
    /// An activation by itself.
    Activation(Activation),
    /// Zeros at random.
    Dropout(f64),
    /// Columns with mean 0 and variance 1 in a batch.
    BatchNorm {
        /// Share of their past that the running statistics keep.
        momentum: f64,
        /// Added to the variance.
        eps: f64,
    },
}

impl Layer {
    pub(super) fn read(all: &Fields<'_>) -> Result<Layer> {
        let axes = |kind: &str| if kind.ends_with("1d") { 1 } else { 2 };
        let most = 1 << 20;
        let activation = || match all.some("activation") {
            Some(value) => Activation::read(value, &all.place("activation")),
            None => Ok(Activation::Linear),
        };
        let same = || match all.text_or("padding", "valid")? {
            "same" => Ok(true),
            "valid" => Ok(false),
            other => {
                let place = all.place("padding");
                Err(wrong(format!("`{place}` is `{other}`; there are valid and same")))
            }
        };
        let init = |name: &str, default| match all.some(name) {
            Some(value) => Init::read(value, &all.place(name)),
            None => Ok(default),
        };
        Ok(match all.text("type")? {
            "dense" => Layer::Dense {
                units: all.size("units", most)?,
                activation: activation()?,
                init: init("init", Init::GlorotUniform)?,
                bias: match all.flag_or("bias", true)? {
                    true => Some(init("bias_init", Init::Constant(0.0))?),
                    false => None,
                },
                trainable: all.flag_or("trainable", true)?,
                l2: all.number_or("l2", 0.0)?,
            },
            kind @ ("conv1d" | "conv2d") => Layer::Conv {
                axes: axes(kind),
                filters: all.size("filters", most)?,
                kernel: all.size("kernel", 1 << 12)?,
                stride: match all.some("stride") {
                    Some(_) => all.size("stride", 1 << 12)?,
                    None => 1,
                },
                same: same()?,
                activation: activation()?,
                init: init("init", Init::GlorotUniform)?,
                bias: init("bias_init", Init::Constant(0.0))?,
                l2: all.number_or("l2", 0.0)?,
            },
            kind @ ("maxpool1d" | "maxpool2d") => Layer::MaxPool {
                axes: axes(kind),
                size: all.size("size", 1 << 12)?,
                stride: match all.some("stride") {
                    Some(_) => all.size("stride", 1 << 12)?,
                    None => all.size("size", 1 << 12)?,
                },
                same: same()?,
            },
            "global_avg_pool1d" => Layer::GlobalAvgPool1d,
            "flatten" => Layer::Flatten,
            "activation" => Layer::Activation(activation()?),
            "dropout" => match all.number("rate")? {
                rate if (0.0..1.0).contains(&rate) => Layer::Dropout(rate),
                rate => {
                    let place = all.place("rate");
                    return Err(wrong(format!(
                        "`{place}` is {rate}; it must be 0 or more and below 1"
                    )));
                }
            },
            "batchnorm" => Layer::BatchNorm {
                momentum: all.number_or("momentum", 0.99)?,
                eps: all.number_or("eps", 1e-3)?,
            },
            other => {
                let known = "dense, conv1d, conv2d, maxpool1d, maxpool2d, global_avg_pool1d, flatten, activation, dropout and batchnorm";
                let place = all.place("type");
                return Err(wrong(format!("`{place}` is `{other}`, no layer; there are {known}")));
            }
        })
    }

    /// Whether it has weights that multiply.
    pub fn has_weights(&self) -> bool {
        matches!(self, Layer::Dense { .. } | Layer::Conv { .. })
    }

    /// Its own activation, if it can have one.
    pub fn activation(&self) -> Option<Activation> {
        match self {
            Layer::Dense { activation, .. }
            | Layer::Conv { activation, .. }
            | Layer::Activation(activation) => Some(*activation),
            _ => None,
        }
    }

    /// Its units or channels.
    pub fn width(&self) -> Option<usize> {
        match self {
            Layer::Dense { units, .. } => Some(*units),
            Layer::Conv { filters, .. } => Some(*filters),
            _ => None,
        }
    }

    /// First values of its weights.
    pub fn init(&self) -> Option<Init> {
        match self {
            Layer::Dense { init, .. } | Layer::Conv { init, .. } => Some(*init),
            _ => None,
        }
    }

    /// First values of its bias, where it has one.
    pub(crate) fn bias(&self) -> Option<Init> {
        match self {
            Layer::Dense { bias, .. } => *bias,
            Layer::Conv { bias, .. } => Some(*bias),
            _ => None,
        }
    }

    /// Whether its weights are trained.
    pub(crate) fn is_trained(&self) -> bool {
        !matches!(self, Layer::Dense { trainable: false, .. })
    }

    /// The share of its squared weights in the loss.
    pub fn l2(&self) -> f64 {
        match self {
            Layer::Dense { l2, .. } | Layer::Conv { l2, .. } => *l2,
            _ => 0.0,
        }
    }

    pub(crate) fn weights(&self, input: &[usize]) -> usize {
        let channels = input.last().copied().unwrap_or(0);
        match self {
            Layer::Dense { units, .. } => channels.saturating_mul(*units),
            Layer::Conv { axes, filters, kernel, .. } => channels
                .saturating_mul(*filters)
                .saturating_mul(kernel.saturating_pow(*axes as u32)),
            _ => 0,
        }
    }

    pub(crate) fn shape(&self, input: &[usize], i: usize) -> Result<Vec<usize>> {
        let fits = |axes: usize, what: &str| match input.len() == axes + 1 {
            true => Ok(()),
            false => {
                let why = format!(
                    "`layers/{i}`: {what} takes {axes} axes and channels, what comes in has the shape {input:?}"
                );
                Err(wrong(why))
            }
        };
        let (&channels, sides) = input.split_last().ok_or_else(|| wrong("an empty shape"))?;
        Ok(match self {
            Layer::Dense { units, .. } => [sides, &[*units]].concat(),
            Layer::Conv { axes, filters, kernel, stride, same, .. } => {
                fits(*axes, "a convolution")?;
                let side = |&s: &usize| match same {
                    true => Ok(s.div_ceil(*stride)),
                    false if s >= *kernel => Ok((s - kernel) / stride + 1),
                    false => Err(wrong(format!(
                        "`layers/{i}`: a kernel of {kernel} is larger than a side of {s}"
                    ))),
                };
                let mut out = sides.iter().map(side).collect::<Result<Vec<_>>>()?;
                out.push(*filters);
                out
            }
            Layer::MaxPool { axes, size, stride, same } => {
                fits(*axes, "a pooling layer")?;
                let side = |&s: &usize| match same {
                    true => Ok(s.div_ceil(*stride)),
                    false if s >= *size => Ok((s - size) / stride + 1),
                    false => Err(wrong(format!(
                        "`layers/{i}`: a window of {size} is larger than a side of {s}"
                    ))),
                };
                let mut out = sides.iter().map(side).collect::<Result<Vec<_>>>()?;
                out.push(channels);
                out
            }
            Layer::GlobalAvgPool1d => {
                fits(1, "the mean over steps")?;
                vec![channels]
            }
            Layer::Flatten => vec![input.iter().product()],
            Layer::Activation(_) | Layer::Dropout(_) | Layer::BatchNorm { .. } => input.to_vec(),
        })
    }
}
