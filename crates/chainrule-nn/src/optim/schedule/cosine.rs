//! Cosine schedules.

use std::f64::consts::PI;

use super::{Schedule, checked_count, checked_factor, checked_lr};
use crate::error::{Error, Result};

/// Half a cosine from `high` at 0 to `low` at 1.
pub(super) fn half_cosine(high: f64, low: f64, x: f64) -> f64 {
    low + (high - low) * 0.5 * (1.0 + (PI * x).cos())
}

/// Linear warm-up to `lr`, then cosine decay to `min_lr`, which it keeps: the usual schedule of
/// GPTs.
///
/// During the warm-up the rate is `lr * (step + 1) / (warm_up + 1)`, so that the first update
/// already counts, as in nanoGPT.
///
/// ```
/// use chainrule::optim::schedule::{CosineLr, Schedule};
/// let cosine = CosineLr { lr: 1.0, min_lr: 0.1, warm_up: 3, steps: 103 };
/// assert_eq!((cosine.lr(0), cosine.lr(3)), (0.25, 1.0));
/// assert!((cosine.lr(53) - 0.55).abs() < 1e-12);
/// assert_eq!((cosine.lr(103), cosine.lr(1000)), (0.1, 0.1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineLr {
    /// Peak rate, at the end of the warm-up.
    pub lr: f64,
    /// Final rate.
    pub min_lr: f64,
    /// Steps of the warm-up; 0 for none.
    pub warm_up: u64,
    /// Step at which the rate is lowest, warm-up included.
    pub steps: u64,
}

impl Schedule for CosineLr {
    fn lr(&self, step: u64) -> f64 {
        if step < self.warm_up {
            return self.lr * (step + 1) as f64 / (self.warm_up as f64 + 1.0);
        }
        if step >= self.steps {
            return self.min_lr;
        }
        let done = (step - self.warm_up) as f64 / (self.steps - self.warm_up) as f64;
        half_cosine(self.lr, self.min_lr, done)
    }

    fn check(&self) -> Result<()> {
        checked_lr("CosineLr", self.lr)?;
        checked_factor("CosineLr", "min_lr", self.min_lr)?;
        if self.warm_up >= self.steps {
            let why = format!(
                "the warm-up must be shorter than the whole, it has {} of {} steps",
                self.warm_up, self.steps
            );
            return Err(Error::argument("CosineLr", why));
        }
        Ok(())
    }
}

/// A cosine wave between `lr` and `min_lr`, with `half_period` steps each way (Loshchilov and
/// Hutter 2017), PyTorch's `CosineAnnealingLR`.
///
/// ```
/// use chainrule::optim::schedule::{CosineAnnealingLr, Schedule};
/// let cosine = CosineAnnealingLr { lr: 1.0, min_lr: 0.0, half_period: 10 };
/// assert_eq!((cosine.lr(0), cosine.lr(10), cosine.lr(20)), (1.0, 0.0, 1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineAnnealingLr {
    /// The rate at the start.
    pub lr: f64,
    /// The lowest rate; PyTorch's `eta_min`.
    pub min_lr: f64,
    /// Steps from the highest to the lowest; PyTorch's `T_max`.
    pub half_period: u64,
}

impl Schedule for CosineAnnealingLr {
    fn lr(&self, step: u64) -> f64 {
        half_cosine(self.lr, self.min_lr, step as f64 / self.half_period.max(1) as f64)
    }

    fn check(&self) -> Result<()> {
        checked_lr("CosineAnnealingLr", self.lr)?;
        checked_factor("CosineAnnealingLr", "min_lr", self.min_lr)?;
        checked_count("CosineAnnealingLr", "half_period", self.half_period)
    }
}
