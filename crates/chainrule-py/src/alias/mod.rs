//! Handles that alias, over values that never change.
//!
//! As in PyTorch a view, `detach()`, `.data` and `.grad` show the memory of another tensor. A
//! handle remembers whose, and how it was taken; a write through any of them makes a new value of
//! the tensor at the root, and the others take theirs from it when they are read next
//! (functionalisation). A tensor that nobody took a view of has no record, and a view that nobody
//! wrote through costs a comparison.
//!
//! Three links are enough:
//! - **View**: the elements are taken from a root by a path of steps. `detach()` and `.data` are a
//!   step without a tape.
//! - **Over**: a tensor on the tape whose elements lie in another one without a tape, its first
//!   `detach()`. It is this way round so that a detached loss does not keep the graph.
//! - **Grad**: what the leaf has as its gradient.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard, PoisonError};

use chainrule::Tensor;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use self::path::Path;
use crate::error::{fail_late, run};
use crate::handle::Inner;
use crate::session;
use crate::tensor::PyTensor;

mod gradient;
mod parts;
mod path;
mod root;
mod shown;
mod views;
mod write;

pub use path::Step;
pub use root::{Past, Root, Views};
pub use shown::{Behind, Shown, Shows, follow_behind};
pub use views::ViewPath;
pub use write::check_outside;

/// The owner of the memory that a handle shows.
pub enum Link {
    View { root: Root, path: Path },
    Over { memory: Py<PyTensor> },
    Grad { leaf: Tensor },
}

impl Link {
    /// The handles that it keeps alive.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Link::View { root, .. } => root.traverse(visit),
            Link::Over { memory } => visit.call(memory),
            Link::Grad { .. } => Ok(()),
        }
    }
}

/// The memory that a handle shows, and how far the handle has followed it.
pub struct Alias {
    pub link: Link,
    pub seen: Seen,
}

/// The state that a handle was computed from when it was read last.
#[derive(Clone, Default)]
pub struct Seen {
    version: u64,
    /// The value of a root that is a leaf, which changes behind its handles.
    value: Option<Tensor>,
    /// Whether the root is neither a leaf nor linked to another tensor, so that its version says
    /// all.
    settled: bool,
}

impl Seen {
    fn of(version: u64, root: &Tensor, linked: bool) -> Seen {
        let changeable = root.is_changeable();
        Seen { version, value: changeable.then(|| root.detach()), settled: !changeable && !linked }
    }
}

impl Inner {
    #[inline]
    pub fn link(&self) -> Option<&Link> {
        self.alias.as_deref().map(|alias| &alias.link)
    }

    /// Makes the handle show other memory.
    pub fn show(&mut self, link: Link, seen: Seen) {
        self.alias = Some(Box::new(Alias { link, seen }));
    }

    /// Whether the value can change behind the handle: a leaf's, or a gradient's.
    pub fn is_changeable(&self) -> bool {
        self.tensor.is_changeable() || matches!(self.link(), Some(Link::Grad { .. }))
    }

    /// Whether it is a constant that shows nobody's memory.
    pub fn is_plain(&self) -> bool {
        self.alias.is_none() && self.tensor.is_leaf() && !self.tensor.is_changeable()
    }

    /// Whether the tensor is that of its root, as far as can be told without looking for long.
    #[inline]
    fn is_current(&self) -> bool {
        let Some(Alias { link, seen }) = self.alias.as_deref() else { return true };
        match link {
            Link::View { root, .. } => {
                let Some(root) = root.direct() else { return false };
                match &seen.value {
                    None => seen.settled && root.version() == seen.version,
                    Some(value) => {
                        let root = root.lock();
                        root.alias.is_none()
                            && root.tensor.is_changeable()
                            && !self.tensor.is_changeable()
                            && root.tensor.is_same_value(value)
                    }
                }
            }
            Link::Over { memory } => {
                memory.get().version() == seen.version && memory.get().lock().is_plain()
            }
            Link::Grad { .. } => false,
        }
    }
}

impl PyTensor {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensor that the handle holds now.
    #[inline]
    pub fn tensor(&self) -> Tensor {
        let inner = self.lock();
        if !session::is_any() && inner.is_current() {
            return inner.tensor.clone();
        }
        drop(inner);
        self.current()
    }

    /// Its value now without the tape. Errors where the value lies on a device that cannot give it.
    pub fn untaped(&self) -> PyResult<Tensor> {
        let t = self.tensor();
        run(|| t.catch_up().map(|()| t.detach()))
    }

    #[inline(never)]
    fn current(&self) -> Tensor {
        let fresh = match self.of_leaf() {
            Some(gradient) => gradient.map(|g| (g, Seen::default())),
            None => Python::attach(|py| self.fresh(py)),
        };
        let tensor = match fresh {
            None => self.lock().tensor.clone(),
            Some((tensor, seen)) => {
                let mut inner = self.lock();
                let kept = inner.tensor.is_same(&tensor) && inner.tensor.is_same_value(&tensor);
                inner.tensor = tensor.clone();
                if let Some(alias) = &mut inner.alias {
                    alias.seen = seen;
                }
                drop(inner);
                if !kept {
                    // Views of this handle have to be read again.
                    self.bump();
                }
                tensor
            }
        };
        session::met(self, &tensor);
        tensor
    }

