//! An optimizer with gradient clipping.

use super::{Optimizer, clip};
use crate::error::{Error, Result, raise};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// Wraps an optimizer with [`clip_grad_norm`](super::clip_grad_norm) before each step; eager or
/// inside a program, with the same bits.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Clipped, Optimizer, Sgd};
/// let w = Tensor::from([0.0f64, 0.0]).parameter();
/// let mut sgd = Clipped::try_new(Box::new(Sgd::new(vec![w.clone()], 1.0)), 5.0)?;
/// (&w * Tensor::from([30.0f64, 40.0])).sum_all().backward();
/// sgd.step()?;
/// assert_eq!(sgd.norm().item(), 50.0);
/// assert!((w.to_vec::<f64>()[1] + 4.0).abs() < 1e-6);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct Clipped<'a> {
    inner: Box<dyn Optimizer + 'a>,
    max_norm: f64,
    norm: Tensor,
}

impl<'a> Clipped<'a> {
    /// Clips gradients to the norm `max_norm`.
    #[track_caller]
    pub fn new(inner: Box<dyn Optimizer + 'a>, max_norm: f64) -> Clipped<'a> {
        Clipped::try_new(inner, max_norm).unwrap_or_else(|e| raise(e))
    }

    /// As [`Clipped::new`], but returns the error: for a norm that is not above 0.
    pub fn try_new(inner: Box<dyn Optimizer + 'a>, max_norm: f64) -> Result<Clipped<'a>> {
        if max_norm.is_nan() || max_norm <= 0.0 {
            let why = format!("gradients are clipped to a norm above 0, not {max_norm}");
            return Err(Error::argument("Clipped", why));
        }
        let norm = Tensor::scalar(f64::NAN).buffer().named("last_grad_norm");
        Ok(Clipped { inner, max_norm, norm })
    }

    /// Gradient norm of the last step before clipping: a buffer, which each step writes.
    pub fn norm(&self) -> &Tensor {
        &self.norm
    }
}

impl Optimizer for Clipped<'_> {
    fn step(&mut self) -> Result<()> {
        clip::clip_and_keep(self.inner.parameters(), self.max_norm, &self.norm)?;
        self.inner.step()
    }

    fn parameters(&self) -> &[Tensor] {
        self.inner.parameters()
    }

    fn lr(&self) -> f64 {
        self.inner.lr()
    }

    fn set_lr(&mut self, lr: f64) -> Result<()> {
        self.inner.set_lr(lr)
    }

    fn group_lrs(&self) -> Vec<f64> {
        self.inner.group_lrs()
    }

    fn state_dict(&self) -> StateDict {
        self.inner.state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.inner.load_state_dict(state)
    }
}
