//! Runs of training that a page watches: their history, and what the page asks of them.
//!
//! A training tells a [`LiveRun`] of its steps and never waits for a page: it adds a row to a
//! bounded history, and each connection takes from there what is new to it.

mod control;
mod files;
mod history;
mod readings;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chainrule::train::{End, Event, Listener};
use serde_json::{Value, json};

use control::Control;
pub use control::{Branch, SteeredSchedule};
pub use files::RunFiles;
use history::{History, RunStep};

/// Rows of one message.
const ROWS: usize = 1000;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All runs of a process that pages may watch. Clones are the same hub.
#[derive(Clone, Default)]
pub struct Hub {
    shared: Arc<HubState>,
}

#[derive(Default)]
struct HubState {
    runs: Mutex<Vec<Arc<Run>>>,
    /// Pages that are connected.
    watching: AtomicUsize,
}

struct Run {
    id: String,
    title: String,
    control: Option<Control>,
    history: Mutex<History>,
}

impl Hub {
    /// Without any run.
    pub fn new() -> Hub {
        Hub::default()
    }

    /// A run that can be paused, stepped and given another rate, by whoever trains it.
    pub fn begin(&self, title: &str) -> LiveRun {
        self.add(title, Some(Control::default()))
    }

    /// As [`Hub::begin`], of a run whose states can be kept and gone on from from the first on, as
    /// [`LiveRun::allow_branches`] says later.
    pub fn begin_branching(&self, title: &str) -> LiveRun {
        self.add(title, Some(Control::branching()))
    }

    /// A run that is only looked at.
    pub fn begin_watched(&self, title: &str) -> LiveRun {
        self.add(title, None)
    }

    /// A run of another process, which takes the page's orders as lines of JSON; see
    /// [`LiveRun::obey`].
    pub fn begin_relayed(&self, title: &str, to: Box<dyn Write + Send>) -> LiveRun {
        self.add(title, Some(Control::relayed(to)))
    }

    fn add(&self, title: &str, control: Option<Control>) -> LiveRun {
        let mut runs = lock(&self.shared.runs);
        let id = format!("live-{}", runs.len());
        let history = Mutex::default();
        let run = Arc::new(Run { id, title: title.to_owned(), control, history });
        runs.push(run.clone());
        LiveRun { run, shared: self.shared.clone(), ahead: 0 }
    }

    /// Gives the pages that are connected the time to hear of an end.
    pub fn drain(&self) {
        if self.shared.watching.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// A page that connects.
    pub(crate) fn watch(&self) -> Watcher {
        self.shared.watching.fetch_add(1, Ordering::Relaxed);
        Watcher { shared: self.shared.clone(), seen: HashMap::new() }
    }
}

/// One run of training, as the training sees it.
///
/// ```
/// use chainrule_studio::Hub;
/// let hub = Hub::new();
/// let run = hub.begin("my model");
/// for step in 1..=3 {
///     run.step(step, 1.0 / step as f64, 0.1, None);
///     run.pass(&|| false);
/// }
/// run.end("all steps are done");
/// ```
#[derive(Clone)]
pub struct LiveRun {
    run: Arc<Run>,
    shared: Arc<HubState>,
    /// Steps that its training has counted beyond those of the run.
    ahead: u64,
}

impl LiveRun {
    /// The same run for a training that counts on: it went back by this many steps, and the steps
    /// that it tells of have numbers that are higher than those of the run.
    ///
    /// ```
    /// let run = chainrule_studio::Hub::new().begin("again from step 10").counted_ahead(30);
    /// run.step(41, 0.5, 0.1, None); // the page shows step 11
    /// ```
    pub fn counted_ahead(self, by: u64) -> LiveRun {
        LiveRun { ahead: by, ..self }
    }

    fn own(&self, step: u64) -> u64 {
        step.saturating_sub(self.ahead)
    }

    /// A step is done: its number from 1, loss, learning rate, and norm of the gradients if it is
    /// known.
    pub fn step(&self, step: u64, loss: f64, rate: f64, grad_norm: Option<f64>) {
        let step = self.own(step);
        lock(&self.run.history).step(RunStep { step, loss, rate, grad_norm, ..RunStep::default() });
    }

    /// The tensors of a step, as [`Monitor::line`](chainrule::monitor::Monitor::line) gives them.
    /// They may come before their step or after it.
    pub fn look(&self, line: &Value) {
        let Some(step) = line["step"].as_u64() else { return };
        lock(&self.run.history).look(self.own(step), readings::of(line));
    }

