//! Adam: running averages of the gradient and of its square.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative, share};
use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update2, update3};

/// Options of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct AdamOptions {
    /// Decay rates of the averages of the gradient and of its square; (0.9, 0.999).
    pub betas: (f64, f64),
    /// Added to the denominator; 1e-8.
    pub eps: f64,
    /// Weight decay, added to the gradient (L2); 0. For decoupled decay see
    /// [`AdamW`](super::AdamW).
    pub weight_decay: f64,
    /// AMSGrad: divides by the largest average of squares so far (Reddi, Kale and Kumar 2018); off.
    pub amsgrad: bool,
}

impl Default for AdamOptions {
    fn default() -> Self {
        AdamOptions { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, amsgrad: false }
    }
}

/// Adam (Kingma and Ba 2015), as PyTorch defines it:
///
/// `d = g + weight_decay * p`; `m = b1 * m + (1 - b1) * d`; `v = b2 * v + (1 - b2) * d^2`;
/// `p -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)` at step `t`, with the betas `b1` and
/// `b2`.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Adam, Optimizer};
/// let w = Tensor::from([1.0f64]).parameter();
/// let mut adam = Adam::new(vec![w.clone()], 0.25);
/// (&w * 2.0).sum_all().backward();
/// adam.step().unwrap();
/// assert!((w.item() - 0.75).abs() < 1e-8); // the first step is lr, whatever the gradient
/// ```
pub type Adam = Descent<AdamOptions>;

impl AdamOptions {
    /// An error, with the name of `op`, for an option out of its range.
    pub(super) fn check_for(&self, op: &'static str) -> Result<()> {
        share(op, "betas.0", self.betas.0)?;
        share(op, "betas.1", self.betas.1)?;
        not_negative(op, "eps", self.eps)?;
        not_negative(op, "weight_decay", self.weight_decay)
    }

    /// Adam update with L2 decay in the gradient, and a factor `keep` on the parameter for
    /// decoupled decay.
    pub(super) fn update_keeping<T: Real + Stored>(
        &self,
        at: At,
        keep: f64,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) {
        let (b1, b2) = self.betas;
        let t = at.step as f64;
        let size = at.lr / (1.0 - b1.powf(t));
        let correction = 1.0 / (1.0 - b2.powf(t)).sqrt();
        let [size, correction, keep] = [size, correction, keep].map(T::from_f64);
        let [fresh1, b2, fresh2] = [1.0 - b1, b2, 1.0 - b2].map(T::from_f64);
        let [eps, decay] = [self.eps, self.weight_decay].map(T::from_f64);
        let decays = self.weight_decay != 0.0;
        let moments = |p: T, g: T, m: T, v: T| {
            let d = if decays { g + decay * p } else { g };
            (m + fresh1 * (d - m), b2 * v + fresh2 * d * d)
        };
        let next = |p: T, m: T, v: T| p * keep - size * m / (v.sqrt() * correction + eps);
        in_pieces(p, g, state, |p, g, state| match state {
            [m, v] => update2(p, g, m, v, |p, g, m, v| {
                let (m, v) = moments(p, g, m, v);
                (next(p, m, v), m, v)
            }),
            [m, v, most] => update3(p, g, m, v, most, |p, g, m, v, most| {
                let (m, v) = moments(p, g, m, v);
                let most = if v <= most { most } else { v };
                (next(p, m, most), m, v, most)
            }),
            _ => unreachable!("it keeps two or three arrays"),
        });
    }
}

impl Rule for AdamOptions {
    const NAME: &'static str = "Adam";
    const NUMPY: &'static str =
        "_adam({update}, betas={betas}, eps={eps}, weight_decay={weight_decay})";
    const STEPS: u64 = 12;

    fn check(&self) -> Result<()> {
        self.check_for(Self::NAME)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        let mut slots: Slots = smallvec![("exp_avg", 0.0), ("exp_avg_sq", 0.0)];
        if self.amsgrad {
            slots.push(("max_exp_avg_sq", 0.0));
        }
        slots
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        self.update_keeping(at, 1.0, p, g, state);
        Ok(())
    }

    erased!();
}
