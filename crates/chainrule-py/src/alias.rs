//! Handles that alias, over values that never change.
//!
//! As in PyTorch a view, `detach()`, `.data` and `.grad` show the memory of another tensor. A handle remembers whose, and how it was taken; a write through
//! any of them makes a new value of the tensor at the root, and the others take theirs from it when they are read next (functionalisation). A
//! tensor that nobody took a view of has no record, and a view that nobody wrote through costs a comparison.
//!
//! Three links are enough:
//! - **View**: the elements are taken from a root by a path of steps. `detach()` and `.data` are a step without a tape.
//! - **Over**: a tensor on the tape whose elements lie in another one without a tape, its first `detach()`. It is this way round so that a detached loss does
//!   not keep the graph.
//! - **Grad**: what the leaf has as its gradient.

use std::sync::{Arc, MutexGuard, PoisonError};

use chainrule::{Index, Result, Tensor};
use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{GradientError, run};
use crate::path::{Path, Step};
use crate::session;
use crate::tensor::{Inner, PyTensor};

/// Whose memory a handle shows.
pub enum Link {
    View { root: Py<PyTensor>, path: Path },
    Over { memory: Py<PyTensor> },
    Grad { leaf: Tensor },
}

/// What a handle was computed from when it was read last.
#[derive(Default)]
pub struct Seen {
    version: u64,
    /// The value of a root that is a leaf, which changes behind its handles.
    value: Option<Tensor>,
    /// Whether the root is neither a leaf nor linked to another tensor, so that its version says all.
    settled: bool,
}

impl Seen {
    fn of(version: u64, root: &Tensor, linked: bool) -> Seen {
        let changeable = root.is_changeable();
        Seen { version, value: changeable.then(|| root.detach()), settled: !changeable && !linked }
    }
}

impl Inner {
    /// Whether the tensor is that of its root, as far as can be told without looking for long.
    #[inline]
    fn is_current(&self) -> bool {
        match self.link.as_deref() {
            None => true,
            Some(Link::View { root, .. }) => {
                let root = root.get();
                match &self.seen.value {
                    None => self.seen.settled && root.version() == self.seen.version,
                    Some(value) => {
                        let root = root.lock();
                        root.link.is_none()
                            && root.tensor.is_changeable()
                            && !self.tensor.is_changeable()
                            && root.tensor.is_same_value(value)
                    }
                }
            }
            _ => false,
        }
    }
}

impl PyTensor {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensor that the handle holds now.
    #[inline]
    pub fn tensor(&self) -> Tensor {
        let inner = self.lock();
        if !session::is_any() && inner.is_current() {
            return inner.tensor.clone();
        }
        drop(inner);
        self.current()
    }

    #[inline(never)]
    fn current(&self) -> Tensor {
        let (old, link, seen) = {
            let inner = self.lock();
            let seen = Seen { value: inner.seen.value.clone(), ..inner.seen };
            (inner.tensor.clone(), inner.link.clone(), seen)
        };
        let fresh = match link.as_deref() {
            None => None,
            Some(Link::Grad { leaf }) => {
                let gone = !leaf.has_lost_grad();
                leaf.grad().filter(|_| gone).map(|g| (g, Seen::default()))
            }
            Some(Link::View { root, path }) => {
                let linked = root.get().lock().link.is_some();
                let (root, version) = root.get().with_version();
                retaken(&old, &root, (version, linked), path, &seen)
            }
            Some(Link::Over { memory }) => {
                let (now, version) = memory.get().with_version();
                (version != seen.version).then(|| {
                    (old.revalued(&now).unwrap_or(now), Seen { version, ..Seen::default() })
                })
            }
        };
        let tensor = match fresh {
            None => old,
            Some((tensor, seen)) => {
                let mut inner = self.lock();
                inner.tensor = tensor.clone();
                inner.seen = seen;
                drop(inner);
                // Who looks at this one has to look again.
                self.bump();
                tensor
            }
        };
        session::met(self, &tensor);
        tensor
    }

    /// The tensor with the number of writes that it has seen.
    fn with_version(&self) -> (Tensor, u64) {
        let tensor = self.tensor();
        (tensor, self.version())
    }

