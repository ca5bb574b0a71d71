//! Reductions, and ops that move elements: shapes, sorting, gathering.

use chainrule::{Index, Result, Slice, Tensor};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use crate::args::{Axes, DTypeArg, Operand, shape, sizes};
use crate::elementwise::as_float;
use crate::error::run;
use crate::tensor::{PyTensor, work};

type Pair = (PyTensor, PyTensor);

fn pair((a, b): (Tensor, Tensor)) -> Pair {
    (a.into(), b.into())
}

/// The axes under either name.
fn axes(op: &str, dim: Axes, axis: Axes) -> PyResult<Option<Vec<i64>>> {
    match (dim.0, axis.0) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err(format!(
            "{op}: dim and axis are two names of one argument; give one"
        ))),
        (a, b) => Ok(a.or(b)),
    }
}

/// PyTorch allows the axes 0 and -1 of a tensor without axes, and takes an empty list for all axes.
fn reduce(
    py: Python<'_>,
    t: Tensor,
    axes: Option<Vec<i64>>,
    all: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
    some: impl FnOnce(&Tensor, &[i64]) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let whole = match &axes {
        None => true,
        Some(a) => t.rank() == 0 && a.iter().all(|a| [0, -1].contains(a)),
    };
    work(py, t.numel(), || if whole { all(&t) } else { some(&t, &axes.unwrap_or_default()) })
        .map(PyTensor::from)
}

macro_rules! reductions {
    ($($name:ident $private:ident $try_name:ident $prepare:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(#[pyo3(signature = (dim=Axes(None), keepdim=false, *, axis=Axes(None), keepdims=false, dtype=None))]
            fn $name(&self, py: Python<'_>, dim: Axes, keepdim: bool, axis: Axes, keepdims: bool, dtype: Option<DTypeArg>) -> PyResult<PyTensor> {
                let axes = axes(stringify!($name), dim, axis)?;
                let keep = keepdim || keepdims;
                let mut t = self.tensor();
                if let Some(dtype) = dtype && t.dtype() != dtype.0 {
                    t = run(|| t.try_to_dtype(dtype.0))?;
                }
                let t = $prepare(t)?;
                reduce(py, t, axes, |t| t.$try_name(.., keep), |t, a| t.$try_name(a, keep))
            })*
        }
    };
}

reductions! {
    sum _sum try_sum Ok::<Tensor, PyErr>;
    mean _mean try_mean Ok::<Tensor, PyErr>;
    prod _prod try_prod Ok::<Tensor, PyErr>;
    amax _amax try_amax Ok::<Tensor, PyErr>;
    amin _amin try_amin Ok::<Tensor, PyErr>;
    any _any try_any Ok::<Tensor, PyErr>;
    all _all try_all Ok::<Tensor, PyErr>;
    logsumexp _logsumexp try_logsumexp as_float;
}

/// The signatures of `var` and `std`, which have changed over time: `unbiased` and `correction` say the same.
fn correction(correction: Option<f64>, unbiased: Option<bool>) -> PyResult<usize> {
    let c = correction.unwrap_or(if unbiased == Some(false) { 0.0 } else { 1.0 });
    if c < 0.0 || c.fract() != 0.0 {
        return Err(PyValueError::new_err(format!(
            "the correction must be a whole number from 0 up, it is {c}"
        )));
    }
    Ok(c as usize)
}

#[pymethods]
impl PyTensor {
    fn _var(&self, py: Python<'_>, axes: Axes, c: f64, keep: bool) -> PyResult<PyTensor> {
        let c = correction(Some(c), None)?;
        reduce(py, self.tensor(), axes.0, |t| t.try_var(.., c, keep), |t, a| t.try_var(a, c, keep))
    }

    fn _std(&self, py: Python<'_>, axes: Axes, c: f64, keep: bool) -> PyResult<PyTensor> {
        let c = correction(Some(c), None)?;
        reduce(py, self.tensor(), axes.0, |t| t.try_std(.., c, keep), |t, a| t.try_std(a, c, keep))
    }

    fn _norm(&self, py: Python<'_>, p: f64, axes: Axes, keep: bool) -> PyResult<PyTensor> {
        reduce(
            py,
            self.tensor(),
            axes.0,
            |t| t.try_norm(p, .., keep),
            |t, a| t.try_norm(p, a, keep),
        )
    }