    /// Whether a page is open, so that looks are worth their time.
    pub fn is_watched(&self) -> bool {
        self.shared.watching.load(Ordering::Relaxed) > 0
    }

    /// Something that goes wrong, found after that many steps.
    pub fn found(&self, step: u64, kind: &str, words: &str) {
        lock(&self.run.history).found(self.own(step), kind, words);
    }

    /// Measures after that many steps, such as the loss on held-out examples.
    pub fn measured(&self, step: u64, measures: &[(&str, f64)]) {
        let step = self.own(step);
        let mut history = lock(&self.run.history);
        measures.iter().for_each(|(name, value)| history.measured(step, name, *value));
    }

    /// A text of the run: something that the model made, or its report.
    pub fn text(&self, step: u64, title: &str, text: &str) {
        lock(&self.run.history).text(self.own(step), title, text);
    }

    /// The run has ended, or its process is gone.
    pub fn end(&self, why: &str) {
        lock(&self.run.history).ended = Some(why.to_owned());
    }

    /// The run goes on after an end.
    pub fn go_on(&self) {
        lock(&self.run.history).ended = None;
    }

    /// Forgets all: the run is told anew.
    pub fn begin_anew(&self) {
        lock(&self.run.history).begin_anew();
    }

    /// Called between two steps: returns at once, or waits while the page holds the run. `stop` is
    /// asked in between, and ends the wait.
    ///
    /// A run that is held goes on by itself once no page has been open for a minute.
    pub fn pass(&self, stop: &dyn Fn() -> bool) {
        if let Some(control) = &self.run.control {
            control.pass(stop, &|| self.is_watched());
        }
    }

    /// The page may have states kept and go on from them. The training then looks at
    /// [`LiveRun::has_branch`] between two steps, and carries out what [`LiveRun::take_branch`]
    /// gives.
    pub fn allow_branches(&self) {
        if let Some(control) = &self.run.control {
            control.can_branch.store(true, Ordering::Release);
        }
    }

    /// Whether the page wants a state kept or forked.
    pub fn has_branch(&self) -> bool {
        self.run.control.as_ref().is_some_and(Control::has_branch)
    }

    /// The order of the page that is to be carried out now.
    pub fn take_branch(&self) -> Option<Branch> {
        self.run.control.as_ref().and_then(Control::take_branch)
    }

    /// A state was kept: after that many steps, in that place.
    pub fn kept(&self, step: u64, place: &str) {
        lock(&self.run.history).checkpoints.push((self.own(step), place.to_owned()));
    }

    /// Takes an order from the process that shows this run, a line as [`Hub::begin_relayed`] sends
    /// them.
    pub fn obey(&self, line: &str) -> Result<(), String> {
        let order: Value = serde_json::from_str(line).map_err(|e| format!("no order: {e}"))?;
        let control = self.run.control.as_ref().ok_or("this run takes no orders")?;
        control.ask(order["action"].as_str().unwrap_or_default(), order["rate"].as_f64())
    }

    /// Whether the page has ever asked for anything.
    pub fn has_orders(&self) -> bool {
        self.run.control.as_ref().is_some_and(Control::has_orders)
    }

    fn let_go(&self) {
        self.run.control.iter().for_each(|control| control.let_go(self.is_watched()));
    }

    /// Whether another process steers the run, which then is never taken for alone.
    pub fn set_keeper(&self, has_keeper: bool) {
        if let Some(control) = &self.run.control {
            control.has_keeper.store(has_keeper, Ordering::Relaxed);
        }
    }

    /// The learning rate that the page chose, if it did.
    pub fn rate(&self) -> Option<f64> {
        self.run.control.as_ref().and_then(Control::rate)
    }
}

impl Listener for LiveRun {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        match event {
            Event::Step(s) => self.step(s.step, s.loss, s.lr, s.grad_norm),
            // Making the line of a look takes time, which only a reader is worth.
            Event::Looked { monitor, .. } if self.is_watched() => {
                monitor.line().iter().for_each(|line| self.look(line));
            }
            Event::Found { step, symptom } => {
                self.found(*step, symptom.kind.name(), &symptom.to_string());
            }
            Event::Evaluated { step, metrics, .. } => self.measured(*step, metrics),
            Event::Sampled { step, text } => self.text(*step, "sample", text),
            // A stop for an order of the page is no end.
            Event::Ended { how: End::Stopped, .. } if self.has_branch() => {}
            Event::Ended { how, .. } => self.end(&ending(how)),
            _ => {}
        }
        Ok(())
    }
}

