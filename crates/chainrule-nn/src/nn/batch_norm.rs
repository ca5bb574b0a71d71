//! Batch normalisation with running statistics.

use super::{Field, Layer, Module, Training};
use crate::error::{Error, Result, raise};
use crate::tensor::{Tensor, no_grad};

/// `gain * (x - mean) / sqrt(var + eps) + bias` for each feature (Ioffe and Szegedy 2015), as
/// PyTorch's `BatchNorm1d`.
///
/// `x` is `[n, features]` or `[n, features, length]`. In training mode mean and variance (divided
/// by n) are the batch's, and the running ones move towards them by `momentum`, the variance
/// unbiased (divided by n - 1). In evaluation mode the running ones are used;
/// [`BatchNorm1d::calibrate`] sets them from a whole set.
///
/// ```
/// use chainrule::nn::{BatchNorm1d, Layer};
/// use chainrule::Tensor;
/// let norm = BatchNorm1d::new(1);
/// let y = norm.forward(&Tensor::from([[1.0f32], [3.0]]));
/// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
/// assert!((norm.running_mean.item() - 0.2).abs() < 1e-7);
/// ```
#[derive(Debug, Module)]
pub struct BatchNorm1d {
    /// The gain, `[features]`, 1 at the start.
    #[module(name = "weight")]
    pub gain: Tensor,
    /// The bias, `[features]`, 0 at the start.
    pub bias: Tensor,
    /// The mean used in evaluation, `[features]`.
    #[module(buffer)]
    pub running_mean: Tensor,
    /// The variance used in evaluation, `[features]`.
    #[module(buffer)]
    pub running_var: Tensor,
    /// Number of batches in the running statistics.
    #[module(buffer)]
    pub num_batches_tracked: Tensor,
    eps: f64,
    momentum: f64,
    training: Training,
}

/// The constants of a [`BatchNorm1d`] or a [`BatchNorm2d`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormOptions {
    /// The number added to the variance; 1e-5.
    pub eps: f64,
    /// Momentum of the running statistics; 0.1.
    pub momentum: f64,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        BatchNormOptions { eps: 1e-5, momentum: 0.1 }
    }
}

impl BatchNorm1d {
    /// For this many features, with eps 1e-5 and momentum 0.1.
    #[track_caller]
    pub fn new(features: usize) -> BatchNorm1d {
        BatchNorm1d::try_new(features).unwrap_or_else(|e| raise(e))
    }

    /// As [`BatchNorm1d::new`], but returns the error: for no features.
    pub fn try_new(features: usize) -> Result<BatchNorm1d> {
        BatchNorm1d::try_with_options(features, BatchNormOptions::default())
    }

    /// As [`BatchNorm1d::new`], with these constants.
    #[track_caller]
    pub fn with_options(features: usize, options: BatchNormOptions) -> BatchNorm1d {
        BatchNorm1d::try_with_options(features, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`BatchNorm1d::with_options`], but returns the error: for no features, an eps below 0, or
    /// a momentum outside 0 to 1.
    pub fn try_with_options(features: usize, options: BatchNormOptions) -> Result<BatchNorm1d> {
        let BatchNormOptions { eps, momentum } = options;
        let fits = features > 0 && eps.is_finite() && eps >= 0.0 && (0.0..=1.0).contains(&momentum);
        if !fits {
            let why = format!(
                "needs at least one feature, eps from 0 up and momentum from 0 to 1, got {features}, {eps} and {momentum}"
            );
            return Err(Error::argument("BatchNorm1d", why));
        }
        Ok(BatchNorm1d {
            gain: Tensor::ones(features).try_parameter()?,
            bias: Tensor::zeros(features).try_parameter()?,
            running_mean: Tensor::zeros(features).buffer(),
            running_var: Tensor::ones(features).buffer(),
            num_batches_tracked: Tensor::scalar(0i64).buffer(),
            eps,
            momentum,
            training: Training::default(),
        })
    }

    /// Sets the running statistics to those of `x`, a whole set: its mean and its unbiased
    /// variance.
    pub fn calibrate(&self, x: &Tensor) -> Result<()> {
        let (_, mean, var) = no_grad(|| x.detach().try_batch_norm_train(None, None, self.eps, 1))?;
        self.running_mean.try_set(&mean.try_to_dtype(self.running_mean.dtype())?)?;
        self.running_var.try_set(&var.try_to_dtype(self.running_var.dtype())?)
    }

    /// Moves the running statistics towards those of a batch of `count` values for each feature.
    fn track(&self, mean: &Tensor, var: &Tensor, count: usize) -> Result<()> {
        let unbiased = count as f64 / (count as f64 - 1.0);
        let moved = |old: &Tensor, new: &Tensor, factor: f64| {
            old.detach()
                .try_mul(1.0 - self.momentum)?
                .try_add(&new.try_mul(self.momentum * factor)?)
        };
        self.running_mean.try_set(&moved(&self.running_mean, mean, 1.0)?)?;
        self.running_var.try_set(&moved(&self.running_var, var, unbiased)?)?;
        self.num_batches_tracked.try_set(&self.num_batches_tracked.detach().try_add(1)?)
    }
}

impl Layer for BatchNorm1d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.normalised(x)
    }
}