    fn _count_nonzero(&self, py: Python<'_>, axes: Axes) -> PyResult<PyTensor> {
        reduce(
            py,
            self.tensor(),
            axes.0,
            |t| t.try_count_nonzero(..),
            |t, a| t.try_count_nonzero(a),
        )
    }

    fn _max_axis(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_max_axis(axis, keep)).map(pair)
    }

    fn _min_axis(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_min_axis(axis, keep)).map(pair)
    }

    fn _max(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_max(.., false)).map(PyTensor::from)
    }

    fn _min(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_min(.., false)).map(PyTensor::from)
    }

    #[pyo3(signature = (dim=None, keepdim=false, *, axis=None, keepdims=false))]
    fn argmax(
        &self,
        py: Python<'_>,
        dim: Option<i64>,
        keepdim: bool,
        axis: Option<i64>,
        keepdims: bool,
    ) -> PyResult<PyTensor> {
        let (t, keep) = (self.tensor(), keepdim || keepdims);
        work(py, t.numel(), || match dim.or(axis) {
            Some(a) => t.try_argmax(a, keep),
            None => positions(t.try_argmax_all()?, t.rank(), keep),
        })
        .map(PyTensor::from)
    }

    #[pyo3(signature = (dim=None, keepdim=false, *, axis=None, keepdims=false))]
    fn argmin(
        &self,
        py: Python<'_>,
        dim: Option<i64>,
        keepdim: bool,
        axis: Option<i64>,
        keepdims: bool,
    ) -> PyResult<PyTensor> {
        let (t, keep) = (self.tensor(), keepdim || keepdims);
        work(py, t.numel(), || match dim.or(axis) {
            Some(a) => t.try_argmin(a, keep),
            None => positions(t.try_argmin_all()?, t.rank(), keep),
        })
        .map(PyTensor::from)
    }

    fn _median(&self, axis: i64, keep: bool) -> PyResult<Pair> {
        run(|| self.tensor().try_median(axis, keep)).map(pair)
    }

    fn _median_all(&self) -> PyResult<PyTensor> {
        run(|| self.tensor().try_median_all()).map(PyTensor::from)
    }

    fn _cumulative(&self, py: Python<'_>, what: &str, axis: i64) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || match what {
            "sum" => t.try_cumsum(axis),
            "prod" => t.try_cumprod(axis),
            _ => t.try_logcumsumexp(axis),
        })
        .map(PyTensor::from)
    }

    fn _cumulative_pair(&self, max: bool, axis: i64) -> PyResult<Pair> {
        run(|| if max { self.tensor().try_cummax(axis) } else { self.tensor().try_cummin(axis) })
            .map(pair)
    }

    fn _sort(&self, py: Python<'_>, axis: i64, descending: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_sort(axis, descending)).map(pair)
    }

    #[pyo3(signature = (dim=-1, descending=false, stable=false))]
    fn argsort(
        &self,
        py: Python<'_>,
        dim: i64,
        descending: bool,
        stable: bool,
    ) -> PyResult<PyTensor> {
        let _ = stable;
        let t = self.tensor();
        work(py, t.numel(), || t.try_argsort(dim, descending)).map(PyTensor::from)
    }

    fn _topk(&self, k: usize, axis: i64, largest: bool, sorted: bool) -> PyResult<Pair> {
        run(|| self.tensor().try_topk(k, axis, largest, sorted)).map(pair)
    }

    fn _unique(&self) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
        let (a, b, c) = run(|| self.tensor().try_unique())?;
        Ok((a.into(), b.into(), c.into()))
    }

    fn _histogram(&self, bins: usize, range: Option<(f64, f64)>) -> PyResult<Pair> {
        run(|| self.tensor().try_histogram(bins, range)).map(pair)
    }

    #[pyo3(signature = (weights=None, minlength=0))]
    fn bincount(
        &self,
        weights: Option<&Bound<'_, PyTensor>>,
        minlength: usize,
    ) -> PyResult<PyTensor> {
        let weights = weights.map(|w| w.get().tensor());
        run(|| self.tensor().try_bincount(weights.as_ref(), minlength)).map(PyTensor::from)
    }

    fn _searchsorted(&self, values: Operand, right: bool) -> PyResult<PyTensor> {
        let t = self.tensor();
        run(|| t.try_searchsorted(&values.beside(&t)?, right)).map(PyTensor::from)
    }

    #[pyo3(signature = (other, dim=-1))]
    fn _cross(&self, other: &Bound<'_, PyTensor>, dim: i64) -> PyResult<PyTensor> {
        let other = other.get().tensor();
        run(|| self.tensor().try_cross(&other, dim)).map(PyTensor::from)
    }

    fn kron(&self, other: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let other = other.get().tensor();
        run(|| self.tensor().try_kron(&other)).map(PyTensor::from)
    }

    fn outer(&self, vec2: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let other = vec2.get().tensor();
        run(|| self.tensor().try_outer(&other)).map(PyTensor::from)
    }

    fn dot(&self, tensor: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let other = tensor.get().tensor();
        run(|| self.tensor().try_dot(&other)).map(PyTensor::from)
    }

    fn mv(&self, vec: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let other = vec.get().tensor();
        run(|| self.tensor().try_mv(&other)).map(PyTensor::from)
    }

    // Shapes

    #[pyo3(signature = (*shape))]
    fn view(&self, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        self.reshape(shape)
    }

    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let sizes = sizes(shape)?;
        let t = self.tensor();
        Ok(self.viewed(run(|| t.try_reshape(sizes))?))
    }

    #[pyo3(signature = (*dims))]
    fn permute(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let axes = sizes(dims)?;
        Ok(self.viewed(run(|| self.tensor().try_permute(&axes))?))
    }

    #[pyo3(signature = (*sizes))]
    fn expand(&self, sizes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let wanted = crate::args::sizes(sizes)?;
        let t = self.tensor();
        let own = t.shape();
        let new = wanted.len().saturating_sub(own.rank());
        let full: Vec<i64> = wanted
            .iter()
            .enumerate()
            .map(|(i, &n)| if n == -1 && i >= new { own[i - new] as i64 } else { n })
            .collect();
        let full = shape(full)?;
        Ok(self.viewed(run(|| t.try_expand(&full[..]))?))
    }

    fn transpose(&self, dim0: i64, dim1: i64) -> PyResult<PyTensor> {
        let t = self.tensor();
        if t.rank() == 0 && [dim0, dim1].iter().all(|d| [0, -1].contains(d)) {
            return Ok(self.viewed(t));
        }
        Ok(self.viewed(run(|| t.try_transpose(dim0, dim1))?))
    }

    #[getter(T)]
    fn get_t(&self) -> PyResult<PyTensor> {
        let t = self.tensor();
        let axes: Vec<i64> = (0..t.rank() as i64).rev().collect();
        Ok(self.viewed(run(|| t.try_permute(&axes))?))
    }

    #[getter(mT)]
    fn matrix_t(&self) -> PyResult<PyTensor> {
        let t = self.tensor();
        if t.rank() < 2 {
            return Err(PyValueError::new_err(format!(
                "mT: shape {}: a matrix has two axes or more",
                t.shape()
            )));
        }
        Ok(self.viewed(run(|| t.try_transpose(-2, -1))?))
    }

    #[pyo3(signature = (dim=Axes(None)))]
    fn squeeze(&self, dim: Axes) -> PyResult<PyTensor> {
        let t = self.tensor();
        let out = run(|| match &dim.0 {
            None => {
                let ones: Vec<i64> =
                    (0..t.rank()).filter(|&a| t.shape()[a] == 1).map(|a| a as i64).collect();
                t.try_squeeze(&ones[..])
            }
            Some(a) => t.try_squeeze(&a[..]),
        })?;
        Ok(self.viewed(out))
    }

    fn unsqueeze(&self, dim: i64) -> PyResult<PyTensor> {
        Ok(self.viewed(run(|| self.tensor().try_unsqueeze(dim))?))
    }

    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    fn flatten(&self, start_dim: i64, end_dim: i64) -> PyResult<PyTensor> {
        let t = self.tensor();
        let out = run(|| {
            if t.rank() == 0 { t.try_reshape(1i64) } else { t.try_flatten(start_dim, end_dim) }
        })?;
        Ok(self.viewed(out))
    }

    fn unflatten(&self, dim: i64, sizes: Vec<i64>) -> PyResult<PyTensor> {
        Ok(self.viewed(run(|| self.tensor().try_unflatten(dim, sizes))?))
    }

    fn narrow(&self, dim: i64, start: i64, length: usize) -> PyResult<PyTensor> {
        let t = self.tensor();
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
        Ok(self.viewed(run(|| t.try_narrow(dim, start, length))?))
    }

    fn _split(&self, sizes: Vec<usize>, axis: i64) -> PyResult<Vec<PyTensor>> {
        let parts = run(|| self.tensor().try_split_with_sizes(&sizes, axis))?;
        Ok(parts.into_iter().map(|p| self.viewed(p)).collect())
    }

    #[pyo3(signature = (split_size, dim=0))]
    fn _split_size(&self, split_size: usize, dim: i64) -> PyResult<Vec<PyTensor>> {
        let parts = run(|| self.tensor().try_split(split_size, dim))?;
        Ok(parts.into_iter().map(|p| self.viewed(p)).collect())
    }

    #[pyo3(signature = (chunks, dim=0))]
    fn _chunk(&self, chunks: usize, dim: i64) -> PyResult<Vec<PyTensor>> {
        let parts = run(|| self.tensor().try_chunk(chunks, dim))?;
        Ok(parts.into_iter().map(|p| self.viewed(p)).collect())
    }

    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> PyResult<PyTensor> {
        Ok(self.viewed(run(|| self.tensor().try_diagonal(offset, dim1, dim2))?))
    }

    #[pyo3(signature = (diagonal=0))]
    fn diag(&self, diagonal: i64) -> PyResult<PyTensor> {
        run(|| self.tensor().try_diag(diagonal)).map(PyTensor::from)
    }

    #[pyo3(signature = (offset=0, dim1=-2, dim2=-1))]
    fn diag_embed(&self, offset: i64, dim1: i64, dim2: i64) -> PyResult<PyTensor> {
        run(|| self.tensor().try_diag_embed(offset, dim1, dim2)).map(PyTensor::from)
    }

    fn trace(&self) -> PyResult<PyTensor> {
        run(|| self.tensor().try_matrix_trace()).map(PyTensor::from)
    }

    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, diagonal: i64) -> PyResult<PyTensor> {
        run(|| self.tensor().try_tril(diagonal)).map(PyTensor::from)
    }

    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, diagonal: i64) -> PyResult<PyTensor> {
        run(|| self.tensor().try_triu(diagonal)).map(PyTensor::from)
    }

    fn _roll(&self, shifts: Vec<i64>, axes: Vec<i64>) -> PyResult<PyTensor> {
        run(|| self.tensor().try_roll(&shifts, &axes)).map(PyTensor::from)
    }

    #[pyo3(signature = (*dims))]
    fn flip(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let axes = sizes(dims)?;
        run(|| self.tensor().try_flip(&axes[..])).map(PyTensor::from)
    }

    #[pyo3(signature = (*repeats))]
    fn repeat(&self, repeats: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let times = shape(sizes(repeats)?)?;
        run(|| self.tensor().try_repeat(&times[..])).map(PyTensor::from)
    }

    #[pyo3(signature = (*dims))]
    fn tile(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let times = shape(sizes(dims)?)?;
        run(|| self.tensor().try_tile(&times[..])).map(PyTensor::from)
    }

    fn _repeat_interleave(&self, times: usize, axis: i64) -> PyResult<PyTensor> {
        run(|| self.tensor().try_repeat_interleave(times, axis)).map(PyTensor::from)
    }

    fn _repeat_interleave_with(
        &self,
        counts: &Bound<'_, PyTensor>,
        axis: i64,
    ) -> PyResult<PyTensor> {
        let counts = counts.get().tensor();
        run(|| self.tensor().try_repeat_interleave_with(&counts, axis)).map(PyTensor::from)
    }

    fn unfold(&self, dimension: i64, size: usize, step: usize) -> PyResult<PyTensor> {
        Ok(self.viewed(run(|| self.tensor().try_unfold(dimension, size, step))?))
    }

    fn _movedim(&self, source: Vec<i64>, destination: Vec<i64>) -> PyResult<PyTensor> {
        Ok(self.viewed(run(|| self.tensor().try_movedim(&source, &destination))?))
    }

    // Taking and putting

    fn gather(&self, py: Python<'_>, dim: i64, index: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, index.numel(), || t.try_gather(dim, &index)).map(PyTensor::from)
    }

    fn index_select(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, t.numel(), || t.try_index_select(dim, &index)).map(PyTensor::from)
    }

    fn take(&self, index: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let index = index.get().tensor();
        run(|| self.tensor().try_take(&index)).map(PyTensor::from)
    }

    fn _take_along(&self, indices: &Bound<'_, PyTensor>, axis: i64) -> PyResult<PyTensor> {
        let index = indices.get().tensor();
        run(|| self.tensor().try_take_along_axis(&index, axis)).map(PyTensor::from)
    }

    fn scatter(&self, dim: i64, index: &Bound<'_, PyTensor>, src: Operand) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        run(|| match src.number() {
            Some(v) => t.try_scatter(dim, &index, v),
            None => t.try_scatter(dim, &index, &src.beside(&t)?),
        })
        .map(PyTensor::from)
    }

    fn scatter_add(
        &self,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        src: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (index, src) = (index.get().tensor(), src.get().tensor());
        run(|| self.tensor().try_scatter_add(dim, &index, &src)).map(PyTensor::from)
    }

    fn index_add(
        &self,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (index, src) = (index.get().tensor(), source.get().tensor());
        run(|| self.tensor().try_index_add(dim, &index, &src)).map(PyTensor::from)
    }

    fn index_copy(
        &self,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (index, src) = (index.get().tensor(), source.get().tensor());
        run(|| self.tensor().try_index_copy(dim, &index, &src)).map(PyTensor::from)
    }

    fn index_fill(
        &self,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        value: Operand,
    ) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        run(|| t.try_index_fill(dim, &index, &value.beside(&t)?)).map(PyTensor::from)
    }

    fn masked_fill(
        &self,
        py: Python<'_>,
        mask: &Bound<'_, PyTensor>,
        value: Operand,
    ) -> PyResult<PyTensor> {
        let (t, mask) = (self.tensor(), mask.get().tensor());
        work(py, t.numel(), || match value.number() {
            Some(v) => t.try_masked_fill(&mask, v),
            None => t.try_masked_fill(&mask, &value.beside(&t)?),
        })
        .map(PyTensor::from)
    }

    fn masked_select(&self, mask: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let mask = mask.get().tensor();
        run(|| self.tensor().try_masked_select(&mask)).map(PyTensor::from)
    }

    fn masked_scatter(
        &self,
        mask: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (mask, source) = (mask.get().tensor(), source.get().tensor());
        run(|| self.tensor().try_masked_scatter(&mask, &source)).map(PyTensor::from)
    }

    fn _nonzero_axes(&self) -> PyResult<Vec<PyTensor>> {
        Ok(run(|| self.tensor().try_nonzero_axes())?.into_iter().map(PyTensor::from).collect())
    }

    fn _one_hot(&self, classes: usize) -> PyResult<PyTensor> {
        run(|| self.tensor().try_one_hot(classes)).map(PyTensor::from)
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let t = self.tensor();
        let keys = indices(key)?;
        let slices: Option<Vec<Slice>> = keys
            .iter()
            .map(|k| match k {
                Index::Slice(s) => Some(*s),
                Index::Tensor(_) => None,
            })
            .collect();
        match slices {
            Some(slices) => Ok(self.viewed(run(|| t.try_slice(&slices))?)),
            None => work(key.py(), t.numel(), || t.try_index(&keys)).map(PyTensor::from),
        }
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: Operand) -> PyResult<()> {
        let t = self.tensor();
        let keys = indices(key)?;
        let before = if self.is_leaf_in_use() { t.detach() } else { t.clone() };
        let new = work(py, t.numel(), || {
            let mut value = value.beside(&t)?;
            if value.dtype() != t.dtype() {
                value = value.try_to_dtype(t.dtype())?;
            }
            before.try_index_put(&keys, &value, false)
        })?;
        self.assign(new)
    }

    #[pyo3(signature = (indices, values, accumulate=false))]
    fn index_put(
        &self,
        indices: &Bound<'_, PyAny>,
        values: Operand,
        accumulate: bool,
    ) -> PyResult<PyTensor> {
        let t = self.tensor();
        let keys = self::indices(indices)?;
        run(|| t.try_index_put(&keys, &values.beside(&t)?, accumulate)).map(PyTensor::from)
    }
}

