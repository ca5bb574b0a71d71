//! Conditions under which a program does what its function would: they are looked at before each
//! run, and so they have to be cheap.
//!
//! A function reads more of Python than its arguments: flags, numbers, modes, the settings of
//! optimizers. `_guards.py` finds all that once, and lays it down here as flat lists of pointers; a
//! run compares them. If a pointer is another one, Python looks whether the value is as well.

use chainrule::{DType, Shape, Tensor};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyNone, PyString, PyTuple,
};

use crate::args::{DTypeArg, PyDType, default_float};
use crate::optimizer::PyOptimizer;
use crate::session::{self, Met};
use crate::tensor::PyTensor;
use crate::train::PyProgram;

type Object = Py<PyAny>;

/// Objects, and what stood in them when they were looked at.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct Watched {
    dicts: Vec<(Py<PyDict>, Vec<Object>)>,
    fields: Vec<(Py<PyDict>, Object, Object)>,
    items: Vec<(Py<PyList>, usize, Object)>,
    cells: Vec<(Object, Object)>,
    sizes: Vec<(Object, usize)>,
    states: Vec<(Object, Object, Object)>,
    trained: Vec<(Py<PyTensor>, bool, DType)>,
}

#[pymethods]
impl Watched {
    /// Whole dictionaries as they are now; and a value for each field, item and cell, the number of
    /// elements of each container, the result of each function of an object, and whether each
    /// tensor requires a gradient.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one list for each kind of place")]
    fn new(
        py: Python<'_>,
        dicts: Vec<Py<PyDict>>,
        fields: Vec<(Py<PyDict>, Object, Object)>,
        items: Vec<(Py<PyList>, usize, Object)>,
        cells: Vec<(Object, Object)>,
        sizes: Vec<(Object, usize)>,
        states: Vec<(Object, Object, Object)>,
        trained: Vec<(Py<PyTensor>, bool, DTypeArg)>,
    ) -> Watched {
        let values = |d: &Py<PyDict>| d.bind(py).iter().map(|(_, v)| v.unbind()).collect();
        let dicts = dicts.into_iter().map(|d| (d.clone_ref(py), values(&d))).collect();
        let trained = trained.into_iter().map(|(t, on, dtype)| (t, on, dtype.0)).collect();
        Watched { dicts, fields, items, cells, sizes, states, trained }
    }

    /// Whether all is as it was. In doubt it says no.
    pub fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.dicts.iter().all(|(d, values)| has_values(d.bind(py), values))
            && self.trained.iter().all(|(t, on, dtype)| {
                let t = t.get().tensor();
                t.requires_grad() == *on && t.dtype() == *dtype
            })
            && self
                .items
                .iter()
                .all(|(list, i, value)| list.bind(py).get_item(*i).is_ok_and(|now| now.is(value)))
            && self.sizes.iter().all(|(x, n)| x.bind(py).len().is_ok_and(|len| len == *n))
            && self.fields_hold(py)?
            && self.states_hold(py)?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (d, values) in &self.dicts {
            visit.call(d)?;
            values.iter().try_for_each(|v| visit.call(v))?;
        }
        for (d, key, value) in &self.fields {
            visit.call(d)?;
            visit.call(key)?;
            visit.call(value)?;
        }
        for (list, _, value) in &self.items {
            visit.call(list)?;
            visit.call(value)?;
        }
        for (a, b) in &self.cells {
            visit.call(a)?;
            visit.call(b)?;
        }
        self.sizes.iter().try_for_each(|(x, _)| visit.call(x))?;
        for (f, x, value) in &self.states {
            visit.call(f)?;
            visit.call(x)?;
            visit.call(value)?;
        }
        self.trained.iter().try_for_each(|(t, ..)| visit.call(t))
    }
}

