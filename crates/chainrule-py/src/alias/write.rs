//! Writes through a handle.

use chainrule::{DType, Index, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;

use super::path::{Path, Step};
use super::{Alias, Link, Root, Seen, parts};
use crate::error::{GradientError, argument_error, run};
use crate::laid;
use crate::session;
use crate::tensor::{PyTensor, copied};

const LEAF: &str = "a leaf that requires a gradient would be changed in place, and backward could not tell its values apart: \
                    write inside `with cr.no_grad():`, or to its `.data`";
const DETACHED_VIEW: &str = "a value with a gradient would be written to a view of a detached tensor, which the tensor's own tape would not know: \
                             write to the detached tensor itself, y[i] = v, or clone() it first";
const LEAF_VIEW: &str = "a view of a leaf that requires a gradient would be changed in place, and backward could not tell the leaf's \
                         values apart: write inside `with cr.no_grad():`, or to its `.data`";

const SHARED: &str = "compile: x.data = t gives x the memory of a tensor from outside, or x has views from outside: write x.data.copy_(t)";

const RESHAPED: &str = "compile: the function changes the shape of a tensor from outside; take the view, as in y = x.unsqueeze(0)";

impl PyTensor {
    /// Gives the handle, and all that alias it, this value.
    pub fn assign(slf: &Bound<'_, Self>, new: Tensor) -> PyResult<()> {
        let own = slf.get();
        let old = own.tensor();
        let new = fitted(&old, new)?;
        session::written(slf)?;
        let view = match own.lock().link() {
            Some(Link::View { root, path }) => Some((root.get(slf.py()), path.clone())),
            _ => None,
        };
        match view {
            Some((root, path)) => {
                let now = root.get().tensor();
                run(|| now.catch_up())?;
                let behind = path.is_detached();
                let records = chainrule::is_grad_enabled();
                let leaf = !behind && now.is_leaf() && now.requires_grad();
                if leaf && records {
                    return Err(GradientError::new_err(LEAF_VIEW));
                }
                if behind && records && new.requires_grad() && *path.last() != Step::Detached {
                    return Err(GradientError::new_err(DETACHED_VIEW));
                }
                let base = if behind { now.detach() } else { now };
                let value = if behind { new.detach() } else { new.clone() };
                let value = put_along(&path, base, value)?;
                write_root(&root, value, behind)?;
                // A detached handle has a tape of its own from now on, if the value has one.
                own.tensor();
                if behind && records && new.requires_grad() {
                    own.lock().tensor = new;
                }
                own.bump();
                Ok(())
            }
            _ => write_root(slf, new, false),
        }
    }

    /// `x.data = new`: the memory of `new`, whatever its shape and dtype. Views from before stay
    /// with that of before.
    pub fn set_memory(slf: &Bound<'_, Self>, new: &Bound<'_, Self>) -> PyResult<()> {
        let own = slf.get();
        let is_view = match new.get().lock().link() {
            Some(Link::View { root, path }) => {
                path.is_only_detached() && root.direct().is_some_and(|r| std::ptr::eq(r, own))
            }
            _ => false,
        };
        if new.is(slf) || is_view {
            return Ok(());
        }
        let value = new.get().untaped()?;
        if session::current().is_some() && !session::is_new(own) {
            let from = new.get().root(slf.py()).unwrap_or_else(|| new.clone().unbind());
            if own.has_views() || !session::is_new(from.get()) {
                return Err(GradientError::new_err(SHARED));
            }
            return PyTensor::put(slf, value);
        }
        if let Some(twin) = twin_for(own, new)? {
            PyTensor::leave_memory(slf)?;
            return own.become_twin(twin);
        }
        let leaf = match own.lock().link() {
            Some(Link::Grad { leaf }) => Some(leaf.clone()),
            _ => None,
        };
        match leaf {
            Some(leaf) => {
                PyTensor::leave_memory(slf)?;
                leaf.zero_grad();
                run(|| leaf.set_grad(Some(value)))?;
                own.bump();
            }
            None => PyTensor::put(slf, value)?,
        }
        PyTensor::follow(new, slf)
    }

    /// Gives the tensor other memory with this value, which nobody else shows, without a record.
    pub fn put(slf: &Bound<'_, Self>, new: Tensor) -> PyResult<()> {
        let old = slf.get().tensor();
        session::written(slf)?;
        let traced = session::current().is_some() && !session::is_new(slf.get());
        let fits = old.shape() == new.shape() && old.dtype() == new.dtype();
        if traced && !fits {
            return Err(PyTypeError::new_err(
                "compile: the function gives a parameter another shape or dtype; do that outside",
            ));
        }
        if !traced {
            PyTensor::leave_memory(slf)?;
        }
        if fits && old.is_changeable() && (traced || !old.has_twin()) {
            run(|| old.try_set(&new))?;
        } else if fits && old.is_changeable() {
            return slf.get().become_twin(run(|| new.try_parameter())?);
        } else if old.is_changeable() {
            let leaf = run(|| new.try_parameter())?;
            if !old.requires_grad() {
                run(|| leaf.set_requires_grad(false))?;
            }
            if let Some(name) = old.name() {
                leaf.named(&name);
            }
            leaf.inherit(&old);
            let grad = slf.get().lock().rest.as_mut().and_then(|rest| rest.grad.take());
            drop(grad);
            slf.get().replace(leaf);
        } else {
            slf.get().replace(run(|| old.revalued(&new)).unwrap_or(new));
        }
        slf.get().bump();
        Ok(())
    }

    /// Takes this leaf in the place of its own, with the name, the gradient and the flag of that
    /// one.
    fn become_twin(&self, leaf: Tensor) -> PyResult<()> {
        let old = self.tensor();
        run(|| leaf.set_requires_grad(old.requires_grad()))?;
        if let Some(name) = old.name() {
            leaf.named(&name);
        }
        leaf.inherit(&old);
        self.cut_gradient();
        if old.has_lost_grad() {
            leaf.lose_grad();
        } else if leaf.meta() == old.meta() {
            run(|| leaf.set_grad(old.grad()))?;
        }
        self.replace(leaf);
        Ok(())
    }

    /// Gives the handle the place of a view of it, as `unsqueeze_` does: the memory stays, with
    /// those that show it.
    pub fn become_view(slf: &Bound<'_, Self>, view: &Bound<'_, Self>) -> PyResult<()> {
        let (py, own) = (slf.py(), slf.get());
        let old = own.tensor();
        if session::current().is_some() && !session::is_new(own) {
            return Err(GradientError::new_err(RESHAPED));
        }
        if old.is_changeable() {
            return match old.requires_grad() && chainrule::is_grad_enabled() {
                true => Err(GradientError::new_err(LEAF)),
                false => PyTensor::put(slf, view.get().untaped()?),
            };
        }
        session::written(slf)?;
        let new = view.get().tensor();
        PyTensor::leave_memory(slf)?;
        let (root, path) = match view.get().lock().link() {
            Some(Link::View { root, path }) => (root.clone_ref(py), path.clone()),
            _ => {
                return Err(PyTypeError::new_err("the place of a tensor is taken by a view of it"));
            }
        };
        let memory = root.get(py);
        let linked = memory.get().lock().alias.is_some();
        let (now, version) = memory.get().with_version();
        let mut inner = own.lock();
        inner.tensor = new;
        inner.show(Link::View { root, path }, Seen::of(version, &now, linked));
        drop(inner);
        own.bump_by(session::REPLACED);
        Ok(())
    }

    /// Makes a tensor show the memory of the one that took its value, or that one its memory, as
    /// far as they can.
    fn follow(slf: &Bound<'_, Self>, taker: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let takes = taker.get().lock().is_plain();
        if takes
            && let Some(Alias { link: Link::View { root, path }, seen }) =
                slf.get().lock().alias.as_deref()
        {
            let path = if path.is_detached() { path.clone() } else { path.then(Step::Detached) };
            let link = Link::View { root: root.clone_ref(py), path };
            taker.get().lock().show(link, seen.clone());
            return Ok(());
        }
        // A handle detached from a constant stands for it.
        let (constant, is_part) = match slf.get().lock().link() {
            None => (slf.clone(), false),
            Some(Link::View { root, path }) => (root.get(py), !path.is_only_detached()),
            Some(_) => (slf.clone(), true),
        };
        let memory = match constant.get().lock().link() {
            Some(Link::Over { memory }) if !is_part => Some(memory.bind(py).clone()),
            _ => None,
        };
        let constant = memory.unwrap_or(constant);
        if constant.is(taker) {
            return Ok(());
        }
        let now = taker.get().tensor();
        let version = taker.get().version();
        let mut inner = constant.get().lock();
        if inner.is_plain() && !is_part {
            let linked = taker.get().lock().alias.is_some();
            let link = Link::View { root: Root::of(taker), path: Path::of(Step::Detached) };
            inner.show(link, Seen::of(version, &now, linked));
            drop(inner);
            constant.get().bump();
            return PyTensor::hand_arrays(constant.get(), taker);
        }
        drop(inner);
        // SAFETY: the object is alive; this handle holds it, and so does the view or who gave it.
        if unsafe { pyo3::ffi::Py_REFCNT(constant.as_ptr()) } > 2 {
            let why = c"x.data = t: x has the values of t and no memory with it, for t is a leaf or a part of another tensor: a write to one is not \
                        seen by the other; take t.clone() to say so, or write x.data.copy_(t)";
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), why, 1)?;
        }
        Ok(())
    }
}

