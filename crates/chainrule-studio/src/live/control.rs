//! Orders of a page to a run: to wait between steps, to take one, to take another rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chainrule::optim::schedule::Schedule;

use super::{LiveRun, lock};

/// The wait after which a held run looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The time without any page after which a held run goes on.
const ALONE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Control {
    /// Whether the lock is to be asked at all.
    has_orders: AtomicBool,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Default)]
struct Orders {
    is_held: bool,
    /// Steps that a held run may still take.
    steps: u64,
    rate: Option<f64>,
}

impl Control {
    pub fn ask(&self, action: &str, rate: Option<f64>) -> Result<(), String> {
        let mut orders = lock(&self.orders);
        if let Some(rate) = rate {
            if !(rate.is_finite() && rate > 0.0) {
                return Err("a learning rate is a number above 0".into());
            }
            orders.rate = Some(rate);
        }
        match action {
            "pause" => (orders.is_held, orders.steps) = (true, 0),
            "go" => orders.is_held = false,
            "step" => {
                orders.steps = if orders.is_held { orders.steps + 1 } else { 1 };
                orders.is_held = true;
            }
            "rate" if rate.is_some() => {}
            other => return Err(format!("there is no action `{other}`")),
        }
        self.has_orders.store(true, Ordering::Release);
        drop(orders);
        self.changed.notify_all();
        Ok(())
    }

    pub fn is_held(&self) -> bool {
        self.has_orders.load(Ordering::Acquire) && lock(&self.orders).is_held
    }

    pub fn rate(&self) -> Option<f64> {
        match self.has_orders.load(Ordering::Acquire) {
            true => lock(&self.orders).rate,
            false => None,
        }
    }

    pub fn pass(&self, stop: &dyn Fn() -> bool, is_watched: &dyn Fn() -> bool) {
        if !self.has_orders.load(Ordering::Acquire) {
            return;
        }
        let mut orders = lock(&self.orders);
        let mut seen = Instant::now();
        while orders.is_held {
            if orders.steps > 0 {
                orders.steps -= 1;
                return;
            }
            if stop() {
                return;
            }
            if is_watched() {
                seen = Instant::now();
            } else if seen.elapsed() > ALONE {
                orders.is_held = false;
            }
            let waited = self.changed.wait_timeout(orders, LOOK);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A schedule whose rate the page may take over.
pub struct SteeredSchedule<S> {
    run: LiveRun,
    schedule: S,
}

impl<S: Schedule> SteeredSchedule<S> {
    /// The rates of `schedule`, until the page of `run` chooses another one.
    pub fn new(run: &LiveRun, schedule: S) -> SteeredSchedule<S> {
        SteeredSchedule { run: run.clone(), schedule }
    }
}

impl<S: Schedule> Schedule for SteeredSchedule<S> {
    fn lr(&self, step: u64) -> f64 {
        self.run.rate().unwrap_or_else(|| self.schedule.lr(step))
    }

    fn check(&self) -> chainrule::Result<()> {
        self.schedule.check()
    }
}
