//! Lines of Python that made the nodes of tapes, so that reports name them.
//!
//! Each op notes the code that called it and the instruction in it, which costs some tens of
//! nanoseconds; the line is looked up when a report asks. The latest nodes of a thread are known.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};

use chainrule::Tensor;
use chainrule_core::tensor::node::{Source, coming_number};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use crate::script::folder;

/// The nodes of a thread whose lines are known.
const MOST: usize = 1 << 16;

/// The nodes of one call from Python.
struct Called {
    /// The least number that a node of the call can have.
    first: u64,
    last: u64,
    code: Py<PyAny>,
    /// Offset of the instruction in the code.
    instruction: i32,
}

thread_local! {
    static CALLED: RefCell<VecDeque<Called>> = const { RefCell::new(VecDeque::new()) };
    static FIRST: Cell<u64> = const { Cell::new(0) };
    /// The package's own code, by its address; it stays as long as the package.
    static OWN: RefCell<HashSet<usize>> = RefCell::default();
}

/// A call into the library begins.
#[inline]
pub fn begin() {
    FIRST.set(coming_number());
}

/// A tensor becomes one of Python: its node is of the line that runs.
#[inline]
pub fn note(tensor: &Tensor) {
    if let Source::Node(node) = tensor.source() {
        keep(node.number);
    }
}

fn keep(number: u64) {
    let first = FIRST.get();
    if number < first {
        // Another handle of a tensor that was there before.
        return;
    }
    // Nothing is kept while a thread ends.
    let _ = CALLED.try_with(|called| {
        let Ok(mut called) = called.try_borrow_mut() else { return };
        if called.back().is_some_and(|c| c.last >= number) {
            return;
        }
        let before = called.back().map(|c| c.code.as_ptr());
        let found = Python::attach(|py| running(py, before));
        let Some((code, instruction)) = found else { return };
        if called.len() == MOST {
            called.pop_front();
        }
        called.push_back(Called { first, last: number, code, instruction });
    });
}

/// The user's code that runs, and its instruction. `before` is code that is known to be the user's.
fn running(py: Python<'_>, before: Option<*mut ffi::PyObject>) -> Option<(Py<PyAny>, i32)> {
    // SAFETY: the thread is attached; the frame is borrowed from it while it runs this.
    let frame = unsafe { ffi::PyEval_GetFrame() }.cast::<ffi::PyObject>();
    // SAFETY: a frame or null, which gives none.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, frame) }?;
    loop {
        // SAFETY: it is a frame; its code comes as a reference of our own.
        let code = unsafe { ffi::PyFrame_GetCode(frame.as_ptr().cast()) };
        // SAFETY: as above; null would give none.
        let code = unsafe { Bound::from_owned_ptr_or_opt(py, code.cast()) }?;
        if Some(code.as_ptr()) == before || !is_own(&code)? {
            let instruction = frame.getattr(intern!(py, "f_lasti")).ok()?.extract().ok()?;
            return Some((code.unbind(), instruction));
        }
        frame = frame.getattr(intern!(py, "f_back")).ok().filter(|back| !back.is_none())?;
    }
}

/// A part of the paths of PyTorch's own files, whose functions may call others of it.
const TORCH: &str = if cfg!(windows) { "site-packages\\torch\\" } else { "site-packages/torch/" };

/// Whether code is of this package, or of PyTorch.
fn is_own(code: &Bound<'_, PyAny>) -> Option<bool> {
    let address = code.as_ptr() as usize;
    if OWN.with_borrow(|own| own.contains(&address)) {
        return Some(true);
    }
    let py = code.py();
    let file = code.getattr(intern!(py, "co_filename")).ok()?;
    let file = file.extract::<&str>().ok()?;
    let is_own = file.starts_with(folder(py).ok()?.as_str()) || file.contains(TORCH);
    if is_own {
        // Kept alive, so that no other code gets its address.
        std::mem::forget(code.clone());
        OWN.with_borrow_mut(|own| own.insert(address));
    }
    Some(is_own)
}

/// The line that made a node, by its number.
pub fn line_of(number: u64) -> Option<(String, u32)> {
    let (code, at) = CALLED
        .try_with(|called| {
            let called = called.try_borrow().ok()?;
            let found = called.get(called.partition_point(|c| c.last < number))?;
            let is_of_it = found.first <= number;
            is_of_it.then(|| Python::attach(|py| (found.code.clone_ref(py), found.instruction)))
        })
        .ok()??;
    Python::attach(|py| {
        let code = code.bind(py);
        let file = code.getattr(intern!(py, "co_filename")).ok()?.extract().ok()?;
        for row in code.call_method0(intern!(py, "co_lines")).ok()?.try_iter().ok()? {
            let (first, end, line): (i32, i32, Option<u32>) = row.ok()?.extract().ok()?;
            if (first..end).contains(&at) {
                return line.map(|line| (file, line));
            }
        }
        None
    })
}