impl BatchNorm1d {
    fn normalised(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        if !(2..=3).contains(&shape.rank()) {
            let why = "the input must be [n, features] or [n, features, length]";
            return Err(Error::shape("BatchNorm1d", &[&shape], why));
        }
        let (gain, bias) = (Some(&self.gain), Some(&self.bias));
        if !self.training.is_on() {
            return x.try_batch_norm_eval(
                &self.running_mean,
                &self.running_var,
                gain,
                bias,
                self.eps,
            );
        }
        let (y, mean, var) = x.try_batch_norm_train(gain, bias, self.eps, 0)?;
        no_grad(|| self.track(&mean, &var, shape.numel() / shape[1]))?;
        Ok(y)
    }
}

/// [`BatchNorm1d`] for images: each channel of `[n, channels, height, width]` is normalised over
/// the batch and all positions.
///
/// ```
/// use chainrule::nn::{BatchNorm2d, Layer, Module};
/// use chainrule::Tensor;
/// let norm = BatchNorm2d::new(3);
/// assert_eq!(norm.forward(&Tensor::zeros([2, 3, 4, 4])).shape(), [2, 3, 4, 4]);
/// assert_eq!(norm.named_parameters()[0].0, "weight");
/// ```
#[derive(Debug)]
pub struct BatchNorm2d {
    /// The same with one position axis.
    pub flat: BatchNorm1d,
}

impl BatchNorm2d {
    /// For this many channels, with eps 1e-5 and momentum 0.1.
    #[track_caller]
    pub fn new(channels: usize) -> BatchNorm2d {
        BatchNorm2d::try_new(channels).unwrap_or_else(|e| raise(e))
    }

    /// As [`BatchNorm2d::new`], but returns the error: for no channels.
    pub fn try_new(channels: usize) -> Result<BatchNorm2d> {
        BatchNorm2d::try_with_options(channels, BatchNormOptions::default())
    }

    /// As [`BatchNorm2d::new`], with these constants.
    #[track_caller]
    pub fn with_options(channels: usize, options: BatchNormOptions) -> BatchNorm2d {
        BatchNorm2d::try_with_options(channels, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`BatchNorm2d::with_options`], but returns the error, as
    /// [`BatchNorm1d::try_with_options`] does.
    pub fn try_with_options(channels: usize, options: BatchNormOptions) -> Result<BatchNorm2d> {
        Ok(BatchNorm2d { flat: BatchNorm1d::try_with_options(channels, options)? })
    }
}

impl Module for BatchNorm2d {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        self.flat.fields()
    }
}

impl Layer for BatchNorm2d {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        if shape.rank() != 4 {
            let why = "the input must be [n, channels, height, width]";
            return Err(Error::shape("BatchNorm2d", &[&shape], why));
        }
        self.flat.normalised(&x.try_flatten(2, -1)?)?.try_reshape(shape)
    }
}
