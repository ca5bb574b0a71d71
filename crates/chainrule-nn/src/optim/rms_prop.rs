//! RMSprop: learning rates scaled by the recent size of the gradient.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative, share};
use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update1, update2, update3};

/// Options of [`RmsProp`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct RmsPropOptions {
    /// Decay rate of the averages; 0.99.
    pub alpha: f64,
    /// Added to the denominator; 1e-8.
    pub eps: f64,
    /// Weight decay, added to the gradient (L2); 0.
    pub weight_decay: f64,
    /// Decay rate of the momentum; 0.
    pub momentum: f64,
    /// Centered: divides by the standard deviation of the gradient rather than by its root mean
    /// square; off.
    pub centered: bool,
}

impl Default for RmsPropOptions {
    fn default() -> Self {
        RmsPropOptions { alpha: 0.99, eps: 1e-8, weight_decay: 0.0, momentum: 0.0, centered: false }
    }
}

/// RMSprop (Hinton 2012; centered: Graves 2013), as PyTorch defines it:
///
/// `d = g + weight_decay * p`; `v = alpha * v + (1 - alpha) * d^2`;
/// `p -= lr * d / (sqrt(v) + eps)`. Centered, `v` is lessened by the square of
/// `m = alpha * m + (1 - alpha) * d`. With momentum `b = momentum * b + d / (sqrt(v) + eps)`;
/// `p -= lr * b`.
///
/// One difference: if rounding makes the centered `v - m^2` negative (a gradient that no longer
/// changes), it counts as 0; PyTorch's parameter becomes NaN.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Optimizer, RmsProp};
/// let w = Tensor::from([1.0f64]).parameter();
/// let mut optimizer = RmsProp::new(vec![w.clone()], 0.01);
/// (&w * 2.0).sum_all().backward();
/// optimizer.step().unwrap();
/// // the first step is lr / sqrt(1 - alpha), whatever the gradient
/// assert!((w.item() - 0.9).abs() < 1e-8);
/// ```
pub type RmsProp = Descent<RmsPropOptions>;

impl Rule for RmsPropOptions {
    const NAME: &'static str = "RmsProp";
    const NUMPY: &'static str = "_rms_prop({update}, alpha={alpha}, eps={eps}, weight_decay={weight_decay}, momentum={momentum}, centered={centered})";
    const STEPS: u64 = 7;

    fn check(&self) -> Result<()> {
        share(Self::NAME, "alpha", self.alpha)?;
        not_negative(Self::NAME, "eps", self.eps)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        not_negative(Self::NAME, "momentum", self.momentum)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        let mut slots: Slots = smallvec![("square_avg", 0.0)];
        if self.momentum != 0.0 {
            slots.push(("momentum_buffer", 0.0));
        }
        if self.centered {
            slots.push(("grad_avg", 0.0));
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
        let [lr, alpha, fresh, eps] =
            [at.lr, self.alpha, 1.0 - self.alpha, self.eps].map(T::from_f64);
        let [momentum, decay] = [self.momentum, self.weight_decay].map(T::from_f64);
        let (decays, centered) = (self.weight_decay != 0.0, self.centered);
        let descent = |p: T, g: T| if decays { g + decay * p } else { g };
        let square = |v: T, d: T| alpha * v + fresh * d * d;
        let mean = |m: T, d: T| m + fresh * (d - m);
        let variance = |v: T, m: T| {
            let x = v - m * m;
            if x < T::ZERO { T::ZERO } else { x }
        };
        in_pieces(p, g, state, |p, g, state| match state {
            [v] => update1(p, g, v, |p, g, v| {
                let d = descent(p, g);
                let v = square(v, d);
                (p - lr * d / (v.sqrt() + eps), v)
            }),
            [v, m] if centered => update2(p, g, v, m, |p, g, v, m| {
                let d = descent(p, g);
                let (v, m) = (square(v, d), mean(m, d));
                (p - lr * d / (variance(v, m).sqrt() + eps), v, m)
            }),
            [v, b] => update2(p, g, v, b, |p, g, v, b| {
                let d = descent(p, g);
                let v = square(v, d);
                let b = momentum * b + d / (v.sqrt() + eps);
                (p - lr * b, v, b)
            }),
            [v, b, m] => update3(p, g, v, b, m, |p, g, v, b, m| {
                let d = descent(p, g);
                let (v, m) = (square(v, d), mean(m, d));
                let b = momentum * b + d / (variance(v, m).sqrt() + eps);
                (p - lr * b, v, b, m)
            }),
            _ => unreachable!("it keeps one to three arrays"),
        });
        Ok(())
    }

    erased!();
}
