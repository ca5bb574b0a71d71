//! The monitor of a training, for the Python layer that tells it of steps.

mod counted;
mod foreign;
mod look;
mod program;
mod sights;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chainrule::Tensor;
use chainrule::monitor::{self, Dependence};
use chainrule_studio::LiveRun;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub use self::counted::{CountedSteps, begin_pass, end_pass};
pub use self::foreign::ForeignSight;
pub use self::program::MonitorLook;
use self::program::first_number;
use self::sights::{MonitorState, kind_of, locked};
pub use self::sights::{Sight, WholeSight};
use crate::tensor::PyTensor;

thread_local! {
    /// Whether this thread's trace collects the values of a look, until a program is made of it.
    static IS_TRACE_SEEN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the trace that this thread has just ended collects the values of a look.
pub fn is_trace_seen() -> bool {
    IS_TRACE_SEEN.take()
}

/// Number of hooks of tensors that are there, but for those of monitors.
static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// A hook of a tensor that is not a monitor's, as long as it is there.
pub struct ForeignHook(());

impl ForeignHook {
    pub fn new() -> ForeignHook {
        FOREIGN.fetch_add(1, Ordering::Relaxed);
        ForeignHook(())
    }
}

impl Drop for ForeignHook {
    fn drop(&mut self) {
        FOREIGN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Records and detectors of a training.
#[pyclass(name = "Monitor", module = "chainrule._chainrule", frozen)]
pub struct PyMonitor {
    shared: Arc<MonitorState>,
    held: Mutex<MonitoredTensors>,
    /// Looks so far.
    looks: AtomicU64,
    /// Distance of the looks that are taken through Python, where looks have no share of the time.
    often: Option<u64>,
}

/// Handles that are asked at each step.
#[derive(Default)]
struct MonitoredTensors {
    /// Parameters by name.
    parameters: Vec<(String, Py<PyTensor>)>,
    /// Those that the optimizer steps, if they are others.
    stepped: Vec<Py<PyTensor>>,
    losses: Vec<f64>,
    /// Their values before a step of a program.
    values: Vec<Tensor>,
    /// The gradients as they were after the backward pass.
    gradients: Option<Vec<Tensor>>,
    /// Parameters of another library by name, and copies of their gradients after the backward
    /// pass.
    foreign: Vec<(String, Py<PyAny>)>,
    foreign_gradients: Option<Vec<Option<Tensor>>>,
    /// Whether the newest backward pass added to gradients that a step had used.
    is_stale: bool,
}

impl MonitoredTensors {
    fn note_loss(&mut self, loss: &Tensor) {
        if let (1, Ok(loss)) = (loss.numel(), loss.try_item()) {
            self.losses.push(loss);
        }
    }
}

/// A step that is done.
pub struct PassedStep {
    pub steps: u64,
    pub loss: Option<f64>,
    pub rate: Option<f64>,
    pub is_spike: bool,
    pub is_due: bool,
}

/// Whether two gradients are of one memory.
fn is_one(a: &Tensor, b: &Tensor) -> bool {
    a.detach().is_same(&b.detach())
}

impl PyMonitor {
    fn lock(&self) -> MutexGuard<'_, monitor::Monitor> {
        self.shared.lock()
    }

    fn held(&self) -> MutexGuard<'_, MonitoredTensors> {
        locked(&self.held)
    }

    /// The gradients of the parameters, where there are some.
    fn gradients(&self) -> Vec<Tensor> {
        self.held().parameters.iter().filter_map(|(_, p)| p.get().tensor().grad()).collect()
    }

    /// Whether gradients that a step has used are still there: the last two that are there tell.
    fn is_stale(&self) -> bool {
        let held = self.held();
        let all = held.parameters.iter().map(|(_, p)| p);
        let all: Vec<&Py<PyTensor>> = match held.stepped.is_empty() {
            true => all.collect(),
            false => held.stepped.iter().collect(),
        };
        let gradients = all.iter().rev().filter_map(|p| p.get().tensor().grad()).take(2);
        gradients.into_iter().any(|g| !monitor::Monitor::is_zero(&g))
    }

    /// Tells of the parameters with their gradients before the update; and of the norm of the
    /// gradients that were noted and of those that are there now, if these are others. Else the
    /// monitor takes it from its statistics.
    fn see_parameters(&self) {
        let mut held = self.held();
        let before = held.gradients.take();
        let of = |p: &Py<PyTensor>| {
            let p = p.get().tensor();
            (p.grad(), p)
        };
        let all: Vec<(Option<Tensor>, Tensor)> =
            held.parameters.iter().map(|(_, p)| of(p)).collect();
        let mut monitor = self.lock();
        if let Some(before) = before {
            let now = || all.iter().filter_map(|(g, _)| g.as_ref());
            let same = before.len() == now().count()
                && before.iter().zip(now()).all(|(a, b)| is_one(a, b));
            if !same {
                monitor.changed_gradients(&before, &now().cloned().collect::<Vec<_>>());
            }
        }
        for ((name, _), (gradient, p)) in held.parameters.iter().zip(&all) {
            if p.requires_grad() {
                monitor.parameter(name, p, gradient.as_ref());
            }
        }
    }

    /// A backward pass of that loss begins; `has_stepped` if a step came before it. Passes that
    /// add to one onto used gradients add to them, too, unless these are zeroed in between.
    fn begin_pass_of(&self, loss: &Tensor, has_stepped: bool) {
        self.held().note_loss(loss);
        let may_be = has_stepped || self.held().is_stale;
        let is_stale = may_be && self.is_stale();
        self.held().is_stale = is_stale;
        self.backward(is_stale);
    }

    /// Ends a step, whose loss is the mean of those that were noted, or this one: that
    /// loss, and whether it was a spike.
    fn step(&self, loss: Option<f64>, rate: Option<f64>) -> (Option<f64>, bool) {
        let mut held = self.held();
        let mean = held.losses.iter().sum::<f64>() / held.losses.len() as f64;
        let mean = (!held.losses.is_empty()).then_some(mean);
        held.losses.clear();
        *locked(&self.shared.newest) = None;
        // An object of Python goes away behind the lock.
        let newest = locked(&self.shared.newest_foreign).take();
        drop(newest);
        let loss = mean.or(loss);
        let mut monitor = self.lock();
        monitor.step(loss, rate);
        (loss, monitor.is_spike())
    }

    /// As [`PyMonitor::pass`], with a loss of this step.
    pub fn pass_with(
        &self,
        loss: Option<f64>,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
        may_look: bool,
    ) -> PyResult<PassedStep> {
        self.held().losses.extend(loss);
        self.pass(optimizer, out, may_look)
    }

    /// Ends a step; the next one is not looked at unless it `may_look`.
    pub fn pass(
        &self,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
        may_look: bool,
    ) -> PyResult<PassedStep> {
        let rate = self.rate(optimizer)?;
        let (loss, is_spike) = self.step(out.and_then(first_number), rate);
        let mut monitor = self.lock();
        let steps = monitor.steps();
        if !may_look {
            monitor.rest_until(steps + 1);
        }
        Ok(PassedStep { steps, loss, rate, is_spike, is_due: monitor.is_due() })
    }

    /// Tells a run of the tensors that were looked at in the step done last.
    pub fn tell(&self, run: &LiveRun) {
        let mut monitor = self.lock();
        // The page shows each look's.
        monitor.take_all_histograms();
        monitor.line().iter().for_each(|line| run.look(line));
    }
}

/// Name, value and gradient of a parameter.
type NamedPair<'py> = (String, Bound<'py, PyTensor>, Option<Bound<'py, PyTensor>>);

/// Kind, place, step, evidence, consequence, fix, confidence.
type Row = (&'static str, String, u64, Vec<(&'static str, f64)>, &'static str, &'static str, f64);

