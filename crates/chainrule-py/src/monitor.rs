//! The monitor of a training, for the Python layer that tells it of steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chainrule::monitor::{self, Dependence, OutputKind};
use chainrule_studio::LiveRun;
use pyo3::prelude::*;

use crate::tensor::PyTensor;

/// Records and detectors of a training.
#[pyclass(name = "Monitor", module = "chainrule._chainrule", frozen)]
pub struct PyMonitor(Mutex<monitor::Monitor>);

impl PyMonitor {
    fn lock(&self) -> MutexGuard<'_, monitor::Monitor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn new(every: u64) -> PyMonitor {
        PyMonitor(Mutex::new(monitor::Monitor::new().every(every).with_sparse_histograms()))
    }

    /// Whether the tensors of the next step are wanted.
    fn is_due(&self) -> bool {
        self.lock().is_due()
    }

    /// Number of steps so far.
    fn steps(&self) -> u64 {
        self.lock().steps()
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
        let kind = bounds.map_or(OutputKind::Any, |(low, high)| OutputKind::Bounded { low, high });
        self.lock().output(name, kind, &value.get().tensor());
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

    /// Whether the loss of the step done last was a spike.
    fn is_spike(&self) -> bool {
        self.lock().is_spike()
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

    /// The norm of all gradients before and after clipping.
    fn clipped(&self, before: f64, after: f64) {
        self.lock().clipped(before, after);
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

    /// Ends a step.
    #[pyo3(signature = (loss=None, rate=None))]
    fn step(&self, loss: Option<f64>, rate: Option<f64>) {
        self.lock().step(loss, rate);
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
