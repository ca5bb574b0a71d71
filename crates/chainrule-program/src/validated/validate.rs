//! The first run: the optimised program beside the plain one.

use std::ops::Range;
use std::sync::Arc;

use super::compare::{Apart, agree_by_size, apart, judged, surely_agree};
use super::guarded;
use super::twin::{self, Runs, Twin};
use crate::Program;
use crate::algebra::Simplify;
use crate::error::{Error, Result};
use crate::ir::{Origin, Out};
use crate::rng::{Generator, Stream};
use crate::tensor::Tensor;
use crate::tensor::log::Drawn;
use crate::tensor::node::Leaf;
use crate::tensor::value::Value;

/// The programs to compare with.
pub(super) struct Pending {
    /// As it was traced, without dead code.
    pub plain: Program,
    /// The plain program, with the gradients that updates take among the outputs.
    pub probe: Program,
    /// The probe, simplified.
    pub simple: Program,
    /// The rules that were applied.
    pub rules: Vec<&'static str>,
    pub simplified: bool,
}

/// The outcome of the first run.
pub(super) enum Outcome {
    Same,
    /// The plain program fails on these arguments too.
    Error(Error),
    /// The results are those of the plain program, which is to run from now on.
    Parted {
        why: String,
        plain: Box<Program>,
    },
}

/// The state that a run changes, as it was before.
struct Snapshot {
    cells: Vec<(Arc<Leaf>, Arc<Value>)>,
    generators: Vec<(Generator, Stream)>,
}

impl Snapshot {
    fn of(program: &Program) -> Snapshot {
        let cell = |leaf: &Arc<Leaf>| (leaf.clone(), leaf.now());
        let generators = program.instructions.iter().filter_map(|i| i.op.generator());
        Snapshot {
            cells: program.cells.iter().map(|c| cell(&c.leaf)).collect(),
            generators: generators.map(|g| (g.share(), g.snapshot())).collect(),
        }
    }

    fn restore(&self) {
        for (leaf, value) in &self.cells {
            *leaf.value.here() = value.clone();
        }
        self.rewind();
    }

    /// The generators alone.
    fn rewind(&self) {
        for (generator, stream) in &self.generators {
            generator.lock().clone_from(stream);
        }
    }
}

/// The plain program's results, and how far their roundings have been looked into.
struct Grounds {
    runs: Runs,
    twin: Twin,
}

impl Pending {
    /// Runs the optimised program, and the plain one on the same values.
    pub fn first_run(
        &self,
        program: &Program,
        arguments: &[&Tensor],
        results: &mut Vec<Tensor>,
    ) -> Outcome {
        if let Some(e) = program.refusal(arguments) {
            return Outcome::Error(e);
        }
        let before = Snapshot::of(&self.probe);
        let outcome = self.compared(program, arguments, results, &before);
        let why = match outcome {
            Ok(None) => return Outcome::Same,
            Ok(Some(why)) => why,
            Err(why) => why,
        };
        // The results are those of the plain program in any case.
        before.restore();
        let plain = self.fallback(arguments, &before);
        match plain.run_into(arguments, results) {
            Ok(()) => Outcome::Parted { why, plain: Box::new(plain) },
            Err(e) => Outcome::Error(e),
        }
    }

    /// The plain program: optimized by the passes that change no bit, if they do not.
    fn fallback(&self, arguments: &[&Tensor], before: &Snapshot) -> Program {
        let plain = || self.plain.clone();
        let Ok(optimized) = guarded(|| Ok(self.plain.optimized())) else { return plain() };
        let bits = |program| {
            let roots = self.roots_of(program, arguments, before).ok()?;
            Some(roots.iter().map(|root| twin::bits(root)).collect::<Vec<_>>())
        };
        match bits(&optimized).is_some_and(|same| Some(same) == bits(&self.plain)) {
            true => optimized,
            false => plain(),
        }
    }

