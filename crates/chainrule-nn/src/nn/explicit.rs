//! Layers with a backward pass written by hand instead of a tape.
//!
//! Each has `forward(x)`, which saves what backward needs, and `backward(dout)`, which takes the
//! gradient of the loss with respect to the layer's output, sets the gradients of its parameters
//! (as [`Tensor::backward`] would), and returns the gradient of its input. The loss,
//! [`ExplicitCrossEntropy`], starts the backward pass. Any optimizer takes the parameters.
//!
//! ```
//! use chainrule::nn::explicit::{
//!     Explicit, ExplicitCrossEntropy, ExplicitLinear, ExplicitNet, ExplicitRelu,
//! };
//! use chainrule::optim::{Optimizer, Sgd};
//! use chainrule::{Generator, Tensor};
//!
//! let g = &mut Generator::manual_seed(0);
//! let mut net = ExplicitNet::new()
//!     .with(ExplicitLinear::new(2, 16, g))
//!     .with(ExplicitRelu::default())
//!     .with(ExplicitLinear::new(16, 3, g));
//! let (mut criterion, mut sgd) =
//!     (ExplicitCrossEntropy::default(), Sgd::new(net.parameters(), 0.5));
//! let (x, y) =
//!     (Tensor::from([[0.0f32, 1.0], [1.0, 0.0], [1.0, 1.0]]), Tensor::from([0i64, 1, 2]));
//! for _ in 0..200 {
//!     let logits = net.forward(&x);
//!     let loss = criterion.forward(&logits, &y);
//!     net.backward(&criterion.backward());
//!     sgd.step()?;
//!     # let _ = loss;
//! }
//! assert!(criterion.forward(&net.forward(&x), &y).item() < 0.1);
//! # Ok::<(), chainrule::Error>(())
//! ```

use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::{Tensor, no_grad};

/// A layer with an explicit backward pass. `check::gradcheck_explicit` checks it.
pub trait Explicit: Send {
    /// The layer's output; saves what `backward` needs.
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor>;

    /// The gradient of the input from that of the output; sets the gradients of the parameters. An
    /// error before `forward`.
    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor>;

    /// The parameters.
    fn parameters(&self) -> Vec<Tensor> {
        Vec::new()
    }

    /// Sets training or evaluation mode, where that matters.
    fn set_training(&mut self, _on: bool) {}

    /// As [`Explicit::try_forward`], but panics with the error's text.
    #[track_caller]
    fn forward(&mut self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| raise(e))
    }

    /// As [`Explicit::try_backward`], but panics with the error's text.
    #[track_caller]
    fn backward(&mut self, dout: &Tensor) -> Tensor {
        self.try_backward(dout).unwrap_or_else(|e| raise(e))
    }
}

/// A saved value, or the error if there is none.
fn kept<'a>(layer: &'static str, kept: &'a Option<Tensor>) -> Result<&'a Tensor> {
    kept.as_ref()
        .ok_or_else(|| Error::gradient(layer, "backward comes after forward: call forward first"))
}

/// `y = x W^T + b`, with the weight `[out, in]` and the initialisation of
/// [`nn::Linear`](super::Linear).
#[derive(Debug)]
pub struct ExplicitLinear {
    /// The weight, `[out, in]`.
    pub weight: Tensor,
    /// The bias, `[out]`.
    pub bias: Tensor,
    x: Option<Tensor>,
}

impl ExplicitLinear {
    /// A layer of `outputs` units with `inputs` inputs each, in f32.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, generator: &mut Generator) -> ExplicitLinear {
        ExplicitLinear::from(super::Linear::new(inputs, outputs, generator))
    }
}

impl From<super::Linear> for ExplicitLinear {
    /// Shares the parameters of `layer`. A layer without bias gets one of zeros.
    fn from(layer: super::Linear) -> ExplicitLinear {
        let super::Linear { weight, bias } = layer;
        let zeros = || Tensor::full(weight.size(0), 0.0, weight.dtype()).parameter();
        ExplicitLinear { bias: bias.unwrap_or_else(zeros), weight, x: None }
    }
}

impl Explicit for ExplicitLinear {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        self.x = Some(x.detach());
        no_grad(|| x.try_matmul(&self.weight.try_t()?)?.try_add(&self.bias))
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let x = kept("Linear", &self.x)?;
        no_grad(|| {
            self.weight.set_grad(Some(dout.try_t()?.try_matmul(x)?))?; // dW = dout^T x
            self.bias.set_grad(Some(dout.try_sum(0, false)?))?; // db = rows of dout, summed
            dout.try_matmul(&self.weight) // dx = dout W
        })
    }

    fn parameters(&self) -> Vec<Tensor> {
        vec![self.weight.clone(), self.bias.clone()]
    }
}

