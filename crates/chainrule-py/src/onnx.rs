//! ONNX models that were read, as functions over tensors.

use chainrule::Tensor;
use chainrule::onnx::{ImportedModel, import, import_bytes};
use pyo3::prelude::*;

use crate::args::PyDType;
use crate::error::run;
use crate::tensor::PyTensor;

/// A tensor of the file: its name, itself, and whether it is trained.
type StoredTensor = (String, PyTensor, bool);

/// An input: its name, its dtype, and its sizes.
type InputRow = (String, Option<PyDType>, Option<Vec<Option<usize>>>);

/// A model whose tensors the Python layer holds: they are inputs like the others.
#[pyclass(name = "OnnxModel", module = "chainrule", frozen)]
pub struct PyOnnxModel(ImportedModel);

/// The model of a file, or of the bytes of one, and its tensors.
#[pyfunction]
#[pyo3(signature = (path, data=None))]
pub fn _onnx_load(
    py: Python<'_>,
    path: std::path::PathBuf,
    data: Option<&[u8]>,
) -> PyResult<(PyOnnxModel, Vec<StoredTensor>)> {
    let mut model = py.detach(|| {
        run(|| match data {
            Some(bytes) => import_bytes(bytes),
            None => import(&path),
        })
    })?;
    let all = model.hand_over().into_iter();
    let all = all.map(|(name, t, trained)| (name, t.into(), trained)).collect();
    Ok((PyOnnxModel(model), all))
}

#[pymethods]
impl PyOnnxModel {
    #[getter]
    fn inputs(&self) -> Vec<InputRow> {
        let row = |i: &chainrule::onnx::InputType| {
            (i.name.clone(), i.dtype.map(PyDType), i.sizes.clone())
        };
        self.0.inputs().iter().map(row).collect()
    }

    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.0.outputs().to_vec()
    }

    /// The ops of the nodes.
    #[getter]
    fn ops(&self) -> Vec<String> {
        self.0.ops().into_iter().map(str::to_owned).collect()
    }

    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<(String, Bound<'_, PyTensor>)>,
    ) -> PyResult<Vec<PyTensor>> {
        let given: Vec<(String, Tensor)> =
            inputs.into_iter().map(|(name, t)| (name, t.get().tensor())).collect();
        let pairs: Vec<(&str, &Tensor)> =
            given.iter().map(|(name, t)| (name.as_str(), t)).collect();
        let made = py.detach(|| run(|| self.0.run(&pairs)))?;
        Ok(made.into_iter().map(Into::into).collect())
    }
}

/// The module of this name runs, for programs that are traced.
#[pyfunction]
pub fn _enter_scope(name: &str) {
    chainrule_core::tensor::scope::enter(name);
}

/// The number on the tape that the next operation gets.
#[pyfunction]
pub fn _coming_number() -> u64 {
    chainrule_core::tensor::node::coming_number()
}

/// The module that was entered last is done.
#[pyfunction]
pub fn _leave_scope() {
    chainrule_core::tensor::scope::leave();
}
