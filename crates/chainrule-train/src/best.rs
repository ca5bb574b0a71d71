//! The best measurement so far, and its age.

/// Tracks the best of a series of measurements. A NaN or an infinity is never an improvement, not
/// even as the first.
///
/// ```
/// use chainrule::train::Best;
/// let mut best = Best::lowest();
/// let seen = [f64::NAN, 2.0, 1.0, f64::NAN, 1.0].map(|loss| best.take(loss));
/// assert_eq!(seen, [false, true, true, false, false]);
/// assert_eq!((best.value(), best.since()), (Some(1.0), 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    higher: bool,
    value: Option<f64>,
    since: u64,
}

impl Best {
    /// Higher is better.
    pub fn highest() -> Best {
        Best { higher: true, value: None, since: 0 }
    }

    /// Lower is better.
    pub fn lowest() -> Best {
        Best { higher: false, value: None, since: 0 }
    }

    /// Restores this value and number of measurements since.
    pub(super) fn restored(higher: bool, value: Option<f64>, since: u64) -> Best {
        Best { higher, value, since }
    }

    /// Records a measurement; returns whether it is the best.
    pub fn take(&mut self, value: f64) -> bool {
        let better = |old: f64| if self.higher { value > old } else { value < old };
        let is_best = value.is_finite() && self.value.is_none_or(better);
        if is_best {
            (self.value, self.since) = (Some(value), 0);
        } else {
            self.since += 1;
        }
        is_best
    }

    /// The best.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Number of measurements after it.
    pub fn since(&self) -> u64 {
        self.since
    }
}
