//! Tensors of another library, which a look reads where they lie.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use chainrule::{DType, Tensor};
use dlpark::ffi::{DLDataTypeCode, DLDevice, DLTensor};
use dlpark::python::consumer::exchange::ExchangeApi;
use pyo3::intern;
use pyo3::prelude::*;

use super::PyMonitor;
use super::sights::{MonitorState, kind_of, locked};
use crate::error::run;

/// Most axes of a tensor that is read so.
const AXES: usize = 8;

/// The memory of a tensor of another library, while nobody writes to it: for what is looked at
/// before the loop goes on. `None` where it has to be asked for as DLPack's capsules.
fn borrowed(x: &Bound<'_, PyAny>) -> Option<Tensor> {
    // Views of PyTorch may stand for the negative of what is in their memory.
    if x.call_method0(intern!(x.py(), "is_neg")).ok()?.is_truthy().ok()? {
        return None;
    }
    let api = ExchangeApi::from_object(x.as_borrowed()).ok().flatten()?;
    let seen = api.with_tensor_view_no_sync(x.as_borrowed(), |view, _| read(view, x));
    seen.ok().flatten()
}

fn read(view: &DLTensor, owner: &Bound<'_, PyAny>) -> Option<Tensor> {
    let dtype = match (view.dtype.code, view.dtype.bits) {
        (DLDataTypeCode::FLOAT, 32) => DType::F32,
        (DLDataTypeCode::FLOAT, 64) => DType::F64,
        _ => return None,
    };
    let rank = usize::try_from(view.ndim).ok().filter(|rank| *rank <= AXES)?;
    let is_whole = rank == 0 || !(view.shape.is_null() || view.strides.is_null());
    if view.device != DLDevice::CPU || view.dtype.lanes != 1 || !is_whole {
        return None;
    }
    let (mut shape, mut strides) = ([0usize; AXES], [0isize; AXES]);
    for axis in 0..rank {
        // SAFETY: the producer gives as many sizes and strides as there are axes, until the view
        // ends.
        let (size, stride) = unsafe { (*view.shape.add(axis), *view.strides.add(axis)) };
        shape[axis] = usize::try_from(size).ok()?;
        strides[axis] = isize::try_from(stride).ok()?;
    }
    let first = view.data.cast::<u8>().wrapping_add(usize::try_from(view.byte_offset).ok()?);
    let owner = Box::new(owner.clone().unbind());
    // SAFETY: the object keeps its memory; a look is done with it before the loop goes on.
    unsafe { Tensor::from_foreign(first, &shape[..rank], &strides[..rank], dtype, owner) }.ok()
}

/// Whether the bits of all elements are the same.
fn is_same(a: &Tensor, b: &Tensor) -> bool {
    let (a, b) = (a.value_ref(), b.value_ref());
    // Without a branch for each, so that many are compared at once.
    const PART: usize = 1024;
    if let (Some(a), Some(b)) = (a.slice::<f32>(), b.slice::<f32>()) {
        let differ = |(a, b): (&[f32], &[f32])| {
            a.iter().zip(b).fold(0, |all, (a, b)| all | (a.to_bits() ^ b.to_bits())) != 0
        };
        return a.len() == b.len()
            && a.chunks(PART).zip(b.chunks(PART)).all(|parts| !differ(parts));
    }
    if let (Some(a), Some(b)) = (a.slice::<f64>(), b.slice::<f64>()) {
        let differ = |(a, b): (&[f64], &[f64])| {
            a.iter().zip(b).fold(0, |all, (a, b)| all | (a.to_bits() ^ b.to_bits())) != 0
        };
        return a.len() == b.len()
            && a.chunks(PART).zip(b.chunks(PART)).all(|parts| !differ(parts));
    }
    false
}

/// Whether the elements are neighbours.
fn is_near(t: &Tensor) -> bool {
    let value = t.value_ref();
    value.slice::<f32>().is_some() || value.slice::<f64>().is_some()
}

/// The same elements in memory of their own, which stays when the optimizer writes to the other.
fn copied(t: &Tensor) -> PyResult<Tensor> {
    run(|| t.try_copied())
}

