//! Making views, and taking them anew.

use chainrule::ops::{Family, OpId};
use chainrule::{Index, Tensor};
use pyo3::prelude::*;

use super::path::{Path, Step};
use super::{Alias, Link, Root, Seen};
use crate::error::run;
use crate::handle::Inner;
use crate::session::{self, LINKED, REPLACED};
use crate::tensor::PyTensor;

impl PyTensor {
    /// `out`, which `step` made of this one, as a view of it; without a link if it is a copy.
    pub fn viewed(slf: &Bound<'_, Self>, t: &Tensor, out: Tensor, step: Step) -> PyTensor {
        let copied = || !t.is_contiguous() && out.numel() > 0 && !out.shares_memory(t);
        if matches!(step, Step::Reshape(_)) && copied() {
            return out.into();
        }
        PyTensor::linked_to(slf, t, out, step)
    }

    /// `out`, which `step` made of this one, as a view of it, though it may be a copy: a write to
    /// either is seen by the other.
    pub fn linked_to(slf: &Bound<'_, Self>, t: &Tensor, out: Tensor, step: Step) -> PyTensor {
        let cuts = t.requires_grad() && !out.requires_grad();
        let own = slf.get();
        let inner = own.lock();
        let (root, path, seen) = match inner.alias.as_deref() {
            None if !cuts || t.is_changeable() => {
                drop(inner);
                let path = match cuts && step != Step::Detached {
                    true => Path::of(Step::Detached).then(step),
                    false => Path::of(step),
                };
                (Root::of(slf), path, Seen::of(own.version(), t, false))
            }
            // It may get a tape of its own, which its views share.
            Some(Alias { link: Link::View { path, .. }, .. })
                if !cuts && step != Step::Detached && path.is_only_detached() =>
            {
                drop(inner);
                (Root::of(slf), Path::of(step), Seen::of(own.version(), t, true))
            }
            // It was read just now, and has seen its root as it is.
            Some(Alias { link: Link::View { root, path }, seen })
                if !cuts || path.is_detached() =>
            {
                (root.clone_ref(slf.py()), path.then(step), seen.clone())
            }
            Some(Alias { link: Link::Over { memory }, .. }) if cuts => {
                let memory = memory.bind(slf.py());
                let settled = memory.get().lock().is_plain();
                let version = memory.get().version();
                let seen = match settled {
                    true => Seen { version, value: None, settled },
                    false => Seen::of(version, &memory.get().tensor(), false),
                };
                (Root::of(memory), Path::of(step), seen)
            }
            _ => {
                drop(inner);
                let Ok((root, path)) = place(slf, t, cuts) else { return out.into() };
                let path = match path {
                    Some(path) => path.then(step),
                    None => Path::of(step),
                };
                let linked = root.get().lock().alias.is_some();
                let (now, version) = root.get().with_version();
                (Root::of(&root), path, Seen::of(version, &now, linked))
            }
        };
        PyTensor::linked(out, Link::View { root, path }, seen)
    }

    /// Whether `out` has the elements of this view in an order that no strides give: the view was
    /// taken from a tensor whose own elements lie one after the other, in PyTorch too.
    pub fn is_turned(slf: &Bound<'_, Self>, t: &Tensor, out: &Tensor) -> bool {
        if t.is_contiguous() || out.numel() == 0 || out.shares_memory(t) {
            return false;
        }
        let root = match slf.get().lock().link() {
            Some(Link::View { root, .. }) => root.get(slf.py()),
            _ => return false,
        };
        let loose = root.get().lock().rest.as_ref().is_some_and(|rest| rest.loose);
        let root = root.get().tensor();
        let by_lapack = root.op_id().is_some_and(|id| {
            matches!(id.entry().family, Family::Linalg | Family::Index) && id != OpId::matmul
        });
        root.is_contiguous() && !loose && !by_lapack
    }

    /// The same elements with the tape, as another handle.
    pub fn same(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let axes: Vec<i64> = (0..t.rank() as i64).collect();
        let out = run(|| t.try_permute(&axes[..]))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Permute(axes)))
    }

    /// The same elements without a tape: `detach()`, `.data`.
    pub fn detached(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let own = slf.get();
        run(|| own.lock().tensor.catch_up())?;
        let inner = own.lock();
        let t = &inner.tensor;
        // The most of them, with one look: a leaf, or what has no tape anyway.
        if inner.alias.is_none() && (t.is_changeable() || t.is_leaf()) && !session::is_any() {
            let (out, value) = (t.detach(), t.is_changeable().then(|| t.detach()));
            drop(inner);
            let seen = Seen { version: own.version(), settled: value.is_none(), value };
            let link = Link::View { root: Root::of(slf), path: Path::of(Step::Detached) };
            return Ok(PyTensor::linked(out, link, seen));
        }
        drop(inner);
        let t = own.tensor();
        let out = run(|| t.catch_up().map(|()| t.detach()))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Detached))
    }

    pub(super) fn linked(tensor: Tensor, link: Link, seen: Seen) -> PyTensor {
        PyTensor::new_with(Inner::new(tensor, Some(Box::new(Alias { link, seen }))))
    }

    /// Whether it is the part of `whole` at these slices, so that writing it there changes nothing.
    pub fn is_part(&self, whole: &Bound<'_, PyTensor>, keys: &[Index]) -> bool {
        let py = whole.py();
        let inner = self.lock();
        let Some(Link::View { root, path }) = inner.link() else { return false };
        let Step::Slices(slices) = path.last() else { return false };
        let same = slices.len() == keys.len()
            && slices.iter().zip(keys).all(|(s, k)| matches!(k, Index::Slice(k) if k == s));
        if !same {
            return false;
        }
        let (root, before) = (root.get(py), path.before().cloned());
        drop(inner);
        match whole.get().lock().link() {
            None => before.is_none() && root.is(whole),
            Some(Link::View { root: other, path }) => {
                other.get(py).is(&root) && before.as_ref() == Some(path)
            }
            _ => false,
        }
    }
}

