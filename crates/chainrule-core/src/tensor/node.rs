//! The tape: leaves, the nodes that record one use of an op each, and the modes of recording.
//!
//! A node keeps *values*, not tensors, so a saved output makes no cycle. Nodes and leaves share one
//! numbering: everything that an op takes has a smaller number than its result, so walking down the
//! numbers is walking backward in a valid order.

use std::any::Any;
use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::behind::raise_fault;
use super::memory::LeafMemory;
use super::op::{Op, Saves, Wanted};
use super::value::{Meta, Value};
use super::{Tensor, log};
use crate::dtype::DType;

/// Source of a tensor's gradient: an op, a leaf, or none.
#[derive(Clone)]
pub enum Source {
    /// Nothing that needs a gradient.
    None,
    /// A leaf that was given its value.
    Leaf(Arc<Leaf>),
    /// A recorded op.
    Node(Arc<Node>),
}

impl Source {
    #[inline]
    pub fn requires_grad(&self) -> bool {
        match self {
            Source::None => false,
            Source::Leaf(leaf) => leaf.requires_grad.load(Ordering::Relaxed),
            Source::Node(_) => true,
        }
    }

    /// Shape and dtype, where the tape knows them.
    #[inline]
    pub fn meta(&self) -> Option<Meta> {
        match self {
            Source::None => None,
            Source::Leaf(leaf) => Some(leaf.meta),
            Source::Node(node) => Some(node.meta),
        }
    }

    /// The number on the tape; 0 for a constant.
    #[inline]
    pub fn number(&self) -> u64 {
        match self {
            Source::None => 0,
            Source::Leaf(leaf) => leaf.number,
            Source::Node(node) => node.number,
        }
    }

    /// Name, hooks and gradient, if it has any.
    pub fn notes(&self) -> Option<MutexGuard<'_, Option<Box<Notes>>>> {
        let notes = match self {
            Source::None => return None,
            Source::Leaf(leaf) => &leaf.notes,
            Source::Node(node) => &node.notes,
        };
        Some(lock(notes))
    }

    pub fn name(&self) -> Option<String> {
        self.notes()?.as_ref()?.name.clone()
    }

    /// Whether nothing else holds the leaf or the node.
    fn is_sole(&self) -> bool {
        match self {
            Source::None => false,
            Source::Leaf(leaf) => Arc::strong_count(leaf) == 1,
            Source::Node(node) => Arc::strong_count(node) == 1,
        }
    }

    /// Objects that hooks hold, of this source and of those above it, if nothing else holds them.
    pub fn visit_held(&self, visit: &mut dyn FnMut(&HeldObject)) {
        if HELD.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut next = vec![self];
        while let Some(source) = next.pop() {
            if !source.is_sole() {
                continue;
            }
            if let Some(notes) = source.notes().as_deref().and_then(Option::as_ref) {
                notes.hooks.iter().filter_map(|h| h.held.as_ref()).for_each(&mut *visit);
            }
            if let Source::Node(node) = source {
                next.extend(&node.inputs);
            }
        }
    }
}

/// A function that sees a gradient and may replace it.
pub(crate) type Hook = Arc<dyn Fn(&Tensor) -> Option<Tensor> + Send + Sync>;

/// An object of another language that a hook calls, for its collector.
pub type HeldObject = Arc<dyn Any + Send + Sync>;

/// A hook, with the number by which it is removed.
pub struct Registered {
    pub number: u64,
    pub hook: Hook,
    pub held: Option<HeldObject>,
}

/// Count of hooks that hold an object: if there are none, the search is skipped.
static HELD: AtomicUsize = AtomicUsize::new(0);

impl Registered {
    pub fn new(number: u64, hook: Hook, held: Option<HeldObject>) -> Registered {
        HELD.fetch_add(held.is_some().into(), Ordering::Relaxed);
        Registered { number, hook, held }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        HELD.fetch_sub(self.held.is_some().into(), Ordering::Relaxed);
    }
}

