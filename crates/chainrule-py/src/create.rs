//! Making tensors: from Python data, of given shapes, at random, and of several tensors.

use std::sync::{Mutex, PoisonError};

use chainrule::rng::{self, GeneratorState};
use chainrule::{DType, Generator, Indexing, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

use crate::args::{DTypeArg, Operand, ShapeArg, default_float};
use crate::complex;
use crate::error::{argument_error, room, run};
use crate::interchange::tensor_of;
use crate::laid::of_all;
use crate::session;
use crate::tensor::{PyTensor, copied, work};

/// Numbers of nested lists.
#[derive(Default)]
struct Flat {
    shape: Vec<usize>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    /// The widest kind so far: bool, integer, float, and f64 of another array.
    kind: Option<DType>,
    /// Whether an integer is too large for i64.
    large: bool,
}

impl Flat {
    fn len(&self) -> usize {
        if self.floats.is_empty() { self.ints.len() } else { self.floats.len() }
    }

    fn see(&mut self, kind: DType) {
        let widest = self.kind.map_or(kind, |k| k.promote(kind));
        if widest.is_float() && !self.kind.is_some_and(|k| k.is_float()) {
            self.floats = self.ints.drain(..).map(|i| i as f64).collect();
        }
        self.kind = Some(widest);
    }

    fn push(&mut self, x: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(f) = x.cast::<PyFloat>() {
            self.see(if x.cast_exact::<PyFloat>().is_ok() { default_float() } else { DType::F64 });
            self.floats.push(f.value());
        } else if let Ok(b) = x.cast::<PyBool>() {
            self.see(DType::Bool);
            self.put(b.is_true() as i64);
        } else if x.cast::<PyInt>().is_ok() {
            let i = x.extract::<i64>().or_else(|error| {
                self.large = true;
                // The bits of a u64: `tensor` sees to it that it becomes one.
                x.extract::<u64>().map(u64::cast_signed).map_err(|_| error)
            })?;
            self.see(DType::I64);
            self.put(i);
        } else {
            let Some(Operand::Tensor(t)) = Operand::of(x)? else { return Err(unknown(x)) };
            let x = run(|| t.try_item())?;
            self.see(t.dtype());
            match t.dtype() {
                float if float.is_float() => self.floats.push(x),
                whole if whole.is_integer() => self.put(t.to_vec::<i64>()[0]),
                _ => self.put(x as i64),
            }
        }
        Ok(())
    }

    fn put(&mut self, i: i64) {
        if self.kind.is_some_and(|k| k.is_float()) {
            self.floats.push(i as f64)
        } else {
            self.ints.push(i)
        }
    }

    fn read(&mut self, x: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let items: Vec<Bound<'_, PyAny>> = if let Ok(l) = x.cast::<PyList>() {
            l.iter().collect()
        } else if let Ok(t) = x.cast::<PyTuple>() {
            t.iter().collect()
        } else {
            if depth < self.shape.len() {
                return Err(ragged());
            }
            return self.push(x);
        };
        if depth >= chainrule::MAX_RANK {
            return Err(argument_error("tensor: the data are nested more than 8 deep"));
        }
        if depth == self.shape.len() {
            if self.len() > 0 || self.shape.contains(&0) {
                return Err(ragged());
            }
            self.shape.push(items.len());
        } else if self.shape[depth] != items.len() {
            return Err(ragged());
        }
        for item in &items {
            // A list of tensors: each is an inner axis.
            if let Ok(t) = item.cast::<PyTensor>()
                && t.get().tensor().rank() > 0
            {
                self.read(&item.call_method0("tolist")?, depth + 1)?;
                self.see(t.get().tensor().dtype());
            } else if item.cast::<PyFloat>().is_err()
                && item.hasattr("shape")?
                && item.hasattr("tolist")?
            {
                self.see(tensor_of(item)?.dtype());
                self.read(&item.call_method0("tolist")?, depth + 1)?;
            } else {
                self.read(item, depth + 1)?;
            }
        }
        Ok(())
    }

    fn tensor(self, dtype: Option<DType>) -> PyResult<Tensor> {
        let (shape, kind) = (self.shape, self.kind.unwrap_or(default_float()));
        let to = dtype.unwrap_or(kind);
        if self.large && (to != DType::U64 || kind.is_float()) {
            let why = format!("tensor: an integer is too large for {}", to.numpy_name());
            return Err(PyOverflowError::new_err(why));
        }
        run(|| {
            if !kind.is_float() && to == kind && kind == DType::Bool {
                let bools: Vec<bool> = self.ints.iter().map(|&i| i != 0).collect();
                return Tensor::try_from_slice(&bools, &shape[..]);
            }
            if kind.is_float() {
                return match to {
                    DType::F32 => {
                        let all: Vec<f32> = self.floats.iter().map(|&x| x as f32).collect();
                        Tensor::try_from_slice(&all, &shape[..])
                    }
                    _ => Tensor::try_from_slice(&self.floats, &shape[..])?.try_to_dtype(to),
                };
            }
            Tensor::try_from_slice(&self.ints, &shape[..])?.try_to_dtype(to)
        })
    }
}

