//! Steps that a monitor does not look at, counted where backward passes run and where the optimizer
//! steps, with no wrapper of Python round either.

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
}

/// All of them, and how many they are, which a pass can ask without the lock.
static ALL: Mutex<Vec<Arc<Counting>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

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

/// Called by optimizers after each step, as long as steps are counted. `wake` is called with
/// whether the loss was a spike and whether the next step is looked at, if one of both is so;
/// `other` with another optimizer.
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
    ) -> CountedSteps {
        let (passes, has_stepped) = (AtomicU64::new(0), AtomicBool::new(true));
        let counting = Arc::new(Counting { monitor, passes, has_stepped });
        locked(&ALL).push(Arc::clone(&counting));
        COUNT.fetch_add(1, Ordering::Relaxed);
        CountedSteps { counting, optimizer, wake, other }
    }

    /// Counts no more: backward passes since the beginning, and whether a step came after the
    /// newest.
    fn stop(&self) -> (u64, bool) {
        let mut all = locked(&ALL);
        let before = all.len();
        all.retain(|counting| !Arc::ptr_eq(counting, &self.counting));
        COUNT.fetch_sub(before - all.len(), Ordering::Relaxed);
        let counting = &self.counting;
        (counting.passes.load(Ordering::Relaxed), counting.has_stepped.load(Ordering::Relaxed))
    }

    fn __call__(&self, optimizer: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = optimizer.py();
        if !optimizer.is(&self.optimizer) {
            return self.other.call1(py, (optimizer,)).map(drop);
        }
        let passed = self.counting.monitor.get().pass(optimizer, None, true)?;
        self.counting.has_stepped.store(true, Ordering::Relaxed);
        if passed.is_spike || passed.is_due {
            self.wake.call1(py, (passed.is_spike, passed.is_due))?;
        }
        Ok(())
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
