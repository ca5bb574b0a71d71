//! The algebra stage: a program is simplified by general rules to the formulas of the textbooks.
//!
//! - **Axes** (`axes`): which axes of the values are the same, so that a value is a scalar
//!   expression of its indices.
//! - **Terms** (`term`, `facts`): sums of products of powers, kept once each. The rules that always
//!   hold act when a term is made (`build`).
//! - **Trials** (`trial`): rules that may make a term longer or shorter; the cheapest form is kept.
//! - **Reading** (`lower`): from instructions to terms. Ops that the algebra does not know are
//!   atoms.
//! - **Writing** (`plan`, `sums`, `emit`): from terms back to ops of the table, at the lowest cost,
//!   reusing what the program computes anyway.
//! - **Checks** (`checked`, `numbers`): each rewrite evaluated in f64 on random numbers.
//!
//! A rule that needs a fact (positive, not zero, one-hot) acts only where the fact is proven.

mod accuracy;
mod axes;
mod build;
mod cancel;
mod checked;
mod emit;
mod facts;
mod lower;
mod numbers;
mod operations;
mod ops;
mod plan;
mod products;
mod rules;
mod samples;
mod slopes;
mod stage;
mod steps;
mod sums;
mod term;
mod text;
mod trial;

#[cfg(test)]
mod tests;

pub(super) use lower::elements;
pub use rules::{Rule, rules};

use stage::{Stage, total_cost};

use super::Program;
use crate::error::{Error, Result};

/// Options of the simplification: which rules, and whether each rewrite is checked with numbers.
#[derive(Clone, Debug)]
pub struct Simplify {
    on: Vec<bool>,
    seed: Option<u64>,
    /// The first name that names no rule.
    unknown: Option<String>,
}

impl Default for Simplify {
    fn default() -> Self {
        Simplify::new()
    }
}

impl Simplify {
    /// All rules, unchecked.
    pub fn new() -> Simplify {
        Simplify { on: vec![true; rules().len()], seed: None, unknown: None }
    }

    /// Evaluates each rewrite in f64, before and after, on random numbers of this seed; a
    /// difference is an error that names the rule and the place.
    pub fn checked(mut self, seed: u64) -> Simplify {
        self.seed = Some(seed);
        self
    }

    /// All but this rule.
    pub fn without(mut self, rule: &str) -> Simplify {
        match rules().iter().position(|r| r.name == rule) {
            Some(i) => self.on[i] = false,
            None => self.not_known(rule),
        }
        self
    }

    /// Only these rules.
    pub fn only<'a>(mut self, wanted: impl IntoIterator<Item = &'a str>) -> Simplify {
        self.on.fill(false);
        for rule in wanted {
            match rules().iter().position(|r| r.name == rule) {
                Some(i) => self.on[i] = true,
                None => self.not_known(rule),
            }
        }
        self
    }

    fn not_known(&mut self, rule: &str) {
        self.unknown.get_or_insert_with(|| rule.to_string());
    }

    fn check(&self) -> Result<()> {
        let Some(name) = &self.unknown else { return Ok(()) };
        let known: Vec<_> = rules().iter().map(|r| r.name).collect();
        let why = format!("there is no rule `{name}`; the rules are {}", known.join(", "));
        Err(Error::argument("simplify", why))
    }
}

/// A simplified program, and what was done.
#[derive(Clone, Debug)]
pub struct Simplified {
    /// The program, of ordinary ops.
    pub program: Program,
    /// Each rule that was applied, in the order of the values.
    pub steps: Vec<Applied>,
}

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The name of the rule.
    pub rule: &'static str,
    /// The name of the value in whose formula it was applied.
    pub at: String,
    /// The formula before.
    pub before: String,
    /// The formula after.
    pub after: String,
    /// Elementwise operations saved, as the stage counts them.
    pub saved: i64,
}

impl Program {
    /// The program simplified by all rules of algebra: see [`rules`]. The results are equal up to
    /// rounding.
    pub fn simplified(&self) -> Result<Simplified> {
        self.simplify_with(&Simplify::new())
    }

    /// As [`Program::simplified`], with some of the rules, or with each rewrite checked.
    ///
    /// Errors for a name that is no rule, and in checked mode for a rewrite that changes a value.
    pub fn simplify_with(&self, how: &Simplify) -> Result<Simplified> {
        let (program, stage) = self.simplify_as(how, true)?;
        let steps = stage.map_or_else(Vec::new, |mut stage| stage.steps());
        Ok(Simplified { program, steps })
    }

    /// The program simplified, and the rules that were applied: as [`Program::simplify_with`],
    /// without the uses of rules in words, which take time.
    pub(super) fn simplified_by(&self, how: &Simplify) -> Result<(Program, Vec<&'static str>)> {
        let (program, stage) = self.simplify_as(how, false)?;
        Ok((program, stage.map_or_else(Vec::new, |stage| stage.rules())))
    }

    /// The program, and the stage if it has changed anything; `tells` asks for a report of what it
    /// did.
    fn simplify_as(&self, how: &Simplify, tells: bool) -> Result<(Program, Option<Stage>)> {
        how.check()?;
        let before = self.optimized();
        // An instruction costs as much as this many elements, so that formulas of small arrays do
        // not grow. It takes about 0.1 us, an element of a product 0.1 to 0.4 ns.
        const ELEMENTS: f64 = 256.0;
        match before.simplify_once(how, tells, (ELEMENTS, false))? {
            Attempt::Found(found) => return Ok((found.0, Some(found.1))),
            Attempt::Vain => return Ok((before, None)),
            Attempt::Longer => {}
        }
        // The second attempt minimises elements, the first the instructions of each value.
        let mut best = (before.clone(), None);
        for attempt in [(16.0 * ELEMENTS, false), (ELEMENTS, true)] {
            let cost = |p: &Program| (p.len(), total_cost(p, ELEMENTS));
            if let Attempt::Found(found) = before.simplify_once(how, tells, attempt)?
                && cost(&found.0) < cost(&best.0)
            {
                best = (found.0, Some(found.1));
            }
        }
        Ok(best)
    }

    /// One attempt, given what an instruction costs beside its elements, and whether no value may
    /// be written with more instructions than it had.
    fn simplify_once(
        &self,
        how: &Simplify,
        tells: bool,
        (overhead, is_strict): (f64, bool),
    ) -> Result<Attempt> {
        let Some(mut stage) = Stage::new(self, &how.on, how.seed, overhead) else {
            return Ok(Attempt::Vain);
        };
        (stage.tells, stage.is_strict) = (tells, is_strict);
        stage.read()?;
        // The formula is not trusted for an array whose rows are all roundings of one row.
        if stage.is_degenerate {
            return Ok(Attempt::Vain);
        }
        let program = stage.write_all()?.optimized();
        program.check()?;
        let cheaper = total_cost(&program, overhead) <= total_cost(self, overhead);
        Ok(match cheaper && program.len() <= self.len() {
            true => Attempt::Found(Box::new((program, stage))),
            false => Attempt::Longer,
        })
    }
}

/// The outcome of an attempt to simplify a program.
enum Attempt {
    /// A program that is cheaper, and no longer.
    Found(Box<(Program, Stage)>),
    Longer,
    /// Neither attempt helped.
    Vain,
}