fn ragged() -> PyErr {
    argument_error(
        "tensor: the lists at one depth have different lengths, or are mixed with numbers",
    )
}

fn unknown(x: &Bound<'_, PyAny>) -> PyErr {
    let name = x.get_type().name().map(|n| n.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "tensor: cannot make a tensor of {name}; give numbers, nested lists or an array"
    ))
}

/// A new tensor with these elements, in memory of its own.
pub fn from_data(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if let Ok(t) = data.cast::<PyTensor>() {
        let t = t.get().untaped()?;
        return run(|| match dtype {
            Some(d) if d != t.dtype() => t.try_to_dtype(d),
            _ => copied(&t),
        });
    }
    // Numbers of NumPy keep their dtype, though its float64 is a float of Python too.
    if data.cast_exact::<PyFloat>().is_err() && data.hasattr("__array_interface__")? {
        let t = tensor_of(data)?;
        return run(|| match dtype {
            Some(d) if d != t.dtype() => t.try_to_dtype(d),
            _ => copied(&t),
        });
    }
    if data.cast::<PyList>().is_err()
        && data.cast::<PyTuple>().is_err()
        && data.extract::<f64>().is_err()
    {
        // Ranges, iterators with a length, and whatever else NumPy can read.
        if data.hasattr("__len__")?
            && data.hasattr("__getitem__")?
            && data.cast::<pyo3::types::PyString>().is_err()
        {
            let list = data.py().get_type::<PyList>().call1((data,))?;
            return from_data(&list, dtype);
        }
        return Err(unknown(data));
    }
    let mut flat = Flat::default();
    flat.read(data, 0)?;
    flat.tensor(dtype)
}

/// A tensor of numbers, nested lists or an array, whose elements are copied.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, requires_grad=false, device=None))]
pub fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    if let Some(device) = device
        && !device.str()?.to_cow()?.starts_with("cpu")
    {
        let why = format!("there is one device, the processor ('cpu'), not {device}");
        return Err(argument_error(why));
    }
    let py = data.py();
    let real = match dtype {
        None => from_data(data, None),
        Some(d) => d.extract::<DTypeArg>().and_then(|d| from_data(data, Some(d.0))),
    };
    match real {
        Ok(t) => leaf(t, requires_grad)?.into_py_any(py),
        Err(error) => complex::tensor(error, data, dtype, requires_grad),
    }
}

fn leaf(t: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    if requires_grad { run(|| t.try_parameter()).map(PyTensor::from) } else { Ok(t.into()) }
}