/// `y = max(x, 0)`.
#[derive(Debug, Default)]
pub struct ExplicitRelu {
    y: Option<Tensor>,
}

impl Explicit for ExplicitRelu {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let y = x.detach().try_relu()?;
        self.y = Some(y.clone());
        Ok(y)
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let y = kept("Relu", &self.y)?;
        y.try_gt(0)?.try_where(dout, 0) // dx = dout where x > 0
    }
}

/// `y = tanh(x)`.
#[derive(Debug, Default)]
pub struct ExplicitTanh {
    y: Option<Tensor>,
}

impl Explicit for ExplicitTanh {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let y = x.detach().try_tanh()?;
        self.y = Some(y.clone());
        Ok(y)
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let y = kept("Tanh", &self.y)?;
        dout.try_mul(&(1.0 - y.try_square()?)) // dx = dout (1 - y^2)
    }
}

/// `y = 1 / (1 + e^-x)`.
#[derive(Debug, Default)]
pub struct ExplicitSigmoid {
    y: Option<Tensor>,
}

impl Explicit for ExplicitSigmoid {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let y = x.detach().try_sigmoid()?;
        self.y = Some(y.clone());
        Ok(y)
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let y = kept("Sigmoid", &self.y)?;
        dout.try_mul(y)?.try_mul(&(1.0 - y)) // dx = dout y (1 - y)
    }
}

/// `p = e^x / (e^x summed over the row)`.
#[derive(Debug, Default)]
pub struct ExplicitSoftmax {
    p: Option<Tensor>,
}

impl Explicit for ExplicitSoftmax {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let p = x.detach().try_softmax(-1)?;
        self.p = Some(p.clone());
        Ok(p)
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let p = kept("Softmax", &self.p)?;
        // Each p depends on every x of its row: dx = p (dout - sum of dout p over the row).
        p.try_mul(&dout.try_sub(dout.try_mul(p)?.try_sum(-1, true)?)?)
    }
}

/// `y = log softmax(x)` over each row.
#[derive(Debug, Default)]
pub struct ExplicitLogSoftmax {
    y: Option<Tensor>,
}

impl Explicit for ExplicitLogSoftmax {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let y = x.detach().try_log_softmax(-1)?;
        self.y = Some(y.clone());
        Ok(y)
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let p = kept("LogSoftmax", &self.y)?.try_exp()?;
        dout.try_sub(p.try_mul(dout.try_sum(-1, true)?)?) // dx = dout - p (sum of dout over the row)
    }
}

/// `y = gain * (x - mean) / sqrt(var + eps) + bias` for each column of `[n, features]`, with the
/// batch's mean and variance (divided by n) in training and running ones in evaluation.
#[derive(Debug)]
pub struct ExplicitBatchNorm1d {
    /// The gain, `[features]`.
    pub gain: Tensor,
    /// The bias, `[features]`.
    pub bias: Tensor,
    /// The mean used in evaluation, `[features]`.
    pub running_mean: Tensor,
    /// The variance used in evaluation, `[features]`.
    pub running_var: Tensor,
    training: bool,
    /// The normalised batch, and 1 / sqrt(var + eps).
    raw: Option<Tensor>,
    inv: Option<Tensor>,
}

impl ExplicitBatchNorm1d {
    const EPS: f64 = 1e-5;
    const MOMENTUM: f64 = 0.1;

    /// For this many features, in f32.
    #[track_caller]
    pub fn new(features: usize) -> ExplicitBatchNorm1d {
        ExplicitBatchNorm1d::from(super::BatchNorm1d::new(features))
    }
}

impl From<super::BatchNorm1d> for ExplicitBatchNorm1d {
    /// Shares the parameters and running statistics, with eps 1e-5 and momentum 0.1.
    fn from(layer: super::BatchNorm1d) -> ExplicitBatchNorm1d {
        let super::BatchNorm1d { gain, bias, running_mean, running_var, .. } = layer;
        let (training, raw, inv) = (true, None, None);
        ExplicitBatchNorm1d { gain, bias, running_mean, running_var, training, raw, inv }
    }
}

