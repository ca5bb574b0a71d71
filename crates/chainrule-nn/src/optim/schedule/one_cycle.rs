//! The one-cycle schedule.

use super::cosine::half_cosine;
use super::{Schedule, checked_count, checked_lr};
use crate::error::{Error, Result};

/// Rises from `max_lr / div_factor` to `max_lr` in the first share `pct_start` of the steps, then
/// falls to the initial rate divided by `final_div_factor` (Smith and Topin 2019): PyTorch's
/// `OneCycleLR`, with its names and defaults.
///
/// The momentum, which PyTorch cycles inversely, is left alone. After the last step the rate stays;
/// PyTorch raises an error there.
///
/// ```
/// use chainrule::optim::schedule::{OneCycleLr, Schedule};
/// let cycle = OneCycleLr::new(1.0, 101);
/// assert!((cycle.lr(0) - 1.0 / 25.0).abs() < 1e-12 && cycle.lr(29) > 0.99);
/// assert_eq!(cycle.lr(100), 1.0 / 25.0 / 1e4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneCycleLr {
    /// Peak rate.
    pub max_lr: f64,
    /// Total number of steps.
    pub total_steps: u64,
    /// Share of the steps in which the rate rises; 0.3.
    pub pct_start: f64,
    /// Ratio of the peak to the initial rate; 25.
    pub div_factor: f64,
    /// Ratio of the initial to the final rate; 1e4.
    pub final_div_factor: f64,
    /// Linear instead of cosine; off.
    pub linear: bool,
    /// Three phases: down to the initial rate in as many steps as up, then on to the final; off.
    pub three_phase: bool,
}

impl OneCycleLr {
    /// Default options.
    pub fn new(max_lr: f64, total_steps: u64) -> OneCycleLr {
        OneCycleLr {
            max_lr,
            total_steps,
            pct_start: 0.3,
            div_factor: 25.0,
            final_div_factor: 1e4,
            linear: false,
            three_phase: false,
        }
    }
}

impl Schedule for OneCycleLr {
    fn lr(&self, step: u64) -> f64 {
        let total = self.total_steps as f64;
        let step = step.min(self.total_steps.saturating_sub(1)) as f64;
        let first = self.max_lr / self.div_factor;
        let last = first / self.final_div_factor;
        let up = self.pct_start * total - 1.0;
        let phases = if self.three_phase {
            let down = 2.0 * self.pct_start * total - 2.0;
            [(up, first, self.max_lr), (down, self.max_lr, first), (total - 1.0, first, last)]
        } else {
            let rest = (total - 1.0, self.max_lr, last);
            [(up, first, self.max_lr), rest, rest]
        };
        let mut begin = 0.0;
        for (i, (end, from, to)) in phases.into_iter().enumerate() {
            if step <= end || i == 2 {
                let done = if end > begin { (step - begin) / (end - begin) } else { 1.0 };
                return if self.linear {
                    from + (to - from) * done
                } else {
                    half_cosine(from, to, done)
                };
            }
            begin = end;
        }
        last
    }

    fn check(&self) -> Result<()> {
        checked_lr("OneCycleLr", self.max_lr)?;
        checked_count("OneCycleLr", "total_steps", self.total_steps)?;
        if !(0.0..=1.0).contains(&self.pct_start) {
            let why = format!("pct_start must be from 0 to 1, it is {}", self.pct_start);
            return Err(Error::argument("OneCycleLr", why));
        }
        for (name, x) in
            [("div_factor", self.div_factor), ("final_div_factor", self.final_div_factor)]
        {
            if !(x.is_finite() && x > 0.0) {
                let why = format!("{name} must be above 0 and finite, it is {x}");
                return Err(Error::argument("OneCycleLr", why));
            }
        }
        Ok(())
    }
}