/// A leaf with the memory of `new`, for a leaf that takes it. None where `new` is no leaf, or a
/// part of what cannot be shared.
fn twin_for(own: &PyTensor, new: &Bound<'_, PyTensor>) -> PyResult<Option<Tensor>> {
    if !own.tensor().is_changeable() {
        return Ok(None);
    }
    let (root, part) = match new.get().lock().link() {
        None => (new.clone(), None),
        Some(Link::View { root, path }) => {
            (root.get(new.py()), (!path.is_only_detached()).then(|| path.clone()))
        }
        Some(_) => return Ok(None),
    };
    if let Some(path) = part {
        return parts::leaf_of(&root, &path);
    }
    let memory = match root.get().lock().link() {
        Some(Link::Over { memory }) => Some(memory.bind(new.py()).clone()),
        _ => None,
    };
    let root = memory.unwrap_or(root);
    let source = root.get().tensor();
    if !source.is_changeable() || !source.dtype().is_float() || root.get().lock().alias.is_some() {
        return Ok(None);
    }
    root.get().replaced();
    run(|| source.try_twin()).map(Some)
}

/// The new value in the shape and dtype of the old one.
fn fitted(old: &Tensor, new: Tensor) -> PyResult<Tensor> {
    if new.shape() != old.shape() {
        return Err(argument_error(format!(
            "a write keeps the shape: shapes {} and {}",
            old.shape(),
            new.shape()
        )));
    }
    let (from, to) = (new.dtype(), old.dtype());
    if from == to {
        return Ok(new);
    }
    // Integers take on any width; a float loses its fraction, and a number its value as a bool.
    let loses = from.is_float() && !to.is_float() || to == DType::Bool;
    if !loses {
        return run(|| new.try_to_dtype(to));
    }
    let (from, to) = (from.numpy_name(), to.numpy_name());
    Err(PyTypeError::new_err(format!(
        "a write keeps the dtype: the result is of {from}, and the tensor of {to}; write x = x op y, or \
         x.copy_(y) to cut the values"
    )))
}

