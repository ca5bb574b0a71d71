//! A training whose page nobody has open: losses are noted where backward passes run and taken
//! where the optimizer steps, with no wrapper of Python round either.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chainrule::Tensor;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::PyStudio;
use crate::monitor::PyMonitor;

/// Losses since the step before: their sum and number.
type Noted = Mutex<(f64, u32)>;

/// Those that note losses, and how many they are, which a pass can ask without the lock.
static NOTING: Mutex<Vec<Arc<Noted>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A backward pass of this loss is done.
#[inline]
pub fn note(loss: &Tensor) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        note_in_all(loss);
    }
}

#[cold]
fn note_in_all(loss: &Tensor) {
    if crate::session::current().is_some() || loss.numel() != 1 {
        return;
    }
    if let Ok(loss) = loss.try_item() {
        for noted in locked(&NOTING).iter() {
            let mut noted = locked(noted);
            *noted = (noted.0 + loss, noted.1 + 1);
        }
    }
}

/// Called by the optimizer after each step, as long as no page is open; `wake` is called when one
/// is, or when another optimizer steps.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct UnwatchedRun {
    page: Py<PyStudio>,
    monitor: Py<PyMonitor>,
    optimizer: Py<PyAny>,
    wake: Py<PyAny>,
    noted: Arc<Noted>,
}

#[pymethods]
impl UnwatchedRun {
    #[new]
    fn new(
        page: Py<PyStudio>,
        monitor: Py<PyMonitor>,
        optimizer: Py<PyAny>,
        wake: Py<PyAny>,
    ) -> UnwatchedRun {
        let noted = Arc::default();
        locked(&NOTING).push(Arc::clone(&noted));
        COUNT.fetch_add(1, Ordering::Relaxed);
        UnwatchedRun { page, monitor, optimizer, wake, noted }
    }

    /// No losses are noted any more.
    fn stop(&self) {
        let mut all = locked(&NOTING);
        let before = all.len();
        all.retain(|noted| !Arc::ptr_eq(noted, &self.noted));
        COUNT.fetch_sub(before - all.len(), Ordering::Relaxed);
    }

    /// The optimizer has made a step, in a compiled function that gave `out`.
    #[pyo3(signature = (optimizer, out=None))]
    fn __call__(
        &self,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = optimizer.py();
        let (sum, count) = std::mem::take(&mut *locked(&self.noted));
        let loss = (count > 0).then(|| sum / f64::from(count));
        if !optimizer.is(&self.optimizer) {
            return self.wake.call1(py, (optimizer, loss)).map(drop);
        }
        if self.page.get().pass_unwatched(self.monitor.get(), optimizer, loss, out)? {
            self.wake.call1(py, (optimizer, loss))?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.page)?;
        visit.call(&self.monitor)?;
        visit.call(&self.optimizer)?;
        visit.call(&self.wake)
    }
}

impl Drop for UnwatchedRun {
    fn drop(&mut self) {
        self.stop();
    }
}
