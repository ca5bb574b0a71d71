//! The class `Tensor`: a handle that Python holds. Writing gives the handle a new value; values themselves never change.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chainrule::{DType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::args::{DTypeArg, Operand, PyDType};
use crate::error::{GradientError, check, has_room, keep, run, through};

/// A tensor of Python.
#[pyclass(name = "Tensor", module = "chainrule", frozen, dict, weakref)]
pub struct PyTensor {
    cell: Mutex<Tensor>,
    /// Shared by all that show the same memory: a tensor and its views.
    group: OnceLock<Arc<()>>,
    /// Whether this was made as a view of another one.
    is_view: bool,
    /// What this stands for, if writing to it is writing to a part of another one: `p.data`, `p.grad`.
    part_of: Option<(Py<PyTensor>, Part)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Data,
    Grad,
}

impl From<Tensor> for PyTensor {
    #[inline]
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor { cell: Mutex::new(tensor), group: OnceLock::new(), is_view: false, part_of: None }
    }
}

impl PyTensor {
    /// The tensor that the handle holds now.
    #[inline]
    pub fn tensor(&self) -> Tensor {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What an op with the memory of this one gave: a view, if it lies in the same memory.
    pub fn viewed(&self, out: Tensor) -> PyTensor {
        if !out.shares_memory(&self.tensor()) {
            return out.into();
        }
        let group = self.group.get_or_init(Default::default).clone();
        PyTensor {
            cell: Mutex::new(out),
            group: OnceLock::from(group),
            is_view: true,
            part_of: None,
        }
    }

    /// Gives the handle another tensor, whatever it was.
    pub fn replace(&self, new: Tensor) {
        *self.cell.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn check_view(&self) -> PyResult<()> {
        let alone = self.group.get().is_none_or(|g| Arc::strong_count(g) == 1);
        if alone || !self.is_view {
            return Ok(());
        }
        Err(GradientError::new_err(
            "this tensor is a view of another one, and views do not alias: the write would be lost there. Write to \
             the other one in one step (x[i, j] = v instead of x[i][j] = v), or take a copy first: y = y.clone()",
        ))
    }

    /// Writes for `x += y`. In `x[i] += y` Python does that to a view, and then puts the result into `x`: nothing is lost. It is known by nobody
    /// but the interpreter holding the view.
    pub fn augment(slf: &Bound<'_, Self>, new: Tensor) -> PyResult<()> {
        // SAFETY: the object is alive.
        if unsafe { pyo3::ffi::Py_REFCNT(slf.as_ptr()) } > 1 {
            slf.get().check_view()?;
        }
        slf.get().write(new)
    }

    /// Writes: the handle, or the leaf behind it, has this value from now on.
    pub fn assign(&self, new: Tensor) -> PyResult<()> {
        self.check_view()?;
        self.write(new)
    }

    fn write(&self, new: Tensor) -> PyResult<()> {
        let old = self.tensor();
        if new.shape() != old.shape() {
            return Err(PyValueError::new_err(format!(
                "a write keeps the shape: shapes {} and {}",
                old.shape(),
                new.shape()
            )));
        }
        let new = match new.dtype() == old.dtype() {
            true => new,
            false
                if new.dtype() <= old.dtype()
                    || (new.dtype().is_float() && old.dtype().is_float()) =>
            {
                run(|| new.try_to_dtype(old.dtype()))?
            }
            false => {
                let why = format!(
                    "a write keeps the dtype: {} cannot become {}",
                    new.dtype(),
                    old.dtype()
                );
                return Err(PyTypeError::new_err(why));
            }
        };
        if let Some((owner, part)) = &self.part_of {
            let owner = owner.get();
            match part {
                Part::Grad => run(|| owner.tensor().set_grad(Some(new.clone())))?,
                Part::Data => owner.put(new.detach())?,
            }
            self.replace(new);
            return Ok(());
        }
        if old.is_leaf() && old.requires_grad() {
            if chainrule::is_grad_enabled() {
                return Err(GradientError::new_err(
                    "a leaf that requires a gradient would be changed in place, and backward could not tell its values \
                     apart: write inside `with cr.no_grad():`, or to its `.data`",
                ));
            }
            return run(|| old.try_set(&new.detach()));
        }
        // Buffers and frozen parameters are leaves too, which others may hold.
        if new.requires_grad() || old.try_set(&new).is_err() {
            self.replace(new);
        }
        Ok(())
    }

    /// Gives the tensor this value without a record: `x.data = v`.
    pub fn put(&self, new: Tensor) -> PyResult<()> {
        let old = self.tensor();
        if old.is_leaf() && old.requires_grad() {
            return run(|| old.try_set(&new));
        }
        self.replace(new);
        Ok(())
    }

    pub fn is_leaf_in_use(&self) -> bool {
        let t = self.tensor();
        t.is_leaf() && t.requires_grad()
    }
}

/// Runs `f`, without the interpreter's lock if it is long.
#[inline]
pub fn work<T: Send>(
    py: Python<'_>,
    elements: usize,
    f: impl FnOnce() -> chainrule::Result<T> + Send,
) -> PyResult<T> {
    if elements < 1 << 14 { run(f) } else { py.detach(|| run(f)) }
}

#[pymethods]
impl PyTensor {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "NumPy's name")]
    const __array_ufunc__: Option<bool> = None;
    #[classattr]
    #[expect(non_upper_case_globals, reason = "NumPy's name")]
    const __array_priority__: f64 = 1000.0;