/// The root with `value` at the end of the path.
fn put_along(path: &Path, root: Tensor, value: Tensor) -> PyResult<Tensor> {
    let steps = path.steps();
    let mut bases = vec![root];
    for step in &steps {
        let base = bases.last().expect("it begins with the root");
        if step.overlaps(base) {
            return put_apart(path, &bases[0], &value);
        }
        bases.push(run(|| step.take(base))?);
    }
    bases.pop();
    let mut back = steps.iter().rev().zip(bases.iter().rev());
    run(|| back.try_fold(value, |v, (step, base)| step.put(base, &v)))
}

/// The root with `value` at the end of a path with a step on which elements meet in memory: a row
/// of an expanded tensor has each of them once.
fn put_apart(path: &Path, root: &Tensor, value: &Tensor) -> PyResult<Tensor> {
    let n = root.numel();
    let places = run(|| path.take(&Tensor::arange(0, n as i64).try_reshape(root.shape())?))?;
    let mut all = match session::is_any() {
        true => Vec::new(),
        false => places.to_vec::<i64>(),
    };
    all.sort_unstable();
    if all.len() != value.numel() || all.windows(2).any(|two| two[0] == two[1]) {
        return Err(PyRuntimeError::new_err(
            "write: several elements of this view are one in memory; clone() it before the write",
        ));
    }
    run(|| {
        let keys = [Index::Tensor(places.try_reshape([value.numel()])?)];
        let flat = root.try_reshape([n])?;
        flat.try_index_put(&keys, &value.try_reshape([value.numel()])?, false)?
            .try_reshape(root.shape())
    })
}

