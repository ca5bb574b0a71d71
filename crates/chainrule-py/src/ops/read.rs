//! The arguments of a call, read as the table says.

use chainrule::Tensor;
use chainrule::ops::binding::{Argument, Call, Kind, Parameter, Preset};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::{Given, Point, Way};
use crate::args::{DTypeArg, Operand};
use crate::create::from_data;
use crate::error::{argument_error, run};
use crate::tensor::PyTensor;

/// A value for each parameter.
pub(super) type Values = SmallVec<[Argument; 4]>;

impl From<Operand> for Argument {
    fn from(x: Operand) -> Argument {
        match x {
            Operand::Tensor(t) => Argument::Tensor(t),
            Operand::Float(x) => Argument::Float(x),
            Operand::Int(x) => Argument::Int(x),
            Operand::Bool(x) => Argument::Bool(x),
        }
    }
}

impl Point {
    /// The first argument of a function, and the others.
    pub(super) fn receiver<'a, 'py>(
        &self,
        mut given: Given<'a, 'py>,
    ) -> PyResult<(Borrowed<'a, 'py, PyAny>, Given<'a, 'py>)> {
        if let [first, rest @ ..] = given.args {
            given.args = rest;
            return Ok((*first, given));
        }
        let name = self.binding.receiver;
        let at = given.names.and_then(|names| names.iter().position(|n| is(&n, name)));
        match at {
            // The name stays among the others, where it is passed over.
            Some(at) => Ok((given.named[at], given)),
            None => Err(self.missing(name)),
        }
    }

    /// The tensor that the first argument stands for, a number with the dtype of the second.
    pub(super) fn first(&self, first: &Bound<'_, PyAny>, given: Given<'_, '_>) -> PyResult<Tensor> {
        let takes_operand = self.parameters.first().is_some_and(|p| p.kind == Kind::Operand);
        if takes_operand
            && let Some(other) = given.args.first()
            && let Ok(other) = other.cast::<PyTensor>()
            && let Some(number) = Operand::of(first)?
            && number.number().is_some()
        {
            let other = other.get().tensor();
            let number = Argument::from(number);
            let rank = match other.dtype() {
                d if d.is_float() => 2,
                chainrule::DType::I64 => 1,
                _ => 0,
            };
            let kind = match number {
                Argument::Float(_) => 2,
                Argument::Int(_) => 1,
                _ => 0,
            };
            if kind <= rank {
                return run(|| number.beside(&other));
            }
        }
        from_data(first, None)
    }

