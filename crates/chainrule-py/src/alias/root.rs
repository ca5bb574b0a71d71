//! The tensor that a view was taken from, with the memory that it had then.
//!
//! `p.data = t` gives a tensor other memory, and views from before stay with the old one. Memory
//! therefore has a number and counts its views; when a tensor with views gets another one, a handle
//! that nobody sees takes over the old.

use std::sync::atomic::{AtomicU32, Ordering};

use chainrule::Tensor;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::{Alias, Link, Seen};
use crate::error::run;
use crate::handle::{Inner, Rest};
use crate::tensor::PyTensor;

/// The memory that a tensor has now: its number, and how many views show it.
#[derive(Default)]
pub struct Views {
    memory: AtomicU32,
    count: AtomicU32,
}

/// Memory that a tensor had, as long as views show it.
pub struct Past {
    memory: u32,
    count: u32,
    old: Py<PyTensor>,
}

/// A tensor and the number of its memory. The tensor counts those that are alive.
pub struct Root {
    handle: Py<PyTensor>,
    memory: u32,
}

impl Past {
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.old)
    }
}

impl Root {
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.handle)
    }

    #[inline]
    pub fn of(handle: &Bound<'_, PyTensor>) -> Root {
        let views = &handle.get().views;
        views.count.fetch_add(1, Ordering::Relaxed);
        let memory = views.memory.load(Ordering::Relaxed);
        Root { handle: handle.clone().unbind(), memory }
    }

    /// The same once more.
    #[inline]
    pub fn clone_ref(&self, py: Python<'_>) -> Root {
        match self.direct() {
            Some(_) => Root::of(self.handle.bind(py)),
            None => Root::of(&self.get(py)),
        }
    }

    /// The tensor, unless it has other memory by now.
    #[inline]
    pub fn direct(&self) -> Option<&PyTensor> {
        let own = self.handle.get();
        (own.views.memory.load(Ordering::Relaxed) == self.memory).then_some(own)
    }

    /// The handle that has the memory now.
    pub fn get<'py>(&self, py: Python<'py>) -> Bound<'py, PyTensor> {
        let handle = self.handle.bind(py);
        if self.direct().is_some() {
            return handle.clone();
        }
        let inner = handle.get().lock();
        let past = inner.rest.as_ref().map_or(&[][..], |rest| &rest.past);
        let past = past.iter().find(|p| p.memory == self.memory);
        past.map_or(handle, |p| p.old.bind(py)).clone()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let own = self.handle.get();
        if self.direct().is_some() {
            own.views.count.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let mut inner = own.lock();
        let mut gone = None;
        if let Some(all) = inner.rest.as_mut().map(|rest| &mut rest.past)
            && let Some(i) = all.iter().position(|p| p.memory == self.memory)
        {
            all[i].count -= 1;
            if all[i].count == 0 {
                gone = Some(all.swap_remove(i));
            }
        }
        drop(inner);
        // Outside of the lock, for it may be a view itself.
        drop(gone);
    }
}

impl PyTensor {
    /// Whether views show its memory.
    pub fn has_views(&self) -> bool {
        self.views.count.load(Ordering::Relaxed) > 0
    }

    /// Number of views that show its memory.
    pub fn views_count(&self) -> usize {
        self.views.count.load(Ordering::Relaxed) as usize
    }

    /// Leaves its memory to the views of it, before it gets another one. It is nobody's view from
    /// then on.
    pub fn leave_memory(slf: &Bound<'_, Self>) -> PyResult<()> {
        let own = slf.get();
        let now = own.tensor();
        let count = own.views.count.swap(0, Ordering::Relaxed);
        let memory = own.views.memory.fetch_add(1, Ordering::Relaxed);
        let mut inner = own.lock();
        let alias = inner.alias.take_if(|a| !matches!(a.link, Link::Grad { .. }));
        let outside = inner.rest.as_mut().and_then(|rest| rest.outside.take());
        let born = inner.rest.as_ref().and_then(|rest| rest.born.clone());
        drop(inner);
        if count == 0 {
            return Ok(());
        }
        let tensor = run(|| left_behind(&now))?;
        // Another tensor may take the memory, which its views see.
        let over = match alias.is_none() && !tensor.is_leaf() {
            true => Some(Py::new(slf.py(), PyTensor::from(run(|| memory_of(&now))?))?),
            false => None,
        };
        let over = over.map(|memory| Alias { link: Link::Over { memory }, seen: Seen::default() });
        let alias = alias.or(over.map(Box::new));
        let rest = Some(Box::new(Rest { born, outside, ..Rest::default() }));
        let old = Inner { tensor, alias, rest };
        let old = Py::new(slf.py(), PyTensor::new_with(old))?;
        if let Some(out) = &mut old.get().lock().rest().outside {
            out.shows.forget_place();
        }
        own.lock().rest().past.push(Past { memory, count, old });
        Ok(())
    }
}

/// The memory of a leaf, which its views go on to see when it has another; the value of another
/// tensor.
fn memory_of(now: &Tensor) -> chainrule::Result<Tensor> {
    if !now.is_changeable() {
        return Ok(now.detach());
    }
    let twin = now.try_twin()?;
    twin.set_requires_grad(false)?;
    Ok(twin)
}

/// The value as it is, from where gradients flow on to a leaf that will have another one.
fn left_behind(now: &Tensor) -> chainrule::Result<Tensor> {
    if !now.is_changeable() {
        return Ok(now.clone());
    }
    if !now.requires_grad() {
        return now.catch_up().map(|()| now.detach());
    }
    now.catch_up()?;
    let value = now.detach();
    chainrule::enable_grad(|| now.try_mul(1.0))?.revalued(&value)
}
