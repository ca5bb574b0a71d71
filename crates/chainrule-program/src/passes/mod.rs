//! Passes that change no bit of a result.
//!
//! A pass takes a program and says how many instructions it took away. To add one: a file with a
//! function, and a line in [`Program::optimized`].

pub(super) mod common;
pub(super) mod dead;
mod fold;
mod views;

use super::Program;

impl Program {
    /// The program without instructions that contribute neither to the outputs nor to the new
    /// values of cells, with each value computed once, and with values that depend on no input
    /// computed now. The results are the same, bit for bit.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let program = Program::trace([("x", &x)], |args| {
    ///     let _unused = args[0].log();
    ///     Ok(vec![args[0].exp() + args[0].exp()])
    /// })?;
    /// assert_eq!((program.len(), program.optimized().len()), (4, 2));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn optimized(&self) -> Program {
        let mut program = self.without_dead_code();
        // Constants that cannot be computed stay: the run then returns the error.
        let mut folded = program.clone();
        if fold::constants(&mut folded).is_ok() {
            program = folded;
        }
        views::fold(&mut program);
        common::merge(&mut program);
        dead::remove(&mut program);
        if cfg!(debug_assertions)
            && let Err(e) = program.check()
        {
            panic!("a pass broke the program: {e}");
        }
        program
    }

    /// The program as it was traced, without what does not contribute to the outputs and the new
    /// values of cells.
    pub(super) fn without_dead_code(&self) -> Program {
        let mut program = self.clone();
        program.groups.clear();
        program.is_planned = false;
        dead::remove(&mut program);
        program
    }

    /// Adds these values, by name, to the outputs, so that a later pass keeps them.
    ///
    /// Errors for a name that the program does not have.
    pub fn with_outputs(mut self, names: &[&str]) -> chainrule_core::Result<Program> {
        for name in names {
            let at = self.values.iter().position(|v| v.name == *name);
            let at = at.ok_or_else(|| super::trace::unknown(&self, name))?;
            let id = super::ir::Id(at as u32);
            // The clone drops decisions that were made for a run.
            self = self.clone();
            self.outputs.push(super::ir::Out { name: name.to_string(), id });
        }
        Ok(self)
    }
}
