//! The class `Tensor`: a handle that Python holds. Writing gives the handle, and all that alias it,
//! a new value; values themselves never change.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use chainrule::{DType, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};

use crate::alias::{Behind, Views, follow_behind};
use crate::args::{DTypeArg, Operand, PyDType, default_float};
use crate::derive::{Handle, backward_to};
use crate::error::{GradientError, argument_error, check, has_room, keep, run, through};
use crate::handle::Inner;
use crate::laid::{self, of_one};
use crate::session;

/// A tensor of Python.
#[pyclass(name = "Tensor", module = "chainrule", frozen, dict, weakref)]
pub struct PyTensor {
    pub cell: Mutex<Inner>,
    /// Count of its writes, once somebody wants to know.
    pub writes: OnceLock<Arc<AtomicU64>>,
    pub views: Views,
}

impl From<Tensor> for PyTensor {
    #[inline]
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor::new_with(Inner::new(tensor, None))
    }
}

impl PyTensor {
    #[inline]
    pub fn new_with(inner: Inner) -> PyTensor {
        PyTensor { cell: Mutex::new(inner), writes: OnceLock::new(), views: Views::default() }
    }
}

impl PyTensor {
    /// See `register_hook`; `counted` lives as long as the hook does.
    pub fn hooked(
        &self,
        hook: Py<PyAny>,
        counted: Option<crate::monitor::ForeignHook>,
    ) -> PyResult<Handle> {
        let held = Arc::new(hook);
        let hook = held.clone();
        let call = move |g: &Tensor| {
            let _ = &counted;
            Python::attach(|py| {
                let called = Py::new(py, PyTensor::from(g.clone()))
                    .and_then(|given| Ok((hook.call1(py, (given.clone_ref(py),))?, given)));
                match called {
                    // It may have been written.
                    Ok((out, given)) if out.is_none(py) => {
                        (given.get().version() > 0).then(|| given.get().tensor())
                    }
                    Ok((out, _)) => out.cast_bound::<PyTensor>(py).ok().map(|t| t.get().tensor()),
                    Err(error) => {
                        keep(error);
                        None
                    }
                }
            })
        };
        let t = self.tensor();
        let handle = run(|| t.register_hook_holding(call, held))?;
        // Programs from before know nothing of it.
        let counter = t.is_changeable().then(|| self.replaced());
        Ok(Handle { hook: Mutex::new(Some(handle)), counter })
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
    #[pyo3(signature = (*data))]
    fn new(data: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let first = data.iter().next();
        match first {
            None => run(|| Tensor::try_full([0], 0.0, default_float())).map(PyTensor::from),
            // Numbers are sizes, as in PyTorch.
            Some(first)
                if data.len() > 1
                    || first.is_instance_of::<PyInt>()
                    || first.is_instance(crate::size_class(data.py())?)? =>
            {
                let sizes = crate::args::shape(crate::args::sizes(data)?)?;
                crate::error::room("Tensor", sizes.iter().product())?;
                run(|| Tensor::try_full(&sizes[..], 0.0, default_float())).map(PyTensor::from)
            }
            Some(first) if first.is_instance_of::<PyFloat>() => Err(PyTypeError::new_err(
                "Tensor: the sizes or a list of numbers, not a float; a tensor of one number is made by tensor(x)",
            )),
            Some(first) => match first.cast::<PyTensor>() {
                Ok(t) => PyTensor::same(t),
                _ => crate::create::from_data(&first, Some(default_float())).map(PyTensor::from),
            },
        }
    }

    /// The sizes of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tuple = PyTuple::new(py, self.tensor().shape().dims())?;
        crate::size_class(py)?.call1((tuple,))
    }

