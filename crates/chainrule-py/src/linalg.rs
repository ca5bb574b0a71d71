//! Products of vectors and matrices, and decompositions.

use pyo3::prelude::*;

use crate::error::run;
#[cfg(feature = "linalg")]
use crate::reducing::{Pair, pair};
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
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
