//! Learning rate range test: a short run with a rate that grows from step to step.

use super::Trainer;
use super::trainer::{eager, rounded};
use crate::error::{Error, Result};

/// Options of the range test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeOptions {
    /// Initial rate; 1e-6.
    pub low: f64,
    /// Final rate; 10.
    pub high: f64,
    /// Number of steps, with a constant factor between them; 100.
    pub steps: u64,
}

impl Default for RangeOptions {
    fn default() -> Self {
        RangeOptions { low: 1e-6, high: 10.0, steps: 100 }
    }
}

/// Result of [`Trainer::find_range`].
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFound {
    /// Rate and smoothed loss of each step, until the loss was four times the best or not finite.
    pub points: Vec<(f64, f64)>,
    /// Rate of the steepest descent: a good initial one. `None` if the loss never falls.
    pub steepest: Option<f64>,
}

impl Trainer<'_> {
    /// Trains with a rate that grows by the same factor in each step (Smith 2017), and restores the
    /// state.
    pub fn find_range(&mut self, options: RangeOptions) -> Result<RangeFound> {
        let RangeOptions { low, high, steps } = options;
        if !(low > 0.0 && low < high && high.is_finite() && steps >= 2) {
            let why = "needs rates above 0, the first below the last, and two steps at least";
            return Err(Error::argument("find_range", why));
        }
        let before = self.state_dict();
        self.task.module().train();
        let points = self.growing(low, (high / low).powf(1.0 / (steps - 1) as f64), steps);
        self.load_state_dict(&before)?;
        let points = points?;
        Ok(RangeFound { steepest: steepest(&points), points })
    }

    fn growing(&mut self, low: f64, factor: f64, steps: u64) -> Result<Vec<(f64, f64)>> {
        // Decay rate of the mean; its bias from the start at 0 is corrected below.
        const KEEPS: f64 = 0.9;
        let (mut mean, mut best, mut points) = (0.0, f64::INFINITY, Vec::new());
        for i in 0..steps {
            let lr = low * factor.powi(i as i32);
            self.optimizer.set_lr(lr)?;
            let autocast = self.rest.options.autocast;
            let step = || eager(self.task, &mut *self.optimizer, &mut self.rest);
            let loss = rounded(autocast, step)?.loss;
            mean = KEEPS * mean + (1.0 - KEEPS) * loss;
            let smooth = mean / (1.0 - KEEPS.powi(i as i32 + 1));
            if !smooth.is_finite() || smooth > 4.0 * best {
                break;
            }
            best = best.min(smooth);
            points.push((lr, smooth));
        }
        Ok(points)
    }
}

/// Rate of the steepest fall of the loss over the surrounding tenths of the curve, in log rate.
fn steepest(points: &[(f64, f64)]) -> Option<f64> {
    let reach = (points.len() / 10).max(1);
    let falls = points.windows(2 * reach + 1).map(|w| (w[2 * reach].1 - w[0].1, w[reach].0));
    let (fall, lr) = falls.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (fall < 0.0).then_some(lr)
}
