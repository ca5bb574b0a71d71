//! The compiled mode: a step of training as a program that one can read, check and run.
//!
//! ```
//! use chainrule::{Tensor, program::Program};
//! let w = Tensor::from([[0.5f64], [-1.0]]).parameter().named("w");
//! let x = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]);
//! let program = Program::trace([("x", &x)], |args| {
//!     let y = args[0].matmul(&w).named("y");
//!     let loss = (&y * &y).sum_all().named("loss");
//!     loss.backward();
//!     Ok(vec![loss, w.grad().expect("w has a gradient")])
//! })?;
//! println!("{program}"); // one line for each instruction: forward, then backward
//! let out = program.run(&[&x])?;
//! assert_eq!(out[0].item(), 1.5f64.powi(2) + 2.5f64.powi(2));
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! # Stages
//!
//! | stage | module | from | to |
//! | --- | --- | --- | --- |
//! | trace | `trace` | a closure | [`Program`] |
//! | simplify | `passes`, `algebra` | [`Program`] | [`Program`], [`Simplified`] |
//! | fuse | `fuse` | [`Program`] | [`Program`] with groups |
//! | place | `place` | [`Program`] | `Placement` |
//! | run | `run` | `Placement`, arguments | results, by a `Machine` |
//!
//! - **Trace** (over `tensor/log.rs`). The user's closure runs once, as it is, on real values, and
//!   meanwhile every applied op goes into a log: the user's, those of the reverse rules, those of
//!   the optimizer. There is thus only one way to compute a result, and a program repeats the eager
//!   mode. The address of a value tells whether it is an argument, a parameter, a constant or a
//!   result. Reading the elements of a value that may differ in the next run is an error outside an
//!   op, and the error says what to use instead. A trace changes nothing: parameters, gradients and
//!   generators are as before.
//! - **Simplify.** Passes (dead code, common subexpressions, constants) change no bit of a result;
//!   the algebra may change the last.
//! - **Fuse.** Groups of instructions that run tile by tile.
//! - **Place.** A fused program runs in one arena; what it does is decided before the first run.
//! - **Run.** Through the same kernels as the eager mode; a value is dropped after its last use,
//!   and the updates at the end are made in place. A program without groups runs instruction by
//!   instruction and needs no placement.
//!
//! Beside the stages:
//!
//! - **State.** A value that lasts from run to run is a leaf, and so a *cell* of the program:
//!   parameters, buffers, the state and the learning rate of an optimizer. A run reads the cells,
//!   computes, and writes those that have new values, all at the end, so that the eager mode and
//!   the program can take turns.
//! - **Instructions** (`ir`). A flat list; each has an op of the table, the ids of its inputs and
//!   outputs, and what made it. Each value has one definition, a shape and dtype, and a name. A
//!   random draw is an instruction that draws from the generator that was traced, so that eager
//!   draws and runs can take turns; it is never merged with another, nor left out.
//! - **Types** (`check`). Every input is defined before it is used, every name is unique, and what
//!   an op infers from its inputs is what the list says.
//! - **Validation** (`validated`). The first run of a simplified or fused program is compared with
//!   the plain one.
//! - **Text** (`listing`, `access`, `python`, `cost`, `measure`, `explain`). A listing for people,
//!   the same as data, and as a NumPy script; what a program costs, counted and measured; and how
//!   it was simplified.
//!
//! A new pass is a file in `passes/` with a function from a program to a program; `check` runs
//! after each in debug builds.

#![deny(missing_docs)]

use chainrule_core::{dtype, error, kernels, ops, param, rng, shape, tensor};
use chainrule_nn::{nn, optim};

mod access;
mod algebra;
#[doc(hidden)]
pub mod bindings;
mod check;
mod compile;
mod cost;
mod explain;
mod fuse;
#[allow(missing_docs, reason = "for the layers above alone")]
mod ir;
mod listing;
mod measure;
mod names;
mod passes;
mod place;
mod python;
mod run;
mod slices;
mod trace;
mod validated;

#[cfg(test)]
mod tests;

