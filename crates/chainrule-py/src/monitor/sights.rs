//! Hooks of a monitor at the modules of a model.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chainrule::Tensor;
use chainrule::monitor::{self, OutputKind};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::foreign::NewestForeign;
use crate::tensor::PyTensor;

/// The part that hooks have, too.
pub struct MonitorState {
    pub monitor: Mutex<monitor::Monitor>,
    /// Nanoseconds that looks took here.
    pub spent: AtomicU64,
    /// Looks for which the next one stands, as clocks are read at some of them alone; 0 where they
    /// are not.
    pub timed: AtomicU64,
    /// The model is asked something: what it answers is no part of the training.
    pub is_asleep: AtomicBool,
    /// A trace that is to give what a look sees: hooks put it here.
    pub collected: Mutex<Option<Py<PyList>>>,
    /// The newest result of a module, and those that gave it.
    pub newest: Mutex<Option<Newest>>,
    pub newest_foreign: Mutex<Option<NewestForeign>>,
}

pub struct Newest {
    pub output: Tensor,
    /// The first module that gave it, and those that gave the same.
    name: Arc<str>,
    others: Arc<Mutex<Vec<Arc<str>>>>,
    /// Whether the first of them has no modules inside, and the bounds of its results.
    pub is_leaf: bool,
    pub bounds: Option<(f64, f64)>,
}

pub fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MonitorState {
    pub fn lock(&self) -> MutexGuard<'_, monitor::Monitor> {
        locked(&self.monitor)
    }

    /// The time, where it is read at this look.
    pub fn clock(&self) -> Option<Instant> {
        (self.timed.load(Ordering::Relaxed) > 0).then(Instant::now)
    }

    /// Counts the time that this took, of as many looks as this one stands for.
    pub fn spend(&self, since: Option<Instant>) {
        let Some(since) = since else { return };
        let took = since.elapsed().as_nanos() as u64 * self.timed.load(Ordering::Relaxed);
        self.spent.fetch_add(took, Ordering::Relaxed);
    }
}

pub fn kind_of(bounds: Option<(i8, i8)>) -> OutputKind {
    bounds.map_or(OutputKind::Any, |(low, high)| OutputKind::Bounded { low, high })
}

/// The hook of a module, which tells of its results and of the gradients that come back to them.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct Sight {
    shared: Arc<MonitorState>,
    name: Arc<str>,
    bounds: Option<(i8, i8)>,
    is_leaf: bool,
    /// Bounds that say what the loss is to be.
    range: Option<(f64, f64)>,
}

#[pymethods]
impl Sight {
    fn __call__(
        &self,
        module: &Bound<'_, PyAny>,
        _args: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let shared = &self.shared;
        if shared.is_asleep.load(Ordering::Relaxed) {
            return Ok(());
        }
        let is_traced = crate::session::current().is_some();
        if !is_traced && !shared.lock().is_due() {
            return Ok(());
        }
        let Ok(handle) = out.cast::<PyTensor>() else { return Ok(()) };
        if is_traced {
            return self.collect(module, handle);
        }
        let output = handle.get().tensor();
        if !output.dtype().is_float()
            || !module.getattr(intern!(module.py(), "training"))?.is_truthy()?
        {
            return Ok(());
        }
        let began = shared.clock();
        self.see(output)?;
        shared.spend(began);
        Ok(())
    }
}

impl Sight {
    pub fn new(
        shared: Arc<MonitorState>,
        name: String,
        bounds: Option<(i8, i8)>,
        is_leaf: bool,
        range: Option<(f64, f64)>,
    ) -> Sight {
        Sight { shared, name: name.into(), bounds, is_leaf, range }
    }

    /// Puts a result where a trace gives it from.
    fn collect(&self, module: &Bound<'_, PyAny>, out: &Bound<'_, PyTensor>) -> PyResult<()> {
        let collected = locked(&self.shared.collected);
        let Some(list) = collected.as_ref().map(|list| list.bind(out.py())) else {
            return Ok(());
        };
        if !module.getattr(intern!(module.py(), "training"))?.is_truthy()?
            || !out.get().tensor().dtype().is_float()
        {
            return Ok(());
        }
        if out.get().tensor().requires_grad() {
            out.get().tensor().retain_grad();
        }
        list.append((&*self.name, self.bounds, out, self.is_leaf, self.range))
    }