    /// Why the results part, if they do; an error where a program fails.
    fn compared(
        &self,
        program: &Program,
        arguments: &[&Tensor],
        results: &mut Vec<Tensor>,
        before: &Snapshot,
    ) -> std::result::Result<Option<String>, String> {
        let first = if self.has_new_numbers() { Runs::Few } else { Runs::Plain };
        let mut grounds = self.grounds(first, arguments, before)?;
        if self.simplified {
            let simple = self.roots_of(&self.simple, arguments, before);
            let simple =
                simple.map_err(|e| format!("{PLAIN}, since the simplified one fails: {e}"))?;
            if let Some(apart) = self.parted(&simple, 0..0, &mut grounds, arguments, before)? {
                let blamed = self.blamed(arguments, &grounds.twin, before);
                return Ok(Some(self.said(&apart, Some(&blamed))));
            }
        }
        before.rewind();
        guarded(|| program.run_into(arguments, results))
            .map_err(|e| format!("{PLAIN}, since the fused one fails: {e}"))?;
        let outputs = results.iter().map(Tensor::value);
        let cells = self.probe.cells.iter().filter(|c| c.write.is_some());
        let new: Vec<Arc<Value>> = outputs.chain(cells.map(|c| c.leaf.now())).collect();
        // Roots of the probe that the program has.
        let gradients = self.plain.outputs.len()..self.probe.outputs.len();
        if new.len() + gradients.len() != grounds.twin.plain.len() {
            return Err(format!("{PLAIN}, since the optimised one has other results"));
        }
        let parted = self.parted(&new, gradients.clone(), &mut grounds, arguments, before)?;
        Ok(parted.map(|mut apart| {
            if apart.root >= gradients.start {
                apart.root += gradients.len();
            }
            self.said(&apart, None)
        }))
    }

    /// Whether a root that the plain program computes is a number in the simplified one: a gradient
    /// that is zero but for rounding, whose size only other runs tell.
    fn has_new_numbers(&self) -> bool {
        let is = |program: &Program, out: &Out, constant: bool| {
            matches!(program.info(out.id).from, Origin::Constant(_)) == constant
        };
        let pairs = self.probe.outputs.iter().zip(&self.simple.outputs);
        let mut new = pairs.map(|(a, b)| is(&self.probe, a, false) && is(&self.simple, b, true));
        new.any(|is_new| is_new)
    }

    /// The root that parts the most, if any does: the roundings of the plain program are estimated
    /// by as many runs as this takes. The new roots lack those that are gone.
    fn parted(
        &self,
        new: &[Arc<Value>],
        gone: Range<usize>,
        grounds: &mut Grounds,
        arguments: &[&Tensor],
        before: &Snapshot,
    ) -> std::result::Result<Option<Apart>, String> {
        loop {
            let twin = grounds.twin.clone().without(&gone);
            let next = match grounds.runs {
                Runs::Plain if surely_agree(new, &twin.plain) => return Ok(None),
                Runs::Plain => Runs::Few,
                Runs::Few if agree_by_size(new, &twin) && apart(new, &twin).is_none() => {
                    return Ok(None);
                }
                Runs::Few => Runs::All,
                Runs::All => return Ok(apart(new, &twin)),
            };
            *grounds = self.grounds(next, arguments, before)?;
        }
    }

    /// The plain program on the state as it was before, whatever has been made of that since.
    fn grounds(
        &self,
        runs: Runs,
        arguments: &[&Tensor],
        before: &Snapshot,
    ) -> std::result::Result<Grounds, String> {
        let now = Snapshot::of(&self.probe);
        before.restore();
        let twin = match runs {
            Runs::Plain => self.plain_alone(arguments, before),
            runs => self.twin(runs, arguments, before),
        };
        now.restore();
        Ok(Grounds { runs, twin: twin? })
    }

    fn twin(
        &self,
        runs: Runs,
        arguments: &[&Tensor],
        before: &Snapshot,
    ) -> std::result::Result<Twin, String> {
        self.probe.fresh.iter().for_each(Drawn::rewind);
        let beside = guarded(|| twin::run_beside(&self.probe, arguments, runs));
        before.rewind();
        // Without other runs the roundings that any program has are all that is allowed.
        beside.or_else(|_| self.plain_alone(arguments, before))
    }

    fn plain_alone(
        &self,
        arguments: &[&Tensor],
        before: &Snapshot,
    ) -> std::result::Result<Twin, String> {
        let plain = self.roots_of(&self.probe, arguments, before)?;
        Ok(Twin { plain, phases: twin::phases(&self.probe), ..Twin::default() })
    }

    fn roots_of(
        &self,
        program: &Program,
        arguments: &[&Tensor],
        before: &Snapshot,
    ) -> std::result::Result<Vec<Arc<Value>>, String> {
        before.rewind();
        program.fresh.iter().for_each(Drawn::rewind);
        let roots = guarded(|| twin::run(program, &self.plain.cells, arguments));
        before.rewind();
        roots
    }

