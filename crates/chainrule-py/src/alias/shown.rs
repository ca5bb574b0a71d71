//! Arrays of NumPy that show the elements of a tensor, and follow its writes.
//!
//! A write makes a new value of a tensor, so an array over the memory of the old one would not see
//! it. Arrays therefore have memory of their own, into which each write copies the new elements. A
//! large array of a tensor that nobody has written yet lies over the tensor's memory instead, as
//! does one of a tensor over another array, and a write is an error as long as it is there.
//!
//! Constants are written through handles alone. Leaves and their gradients change behind them, in
//! optimizers, programs and backward passes, after which the arrays of all such tensors follow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chainrule::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::{Link, Path};
use crate::error::run;
use crate::interchange::{array_over, copied_array};
use crate::session;
use crate::tensor::PyTensor;

/// Bytes of an array that is copied whether or not the tensor was ever written.
const SMALL: usize = 1 << 16;

/// The view of an array on a tensor that owns its memory.
pub struct Shown {
    path: Option<Path>,
    /// Memory of its own, as an array that can be written; nothing if it is that of the tensor.
    copy: Option<Py<PyAny>>,
}

impl Shown {
    /// Whether the array lies over the memory of the tensor.
    fn is_over(&self) -> bool {
        self.copy.is_none()
    }

    /// Takes the elements from the tensor as it is now.
    fn follow(&self, py: Python<'_>, now: &Tensor) -> PyResult<()> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let now = match &self.path {
            Some(path) => run(|| path.take(now))?,
            None => now.clone(),
        };
        py.import("numpy")?.call_method1("copyto", (copy, array_over(py, &now)?))?;
        Ok(())
    }
}

/// Tensors that change behind their handles and have such arrays.
static BEHIND: Mutex<Vec<Py<PyWeakrefReference>>> = Mutex::new(Vec::new());
/// Their number, to be asked first.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The arrays of one tensor.
#[derive(Default)]
pub struct Shows {
    all: Vec<Weak<Shown>>,
    is_behind: bool,
}

impl Shows {
    fn alive(&self) -> Vec<Arc<Shown>> {
        self.all.iter().filter_map(Weak::upgrade).collect()
    }

    fn push(&mut self, shown: &Arc<Shown>) {
        // Those that are gone are forgotten each time when the list would grow.
        if self.all.len() == self.all.capacity() {
            self.all.retain(|s| s.strong_count() > 0);
        }
        self.all.push(Arc::downgrade(shown));
    }

    /// It belongs to another handle, which is not noted as one that changes behind itself.
    pub fn forget_place(&mut self) {
        self.is_behind = false;
    }

    /// Whether an array would not see a write.
    pub fn is_over(&self) -> bool {
        self.all.iter().filter_map(Weak::upgrade).any(|s| s.is_over())
    }
}

/// The tensor that owns the memory of a handle, and the way from there.
fn owner(slf: &Bound<'_, PyTensor>) -> (Py<PyTensor>, Option<Path>) {
    let py = slf.py();
    let (mut at, mut way) = (slf.clone(), None::<Path>);
    loop {
        let (next, path) = match at.get().lock().link() {
            Some(Link::View { root, path }) => (root.get(py), Some(path.clone())),
            Some(Link::Over { memory }) => (memory.bind(py).clone(), None),
            _ => break,
        };
        way = match (path, way) {
            (Some(first), Some(then)) => {
                Some(then.steps().into_iter().fold(first, |p, step| p.then(step.clone())))
            }
            (first, then) => first.or(then),
        };
        at = next;
    }
    (at.unbind(), way)
}

impl PyTensor {
    /// The record of a new array of the elements `t` of this handle: in memory of its own, or over
    /// that of the tensor. `array` makes the one over it.
    pub fn show_array(
        slf: &Bound<'_, Self>,
        t: &Tensor,
    ) -> PyResult<(Arc<Shown>, Option<Py<PyAny>>)> {
        let py = slf.py();
        let (root, path) = owner(slf);
        let own = root.get();
        let (behind, foreign) = {
            let inner = own.lock();
            let out = inner.rest.as_ref().and_then(|rest| rest.outside.as_ref());
            (inner.is_changeable(), out.is_some_and(|out| out.array.is_some()))
        };
        let written = own.version() > 0;
        let parts = path.as_ref().is_some_and(|p| !p.is_only_detached());
        let has_views = own.views_count() > usize::from(path.is_some());
        let is_small = t.numel() * t.dtype().size() <= SMALL;
        // Over the memory of another array it sees the writes to that one.
        let copies = behind || written || !foreign && (parts || has_views || is_small);
        let copy = match copies {
            true => Some(copied_array(py, t)?.unbind()),
            false => None,
        };
        let array = copy.as_ref().map(|c| c.clone_ref(py));
        let shown = Arc::new(Shown { path, copy });
        own.lock().rest().outside.get_or_insert_default().shows.push(&shown);
        if behind {
            PyTensor::note_behind(root.bind(py))?;
        }
        Ok((shown, array))
    }

