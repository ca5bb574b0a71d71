//! Running a program in memory that was planned.
//!
//! Before the first run everything that is the same each time is decided: the groups and their tiles (`block`), which of
//! their members run in one pass (`chains`), for each value the place in the
//! arena (`memory`), and the steps (`steps`). A run (`run`) reads the cells, does the steps and hands out the results. What it computes for itself lies in the arena;
//! results that the caller keeps, and new values of cells, are buffers of their own.
//!
//! An op that is not part of a group runs through its kernel as in the eager mode; the buffer that it asks for is its place in the arena.

mod block;
mod chains;
mod memory;
mod run;
mod steps;
mod tile;

pub(super) use run::Machine;
pub(super) use steps::Steps;

use super::Program;
use super::plan::Plan;
use crate::tensor::buffer::BLOCK;

/// How much memory a run needs for what it computes for itself: without arguments, parameters and results that it hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The bytes of the arena.
    pub planned: usize,
    /// What is needed at the same time at most: no plan for this order of instructions can do with less.
    pub lower_bound: usize,
}

impl Program {
    /// How much memory a run needs when it is planned, as it is after [`Program::fused`].
    pub fn memory(&self) -> Memory {
        let plan = self.plan.get_or_init(|| Plan::of(self));
        let steps = self.steps.get_or_init(|| Steps::of(self, plan));
        Memory { planned: steps.size * BLOCK, lower_bound: steps.lower_bound * BLOCK }
    }
}
