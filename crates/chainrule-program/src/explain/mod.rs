//! The derivation of a program's backward pass for people to read: the result of differentiation,
//! each simplification with its rule and its saving, and the final program, each with its cost.

mod repeats;
mod text;

use super::algebra::{Simplified, Simplify};
use super::{Program, ProgramMemory};
use crate::error::Result;

/// A program on its way from the trace to the simplified one. `Display` writes all of it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Title of the explanation.
    pub title: String,
    /// As it was traced: all that the forward pass and the rules of differentiation did.
    pub traced: Program,
    /// Without what no output needs, and with what was computed twice computed once.
    pub optimized: Program,
    /// After the algebra, with the steps.
    pub simplified: Simplified,
    whole: bool,
}

impl Program {
    /// The simplification of the program, step by step.
    ///
    /// Errors as [`Program::simplified`] does.
    ///
    /// ```
    /// use chainrule_lab::formulas::formula;
    /// let program = formula("softmax-ce")?.trace()?;
    /// let explanation = program.explain("softmax and cross-entropy")?;
    /// assert!(explanation.to_string().contains("d_logits"));
    /// assert!(explanation.simplified.program.cost().flops <= explanation.traced.cost().flops);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn explain(&self, title: impl Into<String>) -> Result<Explanation> {
        self.explain_with(title, &Simplify::new())
    }

    /// As [`Program::explain`], with some of the rules, or with each rewrite checked.
    pub fn explain_with(&self, title: impl Into<String>, how: &Simplify) -> Result<Explanation> {
        let simplified = self.simplify_with(how)?;
        let (traced, optimized) = (self.clone(), self.optimized());
        Ok(Explanation { title: title.into(), traced, optimized, simplified, whole: false })
    }
}

impl Explanation {
    /// The memory of a run of the simplified program, when it is fused.
    pub fn memory(&self) -> ProgramMemory {
        self.simplified.program.fused().memory()
    }

    /// Writes everything, also parts that repeat and long lists of steps.
    pub fn whole(mut self) -> Explanation {
        self.whole = true;
        self
    }
}
