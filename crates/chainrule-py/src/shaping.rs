//! Views: their results alias.

use chainrule::{Result, Tensor};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::alias::Step;
use crate::args::{Axes, shape, sizes};
use crate::error::{argument_error, run};
use crate::tensor::{PyTensor, work};

#[pymethods]
impl PyTensor {
    /// A view with the same elements in row-major order under another shape; a size of -1 is what
    /// is left over. An error where they are known to lie in another order, as in `x.t().view(-1)`:
    /// `reshape` copies them.
    #[pyo3(signature = (*shape))]
    fn view(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let sizes = sizes(shape)?;
        let t = slf.get().tensor();
        let out = run(|| t.try_reshape(sizes))?;
        if PyTensor::is_turned(slf, &t, &out) {
            return Err(argument_error(format!(
                "view: shape {} with strides {:?} as {}: its elements lie in another order in memory; use reshape, which copies them",
                t.shape(),
                &t.value().layout().strides[..t.rank()],
                out.shape(),
            )));
        }
        let step = Step::reshape(out.shape());
        Ok(PyTensor::linked_to(slf, &t, out, step))
    }

    /// The elements in row-major order under another shape, as a view where the memory allows it.
    ///
    /// A size of -1 is what is left over. Gradient: dx = g in the shape of x.
    #[pyo3(signature = (*shape))]
    fn reshape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let sizes = sizes(shape)?;
        let t = slf.get().tensor();
        Ok(reshaped(slf, &t, run(|| t.try_reshape(sizes))?))
    }

    /// A view with the axes in another order: axis i of the result is axis `dims[i]`.
    ///
    /// Gradient: dx = g with the axes put back.
    #[pyo3(signature = (*dims))]
    fn permute(slf: &Bound<'_, Self>, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let axes = sizes(dims)?;
        let out = run(|| t.try_permute(&axes))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Permute(axes)))
    }

    /// A view in which axes of size 1 are stretched, and new ones stand in front; -1 keeps a size.
    ///
    /// Gradient: dx = g summed over the stretched axes.
    #[pyo3(signature = (*sizes))]
    fn expand(slf: &Bound<'_, Self>, sizes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let wanted = crate::args::sizes(sizes)?;
        let t = slf.get().tensor();
        let own = t.shape();
        let new = wanted.len().saturating_sub(own.rank());
        let full: Vec<i64> = wanted
            .iter()
            .enumerate()
            .map(|(i, &n)| if n == -1 && i >= new { own[i - new] as i64 } else { n })
            .collect();
        let full = shape(full)?;
        let out = run(|| t.try_expand(&full[..]))?;
        let step = Step::expand(out.shape());
        Ok(PyTensor::viewed(slf, &t, out, step))
    }

    /// A view with two axes exchanged.
    ///
    /// Gradient: dx = g with them exchanged again.
    fn transpose(slf: &Bound<'_, Self>, dim0: i64, dim1: i64) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        if t.rank() == 0 && [dim0, dim1].iter().all(|d| [0, -1].contains(d)) {
            return Ok(reshaped(slf, &t, t.clone()));
        }
        let out = run(|| t.try_transpose(dim0, dim1))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Transpose(dim0, dim1)))
    }

    /// A view with all axes in reverse order.
    #[getter(T)]
    fn get_t(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let axes: Vec<i64> = (0..t.rank() as i64).rev().collect();
        let out = run(|| t.try_permute(&axes))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Permute(axes)))
    }

    /// A view with the last two axes exchanged.
    #[getter(mT)]
    fn matrix_t(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        if t.rank() < 2 {
            return Err(argument_error(format!(
                "mT: shape {}: a matrix has two axes or more",
                t.shape()
            )));
        }
        let out = run(|| t.try_transpose(-2, -1))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Transpose(-2, -1)))
    }

    /// A view without axes of size 1: all of them, or those that are given.
    ///
    /// Gradient: dx = g in the shape of x.
    #[pyo3(signature = (dim=Axes(None)))]
    fn squeeze(slf: &Bound<'_, Self>, dim: Axes) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let out = run(|| match &dim.0 {
            None => {
                let ones: Vec<i64> =
                    (0..t.rank()).filter(|&a| t.shape()[a] == 1).map(|a| a as i64).collect();
                t.try_squeeze(&ones[..])
            }
            // As in PyTorch, axes of other sizes stay.
            Some(a) => {
                let gone = |&a: &i64| axis_size(&t, a).map(|n| (n == 1).then_some(a)).transpose();
                let ones = match t.rank() {
                    0 => Vec::new(),
                    _ => a.iter().filter_map(gone).collect::<Result<Vec<_>>>()?,
                };
                t.try_squeeze(&ones[..])
            }
        })?;
        Ok(reshaped(slf, &t, out))
    }

    /// The axes of a matrix exchanged; a vector stays as it is.
    fn t(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        if t.rank() < 2 {
            return Ok(reshaped(slf, &t, t.clone()));
        }
        let out = run(|| t.try_t())?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Transpose(0, 1)))
    }

    /// A view with one more axis, of size 1, at this place.
    ///
    /// Gradient: dx = g in the shape of x.
    fn unsqueeze(slf: &Bound<'_, Self>, dim: i64) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        Ok(reshaped(slf, &t, run(|| t.try_unsqueeze(dim))?))
    }

    /// The axes from one to another joined, as a view where the memory allows it.
    ///
    /// Gradient: dx = g in the shape of x.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    fn flatten(slf: &Bound<'_, Self>, start_dim: i64, end_dim: i64) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let out = run(|| {
            if t.rank() == 0 { t.try_reshape(1i64) } else { t.try_flatten(start_dim, end_dim) }
        })?;
        Ok(reshaped(slf, &t, out))
    }

    /// A view in which an axis becomes several with these sizes.
    ///
    /// Gradient: dx = g in the shape of x.
    fn unflatten(slf: &Bound<'_, Self>, dim: i64, sizes: Vec<i64>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        Ok(reshaped(slf, &t, run(|| t.try_unflatten(dim, sizes))?))
    }

    /// A view of a part of an axis.
    ///
    /// Gradient: dx = g in that part, else 0.
    fn narrow(slf: &Bound<'_, Self>, dim: i64, start: i64, length: usize) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let start = match usize::try_from(start) {
            Ok(s) => s,
            Err(_) => {
                let n = run(|| axis_size(&t, dim))?;
                n.checked_sub(start.unsigned_abs() as usize).ok_or_else(|| {
                    PyIndexError::new_err(format!(
                        "narrow: start {start} is out of range for size {n}"
                    ))
                })?
            }
        };
        let out = run(|| t.try_narrow(dim, start, length))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Narrow(dim, start, length)))
    }

    fn _split(slf: &Bound<'_, Self>, sizes: Vec<usize>, axis: i64) -> PyResult<Vec<PyTensor>> {
        let t = slf.get().tensor();
        let parts = run(|| t.try_split_with_sizes(&sizes, axis))?;
        self::parts(slf, &t, axis, parts)
    }

    #[pyo3(signature = (split_size, dim=0))]
    fn _split_size(slf: &Bound<'_, Self>, split_size: usize, dim: i64) -> PyResult<Vec<PyTensor>> {
        let t = slf.get().tensor();
        let parts = run(|| t.try_split(split_size, dim))?;
        self::parts(slf, &t, dim, parts)
    }

    #[pyo3(signature = (chunks, dim=0))]
    fn _chunk(slf: &Bound<'_, Self>, chunks: usize, dim: i64) -> PyResult<Vec<PyTensor>> {
        let t = slf.get().tensor();
        let parts = run(|| t.try_chunk(chunks, dim))?;
        self::parts(slf, &t, dim, parts)
    }

    /// A view of the diagonal of two axes, which becomes the last axis.
    ///
    /// Gradient: dx = g on the diagonal, else 0.
    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    fn diagonal(slf: &Bound<'_, Self>, offset: i64, dim1: i64, dim2: i64) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let out = run(|| t.try_diagonal(offset, dim1, dim2))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Diagonal(offset, dim1, dim2)))
    }

    fn _repeat_interleave(&self, py: Python<'_>, times: usize, axis: i64) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_repeat_interleave(times, axis)).map(PyTensor::from)
    }

    fn _repeat_interleave_with(
        &self,
        py: Python<'_>,
        counts: &Bound<'_, PyTensor>,
        axis: i64,
    ) -> PyResult<PyTensor> {
        let counts = counts.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_repeat_interleave_with(&counts, axis)).map(PyTensor::from)
    }

    /// A view of windows of an axis: the windows stand along it, their elements along a new last
    /// axis.
    ///
    /// Gradient: dx = the sum of g over the windows that have the element.
    fn unfold(
        slf: &Bound<'_, Self>,
        dimension: i64,
        size: usize,
        step: usize,
    ) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let out = run(|| match t.rank() {
            0 => t.try_reshape([1i64])?.try_unfold(dimension, size, step)?.try_squeeze(0),
            _ => t.try_unfold(dimension, size, step),
        })?;
        if t.rank() == 0 {
            return Ok(reshaped(slf, &t, out));
        }
        Ok(PyTensor::viewed(slf, &t, out, Step::Unfold(dimension, size, step)))
    }

    fn _movedim(
        slf: &Bound<'_, Self>,
        source: Vec<i64>,
        destination: Vec<i64>,
    ) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let out = run(|| t.try_movedim(&source, &destination))?;
        Ok(PyTensor::viewed(slf, &t, out, Step::Movedim(Box::new((source, destination)))))
    }
}

fn axis_size(t: &Tensor, axis: i64) -> Result<usize> {
    // Named by an op that checks the axis.
    t.try_transpose(axis, axis).map(|t| t.size(axis))
}

/// A result whose shape says how it is taken from `t`.
fn reshaped(slf: &Bound<'_, PyTensor>, t: &Tensor, out: Tensor) -> PyTensor {
    let step = Step::reshape(out.shape());
    PyTensor::viewed(slf, t, out, step)
}

fn parts(
    slf: &Bound<'_, PyTensor>,
    t: &Tensor,
    axis: i64,
    parts: Vec<Tensor>,
) -> PyResult<Vec<PyTensor>> {
    let mut start = 0;
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        let len = run(|| axis_size(&part, axis))?;
        all.push(PyTensor::viewed(slf, t, part, Step::Narrow(axis, start, len)));
        start += len;
    }
    Ok(all)
}
