//! Leaves whose memory is a part of another tensor's.

use chainrule::Tensor;
use pyo3::prelude::*;

use super::path::Path;
use super::write::check_outside;
use super::{Link, gradient};
use crate::error::run;
use crate::handle::Inner;
use crate::session;
use crate::tensor::PyTensor;

/// The tensor whose own memory a root shows, and the path from there.
fn owner<'py>(root: &Bound<'py, PyTensor>, path: &Path) -> (Bound<'py, PyTensor>, Path) {
    let py = root.py();
    let (mut at, mut way) = (root.clone(), path.clone());
    loop {
        let (next, first) = match at.get().lock().link() {
            None | Some(Link::Grad { .. }) => break,
            Some(Link::View { root, path }) => (root.get(py), Some(path.clone())),
            Some(Link::Over { memory }) => (memory.bind(py).clone(), None),
        };
        if let Some(first) = first {
            way = way.steps().into_iter().fold(first, |path, step| path.then(step.clone()));
        }
        at = next;
    }
    (at, way)
}

/// Whether anybody but the one link that this root is from can see its memory: it, or a tensor on
/// the way to the owner, has other holders.
pub fn is_seen(root: &Bound<'_, PyTensor>) -> bool {
    // SAFETY: the object is alive.
    let held = |at: &Bound<'_, PyTensor>| unsafe { pyo3::ffi::Py_REFCNT(at.as_ptr()) };
    // The link and the caller hold the first one, a link and this function those behind it.
    let mut seen = held(root) > 2;
    let mut at = next_of(root);
    while let Some(next) = at {
        seen |= held(&next) > 2;
        at = next_of(&next);
    }
    seen
}

fn next_of<'py>(at: &Bound<'py, PyTensor>) -> Option<Bound<'py, PyTensor>> {
    match at.get().lock().link() {
        Some(Link::View { root, .. }) => Some(root.get(at.py())),
        Some(Link::Over { memory }) => Some(memory.bind(at.py()).clone()),
        _ => None,
    }
}

/// A leaf that requires a gradient, with the memory that the path leads to. None where that is not
/// the root's own: it is computed, or an array's, or several elements are in one place.
pub fn leaf_of(root: &Bound<'_, PyTensor>, path: &Path) -> PyResult<Option<Tensor>> {
    let (root, path) = owner(root, path);
    let own = root.get();
    let now = own.tensor();
    let graded = match own.lock().link() {
        Some(Link::Grad { leaf }) => Some(leaf.clone()),
        _ => None,
    };
    if session::current().is_some() || !now.dtype().is_float() || !now.is_contiguous() {
        return Ok(None);
    }
    let has_array = |inner: &Inner| {
        let outside = inner.rest.as_ref().and_then(|rest| rest.outside.as_ref());
        outside.is_some_and(|out| out.array.is_some())
    };
    let view = run(|| path.take(&now.detach()))?;
    if !view.shares_memory(&now) || has_array(&own.lock()) || check_outside(&root).is_err() {
        return Ok(None);
    }
    if let Some(leaf) = graded {
        PyTensor::note_behind(&root)?;
        let Some(home) = gradient::home_of(&leaf)? else { return Ok(None) };
        return run(|| home.try_part(&path.take(&home.detach())?));
    }
    if !now.is_changeable() && !own.become_buffer() {
        return Ok(None);
    }
    PyTensor::note_behind(&root)?;
    own.replaced();
    run(|| own.tensor().try_part(&view))
}
