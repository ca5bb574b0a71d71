//! Devices that run a step.

use crate::error::{Error, Result};
use crate::program::Program;
use crate::tensor::Tensor;

/// A device that runs programs, such as a GPU, and holds parameters, optimizer state and data. See
/// [`Trainer::with_runner`](super::Trainer::with_runner).
pub trait ProgramRunner {
    /// Receives the next step's number when a run starts or resumes, so that random numbers
    /// continue.
    fn begin(&mut self, step: u64) {
        let _ = step;
    }

    /// Loads a program and returns its id. Errors for what the device cannot do.
    fn load(&mut self, program: &Program) -> Result<usize>;

    /// The reason why a program doesn't accept these arguments, if any.
    fn mismatch(&self, program: usize, arguments: &[&Tensor]) -> Option<String>;

    /// Runs a program and returns its results. Changed values stay on the device; changes made
    /// outside since the last run are uploaded.
    fn run(&mut self, program: usize, arguments: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// Steps of a program per call of [`ProgramRunner::run_steps`]: more than one if launch
    /// overhead dominates a small step, or if the device runs on while losses and batches are
    /// copied.
    fn at_once(&self, program: usize) -> usize {
        let _ = program;
        1
    }

    /// As [`ProgramRunner::run`] for each of these argument lists, bitwise equal: their results.
    fn run_steps(&mut self, program: usize, batches: &[Vec<&Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        batches.iter().map(|batch| self.run(program, batch)).collect()
    }

    /// Downloads everything that changed on the device.
    fn fetch(&mut self) -> Result<()>;

    /// As [`ProgramRunner::fetch`], for one tensor.
    fn fetch_one(&mut self, tensor: &Tensor) -> Result<()>;

    /// Whether to fall back to the processor for a program that could not be loaded, given the
    /// reason. By default the run ends with the error.
    fn gives_way(&mut self, why: &Error) -> bool {
        let _ = why;
        false
    }
}