    pub fn version(&self) -> u64 {
        self.writes.get().map_or(0, |v| v.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Whether a program that is still there took the value as a constant.
    fn is_met(&self) -> bool {
        self.writes.get().is_some_and(|w| Arc::strong_count(w) > 1)
    }

    fn bump(&self) {
        self.bump_by(1);
    }

    fn bump_by(&self, n: u64) {
        let counter = self.writes.get_or_init(Default::default);
        counter.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// Whether it is the part of `whole` at these slices, so that writing it there changes nothing.
    pub fn is_part(&self, whole: &Bound<'_, PyTensor>, keys: &[Index]) -> bool {
        let inner = self.lock();
        let (path, root) = match inner.link.as_deref() {
            Some(Link::View { root, path }) => (path, root),
            _ => return false,
        };
        let Step::Slices(slices) = &path.last else { return false };
        let same = slices.len() == keys.len()
            && slices.iter().zip(keys).all(|(s, k)| matches!(k, Index::Slice(k) if k == s));
        let before = path.steps().len() - 1;
        let whole_is = match whole.get().lock().link.as_deref() {
            None => before == 0 && root.as_ptr() == whole.as_ptr(),
            Some(Link::View { root: r, path: p }) => {
                r.as_ptr() == root.as_ptr()
                    && path.before.as_ref().is_some_and(|b| {
                        p.steps().len() == before
                            && b.steps().iter().zip(p.steps()).all(|(a, b)| *a == b)
                    })
            }
            _ => false,
        };
        same && whole_is
    }

    // Making aliases

    /// `out`, which `step` made of this one, as a view of it; without a link if it is a copy.
    pub fn viewed(slf: &Bound<'_, Self>, t: &Tensor, out: Tensor, step: Step) -> PyTensor {
        let copied = || !t.is_contiguous() && out.numel() > 0 && !out.shares_memory(t);
        if matches!(step, Step::Reshape(_)) && copied() {
            return out.into();
        }
        let cuts = t.requires_grad() && !out.requires_grad();
        let own = slf.get();
        if (!cuts || t.is_changeable()) && own.lock().link.is_none() {
            let path = match cuts && step != Step::Detached {
                true => Path::of(Step::Detached).then(step),
                false => Path::of(step),
            };
            let seen = Seen::of(own.version(), t, false);
            return PyTensor::linked(out, Link::View { root: slf.clone().unbind(), path }, seen);
        }
        if !cuts && step != Step::Detached && own.is_detached_alias() {
            // It may get a tape of its own, which its views share.
            let seen = Seen::of(own.version(), t, true);
            let link = Link::View { root: slf.clone().unbind(), path: Path::of(step) };
            return PyTensor::linked(out, link, seen);
        }
        let Ok((root, path)) = place(slf, t, cuts) else { return out.into() };
        let path = match path {
            Some(path) => path.then(step),
            None => Path::of(step),
        };
        let linked = root.get().lock().link.is_some();
        let (now, version) = root.get().with_version();
        let seen = Seen::of(version, &now, linked);
        PyTensor::linked(out, Link::View { root: root.unbind(), path }, seen)
    }

    /// Whether it is all of another tensor without its tape.
    fn is_detached_alias(&self) -> bool {
        match self.lock().link.as_deref() {
            Some(Link::View { path, .. }) => path.last == Step::Detached && path.before.is_none(),
            _ => false,
        }
    }

    /// The same elements without a tape: `detach()`, `.data`.
    pub fn detached(slf: &Bound<'_, Self>) -> PyTensor {
        let t = slf.get().tensor();
        PyTensor::viewed(slf, &t, t.detach(), Step::Detached)
    }

    fn linked(tensor: Tensor, link: Link, seen: Seen) -> PyTensor {
        let born = session::current();
        let link = Some(Arc::new(link));
        PyTensor::new_with(Inner { tensor, link, seen, grad: None, born, outside: None })
    }

    /// The handle of a leaf's gradient, which is one object as long as the gradient is not set anew.
    pub fn gradient(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyTensor>>> {
        let own = slf.get();
        // As it is: a view that was taken anew has no gradient yet.
        let raw = own.lock().tensor.clone();
        let t = if raw.has_lost_grad() || raw.grad().is_some() { raw } else { own.tensor() };
        if t.has_lost_grad() {
            return Err(GradientError::new_err(
                "the gradient of this parameter was computed in a compiled function and used up there by the optimizer: \
                 return it from the function, or step the optimizer outside",
            ));
        }
        let Some(grad) = t.grad() else { return Ok(None) };
        let kept = own.lock().grad.as_ref().map(|g| g.clone_ref(slf.py()));
        if let Some(kept) = kept {
            return Ok(Some(kept));
        }
        let new = PyTensor::linked(grad, Link::Grad { leaf: t }, Seen::default());
        let new = Py::new(slf.py(), new)?;
        if session::current().is_none() {
            own.lock().grad = Some(new.clone_ref(slf.py()));
        }
        Ok(Some(new))
    }

    /// Sets the gradient, or forgets it. The handle of the old one keeps it; that of the new one is the gradient from now on.
    pub fn set_gradient(&self, new: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        let t = self.tensor();
        let value = new.map(|g| g.get().tensor());
        let kept = self.lock().grad.take();
        if let Some(kept) = kept {
            let kept = kept.get();
            let last = kept.tensor();
            let mut inner = kept.lock();
            (inner.tensor, inner.link) = (last, None);
        }
        run(|| t.set_grad(value))?;
        if let Some(new) = new
            && session::current().is_none()
        {
            let mut inner = new.get().lock();
            if inner.link.is_none() && inner.tensor.is_leaf() && !inner.tensor.is_changeable() {
                inner.link = Some(Arc::new(Link::Grad { leaf: t }));
                drop(inner);
                new.get().bump();
                self.lock().grad = Some(new.clone().unbind());
            }
        }
        Ok(())
    }

    // Writing

    /// Gives the handle, and all that alias it, this value.
    pub fn assign(slf: &Bound<'_, Self>, new: Tensor) -> PyResult<()> {
        let own = slf.get();
        let old = own.tensor();
        let new = fitted(&old, new)?;
        session::written(slf)?;
        let link = own.lock().link.clone();
        match link.as_deref() {
            Some(Link::View { root, path }) => {
                let root = root.bind(slf.py());
                let now = root.get().tensor();
                let behind = path.is_detached();
                let records = chainrule::is_grad_enabled();
                let leaf = !behind && now.is_leaf() && now.requires_grad();
                if leaf && records {
                    return Err(GradientError::new_err(LEAF_VIEW));
                }
                if behind && records && new.requires_grad() && path.last != Step::Detached {
                    return Err(GradientError::new_err(DETACHED_VIEW));
                }
                let base = if behind { now.detach() } else { now };
                let value = if behind { new.detach() } else { new.clone() };
                let value = run(|| put_along(path, base, value))?;
                write_root(root, value, behind)?;
                // What was detached has a tape of its own from now on.
                own.tensor();
                if behind && records {
                    own.lock().tensor = new;
                }
                own.bump();
                Ok(())
            }
            _ => write_root(slf, new, false),
        }
    }

    /// Gives the tensor this value without a record: `x.data = v`, whatever its shape and dtype.
    pub fn put(slf: &Bound<'_, Self>, new: Tensor) -> PyResult<()> {
        let old = slf.get().tensor();
        session::written(slf)?;
        if old.shape() == new.shape() && old.dtype() == new.dtype() && old.is_changeable() {
            run(|| old.try_set(&new))?;
        } else if old.is_changeable() {
            if session::current().is_some() {
                return Err(PyTypeError::new_err(
                    "compile: the function gives a parameter another shape or dtype; do that outside",
                ));
            }
            let leaf = run(|| new.try_parameter())?;
            if !old.requires_grad() {
                run(|| leaf.set_requires_grad(false))?;
            }
            if let Some(name) = old.name() {
                leaf.named(&name);
            }
            slf.get().lock().grad = None;
            slf.get().replace(leaf);
        } else {
            slf.get().replace(run(|| old.revalued(&new)).unwrap_or(new));
        }
        slf.get().bump();
        Ok(())
    }

    /// Makes a constant show the memory of the leaf that took its value: `w.data = v`.
    pub fn follow(slf: &Bound<'_, Self>, leaf: &Bound<'_, Self>) {
        let root = leaf.get();
        let now = root.tensor();
        let version = root.version();
        let mut inner = slf.get().lock();
        if inner.link.is_none() && inner.tensor.is_leaf() && !inner.tensor.is_changeable() {
            inner.seen = Seen::of(version, &now, false);
            let root = leaf.clone().unbind();
            inner.link = Some(Arc::new(Link::View { root, path: Path::of(Step::Detached) }));
            drop(inner);
            slf.get().bump();
        }
    }

    /// Gives the handle another tensor, whatever it was.
    pub fn replace(&self, new: Tensor) {
        self.lock().tensor = new;
        self.bump_by(session::REPLACED);
    }

    /// Makes the handle a leaf whose value lasts from run to run of a program, if it is a constant.
    pub fn become_buffer(&self) -> bool {
        let t = self.tensor();
        let mut inner = self.lock();
        let can = inner.link.is_none() && t.is_leaf() && !t.is_changeable();
        if can {
            inner.tensor = t.buffer();
            drop(inner);
            self.bump_by(session::REPLACED);
        }
        can
    }

    /// The tensor at the root of a view.
    pub fn root(&self, py: Python<'_>) -> Option<Py<PyTensor>> {
        match self.lock().link.as_deref() {
            Some(Link::View { root, .. }) => Some(root.clone_ref(py)),
            Some(Link::Over { memory }) => Some(memory.clone_ref(py)),
            _ => None,
        }
    }

    /// Makes it require a gradient: a leaf of its own, which the tensor that it was detached from shows from now on.
    pub fn become_leaf(slf: &Bound<'_, Self>, t: &Tensor) -> PyResult<()> {
        let leaf = run(|| t.try_parameter())?;
        let link = slf.get().lock().link.clone();
        slf.get().replace(leaf.clone());
        let Some(Link::View { root, path }) = link.as_deref() else { return Ok(()) };
        let root = root.bind(slf.py());
        let mut inner = root.get().lock();
        let plain = inner.link.is_none() && inner.tensor.is_leaf() && !inner.tensor.is_changeable();
        if plain && matches!(path.steps()[..], [Step::Detached]) {
            slf.get().lock().link = None;
            let own = slf.clone().unbind();
            let seen = Seen::of(slf.get().version(), &leaf, false);
            inner.link = Some(Arc::new(Link::View { root: own, path: Path::of(Step::Detached) }));
            inner.seen = seen;
            drop(inner);
            root.get().bump();
            return Ok(());
        }
        drop(inner);
        slf.get().lock().link = None;
        // SAFETY: the object is alive; the link that was cut is its only holder, if nobody else is.
        if unsafe { pyo3::ffi::Py_REFCNT(root.as_ptr()) } > 1 {
            let why = c"requires_grad: the new leaf has the values of a part of another tensor, or of another leaf, and no memory with it: \
                        a step on one is not seen by the other; take clone() to say so";
            PyErr::warn(slf.py(), &slf.py().get_type::<PyRuntimeWarning>(), why, 1)?;
        }
        Ok(())
    }
}

/// The elements along the path, if those that are there are not of the root as it is.
fn retaken(
    old: &Tensor,
    root: &Tensor,
    (version, linked): (u64, bool),
    path: &Path,
    seen: &Seen,
) -> Option<(Tensor, Seen)> {
    let same = match &seen.value {
        Some(value) => root.is_changeable() && root.is_same_value(value),
        None => version == seen.version && !root.is_changeable(),
    };
    if same {
        return None;
    }
    let now = match path.is_detached() {
        true => path.take(&root.detach()),
        false => chainrule::enable_grad(|| path.take(root)),
    };
    let now = now.unwrap_or_else(|_| old.clone());
    // What was detached and then written may have a tape of its own.
    let now = match path.is_detached() && !old.is_leaf() {
        true => old.revalued(&now).unwrap_or(now),
        false => now,
    };
    Some((now, Seen::of(version, root, linked)))
}

const LEAF: &str = "a leaf that requires a gradient would be changed in place, and backward could not tell its values apart: \
                    write inside `with cr.no_grad():`, or to its `.data`";
const DETACHED_VIEW: &str = "a value with a gradient would be written to a view of a detached tensor, which the tensor's own tape would not know: \
                             write to the detached tensor itself, y[i] = v, or clone() it first";
const LEAF_VIEW: &str = "a view of a leaf that requires a gradient would be changed in place, and backward could not tell the leaf's \
                         values apart: write inside `with cr.no_grad():`, or to its `.data`";

/// The root whose elements these are, and the path to them. With `cuts` one without a tape.
fn place<'py>(
    slf: &Bound<'py, PyTensor>,
    t: &Tensor,
    cuts: bool,
) -> PyResult<(Bound<'py, PyTensor>, Option<Path>)> {
    let py = slf.py();
    let link = slf.get().lock().link.clone();
    match link.as_deref() {
        Some(Link::View { root, path }) if !cuts || path.is_detached() => {
            Ok((root.bind(py).clone(), Some(path.clone())))
        }
        Some(Link::View { root, path }) => {
            let root = root.bind(py);
            let (memory, first) = place(root, &root.get().tensor(), cuts)?;
            let steps = path.steps();
            let first = first.unwrap_or(Path::of(Step::Detached));
            Ok((memory, Some(steps.into_iter().fold(first, |path, step| path.then(step.clone())))))
        }
        Some(Link::Over { memory }) if cuts => Ok((memory.bind(py).clone(), None)),
        _ if cuts && !t.is_leaf() => {
            let memory = Bound::new(py, PyTensor::from(t.detach()))?;
            let mut inner = slf.get().lock();
            inner.link = Some(Arc::new(Link::Over { memory: memory.clone().unbind() }));
            inner.seen = Seen::default();
            drop(inner);
            slf.get().bump();
            Ok((memory, None))
        }
        _ if cuts => Ok((slf.clone(), Some(Path::of(Step::Detached)))),
        _ => Ok((slf.clone(), None)),
    }
}

/// The new value in the shape and dtype of the old one.
fn fitted(old: &Tensor, new: Tensor) -> PyResult<Tensor> {
    if new.shape() != old.shape() {
        return Err(PyValueError::new_err(format!(
            "a write keeps the shape: shapes {} and {}",
            old.shape(),
            new.shape()
        )));
    }
    let (from, to) = (new.dtype(), old.dtype());
    if from == to {
        return Ok(new);
    }
    if from <= to || (from.is_float() && to.is_float()) {
        return run(|| new.try_to_dtype(to));
    }
    Err(PyTypeError::new_err(format!("a write keeps the dtype: {from} cannot become {to}")))
}

/// The root with `value` at the end of the path.
fn put_along(path: &Path, root: Tensor, value: Tensor) -> Result<Tensor> {
    let steps = path.steps();
    let mut bases = vec![root];
    for step in &steps {
        let base = bases.last().expect("it begins with the root");
        if step.overlaps(base) {
            return Err(chainrule::Error::argument(
                "write",
                "several elements of this view are one in memory; clone() it before the write",
            ));
        }
        bases.push(step.take(base)?);
    }
    bases.pop();
    steps.iter().rev().zip(bases.iter().rev()).try_fold(value, |v, (step, base)| step.put(base, &v))
}

/// An error if an array of NumPy shows the memory, and would go on with the old elements.
pub fn check_outside(root: &Bound<'_, PyTensor>) -> PyResult<()> {
    let py = root.py();
    let (shown, array) = match &root.get().lock().outside {
        None => return Ok(()),
        Some(out) => {
            (Arc::strong_count(&out.shown) > 1, out.array.as_ref().map(|a| a.clone_ref(py)))
        }
    };
    if shown {
        return Err(PyValueError::new_err(
            "write: an array made by numpy() shows the memory of this tensor, and would not see the write: take x.numpy().copy(), or \
             write to a clone",
        ));
    }
    if let Some(array) = array
        && crate::interchange::is_held(array.bind(py), 2)?
    {
        return Err(PyValueError::new_err(
            "write: this tensor has the memory of a NumPy array, which would not see the write: write to the array, or make the \
             tensor by tensor(a), which copies",
        ));
    }
    Ok(())
}

/// Gives a tensor that is nobody's view a new value; `behind` the tape it keeps its place there.
fn write_root(root: &Bound<'_, PyTensor>, new: Tensor, behind: bool) -> PyResult<()> {
    let own = root.get();
    check_outside(root)?;
    let old = own.tensor();
    let behind = behind || !chainrule::is_grad_enabled();
    let link = own.lock().link.clone();
    if old.is_changeable()
        && new.requires_grad()
        && !behind
        && session::current().is_some()
        && !session::is_new(own)
    {
        return Err(GradientError::new_err(
            "compile: the function writes a value with a gradient into a tensor from outside; write x.detach() there",
        ));
    }
    match link.as_deref() {
        Some(Link::Grad { leaf }) => run(|| leaf.set_grad(Some(new)))?,
        Some(Link::Over { memory }) => {
            write_root(memory.bind(root.py()), new.detach(), true)?;
            if !behind {
                let version = memory.get().version();
                let mut inner = own.lock();
                inner.tensor = new;
                inner.seen = Seen { version, ..Seen::default() };
            }
        }
        // A tensor that changed places with a leaf of its memory.
        Some(Link::View { .. }) => return PyTensor::assign(root, new),
        None if old.is_changeable() && old.requires_grad() => {
            if !behind {
                return Err(GradientError::new_err(LEAF));
            }
            run(|| old.try_set(&new.detach()))?;
        }
        // Buffers and frozen parameters are leaves too, which others may hold.
        None if old.is_changeable() && (behind || !new.requires_grad()) => {
            run(|| old.try_set(&new.detach()))?;
        }
        None if behind && !old.is_leaf() => {
            own.lock().tensor = run(|| old.revalued(&new.detach()))?;
        }
        // A program took it as a constant: from now on it is a state that programs read.
        None if own.is_met() && !new.requires_grad() && session::current().is_none() => {
            own.lock().tensor = new.buffer();
        }
        None => own.lock().tensor = if behind { new.detach() } else { new },
    }
    own.bump();
    Ok(())
}
