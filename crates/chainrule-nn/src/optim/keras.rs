//! The optimizers of Keras, for programs written for it: the same families, with `eps` in other
//! places and a decaying rate.

use crate::param::Parameters;
use smallvec::smallvec;

use super::Descent;
use super::rule::{At, Rule, Slots, erased};
use crate::dtype::Stored;
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::{in_pieces, update0, update1, update2};

/// Formula of an optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Parameters)]
pub enum KerasRule {
    /// `v = momentum * v - lr * g`; `p += v`, or with Nesterov `p += momentum * v - lr * g`.
    #[default]
    Sgd,
    /// `p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)`.
    Adam,
    /// Nesterov Adam, with `beta1 * m + (1 - beta1) * g` instead of `m`.
    Nadam,
    /// `v = rho * v + (1 - rho) * g^2`; `p -= lr * g / sqrt(v + eps)`.
    RmsProp,
}

/// Settings of a Keras optimizer. The rate is one of them and may have any sign, since faulty
/// programs must run unchanged; the optimizer's own rate must be 1.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct KerasOptions {
    /// The formula.
    pub rule: KerasRule,
    /// Initial learning rate.
    pub lr: f64,
    /// The rate of step `t`, from 0, is `lr / (1 + decay * t)`.
    pub decay: f64,
    /// Momentum; for [`KerasRule::Sgd`].
    pub momentum: f64,
    /// Nesterov momentum; for [`KerasRule::Sgd`].
    pub nesterov: bool,
    /// Decay rate of the average of gradients.
    pub beta1: f64,
    /// Decay rate of the average of their squares; `rho` of RMSprop.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
}

impl Default for KerasOptions {
    fn default() -> Self {
        KerasOptions {
            rule: KerasRule::Sgd,
            lr: 0.01,
            decay: 0.0,
            momentum: 0.0,
            nesterov: false,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-7,
        }
    }
}

/// An optimizer as Keras defines it.
pub type Keras = Descent<KerasOptions>;

impl Rule for KerasOptions {
    const NAME: &'static str = "Keras";
    const NUMPY: &'static str = "_keras({update}, rule={rule}, lr={lr}, decay={decay}, momentum={momentum}, nesterov={nesterov}, beta1={beta1}, beta2={beta2}, eps={eps})";
    const STEPS: u64 = 8;

    fn check(&self) -> Result<()> {
        let numbers = [self.lr, self.decay, self.momentum, self.beta1, self.beta2, self.eps];
        if numbers.iter().all(|x| x.is_finite()) {
            return Ok(());
        }
        Err(Error::argument(Self::NAME, "the settings must be finite"))
    }

    /// Keras adds weight decay to the loss.
    fn weight_decay(&mut self) -> Option<&mut f64> {
        None
    }

    fn slots(&self) -> Slots {
        match self.rule {
            KerasRule::Sgd if self.momentum == 0.0 => smallvec![],
            KerasRule::Sgd => smallvec![("velocity", 0.0)],
            KerasRule::Adam | KerasRule::Nadam => smallvec![("m", 0.0), ("v", 0.0)],
            KerasRule::RmsProp => smallvec![("v", 0.0)],
        }
    }

    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()> {
        let rate = at.lr * self.lr / (1.0 + self.decay * (at.step - 1) as f64);
        let power = |b: f64| b.powi(i32::try_from(at.step).unwrap_or(i32::MAX));
        let corrected = rate * (1.0 - power(self.beta2)).sqrt() / (1.0 - power(self.beta1));
        let [lr, momentum, b1, f1, b2, f2, eps, a] = [
            rate,
            self.momentum,
            self.beta1,
            1.0 - self.beta1,
            self.beta2,
            1.0 - self.beta2,
            self.eps,
            corrected,
        ]
        .map(T::from_f64);
        let (nesterov, rule) = (self.nesterov, self.rule);
        in_pieces(p, g, state, |p, g, state| match state {
            [] => update0(p, g, |p, g| p - lr * g),
            [v] if rule == KerasRule::Sgd => update1(p, g, v, |p, g, v| {
                let v = momentum * v - lr * g;
                (p + if nesterov { momentum * v - lr * g } else { v }, v)
            }),
            [v] => update1(p, g, v, |p, g, v| {
                let v = b2 * v + f2 * g * g;
                (p - lr * g / (v + eps).sqrt(), v)
            }),
            [m, v] => update2(p, g, m, v, |p, g, m, v| {
                let (m, v) = (b1 * m + f1 * g, b2 * v + f2 * g * g);
                let along = if rule == KerasRule::Nadam { b1 * m + f1 * g } else { m };
                (p - a * along / (v.sqrt() + eps), m, v)
            }),
            _ => unreachable!("it keeps two arrays at most"),
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

    fn after(steps: usize, options: KerasOptions) -> f64 {
        let w = Tensor::from([1.0f64]).parameter();
        let mut optimizer = Keras::with_options(vec![w.clone()], 1.0, options);
        for _ in 0..steps {
            optimizer.zero_grad();
            (&w * 3.0).sum_all().backward();
            optimizer.step().unwrap();
        }
        w.item()
    }

    /// Compared with the formulas of its documentation, for a gradient of 3.
    #[test]
    fn formulas_are_those_of_keras() {
        let plain = KerasOptions { lr: 0.1, decay: 1.0, ..KerasOptions::default() };
        assert!((after(2, plain) - (1.0 - 0.3 - 0.15)).abs() < 1e-12);
        let ball = KerasOptions { lr: 0.1, momentum: 0.5, ..KerasOptions::default() };
        assert!((after(2, ball) - (1.0 - 0.3 - 0.45)).abs() < 1e-12);
        let nesterov = KerasOptions { nesterov: true, ..ball };
        assert!((after(1, nesterov) - (1.0 - 0.45)).abs() < 1e-12);
        let adam = KerasOptions { rule: KerasRule::Adam, lr: 0.1, eps: 0.5, ..ball };
        let v1 = (0.001f64 * 9.0).sqrt();
        let want = 1.0 - 0.1 * 0.001f64.sqrt() / 0.1 * (0.3 / (v1 + 0.5));
        assert!((after(1, adam) - want).abs() < 1e-12);
        let nadam = KerasOptions { rule: KerasRule::Nadam, ..adam };
        let want = 1.0 - 0.1 * 0.001f64.sqrt() / 0.1 * ((0.27 + 0.3) / (v1 + 0.5));
        assert!((after(1, nadam) - want).abs() < 1e-12);
        let rms = KerasOptions { rule: KerasRule::RmsProp, beta2: 0.9, ..adam };
        assert!((after(1, rms) - (1.0 - 0.3 / (0.9f64 + 0.5).sqrt())).abs() < 1e-12);
    }

    /// Not the decay of the rate, which is the only one here.
    #[test]
    fn weight_decay_is_refused() {
        let w = Tensor::from([1.0f64]).parameter();
        let group = crate::optim::Group::new(vec![w]).weight_decay(0.1);
        let e = Keras::try_with_groups(vec![group], 1.0, KerasOptions::default()).unwrap_err();
        assert!(e.to_string().contains("no weight decay"), "{e}");
    }

    #[test]
    fn a_negative_rate_climbs() {
        let up = KerasOptions { lr: -0.1, ..KerasOptions::default() };
        assert!((after(1, up) - 1.3).abs() < 1e-12);
    }
}