/// A gradient of another library's parameter: none, or one that can be read.
fn gradient(p: &Bound<'_, PyAny>) -> PyResult<Option<Option<Tensor>>> {
    let g = p.getattr(intern!(p.py(), "grad"))?;
    Ok(if g.is_none() { Some(None) } else { borrowed(&g).map(Some) })
}

/// Parameters with their gradients at a look.
struct ForeignLook {
    all: Vec<Option<(Tensor, Option<Tensor>)>>,
    /// The gradients that were noted and those of the update, where they are others.
    changed: Option<(Vec<Tensor>, Vec<Tensor>)>,
}

impl PyMonitor {
    fn foreign(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.held().foreign.iter().map(|(_, p)| p.clone_ref(py)).collect()
    }

    /// Copies of the parameters and their gradients; `None` if one cannot be read.
    fn read_foreign(
        &self,
        py: Python<'_>,
        noted: Option<&[Option<Tensor>]>,
    ) -> PyResult<Option<ForeignLook>> {
        let mut seen = ForeignLook { all: Vec::new(), changed: None };
        let (mut was, mut is, mut differ) = (Vec::new(), Vec::new(), false);
        for (at, p) in self.foreign(py).iter().enumerate() {
            let p = p.bind(py);
            let (Some(value), Some(g)) = (borrowed(p), gradient(p)?) else { return Ok(None) };
            let g = g.map(|g| if is_near(&g) { Ok(g) } else { copied(&g) }).transpose()?;
            let before = noted.and_then(|noted| noted.get(at)?.clone());
            let g = match (g, &before) {
                (Some(g), Some(before)) if is_same(&g, before) => Some(before.clone()),
                (Some(g), _) => {
                    differ |= noted.is_some();
                    Some(copied(&g)?)
                }
                (None, before) => {
                    differ |= before.is_some();
                    None
                }
            };
            if let Some(before) = before {
                // Gradients that are gone count as zeros: a loop may empty them before its step.
                is.push(g.clone().unwrap_or_else(|| before.zeros_like()));
                was.push(before);
            }
            let is_trained = p.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
            let value = if is_trained { Some((copied(&value)?, g)) } else { None };
            seen.all.push(value);
        }
        seen.changed = differ.then_some((was, is));
        Ok(Some(seen))
    }
}

#[pymethods]
impl PyMonitor {
    /// Parameters of another library that are asked at each look.
    fn hold_foreign(&self, parameters: Vec<(String, Py<PyAny>)>) {
        self.held().foreign = parameters;
    }

    /// Notes the loss of another library; whether it could be read.
    fn note_foreign_loss(&self, loss: &Bound<'_, PyAny>) -> bool {
        let loss = borrowed(loss);
        loss.iter().for_each(|loss| self.held().note_loss(loss));
        loss.is_some()
    }

    /// Notes the gradients after a backward pass of a step that is looked at; whether all could be
    /// read.
    fn note_foreign_gradients(&self, py: Python<'_>) -> PyResult<bool> {
        let mut all = Vec::new();
        for p in self.foreign(py) {
            let Some(g) = gradient(p.bind(py))? else { return Ok(false) };
            all.push(g.map(|g| copied(&g)).transpose()?);
        }
        self.held().foreign_gradients = Some(all);
        Ok(true)
    }

    /// Sees the parameters with their gradients before the update, and whether these are those that
    /// were noted; whether all could be read.
    fn see_foreign(&self, py: Python<'_>) -> PyResult<bool> {
        let noted = self.held().foreign_gradients.take();
        let Some(seen) = self.read_foreign(py, noted.as_deref())? else { return Ok(false) };
        let (held, mut monitor) = (self.held(), self.lock());
        if let Some((was, is)) = &seen.changed {
            monitor.changed_gradients(was, is);
        }
        for ((name, _), seen) in held.foreign.iter().zip(&seen.all) {
            if let Some((value, gradient)) = seen {
                monitor.parameter(name, value, gradient.as_ref());
            }
        }
        Ok(true)
    }

    /// Sees the parameters after the update; whether all could be read.
    fn foreign_updated(&self, py: Python<'_>) -> bool {
        let all: Option<Vec<Tensor>> =
            self.foreign(py).iter().map(|p| borrowed(p.bind(py))).collect();
        let Some(all) = all else { return false };
        let (held, mut monitor) = (self.held(), self.lock());
        held.foreign.iter().zip(&all).for_each(|((name, _), p)| monitor.updated(name, p));
        true
    }