    /// The function of the method that is written by hand.
    pub(super) fn forward<'py>(
        &self,
        py: Python<'py>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (first, given) = self.receiver(given)?;
        let own = match first.cast::<PyTensor>() {
            Ok(own) => (*own).clone(),
            Err(_) => Bound::new(py, PyTensor::from(from_data(&first, None)?))?,
        };
        let Some(method) = self.method.get() else { return Err(self.missing("method")) };
        let descriptor = method.descriptor.bind(py);
        let places = given.args.iter().map(|x| (**x).clone());
        let Some(names) = given.names else {
            let args: SmallVec<[_; 4]> = std::iter::once(own.into_any()).chain(places).collect();
            return descriptor.call1(PyTuple::new(py, args)?);
        };
        let mut args: Vec<Bound<'py, PyAny>> =
            std::iter::once(own.into_any()).chain(places).collect();
        let named = PyDict::new(py);
        for (name, value) in names.iter().zip(given.named) {
            if method.rest.as_ref().is_some_and(|rest| is(&name, rest)) {
                args.push((**value).clone());
            } else if !is(&name, self.binding.receiver) {
                named.set_item(name, value)?;
            }
        }
        descriptor.call(PyTuple::new(py, args)?, Some(&named))
    }

    /// Whether the result is written to the tensor.
    pub(super) fn is_inplace(&self, given: Given<'_, '_>) -> PyResult<bool> {
        if self.way != Way::Functional || !self.binding.inplace {
            return Ok(false);
        }
        let last = self.parameters.len() - 1;
        if let Some(given) = given.args.get(last) {
            return given.extract();
        }
        let names = given.names.iter().flat_map(|n| n.iter());
        let found = names.zip(given.named).find(|(name, _)| is(name, "inplace"));
        found.map_or(Ok(false), |(_, value)| value.extract())
    }

    /// A value for each parameter.
    pub(super) fn values(&self, given: Given<'_, '_>) -> PyResult<Values> {
        let parameters = &self.parameters[..];
        let mut values = Values::new();
        let mut args = given.args;
        let mut sizes_given = None;
        if let [before @ .., last @ Parameter { kind: Kind::Sizes, .. }] = parameters {
            let at = before.len();
            if args.len() > at || given.named.is_empty() {
                sizes_given = Some(sizes(self, last, args.get(at..).unwrap_or_default())?);
                args = &args[..args.len().min(at)];
            }
        }
        for x in args {
            match parameters.get(values.len()) {
                Some(p) if !p.by_name => values.push(one(self, p, x)?),
                _ => return Err(self.too_many(args.len())),
            }
        }
        let mut filled = (1u32 << values.len()) - 1;
        for p in &parameters[values.len()..] {
            values.push(p.default.map_or(Argument::None, preset));
        }
        if let Some(sizes) = sizes_given {
            filled |= 1 << (parameters.len() - 1);
            values[parameters.len() - 1] = sizes;
        }
        if let Some(names) = given.names {
            for (name, x) in names.iter_borrowed().zip(given.named) {
                self.by_name(&mut values, &mut filled, &name, x)?;
            }
        }
        let missing = |&(at, p): &(usize, &Parameter)| p.default.is_none() && filled >> at & 1 == 0;
        match parameters.iter().enumerate().find(missing) {
            Some((_, p)) => Err(self.missing(p.name)),
            None => Ok(values),
        }
    }

    /// Puts an argument that was given by its name among the values.
    fn by_name(
        &self,
        values: &mut [Argument],
        filled: &mut u32,
        name: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let same = |own: &Option<Py<PyString>>| own.as_ref().is_some_and(|own| own.is(name));
        let known = self.names.iter().position(|[own, also]| same(own) || same(also));
        let named = |p: &Parameter| is(name, p.name) || (!p.also.is_empty() && is(name, p.also));
        let Some(at) = known.or_else(|| self.parameters.iter().position(named)) else {
            if matches!(self.way, Way::Function | Way::Functional)
                && is(name, self.binding.receiver)
            {
                return Ok(());
            }
            let why =
                format!("{}() got an unexpected keyword argument '{name}'", self.binding.name);
            return Err(PyTypeError::new_err(why));
        };
        let p = &self.parameters[at];
        if *filled >> at & 1 == 1 {
            let op = self.binding.name;
            match &values[at] {
                _ if p.also.is_empty() => {
                    let why = format!("{op}() got multiple values for argument '{name}'");
                    return Err(PyTypeError::new_err(why));
                }
                // None says nothing beside the other name.
                Argument::None => {}
                _ if x.is_none() => return Ok(()),
                _ => {
                    let (a, b) = (p.name, p.also);
                    let why = format!("{op}: {a} and {b} are two names of one argument; give one");
                    return Err(PyTypeError::new_err(why));
                }
            }
        }
        // As in the signature, None stands for nothing where there are two names.
        if x.is_none() && !p.also.is_empty() && p.default.is_none() {
            return Ok(());
        }
        values[at] = one(self, p, x)?;
        *filled |= 1 << at;
        Ok(())
    }

    fn missing(&self, name: &str) -> PyErr {
        let op = self.binding.name;
        PyTypeError::new_err(format!("{op}() missing 1 required positional argument: '{name}'"))
    }

    fn too_many(&self, given: usize) -> PyErr {
        let op = self.binding.name;
        let places = self.parameters.iter().take_while(|p| !p.by_name).count();
        let plural = if places == 0 { "" } else { "s" };
        PyTypeError::new_err(format!(
            "{op}() takes {} positional argument{plural} but {} were given",
            places + 1,
            given + 1
        ))
    }
}

/// Whether a name of Python is this one.
fn is(name: &Bound<'_, PyAny>, text: &str) -> bool {
    name.cast::<PyString>().is_ok_and(|n| n.to_str().is_ok_and(|n| n == text))
}

