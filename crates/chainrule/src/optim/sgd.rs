//! Stochastic gradient descent.

use super::{Optimizer, checked_lr, checked_parameters, no_gradients};
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result, raise};
use crate::kernels::map;
use crate::tensor::Tensor;

/// What [`Sgd`] does beside following the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SgdOptions {
    /// How much of the last step is kept, from 0 up; 0 for none.
    pub momentum: f64,
    /// The share of the gradient that does not enter the momentum.
    pub dampening: f64,
    /// Adds this times the parameter to its gradient.
    pub weight_decay: f64,
    /// Looks ahead along the momentum (Nesterov 1983). Needs momentum and no dampening.
    pub nesterov: bool,
}

/// Stochastic gradient descent with momentum, as PyTorch defines it:
///
/// `d = g + weight_decay * p`; `v = momentum * v + (1 - dampening) * d`, which starts as `d`; `p -= lr * v`, or with
/// Nesterov `p -= lr * (d + momentum * v)`. Without momentum `p -= lr * d`, in one pass over the parameter.
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
#[derive(Debug)]
pub struct Sgd {
    parameters: Vec<Tensor>,
    lr: f64,
    options: SgdOptions,
    velocity: Vec<Option<Tensor>>,
}

impl Sgd {
    /// Plain descent. Panics for a learning rate that is none; [`Sgd::try_new`] returns the error.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, lr: f64) -> Sgd {
        match Sgd::try_new(parameters, lr, SgdOptions::default()) {
            Ok(sgd) => sgd,
            Err(e) => raise(e),
        }
    }

    /// Descent with options. Errors for a learning rate or an option out of range, and for no parameters.
    pub fn try_new(parameters: Vec<Tensor>, lr: f64, options: SgdOptions) -> Result<Sgd> {
        let lr = checked_lr("Sgd", lr)?;
        let SgdOptions { momentum, dampening, weight_decay, nesterov } = options;
        for (name, x) in [("momentum", momentum), ("weight_decay", weight_decay)] {
            if !(x.is_finite() && x >= 0.0) {
                return Err(Error::argument(
                    "Sgd",
                    format!("{name} must be 0 or more and finite, it is {x}"),
                ));
            }
        }
        if !dampening.is_finite() {
            return Err(Error::argument(
                "Sgd",
                format!("dampening must be finite, it is {dampening}"),
            ));
        }
        if nesterov && (momentum == 0.0 || dampening != 0.0) {
            return Err(Error::argument("Sgd", "nesterov needs momentum above 0 and no dampening"));
        }
        let parameters = checked_parameters("Sgd", parameters)?;
        let velocity = vec![None; parameters.len()];
        Ok(Sgd { parameters, lr, options, velocity })
    }

    /// The update of one parameter in one pass: `p -= lr * g`.
    fn plain<T>(&self, p: &Tensor, g: &Tensor, minus_lr: T) -> Result<()>
    where
        T: Stored + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let g = g.value_ref().contiguous()?;
        p.update::<T>("Sgd", |p| map::axpy(p, minus_lr, g.slice::<T>().expect("made contiguous")))
    }

    /// The direction of the step of parameter `i`.
    fn direction(&mut self, i: usize, g: &Tensor) -> Result<Tensor> {
        let SgdOptions { momentum, dampening, weight_decay, nesterov } = self.options;
        let p = self.parameters[i].detach();
        let d = if weight_decay == 0.0 { g.clone() } else { g.try_add(&p.try_mul(weight_decay)?)? };
        if momentum == 0.0 {
            return Ok(d);
        }
        let v = match &self.velocity[i] {
            None => d.clone(),
            Some(v) => v.try_mul(momentum)?.try_add(&d.try_mul(1.0 - dampening)?)?,
        };
        self.velocity[i] = Some(v.clone());
        if nesterov { d.try_add(&v.try_mul(momentum)?) } else { Ok(v) }
    }
}

impl Optimizer for Sgd {
    fn step(&mut self) -> Result<()> {
        let mut stepped = false;
        for i in 0..self.parameters.len() {
            let Some(g) = self.parameters[i].grad() else { continue };
            stepped = true;
            let direction = crate::tensor::no_grad(|| self.direction(i, &g.detach()))?;
            let p = &self.parameters[i];
            match p.dtype() {
                DType::F32 => self.plain(p, &direction, -self.lr as f32)?,
                DType::F64 => self.plain(p, &direction, -self.lr)?,
                _ => unreachable!("parameters are floats"),
            }
        }
        if stepped { Ok(()) } else { Err(no_gradients("Sgd")) }
    }

    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    fn lr(&self) -> f64 {
        self.lr
    }

    fn set_lr(&mut self, lr: f64) -> Result<()> {
        self.lr = checked_lr("Sgd", lr)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_errors() {
        let w = || vec![Tensor::from([1.0f32]).parameter()];
        for lr in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let text = Sgd::try_new(w(), lr, SgdOptions::default()).unwrap_err().to_string();
            assert!(text.starts_with("Sgd: the learning rate"), "{text}");
        }
        let options = SgdOptions { nesterov: true, ..SgdOptions::default() };
        assert!(Sgd::try_new(w(), 0.1, options).is_err());
        assert!(Sgd::try_new(Vec::new(), 0.1, SgdOptions::default()).is_err());
        assert!(Sgd::try_new(vec![Tensor::from([1.0f32])], 0.1, SgdOptions::default()).is_err());
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
