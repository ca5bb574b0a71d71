//! From a trace to the program that runs: simplified and fused, and nothing of that believed before
//! it was seen.
//!
//! The first run of an optimised program is compared with the plain one on the user's own values
//! (`validate`). If the two part, or a pass fails or panics, the plain program runs instead, and a
//! [`Warning`] says why. Nobody loses a run, or a gradient, to the optimiser.

mod compare;
mod twin;
mod validate;

#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Program;
use super::algebra::Simplify;
use super::ir::{Id, Out, Phase};
use crate::error::Result;
use crate::tensor::Tensor;
use validate::Pending;
pub use validate::ResultDifference;

/// Why a program runs without an optimisation. Its `Display` names the pass, and the rule and the
/// value where the results part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The passes over a program after its trace; both by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Whether it is [simplified](Program::simplified).
    pub simplification: bool,
    /// Whether it is [fused](Program::fused).
    pub fusion: bool,
}

impl Default for Passes {
    fn default() -> Self {
        Passes { simplification: true, fusion: true }
    }
}

/// A program with the passes applied, beside the plain one until the first run has shown that they
/// give the same.
pub struct Validated {
    program: Program,
    pending: Option<Box<Pending>>,
    warnings: Vec<Warning>,
    /// Number of the warnings that were told.
    told: usize,
    /// Whether the two parted, so that the plain program runs.
    is_plain: bool,
}

impl Program {
    /// The program as [`compile`](super::compile) runs it: [simplified](Program::simplified) and
    /// [fused](Program::fused), as asked.
    ///
    /// A pass that fails or panics is left out. The first [`Validated::run`] compares the program
    /// with the trace, as it was before any pass but the removal of dead code, on the arguments,
    /// parameters and random draws that it gets: every output, every gradient and every new value
    /// of a parameter. In f32 the errors of both against f64 are compared; in f64 the tolerance is
    /// what inputs and steps changed in their last bits do to the plain program. If they part, the
    /// plain program runs, then and later.
    ///
    /// ```
    /// use chainrule::{Tensor, program::{Passes, Program}};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let program = Program::trace([("x", &x)], |args| Ok(vec![args[0].exp().sum_all()]))?;
    /// let mut validated = program.validated(Passes::default());
    /// assert_eq!(validated.run(&[&x])?[0].item(), program.run(&[&x])?[0].item());
    /// assert!(validated.warnings().is_empty());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn validated(&self, passes: Passes) -> Validated {
        passes.apply(self)
    }

    /// The gradients that updates take: what a comparison has to look at beside the results.
    fn gradients(&self) -> Vec<Id> {
        let mut made_backward = vec![false; self.values.len()];
        let mut out = Vec::new();
        for instruction in &self.instructions {
            match instruction.phase {
                Phase::Backward => {
                    instruction.outputs.iter().for_each(|id| made_backward[id.index()] = true)
                }
                Phase::Update => {
                    let taken = instruction.inputs.iter().copied();
                    out.extend(taken.filter(|id| made_backward[id.index()]));
                }
                Phase::Forward => {}
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Adds the gradients that updates take to the results.
    fn give_gradients(&mut self) {
        for id in self.gradients() {
            let name = self.name(id).to_string();
            self.outputs.push(Out { name, id });
        }
    }
}

impl Passes {
    pub(super) fn apply(self, traced: &Program) -> Validated {
        let plain = traced.without_dead_code();
        // With the gradients among the results, so that they can be compared.
        let mut probe = plain.clone();
        if self.simplification || self.fusion {
            probe.give_gradients();
        }
        let mut warnings = Vec::new();
        let mut simple = match guarded(|| Ok(probe.optimized())) {
            Ok(optimized) => optimized,
            Err(why) => {
                warnings.push(left_out("optimized", &why));
                probe.clone()
            }
        };
        if !self.simplification && !self.fusion {
            return Validated {
                program: simple,
                pending: None,
                warnings,
                told: 0,
                is_plain: false,
            };
        }
        let mut rules = Vec::new();
        if self.simplification {
            match guarded(|| simple.simplified_by(&Simplify::new())) {
                Ok(found) => (simple, rules) = found,
                Err(why) => warnings.push(left_out("simplified", &why)),
            }
        }
        let mut program = simple.clone();
        program.outputs.truncate(plain.outputs.len());
        // A failure here was one above, and was told of there.
        if let Ok(optimized) = guarded(|| Ok(program.optimized())) {
            program = optimized;
        }
        if self.fusion {
            let fused = guarded(|| {
                let fused = program.fused();
                fused.memory();
                Ok(fused)
            });
            match fused {
                Ok(fused) => program = fused,
                Err(why) => warnings.push(left_out("fused", &why)),
            }
        }
        let pending = Pending { plain, probe, simple, rules, simplified: self.simplification };
        let pending = Some(Box::new(pending));
        Validated { program, pending, warnings, told: 0, is_plain: false }
    }
}

fn left_out(pass: &str, why: &str) -> Warning {
    Warning { why: format!("the program is not {pass}, since that failed: {why}") }
}

/// The result, or why there is none; a panic is no more than an error here.
fn guarded<T>(f: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(panic) => Err(match panic.downcast_ref::<&str>() {
            Some(text) => (*text).to_string(),
            None => panic.downcast_ref::<String>().cloned().unwrap_or("a panic".to_string()),
        }),
    }
}

impl Validated {
    /// The program that runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether the next run is compared with the plain program.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the first run has found that the two part, so that the plain program runs.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Takes over what another run of the same program has found; nothing is compared any more.
    pub(super) fn settle(&mut self, is_plain: bool) {
        let Some(pending) = self.pending.take() else { return };
        if is_plain {
            self.is_plain = true;
            let plain = pending.plain;
            self.program = guarded(|| Ok(plain.optimized())).unwrap_or(plain);
        }
    }

    /// The optimisations that were left out, and why; after the first run also whether the plain
    /// program runs.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The warnings since they were last asked for.
    pub(super) fn untold(&mut self) -> &[Warning] {
        let from = std::mem::replace(&mut self.told, self.warnings.len());
        &self.warnings[from..]
    }

    /// As [`Program::run`]; the first run is compared with the plain program.
    pub fn run(&mut self, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut results = Vec::new();
        self.run_into(arguments, &mut results)?;
        Ok(results)
    }

    /// As [`Program::run_into`].
    pub fn run_into(&mut self, arguments: &[&Tensor], results: &mut Vec<Tensor>) -> Result<()> {
        let Some(pending) = self.pending.take() else {
            return self.program.run_into(arguments, results);
        };
        match pending.first_run(&self.program, arguments, results) {
            validate::Outcome::Same => Ok(()),
            validate::Outcome::Error(e) => {
                // The next run may be one that can be compared.
                self.pending = Some(pending);
                Err(e)
            }
            validate::Outcome::Parted { why, plain } => {
                self.warnings.push(Warning { why });
                (self.program, self.is_plain) = (*plain, true);
                Ok(())
            }
        }
    }
}
