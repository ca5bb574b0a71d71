//! Orders of a page to a run: to wait between steps, to take one, to take another rate, to keep its
//! state, to go on from a state as another run.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chainrule::optim::schedule::Schedule;
use serde_json::json;

use super::{LiveRun, lock};

/// The wait after which a held run looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The time without any page after which a held run goes on.
const ALONE: Duration = Duration::from_secs(60);

/// An order that the training itself carries out between two steps, since it holds the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Branch {
    /// Keep the present state.
    Checkpoint,
    /// Go on from a kept state as a run of its own.
    Fork {
        /// The number of the state, in the order in which they were kept.
        checkpoint: usize,
        /// The learning rate of the new run; that of the schedule if there is none.
        rate: Option<f64>,
    },
}

#[derive(Default)]
pub(super) struct Control {
    /// Whether the lock is to be asked at all.
    has_orders: AtomicBool,
    /// Whether the training can keep states and go on from them.
    pub can_branch: AtomicBool,
    /// Whether another process steers the run, so that it is never alone.
    pub has_keeper: AtomicBool,
    orders: Mutex<Orders>,
    changed: Condvar,
    /// The way to the process that trains, if it is not this one.
    relay: Option<Mutex<Box<dyn Write + Send>>>,
}

#[derive(Default)]
struct Orders {
    is_held: bool,
    /// Steps that a held run may still take.
    steps: u64,
    rate: Option<f64>,
    branch: Option<Branch>,
    /// Since when a held run of another process has no page.
    alone_since: Option<Instant>,
}

impl Control {
    /// For a run whose states can be kept from the first on.
    pub fn branching() -> Control {
        Control { can_branch: true.into(), ..Control::default() }
    }

    /// Passes the orders on, a line of JSON each.
    pub fn relayed(to: Box<dyn Write + Send>) -> Control {
        Control { relay: Some(Mutex::new(to)), ..Control::default() }
    }

    pub fn ask(&self, action: &str, rate: Option<f64>) -> Result<(), String> {
        if rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err("a learning rate is a number above 0".into());
        }
        if let Some(relay) = &self.relay {
            let line = json!({"action": action, "rate": rate});
            let mut relay = lock(relay);
            let sent = writeln!(relay, "{line}").and_then(|()| relay.flush());
            sent.map_err(|_| "the process of this run has ended")?;
        }
        let mut orders = lock(&self.orders);
        orders.rate = rate.or(orders.rate);
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

    /// Takes an order for the training itself; one at a time.
    pub fn ask_branch(&self, branch: Branch) -> Result<(), String> {
        if !self.can_branch.load(Ordering::Acquire) {
            return Err("this run cannot be forked: nothing keeps its state".into());
        }
        let mut orders = lock(&self.orders);
        if orders.branch.is_some() {
            return Err("the order before is being carried out; try again".into());
        }
        orders.branch = Some(branch);
        self.has_orders.store(true, Ordering::Release);
        drop(orders);
        self.changed.notify_all();
        Ok(())
    }

    pub fn has_orders(&self) -> bool {
        self.has_orders.load(Ordering::Acquire)
    }

    pub fn has_branch(&self) -> bool {
        self.has_orders.load(Ordering::Acquire) && lock(&self.orders).branch.is_some()
    }

    pub fn take_branch(&self) -> Option<Branch> {
        lock(&self.orders).branch.take()
    }

    /// Lets a held run of another process go on once no page has been open for a minute.
    pub fn let_go(&self, is_watched: bool) {
        if self.relay.is_none() {
            return;
        }
        let mut orders = lock(&self.orders);
        if !orders.is_held || is_watched {
            orders.alone_since = None;
            return;
        }
        let since = *orders.alone_since.get_or_insert_with(Instant::now);
        drop(orders);
        if since.elapsed() > ALONE {
            // A process that has ended holds nothing.
            let _ = self.ask("go", None);
        }
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
            if orders.branch.is_some() {
                return;
            }
            if orders.steps > 0 {
                orders.steps -= 1;
                return;
            }
            if stop() {
                return;
            }
            if is_watched() || self.has_keeper.load(Ordering::Relaxed) {
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
