//! Functions and methods made from the table of ops: a row says the names, the arguments and the
//! computation, and here Python calls it.
//!
//! Each name is a native function with vector calls. Python does not tell a native function its
//! name, so there is one for each number in [`POINTS`], and nothing else differs in them.

mod describe;
mod read;

pub use describe::{_bindings, _by_hand};

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use chainrule::ops::binding::{Argument, Arguments, Binding, Call, Kind, Parameter, Preset, meet};
use chainrule::ops::{Entry, Family, table};
use chainrule::{Result, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::args::default_float;
use crate::elementwise::as_float;
use crate::error::{of_panic, run};
use crate::laid;
use crate::tensor::{PyTensor, work};

/// The argument of functions that can write their result to the tensor.
const INPLACE: Parameter = Parameter {
    name: "inplace",
    also: "",
    kind: Kind::Bool,
    default: Some(Preset::Bool(false)),
    by_name: false,
};

/// A method that is written by hand.
struct Method {
    descriptor: Py<PyAny>,
    /// The name of the arguments that the method takes one by one and the function as one.
    rest: Option<String>,
}

/// Ways of calling a name.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Method,
    /// A method that writes its result to the tensor.
    InPlace,
    Function,
    /// A function of `nn.functional`.
    Functional,
    /// A function that calls the method of its name.
    Forward,
}

/// A native function.
struct Point {
    entry: &'static Entry,
    binding: &'static Binding,
    way: Way,
    parameters: Vec<Parameter>,
    /// The names of the parameters as Python has them, to compare them by identity first.
    names: Vec<[Option<Py<PyString>>; 2]>,
    /// For a function that calls a method: what it calls.
    method: OnceLock<Method>,
}

static POINTS: OnceLock<Vec<Point>> = OnceLock::new();

/// All names of the table with their ways, in the order of the table.
fn points(py: Python<'_>) -> &'static [Point] {
    POINTS.get_or_init(|| {
        let all = table().flat_map(|entry| entry.python.iter().map(move |b| (entry, b)));
        let points = all.flat_map(|(entry, b)| ways(b).map(move |way| (entry, b, way)));
        points.map(|(entry, binding, way)| Point::new(py, entry, binding, way)).collect()
    })
}

impl Point {
    fn new(py: Python<'_>, entry: &'static Entry, binding: &'static Binding, way: Way) -> Point {
        let mut parameters = binding.parameters.to_vec();
        if way == Way::Functional && binding.inplace {
            parameters.push(INPLACE);
        }
        let name = |name: &str| (!name.is_empty()).then(|| PyString::intern(py, name).unbind());
        let names = parameters.iter().map(|p| [name(p.name), name(p.also)]).collect();
        Point { entry, binding, way, parameters, names, method: OnceLock::new() }
    }
}

fn ways(b: &Binding) -> impl Iterator<Item = Way> + use<> {
    let ways = match b.call {
        Call::ByHand(_) => [b.function.then_some(Way::Forward), None, None, None],
        _ => [
            b.method.then_some(Way::Method),
            b.in_place.then_some(Way::InPlace),
            b.function.then_some(Way::Function),
            b.functional.then_some(Way::Functional),
        ],
    };
    ways.into_iter().flatten()
}

/// Largest number of names.
const MOST: usize = 1024;
/// Largest number of a name's parameters: a bit of a number for each.
const MOST_PARAMETERS: usize = 31;

/// The native function of point `N`: Python tells a function nothing of its name.
unsafe extern "C" fn native<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: these are the arguments of a call from Python.
    unsafe { called(N, slf, args, count, names) }
}

/// The same for a method without arguments.
unsafe extern "C" fn alone<const N: usize>(
    slf: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: these are the arguments of a call from Python, of which there are none.
    unsafe { called(N, slf, std::ptr::null(), 0, std::ptr::null_mut()) }
}

/// A function for each number from `$at` on, eight by eight.
macro_rules! each {
    ($f:ident, 1, $at:expr) => { $f::<{ $at }> };
    ($f:ident, 8, $at:expr) => { each!(@ $f, 1, $at, 1) };
    ($f:ident, 64, $at:expr) => { each!(@ $f, 8, $at, 8) };
    ($f:ident, 512, $at:expr) => { each!(@ $f, 64, $at, 64) };
    (@ $f:ident, $of:tt, $at:expr, $step:expr) => {
        [
            each!($f, $of, $at), each!($f, $of, $at + $step), each!($f, $of, $at + 2 * $step),
            each!($f, $of, $at + 3 * $step), each!($f, $of, $at + 4 * $step),
            each!($f, $of, $at + 5 * $step), each!($f, $of, $at + 6 * $step),
            each!($f, $of, $at + 7 * $step),
        ]
    };
}

