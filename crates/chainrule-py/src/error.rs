//! Errors of the library as Python exceptions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use chainrule::Error;
use chainrule_core::tensor::behind::take_fault;
use pyo3::exceptions::{PyFileNotFoundError, PyIndexError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::places;
use crate::words::in_python;

pyo3::create_exception!(
    chainrule,
    GradientError,
    PyRuntimeError,
    "A gradient that cannot be computed: nothing on the way requires one, the graph was freed, or a value may not be changed."
);
pyo3::create_exception!(
    chainrule,
    InternalError,
    PyRuntimeError,
    "A defect of chainrule itself. Python goes on; please report the message."
);

/// The exception for an error: its kind from the error's kind, its text in the words of Python.
pub fn to_python(error: Error) -> PyErr {
    let text = in_python(&error.kind().to_string());
    match error.kind() {
        Error::DType { .. } => of_class("DTypeError", text),
        Error::Decomposition { .. } => of_class("LinAlgError", text),
        Error::Gradient { .. } => GradientError::new_err(text),
        Error::OutOfMemory { .. } => of_class("OutOfMemoryError", text),
        Error::File { path, why } if !path.exists() && is_missing(why) => {
            PyFileNotFoundError::new_err(text)
        }
        Error::File { .. } => PyOSError::new_err(text),
        _ if is_index(&text) => PyIndexError::new_err(text),
        _ => argument_error(text),
    }
}

/// Whether a reason is that of a file or folder that is not there, rather than of one that cannot
/// be written.
fn is_missing(why: &str) -> bool {
    let why = why.to_lowercase();
    why.contains("no such file") || why.starts_with("is no folder")
}

/// The exception for an argument that an op does not take.
pub fn argument_error(text: impl Into<String>) -> PyErr {
    of_class("ArgumentError", text.into())
}

/// An exception of the package's own, which its Python files define.
fn of_class(name: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("chainrule._errors").and_then(|errors| errors.getattr(name));
        match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, text),
            Err(error) => error,
        }
    })
}

/// Whether a message is of an index or an axis that is out of range.
fn is_index(text: &str) -> bool {
    [
        "out of range",
        "there is no axis",
        "no position",
        "outside the axis",
        "out of bounds",
        "no index",
        "a mask at axis",
    ]
    .iter()
    .any(|part| text.contains(part))
}

/// Runs what belongs to the library; a panic in it becomes an exception, for it must not end the
/// interpreter.
#[inline]
pub fn run<T>(f: impl FnOnce() -> chainrule::Result<T>) -> PyResult<T> {
    places::begin();
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(x)) if LATE_COUNT.load(Ordering::Relaxed) == 0 => Ok(x),
        Ok(Ok(x)) => LATE.take().map_or(Ok(x), |late| Err(late.raised())),
        Ok(Err(error)) => Err(raised_in_python().unwrap_or_else(|| to_python(error))),
        Err(panic) => Err(of_panic(panic)),
    }
}

/// An error of a read that could not return it, until the next [`run`] of its thread.
struct Late(Option<Error>);

/// Their number, to be asked first.
static LATE_COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
}

impl Late {
    fn raised(mut self) -> PyErr {
        self.0.take().map_or_else(|| InternalError::new_err("it has an error"), to_python)
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        LATE_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets the next [`run`] of this thread fail: the value of a leaf lies elsewhere and could not be
/// read.
#[cold]
pub fn fail_late(error: Error) {
    LATE_COUNT.fetch_add(1, Ordering::Relaxed);
    LATE.set(Some(Late(Some(error))));
}

/// The exception for a panic, which says where in the library it was.
pub fn of_panic(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    // Methods without a `Result` panic where a device cannot give a value.
    if let Some(error) = take_fault() {
        return to_python(error);
    }
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    let text = in_python(&text.unwrap_or_else(|| "it gave no message".into()));
    let place = PANICKED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.map_or(String::new(), |place| format!(" ({place})"));
    InternalError::new_err(format!("chainrule is at fault here; please report: {text}{place}"))
}

/// The place of the last panic.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics of the library from the standard error: each becomes an exception, which has all
/// that would be printed.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|info| {
        // The part of the path inside the library: the rest is the machine that built it.
        let place = info.location().and_then(|at| {
            let file = at.file().replace('\\', "/");
            let inside = file.find("chainrule").map(|start| file[start..].to_string())?;
            Some(format!("{inside}, line {}", at.line()))
        });
        *PANICKED.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// Panics, so that a test sees what becomes of it.
#[pyfunction]
pub fn _panic(text: &str) -> PyResult<()> {
    run(|| panic!("{text}"))
}

/// Whether there is memory for this many elements of 8 bytes: whoever takes it without asking would
/// end the interpreter.
pub fn has_room(elements: usize) -> bool {
    const SMALL: usize = 1 << 26;
    elements < SMALL || Vec::<u64>::new().try_reserve_exact(elements).is_ok()
}

/// As [`has_room`], with an exception.
pub fn room(op: &str, elements: usize) -> PyResult<()> {
    match has_room(elements) {
        true => Ok(()),
        false => {
            let text = format!("{op}: no memory for {elements} elements");
            Err(of_class("OutOfMemoryError", text))
        }
    }
}

thread_local! {
    /// The exception of a Python function that the library called: it goes through the library as
    /// an error without its type.
    static RAISED: std::cell::RefCell<Option<PyErr>> = const { std::cell::RefCell::new(None) };
}

/// Keeps an exception until the library has returned.
pub fn through(op: &'static str, error: PyErr) -> Error {
    let text = error.to_string();
    RAISED.with(|r| *r.borrow_mut() = Some(error));
    Error::argument(op, text)
}

/// Keeps the exception of a function that cannot fail for the library, until [`check`].
pub fn keep(error: PyErr) {
    RAISED.with(|r| *r.borrow_mut() = Some(error));
}

/// The exception that was kept.
pub fn check() -> PyResult<()> {
    raised_in_python().map_or(Ok(()), Err)
}

fn raised_in_python() -> Option<PyErr> {
    RAISED.with(|r| r.borrow_mut().take())
}
