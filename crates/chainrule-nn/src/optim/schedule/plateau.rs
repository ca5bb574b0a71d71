//! Reduction of the learning rate on a plateau of a metric.

use super::super::descent::state;
use super::{Optimizer, checked_factor};
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// Whether a metric is to fall or to rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Lower is better: a loss.
    Min,
    /// Higher is better: an accuracy.
    Max,
}

/// Options of [`Plateau`], with the names and defaults of PyTorch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlateauOptions {
    /// Direction in which the metric is better; `Min`.
    pub goal: Goal,
    /// Factor of the rate; 0.1.
    pub factor: f64,
    /// Patience: metrics without improvement that are tolerated; 10.
    pub patience: u64,
    /// Least improvement; 1e-4.
    pub threshold: f64,
    /// Whether the threshold is absolute rather than relative to the best; off.
    pub absolute: bool,
    /// Cooldown: metrics ignored after a reduction; 0.
    pub cooldown: u64,
    /// Lowest rate; 0.
    pub min_lr: f64,
    /// Least change of the rate that is made; 1e-8.
    pub eps: f64,
}

impl Default for PlateauOptions {
    fn default() -> Self {
        PlateauOptions {
            goal: Goal::Min,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            absolute: false,
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
        }
    }
}

/// Multiplies the rate by `factor` after more than `patience` metrics in a row without improvement:
/// PyTorch's `ReduceLROnPlateau`.
///
/// It multiplies the optimizer's current rate, so groups keep their ratio; `min_lr` bounds the
/// optimizer's rate. A NaN is no improvement.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::schedule::{Plateau, PlateauOptions};
/// use chainrule::optim::{Optimizer, Sgd};
/// let mut sgd = Sgd::new(vec![Tensor::from([1.0f32]).parameter()], 0.5);
/// let mut plateau =
///     Plateau::new(PlateauOptions { patience: 1, factor: 0.5, ..PlateauOptions::default() })?;
/// for loss in [1.0, 0.9, 0.9, 0.9] {
///     plateau.step(loss, &mut sgd)?;
/// }
/// assert_eq!(sgd.lr(), 0.25);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plateau {
    options: PlateauOptions,
    best: Option<f64>,
    bad: u64,
    cooling: u64,
}

impl Plateau {
    /// A fresh plateau. Errors for options out of range.
    pub fn new(options: PlateauOptions) -> Result<Plateau> {
        if !(0.0..1.0).contains(&options.factor) {
            let why = format!("factor must be 0 or more and below 1, it is {}", options.factor);
            return Err(Error::argument("Plateau", why));
        }
        checked_factor("Plateau", "threshold", options.threshold)?;
        checked_factor("Plateau", "min_lr", options.min_lr)?;
        checked_factor("Plateau", "eps", options.eps)?;
        Ok(Plateau { options, best: None, bad: 0, cooling: 0 })
    }

    /// Records a metric, and reduces the rate if it is time.
    pub fn step(&mut self, metric: f64, optimizer: &mut dyn Optimizer) -> Result<()> {
        if self.is_better(metric) {
            (self.best, self.bad) = (Some(metric), 0);
        } else {
            self.bad += 1;
        }
        if self.cooling > 0 {
            self.cooling -= 1;
            self.bad = 0;
        }
        if self.bad > self.options.patience {
            let old = optimizer.lr();
            let new = (old * self.options.factor).max(self.options.min_lr);
            if old - new > self.options.eps {
                optimizer.set_lr(new)?;
            }
            (self.cooling, self.bad) = (self.options.cooldown, 0);
        }
        Ok(())
    }

    /// Best metric so far.
    pub fn best(&self) -> Option<f64> {
        self.best
    }

    fn is_better(&self, metric: f64) -> bool {
        let best = match (self.best, self.options.goal) {
            (Some(best), _) => best,
            (None, Goal::Min) => f64::INFINITY,
            (None, Goal::Max) => f64::NEG_INFINITY,
        };
        let margin = self.options.threshold;
        match (self.options.goal, self.options.absolute) {
            (Goal::Min, false) => metric < best * (1.0 - margin),
            (Goal::Min, true) => metric < best - margin,
            (Goal::Max, false) => metric > best * (1.0 + margin),
            (Goal::Max, true) => metric > best + margin,
        }
    }

    /// The state to resume from: `best` (if there is one), `bad` and `cooling`. The rate itself is
    /// in the optimizer's state.
    pub fn state_dict(&self) -> StateDict {
        let mut out = StateDict::from([
            ("bad".to_string(), Tensor::scalar(self.bad as i64)),
            ("cooling".to_string(), Tensor::scalar(self.cooling as i64)),
        ]);
        out.extend(self.best.map(|best| ("best".to_string(), Tensor::scalar(best))));
        out
    }

    /// Resumes from [`Plateau::state_dict`].
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let number = |key: &str| {
            let n: i64 = state::scalar("Plateau", key, state.get(key))?;
            u64::try_from(n).map_err(|_| Error::argument("Plateau", format!("`{key}` is below 0")))
        };
        let best = match state.get("best") {
            Some(best) => Some(state::scalar::<f64>("Plateau", "best", Some(best))?),
            None => None,
        };
        (self.bad, self.cooling, self.best) = (number("bad")?, number("cooling")?, best);
        Ok(())
    }
}