/// Path of a view, to take it again from another tensor.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct ViewPath(Path);

impl ViewPath {
    /// The elements of the same view of this tensor.
    pub fn take(&self, base: &Tensor) -> PyResult<Tensor> {
        run(|| self.0.take(base))
    }
}

#[pymethods]
impl ViewPath {
    /// The same view of this tensor.
    fn of<'py>(&self, base: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        self.0.steps().into_iter().try_fold(base.clone(), |at, step| {
            let t = at.get().tensor();
            let out = run(|| step.take(&t))?;
            Bound::new(at.py(), PyTensor::viewed(&at, &t, out, step.clone()))
        })
    }
}

#[pymethods]
impl PyTensor {
    /// The number of elements in memory before the first one, from the first of the tensor that it
    /// is a view of.
    fn storage_offset(&self) -> PyResult<usize> {
        let t = self.tensor();
        run(|| t.catch_up())?;
        Ok(t.shared_place().map_or_else(|| t.value().start(), |(_, _, layout)| layout.offset))
    }

    /// Place of the elements of a leaf in memory that it shares with another one: a number of that
    /// memory, all elements there, the first one of the leaf's and its strides.
    fn _shared_place(&self) -> Option<(usize, PyTensor, usize, Vec<isize>)> {
        let t = self.tensor();
        t.catch_up().ok()?;
        let (memory, all, layout) = t.shared_place()?;
        Some((memory, all.into(), layout.offset, layout.strides[..t.rank()].to_vec()))
    }

    /// The tensor whose memory it shows, and how it was taken from there if it is not all of it.
    fn _shown<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, Self>, Option<ViewPath>) {
        let py = slf.py();
        match slf.get().lock().link() {
            Some(Link::View { root, path }) => (root.get(py), Some(ViewPath(path.clone()))),
            Some(Link::Over { memory }) => (memory.bind(py).clone(), None),
            _ => (slf.clone(), None),
        }
    }
}

/// The root whose elements these are, and the path to them. With `cuts` one without a tape.
fn place<'py>(
    slf: &Bound<'py, PyTensor>,
    t: &Tensor,
    cuts: bool,
) -> PyResult<(Bound<'py, PyTensor>, Option<Path>)> {
    let py = slf.py();
    let inner = slf.get().lock();
    match inner.link() {
        Some(Link::View { root, path }) if !cuts || path.is_detached() => {
            Ok((root.get(py), Some(path.clone())))
        }
        Some(Link::View { root, path }) => {
            let (root, path) = (root.get(py), path.clone());
            drop(inner);
            let (memory, first) = place(&root, &root.get().tensor(), cuts)?;
            let steps = path.steps();
            let first = first.unwrap_or(Path::of(Step::Detached));
            Ok((memory, Some(steps.into_iter().fold(first, |path, step| path.then(step.clone())))))
        }
        Some(Link::Over { memory }) if cuts => Ok((memory.bind(py).clone(), None)),
        _ if cuts && !t.is_leaf() => {
            drop(inner);
            let memory = Bound::new(py, PyTensor::from(t.detach()))?;
            let mut inner = slf.get().lock();
            inner.show(Link::Over { memory: memory.clone().unbind() }, Seen::default());
            drop(inner);
            slf.get().bump_by(session::LINKED);
            Ok((memory, None))
        }
        _ if cuts => Ok((slf.clone(), Some(Path::of(Step::Detached)))),
        _ => Ok((slf.clone(), None)),
    }
}

/// The elements along the path, if those that are there are not of the root as it is.
pub(super) fn retaken(
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
    let since = version.wrapping_sub(seen.version);
    if seen.value.is_none() && !root.is_changeable() && since < REPLACED && since % LINKED == 0 {
        return Some((old.clone(), Seen::of(version, root, linked)));
    }
    let now = match path.is_detached() {
        true => path.take(&root.detach()),
        false => chainrule::enable_grad(|| path.take(root)),
    };
    let now = now.unwrap_or_else(|_| old.clone());
    // A handle that was detached and then written may have a tape of its own.
    let now = match path.is_detached() && !old.is_leaf() {
        true => old.revalued(&now).unwrap_or(now),
        false => now,
    };
    Some((now, Seen::of(version, root, linked)))
}