    #[getter]
    fn _dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor().shape().dims())
    }

    /// The dtype of the elements.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.tensor().dtype())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().rank()
    }

    /// The number of axes.
    fn dim(&self) -> usize {
        self.tensor().rank()
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.tensor().numel()
    }

    /// The size of an element in bytes.
    fn element_size(&self) -> usize {
        self.tensor().dtype().size()
    }

    /// Whether the elements are floats.
    fn is_floating_point(&self) -> bool {
        self.tensor().dtype().is_float()
    }

    /// False: there are no complex numbers.
    fn is_complex(&self) -> bool {
        false
    }

    /// Whether the elements lie in memory one after the other, in row-major order.
    fn is_contiguous(&self) -> bool {
        self.tensor().is_contiguous()
    }

    /// For each axis, how many elements of memory lie between neighbours.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let t = self.tensor();
        let value = run(|| t.catch_up().map(|()| t.value()))?;
        PyTuple::new(py, &value.layout().strides[..value.shape().rank()])
    }

    /// The address of the first element.
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

    /// The only element as a number of Python.
    pub fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.tensor();
        run(|| t.try_item())?;
        Ok(match t.dtype() {
            DType::Bool => t.to_vec::<bool>()[0].into_pyobject(py)?.to_owned().into_any(),
            DType::U64 => t.to_vec::<u64>()[0].into_pyobject(py)?.into_any(),
            whole if whole.is_integer() => t.to_vec::<i64>()[0].into_pyobject(py)?.into_any(),
            _ => t.item().into_pyobject(py)?.into_any(),
        })
    }

    fn __float__(&self) -> PyResult<f64> {
        run(|| self.tensor().try_item())
    }

    fn __int__(&self) -> PyResult<i64> {
        let t = self.tensor();
        let x = run(|| t.try_item())?;
        if t.dtype().is_integer() {
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
            return Err(argument_error(format!(
                "bool: shape {}: the truth of a tensor with more or less than one element is not defined; use any() or all()",
                t.shape()
            )));
        }
        Ok(run(|| t.try_item())? != 0.0)
    }

    // Gradients

    /// Whether gradients of the tensor are computed; can be set on leaves.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }

    #[setter]
    fn set_requires_grad(slf: &Bound<'_, Self>, on: bool) -> PyResult<()> {
        let t = slf.get().tensor();
        if t.requires_grad() == on {
            return Ok(());
        }
        if !t.is_leaf() {
            return Err(GradientError::new_err(
                "requires_grad can be switched off on leaves only; use detach() for a tensor that was computed",
            ));
        }
        if t.set_requires_grad(on).is_err() && on {
            PyTensor::become_leaf(slf, &t)?;
        }
        Ok(())
    }

    /// Sets whether gradients of the tensor are computed, and returns it.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(
        slf: &Bound<'py, Self>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, Self>> {
        PyTensor::set_requires_grad(slf, requires_grad)?;
        Ok(slf.clone())
    }

    /// Whether no op made the tensor, or none that is recorded.
    #[getter]
    fn is_leaf(&self) -> bool {
        let t = self.tensor();
        t.is_leaf() || !t.requires_grad()
    }

    #[getter]
    fn _op(&self) -> Option<&'static str> {
        self.tensor().op_name()
    }

    /// The gradient that backward passes added up, or None.
    #[getter]
    fn grad(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyTensor>>> {
        PyTensor::gradient(slf)
    }

    #[setter]
    fn set_grad(slf: &Bound<'_, Self>, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        session::gradient_set(slf);
        slf.get().set_gradient(grad)
    }

    /// The elements without the tape: a write to them is not recorded. Set to another tensor, it
    /// takes that one's memory.
    #[getter]
    fn data(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        PyTensor::detached(slf)
    }

    #[setter]
    fn set_data(slf: &Bound<'_, Self>, new: &Bound<'_, PyTensor>) -> PyResult<()> {
        PyTensor::set_memory(slf, new)
    }

    /// The same elements without the tape; it shares the memory.
    fn detach(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        PyTensor::detached(slf)
    }

    /// Keeps the gradient of a tensor that is no leaf in `grad`, when it is computed.
    fn retain_grad(&self) -> PyResult<()> {
        let t = self.tensor();
        if !t.requires_grad() {
            return Err(GradientError::new_err("retain_grad: the tensor requires no gradient"));
        }
        t.retain_grad();
        self.lock().rest().retains = true;
        Ok(())
    }

    /// The name that listings, tables and traces show, or None.
    #[getter]
    fn name(&self) -> Option<String> {
        self.tensor().name()
    }

    /// Names the tensor, for listings, tables and traces; returns it.
    fn named<'py>(slf: &Bound<'py, Self>, name: &str) -> Bound<'py, Self> {
        slf.get().tensor().named(name);
        slf.clone()
    }

    /// Adds the gradients of this tensor with respect to all leaves to their `grad`.
    ///
    /// `gradient` is its own gradient, 1 for a single element; with `retain_graph` another backward
    /// pass can follow, with `create_graph` this one is recorded; `inputs` are the leaves that are
    /// meant.
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
        run(chainrule::check_lent)?;
        if !retain_graph.unwrap_or(create_graph) {
            session::walked();
        }
        crate::monitor::begin_pass(&t);
        if let Some(inputs) = inputs {
            backward_to(py, &t, upstream, &inputs, create_graph, retain_graph)?;
            crate::monitor::end_pass();
            crate::studio::note(&t);
            return follow_behind(py, &[Behind::Gradients]);
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
        })?;
        crate::monitor::end_pass();
        crate::studio::note(&t);
        follow_behind(py, &[Behind::Gradients])
    }

    /// Calls `hook` with the gradient of this tensor in each backward pass; what it returns
    /// replaces the gradient.
    fn register_hook(&self, hook: Py<PyAny>) -> PyResult<Handle> {
        self.hooked(hook, Some(crate::monitor::ForeignHook::new()))
    }

    /// Objects that the handle keeps alive: other handles, an array, and hooks that nobody else
    /// has.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is held is held by this thread or by one that runs Python, for the whole of a
        // collection: what is not seen once is not seen at all, and kept.
        let Ok(inner) = self.cell.try_lock() else { return Ok(()) };
        inner.alias.as_ref().map_or(Ok(()), |alias| alias.link.traverse(&visit))?;
        if let Some(rest) = &inner.rest {
            visit.call(&rest.grad)?;
            rest.past.iter().try_for_each(|past| past.traverse(&visit))?;
            rest.outside.as_ref().map_or(Ok(()), |outside| visit.call(&outside.array))?;
        }
        let mut outcome = Ok(());
        inner.tensor.visit_held(&mut |held| {
            if let Some(hook) = held.downcast_ref::<Py<PyAny>>()
                && outcome.is_ok()
            {
                outcome = visit.call(hook);
            }
        });
        outcome
    }

    // Types

    fn _to_dtype(slf: &Bound<'_, Self>, py: Python<'_>, dtype: DTypeArg) -> PyResult<Py<PyTensor>> {
        let t = slf.get().tensor();
        if t.dtype() == dtype.0 {
            return Ok(slf.clone().unbind());
        }
        let cast = || of_one(&t, |t| t.try_to_dtype(dtype.0));
        Py::new(py, PyTensor::from(work(py, t.numel(), cast)?))
    }

    /// Whether its elements lie in memory as PyTorch has them.
    fn _is_laid(&self) -> bool {
        laid::is_known(&self.tensor())
    }

    /// A copy, recorded on the tape; its elements lie in memory as those of the tensor do.
    fn clone(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let t = self.tensor();
        work(py, t.numel(), || of_one(&t, in_order)).map(PyTensor::from)
    }

    /// The tensor itself if its elements lie in row-major order, else a copy.
    fn contiguous(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Py<PyTensor>> {
        if slf.get().tensor().is_contiguous() {
            return Ok(slf.clone().unbind());
        }
        let t = slf.get().tensor();
        Py::new(py, PyTensor::from(work(py, t.numel(), || in_order(&t))?))
    }

    /// Makes the handle a leaf without a gradient, whose value lasts from run to run of a program.
    fn _as_buffer(&self) {
        let t = self.tensor();
        self.replace(t.detach().buffer());
    }

    /// Makes it a leaf of its own that requires a gradient or, without, can get one.
    fn _as_leaf(slf: &Bound<'_, Self>, requires_grad: bool) -> PyResult<()> {
        let t = slf.get().tensor();
        if t.dtype().is_float() {
            PyTensor::become_leaf(slf, &t)?;
            return PyTensor::set_requires_grad(slf, requires_grad);
        }
        match requires_grad {
            true => run(|| t.try_parameter()).map(drop),
            false => Ok(()),
        }
    }

    /// Gives a leaf a value of another dtype or shape: the handle is a new leaf then, with the name
    /// of the old one and no gradient. One that a program used up stays unknown.
    fn _recast(slf: &Bound<'_, Self>, new: &Bound<'_, PyTensor>) -> PyResult<()> {
        let has_lost = slf.get().tensor().has_lost_grad();
        PyTensor::put(slf, new.get().untaped()?)?;
        if has_lost {
            slf.get().tensor().lose_grad();
        }
        Ok(())
    }

    /// Whether a program used up the gradient of the other leaf: then that of this one is unknown
    /// too.
    fn _used_up_as(&self, other: &Bound<'_, PyTensor>) -> bool {
        let has_lost = other.get().tensor().has_lost_grad();
        if has_lost {
            self.tensor().lose_grad();
        }
        has_lost
    }

    /// A leaf with these elements that requires a gradient, and aliases nothing.
    fn _apart(&self) -> PyResult<PyTensor> {
        run(|| self.tensor().detach().try_parameter()).map(PyTensor::from)
    }

    /// Whether both are one leaf or one result.
    fn _is_same(&self, other: &Bound<'_, PyTensor>) -> bool {
        self.tensor().is_same(&other.get().tensor())
    }

    /// Count of its writes, as far as somebody asked.
    #[getter]
    fn _writes(&self) -> u64 {
        self.tensor();
        self.writes.get_or_init(Default::default);
        self.version()
    }

    /// Number of the memory it shows: its own, or that of the tensor that it is a view of.
    fn _root_id(slf: &Bound<'_, Self>) -> usize {
        slf.get().root(slf.py()).map_or(slf.as_ptr(), |root| root.as_ptr()).addr()
    }

    /// Whether it was made by the function that is traced.
    fn _is_new(&self) -> bool {
        session::is_new(self)
    }

    /// Whether it shows the memory of one of these, or of one that was there before the trace.
    fn _shows_other(slf: &Bound<'_, Self>, others: Vec<Py<PyTensor>>) -> bool {
        let Some(root) = slf.get().root(slf.py()) else { return false };
        let same = |x: &Py<PyTensor>| {
            let other = x.get().root(slf.py());
            x.as_ptr() == root.as_ptr() || other.is_some_and(|o| o.as_ptr() == root.as_ptr())
        };
        !session::is_new(root.get()) || others.iter().any(same)
    }

    /// Gives the handle this value: what every method whose name ends in `_` does.
    fn _assign<'py>(slf: &Bound<'py, Self>, new: Operand) -> PyResult<Bound<'py, Self>> {
        let old = slf.get().tensor();
        let new = run(|| new.beside(&old)?.try_expand(old.shape()))?;
        PyTensor::assign(slf, new)?;
        Ok(slf.clone())
    }

    /// As `_assign`, with values that are cut to the dtype.
    fn _assign_cut<'py>(slf: &Bound<'py, Self>, new: Operand) -> PyResult<Bound<'py, Self>> {
        let old = slf.get().tensor();
        let new = run(|| new.beside(&old)?.try_expand(old.shape())?.try_to_dtype(old.dtype()))?;
        PyTensor::assign(slf, new)?;
        Ok(slf.clone())
    }

    /// Gives the handle the place of a view of it.
    fn _become_view<'py>(
        slf: &Bound<'py, Self>,
        view: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, Self>> {
        PyTensor::become_view(slf, view)?;
        Ok(slf.clone())
    }
}