    /// Remembers a tensor with arrays that changes behind its handle.
    pub fn note_behind(slf: &Bound<'_, Self>) -> PyResult<()> {
        {
            let mut inner = slf.get().lock();
            let Some(out) = inner.rest.as_mut().and_then(|rest| rest.outside.as_mut()) else {
                return Ok(());
            };
            if out.shows.is_behind || out.shows.alive().is_empty() {
                return Ok(());
            }
            out.shows.is_behind = true;
        }
        let weak = PyWeakrefReference::new(slf.as_any())?.unbind();
        let mut all = BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(weak);
        COUNT.store(all.len(), Ordering::Relaxed);
        Ok(())
    }

    /// The arrays of `slf`, whose memory is that of `other` from now on.
    pub fn hand_arrays(slf: &Self, other: &Bound<'_, Self>) -> PyResult<()> {
        let alive = match slf.lock().rest.as_mut().and_then(|rest| rest.outside.as_mut()) {
            Some(out) => std::mem::take(&mut out.shows).alive(),
            None => return Ok(()),
        };
        if alive.is_empty() {
            return Ok(());
        }
        let mut inner = other.get().lock();
        let shows = &mut inner.rest().outside.get_or_insert_default().shows;
        alive.iter().for_each(|s| shows.push(s));
        let behind = inner.is_changeable();
        drop(inner);
        if behind { PyTensor::note_behind(other) } else { Ok(()) }
    }

    /// Lets the arrays of a tensor follow a write, and those of other leaves of its memory.
    pub fn follow_arrays(slf: &Bound<'_, Self>) -> PyResult<()> {
        let has_twin = slf.get().lock().tensor.has_twin();
        match has_twin {
            true => follow_behind(slf.py(), &[Behind::Leaves]),
            false => PyTensor::follow_own_arrays(slf),
        }
    }

    fn follow_own_arrays(slf: &Bound<'_, Self>) -> PyResult<()> {
        let alive = match slf.get().lock().rest.as_ref().and_then(|rest| rest.outside.as_ref()) {
            Some(out) => out.shows.alive(),
            None => return Ok(()),
        };
        if alive.is_empty() || session::current().is_some() {
            return Ok(());
        }
        let now = slf.get().tensor();
        let now = run(|| now.catch_up().map(|()| now.detach()))?;
        alive.iter().try_for_each(|s| s.follow(slf.py(), &now))
    }
}

/// The tensors that change behind their handles.
#[derive(Clone, Copy, PartialEq)]
pub enum Behind {
    Leaves,
    Gradients,
}

/// Lets arrays follow what changed behind the handles.
pub fn follow_behind(py: Python<'_>, which: &[Behind]) -> PyResult<()> {
    if COUNT.load(Ordering::Relaxed) == 0 || session::current().is_some() {
        return Ok(());
    }
    let mut roots = Vec::new();
    {
        let mut all = BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|weak| {
            let Some(root) = weak.bind(py).upgrade().and_then(|r| r.cast_into::<PyTensor>().ok())
            else {
                return false;
            };
            let mut inner = root.get().lock();
            let kind = match inner.link() {
                Some(Link::Grad { .. }) => Behind::Gradients,
                _ => Behind::Leaves,
            };
            let shows =
                inner.rest.as_mut().and_then(|rest| rest.outside.as_mut()).map(|o| &mut o.shows);
            let Some(shows) = shows else { return false };
            shows.is_behind = shows.all.iter().any(|s| s.strong_count() > 0);
            let stays = shows.is_behind;
            drop(inner);
            if stays && which.contains(&kind) {
                roots.push(root);
            }
            stays
        });
        COUNT.store(all.len(), Ordering::Relaxed);
    }
    roots.iter().try_for_each(PyTensor::follow_own_arrays)
}