fn is_list(x: &Bound<'_, PyAny>) -> bool {
    x.is_instance_of::<PyTuple>() || x.is_instance_of::<PyList>()
}

fn preset(default: Preset) -> Argument {
    match default {
        Preset::None => Argument::None,
        Preset::Float(x) => Argument::Float(x),
        Preset::Int(x) => Argument::Int(x),
        Preset::Bool(x) => Argument::Bool(x),
        Preset::Choice(word) => Argument::Choice(word),
    }
}

/// Integers one by one or as one list.
fn sizes(point: &Point, p: &Parameter, args: &[Borrowed<'_, '_, PyAny>]) -> PyResult<Argument> {
    if let [one] = args
        && is_list(one)
    {
        return self::one(point, p, one);
    }
    let read = |x: &Borrowed<'_, '_, PyAny>| match self::one(point, p, x)? {
        Argument::Int(size) => Ok(size),
        _ => Err(named(x.py(), point, p, not(x, "an integer"))),
    };
    args.iter().map(read).collect::<PyResult<_>>().map(Argument::Ints)
}

/// An argument as its parameter wants it.
pub(super) fn one(point: &Point, p: &Parameter, x: &Bound<'_, PyAny>) -> PyResult<Argument> {
    if x.is_none() && p.default == Some(Preset::None) {
        return Ok(Argument::None);
    }
    value(point, p, x).map_err(|error| named(x.py(), point, p, error))
}

fn value(point: &Point, p: &Parameter, x: &Bound<'_, PyAny>) -> PyResult<Argument> {
    Ok(match p.kind {
        Kind::Tensor => match x.cast::<PyTensor>() {
            Ok(t) => Argument::Tensor(t.get().tensor()),
            Err(_) => return Err(not(x, "a tensor")),
        },
        Kind::Operand => match Operand::of(x)? {
            Some(x) => x.into(),
            None => return Err(not(x, "a tensor or a number")),
        },
        Kind::Float => Argument::Float(x.extract()?),
        Kind::Int => Argument::Int(x.extract()?),
        Kind::Count => match x.extract()? {
            n @ 0.. => Argument::Int(n),
            n => {
                let why =
                    format!("{}: {} must not be negative, got {n}", point.binding.name, p.name);
                return Err(argument_error(why));
            }
        },
        Kind::Bool => Argument::Bool(x.extract()?),
        Kind::DType => Argument::DType(x.extract::<DTypeArg>()?.0),
        // Not by an error, which takes time.
        Kind::Axes | Kind::Ints | Kind::Sizes if is_list(x) => Argument::Ints(x.extract()?),
        Kind::Axes | Kind::Ints | Kind::Sizes => match x.extract::<i64>() {
            Ok(one) => Argument::Int(one),
            Err(_) => match x.extract() {
                Ok(several) => Argument::Ints(several),
                Err(_) => return Err(not(x, "an integer or a list of integers")),
            },
        },
        Kind::Choice(words) => {
            let Ok(word) = x.cast::<PyString>() else { return Err(not(x, "a word")) };
            match words.iter().find(|w| word.to_str().is_ok_and(|word| word == **w)) {
                Some(word) => Argument::Choice(word),
                None => return Err(no_such_word(point, p, words, &word.to_string())),
            }
        }
        Kind::Unused => {
            return Err(PyTypeError::new_err("an argument of older versions, which must be None"));
        }
    })
}

fn no_such_word(point: &Point, p: &Parameter, words: &[&str], word: &str) -> PyErr {
    let mut all: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
    if p.default == Some(Preset::None) {
        all.insert(0, "None".into());
    }
    let last = all.pop().unwrap_or_default();
    let (op, name, all) = (point.binding.name, p.name, all.join(", "));
    argument_error(format!("{op}: {name} is {all} or {last}, not '{word}'"))
}

fn not(x: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let kind = x.get_type().name().map(|n| n.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("expected {wanted}, not {kind}"))
}

/// An error of reading an argument, with the names of the op and of the argument.
fn named(py: Python<'_>, point: &Point, p: &Parameter, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) || matches!(point.binding.call, Call::ByHand(_)) {
        return error;
    }
    let text = format!("{}: argument '{}': {}", point.binding.name, p.name, error.value(py));
    PyTypeError::new_err(text)
}