#[pymethods]
impl PyMonitor {
    #[new]
    #[pyo3(signature = (every, often=None))]
    fn new(every: u64, often: Option<u64>) -> PyMonitor {
        let monitor = monitor::Monitor::new().every(every).with_sparse_histograms();
        let shared = Arc::new(MonitorState {
            monitor: Mutex::new(monitor),
            spent: AtomicU64::new(0),
            timed: AtomicU64::new(1),
            is_asleep: AtomicBool::new(false),
            collected: Mutex::new(None),
            newest: Mutex::new(None),
            newest_foreign: Mutex::new(None),
        });
        PyMonitor { shared, held: Mutex::default(), looks: AtomicU64::new(0), often }
    }

    /// The hook of a module with that name, the bounds of its function, and whether it has no
    /// modules inside; `range` are the bounds that say what the loss is to be.
    #[pyo3(signature = (name, bounds, is_leaf, range))]
    fn sight(
        &self,
        name: String,
        bounds: Option<(i8, i8)>,
        is_leaf: bool,
        range: Option<(f64, f64)>,
    ) -> Sight {
        Sight::new(self.shared.clone(), name, bounds, is_leaf, range)
    }

    /// The hook of the model, which calls `look`.
    fn whole_sight(&self, has_modes: bool, look: Py<PyAny>) -> WholeSight {
        WholeSight::new(self.shared.clone(), has_modes, look)
    }

