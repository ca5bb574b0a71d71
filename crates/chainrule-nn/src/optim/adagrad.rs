//! Adagrad: learning rates scaled by the sum of all squared gradients.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative};
use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update1};

/// Options of [`Adagrad`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct AdagradOptions {
    /// Learning rate decay: divides the rate by `1 + lr_decay * (step - 1)`; 0.
    pub lr_decay: f64,
    /// Weight decay, added to the gradient (L2); 0.
    pub weight_decay: f64,
    /// Initial sum of squares; 0.
    pub initial_accumulator_value: f64,
    /// Added to the denominator; 1e-10.
    pub eps: f64,
}

impl Default for AdagradOptions {
    fn default() -> Self {
        AdagradOptions {
            lr_decay: 0.0,
            weight_decay: 0.0,
            initial_accumulator_value: 0.0,
            eps: 1e-10,
        }
    }
}

/// Adagrad (Duchi, Hazan and Singer 2011), as PyTorch defines it:
///
/// `d = g + weight_decay * p`; `s = s + d^2`; `p -= lr / (1 + lr_decay * (step - 1)) * d /
/// (sqrt(s) + eps)`.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Adagrad, Optimizer};
/// let w = Tensor::from([1.0f64]).parameter();
/// let mut optimizer = Adagrad::new(vec![w.clone()], 0.25);
/// (&w * 2.0).sum_all().backward();
/// optimizer.step().unwrap();
/// assert!((w.item() - 0.75).abs() < 1e-9); // the first step is lr, whatever the gradient
/// ```
pub type Adagrad = Descent<AdagradOptions>;

impl Rule for AdagradOptions {
    const NAME: &'static str = "Adagrad";
    const NUMPY: &'static str =
        "_adagrad({update}, lr_decay={lr_decay}, weight_decay={weight_decay}, eps={eps})";
    const STEPS: u64 = 7;

    fn check(&self) -> Result<()> {
        not_negative(Self::NAME, "lr_decay", self.lr_decay)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        not_negative(Self::NAME, "initial_accumulator_value", self.initial_accumulator_value)?;
        not_negative(Self::NAME, "eps", self.eps)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        smallvec![("sum", self.initial_accumulator_value)]
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        let lr = at.lr / (1.0 + (at.step - 1) as f64 * self.lr_decay);
        let [lr, decay, eps] = [lr, self.weight_decay, self.eps].map(T::from_f64);
        let decays = self.weight_decay != 0.0;
        in_pieces(p, g, state, |p, g, state| {
            let [sum] = state else { unreachable!("it keeps one array") };
            update1(p, g, sum, |p, g, s| {
                let d = if decays { g + decay * p } else { g };
                let s = s + d * d;
                (p - lr * d / (s.sqrt() + eps), s)
            });
        });
        Ok(())
    }

    erased!();
}