    #[new]
    #[pyo3(signature = (data=None))]
    fn new(data: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        match data {
            None => Ok(Tensor::zeros([0]).into()),
            Some(data) => crate::create::from_data(data, Some(DType::F32)).map(PyTensor::from),
        }
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tuple = PyTuple::new(py, self.tensor().shape().dims())?;
        crate::size_class(py)?.call1((tuple,))
    }

    #[getter]
    fn _dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor().shape().dims())
    }

    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.tensor().dtype())
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().rank()
    }

    fn dim(&self) -> usize {
        self.tensor().rank()
    }

    fn numel(&self) -> usize {
        self.tensor().numel()
    }

    fn element_size(&self) -> usize {
        self.tensor().dtype().size()
    }

    fn is_floating_point(&self) -> bool {
        self.tensor().dtype().is_float()
    }

    fn is_complex(&self) -> bool {
        false
    }

    fn is_contiguous(&self) -> bool {
        self.tensor().is_contiguous()
    }

    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let memory = run(|| self.tensor().memory())?;
        PyTuple::new(py, memory.strides())
    }

    fn data_ptr(&self) -> PyResult<usize> {
        Ok(run(|| self.tensor().memory())?.address().addr())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.tensor()
            .shape()
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("a tensor without axes has no length"))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr().addr() >> 4
    }

    pub fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.tensor();
        run(|| t.try_item())?;
        Ok(match t.dtype() {
            DType::Bool => t.to_vec::<bool>()[0].into_pyobject(py)?.to_owned().into_any(),
            DType::I64 => t.to_vec::<i64>()[0].into_pyobject(py)?.into_any(),
            _ => t.item().into_pyobject(py)?.into_any(),
        })
    }

    fn __float__(&self) -> PyResult<f64> {
        run(|| self.tensor().try_item())
    }

    fn __int__(&self) -> PyResult<i64> {
        let t = self.tensor();
        let x = run(|| t.try_item())?;
        if t.dtype() == DType::I64 {
            return Ok(t.to_vec::<i64>()[0]);
        }
        if x.is_nan() || x.is_infinite() {
            return Err(pyo3::exceptions::PyOverflowError::new_err(format!(
                "cannot make {x} an integer"
            )));
        }
        Ok(x as i64)
    }

    fn __index__(&self) -> PyResult<i64> {
        let t = self.tensor();
        if t.dtype().is_float() {
            return Err(PyTypeError::new_err(
                "only an integer tensor of one element can be an index",
            ));
        }
        run(|| t.try_item())?;
        self.__int__()
    }

    fn __bool__(&self) -> PyResult<bool> {
        let t = self.tensor();
        if t.numel() != 1 {
            return Err(PyValueError::new_err(format!(
                "bool: shape {}: the truth of a tensor with more or less than one element is not defined; use any() or all()",
                t.shape()
            )));
        }
        Ok(run(|| t.try_item())? != 0.0)
    }

    // Gradients

    #[getter]
    fn requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, on: bool) -> PyResult<()> {
        let t = self.tensor();
        if t.requires_grad() == on {
            return Ok(());
        }
        if !t.is_leaf() {
            return Err(GradientError::new_err(
                "requires_grad can be switched off on leaves only; use detach() for a tensor that was computed",
            ));
        }
        if t.set_requires_grad(on).is_err() && on {
            self.replace(run(|| t.try_parameter())?);
        }
        Ok(())
    }

    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(
        slf: &Bound<'py, Self>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().set_requires_grad(requires_grad)?;
        Ok(slf.clone())
    }

    #[getter]
    fn is_leaf(&self) -> bool {
        let t = self.tensor();
        t.is_leaf() || !t.requires_grad()
    }

    #[getter]
    fn _op(&self) -> Option<&'static str> {
        self.tensor().op_name()
    }

    #[getter]
    fn grad(slf: &Bound<'_, Self>) -> Option<PyTensor> {
        let grad = slf.get().tensor().grad()?;
        Some(PyTensor { part_of: Some((slf.clone().unbind(), Part::Grad)), ..grad.into() })
    }

    #[setter]
    fn set_grad(&self, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        run(|| self.tensor().set_grad(grad.map(|g| g.get().tensor())))
    }

    #[getter]
    fn data(slf: &Bound<'_, Self>) -> PyTensor {
        let value = slf.get().tensor().detach();
        PyTensor { part_of: Some((slf.clone().unbind(), Part::Data)), ..value.into() }
    }

    #[setter]
    fn set_data(&self, new: &Bound<'_, PyTensor>) -> PyResult<()> {
        self.put(new.get().tensor().detach())
    }

    fn detach(&self) -> PyTensor {
        let t = self.tensor();
        self.viewed(t.detach())
    }

    fn retain_grad(&self) -> PyResult<()> {
        let t = self.tensor();
        if !t.requires_grad() {
            return Err(GradientError::new_err("retain_grad: the tensor requires no gradient"));
        }
        t.retain_grad();
        Ok(())
    }

    #[getter]
    fn name(&self) -> Option<String> {
        self.tensor().name()
    }

    /// Names the tensor, for listings, tables and traces; returns it.
    fn named<'py>(slf: &Bound<'py, Self>, name: &str) -> Bound<'py, Self> {
        slf.get().tensor().named(name);
        slf.clone()
    }

    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyTensor>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<Vec<Py<PyTensor>>>,
    ) -> PyResult<()> {
        let t = self.tensor();
        let upstream = gradient.map(|g| g.get().tensor());
        if let Some(inputs) = inputs {
            return backward_to(py, &t, upstream, &inputs, create_graph, retain_graph);
        }
        py.detach(|| {
            run(|| {
                let mut pass = t.backward_with();
                if let Some(g) = &upstream {
                    pass = pass.gradient(g);
                }
                if create_graph {
                    pass = pass.create_graph();
                }
                if retain_graph.unwrap_or(create_graph) {
                    pass = pass.keep_graph();
                }
                pass.run()
            })?;
            check()
        })
    }

    /// Calls `hook` with the gradient of this tensor in each backward pass; what it returns replaces the gradient.
    fn register_hook(&self, hook: Py<PyAny>) -> PyResult<Handle> {
        let call = move |g: &Tensor| {
            Python::attach(|py| match hook.call1(py, (PyTensor::from(g.clone()),)) {
                Ok(out) if out.is_none(py) => None,
                Ok(out) => out.cast_bound::<PyTensor>(py).ok().map(|t| t.get().tensor()),
                Err(error) => {
                    keep(error);
                    None
                }
            })
        };
        let handle = run(|| self.tensor().register_hook(call))?;
        Ok(Handle(Mutex::new(Some(handle))))
    }

    // Types

    fn _to_dtype(slf: &Bound<'_, Self>, py: Python<'_>, dtype: DTypeArg) -> PyResult<Py<PyTensor>> {
        let t = slf.get().tensor();
        if t.dtype() == dtype.0 {
            return Ok(slf.clone().unbind());
        }
        Py::new(py, PyTensor::from(work(py, t.numel(), || t.try_to_dtype(dtype.0))?))
    }

    /// A copy, recorded on the tape.
    fn clone(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        let out = work(py, t.numel(), || match t.dtype() {
            _ if t.requires_grad() && chainrule::is_grad_enabled() => t.try_mul(1.0),
            _ => copied(&t),
        })?;
        Ok(out.into())
    }

    fn contiguous(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Py<PyTensor>> {
        if slf.get().tensor().is_contiguous() {
            return Ok(slf.clone().unbind());
        }
        Py::new(py, slf.get().clone(py)?)
    }

    /// Makes the handle a leaf without a gradient, whose value lasts from run to run of a program.
    fn _as_buffer(&self) {
        let t = self.tensor();
        self.replace(t.detach().buffer());
    }

    /// Gives the handle this value: what every method whose name ends in `_` does.
    fn _assign<'py>(slf: &Bound<'py, Self>, new: Operand) -> PyResult<Bound<'py, Self>> {
        let old = slf.get().tensor();
        let new = run(|| new.beside(&old)?.try_expand(old.shape()))?;
        slf.get().assign(new)?;
        Ok(slf.clone())
    }
}

