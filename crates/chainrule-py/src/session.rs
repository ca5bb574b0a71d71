//! A compiled function while it is traced: what it made, and what it met of the world outside.
//!
//! A program does again what the traced function did to tensors. A tensor from outside that is no
//! leaf is therefore a constant of the program, which is only good as long as nobody writes there:
//! the counters of writes tell. One that the function itself wrote to has to become a leaf before
//! it is traced again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use chainrule::Tensor;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::error::GradientError;
use crate::tensor::PyTensor;

/// A tensor's counter of writes, and where it stood.
type Counter = (Arc<AtomicU64>, u64);

/// A leaf from outside, as it was when it was met.
struct Leaf {
    tensor: Tensor,
    requires_grad: bool,
    /// Counter of the handle, which may be given another leaf.
    counter: Counter,
}

impl Leaf {
    fn is_as_it_was(&self) -> bool {
        let (counter, then) = &self.counter;
        self.requires_grad == self.tensor.requires_grad()
            && counter.load(Ordering::Relaxed) / REPLACED == then / REPLACED
    }
}

#[derive(Default)]
struct Session {
    /// Held by each handle that was made since it began.
    token: Arc<()>,
    met: Vec<Counter>,
    /// Constants from outside that the function writes, and what they were.
    written: Vec<(Py<PyTensor>, Tensor)>,
    leaves: Vec<Leaf>,
    /// Leaves from outside that are written.
    states: Vec<Py<PyTensor>>,
    /// Optimizers that made a step.
    stepped: Vec<Py<PyAny>>,
    /// Leaves from outside whose gradient is set or forgotten.
    forgetful: Vec<Py<PyTensor>>,
    /// Large arrays that became tensors, with a checksum; small ones are compared by their bytes.
    arrays: Vec<(Py<PyAny>, u64)>,
    /// Whether a backward pass used a graph up.
    walked: bool,
    /// Whether an op with a rule by hand was applied, which keeps tensors of its own.
    custom: bool,
    /// Whether a leaf was met whose memory another one has, too.
    twins: bool,
}

/// A counter of writes rises by this much where a handle is given another leaf; a write adds one.
pub const REPLACED: u64 = 1 << 40;

/// Added to a tensor's count of writes when its memory gets a handle of its own: views of it look
/// there from then on, and keep what they have.
pub const LINKED: u64 = 1 << 32;

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

/// Token of the handles that are made while this thread traces.
#[inline]
pub fn current() -> Option<Arc<()>> {
    if !is_any() {
        return None;
    }
    CURRENT.with_borrow(|session| session.as_ref().map(|s| s.token.clone()))
}

fn is_own(handle: &PyTensor, session: &Session) -> bool {
    let inner = handle.lock();
    let born = inner.rest.as_ref().and_then(|rest| rest.born.as_ref());
    born.is_some_and(|born| Arc::ptr_eq(born, &session.token))
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
        let counter = handle.writes.get_or_init(Default::default);
        session.twins |= tensor.has_twin();
        if tensor.is_changeable() {
            let known = |leaf: &Leaf| Arc::ptr_eq(&leaf.counter.0, counter);
            if !session.leaves.iter().any(known) {
                session.leaves.push(Leaf {
                    tensor: tensor.clone(),
                    requires_grad: tensor.requires_grad(),
                    counter: (counter.clone(), counter.load(Ordering::Relaxed)),
                });
            }
            return;
        }
        if !session.met.iter().any(|(c, _)| Arc::ptr_eq(c, counter)) {
            session.met.push((counter.clone(), counter.load(Ordering::Relaxed)));
        }
    });
}

/// A handle is about to be written. The program would not know of one from outside that is no leaf.
pub fn written(handle: &Bound<'_, PyTensor>) -> PyResult<()> {
    if !is_any() {
        return Ok(());
    }
    let root = handle.get().root(handle.py()).unwrap_or_else(|| handle.clone().unbind());
    let refused = CURRENT.with_borrow_mut(|session| {
        let Some(session) = session else { return false };
        if is_own(root.get(), session) {
            return false;
        }
        if root.get().lock().tensor.is_changeable() {
            if !session.states.iter().any(|s| s.is(&root)) {
                session.states.push(root.clone_ref(handle.py()));
            }
            return false;
        }
        // It goes on to find all of them; then they become leaves, and it is traced again.
        if let Some(tensor) = root.get().constant() {
            if !session.written.iter().any(|(w, _)| w.is(&root)) {
                session.written.push((root.clone_ref(handle.py()), tensor));
            }
            return false;
        }
        true
    });
    match refused {
        false => Ok(()),
        true => Err(GradientError::new_err(
            "compile: the function writes to a tensor from outside that was computed from others; write to it outside, or detach it first",
        )),
    }
}

/// A backward pass is over.
pub fn walked() {
    note(|session| session.walked = true);
}

/// The gradient of a handle is set, or forgotten.
pub fn gradient_set(handle: &Bound<'_, PyTensor>) {
    note(|session| {
        if !is_own(handle.get(), session) && !session.forgetful.iter().any(|p| p.is(handle)) {
            session.forgetful.push(handle.clone().unbind());
        }
    });
}

/// An array becomes a tensor.
pub fn array_read(array: &Bound<'_, PyAny>) -> PyResult<()> {
    const LARGE: usize = 1 << 16;
    if current().is_some() && array.getattr("nbytes")?.extract::<usize>()? > LARGE {
        let sum = checksum(array)?;
        note(|session| session.arrays.push((array.clone().unbind(), sum)));
    }
    Ok(())
}

