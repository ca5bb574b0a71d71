//! The parts of a step, as the Python layer tells of them.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::PyMonitor;
use super::program::{MonitorLook, number_of};
use crate::ready::{Conditions, Watched};
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

    /// A look is done but for the end of its step.
    pub(super) fn end_look_at_parameters(&self) {
        self.see_updates();
        self.looked();
    }

    fn is_asked(&self, looks: u64) -> bool {
        // Once there are many, the time of a step is asked for as seldom as settings are.
        let asks = |n: u64| {
            let next = if looks < n * n { n } else { n * n };
            looks < n || looks.is_multiple_of(n * n) || (looks + 1).is_multiple_of(next)
        };
        self.often.is_none_or(asks)
    }
}

#[pymethods]
impl PyMonitor {
    /// The part of a step that comes next: 0 if Python has to tell of it, 1 if it is not looked at,
    /// 2 if it is a look that the native side tells of.
    fn stage(&self) -> u8 {
        match self.is_due() {
            _ if crate::session::current().is_some() => BY_PYTHON,
            false => CALM,
            true if self.is_plain() => LOOK,
            true => BY_PYTHON,
        }
    }

    /// A look at a step that a program makes for these arguments, as `begin_look`, `see_results`
    /// and `end_look` in one: the result of that number, whether its loss was a spike, and whether
    /// the next step is looked at. `given` is the argument that holds the inputs of the model.
    /// Nothing where the program is not for them.
    #[expect(clippy::too_many_arguments, reason = "a program with its conditions and arguments")]
    fn look_at(
        &self,
        look: &MonitorLook,
        conditions: &Conditions,
        watched: &Bound<'_, Watched>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        places: (usize, Option<usize>),
        optimizer: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(PyTensor, bool, bool)>> {
        let (result, given) = places;
        let Some(tensors) = conditions.tensors(watched, args, kwargs)? else { return Ok(None) };
        let inputs = given.and_then(|at| tensors.get(at)).map(|t| t.get().tensor());
        self.begin_look()?;
        let results = conditions.values(args.py(), &tensors)?;
        let began = self.shared.clock();
        let count = results.len();
        let seen = look.seen(results)?;
        look.tell(&mut self.held(), &mut self.lock(), &seen, inputs.as_ref());
        self.shared.spend(began);
        self.end_look_at_parameters();
        if result >= count {
            return Err(PyIndexError::new_err(format!("there is no result {result}")));
        }
        let rate = self.rate(optimizer)?;
        let (_, is_spike) = self.step(number_of(&seen[result]), rate);
        Ok(Some((PyTensor::from(seen[result].clone()), is_spike, self.is_due())))
    }

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
    pub(super) fn is_plain(&self) -> bool {
        !self.is_asked(self.looks())
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
        self.end_look_at_parameters();
        let passed = self.pass(optimizer, out, true)?;
        Ok((passed.is_spike, passed.is_due))
    }

    /// Sees the parameters with their gradients before the update, and whether these are those that
    /// were noted, if the step is looked at; whether it is.
    pub(super) fn before_step(&self) -> bool {
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
