//! Taking elements and putting them by `x[...]`.

use chainrule::{DType, Index, Slice, Tensor};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};

use crate::alias::Step;
use crate::args::Operand;
use crate::error::run;
use crate::tensor::{PyTensor, work};

#[pymethods]
impl PyTensor {
    fn _nonzero_axes(&self, py: Python<'_>) -> PyResult<Vec<PyTensor>> {
        let t = self.tensor();
        Ok(work(py, t.numel(), || t.try_nonzero_axes())?.into_iter().map(PyTensor::from).collect())
    }

    fn _one_hot(&self, py: Python<'_>, classes: usize) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || t.try_one_hot(classes)).map(PyTensor::from)
    }

    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let t = slf.get().tensor();
        let keys = indices(key)?;
        let slices: Option<Vec<Slice>> = keys
            .iter()
            .map(|k| match k {
                Index::Slice(s) => Some(*s),
                Index::Tensor(_) => None,
            })
            .collect();
        match slices {
            Some(slices) => {
                let out = run(|| t.try_slice(&slices))?;
                Ok(PyTensor::viewed(slf, &t, out, Step::Slices(slices)))
            }
            None => work(key.py(), t.numel(), || t.try_index(&keys)).map(PyTensor::from),
        }
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let t = slf.get().tensor();
        let keys = indices(key)?;
        // The last step of `x[i] += y`, when the view has been written.
        if let Ok(view) = value.cast::<PyTensor>()
            && view.get().is_part(slf, &keys)
        {
            return Ok(());
        }
        let value: Operand = value.extract()?;
        run(|| t.catch_up())?;
        let before = if t.is_leaf() && t.requires_grad() { t.detach() } else { t.clone() };
        let new = work(py, t.numel(), || {
            let mut value = value.beside(&t)?;
            if value.dtype() != t.dtype() {
                value = value.try_to_dtype(t.dtype())?;
            }
            // As in PyTorch, sizes of 1 at the front may be too many.
            let ones = value.shape().dims().iter().take_while(|&&n| n == 1).count();
            if ones > 0 {
                let sizes = value.shape();
                value = value.try_reshape(&sizes.dims()[ones..])?;
            }
            match filled(&before, &keys, &value) {
                Some(out) => out,
                None => before.try_index_put(&keys, &value, false),
            }
        })?;
        PyTensor::assign(slf, new)
    }

    /// The tensor with other values at these indices; with `accumulate` they are added.
    ///
    /// Gradient: dx = g but at the indices, where it is the gradient of the values.
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

/// `base` with one value wherever a mask says so. A program can do that without knowing how many
/// places there are.
fn filled(base: &Tensor, keys: &[Index], value: &Tensor) -> Option<chainrule::Result<Tensor>> {
    let [Index::Tensor(mask)] = keys else { return None };
    let (shape, sizes) = (base.shape(), mask.shape());
    let covers = mask.dtype() == DType::Bool
        && value.numel() == 1
        && value.rank() <= 1
        && shape.dims().starts_with(sizes.dims());
    let fill = || {
        let mut stretched = sizes.dims().to_vec();
        stretched.resize(shape.rank(), 1);
        let mask = mask.try_reshape(&stretched[..])?;
        mask.try_where(&value.try_reshape([] as [usize; 0])?, base)
    };
    covers.then(fill)
}

/// Indices in the brackets of `x[...]`.
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
        if t.dtype() == chainrule::DType::U8 {
            return Err(PyIndexError::new_err(
                "a uint8 tensor is a mask to PyTorch and positions to NumPy: index with x.bool() or x.long()",
            ));
        }
        // A view for a single position that is known; in a trace it may be another each run.
        return Ok(match t.try_item() {
            Ok(at) if t.rank() == 0 && t.dtype() == chainrule::DType::I64 => {
                Index::Slice(Slice::At(at as i64))
            }
            _ => Index::Tensor(t),
        });
    }
    if key.cast::<PyList>().is_ok() || key.hasattr("__array_interface__")? {
        let t = crate::create::from_data(key, None)?;
        // Positions of a NumPy array are positions in any integer dtype.
        let t = if t.numel() == 0 && t.dtype().is_float() || t.dtype() == chainrule::DType::U8 {
            run(|| t.try_to_dtype(chainrule::DType::I64))?
        } else {
            t
        };
        return index(&Bound::new(key.py(), PyTensor::from(t))?.into_any());
    }
    if let Ok(at) = key.extract::<i64>() {
        return Ok(Index::Slice(Slice::At(at)));
    }
    // A range, or a tuple beside others: `x[range(n), y]`.
    if key.cast::<PyTuple>().is_ok() || key.cast::<PyRange>().is_ok() {
        return index(&key.py().get_type::<PyList>().call1((key,))?);
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
