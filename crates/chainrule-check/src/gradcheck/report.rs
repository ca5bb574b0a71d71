//! Report of a check.

use std::fmt;

use super::kinks::Kink;
use super::laws::BrokenLaw;
use super::precision;
use super::problems::Problem;
use crate::program::Place;

/// The report of [`gradcheck`](super::gradcheck): one entry for each pair of an output and an
/// input, and other observations.
#[derive(Clone, Debug)]
pub struct GradCheck {
    /// Every output against every float input; with order 2 also every gradient against every input
    /// and cotangent.
    pub pairs: Vec<PairCheck>,
    /// Problems of the function itself, rather than of its derivatives.
    pub problems: Vec<Problem>,
    /// The points far from the given one at which nothing could be learnt, and why.
    pub notes: Vec<String>,
    /// The relative error that passes against forward mode.
    pub tolerance: f64,
    /// Number of calls of the function.
    pub calls: usize,
    /// Number of passes over its tapes, backward and forward.
    pub passes: usize,
}

/// An input or output of the function, or of its gradient, which is itself a function of the inputs
/// and the cotangents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Input `i` of the function.
    Input(usize),
    /// Output `o` of the function.
    Output(usize),
    /// The gradient of input `i`.
    Gradient(usize),
    /// The cotangent of output `o`: what the gradients are linear in.
    Cotangent(usize),
}

/// The derivative of one output with respect to one input, checked.
#[derive(Clone, Debug)]
pub struct PairCheck {
    /// 1 for the gradient, 2 for the gradient of the gradient.
    pub order: usize,
    /// The differentiated output: [`Slot::Output`], with order 2 [`Slot::Gradient`].
    pub output: Slot,
    /// With respect to what: [`Slot::Input`], with order 2 also [`Slot::Cotangent`].
    pub input: Slot,
    /// The verdict.
    pub outcome: Outcome,
    /// The relative error along the worst probe: `|a - b| / s`, with `s` the root of the sum of the
    /// squares of the products that `a` and `b` are summed from. It compares reverse with forward
    /// mode, or with differences if there is no independent forward mode.
    pub error: f64,
    /// `<J^T v, u>` along that probe, by reverse mode.
    pub reverse: f64,
    /// `<v, J u>` along that probe, by forward mode. `None` if it is not there.
    pub forward: Option<f64>,
    /// The derivative along the first probe by differences, with the reverse and forward values of
    /// that probe beside it. `None` where they were not needed: the modes disagree, or there is a
    /// kink at the point.
    pub difference: Option<Directional>,
    /// The worst element found of a wrong derivative.
    pub worst: Option<Worst>,
    /// Place and op of a gradient that is not finite.
    pub not_finite: Option<NotFinite>,
    /// Kinks of the function at the point, or beside it where differences cannot avoid them.
    pub kinks: Vec<Kink>,
    /// Whether all this was found at a point beside the given one, at which the gradient is right
    /// or cannot be judged.
    pub beside: bool,
    /// Whether it was found at larger inputs, while the gradient is right at the given ones and
    /// beside them.
    pub far: bool,
    /// The law of backward rules that is broken, if one is: then the outcome is [`Blame::Reverse`].
    pub law: Option<BrokenLaw>,
    /// The rounding unit of the arithmetic that the values and the gradient come from: that of f64
    /// unless their bits show a narrower type. By its rounding a right gradient may be off.
    pub unit: f64,
}

/// The derivative along one probe, against differences.
#[derive(Clone, Copy, Debug)]
pub struct Directional {
    /// By reverse mode.
    pub reverse: f64,
    /// By forward mode.
    pub forward: Option<f64>,
    /// By differences.
    pub difference: f64,
    /// Allowed distance of a right value from the differences.
    pub allowed: f64,
    /// Whether the differences mean nothing, because the steps disagree.
    pub kink: bool,
}