    fn see(&self, output: Tensor) -> PyResult<()> {
        let kind = kind_of(self.bounds);
        let mut newest = locked(&self.shared.newest);
        if let Some(same) = newest.as_ref().filter(|newest| newest.output.is_same(&output)) {
            self.shared.lock().same_output(&self.name, kind, &same.name);
            locked(&same.others).push(self.name.clone());
            return Ok(());
        }
        self.shared.lock().output(&self.name, kind, &output);
        let (name, others) = (self.name.clone(), Arc::<Mutex<Vec<Arc<str>>>>::default());
        if output.requires_grad() {
            let (shared, name, others) = (self.shared.clone(), name.clone(), others.clone());
            let hook = move |g: &Tensor| {
                if shared.is_asleep.load(Ordering::Relaxed) {
                    return None;
                }
                let began = shared.clock();
                let mut monitor = shared.lock();
                monitor.output_gradient(&name, g);
                for other in locked(&others).iter() {
                    monitor.same_output_gradient(other, &name);
                }
                drop(monitor);
                shared.spend(began);
                None
            };
            crate::error::run(|| output.register_hook(hook))?;
        }
        let (is_leaf, bounds) = (self.is_leaf, self.range);
        *newest = Some(Newest { output, name, others, is_leaf, bounds });
        Ok(())
    }
}

/// The hook of the model as a whole: it calls a function of Python at looks, and at all passes of a
/// model whose modes differ or that is not trained.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct WholeSight {
    shared: Arc<MonitorState>,
    has_modes: bool,
    look: Py<PyAny>,
    /// The inputs of a pass that was not looked at.
    inputs: Mutex<Option<Py<PyTensor>>>,
    /// The newest pass with a gradient was in evaluation mode.
    is_evaluating: AtomicBool,
    /// Looks ask nothing of Python but what the answer is compared with, now and then.
    rests: AtomicBool,
}

impl WholeSight {
    pub fn new(shared: Arc<MonitorState>, has_modes: bool, look: Py<PyAny>) -> WholeSight {
        let (is_evaluating, rests) = (AtomicBool::new(false), AtomicBool::new(false));
        WholeSight { shared, has_modes, look, inputs: Mutex::default(), is_evaluating, rests }
    }

    /// Sees the inputs of a pass that is looked at, if that is all that is to be seen.
    fn see(&self, inputs: Option<&Bound<'_, PyTensor>>) -> bool {
        let Some(inputs) = inputs.filter(|_| self.rests.load(Ordering::Relaxed)) else {
            return false;
        };
        let (inputs, began) = (inputs.get().tensor(), self.shared.clock());
        let mut monitor = self.shared.lock();
        if inputs.rank() == 0 || !monitor.passes_over_answer() {
            return false;
        }
        if inputs.dtype().is_float() {
            monitor.inputs(&inputs);
        }
        drop(monitor);
        self.shared.spend(began);
        true
    }
}

#[pymethods]
impl WholeSight {
    fn __call__(
        &self,
        module: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, shared) = (out.py(), &self.shared);
        if shared.is_asleep.load(Ordering::Relaxed) {
            return Ok(());
        }
        if crate::session::current().is_some() {
            let collected = locked(&shared.collected);
            return match collected.as_ref() {
                Some(list) => list.bind(py).append((args, out)),
                None => Ok(()),
            };
        }
        let is_due = shared.lock().is_due();
        let recorded = out.cast::<PyTensor>().is_ok_and(|out| out.get().tensor().requires_grad());
        let is_usual = || -> PyResult<bool> {
            Ok(!self.has_modes
                || !self.is_evaluating.load(Ordering::Relaxed)
                    && module.getattr(intern!(py, "training"))?.is_truthy()?)
        };
        if recorded && is_usual()? {
            let first = args.iter().find_map(|x| x.cast_into::<PyTensor>().ok());
            if !is_due || self.see(first.as_ref()) {
                *locked(&self.inputs) = first.map(Bound::unbind);
                return Ok(());
            }
        }
        *locked(&self.inputs) = None;
        self.look.call1(py, (module, args, out)).map(drop)
    }

    /// The inputs of the newest pass that was not looked at, once.
    fn inputs(&self) -> Option<Py<PyTensor>> {
        locked(&self.inputs).take()
    }

    /// The model was asked all that it is asked once, and its batches differ.
    fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    /// Tells whether the newest pass with a gradient was in evaluation mode.
    fn evaluates(&self, is_evaluating: bool) {
        self.is_evaluating.store(is_evaluating, Ordering::Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.look)
    }
}