/// Rarely used parts of a tensor: a name, a kept gradient, hooks.
#[derive(Default)]
pub struct Notes {
    pub name: Option<String>,
    /// Whether backward keeps the gradient of this intermediate.
    pub retain: bool,
    pub grad: Option<Tensor>,
    /// A leaf that holds the gradient, in memory shared with others.
    pub home: Option<Tensor>,
    /// Whether a program used up the gradient without returning it: it is not none, but its value
    /// is gone.
    pub lost: bool,
    pub hooks: Vec<Registered>,
    /// The leaf that replaced this one.
    pub heir: Option<Source>,
    /// The value of an intermediate, inside `record_all`.
    pub value: Option<Arc<Value>>,
}

impl Notes {
    /// The gradient, read from its home. A trace has stand-ins for gradients.
    pub fn grad_now(&mut self) -> Option<Tensor> {
        if !log::is_on() {
            self.read_home();
        }
        self.grad.clone()
    }

    /// Takes the gradient from its home.
    pub fn read_home(&mut self) {
        let Some(Source::Leaf(home)) = self.home.as_ref().map(Tensor::source) else { return };
        let value = home.now();
        let new = Tensor::from_parts(value, Source::None);
        if !self.grad.as_ref().is_some_and(|grad| grad.is_same_value(&new)) {
            self.grad = Some(new);
        }
    }

    /// Sets the gradient, in its home if it has one, or clears it.
    pub fn put_grad(&mut self, grad: Option<Tensor>) -> crate::error::Result<()> {
        match (&self.home, &grad) {
            (Some(home), Some(grad)) if !log::is_on() => home.try_set(&grad.detach())?,
            (Some(_), None) => self.home = None,
            _ => {}
        }
        (self.grad, self.lost) = (grad, false);
        Ok(())
    }
}

/// A tensor whose value is given, not computed: a parameter, an input, a buffer. The only kind that
/// can change, by getting a new value.
pub struct Leaf {
    pub number: u64,
    pub meta: Meta,
    pub requires_grad: AtomicBool,
    /// The memory, which twins share.
    pub value: Arc<LeafMemory>,
    /// Whether another leaf has replaced this one.
    pub left: AtomicBool,
    pub notes: Mutex<Option<Box<Notes>>>,
}

impl Leaf {
    pub fn new(value: Arc<Value>, requires_grad: bool) -> Leaf {
        Leaf {
            number: next_number(),
            meta: value.meta,
            requires_grad: AtomicBool::new(requires_grad),
            value: LeafMemory::new(value),
            left: AtomicBool::new(false),
            notes: Mutex::new(None),
        }
    }

    /// A leaf that requires a gradient, over existing memory.
    pub fn over(value: Arc<LeafMemory>) -> Leaf {
        let meta = value.here().meta;
        Leaf {
            number: next_number(),
            meta,
            requires_grad: AtomicBool::new(true),
            value,
            left: AtomicBool::new(false),
            notes: Mutex::new(None),
        }
    }

    /// The leaf that replaced this one, if there is one.
    #[inline]
    pub fn heir(&self) -> Option<Source> {
        if !self.left.load(Ordering::Acquire) {
            return None;
        }
        let heir = lock(&self.notes).as_ref()?.heir.clone()?;
        let next = match &heir {
            Source::Leaf(leaf) => leaf.heir(),
            _ => None,
        };
        next.or(Some(heir))
    }

    /// Gives the memory a new value.
    #[inline]
    pub fn put(&self, value: Arc<Value>) -> crate::error::Result<()> {
        self.value.put(value)
    }

    /// The value, fetched first if a newer one is elsewhere. Panics if that fails:
    /// [`LeafMemory::catch_up`] reports it before.
    #[inline]
    pub fn now(&self) -> Arc<Value> {
        if let Err(e) = self.value.catch_up() {
            raise_fault(e)
        }
        self.value.here().clone()
    }