    /// Whether hooks rest.
    fn sleep(&self, is_asleep: bool) {
        self.shared.is_asleep.store(is_asleep, Ordering::Relaxed);
    }

    /// Traces put what a look sees into this list from now on; None for no more.
    #[pyo3(signature = (list=None))]
    fn collect(&self, list: Option<Py<PyList>>) {
        if list.is_some() {
            IS_TRACE_SEEN.set(true);
        }
        *locked(&self.shared.collected) = list;
    }

    /// Seconds that looks took here.
    fn spent(&self) -> f64 {
        self.shared.spent.load(Ordering::Relaxed) as f64 * 1e-9
    }

    /// The bounds of the module without others inside that gave this tensor, if one did.
    fn range_of(&self, output: &Bound<'_, PyTensor>) -> Option<(f64, f64)> {
        let newest = locked(&self.shared.newest);
        let newest = newest.as_ref().filter(|newest| newest.is_leaf)?;
        newest.bounds.filter(|_| newest.output.is_same(&output.get().tensor()))
    }

    /// Handles of parameters that are asked at each step.
    fn hold(&self, parameters: Vec<(String, Py<PyTensor>)>) {
        self.held().parameters = parameters;
    }

    /// Handles that the optimizer steps.
    fn hold_stepped(&self, stepped: Vec<Py<PyTensor>>) {
        self.held().stepped = stepped;
    }

    /// A backward pass of that loss begins; `has_stepped` if a step came before it.
    fn before_backward(&self, loss: &Bound<'_, PyTensor>, has_stepped: bool) {
        self.begin_pass_of(&loss.get().tensor(), has_stepped);
    }

    /// A loss of this step as a number.
    fn note_number(&self, loss: f64) {
        self.held().losses.push(loss);
    }

    /// A loss of this step.
    fn note_loss(&self, loss: &Bound<'_, PyTensor>) {
        self.held().note_loss(&loss.get().tensor());
    }

    /// The loss of this step that came last, if there is one.
    fn last_loss(&self) -> Option<f64> {
        self.held().losses.last().copied()
    }

    /// Forgets the losses of this step.
    fn forget_losses(&self) {
        self.held().losses.clear();
    }

    /// Notes the gradients after a backward pass of a step that is looked at.
    pub(super) fn note_gradients(&self) {
        if self.is_due() {
            let gradients = self.gradients();
            self.held().gradients = Some(gradients);
        }
    }

    /// The gradients after a backward pass and those of the update, in one order.
    fn changed_gradients(&self, before: Vec<Bound<'_, PyTensor>>, after: Vec<Bound<'_, PyTensor>>) {
        let of = |all: &[Bound<'_, PyTensor>]| -> Vec<Tensor> {
            all.iter().map(|t| t.get().tensor()).collect()
        };
        self.lock().changed_gradients(&of(&before), &of(&after));
    }

    /// A program is about to make a step that is looked at: keeps the parameters' values.
    fn begin_look(&self) -> PyResult<()> {
        let mut held = self.held();
        let values = held.parameters.iter().map(|(_, p)| p.get().untaped());
        held.values = values.collect::<PyResult<_>>()?;
        Ok(())
    }