/// An error if an array of NumPy lies over the memory, and would go on with the old elements.
pub fn check_outside(root: &Bound<'_, PyTensor>) -> PyResult<()> {
    let py = root.py();
    let (is_over, array) =
        match root.get().lock().rest.as_ref().and_then(|rest| rest.outside.as_ref()) {
            None => return Ok(()),
            Some(out) => (out.shows.is_over(), out.array.as_ref().map(|a| a.clone_ref(py))),
        };
    if is_over {
        return Err(argument_error(
            "write: an array made by numpy() lies over the memory of this tensor, and would not see the write: take x.numpy().copy(), \
             or write to a clone",
        ));
    }
    if let Some(array) = array
        && crate::interchange::is_held(array.bind(py), 2)?
    {
        return Err(argument_error(
            "write: this tensor has the memory of a NumPy array, which would not see the write: write to the array, or make the \
             tensor by tensor(a), which copies",
        ));
    }
    Ok(())
}

/// The new value with its elements where those of the old one lie: a `reshape` after the write is
/// a view, or a copy, as it was before it.
fn laid_as(old: &Tensor, new: Tensor) -> PyResult<Tensor> {
    if new.is_contiguous() && old.is_contiguous() || !laid::is_known(old) {
        return Ok(new);
    }
    run(|| old.catch_up())?;
    let (from, to) = (new.value(), old.value());
    let rank = to.shape().rank();
    let (from, to) = (from.layout().strides, to.layout().strides);
    if from[..rank] == to[..rank] {
        return Ok(new);
    }
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(to[axis as usize]));
    let mut back = vec![0; rank];
    for (i, &axis) in order.iter().enumerate() {
        back[axis as usize] = i as i64;
    }
    run(|| {
        let turned = new.try_permute(&order[..])?;
        let copy = match turned.is_contiguous() {
            true => turned,
            false if turned.requires_grad() && chainrule::is_grad_enabled() => {
                turned.try_mul(1.0)?
            }
            false => copied(&turned)?,
        };
        copy.try_permute(&back[..])
    })
}

/// Gives a tensor that is nobody's view a new value; `behind` the tape it keeps its place there.
fn write_root(root: &Bound<'_, PyTensor>, new: Tensor, behind: bool) -> PyResult<()> {
    let own = root.get();
    check_outside(root)?;
    let old = own.tensor();
    let new = laid_as(&old, new)?;
    let behind = behind || !chainrule::is_grad_enabled();
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
    let inner = own.lock();
    match inner.link() {
        Some(Link::Grad { leaf }) => {
            let leaf = leaf.clone();
            drop(inner);
            run(|| leaf.set_grad(Some(new)))?
        }
        Some(Link::Over { memory }) => {
            let memory = memory.bind(root.py()).clone();
            drop(inner);
            write_root(&memory, new.detach(), true)?;
            if !behind {
                let version = memory.get().version();
                let mut inner = own.lock();
                inner.tensor = new;
                if let Some(alias) = &mut inner.alias {
                    alias.seen = Seen { version, ..Seen::default() };
                }
            }
        }
        // A tensor that changed places with a leaf of its memory.
        Some(Link::View { .. }) => {
            drop(inner);
            return PyTensor::assign(root, new);
        }
        None => {
            drop(inner);
            write_own(own, &old, new, behind)?;
        }
    }
    own.bump();
    PyTensor::follow_arrays(root)
}

/// Gives a handle without a link a new value.
fn write_own(own: &PyTensor, old: &Tensor, new: Tensor, behind: bool) -> PyResult<()> {
    if old.is_changeable() && old.requires_grad() {
        if !behind {
            return Err(GradientError::new_err(LEAF));
        }
        return run(|| old.try_set(&new.detach()));
    }
    // Buffers and frozen parameters are leaves too, which others may hold.
    if old.is_changeable() && (behind || !new.requires_grad()) {
        return run(|| old.try_set(&new.detach()));
    }
    let value = if behind && !old.is_leaf() {
        run(|| old.revalued(&new.detach()))?
    } else if own.is_met() && !new.requires_grad() && session::current().is_none() {
        // A program took it as a constant: from now on it is a state that programs read.
        new.buffer()
    } else if behind {
        new.detach()
    } else {
        new
    };
    let mut inner = own.lock();
    if inner.rest.as_ref().is_some_and(|rest| rest.retains) && value.requires_grad() {
        value.retain_grad();
    }
    inner.tensor = value;
    Ok(())
}
