//! Placement: everything that is the same in each run, decided before the first one.
//!
//! - `lifetimes`: when values are dropped, and which updates are in place; for any run.
//! - `placement`: the list of actions of a fused program and the home of each value. Values that
//!   only the program uses lie in the arena; results that the caller keeps, and new values of
//!   cells, are buffers of their own.
//! - `block`: a group and its tiles.
//! - `chains`: the members of a group that run in one pass.
//! - `memory`: places in the arena, and in the scratch buffer of a tile.

pub(crate) mod block;
mod chains;
mod lifetimes;
mod memory;
pub(crate) mod placement;

pub(crate) use lifetimes::{InPlace, Lifetimes};
pub(crate) use placement::{Home, Placement};

use super::Program;
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
        let Placement { size, lower_bound, .. } = *self.placement();
        ProgramMemory { planned: size * BLOCK, lower_bound: lower_bound * BLOCK }
    }

    pub(crate) fn lifetimes(&self) -> &Lifetimes {
        self.lifetimes.get_or_init(|| Lifetimes::of(self))
    }

    pub(crate) fn placement(&self) -> &Placement {
        self.placement.get_or_init(|| Placement::of(self, self.lifetimes()))
    }
}
