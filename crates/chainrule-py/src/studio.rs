//! The studio's page for Python: a graph with its backward pass, or a training while it runs.

mod unwatched;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use chainrule_studio::{Branch, Captured, Given, HandGradients, Hub, LiveRun, Studio, view};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

pub use self::unwatched::{UnwatchedRun, note};
use crate::monitor::PyMonitor;
use crate::tensor::PyTensor;

/// A page that is served until the process ends, and its run, if there is one.
#[pyclass(name = "Studio", module = "chainrule._chainrule", frozen)]
pub struct PyStudio {
    url: String,
    by_hand: HandGradients,
    hub: Hub,
    run: Option<Mutex<LiveRun>>,
}

impl PyStudio {
    /// Serves a page; its address opens the computation, if there is one, and else the training.
    fn serve(given: Vec<Given>, port: u16, title: Option<&str>) -> PyResult<PyStudio> {
        let is_training = given.is_empty();
        let captured = given.first().and_then(|given| given.captured.as_ref());
        let by_hand = captured.map(|captured| captured.by_hand.clone()).unwrap_or_default();
        let failed = |e| PyOSError::new_err(format!("cannot listen on 127.0.0.1:{port}: {e}"));
        let studio = Studio::bind(port, given).map_err(failed)?;
        let hub = studio.hub().clone();
        let run = title.map(|title| Mutex::new(hub.begin(title)));
        let url = if is_training { studio.url_of("training") } else { studio.url() };
        let server = thread::Builder::new().name("studio".into());
        server.spawn(move || studio.serve()).map_err(failed)?;
        Ok(PyStudio { url, by_hand, hub, run })
    }

    fn slot(&self) -> PyResult<&Mutex<LiveRun>> {
        self.run.as_ref().ok_or_else(|| PyValueError::new_err("this page shows no training"))
    }