#[pyfunction]
pub fn _full(
    shape: ShapeArg,
    value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    if dtype.as_ref().is_some_and(|d| d.0 == DType::U64) && value.cast::<PyInt>().is_ok() {
        // Not by way of i64, which lacks the upper half.
        let one = from_data(value, Some(DType::U64))?;
        return run(|| one.try_expand(&shape.0[..])?.try_copied()).map(PyTensor::from);
    }
    let value = value.extract::<Operand>()?;
    if let (Some(x), Some(to)) = (value.number(), &dtype)
        && to.0.is_float()
    {
        return run(|| Tensor::try_full(&shape.0[..], x, to.0)).map(PyTensor::from);
    }
    let value = value.alone();
    if value.numel() != 1 {
        return Err(argument_error(format!(
            "full: one number is wanted, not a tensor of shape {}; use expand to repeat a tensor",
            value.shape()
        )));
    }
    let to = dtype.map_or(value.dtype(), |d| d.0);
    run(|| {
        let value = value.detach().try_to_dtype(to)?;
        match to {
            whole if whole.is_integer() => {
                let n: usize =
                    shape.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).unwrap_or(usize::MAX);
                if n > 1 << 20 {
                    return Tensor::try_full(&shape.0[..], 0.0, to)?.try_add(&value);
                }
                Tensor::try_from_slice(&vec![value.to_vec::<i64>()[0]; n], &shape.0[..])?
                    .try_to_dtype(to)
            }
            _ => Tensor::try_full(&shape.0[..], value.try_item()?, to),
        }
    })
    .map(PyTensor::from)
}

#[pyfunction]
pub fn _arange(
    start: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    step: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    let whole = [start, end, step].iter().all(|x| x.cast::<PyInt>().is_ok());
    let to = dtype.map_or(if whole { DType::I64 } else { default_float() }, |d| d.0);
    let (a, b, s) = (start.extract::<f64>()?, end.extract::<f64>()?, step.extract::<f64>()?);
    if s == 0.0 || !(a.is_finite() && b.is_finite() && s.is_finite()) {
        return Err(argument_error(format!("arange: from {a} to {b} by {s} is no range")));
    }
    let count = ((b - a) / s).ceil().max(0.0);
    if count > 1e12 {
        return Err(argument_error(format!("arange: {count} elements are too many")));
    }
    let n = count as usize;
    room("arange", n)?;
    if whole || to.is_integer() {
        // Not by way of floats, which large integers do not survive. As in PyTorch the start and
        // the step are cut to whole numbers.
        let exact = |x: &Bound<'_, PyAny>, float: f64| match x.cast::<PyInt>() {
            Ok(x) => x.extract::<i64>(),
            Err(_) => Ok(float as i64),
        };
        let (a, s) = (exact(start, a)?, exact(step, s)?);
        return run(|| {
            let all: Vec<i64> = (0..n as i64).map(|i| a.wrapping_add(i.wrapping_mul(s))).collect();
            Tensor::try_from_slice(&all, [n])?.try_to_dtype(to)
        })
        .map(PyTensor::from);
    }
    run(|| {
        let all: Vec<f64> = (0..n).map(|i| a + i as f64 * s).collect();
        Tensor::try_from_slice(&all, [n])?.try_to_dtype(to)
    })
    .map(PyTensor::from)
}

#[pyfunction]
pub fn _linspace(
    start: f64,
    end: f64,
    steps: usize,
    endpoint: bool,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    let to = dtype.map_or(default_float(), |d| d.0);
    if steps > 1 << 40 {
        return Err(argument_error(format!("linspace: {steps} elements are too many")));
    }
    room("linspace", steps)?;
    let gaps = if endpoint { steps.saturating_sub(1) } else { steps }.max(1);
    let step = (end - start) / gaps as f64;
    // From both ends, so that both are exact.
    let at = |i: usize| {
        if !endpoint || i < steps / 2 {
            start + step * i as f64
        } else {
            end - step * (steps - 1 - i) as f64
        }
    };
    run(|| {
        let all: Vec<f64> = (0..steps).map(|i| if steps == 1 { start } else { at(i) }).collect();
        Tensor::try_from_slice(&all, [steps])?.try_to_dtype(to)
    })
    .map(PyTensor::from)
}

// Random numbers