/// The same elements in memory of their own.
pub fn copied(t: &Tensor) -> chainrule::Result<Tensor> {
    fn again<E: chainrule::Element>(t: &Tensor) -> chainrule::Result<Tensor> {
        Tensor::try_from_slice(&t.try_to_vec::<E>()?, t.shape())
    }
    if !has_room(t.numel()) {
        let bytes = t.numel().saturating_mul(t.dtype().size());
        return Err(chainrule::Error::OutOfMemory { op: "copy", shape: t.shape(), bytes });
    }
    match t.dtype() {
        DType::F32 => again::<f32>(t),
        DType::F64 => again::<f64>(t),
        DType::I64 => again::<i64>(t),
        DType::Bool => again::<bool>(t),
    }
}

/// `backward(inputs=...)`: adds to the gradients of these only.
fn backward_to(
    py: Python<'_>,
    t: &Tensor,
    upstream: Option<Tensor>,
    inputs: &[Py<PyTensor>],
    create_graph: bool,
    retain_graph: Option<bool>,
) -> PyResult<()> {
    let _ = retain_graph;
    let inputs: Vec<Tensor> = inputs.iter().map(|p| p.bind(py).get().tensor()).collect();
    run(|| {
        let refs: Vec<&Tensor> = inputs.iter().collect();
        let ups = match &upstream {
            Some(g) => g.clone(),
            None => t.ones_like(),
        };
        let grads = chainrule::autograd::grad_of(t, &ups, &refs, create_graph)?;
        for (x, g) in inputs.iter().zip(grads) {
            if let Some(g) = g {
                x.set_grad(Some(match x.grad() {
                    Some(before) => before.try_add(&g)?,
                    None => g,
                }))?;
            }
        }
        Ok(())
    })
}

/// Removes a hook.
#[pyclass(module = "chainrule", frozen)]
pub struct Handle(Mutex<Option<chainrule::HookHandle>>);

#[pymethods]
impl Handle {
    fn remove(&self) {
        if let Some(handle) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            handle.remove();
        }
    }
}

#[pyfunction]
pub fn _set_grad_enabled(on: bool) -> bool {
    chainrule::set_grad_enabled(on)
}

#[pyfunction]
pub fn is_grad_enabled() -> bool {
    chainrule::is_grad_enabled()
}

#[pyfunction]
pub fn _set_record_all(on: bool) -> bool {
    chainrule::set_record_all(on)
}

/// Tensors that a Python function gave to the library.
pub fn tensors_of(op: &'static str, out: &Bound<'_, PyAny>) -> chainrule::Result<Vec<Tensor>> {
    if let Ok(t) = out.cast::<PyTensor>() {
        return Ok(vec![t.get().tensor()]);
    }
    let all = out.extract::<Vec<Py<PyTensor>>>().map_err(|e| through(op, e))?;
    Ok(all.iter().map(|t| t.bind(out.py()).get().tensor()).collect())
}
