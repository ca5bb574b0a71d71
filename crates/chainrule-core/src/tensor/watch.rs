//! Logs of this thread's computation, for observers: the ops that run (recorded on the tape or
//! not), the elements that are read, and the backward passes.
//!
//! A log sees more than the tape: it includes detached values and ops that ran under `no_grad`.
//! Values are identified by their address in memory, which stays valid as long as the log holds
//! them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use smallvec::SmallVec;

use super::Tensor;
use super::node::{Leaf, Mode, ModeGuard, Source};
use super::op::{Kernel, Op};
use super::reading::Reading;
use super::role::Role;
use super::value::Value;
use crate::ops::OpId;
use crate::param::Param;
use crate::shape::Axes;

/// One op that ran.
pub struct Ran {
    pub op: &'static str,
    /// The op's row in the table, if it has one.
    pub id: Option<OpId>,
    /// Its meaning to the algebra of programs.
    pub reading: Reading,
    /// The part that it plays in a model.
    pub role: Role,
    pub parameters: Param,
    /// Whether it moves no data.
    pub view: bool,
    /// The axes that it reduces.
    pub axes: Option<Axes>,
    pub inputs: SmallVec<[Given; 3]>,
    /// The results of the kernel, the op's own first.
    pub outputs: SmallVec<[Arc<Value>; 1]>,
    /// Whether the tape has it.
    pub recorded: bool,
    /// Whether a gradient could flow through it.
    pub differentiable: bool,
    pub location: &'static Location<'static>,
}

/// An input of an op.
pub struct Given {
    pub value: Arc<Value>,
    /// Its number on the tape, 0 for a constant.
    pub number: u64,
    pub requires_grad: bool,
    /// Whether it is a parameter or a buffer.
    pub leaf: bool,
}

/// The ops and reads that one watcher has seen.
#[derive(Default)]
pub struct WatchLog {
    pub ran: Vec<Ran>,
    /// The values whose elements were read as plain numbers, by address.
    pub read: HashMap<*const Value, Arc<Value>>,
    /// The gradients of `leaves` after each backward pass.
    pub passes: Vec<Vec<Option<Tensor>>>,
    leaves: Vec<Arc<Leaf>>,
}

/// More ops than a step has; beyond that the oldest are dropped.
const MOST: usize = 100_000;

thread_local! {
    static LOGS: RefCell<Vec<Weak<RefCell<WatchLog>>>> = const { RefCell::new(Vec::new()) };
}

/// A log that is kept as long as this lives.
pub struct Watching {
    log: Rc<RefCell<WatchLog>>,
}

impl Watching {
    /// Starts to log the ops of this thread.
    pub fn start() -> Watching {
        let log = Rc::new(RefCell::new(WatchLog::default()));
        LOGS.with_borrow_mut(|logs| logs.push(Rc::downgrade(&log)));
        let watching = Watching { log };
        watching.resume();
        watching
    }

    /// Makes sure that this thread is still watched: a guard that was set earlier may have restored
    /// the mode.
    pub fn resume(&self) {
        Mode::get().with(Mode::WATCHED).set();
    }

    /// From now on, backward passes record the gradients of these leaves in the log.
    pub fn follow(&self, leaves: impl Iterator<Item = Arc<Leaf>>) {
        self.log.borrow_mut().leaves = leaves.collect();
    }

    /// The log since the last call.
    pub fn take(&self) -> WatchLog {
        let mut log = self.log.borrow_mut();
        let leaves = log.leaves.clone();
        std::mem::replace(&mut log, WatchLog { leaves, ..WatchLog::default() })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let left = LOGS.with_borrow_mut(|logs| {
            logs.retain(|log| !std::ptr::eq(log.as_ptr(), Rc::as_ptr(&self.log)));
            logs.len()
        });
        if left == 0 {
            Mode::get().without(Mode::WATCHED).set();
        }
    }
}

/// Pauses the logs of this thread until the guard is dropped.
pub fn unseen() -> ModeGuard {
    Mode::get().without(Mode::WATCHED).enter()
}