/// The first element of a gradient that is NaN or infinite.
#[derive(Clone, Debug)]
pub struct NotFinite {
    /// Its index in the input.
    pub index: Vec<usize>,
    /// The element.
    pub value: f64,
    /// The op in whose backward rule such numbers arose, and the line that called it.
    pub op: Option<(&'static str, Option<Place>)>,
}

/// One element of a gradient: that of the output's product with the random cotangent under which
/// the mistake was seen. The three values share that factor, so their ratios are those of the
/// derivatives.
#[derive(Clone, Debug)]
pub struct Worst {
    /// Its index in the input.
    pub index: Vec<usize>,
    /// Its gradient by reverse mode.
    pub reverse: f64,
    /// By forward mode.
    pub forward: Option<f64>,
    /// By differences.
    pub difference: f64,
    /// `|a - b| / max(|a|, |b|)` of the wrong value and the right one.
    pub error: f64,
}

/// The verdict on one derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All paths agree.
    Passed,
    /// The rules agree where they can be compared, and differences do not apply: a kink is at the
    /// point or beside it.
    Kink,
    /// The value does not change with the input, and no path on the tape leads to it.
    Independent,
    /// The value changes with the input, and no path on the tape leads to it: something was
    /// detached or computed off the tape.
    CutOff,
    /// Nothing can be said: the differences drown in rounding or are too coarse to judge by, and
    /// there is nothing else. This does not pass.
    Uncertain,
    /// It has an element that is not a number or infinite.
    NotFinite,
    /// The derivative is wrong.
    Wrong(Blame),
}

/// The outcome of a check as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing is wrong, and everything could be judged.
    Right,
    /// A derivative is wrong, or the function itself.
    Wrong,
    /// Nothing was found wrong, but some derivative could not be judged.
    Uncertain,
}

/// The wrong rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Reverse mode: forward mode agrees with differences, or there is none.
    Reverse,
    /// Forward mode: reverse mode agrees with differences.
    Forward,
    /// They agree with each other and not with differences. Both have the same mistake, or a part
    /// of the function is not on the tape.
    Both,
    /// They disagree, and differences cannot tell which is wrong.
    Unclear,
}

impl GradCheck {
    /// Whether everything was judged and nothing is wrong. Kinks are not wrong;
    /// [`GradCheck::kinks`] has them.
    pub fn passed(&self) -> bool {
        self.judgement() == Judgement::Right
    }

    /// The outcome of the check: that all is right, that something is wrong, or that it cannot be
    /// told.
    pub fn judgement(&self) -> Judgement {
        match () {
            _ if !self.problems.is_empty() || self.failures().next().is_some() => Judgement::Wrong,
            _ if self.uncertain().next().is_some() => Judgement::Uncertain,
            _ => Judgement::Right,
        }
    }

    /// The derivatives that are wrong or not finite.
    pub fn failures(&self) -> impl Iterator<Item = &PairCheck> {
        self.pairs.iter().filter(|pair| !pair.is_open())
    }

    /// The derivatives that could not be judged.
    pub fn uncertain(&self) -> impl Iterator<Item = &PairCheck> {
        self.pairs.iter().filter(|pair| pair.outcome == Outcome::Uncertain)
    }

    /// The pairs that lie on a kink.
    pub fn kinks(&self) -> impl Iterator<Item = &PairCheck> {
        self.pairs.iter().filter(|pair| pair.outcome == Outcome::Kink)
    }

    /// The largest relative error over all pairs.
    pub fn error(&self) -> f64 {
        let worse = |m: f64, p: &PairCheck| if m.is_nan() || m > p.error { m } else { p.error };
        self.pairs.iter().fold(0.0, worse)
    }
}

impl PairCheck {
    /// Whether the derivative was judged and is not wrong: right, or at a kink.
    pub fn passed(&self) -> bool {
        self.is_open() && self.outcome != Outcome::Uncertain
    }

