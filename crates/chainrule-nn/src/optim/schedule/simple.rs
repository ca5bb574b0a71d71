//! Step, exponential and linear schedules.

use super::{Schedule, checked_count, checked_factor, checked_lr};
use crate::error::{Error, Result};

/// Constant rate.
///
/// ```
/// use chainrule::optim::schedule::{ConstantLr, Schedule};
/// assert_eq!(ConstantLr { lr: 0.1 }.lr(1000), 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantLr {
    /// The rate.
    pub lr: f64,
}

impl Schedule for ConstantLr {
    fn lr(&self, _step: u64) -> f64 {
        self.lr
    }

    fn check(&self) -> Result<()> {
        checked_lr("ConstantLr", self.lr).map(drop)
    }
}

/// Step decay: `lr * gamma^floor(step / every)`, PyTorch's `StepLR`.
///
/// ```
/// use chainrule::optim::schedule::{Schedule, StepLr};
/// let step = StepLr { lr: 0.1, every: 30, gamma: 0.1 };
/// assert_eq!((step.lr(29), step.lr(30)), (0.1, 0.1 * 0.1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLr {
    /// Initial rate.
    pub lr: f64,
    /// Steps between decays.
    pub every: u64,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for StepLr {
    fn lr(&self, step: u64) -> f64 {
        self.lr * self.gamma.powf((step / self.every.max(1)) as f64)
    }

    fn check(&self) -> Result<()> {
        checked_lr("StepLr", self.lr)?;
        checked_count("StepLr", "every", self.every)?;
        checked_factor("StepLr", "gamma", self.gamma)
    }
}

/// Decay by `gamma` at each milestone, PyTorch's `MultiStepLR`. A repeated milestone counts twice.
///
/// ```
/// use chainrule::optim::schedule::{MultiStepLr, Schedule};
/// let steps = MultiStepLr { lr: 1.0, milestones: vec![10, 20], gamma: 0.5 };
/// assert_eq!((steps.lr(9), steps.lr(10), steps.lr(20)), (1.0, 0.5, 0.25));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStepLr {
    /// Initial rate.
    pub lr: f64,
    /// Steps at which the rate decays, in any order.
    pub milestones: Vec<u64>,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for MultiStepLr {
    fn lr(&self, step: u64) -> f64 {
        let passed = self.milestones.iter().filter(|&&m| m <= step).count();
        self.lr * self.gamma.powf(passed as f64)
    }

    fn check(&self) -> Result<()> {
        checked_lr("MultiStepLr", self.lr)?;
        checked_factor("MultiStepLr", "gamma", self.gamma)
    }
}

/// Exponential decay: `lr * gamma^step`, PyTorch's `ExponentialLR`.
///
/// ```
/// use chainrule::optim::schedule::{ExponentialLr, Schedule};
/// assert_eq!(ExponentialLr { lr: 1.0, gamma: 0.5 }.lr(3), 0.125);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialLr {
    /// Initial rate.
    pub lr: f64,
    /// Factor per step.
    pub gamma: f64,
}

impl Schedule for ExponentialLr {
    fn lr(&self, step: u64) -> f64 {
        self.lr * self.gamma.powf(step as f64)
    }

    fn check(&self) -> Result<()> {
        checked_lr("ExponentialLr", self.lr)?;
        checked_factor("ExponentialLr", "gamma", self.gamma)
    }
}

/// Linear from `lr * start_factor` to `lr * end_factor`, which it keeps after `steps` steps:
/// PyTorch's `LinearLR`. Rising factors make a warm-up, falling ones a decay.
///
/// ```
/// use chainrule::optim::schedule::{LinearLr, Schedule};
/// let warm_up = LinearLr { lr: 1.0, start_factor: 0.0, end_factor: 1.0, steps: 4 };
/// assert_eq!((warm_up.lr(0), warm_up.lr(1), warm_up.lr(9)), (0.0, 0.25, 1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearLr {
    /// Base rate, which the factors multiply.
    pub lr: f64,
    /// Initial factor.
    pub start_factor: f64,
    /// Final factor.
    pub end_factor: f64,
    /// Number of steps.
    pub steps: u64,
}

impl Schedule for LinearLr {
    fn lr(&self, step: u64) -> f64 {
        let done = step.min(self.steps) as f64 / self.steps.max(1) as f64;
        self.lr * (self.start_factor + (self.end_factor - self.start_factor) * done)
    }

    fn check(&self) -> Result<()> {
        checked_lr("LinearLr", self.lr)?;
        checked_count("LinearLr", "steps", self.steps)?;
        checked_factor("LinearLr", "start_factor", self.start_factor)?;
        checked_factor("LinearLr", "end_factor", self.end_factor)?;
        if self.start_factor == 0.0 && self.end_factor == 0.0 {
            return Err(Error::argument(
                "LinearLr",
                "both factors are 0: nothing would be learned",
            ));
        }
        Ok(())
    }
}