#[cfg(feature = "linalg")]
#[pymethods]
impl PyTensor {
    fn _qr(&self) -> PyResult<Pair> {
        run(|| self.tensor().try_qr()).map(pair)
    }

    fn _slogdet(&self) -> PyResult<Pair> {
        run(|| self.tensor().try_slogdet()).map(pair)
    }

    fn _solve(&self, b: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let b = b.get().tensor();
        run(|| self.tensor().try_solve(&b)).map(PyTensor::from)
    }
}

fn axis_size(t: &Tensor, axis: i64) -> Result<usize> {
    // Named by an op that checks the axis.
    t.try_transpose(axis, axis).map(|t| t.size(axis))
}

/// The result of a search over all axes, in the shape that keeps them.
fn positions(t: Tensor, rank: usize, keep: bool) -> Result<Tensor> {
    if keep { t.try_reshape(vec![1i64; rank]) } else { Ok(t) }
}

/// What stands in the brackets of `x[...]`.
fn indices(key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    match key.cast::<PyTuple>() {
        Ok(keys) => keys.iter().map(|k| index(&k)).collect(),
        Err(_) => Ok(vec![index(key)?]),
    }
}

fn index(key: &Bound<'_, PyAny>) -> PyResult<Index> {
    if let Ok(s) = key.cast::<PySlice>() {
        return Ok(Index::Slice(Slice::Range {
            start: bound(&s.getattr("start")?)?,
            end: bound(&s.getattr("stop")?)?,
            step: bound(&s.getattr("step")?)?.unwrap_or(1),
        }));
    }
    if key.is_none() {
        return Ok(Index::Slice(Slice::NewAxis));
    }
    if key.cast::<PyEllipsis>().is_ok() {
        return Ok(Index::Slice(Slice::Ellipsis));
    }
    if let Ok(b) = key.cast::<PyBool>() {
        return Ok(Index::Tensor(Tensor::scalar(b.is_true())));
    }
    if key.cast::<PyInt>().is_ok() {
        let at = key
            .extract::<i64>()
            .map_err(|_| PyIndexError::new_err(format!("index {key} is out of range")))?;
        return Ok(Index::Slice(Slice::At(at)));
    }
    if let Ok(t) = key.cast::<PyTensor>() {
        let t = t.get().tensor();
        if t.dtype().is_float() {
            return Err(PyIndexError::new_err(
                "an index is an integer or bool tensor, not a float one",
            ));
        }
        return Ok(match t.rank() {
            0 if t.dtype() == chainrule::DType::I64 => {
                Index::Slice(Slice::At(t.to_vec::<i64>()[0]))
            }
            _ => Index::Tensor(t),
        });
    }
    if key.cast::<PyList>().is_ok() || key.hasattr("__array_interface__")? {
        let t = crate::create::from_data(key, None)?;
        let t = if t.numel() == 0 && t.dtype().is_float() {
            run(|| t.try_to_dtype(chainrule::DType::I64))?
        } else {
            t
        };
        return index(&Bound::new(key.py(), PyTensor::from(t))?.into_any());
    }
    if let Ok(at) = key.extract::<i64>() {
        return Ok(Index::Slice(Slice::At(at)));
    }
    Err(PyIndexError::new_err(format!(
        "an index is an integer, a slice, None, ..., or an array of integers or bools, not {}",
        key.get_type().name()?
    )))
}

fn bound(x: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if x.is_none() {
        return Ok(None);
    }
    match x.extract::<i64>() {
        Ok(i) => Ok(Some(i)),
        // Beyond all sizes anyway.
        Err(_) if x.cast::<PyInt>().is_ok() => {
            Ok(Some(if x.lt(0)? { i64::MIN + 1 } else { i64::MAX }))
        }
        Err(error) => Err(error),
    }
}