    fn run(&self) -> PyResult<LiveRun> {
        Ok(self.slot()?.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl PyStudio {
    /// Ends a step that no page sees, with the loss of its backward pass; whether a page is open by
    /// now.
    fn pass_unwatched(
        &self,
        monitor: &PyMonitor,
        optimizer: &Bound<'_, PyAny>,
        loss: Option<f64>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let run = self.run()?;
        let passed = monitor.pass_with(loss, optimizer, out, false)?;
        let known = |x: Option<f64>| x.unwrap_or(f64::NAN);
        run.step(passed.steps, known(passed.loss), known(passed.rate), None);
        Ok(run.is_watched())
    }
}

/// The backward pass of a tensor: `named` are tensors with names and lines, `modules` those that
/// were called, with the numbers on the tape before and behind.
fn captured(
    title: String,
    root: &Bound<'_, PyTensor>,
    named: Vec<(Bound<'_, PyTensor>, String, usize)>,
    lines: Vec<String>,
    modules: Vec<(String, u64, u64)>,
) -> Given {
    let named = named.into_iter().map(|(t, name, line)| (t.get().tensor(), name, line)).collect();
    let captured = Captured { named, lines, modules, ..Captured::of(root.get().tensor()) };
    // A fault is told where the pass is looked at.
    let _ = root.py().detach(|| captured.walk());
    Given { title, captured: Some(captured), ..Given::default() }
}

/// A page with the backward pass of a tensor, and beside it a training of the title `run`.
#[pyfunction]
#[pyo3(signature = (title, root, named, lines, modules, port, run=None))]
pub fn _studio_tensor(
    title: String,
    root: &Bound<'_, PyTensor>,
    named: Vec<(Bound<'_, PyTensor>, String, usize)>,
    lines: Vec<String>,
    modules: Vec<(String, u64, u64)>,
    port: u16,
    run: Option<&str>,
) -> PyResult<PyStudio> {
    PyStudio::serve(vec![captured(title, root, named, lines, modules)], port, run)
}

/// The page of [`_studio_tensor`] as JSON text.
#[pyfunction]
pub fn _studio_json(
    title: String,
    root: &Bound<'_, PyTensor>,
    named: Vec<(Bound<'_, PyTensor>, String, usize)>,
    lines: Vec<String>,
    modules: Vec<(String, u64, u64)>,
) -> PyResult<String> {
    let given = captured(title, root, named, lines, modules);
    let shown = root.py().detach(|| view(given)).map_err(PyValueError::new_err)?;
    Ok(shown.to_string())
}

/// A page with a training.
#[pyfunction]
pub fn _studio_run(title: &str, port: u16) -> PyResult<PyStudio> {
    PyStudio::serve(Vec::new(), port, Some(title))
}

#[pymethods]
impl PyStudio {
    /// The address of the page, with its token.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Sets the gradients that the user's own code computed, with their lines, by the names of the
    /// tensors.
    fn by_hand(&self, all: Vec<(String, Bound<'_, PyTensor>, usize)>) {
        let all = all.into_iter().map(|(name, t, line)| (name, t.get().tensor(), line));
        self.by_hand.set(all.collect());
    }

    /// Whether a page is open.
    fn is_watched(&self) -> PyResult<bool> {
        Ok(self.run()?.is_watched())
    }

    /// A step is done.
    #[pyo3(signature = (step, loss, rate, grad_norm=None))]
    fn stepped(&self, step: u64, loss: f64, rate: f64, grad_norm: Option<f64>) -> PyResult<()> {
        self.run()?.step(step, loss, rate, grad_norm);
        Ok(())
    }

    /// Ends a step that was not looked at, as [`PyMonitor::pass_over`]: whether its loss was a
    /// spike, whether the next step is looked at, and whether the page has ever asked for anything.
    #[pyo3(signature = (monitor, optimizer, out=None))]
    fn pass_over(
        &self,
        monitor: &Bound<'_, PyMonitor>,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(bool, bool, bool)> {
        let run = self.run()?;
        let passed = monitor.get().pass(optimizer, out, run.is_watched())?;
        let known = |x: Option<f64>| x.unwrap_or(f64::NAN);
        run.step(passed.steps, known(passed.loss), known(passed.rate), None);
        Ok((passed.is_spike, passed.is_due, run.has_orders()))
    }

    /// The tensors that a monitor saw in the step done last.
    fn look(&self, monitor: &Bound<'_, PyMonitor>) -> PyResult<()> {
        monitor.get().tell(&self.run()?);
        Ok(())
    }

    /// Something that goes wrong.
    fn found(&self, step: u64, kind: &str, words: &str) -> PyResult<()> {
        self.run()?.found(step, kind, words);
        Ok(())
    }

    /// The learning rate that the page chose, or None.
    fn rate(&self) -> PyResult<Option<f64>> {
        Ok(self.run()?.rate())
    }

    /// Waits while the page holds the run; Ctrl-C ends the wait with its exception.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.run()?;
        let interrupted = AtomicBool::new(false);
        let asked = || {
            let is = Python::attach(|py| py.check_signals()).is_err();
            interrupted.fetch_or(is, Ordering::Relaxed) || is
        };
        py.detach(|| run.pass(&asked));
        match interrupted.into_inner() {
            true => Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(())),
            false => Ok(()),
        }
    }

    /// The page may have states kept, and go back to them.
    fn allow_branches(&self) -> PyResult<()> {
        self.run()?.allow_branches();
        Ok(())
    }

    /// The order that is to be carried out now, or None: the number of the state to go back to,
    /// None to keep the present one, and the rate.
    fn take_branch(&self) -> PyResult<Option<(Option<usize>, Option<f64>)>> {
        Ok(self.run()?.take_branch().map(|order| match order {
            Branch::Checkpoint => (None, None),
            Branch::Fork { checkpoint, rate } => (Some(checkpoint), rate),
        }))
    }

    /// A state was kept after that many steps.
    fn kept(&self, step: u64, place: &str) -> PyResult<()> {
        self.run()?.kept(step, place);
        Ok(())
    }

    /// A text for the page.
    fn text(&self, step: u64, title: &str, text: &str) -> PyResult<()> {
        self.run()?.text(step, title, text);
        Ok(())
    }

    /// The loop went back by so many steps: the run ends, and another one begins.
    fn go_back(&self, why: &str, title: &str, by: u64) -> PyResult<()> {
        let slot = self.slot()?;
        let mut run = slot.lock().unwrap_or_else(PoisonError::into_inner);
        run.end(why);
        *run = self.hub.begin_branching(title).counted_ahead(by);
        Ok(())
    }

    /// The run has ended.
    fn end(&self, py: Python<'_>, why: &str) -> PyResult<()> {
        self.run()?.end(why);
        let hub = self.hub.clone();
        py.detach(move || hub.drain());
        Ok(())
    }
}
