//! The log of a trace: every op that a thread applies while it is on, with the values that went in
//! and came out.
//!
//! The ops run as usual, on real values; the log identifies values by their address, and lets no
//! address be used twice, though the elements of a result may be freed. A leaf gets a stand-in for
//! its value when it is first met, so that its value is not mistaken for a constant that shares its
//! memory, and it gets its value back when the trace ends: a trace changes nothing. The log is
//! interpreted by `program/`.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::Tensor;
use super::node::{Leaf, Mode, ModeGuard, Source, lock, next_number};
use super::op::{Op, Outcome};
use super::place::{Place, Script};
use super::scope;
use super::value::{Meta, Value};
use crate::error::{Error, Result};
use crate::rng::{self, Generator, Stream};

/// The cause of a use of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The user's own code.
    Forward,
    /// The reverse rule of the op named, whose node has this number and was recorded at the line
    /// given.
    Rule { op: &'static str, node: u64, called: &'static Location<'static> },
    /// The walk backward between the rules: parts of a gradient are summed.
    Walk,
    /// An optimizer.
    Update,
}

/// A value as the log holds it.
pub enum Held {
    /// Made by an op of the trace: the program makes it anew, so only its identity has to last, not
    /// its elements.
    Made { value: Weak<Value>, meta: Meta },
    /// From elsewhere: unless more becomes known about it, it is a constant of the program.
    Given(Arc<Value>),
}

impl Held {
    fn made(value: &Arc<Value>) -> Held {
        Held::Made { value: Arc::downgrade(value), meta: value.meta }
    }

    pub fn address(&self) -> Address {
        match self {
            Held::Made { value, .. } => value.as_ptr(),
            Held::Given(value) => Arc::as_ptr(value),
        }
    }

    pub fn meta(&self) -> Meta {
        match self {
            Held::Made { meta, .. } => *meta,
            Held::Given(value) => value.meta,
        }
    }
}

/// One use of an op.
pub struct LogEntry {
    pub op: Arc<dyn Op>,
    pub inputs: SmallVec<[Held; 2]>,
    /// The results of the kernel, the op's own first.
    pub outputs: SmallVec<[Held; 2]>,
    /// The line that led to it; none if a script called and cannot say.
    pub place: Option<Place>,
    pub cause: Cause,
    /// The modules that ran; of the forward op, where it is part of a reverse rule.
    pub scope: Option<Arc<str>>,
}

/// A leaf that a trace met.
pub struct Met {
    pub leaf: Arc<Leaf>,
    /// Its value before the trace.
    pub before: Arc<Value>,
    /// The stand-in for that value.
    pub stand_in: Arc<Value>,
    /// Its value when the trace ended: the stand-in, or a new one.
    pub after: Arc<Value>,
}

/// A leaf whose gradient a traced script read, or set, before anything else.
pub struct Touched {
    pub leaf: Arc<Leaf>,
    /// The gradient before the trace.
    pub before: Option<Tensor>,
    /// The stand-in for that gradient, if it was read: a leaf that the program reads in each run.
    pub entry: Option<Tensor>,
    /// Whether it was read, and not set or forgotten, at first.
    pub reads: bool,
    /// Whether a program had used it up before the trace.
    pub lost: bool,
}

/// Address of a value, which is its identity.
pub type Address = *const Value;

/// A generator that a trace drew from.
pub struct Drawn {
    pub generator: Generator,
    /// Its position at the first draw.
    pub before: Stream,
    /// Whether the traced function made it, so that it begins anew in each run.
    pub fresh: bool,
}

impl Clone for Drawn {
    fn clone(&self) -> Drawn {
        Drawn { generator: self.generator.share(), before: self.before.clone(), fresh: self.fresh }
    }
}

impl Drawn {
    /// Puts the generator back to where it was.
    pub fn rewind(&self) {
        self.generator.lock().clone_from(&self.before);
    }
}

