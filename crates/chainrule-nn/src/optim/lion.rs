//! Lion: the sign of the momentum.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative, share};
use crate::dtype::Stored;
use crate::error::Result;
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update1};

/// Options of [`Lion`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct LionOptions {
    /// Decay rates of the direction and of the momentum; (0.9, 0.99).
    pub betas: (f64, f64),
    /// Decoupled weight decay: each step subtracts `lr * weight_decay` times the parameter; 0.
    pub weight_decay: f64,
}

impl Default for LionOptions {
    fn default() -> Self {
        LionOptions { betas: (0.9, 0.99), weight_decay: 0.0 }
    }
}

/// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms"):
///
/// `c = b1 * m + (1 - b1) * g`; `p -= lr * (sign(c) + weight_decay * p)`;
/// `m = b2 * m + (1 - b2) * g`, with the betas `b1` and `b2`.
///
/// Every step moves every weight by the learning rate, which should therefore be three to ten times
/// smaller than AdamW's, and the weight decay that much larger. The sign of 0 is 0; a NaN gradient
/// makes the weight NaN.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Lion, Optimizer};
/// let w = Tensor::from([1.0f64, -1.0]).parameter();
/// let mut lion = Lion::new(vec![w.clone()], 0.25);
/// (&w * &w).sum_all().backward();
/// lion.step().unwrap();
/// assert_eq!(w.to_vec::<f64>(), [0.75, -0.75]);
/// ```
pub type Lion = Descent<LionOptions>;

impl Rule for LionOptions {
    const NAME: &'static str = "Lion";
    const NUMPY: &'static str = "_lion({update}, betas={betas}, weight_decay={weight_decay})";
    const STEPS: u64 = 8;

    fn check(&self) -> Result<()> {
        share(Self::NAME, "betas.0", self.betas.0)?;
        share(Self::NAME, "betas.1", self.betas.1)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        smallvec![("exp_avg", 0.0)]
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        let (b1, b2) = self.betas;
        let [b1, fresh1, b2, fresh2] = [b1, 1.0 - b1, b2, 1.0 - b2].map(T::from_f64);
        let [lr, keep] = [at.lr, 1.0 - at.lr * self.weight_decay].map(T::from_f64);
        let sign = |c: T| {
            let least = if c < T::ZERO { -T::ONE } else { c };
            if c > T::ZERO { T::ONE } else { least }
        };
        in_pieces(p, g, state, |p, g, state| {
            let [m] = state else { unreachable!("it keeps one array") };
            update1(p, g, m, |p, g, m| {
                (p * keep - lr * sign(b1 * m + fresh1 * g), b2 * m + fresh2 * g)
            });
        });
        Ok(())
    }

    erased!();
}