/// Calls `f` with each log of this thread.
fn each(f: impl Fn(&mut WatchLog)) {
    LOGS.with_borrow(|logs| {
        logs.iter().filter_map(Weak::upgrade).for_each(|log| f(&mut log.borrow_mut()));
    });
}

/// Notes that the elements of a value were read.
#[inline]
pub(super) fn read(value: &Arc<Value>) {
    if Mode::get().has(Mode::WATCHED) {
        each(|log| {
            log.read.insert(Arc::as_ptr(value), value.clone());
        });
    }
}

/// Notes that a backward pass has added to the gradients of leaves.
#[inline]
pub(crate) fn passed() {
    if Mode::get().has(Mode::WATCHED) {
        each(|log| {
            let grad = |leaf: &Arc<Leaf>| {
                let source = Source::Leaf(leaf.clone());
                source.notes().and_then(|notes| notes.as_ref().and_then(|n| n.grad.clone()))
            };
            let grads = log.leaves.iter().map(grad).collect();
            log.passes.push(grads);
        });
    }
}

/// Notes that an op ran.
#[cold]
pub(super) fn note(
    op: &dyn Op,
    inputs: &[&Tensor],
    values: &[Arc<Value>],
    outputs: impl Iterator<Item = Arc<Value>>,
    recorded: bool,
    location: &'static Location<'static>,
) {
    let outputs: SmallVec<[Arc<Value>; 1]> = outputs.collect();
    let parameters = op.parameters();
    let (view, axes) = match op.kernel() {
        Kernel::View(_) => (true, None),
        Kernel::Reduce(axes, _) => (false, Some(axes)),
        _ => (false, None),
    };
    each(|log| {
        let given = inputs.iter().zip(values).map(|(t, value)| Given {
            value: value.clone(),
            number: t.source().number(),
            requires_grad: t.requires_grad(),
            leaf: matches!(t.source(), Source::Leaf(_)),
        });
        let ran = Ran {
            op: op.name(),
            id: op.id(),
            reading: op.reading(),
            role: op.role(),
            parameters: parameters.clone(),
            view,
            axes,
            inputs: given.collect(),
            outputs: outputs.clone(),
            recorded,
            differentiable: op.is_differentiable() && outputs[0].dtype().is_float(),
            location,
        };
        if log.ran.len() == MOST {
            log.ran.drain(..MOST / 2);
        }
        log.ran.push(ran);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_grad;

    #[test]
    fn a_log_sees_what_the_tape_does_not() {
        let w = Tensor::from([2.0f32]).parameter();
        let watching = Watching::start();
        let y = (&w * 3.0).detach();
        no_grad(|| &w + &y);
        let ran = watching.take().ran;
        let ops: Vec<_> = ran.iter().map(|r| (r.op, r.recorded)).collect();
        assert_eq!(ops, [("mul", true), ("add", false)]);
        assert!(Arc::ptr_eq(&ran[0].outputs[0], &ran[1].inputs[1].value));
        assert_eq!((ran[0].inputs[0].leaf, ran[1].inputs[1].number), (true, 0));
        drop(watching);
        assert!(!Mode::get().has(Mode::WATCHED));
    }

    #[test]
    fn of_backward_only_the_gradients_are_logged() {
        let w = Tensor::from([2.0f32]).parameter();
        let watching = Watching::start();
        let Source::Leaf(leaf) = w.source() else { unreachable!() };
        watching.follow([leaf.clone()].into_iter());
        let loss = (&w * &w).sum_all();
        assert_eq!(watching.take().ran.len(), 2);
        loss.backward();
        let log = watching.take();
        assert!(log.ran.is_empty());
        assert_eq!(log.passes[0][0].as_ref().unwrap().item(), 4.0);
    }

    #[test]
    fn elements_that_are_read_are_logged() {
        let w = Tensor::from([2.0f32, 3.0]);
        let watching = Watching::start();
        w.to_vec::<f32>();
        assert!(watching.take().read.contains_key(&Arc::as_ptr(&w.value())));
        let guard = unseen();
        w.to_f64_vec();
        drop(guard);
        assert!(watching.take().read.is_empty());
    }
}