    /// Whether nothing wrong was found.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.outcome, Outcome::CutOff | Outcome::NotFinite | Outcome::Wrong(_))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Input(i) => write!(f, "input {i}"),
            Slot::Output(o) => write!(f, "output {o}"),
            Slot::Gradient(i) => write!(f, "the gradient of input {i}"),
            Slot::Cotangent(o) => write!(f, "the cotangent of output {o}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Passed => "passed",
            Outcome::Kink => "KINK: the rules agree, differences do not apply",
            Outcome::Independent => "passed: the value does not depend on it",
            Outcome::CutOff => {
                "CUT OFF: the value changes with it, and no path on the tape leads to it (detach, no_grad, or values taken out)"
            }
            Outcome::Uncertain => {
                "UNCERTAIN: the differences drown in rounding or are too coarse to judge by (scale inputs and outputs to about 1, or check in \
                 float64)"
            }
            Outcome::NotFinite => "NOT FINITE",
            Outcome::Wrong(Blame::Reverse) => "WRONG: reverse mode (the backward rule)",
            Outcome::Wrong(Blame::Forward) => "WRONG: forward mode (the forward rule)",
            Outcome::Wrong(Blame::Both) => {
                "WRONG: reverse and forward mode agree with each other and not with differences (the same mistake in both, or a \
                 part that is not on the tape)"
            }
            Outcome::Wrong(Blame::Unclear) => {
                "WRONG: reverse and forward mode disagree, and differences cannot tell which is right"
            }
        })
    }
}

impl fmt::Display for GradCheck {
    /// The problems, then one line for each pair.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "PROBLEM: {problem}")?;
        }
        for pair in &self.pairs {
            writeln!(f, "{pair}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let (wrong, kinks) = (self.failures().count(), self.kinks().count());
        write!(f, "{} derivatives checked", self.pairs.len())?;
        write!(f, ", {wrong} wrong, {kinks} at kinks")?;
        match self.uncertain().count() {
            0 => {}
            uncertain => write!(f, ", {uncertain} uncertain")?,
        }
        write!(f, "; {} calls of the function, {} passes over its tapes", self.calls, self.passes)
    }
}

impl fmt::Display for PairCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}: {}", self.output, self.input, self.outcome)?;
        if self.far {
            f.write_str(
                "; at inputs of several times their size, while it is right at the given ones",
            )?;
        } else if self.beside {
            let there =
                if self.kinks.is_empty() { "where it is right" } else { "which is at a kink" };
            write!(f, "; at a point beside the given one, {there}")?;
        }
        if let Some(law) = &self.law {
            return write!(f, "; {law}");
        }
        if self.unit > precision::DOUBLE {
            write!(f, "; as far as {} can tell", precision::name(self.unit))?;
        }
        write!(f, "; relative error {:.1e} along a probe", self.error)?;
        if let Some(d) = &self.difference {
            write!(f, " (reverse {:.9e}", d.reverse)?;
            if let Some(forward) = d.forward {
                write!(f, ", forward {forward:.9e}")?;
            }
            if d.kink {
                write!(f, ", differences disagree among themselves)")?;
            } else {
                write!(f, ", differences {:.9e} within {:.1e})", d.difference, d.allowed)?;
            }
        }
        if let Some(worst) = &self.worst {
            write!(f, "; worst element {worst}")?;
        }
        if let Some(found) = &self.not_finite {
            write!(f, "; it is {} at {:?}", found.value, found.index)?;
            if let Some((op, place)) = &found.op {
                write!(f, ", which arose in the backward of {op}")?;
                if let Some(place) = place {
                    write!(f, " ({place})")?;
                }
            }
        }
        for kink in &self.kinks {
            write!(f, "; {kink}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: reverse {:.9e}", self.index, self.reverse)?;
        if let Some(forward) = self.forward {
            write!(f, ", forward {forward:.9e}")?;
        }
        write!(f, ", differences {:.9e}, relative error {:.1e}", self.difference, self.error)
    }
}