/// A copy in row-major order, recorded on the tape.
fn in_order(t: &Tensor) -> chainrule::Result<Tensor> {
    match t.requires_grad() && chainrule::is_grad_enabled() {
        true => t.try_mul(1.0),
        false => copied(t),
    }
}

/// The same elements in memory of their own.
pub fn copied(t: &Tensor) -> chainrule::Result<Tensor> {
    if !has_room(t.numel()) {
        let bytes = t.numel().saturating_mul(t.dtype().size());
        return Err(chainrule::Error::OutOfMemory { op: "copy", shape: t.shape(), bytes });
    }
    match t.dtype() {
        // A program cannot read elements; what it computes is new anyway.
        DType::Bool if session::is_any() => t.try_logical_or(t),
        whole if whole.is_integer() && session::is_any() => t.try_mul(1),
        _ if session::is_any() => chainrule::no_grad(|| t.detach().try_mul(1.0)),
        _ => t.try_copied(),
    }
}

/// Tensors that a Python function gave to the library.
pub fn tensors_of(op: &'static str, out: &Bound<'_, PyAny>) -> chainrule::Result<Vec<Tensor>> {
    if let Ok(t) = out.cast::<PyTensor>() {
        return Ok(vec![t.get().tensor()]);
    }
    let all = out.extract::<Vec<Py<PyTensor>>>().map_err(|e| through(op, e))?;
    Ok(all.iter().map(|t| t.bind(out.py()).get().tensor()).collect())
}
