//! The handle of a leaf's gradient.

use chainrule::Tensor;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use super::{Link, Seen, parts};
use crate::error::{GradientError, run};
use crate::session;
use crate::tensor::PyTensor;

/// The gradient of a leaf, with its elements in memory as PyTorch has them: one after the other, so
/// that a flat view of it is a view. A rule may have given it expanded or transposed.
fn in_order(leaf: &Tensor) -> PyResult<Option<Tensor>> {
    let Some(grad) = leaf.grad() else { return Ok(None) };
    if grad.is_contiguous() || session::is_any() || !leaf.is_contiguous() {
        return Ok(Some(grad));
    }
    let made = run(|| grad.try_reshape([grad.numel()])?.try_reshape(grad.shape()))?;
    run(|| leaf.set_grad(Some(made.clone())))?;
    Ok(leaf.grad().or(Some(made)))
}

/// Says that a gradient is apart from the tensor that it was set to.
fn warn_of_shared(new: &Bound<'_, PyTensor>) -> PyResult<()> {
    let why = c"x.grad = g: x's gradient has the values of g and no memory with it, for g is computed, or has the memory of an array: \
                what is added to one is not seen by the other; give g.clone() to say so";
    PyErr::warn(new.py(), &new.py().get_type::<PyRuntimeWarning>(), why, 1)
}

/// Makes the gradient of a leaf, which has the values of `new` already, share its memory; false
/// where that cannot be shared.
fn share(t: &Tensor, new: &Bound<'_, PyTensor>) -> PyResult<bool> {
    let inner = new.get().lock();
    let home = match inner.link() {
        None => return Ok(true),
        Some(Link::Grad { leaf }) if leaf.is_same(t) => return Ok(true),
        Some(Link::Grad { leaf }) => {
            let leaf = leaf.clone();
            drop(inner);
            home_of(&leaf)?
        }
        Some(Link::View { root, path }) => {
            let (root, path) = (root.get(new.py()), path.clone());
            drop(inner);
            parts::leaf_of(&root, &path)?
        }
        Some(Link::Over { .. }) => None,
    };
    match home {
        Some(home) => run(|| t.keep_grad_in(home)).map(|()| true),
        None => Ok(false),
    }
}

/// The leaf that has the gradient of another one, which is made so if there is none.
pub(super) fn home_of(leaf: &Tensor) -> PyResult<Option<Tensor>> {
    if let Some(home) = leaf.grad_home() {
        return Ok(Some(home));
    }
    let Some(grad) = leaf.grad() else { return Ok(None) };
    let home = grad.detach().buffer();
    run(|| leaf.keep_grad_in(home.clone()))?;
    Ok(Some(home))
}

impl PyTensor {
    /// The handle of a leaf's gradient, which is one object as long as the gradient is not set
    /// anew.
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
        let Some(grad) = in_order(&t)? else { return Ok(None) };
        let kept =
            own.lock().rest.as_ref().and_then(|r| Some(r.grad.as_ref()?.clone_ref(slf.py())));
        if let Some(kept) = kept {
            return Ok(Some(kept));
        }
        let new = PyTensor::linked(grad, Link::Grad { leaf: t }, Seen::default());
        let new = Py::new(slf.py(), new)?;
        if session::current().is_none() {
            own.lock().rest().grad = Some(new.clone_ref(slf.py()));
        }
        Ok(Some(new))
    }

    /// Leaves the handle of the gradient with what it shows; the leaf's next one has another.
    pub fn cut_gradient(&self) {
        let kept = self.lock().rest.as_mut().and_then(|rest| rest.grad.take());
        if let Some(kept) = kept {
            let kept = kept.get();
            let last = kept.tensor();
            let mut inner = kept.lock();
            inner.tensor = last;
            let alias = inner.alias.take();
            drop(inner);
            drop(alias);
        }
    }

    /// Sets the gradient, or forgets it. The handle of the old one keeps it; that of the new one is
    /// the gradient from now on.
    pub fn set_gradient(&self, new: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        let t = self.tensor();
        let value = new.map(|g| g.get().tensor());
        self.cut_gradient();
        if value.is_some() {
            t.zero_grad();
        }
        run(|| t.set_grad(value))?;
        if let Some(new) = new
            && session::current().is_none()
        {
            let mut inner = new.get().lock();
            if inner.is_plain() {
                inner.show(Link::Grad { leaf: t }, Seen::default());
                drop(inner);
                new.get().bump();
                self.lock().rest().grad = Some(new.clone().unbind());
            } else {
                drop(inner);
                if !share(&t, new)? {
                    warn_of_shared(new)?;
                }
            }
        }
        Ok(())
    }
}
