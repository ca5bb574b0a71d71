//! The parts of a step, as the Python layer tells of them.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use super::PyMonitor;
use crate::tensor::PyTensor;

/// A part of a step that Python has to tell of itself.
const BY_PYTHON: u8 = 0;
/// A part of a step that is not looked at.
const CALM: u8 = 1;
/// A part of a look that was told of.
const LOOK: u8 = 2;

impl PyMonitor {
    /// The parameters after the update.
    fn see_updates(&self) {
        let began = self.shared.clock();
        let (held, mut monitor) = (self.held(), self.lock());
        held.parameters.iter().for_each(|(name, p)| monitor.updated(name, &p.get().tensor()));
        drop(monitor);
        self.shared.spend(began);
    }

    fn stage(&self) -> u8 {
        match self.is_due() {
            _ if crate::session::current().is_some() => BY_PYTHON,
            false => CALM,
            true if self.is_plain() => LOOK,
            true => BY_PYTHON,
        }
    }
}

#[pymethods]
impl PyMonitor {
    /// Looks so far.
    fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Counts a look; looks so far.
    fn looked(&self) -> u64 {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let timed = match self.often {
            Some(n) if looks >= n && looks % n == n / 2 => n,
            Some(n) if looks >= n => 0,
            _ => 1,
        };
        self.shared.timed.store(timed, Ordering::Relaxed);
        looks
    }

    /// Whether the next look asks nothing of Python: neither for settings nor for what costs
    /// several passes, and it earns no time.
    fn is_plain(&self) -> bool {
        let looks = self.looks();
        let asks =
            |n: u64| looks < n || looks.is_multiple_of(n * n) || (looks + 1).is_multiple_of(n);
        self.often.is_some_and(|n| !asks(n))
    }

    /// A backward pass of that loss begins, if Python has not to tell of it: 0 if it has, 1 in a
    /// step that is not looked at, 2 in a look.
    fn begin_pass(&self, loss: &Bound<'_, PyTensor>, has_stepped: bool) -> u8 {
        let stage = self.stage();
        if stage != BY_PYTHON {
            self.before_backward(loss, has_stepped);
        }
        stage
    }

    /// The optimizer is about to step, as [`PyMonitor::begin_pass`].
    fn begin_step(&self) -> u8 {
        let stage = self.stage();
        if stage == LOOK {
            self.before_step();
        }
        stage
    }

    /// Ends a look that asked nothing of Python: whether its loss was a spike, and whether the next
    /// step is looked at.
    #[pyo3(signature = (optimizer, out=None))]
    fn end_look(
        &self,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(bool, bool)> {
        self.see_updates();
        self.looked();
        let passed = self.pass(optimizer, out, true)?;
        Ok((passed.is_spike, passed.is_due))
    }

    /// Sees the parameters with their gradients before the update, and whether these are those that
    /// were noted, if the step is looked at; whether it is.
    fn before_step(&self) -> bool {
        if !self.is_due() {
            return false;
        }
        let began = self.shared.clock();
        self.see_parameters();
        self.shared.spend(began);
        true
    }

    /// Ends a step, of which `out` is what a compiled function gave that made it: after a look
    /// with the parameters after the update. The loss, whether it was a spike, and whether the next
    /// step is looked at.
    fn end_step(
        &self,
        optimizer: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        is_look: bool,
    ) -> PyResult<(Option<f64>, bool, bool)> {
        if is_look {
            self.see_updates();
        }
        let passed = self.pass(optimizer, Some(out), true)?;
        Ok((passed.loss, passed.is_spike, passed.is_due))
    }

    /// Ends a step that was not looked at: `out` is what a compiled function gave that made it.
    /// Whether its loss was a spike, and whether the next step is looked at.
    #[pyo3(signature = (optimizer, out=None))]
    fn pass_over(
        &self,
        optimizer: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(bool, bool)> {
        let passed = self.pass(optimizer, out, true)?;
        Ok((passed.is_spike, passed.is_due))
    }
}