    /// As [`Leaf::now`], of a leaf that a trace may meet.
    #[inline]
    pub fn value(self: &Arc<Leaf>) -> Arc<Value> {
        if log::is_on() {
            self.now();
            log::meet(self);
        }
        self.now()
    }
}

/// One use of an op on the tape.
pub struct Node {
    pub number: u64,
    pub op: Arc<dyn Op>,
    /// Meta of the result.
    pub meta: Meta,
    /// The line that called the op.
    pub location: &'static Location<'static>,
    pub inputs: SmallVec<[Source; 2]>,
    pub saved: Mutex<SavedValues>,
    pub notes: Mutex<Option<Box<Notes>>>,
}

/// Values of the forward pass that backward needs.
#[derive(Clone, Default)]
pub struct SavedValues {
    pub inputs: SmallVec<[Option<Arc<Value>>; 2]>,
    pub output: Option<Arc<Value>>,
    pub extra: SmallVec<[Arc<Value>; 1]>,
    /// Set once backward has taken them.
    pub freed: bool,
    /// Whether these are constants that no rule asks for, kept for who reads the tape.
    pub only_shown: bool,
}

/// Constants of up to this many elements stay on the tape, so that a trace shows the 3 of `x + 3`.
const SHOWN: usize = 8;

impl SavedValues {
    /// Takes the values out, once. A node that saved nothing for its rule has nothing to free: it
    /// can be walked again.
    pub fn take(&mut self) -> SavedValues {
        let is_empty = self.inputs.is_empty() && self.output.is_none() && self.extra.is_empty();
        if is_empty || self.only_shown {
            return self.clone();
        }
        std::mem::replace(self, SavedValues { freed: true, ..SavedValues::default() })
    }
}

impl Node {
    /// Records a use of `op`. `extra` are the further results of the kernel.
    #[inline]
    pub fn record(
        op: Arc<dyn Op>,
        inputs: &[&Tensor],
        values: &[Arc<Value>],
        output: &Arc<Value>,
        extra: &[Arc<Value>],
        location: &'static Location<'static>,
    ) -> Arc<Node> {
        let mode = Mode::get();
        let mut wanted = Wanted::NONE;
        let mut sources: SmallVec<[Source; 2]> = SmallVec::new();
        for (i, t) in inputs.iter().enumerate() {
            if t.requires_grad() {
                wanted = wanted.with(i);
                sources.push(t.source().clone());
            } else {
                sources.push(Source::None);
            }
        }
        let saves = match () {
            _ if mode.has(Mode::SAVE_NOTHING) => Saves::NOTHING,
            _ if mode.has(Mode::SAVE_ALL) => Saves::ALL,
            _ => op.saves(wanted),
        };
        let mut saved = SavedValues::default();
        let is_shown =
            |i: usize| matches!(sources[i], Source::None) && values[i].meta.shape.numel() <= SHOWN;
        let shows = !mode.has(Mode::SAVE_NOTHING) && (0..sources.len()).any(is_shown);
        saved.only_shown = shows && saves == Saves::NOTHING;
        if shows || saves != Saves::NOTHING {
            for (i, v) in values.iter().enumerate() {
                let is_kept = saves.has_input(i) || shows && is_shown(i);
                saved.inputs.push(is_kept.then(|| v.clone()));
            }
            saved.output = saves.output.then(|| output.clone());
            if saves.extra {
                saved.extra = extra.iter().cloned().collect();
            }
        }
        let notes = mode.has(Mode::RECORD_ALL).then(|| {
            Box::new(Notes { retain: true, value: Some(output.clone()), ..Notes::default() })
        });
        Arc::new(Node {
            number: next_number(),
            op,
            meta: output.meta,
            location,
            inputs: sources,
            saved: Mutex::new(saved),
            notes: Mutex::new(notes),
        })
    }

