//! Devices that run a step.

use crate::error::{Error, Result};
use crate::program::Program;
use crate::tensor::Tensor;

/// A device beside the processor that runs programs, such as a GPU: parameters, the optimizer's
/// state and data live there. See [`Trainer::with_runner`](super::Trainer::with_runner).
pub trait ProgramRunner {
    /// Hears which step comes next when a training begins or goes on, so that random numbers go on
    /// too.
    fn begin(&mut self, step: u64) {
        let _ = step;
    }

    /// Makes a program ready to run: its number. Errors for what the device cannot do.
    fn load(&mut self, program: &Program) -> Result<usize>;

    /// Why a program is not for these arguments, if it is not.
    fn mismatch(&self, program: usize, arguments: &[&Tensor]) -> Option<String>;

    /// Runs a program: its results. Changed values stay on the device; those that were changed
    /// outside since the last run are seen.
    fn run(&mut self, program: usize, arguments: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// Steps of a program that are best run by one call of [`ProgramRunner::run_steps`]: more than
    /// one where a step is so small that to begin it takes a good part of its time, or where the
    /// device goes on while losses and batches are copied.
    fn at_once(&self, program: usize) -> usize {
        let _ = program;
        1
    }

    /// As [`ProgramRunner::run`] for each of these batches of arguments, to the bit: their results.
    fn run_steps(&mut self, program: usize, batches: &[Vec<&Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        batches.iter().map(|batch| self.run(program, batch)).collect()
    }

    /// Gives all that was changed on the device its value there.
    fn fetch(&mut self) -> Result<()>;

    /// As [`ProgramRunner::fetch`], for one tensor.
    fn fetch_one(&mut self, tensor: &Tensor) -> Result<()>;

    /// Whether the processor runs a program that could not be loaded, for this reason. A training
    /// ends with the error if nothing is said.
    fn gives_way(&mut self, why: &Error) -> bool {
        let _ = why;
        false
    }
}