pub use crate::tensor::place::{Place, Script};
pub use access::Line;
pub use algebra::{Applied, Rule, Simplified, Simplify, rules};
pub use compile::{Compiled, CompiledStep, Retrace, compile};
pub use cost::Cost;
pub use explain::Explanation;
pub use ir::Phase;
#[doc(hidden)]
pub use ir::{Id, Info, Instruction, Origin};
pub use measure::{ArenaBlock, TimedLines};
pub use place::ProgramMemory;
pub use python::Library;
pub use trace::{Graded, Remains};
pub use validated::{Passes, ResultDifference, Validated, Warning};

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use crate::tensor::log::Drawn;
use ir::{Cell, Out};
use place::{Lifetimes, Placement};
use run::Machine;

/// A step as a typed list of instructions; made by [`Program::trace`].
pub struct Program {
    values: Vec<Info>,
    instructions: Vec<Instruction>,
    /// The arguments, in order.
    inputs: Vec<Id>,
    cells: Vec<Cell>,
    outputs: Vec<Out>,
    /// Generators that the traced function made: each run begins with them where the trace did.
    fresh: Vec<Drawn>,
    /// Stretches of instructions that run together, in order: see [`Program::fused`].
    groups: Vec<Range<usize>>,
    /// Whether runs use memory that is planned.
    is_planned: bool,
    /// Whether gradients are given beside what a run does without them: see [`Program::seen`].
    is_seen: bool,
    /// Made by the first run.
    lifetimes: OnceLock<Lifetimes>,
    /// Storage for the values of a run, reused from the run before.
    scratch: Mutex<Option<run::Values>>,
    /// As `lifetimes` and `scratch`, where the memory is planned.
    placement: OnceLock<Placement>,
    machine: Mutex<Option<Machine>>,
}

impl Clone for Program {
    fn clone(&self) -> Program {
        Program {
            values: self.values.clone(),
            instructions: self.instructions.clone(),
            inputs: self.inputs.clone(),
            cells: self.cells.clone(),
            outputs: self.outputs.clone(),
            fresh: self.fresh.clone(),
            groups: self.groups.clone(),
            is_planned: self.is_planned,
            is_seen: self.is_seen,
            // A clone may be changed.
            lifetimes: OnceLock::new(),
            scratch: Mutex::default(),
            placement: OnceLock::new(),
            machine: Mutex::default(),
        }
    }
}

impl Program {
    /// The program of a step of which somebody sees the gradients: where an update adds a product
    /// to its parameter, it still does, and a gradient among the results is computed beside that.
    /// So the parameters get the bits that they have in a step of which nobody sees anything.
    #[doc(hidden)]
    pub fn seen(mut self) -> Program {
        self.is_seen = true;
        self
    }

    fn info(&self, id: Id) -> &Info {
        &self.values[id.index()]
    }

    fn name(&self, id: Id) -> &str {
        &self.info(id).name
    }

    /// All values, by id.
    #[doc(hidden)]
    pub fn infos(&self) -> &[Info] {
        &self.values
    }

    /// The instructions in their order.
    #[doc(hidden)]
    pub fn list(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The arguments in their order.
    #[doc(hidden)]
    pub fn arguments(&self) -> &[Id] {
        &self.inputs
    }

    /// The results of a run, in order.
    #[doc(hidden)]
    pub fn results(&self) -> impl Iterator<Item = Id> {
        self.outputs.iter().map(|o| o.id)
    }

    /// The results of a run with their names, in order.
    #[doc(hidden)]
    pub fn named_results(&self) -> impl Iterator<Item = (&str, Id)> {
        self.outputs.iter().map(|o| (o.name.as_str(), o.id))
    }

    /// For each cell its value when a run begins, the one when it ends if that is another, and
    /// whether it was trained at the time of the trace.
    #[doc(hidden)]
    pub fn states(&self) -> impl Iterator<Item = (Id, Option<Id>, bool)> {
        self.cells.iter().map(|c| (c.read, c.write, c.trained))
    }

    /// The leaf that is the cell of this number.
    #[doc(hidden)]
    pub fn leaf(&self, cell: usize) -> &std::sync::Arc<crate::tensor::node::Leaf> {
        &self.cells[cell].leaf
    }

    /// The values that a run must compute: those that it gives back, and the new ones of cells.
    fn roots(&self) -> impl Iterator<Item = Id> {
        self.outputs.iter().map(|o| o.id).chain(self.cells.iter().filter_map(|c| c.write))
    }
}