    /// The hook of a module of another library, as [`PyMonitor::sight`]; `by_capsules` is called
    /// where a result cannot be read where it lies. A module without modules inside tells `sights`
    /// of itself.
    fn foreign_sight(
        &self,
        name: String,
        bounds: Option<(i8, i8)>,
        kind: Option<String>,
        sights: Py<PyAny>,
        by_capsules: Py<PyAny>,
    ) -> ForeignSight {
        let shared = self.shared.clone();
        ForeignSight { shared, name: name.into(), bounds, kind, sights, by_capsules }
    }
}

/// The newest result of a module of another library.
pub struct NewestForeign {
    output: Py<PyAny>,
    name: Arc<str>,
    others: Arc<Mutex<Vec<Arc<str>>>>,
}

/// The hook of a module of another library.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct ForeignSight {
    shared: Arc<MonitorState>,
    name: Arc<str>,
    bounds: Option<(i8, i8)>,
    /// The name of its type, if it has no modules inside.
    kind: Option<String>,
    sights: Py<PyAny>,
    by_capsules: Py<PyAny>,
}

#[pymethods]
impl ForeignSight {
    fn __call__(
        &self,
        module: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, shared) = (out.py(), &self.shared);
        if shared.is_asleep.load(Ordering::Relaxed)
            || !shared.lock().is_due()
            || !module.getattr(intern!(py, "training"))?.is_truthy()?
        {
            return Ok(());
        }
        let began = shared.clock();
        let Some(output) = borrowed(out) else {
            return self.by_capsules.call1(py, (module, args, out)).map(drop);
        };
        if let Some(kind) = &self.kind {
            // A weak link would do, but not all tensors have one.
            let leaf = (out, kind, self.bounds).into_pyobject(py)?;
            self.sights.setattr(py, intern!(py, "_leaf"), leaf)?;
        }
        self.see(out, &output)?;
        shared.spend(began);
        Ok(())
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        visit.call(&self.sights)?;
        visit.call(&self.by_capsules)
    }
}

impl ForeignSight {
    fn see(&self, out: &Bound<'_, PyAny>, output: &Tensor) -> PyResult<()> {
        let (py, kind) = (out.py(), kind_of(self.bounds));
        let mut newest = locked(&self.shared.newest_foreign);
        if let Some(same) = newest.as_ref().filter(|newest| newest.output.is(out)) {
            self.shared.lock().same_output(&self.name, kind, &same.name);
            locked(&same.others).push(self.name.clone());
            return Ok(());
        }
        self.shared.lock().output(&self.name, kind, output);
        let (name, others) = (self.name.clone(), Arc::<Mutex<Vec<Arc<str>>>>::default());
        let (first, more) = (name.clone(), others.clone());
        let before = newest.replace(NewestForeign { output: out.clone().unbind(), name, others });
        drop((newest, before));
        if out.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
            let shared = self.shared.clone();
            let by_capsules = self.sights.clone_ref(py);
            let hook = ForeignGradient { shared, name: first, others: more, sights: by_capsules };
            out.call_method1(intern!(py, "register_hook"), (Bound::new(py, hook)?,))?;
        }
        Ok(())
    }
}

/// The hook of a result of a module of another library.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct ForeignGradient {
    shared: Arc<MonitorState>,
    name: Arc<str>,
    others: Arc<Mutex<Vec<Arc<str>>>>,
    sights: Py<PyAny>,
}

#[pymethods]
impl ForeignGradient {
    fn __call__(&self, g: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.shared.is_asleep.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (py, began) = (g.py(), self.shared.clock());
        let others = locked(&self.others).clone();
        let Some(gradient) = borrowed(g) else {
            for name in [&self.name].into_iter().chain(&others) {
                self.sights.call_method1(py, intern!(py, "_came_back"), (&**name, g))?;
            }
            return Ok(());
        };
        let mut monitor = self.shared.lock();
        monitor.output_gradient(&self.name, &gradient);
        others.iter().for_each(|other| monitor.same_output_gradient(other, &self.name));
        drop(monitor);
        self.shared.spend(began);
        Ok(())
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        visit.call(&self.sights)
    }
}
