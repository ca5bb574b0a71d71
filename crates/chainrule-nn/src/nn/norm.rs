//! Normalisation per example: layer norm, RMS norm, group norm.

use super::{Layer, Module};
use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::tensor::Tensor;

/// The number added to a variance or a mean square.
const EPS: f64 = 1e-5;

/// `weight * (x - mean) / sqrt(var + eps) + bias` over the last axis (Ba, Kiros and Hinton 2016),
/// as PyTorch's `LayerNorm`.
///
/// ```
/// use chainrule::nn::{Layer, LayerNorm};
/// use chainrule::Tensor;
/// let y = LayerNorm::new(2).forward(&Tensor::from([[1.0f32, 3.0]]));
/// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
/// ```
#[derive(Debug, Module)]
pub struct LayerNorm {
    /// Gain, `[width]`, 1 at the start.
    pub weight: Tensor,
    /// Bias, `[width]`, 0 at the start.
    pub bias: Option<Tensor>,
    /// Added to the variance.
    pub eps: f64,
}

/// Options of a [`LayerNorm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormOptions {
    /// Whether there is a bias; on.
    pub bias: bool,
    /// The number added to the variance; 1e-5.
    pub eps: f64,
}

impl Default for LayerNormOptions {
    fn default() -> Self {
        LayerNormOptions { bias: true, eps: EPS }
    }
}

impl LayerNorm {
    /// For a last axis of `width` elements, with a bias and eps 1e-5.
    #[track_caller]
    pub fn new(width: usize) -> LayerNorm {
        LayerNorm::try_new(width).unwrap_or_else(|e| raise(e))
    }

    /// As [`LayerNorm::new`], but returns the error: for a width of 0.
    pub fn try_new(width: usize) -> Result<LayerNorm> {
        LayerNorm::try_with_options(width, LayerNormOptions::default())
    }

    /// As [`LayerNorm::new`], with options.
    #[track_caller]
    pub fn with_options(width: usize, options: LayerNormOptions) -> LayerNorm {
        LayerNorm::try_with_options(width, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`LayerNorm::with_options`], but returns the error: for a width of 0 or an eps below 0.
    pub fn try_with_options(width: usize, options: LayerNormOptions) -> Result<LayerNorm> {
        let LayerNormOptions { bias, eps } = options;
        expect_norm("LayerNorm", width, eps)?;
        let weight = Tensor::try_full(width, 1.0, DType::F32)?.try_parameter()?;
        let bias =
            bias.then(|| Tensor::try_full(width, 0.0, DType::F32)?.try_parameter()).transpose()?;
        Ok(LayerNorm { weight, bias, eps })
    }
}

impl Layer for LayerNorm {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_layer_norm(self.weight.shape(), Some(&self.weight), self.bias.as_ref(), self.eps)
    }
}

/// `weight * x / sqrt(mean of x^2 + eps)` over the last axis (Zhang and Sennrich 2019), as
/// PyTorch's `RMSNorm`.
#[derive(Debug, Module)]
pub struct RmsNorm {
    /// Gain, `[width]`, 1 at the start.
    pub weight: Tensor,
    /// Added to the mean square.
    pub eps: f64,
}

impl RmsNorm {
    /// For a last axis of `width` elements, with eps 1e-5.
    #[track_caller]
    pub fn new(width: usize) -> RmsNorm {
        RmsNorm::try_new(width).unwrap_or_else(|e| raise(e))
    }

    /// As [`RmsNorm::new`], but returns the error: for a width of 0.
    pub fn try_new(width: usize) -> Result<RmsNorm> {
        RmsNorm::try_with_eps(width, EPS)
    }

    /// As [`RmsNorm::new`], with this eps.
    #[track_caller]
    pub fn with_eps(width: usize, eps: f64) -> RmsNorm {
        RmsNorm::try_with_eps(width, eps).unwrap_or_else(|e| raise(e))
    }

    /// As [`RmsNorm::with_eps`], but returns the error: for a width of 0 or an eps below 0.
    pub fn try_with_eps(width: usize, eps: f64) -> Result<RmsNorm> {
        expect_norm("RmsNorm", width, eps)?;
        Ok(RmsNorm { weight: Tensor::try_full(width, 1.0, DType::F32)?.try_parameter()?, eps })
    }
}

impl Layer for RmsNorm {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_rms_norm(self.weight.shape(), Some(&self.weight), Some(self.eps))
    }
}

/// Group normalisation: channels in groups, each normalised over its channels and all positions (Wu
/// and He 2018), as PyTorch's `GroupNorm`.
///
/// `x` is `[n, channels, ...]`; weight and bias have one number for each channel.
#[derive(Debug, Module)]
pub struct GroupNorm {
    /// Gain, `[channels]`, 1 at the start.
    pub weight: Tensor,
    /// Bias, `[channels]`, 0 at the start.
    pub bias: Tensor,
    /// The number of groups; it divides the channels.
    pub groups: usize,
    /// Added to the variance.
    pub eps: f64,
}

impl GroupNorm {
    /// For this number of channels and groups, with eps 1e-5.
    #[track_caller]
    pub fn new(groups: usize, channels: usize) -> GroupNorm {
        GroupNorm::try_new(groups, channels).unwrap_or_else(|e| raise(e))
    }

    /// As [`GroupNorm::new`], but returns the error: if the groups do not divide the channels.
    pub fn try_new(groups: usize, channels: usize) -> Result<GroupNorm> {
        GroupNorm::try_with_eps(groups, channels, EPS)
    }

    /// As [`GroupNorm::new`], with this eps.
    #[track_caller]
    pub fn with_eps(groups: usize, channels: usize, eps: f64) -> GroupNorm {
        GroupNorm::try_with_eps(groups, channels, eps).unwrap_or_else(|e| raise(e))
    }

    /// As [`GroupNorm::with_eps`], but returns the error: if the groups do not divide the channels,
    /// or for an eps below 0.
    pub fn try_with_eps(groups: usize, channels: usize, eps: f64) -> Result<GroupNorm> {
        expect_norm("GroupNorm", channels, eps)?;
        if groups == 0 || !channels.is_multiple_of(groups) {
            let why = format!("{channels} channels cannot be split into {groups} equal groups");
            return Err(Error::argument("GroupNorm", why));
        }
        let weight = Tensor::try_full(channels, 1.0, DType::F32)?.try_parameter()?;
        let bias = Tensor::try_full(channels, 0.0, DType::F32)?.try_parameter()?;
        Ok(GroupNorm { weight, bias, groups, eps })
    }
}

impl Layer for GroupNorm {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        x.try_group_norm(self.groups, Some(&self.weight), Some(&self.bias), self.eps)
    }
}

fn expect_norm(name: &'static str, width: usize, eps: f64) -> Result<()> {
    if width > 0 && eps.is_finite() && eps >= 0.0 {
        return Ok(());
    }
    let why = format!("needs at least one element and eps from 0 up, got {width} and {eps}");
    Err(Error::argument(name, why))
}