type ByNumber<F> = [[[[F; 8]; 8]; 8]; MOST / 512];
static NATIVES: ByNumber<ffi::PyCFunctionFastWithKeywords> =
    [each!(native, 512, 0), each!(native, 512, 512)];
static ALONE: ByNumber<ffi::PyCFunction> = [each!(alone, 512, 0), each!(alone, 512, 512)];

/// The native function of a point and its flags.
fn native_of(number: usize, point: &Point) -> PyResult<(ffi::PyMethodDefPointer, i32)> {
    if number >= MOST || point.parameters.len() > MOST_PARAMETERS {
        let why =
            format!("the table of ops has more than {MOST} names, or {MOST_PARAMETERS} parameters");
        return Err(crate::error::InternalError::new_err(why));
    }
    fn at<F: Copy>(all: &ByNumber<F>, number: usize) -> F {
        all.as_flattened().as_flattened().as_flattened()[number]
    }
    let is_method = matches!(point.way, Way::Method | Way::InPlace);
    Ok(match is_method && point.parameters.is_empty() {
        true => (ffi::PyMethodDefPointer { PyCFunction: at(&ALONE, number) }, ffi::METH_NOARGS),
        false => (
            ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: at(&NATIVES, number) },
            ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ),
    })
}

/// Runs a point for Python.
///
/// # Safety
///
/// The pointers are those of a call with METH_FASTCALL and METH_KEYWORDS: `args` has `count` values
/// and one for each of the `names`, a tuple or null; `slf` is the tensor of a method, or null.
unsafe fn called(
    point: usize,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let point = &points(py)[point];
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: as the caller says; Python keeps all of them alive for the call.
            let (own, names) = unsafe {
                (Borrowed::from_ptr_or_opt(py, slf), Borrowed::from_ptr_or_opt(py, names))
            };
            let names = names.map(|n| n.cast::<PyTuple>()).transpose()?;
            let all = count as usize + names.map_or(0, |n| n.len());
            let args: &[Borrowed<'_, '_, PyAny>] = match all {
                0 => &[],
                // SAFETY: as the caller says; a borrowed object is no more than its pointer.
                _ => unsafe { std::slice::from_raw_parts(args.cast(), all) },
            };
            let given =
                Given { args: &args[..count as usize], named: &args[count as usize..], names };
            point.call(py, own, given)
        }));
        match outcome {
            Ok(Ok(out)) => out.into_ptr(),
            Ok(Err(error)) => {
                error.restore(py);
                std::ptr::null_mut()
            }
            Err(panic) => {
                of_panic(panic).restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

/// The arguments of a call.
#[derive(Clone, Copy)]
struct Given<'a, 'py> {
    args: &'a [Borrowed<'a, 'py, PyAny>],
    named: &'a [Borrowed<'a, 'py, PyAny>],
    names: Option<Borrowed<'a, 'py, PyTuple>>,
}

/// Arguments of which one was taken.
struct OtherArguments<'a, 'py> {
    args: &'a [Borrowed<'a, 'py, PyAny>],
    named: Vec<Borrowed<'a, 'py, PyAny>>,
    names: Bound<'py, PyTuple>,
}

impl<'a, 'py> Given<'a, 'py> {
    /// The argument of this name, and the others.
    fn without(
        self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<(Bound<'py, PyAny>, OtherArguments<'a, 'py>)>> {
        let Some(names) = self.names else { return Ok(None) };
        let is_it = |n: &Bound<'py, PyAny>| n.extract::<&str>().is_ok_and(|n| n == name);
        let Some(at) = names.iter().position(|n| is_it(&n)) else { return Ok(None) };
        let others = names.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, n)| n);
        let names = PyTuple::new(py, others.collect::<Vec<_>>())?;
        let mut named = self.named.to_vec();
        let found = (*named.remove(at)).clone();
        Ok(Some((found, OtherArguments { args: self.args, named, names })))
    }
}

impl<'py> OtherArguments<'_, 'py> {
    fn as_given(&self) -> Given<'_, 'py> {
        Given { args: self.args, named: &self.named, names: Some(self.names.as_borrowed()) }
    }
}