    /// The gradient as the leaf has it now, if this is the handle of one; nothing in it if the
    /// handle is to show what it did.
    fn of_leaf(&self) -> Option<Option<Tensor>> {
        let inner = self.lock();
        let Some(Link::Grad { leaf }) = inner.link() else { return None };
        let now = leaf.grad().filter(|_| !leaf.has_lost_grad());
        Some(now.filter(|g| !g.is_same_value(&inner.tensor)))
    }

    /// The handle's tensor, if it has changed since it was read last.
    fn fresh(&self, py: Python<'_>) -> Option<(Tensor, Seen)> {
        let inner = self.lock();
        let Alias { link, seen } = inner.alias.as_deref()?;
        let (old, seen) = (inner.tensor.clone(), seen.clone());
        match link {
            Link::Grad { .. } => None,
            Link::View { root, path } => {
                let (root, path) = (root.get(py), path.clone());
                drop(inner);
                let linked = root.get().lock().alias.is_some();
                let (root, version) = root.get().with_version();
                if let Err(e) = root.catch_up() {
                    fail_late(e);
                    return None;
                }
                views::retaken(&old, &root, (version, linked), &path, &seen)
            }
            Link::Over { memory } => {
                let memory = memory.clone_ref(py);
                drop(inner);
                let (now, version) = memory.get().with_version();
                let changed = now.is_changeable() && !now.is_same_value(&old);
                (version != seen.version || changed).then(|| {
                    (old.revalued(&now).unwrap_or(now), Seen { version, ..Seen::default() })
                })
            }
        }
    }

    /// The tensor with the number of writes that it has seen.
    fn with_version(&self) -> (Tensor, u64) {
        let tensor = self.tensor();
        (tensor, self.version())
    }

    pub fn version(&self) -> u64 {
        self.writes.get().map_or(0, |v| v.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Whether a program that is still there took the value as a constant.
    fn is_met(&self) -> bool {
        self.writes.get().is_some_and(|w| Arc::strong_count(w) > 1)
    }

    /// Tells programs that the leaf is not what it was; the counter that says so.
    pub fn replaced(&self) -> Arc<AtomicU64> {
        self.bump_by(session::REPLACED);
        self.writes.get_or_init(Default::default).clone()
    }

    fn bump(&self) {
        self.bump_by(1);
    }

    fn bump_by(&self, n: u64) {
        let counter = self.writes.get_or_init(Default::default);
        counter.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// Gives the handle another tensor, whatever it was.
    pub fn replace(&self, new: Tensor) {
        self.lock().tensor = new;
        self.bump_by(session::REPLACED);
    }

    /// The tensor, if it is a constant that shows nobody's memory.
    pub fn constant(&self) -> Option<Tensor> {
        let inner = self.lock();
        inner.is_plain().then(|| inner.tensor.clone())
    }

    /// Makes the handle a leaf whose value lasts from run to run of a program, if it is a constant.
    pub fn become_buffer(&self) -> bool {
        let t = self.tensor();
        let mut inner = self.lock();
        let can = inner.alias.is_none() && t.is_leaf() && !t.is_changeable();
        if can {
            inner.tensor = t.buffer();
            drop(inner);
            self.bump_by(session::REPLACED);
        }
        can
    }

    /// The tensor at the root of a view.
    pub fn root(&self, py: Python<'_>) -> Option<Py<PyTensor>> {
        match self.lock().link() {
            Some(Link::View { root, .. }) => Some(root.get(py).unbind()),
            Some(Link::Over { memory }) => Some(memory.clone_ref(py)),
            _ => None,
        }
    }

    /// Makes it require a gradient: a leaf of its own, which the tensor that it was detached from
    /// shows from now on.
    pub fn become_leaf(slf: &Bound<'_, Self>, t: &Tensor) -> PyResult<()> {
        let leaf = run(|| t.try_parameter())?;
        slf.get().replace(leaf.clone());
        PyTensor::note_behind(slf)?;
        let alias = slf.get().lock().alias.take_if(|a| matches!(a.link, Link::View { .. }));
        let Some(Link::View { root, path }) = alias.as_deref().map(|a| &a.link) else {
            return Ok(());
        };
        let root = root.get(slf.py());
        let mut inner = root.get().lock();
        if inner.is_plain() && path.is_only_detached() {
            let link = Link::View { root: Root::of(slf), path: Path::of(Step::Detached) };
            inner.show(link, Seen::of(slf.get().version(), &leaf, false));
            drop(inner);
            root.get().bump();
            return PyTensor::hand_arrays(root.get(), slf);
        }
        // Two leaves of one memory, as of `nn.Parameter(p.data)`.
        let shares = inner.alias.is_none() && inner.tensor.is_changeable();
        let twin = (shares && path.is_only_detached()).then(|| inner.tensor.try_twin());
        drop(inner);
        if let Some(twin) = twin {
            slf.get().replace(run(|| twin)?);
            root.get().bump_by(session::REPLACED);
            return Ok(());
        }
        let is_held = parts::is_seen(&root);
        if is_held && let Some(part) = parts::leaf_of(&root, path)? {
            slf.get().replace(part);
            return Ok(());
        }
        drop(alias);
        if is_held {
            let why = c"requires_grad: the new leaf has the values of another tensor and no memory with it, for that is computed, or has the memory \
                        of an array, or several elements in one place: a step on one is not seen by the other; take clone() to say so";
            PyErr::warn(slf.py(), &slf.py().get_type::<PyRuntimeWarning>(), why, 1)?;
        }
        Ok(())
    }
}
