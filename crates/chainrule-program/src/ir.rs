//! The typed list of instructions.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Error;
use crate::tensor::node::Leaf;
use crate::tensor::op::Op;
use crate::tensor::place::Place;
use crate::tensor::value::{Meta, Value};

/// A value of a program: its place in [`Program::values`](super::Program).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u32);

impl Id {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Facts of a value, known before it is computed.
#[derive(Clone)]
pub struct Info {
    pub meta: Meta,
    /// Unique in the program, and a name in Rust and Python.
    pub name: String,
    /// Whether the user gave the name, or it follows from such a name; otherwise it was made up.
    pub given: bool,
    pub from: Origin,
}

/// The origin of a value.
#[derive(Clone)]
pub enum Origin {
    /// An argument of the traced function.
    Input(usize),
    /// A parameter or another thing that lasts from run to run, as it is when the run begins.
    Cell(usize),
    /// The same in each run.
    Constant(Arc<Value>),
    /// The result of an instruction, which stands in the list under this key, or an extra result of
    /// it.
    Result,
}

/// One line of a program.
#[derive(Clone)]
pub struct Instruction {
    pub op: Arc<dyn Op>,
    pub inputs: SmallVec<[Id; 2]>,
    /// The result, then the extra results of the kernel.
    pub outputs: SmallVec<[Id; 2]>,
    pub phase: Phase,
    /// Origin of the instruction.
    pub made_by: Maker,
    /// The line of the user's code that led to it; in a backward pass, the line of the forward op.
    pub location: Option<Place>,
    /// The modules that it is part of, as `blocks.0/norm`, where these were named during the trace.
    pub scope: Option<Arc<str>>,
}

impl Instruction {
    /// Its main result.
    pub fn result(&self) -> Id {
        self.outputs[0]
    }

    /// The place in Rust code, for errors; a script reports its own place.
    pub fn rust_location(&self) -> Option<&'static Location<'static>> {
        self.location.as_ref().and_then(Place::rust)
    }

    /// The error with the place in Rust code that led to this, if there is one.
    pub fn placed(&self, e: Error) -> Error {
        match self.rust_location() {
            Some(location) => e.at(location),
            None => e,
        }
    }
}

/// The part of a step that an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The user's own computation.
    Forward,
    /// The backward pass.
    Backward,
    /// The optimizer's update.
    Update,
}

impl Phase {
    /// The name as headings show it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        }
    }
}

/// Origin of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The user's code.
    User,
    /// The reverse rule of an op.
    Rule(&'static str),
    /// The backward pass between two rules.
    Sum,
    /// The optimizer.
    Optimizer,
    /// The algebra stage.
    Algebra,
}

/// A value that lasts from run to run: a parameter, a buffer, the state of an optimizer or of a
/// generator.
#[derive(Clone)]
pub(crate) struct Cell {
    pub leaf: Arc<Leaf>,
    /// Whether it was trained at the time of the trace.
    pub trained: bool,
    /// Its value when a run begins.
    pub read: Id,
    /// Its value when a run ends, if that differs.
    pub write: Option<Id>,
}

/// A value that a run gives back.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    pub name: String,
    pub id: Id,
}