    /// Takes what a look is to see from the results of a program, and from the inputs of the model
    /// where they are none of the results.
    #[pyo3(signature = (look, results, inputs=None))]
    fn see_results(
        &self,
        look: &MonitorLook,
        results: Vec<Bound<'_, PyTensor>>,
        inputs: Option<Bound<'_, PyTensor>>,
    ) {
        let began = self.shared.clock();
        let results: Vec<Tensor> = results.iter().map(|t| t.get().tensor()).collect();
        let inputs = inputs.map(|t| t.get().tensor());
        look.tell(&mut self.held(), &mut self.lock(), &results, inputs.as_ref());
        self.shared.spend(began);
    }

    /// The gradients of the parameters that are held, as they are now: values, which show no later
    /// writes.
    fn gradient_values(&self) -> Vec<Option<PyTensor>> {
        let gradient = |p: &Py<PyTensor>| Some(p.get().tensor().grad()?.detach().into());
        self.held().parameters.iter().map(|(_, p)| gradient(p)).collect()
    }

    /// Number of hooks of tensors that are not monitors'.
    fn hooks(&self) -> u64 {
        FOREIGN.load(Ordering::Relaxed)
    }

    /// Calls `hook` with the gradient of a tensor, as one of the monitor.
    fn hook(&self, tensor: &Bound<'_, PyTensor>, hook: Py<PyAny>) -> PyResult<()> {
        tensor.get().hooked(hook, None).map(drop)
    }

    /// The largest curvature near the direction of the step.
    fn curvature(&self, largest: f64) {
        self.lock().curvature(largest);
    }

    /// Measures of the training as a whole, by name.
    fn measures(&self) -> std::collections::BTreeMap<String, f64> {
        self.lock().measures()
    }

    /// The seconds of a step and the bytes that tensors take.
    fn resources(&self, seconds: f64) {
        self.lock().resources(seconds, chainrule::memory::statistics().in_use as f64);
    }

    /// Whether the next answer is not asked for.
    fn passes_over_answer(&self) -> bool {
        self.lock().passes_over_answer()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(held) = self.held.try_lock() else { return Ok(()) };
        held.parameters.iter().try_for_each(|(_, p)| visit.call(p))?;
        held.foreign.iter().try_for_each(|(_, p)| visit.call(p))?;
        held.stepped.iter().try_for_each(|p| visit.call(p))
    }

    /// Whether the tensors of the next step are wanted.
    pub(super) fn is_due(&self) -> bool {
        self.lock().is_due()
    }

    /// The largest rate of an optimizer's groups, if one has a rate.
    fn rate(&self, optimizer: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let py = optimizer.py();
        let Some(groups) = optimizer.getattr_opt(intern!(py, "param_groups"))? else {
            return Ok(None);
        };
        let mut largest = None;
        for group in groups.try_iter()? {
            let group = group?;
            let rate = match group.cast::<PyDict>() {
                Ok(group) => group.get_item(intern!(py, "lr"))?,
                Err(_) => None,
            };
            if let Some(rate) = rate {
                let rate: f64 = rate.extract()?;
                largest = Some(largest.map_or(rate, |most: f64| most.max(rate)));
            }
        }
        Ok(largest)
    }

    /// Number of steps so far.
    fn steps(&self) -> u64 {
        self.lock().steps()
    }

    /// Steps from the next one on before one that is looked at.
    fn steps_to_look(&self) -> u64 {
        self.lock().steps_to_look()
    }

    /// A trained parameter and its gradient before the update.
    #[pyo3(signature = (name, value, gradient=None))]
    fn parameter(
        &self,
        name: &str,
        value: &Bound<'_, PyTensor>,
        gradient: Option<&Bound<'_, PyTensor>>,
    ) {
        let gradient = gradient.map(|g| g.get().tensor());
        self.lock().parameter(name, &value.get().tensor(), gradient.as_ref());
    }

    /// The parameter after the update.
    fn updated(&self, name: &str, value: &Bound<'_, PyTensor>) {
        self.lock().updated(name, &value.get().tensor());
    }

    /// The output of a module, with its bounds where its function has such.
    #[pyo3(signature = (name, value, bounds=None))]
    fn output(&self, name: &str, value: &Bound<'_, PyTensor>, bounds: Option<(i8, i8)>) {
        self.lock().output(name, kind_of(bounds), &value.get().tensor());
    }

    /// The gradient of that output.
    fn output_gradient(&self, name: &str, gradient: &Bound<'_, PyTensor>) {
        self.lock().output_gradient(name, &gradient.get().tensor());
    }

