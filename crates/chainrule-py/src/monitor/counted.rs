//! Steps that a monitor does not look at, and looks that ask nothing of Python: told where backward
//! passes run and where the optimizer steps, with no wrapper of Python round either.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chainrule::Tensor;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::PyMonitor;
use super::sights::locked;

/// A monitor whose steps are counted so.
struct Counting {
    monitor: Py<PyMonitor>,
    passes: AtomicU64,
    /// The optimizer has made a step since the newest pass.
    has_stepped: AtomicBool,
    /// Looks are told of, too, and not only the steps between them.
    has_looks: bool,
}

/// All of them, and how many they are, which a pass can ask without the lock.
static ALL: Mutex<Vec<Arc<Counting>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Those among them that look.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// A backward pass of this loss begins.
#[inline]
pub fn begin_pass(loss: &Tensor) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        begin_in_all(loss);
    }
}

#[cold]
fn begin_in_all(loss: &Tensor) {
    if crate::session::current().is_some() {
        return;
    }
    for counting in locked(&ALL).iter() {
        counting.passes.fetch_add(1, Ordering::Relaxed);
        let has_stepped = counting.has_stepped.swap(false, Ordering::Relaxed);
        counting.monitor.get().begin_pass_of(loss, has_stepped);
    }
}

/// A backward pass is done.
#[inline]
pub fn end_pass() {
    if LOOKING.load(Ordering::Relaxed) > 0 {
        end_in_all();
    }
}

#[cold]
fn end_in_all() {
    if crate::session::current().is_some() {
        return;
    }
    let all = locked(&ALL);
    let looking = all.iter().filter(|counting| counting.has_looks);
    looking.for_each(|counting| counting.monitor.get().note_gradients());
}

/// Called by optimizers after each step, as long as steps are counted. `wake` is called with
/// whether the loss was a spike and whether the next step is looked at, if Python has something to
/// do for one of both; `other` with another optimizer.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct CountedSteps {
    counting: Arc<Counting>,
    optimizer: Py<PyAny>,
    wake: Py<PyAny>,
    other: Py<PyAny>,
}

#[pymethods]
impl CountedSteps {
    #[new]
    fn new(
        monitor: Py<PyMonitor>,
        optimizer: Py<PyAny>,
        wake: Py<PyAny>,
        other: Py<PyAny>,
        has_looks: bool,
    ) -> CountedSteps {
        let (passes, has_stepped) = (AtomicU64::new(0), AtomicBool::new(true));
        let counting = Arc::new(Counting { monitor, passes, has_stepped, has_looks });
        locked(&ALL).push(Arc::clone(&counting));
        COUNT.fetch_add(1, Ordering::Relaxed);
        LOOKING.fetch_add(usize::from(has_looks), Ordering::Relaxed);
        CountedSteps { counting, optimizer, wake, other }
    }

    /// Counts no more: backward passes since the beginning, and whether a step came after the
    /// newest.
    fn stop(&self) -> (u64, bool) {
        let mut all = locked(&ALL);
        let before = all.len();
        all.retain(|counting| !Arc::ptr_eq(counting, &self.counting));
        let counting = &self.counting;
        let gone = before - all.len();
        COUNT.fetch_sub(gone, Ordering::Relaxed);
        LOOKING.fetch_sub(gone * usize::from(counting.has_looks), Ordering::Relaxed);
        (counting.passes.load(Ordering::Relaxed), counting.has_stepped.load(Ordering::Relaxed))
    }

    fn __call__(&self, optimizer: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = optimizer.py();
        if !optimizer.is(&self.optimizer) {
            return self.other.call1(py, (optimizer,)).map(drop);
        }
        let monitor = self.counting.monitor.get();
        let is_look = monitor.is_due();
        if is_look {
            monitor.end_look_at_parameters();
        }
        let passed = monitor.pass(optimizer, None, true)?;
        self.counting.has_stepped.store(true, Ordering::Relaxed);
        // Hooks of modules are there for looks alone.
        let goes_on = passed.is_due == is_look && (!is_look || monitor.is_plain());
        if passed.is_spike || !goes_on {
            self.wake.call1(py, (passed.is_spike, passed.is_due))?;
        }
        Ok(())
    }

    /// An optimizer is about to step.
    fn before(&self, optimizer: &Bound<'_, PyAny>) {
        if optimizer.is(&self.optimizer) {
            self.counting.monitor.get().before_step();
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.optimizer)?;
        visit.call(&self.wake)?;
        visit.call(&self.other)
    }
}

impl Drop for CountedSteps {
    fn drop(&mut self) {
        self.stop();
    }
}
