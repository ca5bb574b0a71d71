//! Stochastic gradient descent.

use crate::param::Parameters;
use smallvec::smallvec;

use super::rule::{At, Rule, Slots, erased};
use super::{Descent, not_negative};
use crate::dtype::Stored;
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update0, update1};

/// Options of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq, Default, Parameters)]
pub struct SgdOptions {
    /// Momentum, from 0 up; 0 for none.
    pub momentum: f64,
    /// Dampening: share of the gradient that does not enter the momentum.
    pub dampening: f64,
    /// Weight decay, added to the gradient (L2).
    pub weight_decay: f64,
    /// Nesterov momentum (Nesterov 1983). Needs momentum and no dampening.
    pub nesterov: bool,
}

/// Stochastic gradient descent with momentum, as PyTorch defines it:
///
/// `d = g + weight_decay * p`; `v = momentum * v + (1 - dampening) * d`, which starts as `d`;
/// `p -= lr * v`, or with Nesterov `p -= lr * (d + momentum * v)`. Without momentum `p -= lr * d`.
/// One pass over the parameter in any case.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::{Optimizer, Sgd};
/// let w = Tensor::from([1.0f32]).parameter();
/// let mut sgd = Sgd::new(vec![w.clone()], 0.1);
/// (&w * 2.0).sum_all().backward();
/// sgd.step().unwrap();
/// assert_eq!(w.to_vec::<f32>(), [0.8]);
/// ```
pub type Sgd = Descent<SgdOptions>;

impl Rule for SgdOptions {
    const NAME: &'static str = "Sgd";
    const NUMPY: &'static str = "_sgd({update}, momentum={momentum}, dampening={dampening}, weight_decay={weight_decay}, nesterov={nesterov})";
    const STEPS: u64 = 2;

    fn check(&self) -> Result<()> {
        not_negative(Self::NAME, "momentum", self.momentum)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        if !self.dampening.is_finite() {
            let why = format!("dampening must be finite, it is {}", self.dampening);
            return Err(Error::argument(Self::NAME, why));
        }
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            let why = "nesterov needs momentum above 0 and no dampening";
            return Err(Error::argument(Self::NAME, why));
        }
        Ok(())
    }

    fn weight_decay(&mut self) -> Option<&mut f64> {
        Some(&mut self.weight_decay)
    }

    fn slots(&self) -> Slots {
        if self.momentum == 0.0 { smallvec![] } else { smallvec![("momentum_buffer", 0.0)] }
    }

    fn is_plain(&self) -> bool {
        self.momentum == 0.0 && self.weight_decay == 0.0
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        let [lr, momentum, decay] = [at.lr, self.momentum, self.weight_decay].map(T::from_f64);
        // The momentum is initialised to the whole gradient.
        let fresh = T::from_f64(if at.step == 1 { 1.0 } else { 1.0 - self.dampening });
        let (decays, nesterov) = (self.weight_decay != 0.0, self.nesterov);
        let descent = |p: T, g: T| if decays { g + decay * p } else { g };
        in_pieces(p, g, state, |p, g, state| match state {
            [] => update0(p, g, |p, g| p - lr * descent(p, g)),
            [v] => update1(p, g, v, |p, g, v| {
                let d = descent(p, g);
                let v = momentum * v + fresh * d;
                (p - lr * if nesterov { d + momentum * v } else { v }, v)
            }),
            _ => unreachable!("momentum is all it keeps"),
        });
        Ok(())
    }

    erased!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Optimizer;
    use crate::tensor::Tensor;

    #[test]
    fn impossible_settings_are_errors() {
        let w = || vec![Tensor::from([1.0f32]).parameter()];
        for lr in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let text = Sgd::try_new(w(), lr).unwrap_err().to_string();
            assert!(text.starts_with("Sgd: the learning rate"), "{text}");
        }
        let options = SgdOptions { nesterov: true, ..SgdOptions::default() };
        assert!(Sgd::try_with_options(w(), 0.1, options).is_err());
        assert!(Sgd::try_new(Vec::new(), 0.1).is_err());
        assert!(Sgd::try_new(vec![Tensor::from([1.0f32])], 0.1).is_err());
    }

    #[test]
    fn a_step_without_gradients_is_an_error() {
        let w = Tensor::from([1.0f32]).parameter();
        let mut sgd = Sgd::new(vec![w.clone()], 0.1);
        assert!(sgd.step().unwrap_err().to_string().contains("no parameter has a gradient"));
        assert_eq!(w.item(), 1.0);
    }

    #[test]
    fn a_step_leaves_other_holders_of_the_value_alone() {
        let w = Tensor::from([1.0f32]).parameter();
        let before = w.detach();
        (&w * 1.0).sum_all().backward();
        Sgd::new(vec![w.clone()], 0.5).step().unwrap();
        assert_eq!((before.item(), w.item()), (1.0, 0.5));
    }
}