fn checksum(array: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bytes = array.call_method0("tobytes")?;
    array.py().import("zlib")?.call_method1("crc32", (bytes,))?.extract()
}

/// An optimizer of Python makes a step, which writes these parameters.
#[pyfunction]
pub fn _session_stepped(optimizer: Bound<'_, PyAny>, parameters: Vec<Py<PyTensor>>) {
    note(|session| {
        if !session.stepped.iter().any(|o| o.is(&optimizer)) {
            session.stepped.push(optimizer.unbind());
        }
        for p in parameters {
            if !session.states.iter().any(|s| s.is(&p)) {
                session.states.push(p);
            }
        }
    });
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
    is_walked()
}

/// Whether the trace that is going on met a leaf whose memory another one has, too: a program has a
/// place of its own for each.
#[pyfunction]
pub fn _session_twins() -> bool {
    CURRENT.with_borrow(|session| session.as_ref().is_some_and(|s| s.twins))
}

/// Whether a backward pass used up a graph in the trace that is going on.
pub fn is_walked() -> bool {
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

/// The record of the trace: the tensors from outside, and whether some had to become leaves, so
/// that the function is to be traced again.
#[pyfunction]
pub fn _session_end(py: Python<'_>) -> PyResult<(Met, bool)> {
    let session = CURRENT.with_borrow_mut(Option::take);
    let Some(session) = session else { return Ok((Met::default(), false)) };
    SESSIONS.fetch_sub(1, Ordering::Relaxed);
    let mut again = false;
    for (handle, tensor) in session.written {
        handle.get().replace(tensor);
        again |= handle.get().become_buffer();
        PyTensor::note_behind(handle.bind(py))?;
    }
    let Session { token, met, leaves, custom, states, stepped, forgetful, arrays, .. } = session;
    let token = Some(token);
    let met = Met { counters: met, token, leaves, custom, states, stepped, forgetful, arrays };
    Ok((met, again))
}

/// Whether this thread traces a function.
#[pyfunction]
pub fn _session_on() -> bool {
    current().is_some()
}

/// The tensors from outside that a traced function read or wrote.
#[pyclass(module = "chainrule._chainrule", frozen)]
#[derive(Default)]
pub struct Met {
    /// Counters of those that were read as constants.
    counters: Vec<Counter>,
    token: Option<Arc<()>>,
    leaves: Vec<Leaf>,
    custom: bool,
    states: Vec<Py<PyTensor>>,
    stepped: Vec<Py<PyAny>>,
    forgetful: Vec<Py<PyTensor>>,
    arrays: Vec<(Py<PyAny>, u64)>,
}

#[pymethods]
impl Met {
    /// Whether no constant was written since, and each leaf is the one that it was and has a
    /// gradient or none as it had.
    pub fn holds(&self, py: Python<'_>) -> bool {
        let same =
            |(array, sum): &(Py<PyAny>, u64)| checksum(array.bind(py)).is_ok_and(|s| s == *sum);
        self.counters.iter().all(|(counter, then)| counter.load(Ordering::Relaxed) == *then)
            && self.leaves.iter().all(Leaf::is_as_it_was)
            && self.arrays.iter().all(same)
    }

    /// Whether this tensor, or the one that it is a view of, is among them.
    pub fn knows(&self, tensor: &Bound<'_, PyTensor>) -> bool {
        let root = tensor.get().root(tensor.py()).unwrap_or_else(|| tensor.clone().unbind());
        let root = root.get();
        let now = root.tensor();
        let counted =
            root.writes.get().is_some_and(|w| self.counters.iter().any(|(c, _)| Arc::ptr_eq(c, w)));
        counted || (now.is_changeable() && self.leaves.iter().any(|l| l.tensor.is_same(&now)))
    }

    /// Whether an op with a rule by hand may keep some of what was made.
    fn has_custom(&self) -> bool {
        self.custom
    }

    /// Number of handles left of those that were made in the trace.
    fn left(&self) -> usize {
        self.token.as_ref().map_or(0, |token| Arc::strong_count(token) - 1)
    }

    /// The optimizers that made a step.
    fn stepped(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.stepped.iter().map(|o| o.clone_ref(py)).collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.states.iter().try_for_each(|s| visit.call(s))?;
        self.forgetful.iter().try_for_each(|p| visit.call(p))?;
        self.arrays.iter().try_for_each(|(a, _)| visit.call(a))?;
        self.stepped.iter().try_for_each(|o| visit.call(o))
    }
}

impl Met {
    /// An error if an array of NumPy shows the memory of a leaf that the program writes.
    pub fn check_states(&self, py: Python<'_>) -> PyResult<()> {
        self.states.iter().try_for_each(|s| crate::alias::check_outside(s.bind(py)))
    }

    /// The work before a run: handles of gradients that the function forgets stay with what
    /// they show.
    pub fn begin(&self) {
        self.forgetful.iter().for_each(|p| p.get().cut_gradient());
    }

    /// Whether the program writes the memory of this tensor.
    pub fn writes(&self, tensor: &Bound<'_, PyTensor>) -> bool {
        if self.states.is_empty() {
            return false;
        }
        let root = tensor.get().root(tensor.py());
        let root = root.as_ref().map_or(tensor.as_ptr(), |r| r.as_ptr());
        self.states.iter().any(|s| s.as_ptr() == root)
    }
}