impl Explicit for ExplicitBatchNorm1d {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        let x = x.detach();
        if x.rank() != 2 {
            let why = "the input must be [n, features]";
            return Err(Error::shape("BatchNorm1d", &[&x.shape()], why));
        }
        no_grad(|| {
            let (mean, var) = match self.training {
                true => (x.try_mean(0, false)?, x.try_var(0, 0, false)?),
                false => (self.running_mean.detach(), self.running_var.detach()),
            };
            let inv = var.try_add(Self::EPS)?.try_rsqrt()?;
            let raw = x.try_sub(&mean)?.try_mul(&inv)?;
            if self.training {
                let n = x.size(0) as f64;
                let moved = |old: &Tensor, new: &Tensor| {
                    old.detach()
                        .try_mul(1.0 - Self::MOMENTUM)?
                        .try_add(&new.try_mul(Self::MOMENTUM)?)
                };
                self.running_mean.try_set(&moved(&self.running_mean, &mean)?)?;
                let unbiased = var.try_mul(n / (n - 1.0))?;
                self.running_var.try_set(&moved(&self.running_var, &unbiased)?)?;
            }
            let y = raw.try_mul(&self.gain)?.try_add(&self.bias)?;
            (self.raw, self.inv) = (Some(raw), Some(inv));
            Ok(y)
        })
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        let (raw, inv) = (kept("BatchNorm1d", &self.raw)?, kept("BatchNorm1d", &self.inv)?);
        no_grad(|| {
            let (dgain, dbias) = (dout.try_mul(raw)?.try_sum(0, false)?, dout.try_sum(0, false)?);
            let scale = self.gain.try_mul(inv)?;
            // Every x moves the mean and the variance, too: gain inv / n (n dout - sum of dout -
            // raw * sum of dout raw).
            let dx = match self.training {
                true => {
                    let n = dout.size(0) as f64;
                    let coupled = dbias.try_add(raw.try_mul(&dgain)?)?.try_div(n)?;
                    dout.try_sub(&coupled)?.try_mul(&scale)?
                }
                false => dout.try_mul(&scale)?,
            };
            self.gain.set_grad(Some(dgain))?;
            self.bias.set_grad(Some(dbias))?;
            Ok(dx)
        })
    }

    fn parameters(&self) -> Vec<Tensor> {
        vec![self.gain.clone(), self.bias.clone()]
    }

    fn set_training(&mut self, on: bool) {
        self.training = on;
    }
}

/// Mean cross-entropy, the mean of `-log softmax(logits)` at the targets: softmax and negative log
/// likelihood in one.
#[derive(Debug, Default)]
pub struct ExplicitCrossEntropy {
    p: Option<Tensor>,
    targets: Option<Tensor>,
}

impl ExplicitCrossEntropy {
    /// The loss of logits `[n, classes]` for targets `[n]`, i64.
    pub fn try_forward(&mut self, logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let logits = logits.detach();
        self.p = Some(logits.try_softmax(-1)?);
        self.targets = Some(targets.clone());
        logits.try_cross_entropy(targets)
    }

    /// The gradient of the logits.
    pub fn try_backward(&mut self) -> Result<Tensor> {
        let (p, targets) = (kept("CrossEntropy", &self.p)?, kept("CrossEntropy", &self.targets)?);
        let onehot = targets.try_one_hot(p.size(1))?.try_to_dtype(p.dtype())?;
        p.try_sub(&onehot)?.try_div(p.size(0) as f64) // dlogits = (p - onehot) / n
    }

    /// As [`ExplicitCrossEntropy::try_forward`], but panics with the error's text.
    #[track_caller]
    pub fn forward(&mut self, logits: &Tensor, targets: &Tensor) -> Tensor {
        self.try_forward(logits, targets).unwrap_or_else(|e| raise(e))
    }

    /// As [`ExplicitCrossEntropy::try_backward`], but panics with the error's text.
    #[track_caller]
    pub fn backward(&mut self) -> Tensor {
        self.try_backward().unwrap_or_else(|e| raise(e))
    }
}

/// A sequence of layers; backward runs them in reverse.
#[derive(Default)]
pub struct ExplicitNet {
    layers: Vec<Box<dyn Explicit>>,
}

impl ExplicitNet {
    /// No layers: the identity.
    pub fn new() -> ExplicitNet {
        ExplicitNet::default()
    }

    /// Appends a layer.
    pub fn with(mut self, layer: impl Explicit + 'static) -> ExplicitNet {
        self.layers.push(Box::new(layer));
        self
    }
}

impl Explicit for ExplicitNet {
    fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
        self.layers.iter_mut().try_fold(x.clone(), |x, layer| layer.try_forward(&x))
    }

    fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
        self.layers.iter_mut().rev().try_fold(dout.clone(), |dout, layer| layer.try_backward(&dout))
    }

    fn parameters(&self) -> Vec<Tensor> {
        self.layers.iter().flat_map(|layer| layer.parameters()).collect()
    }

    fn set_training(&mut self, on: bool) {
        self.layers.iter_mut().for_each(|layer| layer.set_training(on));
    }
}