/// Everything that happened during a trace.
#[derive(Default)]
pub struct TraceLog {
    pub entries: Vec<LogEntry>,
    pub leaves: Vec<Met>,
    /// Names that the user gave to values.
    pub names: HashMap<Address, String>,
    /// Gradients, and the numbers of the tensors that they are gradients of, in the order in which
    /// they were complete.
    pub gradients: Vec<(Weak<Value>, u64)>,
    /// The values of the leaves and nodes that bear these numbers.
    pub numbers: HashMap<u64, Address>,
    /// The generators that were drawn from, with their positions before.
    pub generators: Vec<Drawn>,
    /// Results of entries.
    made: HashSet<Address>,
    /// Values that may differ in the next run.
    varying: HashSet<Address>,
    /// Leaves and nodes that got a gradient.
    graded: Vec<Source>,
    /// Leaves older than the trace, and how it used their gradients.
    touched: Vec<Touched>,
    places: HashMap<u64, usize>,
    /// Leaves with a larger number were made during the trace.
    start: u64,
    /// Generators with this number and later ones were made during the trace.
    first_generator: u64,
    cause: Option<Cause>,
    /// The language that the traced function is written in, if that is not Rust.
    pub script: Option<Script>,
    /// The places at which the nodes with these numbers were recorded.
    nodes: HashMap<u64, Place>,
    /// The modules that ran when these nodes were recorded.
    scopes: HashMap<u64, Arc<str>>,
}

thread_local! {
    static LOG: RefCell<Option<TraceLog>> = const { RefCell::new(None) };
}

/// Whether this thread is tracing.
#[inline]
pub fn is_on() -> bool {
    Mode::get().has(Mode::TRACE)
}

fn with<R>(f: impl FnOnce(&mut TraceLog) -> R) -> R {
    LOG.with_borrow_mut(|log| f(log.as_mut().expect("the mode says that a log is kept")))
}

/// Runs `f` and logs it. The inputs are values that may be others in the next run.
pub fn keep<R>(
    inputs: &[Arc<Value>],
    script: Option<Script>,
    f: impl FnOnce() -> Result<R>,
) -> Result<(R, TraceLog)> {
    if is_on() {
        let why = "a trace is already going on on this thread; call the function itself instead of tracing it";
        return Err(Error::argument("trace", why));
    }
    let first_generator = Generator::manual_seed(0).number();
    let mut log = TraceLog { start: next_number(), first_generator, script, ..TraceLog::default() };
    log.varying.extend(inputs.iter().map(Arc::as_ptr));
    LOG.set(Some(log));
    // Puts everything back, also after a panic.
    struct End(Option<ModeGuard>);
    impl Drop for End {
        fn drop(&mut self) {
            self.0.take();
            rng::close(false);
            if let Some(log) = LOG.take() {
                log.restore();
            }
        }
    }
    let end = End(Some(Mode::get().with(Mode::TRACE).enter()));
    rng::close(true);
    let result = f();
    let log = LOG.with_borrow_mut(|log| {
        let mut log = log.take().expect("nobody else takes it");
        for met in &mut log.leaves {
            met.after = met.leaf.value.here().clone();
        }
        log.restore();
        log
    });
    drop(end);
    Ok((result?, log))
}

impl TraceLog {
    /// The line that led to an entry; in a reverse rule, the line of the forward op.
    pub fn place(&self, entry: &LogEntry) -> Option<Place> {
        match entry.cause {
            Cause::Forward | Cause::Update => entry.place.clone(),
            Cause::Rule { called, .. } if self.script.is_none() => Some(called.into()),
            Cause::Rule { node, .. } => self.nodes.get(&node).cloned(),
            Cause::Walk => None,
        }
    }

    /// Restores the values of leaves and the positions of generators, and removes the trace's
    /// gradients.
    fn restore(&self) {
        self.generators.iter().for_each(Drawn::rewind);
        // The last that was met comes first: leaves may have one memory.
        for met in self.leaves.iter().rev() {
            *met.leaf.value.here() = met.before.clone();
        }
        for source in &self.graded {
            if let Some(mut notes) = source.notes()
                && let Some(notes) = notes.as_mut()
            {
                notes.grad = None;
            }
        }
        for touched in &self.touched {
            let mut notes = lock(&touched.leaf.notes);
            let notes = notes.get_or_insert_default();
            (notes.grad, notes.lost) = (touched.before.clone(), touched.lost);
        }
    }

