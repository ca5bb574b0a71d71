//! Taking elements and putting them: `x[...]`, gathers and scatters.

use chainrule::{DType, Index, Slice, Tensor};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};

use crate::alias::Step;
use crate::args::Operand;
use crate::error::run;
use crate::lone::{along, with_axis};
use crate::tensor::{PyTensor, work};

/// `op` of the tensor, the axis, an index and what goes there.
fn put(
    to: &PyTensor,
    py: Python<'_>,
    dim: i64,
    [index, source]: [&Bound<'_, PyTensor>; 2],
    op: fn(&Tensor, i64, &Tensor, &Tensor) -> chainrule::Result<Tensor>,
) -> PyResult<PyTensor> {
    let (t, index, source) = (to.tensor(), index.get().tensor(), source.get().tensor());
    work(py, t.numel(), || along(&t, dim, |t| op(t, dim, &with_axis(index)?, &with_axis(source)?)))
        .map(PyTensor::from)
}

#[pymethods]
impl PyTensor {
    fn gather(&self, py: Python<'_>, dim: i64, index: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, index.numel(), || {
            if t.rank() == 0 {
                let out = along(&t, dim, |t| t.try_gather(dim, &with_axis(index.clone())?))?;
                return out.try_reshape(index.shape());
            }
            t.try_gather(dim, &index)
        })
        .map(PyTensor::from)
    }

    fn index_select(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, t.numel(), || along(&t, dim, |t| t.try_index_select(dim, &with_axis(index)?)))
            .map(PyTensor::from)
    }

    fn take(&self, py: Python<'_>, index: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let index = index.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_take(&index)).map(PyTensor::from)
    }

    fn _take_along(
        &self,
        py: Python<'_>,
        indices: &Bound<'_, PyTensor>,
        axis: i64,
    ) -> PyResult<PyTensor> {
        let index = indices.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_take_along_axis(&index, axis)).map(PyTensor::from)
    }

    fn scatter(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        src: Operand,
    ) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, t.numel(), || {
            along(&t, dim, |t| match src.number() {
                Some(v) => t.try_scatter(dim, &with_axis(index)?, v),
                None => t.try_scatter(dim, &with_axis(index)?, &with_axis(src.beside(t)?)?),
            })
        })
        .map(PyTensor::from)
    }

    fn scatter_add(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        src: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        put(self, py, dim, [index, src], |t, dim, index, src| t.try_scatter_add(dim, index, src))
    }

    fn _index_add(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        put(self, py, dim, [index, source], Tensor::try_index_add)
    }

    fn index_copy(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        put(self, py, dim, [index, source], Tensor::try_index_copy)
    }

    fn index_fill(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        value: Operand,
    ) -> PyResult<PyTensor> {
        let (t, index) = (self.tensor(), index.get().tensor());
        work(py, t.numel(), || {
            along(&t, dim, |t| t.try_index_fill(dim, &with_axis(index)?, &value.beside(t)?))
        })
        .map(PyTensor::from)
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

    fn masked_select(&self, py: Python<'_>, mask: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        let mask = mask.get().tensor();
        let t = self.tensor();
        work(py, t.numel(), || t.try_masked_select(&mask)).map(PyTensor::from)
    }

    fn masked_scatter(
        &self,
        py: Python<'_>,
        mask: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (mask, source) = (mask.get().tensor(), source.get().tensor());
        let t = self.tensor();
        work(py, t.numel(), || t.try_masked_scatter(&mask, &source)).map(PyTensor::from)
    }

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
        // What `x[i] += y` does at last, when the view has been written.
        if let Ok(view) = value.cast::<PyTensor>()
            && view.get().is_part(slf, &keys)
        {
            return Ok(());
        }
        let value: Operand = value.extract()?;
        let before = if t.is_leaf() && t.requires_grad() { t.detach() } else { t.clone() };
        let new = work(py, t.numel(), || {
            let mut value = value.beside(&t)?;
            if value.dtype() != t.dtype() {
                value = value.try_to_dtype(t.dtype())?;
            }
            match filled(&before, &keys, &value) {
                Some(out) => out,
                None => before.try_index_put(&keys, &value, false),
            }
        })?;
        PyTensor::assign(slf, new)
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
