//! Weights that other programs wrote, as Python's containers.

use chainrule::formats::{Tree, Weights};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PySet, PyString, PyTuple};

use crate::error::run;
use crate::tensor::PyTensor;

type NamedTensors = Vec<(String, PyTensor)>;

/// The tensors of a file of another program by name, and its nest with numbers of tensors; over the
/// pages of the file with `mmap`.
#[pyfunction]
pub fn _weights_load<'py>(
    py: Python<'py>,
    path: std::path::PathBuf,
    mmap: bool,
) -> PyResult<(NamedTensors, Option<Bound<'py, PyAny>>)> {
    let (weights, tensors) = run(|| {
        let weights = match mmap {
            true => Weights::open_mapped(&path)?,
            false => Weights::open(&path)?,
        };
        let tensors = weights.tensors()?;
        Ok((weights, tensors))
    })?;
    let names = weights.entries().iter().map(|entry| entry.name().to_owned());
    let tree = weights.tree().map(|tree| nest(py, tree)).transpose()?;
    Ok((names.zip(tensors.into_iter().map(Into::into)).collect(), tree))
}

/// A nest as Python's containers; a tensor is a set of its number, which no file has else.
fn nest<'py>(py: Python<'py>, tree: &Tree) -> PyResult<Bound<'py, PyAny>> {
    let all = |parts: &[Tree]| parts.iter().map(|p| nest(py, p)).collect::<PyResult<Vec<_>>>();
    Ok(match tree {
        Tree::Tensor(n) => PySet::new(py, [*n])?.into_any(),
        Tree::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, value) in items {
                dict.set_item(nest(py, key)?, nest(py, value)?)?;
            }
            dict.into_any()
        }
        Tree::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
        Tree::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
        Tree::Str(text) => PyString::new(py, text).into_any(),
        Tree::Int(n) => n.into_bound_py_any(py)?,
        Tree::LargeInt(digits) => py.get_type::<PyInt>().call1((&**digits,))?,
        Tree::Float(x) => x.into_bound_py_any(py)?,
        Tree::Bool(x) => x.into_bound_py_any(py)?,
        Tree::None => py.None().into_bound(py),
    })
}