fn ending(how: &End) -> String {
    match how {
        End::Finished => "all steps are done".into(),
        End::Stopped => "stopped by its user".into(),
        End::NoBetter { evaluations } => format!("no better for {evaluations} measurements"),
        End::NotFinite { step, loss, why } => format!("the loss of step {step} is {loss}: {why}"),
        _ => "the run has ended".into(),
    }
}

/// The end of a history that a page has.
#[derive(Default)]
struct Seen {
    generation: u64,
    row: u64,
    text: u64,
    checkpoints: usize,
    is_held: bool,
    ended: Option<String>,
}

/// A page that is connected, and what it has seen.
pub(crate) struct Watcher {
    shared: Arc<HubState>,
    seen: HashMap<String, Seen>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.watching.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Watcher {
    /// The events since the last call.
    pub fn news(&mut self) -> Vec<Value> {
        let runs = lock(&self.shared.runs).clone();
        let mut out = Vec::new();
        for run in runs {
            let id = &run.id;
            let history = lock(&run.history);
            let is_new =
                self.seen.get(id).is_none_or(|seen| seen.generation != history.generation());
            if is_new {
                // The page asks for the history so far.
                let seen = Seen {
                    generation: history.generation(),
                    row: history.newest(),
                    ..Seen::default()
                };
                self.seen.insert(id.clone(), seen);
                let control = run.control.is_some();
                let branches = run
                    .control
                    .as_ref()
                    .is_some_and(|control| control.can_branch.load(Ordering::Acquire));
                out.push(
                    json!({"event": "run", "run": id, "title": run.title, "control": control, "branches": branches}),
                );
            }
            let Some(seen) = self.seen.get_mut(id) else { continue };
            let rows = history.after(seen.row, ROWS);
            if let Some((newest, _)) = rows.last() {
                seen.row = *newest;
                let events: Vec<Value> = rows.iter().map(|(_, row)| row.to_json()).collect();
                out.push(json!({"event": "train", "run": id, "events": events}));
            }
            if history.texts_told() != seen.text {
                seen.text = history.texts_told();
                out.push(json!({"event": "texts", "run": id, "texts": history.texts(), "measures": history.measures()}));
            }
            if history.checkpoints.len() != seen.checkpoints {
                seen.checkpoints = history.checkpoints.len();
                let all = history.checkpoints();
                out.push(json!({"event": "checkpoints", "run": id, "checkpoints": all}));
            }
            let is_held = run.control.as_ref().is_some_and(Control::is_held);
            if is_held != seen.is_held {
                seen.is_held = is_held;
                out.push(json!({"event": "held", "run": id, "held": is_held}));
            }
            if history.ended != seen.ended {
                seen.ended.clone_from(&history.ended);
                out.push(match &history.ended {
                    Some(why) => json!({"event": "end", "run": id, "why": why}),
                    None => json!({"event": "again", "run": id}),
                });
            }
        }
        out
    }

    /// The answer to a call that begins with `live.`; an error as text.
    pub fn answer(&self, call: &str, args: &Value) -> Result<Value, String> {
        let id = args["run"].as_str().unwrap_or_default();
        let run = lock(&self.shared.runs).iter().find(|run| run.id == id).cloned();
        let run = run.ok_or_else(|| format!("there is no run `{id}`"))?;
        match call {
            "live.history" => {
                let history = lock(&run.history);
                let events: Vec<Value> =
                    history.after(0, usize::MAX).iter().map(|(_, row)| row.to_json()).collect();
                let held = run.control.as_ref().is_some_and(Control::is_held);
                let kept = history.checkpoints();
                Ok(
                    json!({"events": events, "ended": history.ended, "held": held, "checkpoints": kept}),
                )
            }
            "live.control" => {
                let control = run.control.as_ref().ok_or(
                    "this run is read from its files; one that is started with --studio can be controlled",
                )?;
                let rate = args["rate"].as_f64();
                if lock(&run.history).ended.is_some() {
                    return Err("this run has ended; go on from its folder with --resume".into());
                }
                match (args["action"].as_str().unwrap_or_default(), args["checkpoint"].as_u64()) {
                    ("checkpoint", _) => control.ask_branch(Branch::Checkpoint)?,
                    ("fork", Some(n)) if n < lock(&run.history).checkpoints.len() as u64 => {
                        control.ask_branch(Branch::Fork { checkpoint: n as usize, rate })?;
                    }
                    ("fork", _) => return Err("there is no such checkpoint".into()),
                    (action, _) => control.ask(action, rate)?,
                }
                Ok(json!({"held": control.is_held()}))
            }
            other => Err(format!("there is no call `{other}`")),
        }
    }
}
