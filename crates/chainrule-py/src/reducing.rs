//! Reductions, running sums, sorting and searching.

use chainrule::{Result, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::args::{Axes, DTypeArg, Operand};
use crate::elementwise::as_float;
use crate::error::run;
use crate::lone::{along, along_pair};
use crate::tensor::{PyTensor, work};

pub type Pair = (PyTensor, PyTensor);

pub fn pair((a, b): (Tensor, Tensor)) -> Pair {
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
        work(py, t.numel(), || along_pair(&t, axis, |t| t.try_max_axis(axis, keep))).map(pair)
    }

    fn _min_axis(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_pair(&t, axis, |t| t.try_min_axis(axis, keep))).map(pair)
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
            Some(a) => along(&t, a, |t| t.try_argmax(a, keep)),
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
            Some(a) => along(&t, a, |t| t.try_argmin(a, keep)),
            None => positions(t.try_argmin_all()?, t.rank(), keep),
        })
        .map(PyTensor::from)
    }

    fn _median(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_pair(&t, axis, |t| t.try_median(axis, keep))).map(pair)
    }

    fn _median_all(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_median_all()).map(PyTensor::from)
    }

    fn _cumulative(&self, py: Python<'_>, what: &str, axis: i64) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || {
            along(&t, axis, |t| match what {
                "sum" => t.try_cumsum(axis),
                "prod" => t.try_cumprod(axis),
                _ => t.try_logcumsumexp(axis),
            })
        })
        .map(PyTensor::from)
    }

    fn _cumulative_pair(&self, py: Python<'_>, max: bool, axis: i64) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || {
            along_pair(&t, axis, |t| if max { t.try_cummax(axis) } else { t.try_cummin(axis) })
        })
        .map(pair)
    }

    fn _sort(&self, py: Python<'_>, axis: i64, descending: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_pair(&t, axis, |t| t.try_sort(axis, descending))).map(pair)
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
        work(py, t.numel(), || along(&t, dim, |t| t.try_argsort(dim, descending)))
            .map(PyTensor::from)
    }

    fn _topk(
        &self,
        py: Python<'_>,
        k: usize,
        axis: i64,
        largest: bool,
        sorted: bool,
    ) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_pair(&t, axis, |t| t.try_topk(k, axis, largest, sorted)))
            .map(pair)
    }

    fn _unique(&self) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
        let (a, b, c) = run(|| self.tensor().try_unique())?;
        Ok((a.into(), b.into(), c.into()))
    }

    fn _histogram(&self, py: Python<'_>, bins: usize, range: Option<(f64, f64)>) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_histogram(bins, range)).map(pair)
    }

    #[pyo3(signature = (weights=None, minlength=0))]
    fn bincount(
        &self,
        py: Python<'_>,
        weights: Option<&Bound<'_, PyTensor>>,
        minlength: usize,
    ) -> PyResult<PyTensor> {
        let weights = weights.map(|w| w.get().tensor());
        let t = self.tensor();
        work(py, t.numel(), || t.try_bincount(weights.as_ref(), minlength)).map(PyTensor::from)
    }

    fn _searchsorted(&self, values: Operand, right: bool) -> PyResult<PyTensor> {
        let t = self.tensor();
        run(|| t.try_searchsorted(&values.beside(&t)?, right)).map(PyTensor::from)
    }
}

/// The result of a search over all axes, in the shape that keeps them.
fn positions(t: Tensor, rank: usize, keep: bool) -> Result<Tensor> {
    if keep { t.try_reshape(vec![1i64; rank]) } else { Ok(t) }
}
