//! Runs of a program in memory that was planned.
//!
//! All that is the same in each run is decided before the first: the groups and their tiles
//! (`block`), the members of a group that run in one pass (`chains`), the place of each value in
//! the arena (`memory`), and the list of actions (`actions`). A run (`run`) reads the cells, runs
//! the actions and hands out the results. Values that only the program uses lie in the arena;
//! results that the caller keeps, and new values of cells, are buffers of their own.
//!
//! An op outside the groups runs through its kernel as in eager mode; the buffer that it asks for
//! is its place in the arena.

mod actions;
mod block;
mod chains;
mod memory;
mod run;
mod tile;

pub(super) use actions::Actions;
pub(super) use run::Machine;

use super::Program;
use super::plan::RunPlan;
use crate::tensor::buffer::BLOCK;

/// Memory of a run's own values: without arguments, parameters and results that it hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramMemory {
    /// The bytes of the arena.
    pub planned: usize,
    /// Largest sum of bytes live at the same time: no plan for this order of instructions can do
    /// with less.
    pub lower_bound: usize,
}

impl Program {
    /// Memory of a planned run, as it is after [`Program::fused`].
    pub fn memory(&self) -> ProgramMemory {
        let plan = self.plan.get_or_init(|| RunPlan::of(self));
        let actions = self.actions.get_or_init(|| Actions::of(self, plan));
        ProgramMemory { planned: actions.size * BLOCK, lower_bound: actions.lower_bound * BLOCK }
    }
}
