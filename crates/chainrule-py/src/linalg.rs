//! Products of vectors and matrices, and decompositions.

use pyo3::prelude::*;

#[cfg(feature = "linalg")]
use crate::reducing::{Pair, pair};
use crate::tensor::{PyTensor, work};

#[pymethods]
impl PyTensor {
    #[pyo3(signature = (other, dim=-1))]
    fn _cross(&self, py: Python<'_>, other: &Bound<'_, PyTensor>, dim: i64) -> PyResult<PyTensor> {
        let other = other.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_cross(&other, dim)).map(PyTensor::from)
    }

    fn _cdist(&self, py: Python<'_>, other: &Bound<'_, PyTensor>, p: f64) -> PyResult<PyTensor> {
        let other = other.get().tensor();
        let t = self.tensor();
        work(py, usize::MAX, || t.try_cdist(&other, p)).map(PyTensor::from)
    }
}

#[cfg(feature = "linalg")]
#[pymethods]
impl PyTensor {
    fn _qr(&self, py: Python<'_>) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_qr()).map(pair)
    }

    fn _slogdet(&self, py: Python<'_>) -> PyResult<Pair> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_slogdet()).map(pair)
    }

    fn _solve(&self, py: Python<'_>, b: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let b = b.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_solve(&b)).map(PyTensor::from)
    }
}