/// PyTorch's stream of random numbers.
#[pyclass(name = "Generator", module = "chainrule", frozen)]
pub struct PyGenerator(Mutex<Generator>);

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&str>) -> PyGenerator {
        let _ = device;
        PyGenerator(Mutex::new(Generator::default()))
    }

    fn manual_seed<'py>(slf: &Bound<'py, Self>, seed: i64) -> Bound<'py, Self> {
        let mut own = slf.get().0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Generator::manual_seed(seed as u64);
        match session::current() {
            // Programs hold the generator, and draw on where it is put.
            None => own.set_state(&new.state()),
            Some(_) => *own = new,
        }
        drop(own);
        slf.clone()
    }

    fn initial_seed(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).initial_seed()
    }

    fn _state(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).state().to_bytes()
    }

    fn _set_state(&self, state: Vec<u8>) -> PyResult<()> {
        let state =
            GeneratorState::from_bytes(&state).map_err(|e| argument_error(e.to_string()))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).set_state(&state);
        Ok(())
    }
}

#[pyfunction]
pub fn _manual_seed(seed: i64) {
    rng::manual_seed(seed as u64);
}

/// The generator of all, as an object.
#[pyfunction]
pub fn _default_generator() -> PyGenerator {
    PyGenerator(Mutex::new(rng::with_default(|g| g.share())))
}

/// State of the generator of all.
#[pyfunction]
pub fn _rng_state() -> PyResult<Vec<u8>> {
    draw(None, |g| Ok(g.state().to_bytes()))
}

/// Puts the generator of all to where it was.
#[pyfunction]
pub fn _set_rng_state(state: Vec<u8>) -> PyResult<()> {
    let state = GeneratorState::from_bytes(&state).map_err(|e| argument_error(e.to_string()))?;
    draw(None, |g| {
        g.set_state(&state);
        Ok(())
    })
}

/// Draws from the given generator, or else from that of all.
pub fn draw<T>(
    generator: Option<&Bound<'_, PyGenerator>>,
    f: impl FnOnce(&mut Generator) -> chainrule::Result<T>,
) -> PyResult<T> {
    run(|| match generator {
        Some(g) => f(&mut g.get().0.lock().unwrap_or_else(PoisonError::into_inner)),
        None => rng::with_default(f),
    })
}

type Gen<'a, 'py> = Option<&'a Bound<'py, PyGenerator>>;

#[pyfunction]
pub fn _rand(
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    generator: Gen<'_, '_>,
) -> PyResult<PyTensor> {
    let d = dtype.map_or(default_float(), |d| d.0);
    draw(generator, |g| Tensor::try_rand(&shape.0[..], d, g)).map(PyTensor::from)
}

#[pyfunction]
pub fn _randn(
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    generator: Gen<'_, '_>,
) -> PyResult<PyTensor> {
    let d = dtype.map_or(default_float(), |d| d.0);
    draw(generator, |g| Tensor::try_randn(&shape.0[..], d, g)).map(PyTensor::from)
}

#[pyfunction]
pub fn _randint(
    low: i64,
    high: i64,
    shape: ShapeArg,
    generator: Gen<'_, '_>,
) -> PyResult<PyTensor> {
    draw(generator, |g| Tensor::try_randint(low, high, &shape.0[..], g)).map(PyTensor::from)
}

#[pyfunction]
pub fn _randperm(n: usize, generator: Gen<'_, '_>) -> PyResult<PyTensor> {
    room("randperm", n)?;
    draw(generator, |g| Ok(Tensor::randperm(n, g))).map(PyTensor::from)
}

#[pyfunction]
pub fn _multinomial(
    input: &Bound<'_, PyTensor>,
    count: usize,
    replacement: bool,
    generator: Gen<'_, '_>,
) -> PyResult<PyTensor> {
    let t = input.get().tensor();
    let why = |e: rng::RngError| chainrule::Error::from(e);
    if t.rank() == 0 || t.rank() > 2 {
        return Err(argument_error(format!(
            "multinomial: shape {}: one or two axes are needed",
            t.shape()
        )));
    }
    let classes = t.size(-1).max(1);
    room("multinomial", count.saturating_mul(t.numel() / classes).max(t.numel()))?;
    let out = draw(generator, |g| {
        let mut all = Vec::new();
        match t.dtype() {
            DType::F64 => {
                for row in t.try_to_vec::<f64>()?.chunks_exact(classes) {
                    all.extend(g.multinomial(row, count, replacement).map_err(why)?);
                }
            }
            _ => {
                for row in t.try_to_dtype(DType::F32)?.try_to_vec::<f32>()?.chunks_exact(classes) {
                    all.extend(g.multinomial(row, count, replacement).map_err(why)?);
                }
            }
        }
        let mut shape = t.shape().dims().to_vec();
        shape[t.rank() - 1] = count;
        Tensor::try_from_slice(&all, &shape[..])
    })?;
    Ok(out.into())
}

