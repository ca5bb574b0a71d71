//! Reductions whose methods are written in Python.

use chainrule::ops::binding::along_axis_pair;
use chainrule::{Result, Tensor};
use pyo3::prelude::*;

use crate::args::{Axes, Operand};
use crate::error::{argument_error, run};
use crate::tensor::{PyTensor, work};

pub type Pair = (PyTensor, PyTensor);

pub fn pair((a, b): (Tensor, Tensor)) -> Pair {
    (a.into(), b.into())
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

/// The correction of a variance, which is whole here.
fn correction(c: f64) -> PyResult<usize> {
    if c < 0.0 || c.fract() != 0.0 {
        return Err(argument_error(format!(
            "the correction must be a whole number from 0 up, it is {c}"
        )));
    }
    Ok(c as usize)
}

#[pymethods]
impl PyTensor {
    fn _var(&self, py: Python<'_>, axes: Axes, c: f64, keep: bool) -> PyResult<PyTensor> {
        let c = correction(c)?;
        reduce(py, self.tensor(), axes.0, |t| t.try_var(.., c, keep), |t, a| t.try_var(a, c, keep))
    }

    fn _std(&self, py: Python<'_>, axes: Axes, c: f64, keep: bool) -> PyResult<PyTensor> {
        let c = correction(c)?;
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

    fn _max_axis(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_axis_pair(&t, axis, |t| t.try_max_axis(axis, keep))).map(pair)
    }

    fn _min_axis(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_axis_pair(&t, axis, |t| t.try_min_axis(axis, keep))).map(pair)
    }

    fn _max(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_max(.., false)).map(PyTensor::from)
    }

    fn _min(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_min(.., false)).map(PyTensor::from)
    }

    fn _median(&self, py: Python<'_>, axis: i64, keep: bool) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || along_axis_pair(&t, axis, |t| t.try_median(axis, keep))).map(pair)
    }

    fn _median_all(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_median_all()).map(PyTensor::from)
    }

    fn _unique(&self) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
        let (a, b, c) = run(|| self.tensor().try_unique())?;
        Ok((a.into(), b.into(), c.into()))
    }

    fn _histogram(&self, py: Python<'_>, bins: usize, range: Option<(f64, f64)>) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_histogram(bins, range)).map(pair)
    }

    fn _searchsorted(&self, values: Operand, right: bool) -> PyResult<PyTensor> {
        let t = self.tensor();
        run(|| t.try_searchsorted(&values.beside(&t)?, right)).map(PyTensor::from)
    }
}