impl Watched {
    fn fields_hold(&self, py: Python<'_>) -> PyResult<bool> {
        for (dict, key, value) in &self.fields {
            match dict.bind(py).get_item(key)? {
                Some(now) if now.is(value) => (),
                _ => return Ok(false),
            }
        }
        for (cell, value) in &self.cells {
            match cell.bind(py).getattr(intern!(py, "cell_contents")) {
                Ok(now) if now.is(value) => (),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn states_hold(&self, py: Python<'_>) -> PyResult<bool> {
        for (state, x, value) in &self.states {
            match state.bind(py).call1((x,)) {
                Ok(now) if is_equal(&now, value.bind(py))? => (),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Whether these are the values, in this order.
fn has_values(dict: &Bound<'_, PyDict>, values: &[Object]) -> bool {
    dict.len() == values.len() && dict.iter().zip(values).all(|((_, now), v)| now.is(v))
}

/// Whether both are one object or equal plain values, in tuples too.
fn is_equal(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    if a.is(b) {
        return Ok(true);
    }
    if let (Ok(a), Ok(b)) = (a.cast_exact::<PyTuple>(), b.cast_exact::<PyTuple>()) {
        for (x, y) in a.iter().zip(b.iter()) {
            if !is_equal(&x, &y)? {
                return Ok(false);
            }
        }
        return Ok(a.len() == b.len());
    }
    if let (Ok(a), Ok(b)) = (a.cast_exact::<PyFloat>(), b.cast_exact::<PyFloat>()) {
        return Ok(a.value().to_bits() == b.value().to_bits());
    }
    Ok(is_plain(a) && a.get_type().is(b.get_type()) && a.eq(b)?)
}

/// Whether two of them with one type and one value are the same to every function.
fn is_plain(x: &Bound<'_, PyAny>) -> bool {
    x.is_exact_instance_of::<PyInt>()
        || x.is_exact_instance_of::<PyBool>()
        || x.is_exact_instance_of::<PyString>()
        || x.is_exact_instance_of::<PyBytes>()
        || x.is_exact_instance_of::<PyNone>()
        || x.is_exact_instance_of::<PyDType>()
}

/// An argument of a compiled function, as it was in the trace.
enum Argument {
    Tensor { shape: Shape, dtype: DType, requires_grad: bool, is_leaf: bool },
    Float(u64),
    Plain(Object),
    Tuple(Vec<Argument>),
    List(Vec<Argument>),
    Dict(Vec<(Object, Argument)>),
    Object(Object),
}

impl Argument {
    fn of(x: &Bound<'_, PyAny>) -> PyResult<Argument> {
        let all = |items: Vec<Bound<'_, PyAny>>| {
            items.iter().map(Argument::of).collect::<PyResult<Vec<Argument>>>()
        };
        if let Ok(t) = x.cast::<PyTensor>() {
            let t = t.get().tensor();
            let (requires_grad, is_leaf) = (t.requires_grad(), t.is_leaf());
            return Ok(Argument::Tensor {
                shape: t.shape(),
                dtype: t.dtype(),
                requires_grad,
                is_leaf,
            });
        }
        Ok(match x {
            _ if is_plain(x) => Argument::Plain(x.clone().unbind()),
            _ if let Ok(f) = x.cast_exact::<PyFloat>() => Argument::Float(f.value().to_bits()),
            _ if let Ok(t) = x.cast_exact::<PyTuple>() => Argument::Tuple(all(t.iter().collect())?),
            _ if let Ok(l) = x.cast_exact::<PyList>() => Argument::List(all(l.iter().collect())?),
            _ if let Ok(d) = x.cast_exact::<PyDict>() => {
                let pair = |(k, v): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                    Ok((k.unbind(), Argument::of(&v)?))
                };
                Argument::Dict(d.iter().map(pair).collect::<PyResult<_>>()?)
            }
            _ if x.is_instance_of::<PyTuple>()
                || x.is_instance_of::<PyComplex>()
                || x.is_instance_of::<PyInt>()
                || x.hasattr("__array_interface__")? =>
            {
                let why = "arguments of this kind are looked at in Python";
                return Err(PyTypeError::new_err(why));
            }
            _ => Argument::Object(x.clone().unbind()),
        })
    }

    /// Whether `x` is such an argument; its tensors are appended.
    fn fits<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        tensors: &mut Vec<Bound<'py, PyTensor>>,
    ) -> PyResult<bool> {
        Ok(match self {
            Argument::Tensor { shape, dtype, requires_grad, is_leaf } => {
                let Ok(given) = x.cast::<PyTensor>() else { return Ok(false) };
                let t = given.get().tensor();
                let fits = t.dtype() == *dtype
                    && t.shape() == *shape
                    && t.requires_grad() == *requires_grad
                    && (t.is_leaf() == *is_leaf || !requires_grad);
                tensors.push(given.clone());
                fits
            }
            Argument::Float(bits) => {
                x.cast_exact::<PyFloat>().is_ok_and(|f| f.value().to_bits() == *bits)
            }
            Argument::Plain(value) => is_equal(x, value.bind(x.py()))?,
            Argument::Tuple(parts) => {
                let Ok(t) = x.cast_exact::<PyTuple>() else { return Ok(false) };
                t.len() == parts.len() && all_fit(parts, t.iter(), tensors)?
            }
            Argument::List(parts) => {
                let Ok(l) = x.cast_exact::<PyList>() else { return Ok(false) };
                l.len() == parts.len() && all_fit(parts, l.iter(), tensors)?
            }
            Argument::Dict(parts) => {
                let Ok(d) = x.cast_exact::<PyDict>() else { return Ok(false) };
                if d.len() != parts.len() {
                    return Ok(false);
                }
                for ((key, value), (name, part)) in d.iter().zip(parts) {
                    if !is_equal(&key, name.bind(x.py()))? || !part.fits(&value, tensors)? {
                        return Ok(false);
                    }
                }
                true
            }
            Argument::Object(object) => x.is(object),
        })
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Argument::Tensor { .. } | Argument::Float(_) => Ok(()),
            Argument::Plain(x) | Argument::Object(x) => visit.call(x),
            Argument::Tuple(parts) | Argument::List(parts) => {
                parts.iter().try_for_each(|p| p.visit(visit))
            }
            Argument::Dict(parts) => parts.iter().try_for_each(|(k, p)| {
                visit.call(k)?;
                p.visit(visit)
            }),
        }
    }
}

fn all_fit<'py>(
    parts: &[Argument],
    given: impl Iterator<Item = Bound<'py, PyAny>>,
    tensors: &mut Vec<Bound<'py, PyTensor>>,
) -> PyResult<bool> {
    for (part, x) in parts.iter().zip(given) {
        if !part.fits(&x, tensors)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A setting in the order of its group.
struct Setting {
    key: Object,
    /// Nothing for the learning rate, which a run reads.
    value: Option<Object>,
    /// The items, if it is a list, as the parameters are.
    items: Vec<Object>,
}

impl Setting {
    fn of(key: Bound<'_, PyAny>, value: Bound<'_, PyAny>) -> Setting {
        let rate = key.extract::<&str>().is_ok_and(|k| k == "lr" || k == "initial_lr");
        let items = match value.cast::<PyList>() {
            Ok(list) => list.iter().map(Bound::unbind).collect(),
            Err(_) => Vec::new(),
        };
        Setting { key: key.unbind(), value: (!rate).then(|| value.unbind()), items }
    }

    fn holds(&self, key: &Bound<'_, PyAny>, now: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = now.py();
        if !is_equal(key, self.key.bind(py))? {
            return Ok(false);
        }
        let Some(then) = &self.value else { return Ok(true) };
        let Ok(list) = now.cast::<PyList>() else { return is_equal(now, then.bind(py)) };
        if list.len() != self.items.len() {
            return Ok(false);
        }
        for (now, then) in list.iter().zip(&self.items) {
            if !is_equal(&now, then.bind(py))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.key)?;
        visit.call(&self.value)?;
        self.items.iter().try_for_each(|x| visit.call(x))
    }
}

/// A group of an optimizer that a program steps: its settings, and who steps it.
struct Group {
    group: Py<PyDict>,
    settings: Vec<Setting>,
    natives: Py<PyList>,
    i: usize,
    native: Py<PyOptimizer>,
}

impl Group {
    fn of(optimizer: &Bound<'_, PyAny>) -> PyResult<Vec<Group>> {
        let py = optimizer.py();
        let natives = optimizer.getattr(intern!(py, "_native"))?.cast_into::<PyList>()?;
        let groups = optimizer.getattr(intern!(py, "param_groups"))?;
        let mut all = Vec::new();
        for (i, group) in groups.try_iter()?.enumerate() {
            let group = group?.cast_into::<PyDict>()?;
            let settings = group.iter().map(|(key, value)| Setting::of(key, value)).collect();
            let native = natives.get_item(i)?.cast_into::<PyOptimizer>()?.unbind();
            let natives = natives.clone().unbind();
            all.push(Group { group: group.unbind(), settings, natives, i, native });
        }
        Ok(all)
    }

    /// Whether the program still steps what the optimizer of Python steps; the learning rate is
    /// told.
    fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        let group = self.group.bind(py);
        let native = self.natives.bind(py).get_item(self.i);
        if group.len() != self.settings.len() || !native.is_ok_and(|n| n.is(&self.native)) {
            return Ok(false);
        }
        for ((key, now), setting) in group.iter().zip(&self.settings) {
            if !setting.holds(&key, &now)? {
                return Ok(false);
            }
        }
        let lr = group.as_any().get_item(intern!(py, "lr"))?;
        self.native.get().set_lr(lr.extract()?)?;
        Ok(true)
    }
}

/// A program with all that must be as it was when it was traced.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct Conditions {
    program: Py<PyProgram>,
    met: Py<Met>,
    grad: bool,
    /// Whether products round their operands to bf16.
    rounds: bool,
    float: DType,
    groups: Vec<Group>,
    /// Nothing where arguments are of a kind that Python has to look at.
    arguments: Option<Argument>,
    named: Option<Argument>,
    /// For each tensor in them the first that is the same object.
    same: Vec<usize>,
    /// Arguments that the function writes, of those tensors.
    written: Vec<usize>,
}

#[pymethods]
impl Conditions {
    #[new]
    fn new(
        program: Py<PyProgram>,
        met: Py<Met>,
        stepped: Vec<Bound<'_, PyAny>>,
        given: (Bound<'_, PyTuple>, Bound<'_, PyDict>),
        same: Vec<usize>,
        written: Vec<usize>,
    ) -> PyResult<Conditions> {
        let mut groups = Vec::new();
        for optimizer in &stepped {
            groups.extend(Group::of(optimizer)?);
        }
        let (arguments, named) = (Argument::of(&given.0).ok(), Argument::of(&given.1).ok());
        let (grad, float) = (chainrule::is_grad_enabled(), default_float());
        let rounds = chainrule::autocast_dtype().is_some();
        Ok(Conditions {
            program,
            met,
            grad,
            rounds,
            float,
            groups,
            arguments,
            named,
            same,
            written,
        })
    }

    /// The work before each run.
    fn begin(&self) {
        self.met.get().begin();
    }

    /// Whether it may do so later: captured constants were not written. Gradients and settings can
    /// come back.
    fn may_hold(&self, py: Python<'_>) -> bool {
        self.met.get().holds(py)
    }

    /// Whether the program does what its function would, as far as the native side knows:
    /// gradients, captured tensors, optimizers. Learning rates are told on the way.
    fn hold(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.met.get().holds(py) || !self.program.get().fits_gradients() {
            return Ok(false);
        }
        for group in &self.groups {
            if !group.holds(py)? {
                return Ok(false);
            }
        }
        self.met.get().check_states(py)?;
        Ok(true)
    }

    /// Whether nothing that the program writes shows the memory of another thing that it reads: it
    /// would not see the write there.
    fn are_apart(&self, tensors: Vec<Bound<'_, PyTensor>>) -> bool {
        self.is_apart(&tensors)
    }

    /// The tensors in the arguments, if a run with them does what the function would.
    pub fn tensors<'py>(
        &self,
        watched: &Bound<'py, Watched>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Vec<Bound<'py, PyTensor>>>> {
        let py = args.py();
        let (Some(arguments), Some(named)) = (&self.arguments, &self.named) else {
            return Ok(None);
        };
        let mut tensors = Vec::new();
        let fits = !session::is_any()
            && chainrule::is_grad_enabled() == self.grad
            && chainrule::autocast_dtype().is_some() == self.rounds
            && default_float() == self.float
            && arguments.fits(args.as_any(), &mut tensors)?
            && named.fits(kwargs.as_any(), &mut tensors)?
            && pattern(&tensors) == self.same
            && self.is_apart(&tensors)
            && watched.get().holds(py)?
            && self.hold(py)?;
        Ok(fits.then_some(tensors))
    }

    /// The results, if a run with these arguments does what the function would.
    fn run(
        &self,
        watched: &Bound<'_, Watched>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Option<Vec<PyTensor>>> {
        match self.tensors(watched, args, kwargs)? {
            None => Ok(None),
            Some(tensors) => self.results(args.py(), tensors).map(Some),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.met)?;
        for group in &self.groups {
            visit.call(&group.group)?;
            visit.call(&group.natives)?;
            visit.call(&group.native)?;
            group.settings.iter().try_for_each(|s| s.visit(&visit))?;
        }
        for argument in self.arguments.iter().chain(&self.named) {
            argument.visit(&visit)?;
        }
        Ok(())
    }
}

impl Conditions {
    /// The results of the program for the tensors in its arguments.
    pub fn results(
        &self,
        py: Python<'_>,
        tensors: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<Vec<PyTensor>> {
        self.begin();
        self.program.get().run(py, tensors)
    }

    /// As [`Conditions::results`], of which Python does not get all.
    pub fn values(&self, py: Python<'_>, tensors: &[Bound<'_, PyTensor>]) -> PyResult<Vec<Tensor>> {
        self.begin();
        self.program.get().run_tensors(py, tensors)
    }

    fn is_apart(&self, tensors: &[Bound<'_, PyTensor>]) -> bool {
        let met = self.met.get();
        if tensors.iter().any(|t| met.writes(t)) {
            return false;
        }
        self.written.iter().all(|&i| {
            let root = root_of(&tensors[i]);
            let other = |j: &usize| self.same[*j] != i && root_of(&tensors[*j]) == root;
            !met.knows(&tensors[i]) && !(0..tensors.len()).any(|j| other(&j))
        })
    }
}

fn root_of(t: &Bound<'_, PyTensor>) -> *mut pyo3::ffi::PyObject {
    t.get().root(t.py()).map_or(t.as_ptr(), |root| root.as_ptr())
}

/// For each tensor the number of the first that is the same object.
fn pattern(tensors: &[Bound<'_, PyTensor>]) -> Vec<usize> {
    let first = |t: &Bound<'_, PyTensor>| tensors.iter().position(|other| other.is(t));
    tensors.iter().filter_map(first).collect()
}