#[pyfunction]
pub fn _dropout(
    input: &Bound<'_, PyTensor>,
    p: f64,
    training: bool,
    generator: Gen<'_, '_>,
) -> PyResult<PyTensor> {
    let t = input.get().tensor();
    draw(generator, |g| t.try_dropout(p, training, g)).map(PyTensor::from)
}

// Several tensors

fn all_of(tensors: &[Bound<'_, PyTensor>]) -> Vec<Tensor> {
    tensors.iter().map(|t| t.get().tensor()).collect()
}

#[pyfunction]
pub fn _cat(tensors: Vec<Bound<'_, PyTensor>>, axis: i64) -> PyResult<PyTensor> {
    let all = all_of(&tensors);
    run(|| Tensor::try_cat(&all.iter().collect::<Vec<_>>(), axis)).map(PyTensor::from)
}

#[pyfunction]
pub fn _stack(tensors: Vec<Bound<'_, PyTensor>>, axis: i64) -> PyResult<PyTensor> {
    let all = all_of(&tensors);
    run(|| Tensor::try_stack(&all.iter().collect::<Vec<_>>(), axis)).map(PyTensor::from)
}

#[pyfunction]
pub fn _meshgrid(tensors: Vec<Bound<'_, PyTensor>>, xy: bool) -> PyResult<Vec<PyTensor>> {
    let all = all_of(&tensors);
    let indexing = if xy { Indexing::Xy } else { Indexing::Ij };
    let out = run(|| Tensor::try_meshgrid(&all.iter().collect::<Vec<_>>(), indexing))?;
    Ok(out.into_iter().map(PyTensor::from).collect())
}

#[pyfunction]
pub fn _broadcast_tensors(tensors: Vec<Bound<'_, PyTensor>>) -> PyResult<Vec<PyTensor>> {
    let all = all_of(&tensors);
    let out = run(|| Tensor::try_broadcast_tensors(&all.iter().collect::<Vec<_>>()))?;
    Ok(out
        .into_iter()
        .zip(&tensors)
        .map(|(out, t)| {
            let step = crate::alias::Step::expand(out.shape());
            PyTensor::viewed(t, &t.get().tensor(), out, step)
        })
        .collect())
}

#[pyfunction]
pub fn _einsum(equation: &str, tensors: Vec<Bound<'_, PyTensor>>) -> PyResult<PyTensor> {
    let all = all_of(&tensors);
    let out = run(|| Tensor::try_einsum(equation, &all.iter().collect::<Vec<_>>()));
    let out = PyTensor::from(out?);
    out.lock().rest().loose = true;
    Ok(out)
}

#[pyfunction]
pub fn _where(
    py: Python<'_>,
    condition: &Bound<'_, PyTensor>,
    a: Operand,
    b: Operand,
) -> PyResult<PyTensor> {
    let condition = condition.get().tensor();
    work(py, condition.numel(), || {
        let (a, b) = match (a, b) {
            (Operand::Tensor(a), Operand::Tensor(b)) => chainrule::ops::binding::meet(a, b)?,
            (Operand::Tensor(a), b) => {
                let b = b.beside(&a)?;
                (a, b)
            }
            (a, Operand::Tensor(b)) => (a.beside(&b)?, b),
            (a, b) => (a.alone(), b.alone()),
        };
        of_all(&[&condition, &a, &b], |all| all[0].try_where(&all[1], &all[2]))
    })
    .map(PyTensor::from)
}