    /// Whether each input carries a gradient.
    #[inline]
    pub fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::NONE;
        for (i, source) in self.inputs.iter().enumerate() {
            if source.requires_grad() {
                wanted = wanted.with(i);
            }
        }
        wanted
    }
}

impl Drop for Node {
    /// Frees a whole graph in a loop: the default would recurse once for each link of a chain.
    fn drop(&mut self) {
        let mut below: SmallVec<[Arc<Node>; 4]> = SmallVec::new();
        take_nodes(&mut self.inputs, &mut below);
        while let Some(mut node) = below.pop() {
            if let Some(node) = Arc::get_mut(&mut node) {
                take_nodes(&mut node.inputs, &mut below);
            }
        }
    }
}

#[inline]
fn take_nodes(inputs: &mut SmallVec<[Source; 2]>, below: &mut SmallVec<[Arc<Node>; 4]>) {
    for source in inputs {
        if let Source::Node(node) = std::mem::replace(source, Source::None) {
            below.push(node);
        }
    }
}

/// Locks, even if another thread panicked while it held the lock: every write behind these locks is
/// a single assignment.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static NEXT: AtomicU64 = AtomicU64::new(1);

#[inline]
/// A number that no leaf or node has yet.
pub fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The number that the next node or leaf gets, unless another thread is faster.
#[inline]
pub fn coming_number() -> u64 {
    NEXT.load(Ordering::Relaxed)
}

/// Recording mode of this thread, as flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode(u8);

impl Mode {
    /// Nothing is recorded.
    pub const NO_GRAD: Mode = Mode(1);
    /// Every intermediate keeps value and gradient.
    pub const RECORD_ALL: Mode = Mode(2);
    /// Nodes keep all that forward mode needs.
    pub const SAVE_ALL: Mode = Mode(4);
    /// Nodes keep only their place in the graph.
    pub const SAVE_NOTHING: Mode = Mode(8);
    /// A log of the ops that run is kept.
    pub const WATCHED: Mode = Mode(32);
    /// Every op goes into the log of a trace.
    pub const TRACE: Mode = Mode(16);
    /// Products of f32 take their operands as bf16.
    pub const BF16: Mode = Mode(64);
    /// A gradient that is NaN is an error.
    pub const CHECK_NAN: Mode = Mode(128);
    const DEFAULT: Mode = Mode(0);

    #[inline]
    pub fn get() -> Mode {
        MODE.get()
    }

    #[inline]
    pub fn has(self, flag: Mode) -> bool {
        self.0 & flag.0 != 0
    }

    #[inline]
    pub fn with(self, flag: Mode) -> Mode {
        Mode(self.0 | flag.0)
    }

    #[inline]
    pub fn without(self, flag: Mode) -> Mode {
        Mode(self.0 & !flag.0)
    }

    /// Whether products of this dtype take their operands as bf16.
    #[inline]
    pub fn rounds(self, dtype: DType) -> bool {
        self.has(Mode::BF16) && dtype == DType::F32
    }

    /// The mode with the precision of products that was in force when something was recorded.
    #[inline]
    pub fn rounding(self, bf16: bool) -> Mode {
        if bf16 { self.with(Mode::BF16) } else { self.without(Mode::BF16) }
    }

    /// Sets the mode until it is set again.
    pub fn set(self) {
        MODE.set(self);
    }

    /// Sets the mode until the guard is dropped, also by a panic.
    #[inline]
    pub fn enter(self) -> ModeGuard {
        ModeGuard { before: MODE.replace(self) }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::DEFAULT) };
}

/// Sets the mode back when dropped.
pub struct ModeGuard {
    before: Mode,
}

impl Drop for ModeGuard {
    #[inline]
    fn drop(&mut self) {
        MODE.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stays_within_its_budget() {
        assert!(size_of::<Node>() + 16 <= 320, "a node takes {} bytes", size_of::<Node>() + 16);
    }
}
