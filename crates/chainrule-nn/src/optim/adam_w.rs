//! AdamW: Adam with decoupled weight decay.

use super::Descent;
use super::adam::AdamOptions;
use super::rule::{At, Rule, Slots, erased};
use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::param::Parameters;

/// Options of [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct AdamWOptions {
    /// Decay rates of the averages of the gradient and of its square; (0.9, 0.999).
    pub betas: (f64, f64),
    /// Added to the denominator; 1e-8.
    pub eps: f64,
    /// Decoupled weight decay: each step subtracts `lr * weight_decay` times the parameter; 0.01.
    pub weight_decay: f64,
    /// AMSGrad: divides by the largest average of squares so far (Reddi, Kale and Kumar 2018); off.
    pub amsgrad: bool,
}

impl Default for AdamWOptions {
    fn default() -> Self {
        AdamWOptions { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.01, amsgrad: false }
    }
}

/// AdamW (Loshchilov and Hutter 2019), as PyTorch defines it: `p -= lr * weight_decay * p`, then
/// the [`Adam`](super::Adam) update of the bare gradient.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{AdamW, Optimizer};
/// let w = Tensor::from([1.0f64]).parameter();
/// let mut adamw = AdamW::new(vec![w.clone()], 0.25);
/// (&w * 2.0).sum_all().backward();
/// adamw.step().unwrap();
/// assert!((w.item() - (1.0 - 0.25 * 0.01 - 0.25)).abs() < 1e-8);
/// ```
pub type AdamW = Descent<AdamWOptions>;

impl AdamWOptions {
    fn plain(&self) -> AdamOptions {
        let AdamWOptions { betas, eps, amsgrad, .. } = *self;
        AdamOptions { betas, eps, weight_decay: 0.0, amsgrad }
    }
}

impl Rule for AdamWOptions {
    const NAME: &'static str = "AdamW";
    const NUMPY: &'static str =
        "_adam_w({update}, betas={betas}, eps={eps}, weight_decay={weight_decay})";
    const STEPS: u64 = 12;

    fn check(&self) -> Result<()> {
        AdamOptions { weight_decay: self.weight_decay, ..self.plain() }.check_for(Self::NAME)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        self.plain().slots()
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        self.plain().update_keeping(at, 1.0 - at.lr * self.weight_decay, p, g, state);
        Ok(())
    }

    erased!();
}
