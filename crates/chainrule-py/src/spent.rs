//! Results whose graph a backward pass used up.
//!
//! A compiled function computes its gradients in the program, so its results come without a tape.
//! In PyTorch those that a backward pass inside of the function went through still require a
//! gradient, have a `grad_fn`, and refuse to be walked again. A node with nothing behind it says
//! so.

use std::panic::Location;
use std::sync::{Arc, Mutex};

use chainrule::{Error, Result, Tensor};
use chainrule_core::param::{Param, Parameters};
use chainrule_core::tensor::node::{Node, SavedValues, Source, next_number};
use chainrule_core::tensor::op::{Kernel, Op, Outcome, WholeKernel};
use chainrule_core::tensor::value::{Meta, Value};
use smallvec::SmallVec;

/// The op that made a result, of which nothing but the name is left.
#[derive(Debug)]
struct Spent(&'static str);

impl Parameters for Spent {
    fn parameters(&self) -> Param {
        Param::Word(self.0)
    }
}

impl Spent {
    fn error(&self) -> Error {
        Error::gradient(self.0, "its graph was used up by an earlier backward pass")
    }
}

impl WholeKernel for Spent {
    fn run(&self, _: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        Err(self.error())
    }
}

impl Op for Spent {
    fn name(&self) -> &'static str {
        self.0
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Err(self.error())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

/// The results of a trace, by number, whose graph was used up there, with the names of their ops.
pub fn of_trace(results: &[Tensor]) -> Vec<(usize, &'static str)> {
    if !crate::session::is_walked() {
        return Vec::new();
    }
    let name = |(i, t): (usize, &Tensor)| t.op_name().map(|name| (i, name));
    results.iter().enumerate().filter_map(name).collect()
}

/// The tensor as the result of an op whose graph was used up.
pub fn spent(t: &Tensor, op: &'static str) -> Tensor {
    let value = t.value();
    let node = Node {
        number: next_number(),
        op: Arc::new(Spent(op)),
        meta: value.meta,
        location: Location::caller(),
        inputs: SmallVec::new(),
        saved: Mutex::new(SavedValues { freed: true, ..SavedValues::default() }),
        notes: Mutex::new(None),
    };
    Tensor::from_parts(value, Source::Node(Arc::new(node)))
}
