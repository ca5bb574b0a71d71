//! A compiled function while it is traced: what it made, and what it met of the world outside.
//!
//! A program does again what the traced function did to tensors. So of a tensor from outside that is no leaf the program takes the value as a constant, and is
//! only good as long as nobody writes there: the counters of writes tell. One that the function itself wrote to has to become a leaf before it is
//! traced again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use chainrule::Tensor;
use pyo3::prelude::*;

use crate::error::GradientError;
use crate::tensor::PyTensor;

/// A tensor's counter of writes, and where it stood.
type Counter = (Arc<AtomicU64>, u64);

#[derive(Default)]
struct Session {
    /// Held by each handle that was made since it began.
    token: Arc<()>,
    met: Vec<Counter>,
    written: Vec<Py<PyTensor>>,
    /// Leaves from outside.
    leaves: Vec<Tensor>,
    /// Whether a backward pass used a graph up.
    walked: bool,
    /// Whether an op with a rule by hand was applied, which keeps tensors of its own.
    custom: bool,
}

static SESSIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Session>> = const { RefCell::new(None) };
    /// Tensors that require a gradient and are read, for each function that asks for them.
    static USES: RefCell<Vec<Vec<Tensor>>> = const { RefCell::new(Vec::new()) };
}

/// Whether any thread traces a function.
#[inline]
pub fn is_any() -> bool {
    SESSIONS.load(Ordering::Relaxed) != 0
}

/// What handles hold that are made while this thread traces.
#[inline]
pub fn current() -> Option<Arc<()>> {
    if !is_any() {
        return None;
    }
    CURRENT.with_borrow(|session| session.as_ref().map(|s| s.token.clone()))
}

fn is_own(handle: &PyTensor, session: &Session) -> bool {
    handle.lock().born.as_ref().is_some_and(|born| Arc::ptr_eq(born, &session.token))
}

/// A handle is read.
pub fn met(handle: &PyTensor, tensor: &Tensor) {
    if !is_any() {
        return;
    }
    if tensor.requires_grad() {
        USES.with_borrow_mut(|all| {
            for uses in all {
                if !uses.iter().any(|t| t.is_same(tensor)) {
                    uses.push(tensor.clone());
                }
            }
        });
    }
    CURRENT.with_borrow_mut(|session| {
        let Some(session) = session else { return };
        if is_own(handle, session) {
            return;
        }
        if tensor.is_changeable() {
            if !session.leaves.iter().any(|t| t.is_same(tensor)) {
                session.leaves.push(tensor.clone());
            }
            return;
        }
        let counter = handle.writes.get_or_init(Default::default);
        if !session.met.iter().any(|(c, _)| Arc::ptr_eq(c, counter)) {
            session.met.push((counter.clone(), counter.load(Ordering::Relaxed)));
        }
    });
}

/// A handle is about to be written. Of one from outside that is no leaf the program would not know.
pub fn written(handle: &Bound<'_, PyTensor>) -> PyResult<()> {
    if !is_any() {
        return Ok(());
    }
    let root = handle.get().root(handle.py()).unwrap_or_else(|| handle.clone().unbind());
    let refused = CURRENT.with_borrow_mut(|session| {
        let Some(session) = session else { return false };
        if is_own(root.get(), session) || root.get().lock().tensor.is_changeable() {
            return false;
        }
        session.written.push(root.clone_ref(handle.py()));
        true
    });
    match refused {
        false => Ok(()),
        true if root.get().lock().tensor.requires_grad() => Err(GradientError::new_err(
            "compile: the function writes to a tensor from outside that was computed from others; write to it outside, or detach it first",
        )),
        true => Err(GradientError::new_err(
            "compile: the function writes to a tensor from outside, and is traced again with it as a state",
        )),
    }
}

/// A backward pass is over.
pub fn walked() {
    note(|session| session.walked = true);
}

/// An op with a rule by hand is applied.
pub fn custom() {
    note(|session| session.custom = true);
}

fn note(f: impl FnOnce(&mut Session)) {
    if is_any() {
        CURRENT.with_borrow_mut(|session| session.as_mut().map(f));
    }
}

/// Whether the handle was made in the trace that is going on.
pub fn is_new(handle: &PyTensor) -> bool {
    CURRENT.with_borrow(|session| session.as_ref().is_some_and(|s| is_own(handle, s)))
}

/// Whether a backward pass was run in the trace that is going on.
#[pyfunction]
pub fn _session_walked() -> bool {
    CURRENT.with_borrow(|session| session.as_ref().is_some_and(|s| s.walked))
}

/// Begins to note the tensors that require a gradient and are read.
#[pyfunction]
pub fn _uses_begin() {
    USES.with_borrow_mut(|all| all.push(Vec::new()));
    SESSIONS.fetch_add(1, Ordering::Relaxed);
}

/// The tensors that were read since the last [`_uses_begin`].
#[pyfunction]
pub fn _uses_end() -> Vec<PyTensor> {
    let Some(uses) = USES.with_borrow_mut(Vec::pop) else { return Vec::new() };
    SESSIONS.fetch_sub(1, Ordering::Relaxed);
    uses.into_iter().map(PyTensor::from).collect()
}

/// Begins to watch this thread.
#[pyfunction]
pub fn _session_begin() -> bool {
    let begun = CURRENT.with_borrow_mut(|session| {
        let first = session.is_none();
        if first {
            *session = Some(Session::default());
        }
        first
    });
    if begun {
        SESSIONS.fetch_add(1, Ordering::Relaxed);
    }
    begun
}

/// What was seen: the tensors from outside, and whether some had to become leaves, so that the function is to be traced again.
#[pyfunction]
pub fn _session_end(py: Python<'_>) -> (Met, bool) {
    let session = CURRENT.with_borrow_mut(Option::take);
    let Some(session) = session else { return (Met::default(), false) };
    SESSIONS.fetch_sub(1, Ordering::Relaxed);
    let mut again = false;
    for handle in &session.written {
        again |= handle.bind(py).get().become_buffer();
    }
    let Session { token, met, leaves, custom, .. } = session;
    (Met { counters: met, token: Some(token), leaves, custom }, again)
}

/// Whether this thread traces a function.
#[pyfunction]
pub fn _session_on() -> bool {
    current().is_some()
}

/// The tensors from outside that a traced function read as constants.
#[pyclass(module = "chainrule._chainrule", frozen)]
#[derive(Default)]
pub struct Met {
    counters: Vec<Counter>,
    token: Option<Arc<()>>,
    leaves: Vec<Tensor>,
    custom: bool,
}

#[pymethods]
impl Met {
    /// Whether none of them was written since.
    fn holds(&self) -> bool {
        self.counters.iter().all(|(counter, then)| counter.load(Ordering::Relaxed) == *then)
    }

    /// Whether this tensor, or the one that it is a view of, is among them.
    fn knows(&self, tensor: &Bound<'_, PyTensor>) -> bool {
        let root = tensor.get().root(tensor.py()).unwrap_or_else(|| tensor.clone().unbind());
        let root = root.get();
        let now = root.tensor();
        let counted =
            root.writes.get().is_some_and(|w| self.counters.iter().any(|(c, _)| Arc::ptr_eq(c, w)));
        counted || (now.is_changeable() && self.leaves.iter().any(|t| t.is_same(&now)))
    }

    /// Whether an op with a rule by hand may keep some of what was made.
    fn has_custom(&self) -> bool {
        self.custom
    }

    /// How many handles are left of those that were made in the trace.
    fn left(&self) -> usize {
        self.token.as_ref().map_or(0, |token| Arc::strong_count(token) - 1)
    }
}