impl Point {
    fn call<'py>(
        &self,
        py: Python<'py>,
        own: Option<Borrowed<'_, 'py, PyAny>>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.of_real(py, own, given).or_else(|error| match given.without(py, "out")? {
            Some((out, rest)) if own.is_none() => {
                let found = self.call(py, own, rest.as_given())?;
                let put = py.import("chainrule._out")?.getattr("put")?;
                put.call1((self.binding.name, found, out))
            }
            _ => self.of_complex(py, error, own, given),
        })
    }

    /// The call with the method of complex tensors, if an argument is complex; else the error.
    fn of_complex<'py>(
        &self,
        py: Python<'py>,
        error: PyErr,
        own: Option<Borrowed<'_, 'py, PyAny>>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.way == Way::InPlace {
            return Err(error);
        }
        let args = own.iter().chain(given.args).map(|x| (**x).clone()).collect();
        let named = PyDict::new(py);
        for (name, value) in given.names.iter().flat_map(|n| n.iter()).zip(given.named) {
            named.set_item(name, value)?;
        }
        crate::complex::instead(error, self.binding.name, args, named)
    }

    fn of_real<'py>(
        &self,
        py: Python<'py>,
        own: Option<Borrowed<'_, 'py, PyAny>>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.way {
            Way::Forward => self.forward(py, given),
            Way::Method | Way::InPlace => {
                let own = own.ok_or_else(|| PyTypeError::new_err("a method needs a tensor"))?;
                let own = own.cast::<PyTensor>()?;
                let out = self.computed(py, &own.get().tensor(), given)?;
                if self.way == Way::Method {
                    return out.into_python(py);
                }
                written(&own, out)
            }
            Way::Function | Way::Functional => {
                let (first, given) = self.receiver(given)?;
                let own = first.cast::<PyTensor>().ok();
                let (tensor, given) = match own {
                    Some(own) => (own.get().tensor(), given),
                    None => (self.first(&first, given)?, given),
                };
                let out = self.computed(py, &tensor, given)?;
                match (own, self.is_inplace(given)?) {
                    (Some(own), true) => written(&own, out),
                    _ => out.into_python(py),
                }
            }
        }
    }

    /// The result for this tensor.
    fn computed(&self, py: Python<'_>, own: &Tensor, given: Given<'_, '_>) -> PyResult<Out> {
        let binding = self.binding;
        let cast;
        let own = match binding.floats && !own.dtype().is_float() {
            true => {
                cast = as_float(own.clone())?;
                &cast
            }
            false => own,
        };
        let is_elementwise = matches!(self.entry.family, Family::Unary | Family::Binary);
        match binding.call {
            Call::One(call)
                if is_elementwise && given.args.is_empty() && given.named.is_empty() =>
            {
                work(py, own.numel(), || laid::of_one(own, call)).map(Out::One)
            }
            Call::One(call) if given.args.is_empty() && given.named.is_empty() => {
                work(py, own.numel(), || call(own)).map(Out::One)
            }
            Call::One(call) => {
                self.values(given)?;
                work(py, own.numel(), || call(own)).map(Out::One)
            }
            Call::Two(call) => {
                let other = match given.args {
                    [other] if given.named.is_empty() => {
                        read::one(self, &self.parameters[0], other)?
                    }
                    _ => std::mem::replace(&mut self.values(given)?[0], Argument::None),
                };
                let elements = match &other {
                    Argument::Tensor(other) => own.numel().max(other.numel()),
                    _ => own.numel(),
                };
                let meeting = |a: &Tensor, b: &Tensor| match a.dtype() == b.dtype() {
                    true => call(a, b),
                    false => {
                        let (a, b) = meet(a.clone(), b.clone())?;
                        call(&a, &b)
                    }
                };
                work(py, elements, || match other {
                    Argument::Tensor(other) if is_elementwise => laid::of_two(own, &other, meeting),
                    Argument::Tensor(other) => meeting(own, &other),
                    number if is_elementwise => {
                        laid::of_one(own, |own| call(own, &number.beside(own)?))
                    }
                    number => call(own, &number.beside(own)?),
                })
                .map(Out::One)
            }
            Call::With(call) if is_elementwise => self
                .with(py, own, given, |own, values| laid::of_call(own, values, call))
                .map(Out::One),
            Call::With(call) => self.with(py, own, given, call).map(Out::One),
            Call::Pair(call) => self.with(py, own, given, call).map(Out::Pair),
            Call::ByHand(_) => unreachable!("it is forwarded"),
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        own: &Tensor,
        given: Given<'_, '_>,
        call: impl FnOnce(&Tensor, &Arguments<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let values = self.values(given)?;
        let mut elements = own.numel();
        for value in &values {
            if let Argument::Tensor(t) = value {
                elements += t.numel();
            }
        }
        let steps = match self.entry.family {
            Family::Linalg | Family::Fused | Family::Index => 4,
            _ => 1,
        };
        let arguments = Arguments { values: &values, default_float: default_float() };
        work(py, elements.saturating_mul(steps), || call(own, &arguments))
    }
}

/// The result of a call.
enum Out {
    One(Tensor),
    Pair((Tensor, Tensor)),
}

impl Out {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Out::One(t) => Ok(Bound::new(py, PyTensor::from(t))?.into_any()),
            Out::Pair((values, indices)) => {
                static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let class = CLASS.get_or_try_init(py, || {
                    PyResult::Ok(
                        py.import("chainrule._methods")?.getattr("ValuesIndices")?.unbind(),
                    )
                })?;
                class.bind(py).call1((PyTensor::from(values), PyTensor::from(indices)))
            }
        }
    }
}