    /// The last output, its gradient and the loss, with the bounds of the module that gave it.
    #[pyo3(signature = (loss, output, gradient, bounds=None))]
    fn answer(
        &self,
        loss: f64,
        output: &Bound<'_, PyTensor>,
        gradient: &Bound<'_, PyTensor>,
        bounds: Option<(f64, f64)>,
    ) {
        self.lock().answer(loss, &output.get().tensor(), &gradient.get().tensor(), bounds);
    }

    /// The inputs of the model.
    fn inputs(&self, inputs: &Bound<'_, PyTensor>) {
        self.lock().inputs(&inputs.get().tensor());
    }

    /// Each step had the same rows, of data with so many; None if batches differ.
    #[pyo3(signature = (rows))]
    fn same_batch(&self, rows: Option<(u64, u64)>) {
        match rows {
            Some((rows, of)) => self.lock().same_batch(rows, of),
            None => self.lock().other_batch(),
        }
    }

    /// A pass in the wrong mode.
    fn wrong_mode(&self, is_training: bool) {
        self.lock().wrong_mode(is_training);
    }

    /// The output moved with other examples, or with later places.
    fn depends(&self, on_later_places: bool, share: f64) {
        let on = [Dependence::OtherExamples, Dependence::LaterPlaces];
        self.lock().depends(on[usize::from(on_later_places)], share);
    }

    /// A setting of the optimizer or the model.
    fn setting(&self, name: &str, value: f64) {
        self.lock().setting(name, value);
    }

    /// The norm of these tensors as one.
    fn norm(&self, tensors: Vec<Bound<'_, PyTensor>>) -> f64 {
        let tensors: Vec<_> = tensors.iter().map(|t| t.get().tensor()).collect();
        monitor::Monitor::norm(&tensors)
    }

    /// Parameters with their gradients before the update.
    fn parameters(&self, all: Vec<NamedPair<'_>>) {
        let mut monitor = self.lock();
        for (name, value, gradient) in &all {
            let gradient = gradient.as_ref().map(|g| g.get().tensor());
            monitor.parameter(name, &value.get().tensor(), gradient.as_ref());
        }
    }

    /// The parameters after the update.
    fn all_updated(&self, all: Vec<(String, Bound<'_, PyTensor>)>) {
        let mut monitor = self.lock();
        all.iter().for_each(|(name, value)| monitor.updated(name, &value.get().tensor()));
    }

    /// A backward pass, and whether it added to gradients that an update had used.
    fn backward(&self, is_stale: bool) {
        match is_stale {
            true => self.lock().stale_backward(),
            false => self.lock().backward(),
        }
    }

    /// The loss on held-out examples.
    fn validated(&self, loss: f64) {
        self.lock().validated(loss);
    }

    /// The training is done.
    fn end(&self) {
        self.lock().end();
    }

    /// The symptoms as rows: kind, place, step, evidence, consequence, fix, confidence.
    fn findings(&self) -> Vec<Row> {
        let all = self.lock().findings();
        let row = |s: monitor::Symptom| {
            let (kind, place) = (s.kind, s.place);
            (kind.name(), place, s.since, s.evidence, kind.consequence(), kind.fix(), s.confidence)
        };
        all.into_iter().map(row).collect()
    }

    /// Writes an event file of TensorBoard; its path.
    #[pyo3(signature = (folder, graph=None))]
    fn tensorboard(
        &self,
        folder: std::path::PathBuf,
        graph: Option<&Bound<'_, PyTensor>>,
    ) -> PyResult<std::path::PathBuf> {
        let graph = match graph {
            Some(loss) => Some(crate::error::run(|| loss.get().tensor().try_graph())?),
            None => None,
        };
        let mut monitor = self.lock();
        graph.iter().for_each(|graph| monitor.computation(graph));
        Ok(monitor.tensorboard(&folder)?)
    }

    /// No tensors are looked at before that step.
    fn rest_until(&self, step: u64) {
        self.lock().rest_until(step);
    }

    /// The report as the text of an HTML file.
    fn html(&self, title: &str) -> String {
        let monitor = self.lock();
        monitor::html(&monitor, title, &monitor.findings())
    }
}