    /// See [`touch_gradient`].
    fn touch(&mut self, leaf: &Arc<Leaf>, reads: bool) {
        let known = self.touched.iter().any(|t| t.leaf.number == leaf.number);
        if self.script.is_none() || leaf.number > self.start || known {
            return;
        }
        let mut notes = lock(&leaf.notes);
        let lost = notes.as_ref().is_some_and(|notes| notes.lost);
        if let Some(notes) = notes.as_mut() {
            notes.read_home();
        }
        let before = notes.as_ref().and_then(|notes| notes.grad.clone());
        drop(notes);
        let entry = before.as_ref().filter(|_| reads).map(|g| g.detach().buffer());
        if let Some(entry) = &entry {
            if let Source::Leaf(stands) = entry.source() {
                self.meet(stands, true);
            }
            lock(&leaf.notes).get_or_insert_default().grad = Some(entry.clone());
        }
        self.touched.push(Touched { leaf: leaf.clone(), before, entry, reads, lost });
    }

    /// Replaces a leaf's value by a stand-in. A leaf that was made during the trace is only a name
    /// for its value.
    fn meet(&mut self, leaf: &Arc<Leaf>, lasting: bool) {
        if self.places.contains_key(&leaf.number) {
            return;
        }
        if leaf.number > self.start && !lasting {
            self.numbers.insert(leaf.number, Arc::as_ptr(&leaf.value.here()));
            return;
        }
        let mut value = leaf.value.here();
        let before = value.clone();
        let stand_in = Arc::new(Value::view(&before, *before.shape(), before.layout()));
        *value = stand_in.clone();
        self.varying.insert(Arc::as_ptr(&stand_in));
        self.numbers.insert(leaf.number, Arc::as_ptr(&stand_in));
        self.places.insert(leaf.number, self.leaves.len());
        let after = stand_in.clone();
        self.leaves.push(Met { leaf: leaf.clone(), before, stand_in, after });
    }
}

/// A leaf is about to be read or given a new value.
pub(crate) fn meet(leaf: &Arc<Leaf>) {
    with(|log| log.meet(leaf, false))
}

/// A leaf that was made during the trace and lasts from run to run: state of an optimizer or a
/// generator.
#[cold]
pub fn lasting(leaf: &Tensor) {
    if let Source::Leaf(leaf) = leaf.source() {
        with(|log| log.meet(leaf, true))
    }
}

/// `op` was applied.
pub(crate) fn applied(
    op: Arc<dyn Op>,
    inputs: &[Arc<Value>],
    outcome: &Outcome,
    location: &'static Location<'static>,
) {
    // The script is asked while nothing is borrowed, since it may free tensors.
    let place = match with(|log| log.script) {
        Some(script) => script.place(),
        None => Some(location.into()),
    };
    with(|log| {
        let outputs = || std::iter::once(&outcome.value).chain(&outcome.extra);
        if op.generator().is_some() || inputs.iter().any(|v| log.varying.contains(&Arc::as_ptr(v)))
        {
            log.varying.extend(outputs().map(Arc::as_ptr));
        }
        let made = &log.made;
        let held = |v: &Arc<Value>| match made.contains(&Arc::as_ptr(v)) {
            true => Held::made(v),
            false => Held::Given(v.clone()),
        };
        let inputs: SmallVec<[Held; 2]> = inputs.iter().map(held).collect();
        // A custom op may pass on a value that existed before.
        let first = Arc::as_ptr(&outcome.value);
        let hands_on = made.contains(&first) || inputs.iter().any(|v| v.address() == first);
        let outputs = if hands_on {
            outputs().map(held).collect()
        } else {
            log.made.extend(outputs().map(Arc::as_ptr));
            outputs().map(Held::made).collect()
        };
        let cause = log.cause.unwrap_or(Cause::Forward);
        let scope = match cause {
            Cause::Forward => scope::path(),
            Cause::Rule { node, .. } => log.scopes.get(&node).cloned(),
            Cause::Walk | Cause::Update => None,
        };
        log.entries.push(LogEntry { op, inputs, outputs, place, cause, scope });
    })
}

/// The value of the node with this number.
pub(crate) fn numbered(number: u64, value: &Arc<Value>) {
    with(|log| {
        log.numbers.insert(number, Arc::as_ptr(value));
        if let Some(scope) = log.entries.last().and_then(|e| e.scope.clone()) {
            log.scopes.insert(number, scope);
        }
        if log.script.is_some()
            && let Some(place) = log.entries.last().and_then(|e| e.place.clone())
        {
            log.nodes.insert(number, place);
        }
    });
}

