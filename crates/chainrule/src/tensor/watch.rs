//! Logs of the ops that this thread runs, recorded on the tape or not: for whoever looks at a computation from outside.
//!
//! A log sees more than the tape: values that were detached and ops that ran under `no_grad` are in it. Values are told apart by where
//! they lie in memory, which holds as long as the log keeps them.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use smallvec::SmallVec;

use super::Tensor;
use super::node::{Mode, Source};
use super::op::{Kernel, Op};
use super::value::Value;
use crate::shape::Axes;

/// One op that ran.
pub(crate) struct Ran {
    pub op: &'static str,
    /// The op with its parameters, as it prints itself.
    pub text: String,
    /// Whether it moves no data.
    pub view: bool,
    /// The axes that it reduces.
    pub axes: Option<Axes>,
    pub inputs: SmallVec<[Given; 3]>,
    /// The result, then what the kernel gave beside it.
    pub outputs: SmallVec<[Arc<Value>; 1]>,
    /// Whether the tape has it.
    pub recorded: bool,
    /// Whether a gradient could flow through it.
    pub differentiable: bool,
    pub location: &'static Location<'static>,
}

/// An input of an op.
pub(crate) struct Given {
    pub value: Arc<Value>,
    /// Its number on the tape, 0 for a constant.
    pub number: u64,
    pub requires_grad: bool,
    /// Whether it is a parameter or a buffer.
    pub leaf: bool,
}

/// What one watcher has seen.
#[derive(Default)]
pub(crate) struct Log {
    pub ran: Vec<Ran>,
}

/// More ops than a step has: what came first is forgotten.
const MOST: usize = 100_000;

thread_local! {
    static LOGS: RefCell<Vec<Weak<RefCell<Log>>>> = const { RefCell::new(Vec::new()) };
}

/// A log that lasts as long as this is kept.
pub(crate) struct Watching {
    log: Rc<RefCell<Log>>,
}

impl Watching {
    /// Starts to log the ops of this thread.
    pub fn start() -> Watching {
        let log = Rc::new(RefCell::new(Log::default()));
        LOGS.with_borrow_mut(|logs| logs.push(Rc::downgrade(&log)));
        let watching = Watching { log };
        watching.resume();
        watching
    }

    /// Makes sure that this thread is still watched: a guard that was set earlier may have put the mode back.
    pub fn resume(&self) {
        Mode::get().with(Mode::WATCHED).set();
    }

    /// What ran since this was last asked.
    pub fn take(&self) -> Vec<Ran> {
        std::mem::take(&mut self.log.borrow_mut().ran)
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
    let text = format!("{op:?}");
    let (view, axes) = match op.kernel() {
        Kernel::View(_) => (true, None),
        Kernel::Reduce(axes, _) => (false, Some(axes)),
        _ => (false, None),
    };
    LOGS.with_borrow(|logs| {
        for log in logs.iter().filter_map(Weak::upgrade) {
            let given = inputs.iter().zip(values).map(|(t, value)| Given {
                value: value.clone(),
                number: t.source().number(),
                requires_grad: t.requires_grad(),
                leaf: matches!(t.source(), Source::Leaf(_)),
            });
            let ran = Ran {
                op: op.name(),
                text: text.clone(),
                view,
                axes,
                inputs: given.collect(),
                outputs: outputs.clone(),
                recorded,
                differentiable: op.is_differentiable() && outputs[0].dtype().is_float(),
                location,
            };
            let all = &mut log.borrow_mut().ran;
            if all.len() == MOST {
                all.drain(..MOST / 2);
            }
            all.push(ran);
        }
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
        let ran = watching.take();
        let ops: Vec<_> = ran.iter().map(|r| (r.op, r.recorded)).collect();
        assert_eq!(ops, [("mul", true), ("add", false)]);
        assert!(Arc::ptr_eq(&ran[0].outputs[0], &ran[1].inputs[1].value));
        assert_eq!((ran[0].inputs[0].leaf, ran[1].inputs[1].number), (true, 0));
        drop(watching);
        assert!(!Mode::get().has(Mode::WATCHED));
    }

    #[test]
    fn backward_is_not_logged() {
        let w = Tensor::from([2.0f32]).parameter();
        let watching = Watching::start();
        let loss = (&w * &w).sum_all();
        assert_eq!(watching.take().len(), 2);
        loss.backward();
        assert!(watching.take().is_empty());
    }
}