/// The tensor, after it took the result as its value.
fn written<'py>(own: &Bound<'py, PyTensor>, out: Out) -> PyResult<Bound<'py, PyAny>> {
    let (Out::One(new) | Out::Pair((new, _))) = out;
    let shape = own.get().tensor().shape();
    PyTensor::assign(own, run(|| new.try_expand(shape))?)?;
    Ok(own.clone().into_any())
}

/// A native function or the descriptor of a method; `point` is its number.
fn made<'py>(
    py: Python<'py>,
    point: usize,
    name: &str,
    text: String,
    module: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let (ml_meth, ml_flags) = native_of(point, &points(py)[point])?;
    let text = CString::new(text)?.into_raw();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth,
        ml_flags,
        ml_doc: text,
    }));
    // SAFETY: the definition and its texts live as long as the program, and the function has the
    // signature that the flags say.
    unsafe {
        let new = match module {
            None => {
                let class = py.get_type::<PyTensor>();
                ffi::PyDescr_NewMethod(class.as_ptr().cast(), definition)
            }
            Some(module) => {
                let module = PyString::new(py, module);
                ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), module.as_ptr())
            }
        };
        Bound::from_owned_ptr_or_err(py, new)
    }
}

/// Puts all methods on the class, and all functions into two dictionaries of the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let class = py.get_type::<PyTensor>();
    let (functions, functional) = (PyDict::new(py), PyDict::new(py));
    for (number, point) in points(py).iter().enumerate() {
        let (name, aliases) = (point.binding.name, point.binding.aliases);
        let (own, module) = match point.way {
            Way::Forward => continue,
            Way::InPlace => (format!("{name}_"), None),
            Way::Method => (name.to_owned(), None),
            Way::Function => (name.to_owned(), Some("chainrule")),
            Way::Functional => (name.to_owned(), Some("chainrule.nn.functional")),
        };
        let text = point.text_signature(&own) + &point.help();
        let new = made(py, number, &own, text, module)?;
        for name in std::iter::once(&name).chain(aliases) {
            match point.way {
                Way::Method => class.setattr(*name, &new)?,
                Way::InPlace => class.setattr(format!("{name}_"), &new)?,
                Way::Function => functions.set_item(name, &new)?,
                _ => functional.set_item(name, &new)?,
            }
        }
    }
    m.add("_functions", functions)?;
    m.add("_functional", functional)
}

/// The function that calls the method of this name; `signature` is that of the method, and `rest`
/// the name of the arguments that the method takes one by one.
#[pyfunction]
pub fn _function_of<'py>(
    py: Python<'py>,
    name: &str,
    signature: &str,
    rest: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_it = |p: &Point| p.way == Way::Forward && p.binding.name == name;
    let number = points(py).iter().position(is_it).ok_or_else(|| {
        PyTypeError::new_err(format!("{name} is not written by hand in the table of ops"))
    })?;
    let point = &points(py)[number];
    let descriptor = py.get_type::<PyTensor>().getattr(name)?.unbind();
    let _ = point.method.set(Method { descriptor, rest });
    let text = format!("{name}{signature}\n--\n\n{}", point.help());
    made(py, number, name, text, Some("chainrule"))
}