/// The user named a value.
#[cold]
pub(crate) fn named(value: &Arc<Value>, name: &str) {
    with(|log| log.names.insert(Arc::as_ptr(value), name.to_string()));
}

/// The whole gradient of the tensor with this number is known.
#[cold]
pub(crate) fn gradient(of: u64, gradient: &Arc<Value>) {
    with(|log| log.gradients.push((Arc::downgrade(gradient), of)));
}

/// A tensor is about to get its gradient; an error if it has one that the trace does not know.
#[cold]
pub fn graded(target: &Source, before: Option<&Tensor>) -> Result<()> {
    with(|log| {
        let touched = log.touched.iter().any(|t| t.leaf.number == target.number());
        let known = touched || log.graded.iter().any(|s| s.number() == target.number());
        if before.is_some() && !known {
            let why = "a parameter has a gradient from before the trace, to which the program would add the same numbers in each run; \
                       call zero_grad first";
            return Err(Error::gradient("trace", why));
        }
        if !known {
            log.graded.push(target.clone());
        }
        Ok(())
    })
}

/// The gradient of a leaf is about to be read, or to be set or forgotten. A script may go on with
/// gradients from before the trace: the program reads them in each run.
#[cold]
pub(crate) fn touch_gradient(target: &Source, reads: bool) {
    if let Source::Leaf(leaf) = target {
        with(|log| log.touch(leaf, reads));
    }
}

/// The leaves that `touch_gradient` met: the leaf, what it says of it, the gradient now, and
/// whether the leaf has another value now.
pub fn touched<R>(mut f: impl FnMut(&Touched, Option<Tensor>, bool) -> R) -> Vec<R> {
    with(|log| {
        let all = log.touched.iter().map(|touched| {
            let now = lock(&touched.leaf.notes).as_ref().and_then(|notes| notes.grad.clone());
            let met = log.places.get(&touched.leaf.number).map(|&at| &log.leaves[at]);
            let written = met.is_some_and(|m| !Arc::ptr_eq(&m.stand_in, &m.leaf.value.here()));
            f(touched, now, written)
        });
        all.collect()
    })
}

/// An error if the elements of `value` are read outside an op although they may differ in the next
/// run.
#[inline]
pub(crate) fn check_read(op: &'static str, value: &Arc<Value>) -> Result<()> {
    if is_on() { refuse(op, value) } else { Ok(()) }
}

/// Whether a trace is going on in which the elements of the tensor may differ in the next run of
/// its program.
pub(crate) fn varies(x: &Tensor) -> bool {
    is_on() && with(|log| log.varying.contains(&Arc::as_ptr(&x.value())))
}

#[cold]
fn refuse(op: &'static str, value: &Arc<Value>) -> Result<()> {
    with(|log| {
        if !log.varying.contains(&Arc::as_ptr(value)) {
            return Ok(());
        }
        let of = match log.names.get(&Arc::as_ptr(value)) {
            Some(name) => format!("`{name}`"),
            None => format!("a {} {}", value.dtype(), value.shape()),
        };
        let why = format!(
            "the elements of {of} are read inside a trace, and the program cannot follow what is decided by them: they are others in each run. \
             To choose between values use where_, maximum, minimum, clamp or a mask; to look at a value, return it from the traced function and read \
             it after the run; what depends on no input, compute before the trace"
        );
        Err(Error::argument(op, why))
    })
}

/// The cause of all that is applied until the guard is dropped.
#[cold]
pub fn enter(cause: Cause) -> CauseGuard {
    CauseGuard(with(|log| log.cause.replace(cause)))
}

/// Sets the cause back when dropped.
pub struct CauseGuard(Option<Cause>);

impl Drop for CauseGuard {
    fn drop(&mut self) {
        let before = self.0.take();
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.cause = before;
            }
        });
    }
}

/// The next op draws from this generator.
#[cold]
pub(crate) fn draws(generator: &Generator) {
    with(|log| {
        let number = generator.number();
        if log.generators.iter().all(|d| d.generator.number() != number) {
            let fresh = number >= log.first_generator;
            let before = generator.snapshot();
            log.generators.push(Drawn { generator: generator.share(), before, fresh });
        }
    })
}