    fn said(&self, apart: &Apart, rules: Option<&str>) -> String {
        let id = self.probe.roots().nth(apart.root).expect("a root parted");
        let name = self.probe.name(id);
        let pass = match rules {
            Some(rules) => format!("simplified ({rules})"),
            None => "fused".to_string(),
        };
        format!(
            "{PLAIN}: {pass}, `{name}` is off by {:.1e} where its size is {:.1e} and its rounding error {:.1e}",
            apart.by, apart.size, apart.allowed
        )
    }

    /// The rule without which the results agree, if there is one.
    fn blamed(&self, arguments: &[&Tensor], twin: &Twin, before: &Snapshot) -> String {
        let agrees = |rule: &&&'static str| {
            let how = Simplify::new().without(rule);
            let without = guarded(|| self.probe.optimized().simplified_by(&how));
            let roots = without.and_then(|(p, _)| self.roots_of(&p, arguments, before));
            roots.is_ok_and(|roots| apart(&roots, twin).is_none())
        };
        match self.rules.iter().find(agrees) {
            Some(rule) => format!("by the rule `{rule}`"),
            None => "by several rules".to_string(),
        }
    }
}

const PLAIN: &str = "the plain program runs";

/// A result of a program from another form of it, beside what rounding explains; see
/// [`Program::differences`].
#[derive(Clone, Debug, PartialEq)]
pub struct ResultDifference {
    /// The name of the result.
    pub name: String,
    /// The distance from this program's result, or in f32 from its result in f64.
    pub by: f64,
    /// The largest element of this program's result.
    pub size: f64,
    /// The most that `by` may be.
    pub allowed: f64,
}

impl ResultDifference {
    /// Whether the difference is more than rounding explains.
    pub fn parts(&self) -> bool {
        self.by > self.allowed
    }
}

impl Program {
    /// The results that another form of this program gave for these arguments, each beside this
    /// program's own: how far they are apart, and how far roundings may take them.
    ///
    /// The share of rounding is measured as in the first run of a [`Validated`](super::Validated):
    /// by runs of this program in f64, on inputs moved in their last bits, and with its steps moved
    /// too. A result that is rounding alone, such as the gradient of a bias before a batch norm,
    /// is thus judged by the sizes that cancelled in it, not by its own. Errors for arguments that
    /// the program does not take, and for results of other shapes or dtypes than its own.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::from([1.0f64, 2.0]);
    /// let program = Program::trace([("x", &x)], |a| Ok(vec![a[0].exp().sum_all().named("y")]))?;
    /// let own = program.run(&[&x])?;
    /// assert_eq!(program.differences(&[&x], &own)?[0].by, 0.0);
    /// let other = Tensor::scalar(own[0].item() + 1e-3);
    /// let apart = &program.differences(&[&x], &[other])?[0];
    /// assert!(apart.parts() && apart.name == "y", "{apart:?}");
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn differences(
        &self,
        arguments: &[&Tensor],
        results: &[Tensor],
    ) -> Result<Vec<ResultDifference>> {
        if let Some(e) = self.refusal(arguments) {
            return Err(e);
        }
        let metas = self.outputs.iter().map(|out| self.info(out.id).meta);
        if !metas.eq(results.iter().map(Tensor::meta)) {
            let why = "these are no results of this program: their number, a shape or a dtype is another one";
            return Err(Error::argument("differences", why));
        }
        let before = Snapshot::of(self);
        self.fresh.iter().for_each(Drawn::rewind);
        let twin = twin::run_beside(self, arguments, Runs::All);
        before.rewind();
        let twin = twin?;
        let cells = results.len()..twin.plain.len();
        let new: Vec<Arc<Value>> = results.iter().map(Tensor::value).collect();
        let all = judged(&new, &twin.without(&cells)).into_iter();
        let named = all.map(|apart| ResultDifference {
            name: self.outputs[apart.root].name.clone(),
            by: apart.by,
            size: apart.size,
            allowed: apart.allowed,
        });
        Ok(named.collect())
    }

    /// The error for arguments that the program does not take, or for a run inside a trace.
    fn refusal(&self, arguments: &[&Tensor]) -> Option<Error> {
        crate::run::not_traced().and_then(|()| self.check_arguments(arguments)).err()
    }
}
