//! Reading an einsum equation: which axes of the operands and of the result have which label.

use super::NAME;
use crate::error::{Error, Result};
use crate::shape::{MAX_RANK, Shape};

/// The label of an axis: a letter, or an axis that an ellipsis stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// The `k`th axis of the ellipsis, counted so that the last one is the same in all operands.
    Ellipsis(usize),
    Letter(char),
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Letter(c) => write!(f, "label '{c}'"),
            Label::Ellipsis(k) => write!(f, "axis {k} of the ellipsis"),
        }
    }
}

/// An equation for operands of known shapes.
#[derive(Debug)]
pub(super) struct Equation {
    /// For each operand the labels of its axes.
    pub inputs: Vec<Vec<Label>>,
    pub output: Vec<Label>,
}

pub(super) fn error<T>(why: String) -> Result<T> {
    Err(Error::argument(NAME, why))
}

/// One side's labels for one tensor: letters before the ellipsis, whether there is one, and letters
/// after it.
struct Subscripts {
    before: Vec<char>,
    ellipsis: bool,
    after: Vec<char>,
}

impl Subscripts {
    fn read(text: &str) -> Result<Subscripts> {
        let (before, after) = match text.split_once("...") {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let letters = |part: &str| -> Result<Vec<char>> {
            match part.chars().find(|c| !c.is_ascii_alphabetic()) {
                Some('.') => {
                    error(format!("an ellipsis is three dots, once for each operand: {text:?}"))
                }
                Some(c) => error(format!("{c:?} is no label in {text:?}; labels are letters")),
                None => Ok(part.chars().collect()),
            }
        };
        let (ellipsis, after) = (after.is_some(), after.unwrap_or(""));
        Ok(Subscripts { before: letters(before)?, ellipsis, after: letters(after)? })
    }

    fn count(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// The labels, where the ellipsis stands for `own` axes, the last of `most`.
    fn labels(&self, own: usize, most: usize) -> Vec<Label> {
        let letters = |part: &[char]| part.iter().copied().map(Label::Letter).collect::<Vec<_>>();
        let middle: Vec<Label> = (most - own..most).map(Label::Ellipsis).collect();
        [letters(&self.before), middle, letters(&self.after)].concat()
    }
}

impl Equation {
    /// Reads `text` for operands of these shapes.
    pub fn read(text: &str, shapes: &[Shape]) -> Result<Equation> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let subscripts = left.split(',').map(Subscripts::read).collect::<Result<Vec<_>>>()?;
        if subscripts.len() != shapes.len() {
            let (have, want) = (shapes.len(), subscripts.len());
            return error(format!("{left:?} has subscripts for {want} operands, {have} are given"));
        }
        let mut lengths = Vec::new();
        for (i, (s, shape)) in subscripts.iter().zip(shapes).enumerate() {
            let (count, rank) = (s.count(), shape.rank());
            if count > rank || (!s.ellipsis && count < rank) {
                let why = format!(
                    "operand {i} has {rank} axes, its subscripts have {count} labels; an ellipsis stands for what is left over"
                );
                return Err(Error::shape(NAME, &[shape], why));
            }
            lengths.push(rank - count);
        }
        let most = lengths.iter().copied().max().unwrap_or(0);
        let inputs: Vec<Vec<Label>> =
            subscripts.iter().zip(lengths).map(|(s, own)| s.labels(own, most)).collect();
        let output = match right {
            Some(right) => {
                let s = Subscripts::read(right)?;
                s.labels(if s.ellipsis { most } else { 0 }, most)
            }
            None => implicit(&inputs),
        };
        let equation = Equation { inputs, output };
        equation.check_output()?;
        Ok(equation)
    }

    fn check_output(&self) -> Result<()> {
        for (k, label) in self.output.iter().enumerate() {
            if self.output[..k].contains(label) {
                return error(format!("{label} occurs twice in the output"));
            }
            if !self.inputs.iter().flatten().any(|l| l == label) {
                return error(format!("{label} of the output occurs in no operand"));
            }
        }
        if self.output.len() > MAX_RANK {
            let n = self.output.len();
            return error(format!("the result would have {n} axes; a tensor has at most 8"));
        }
        Ok(())
    }
}

/// The output of an equation without an arrow: the ellipsis, then the labels that occur once, in
/// order; capitals come first.
fn implicit(inputs: &[Vec<Label>]) -> Vec<Label> {
    let mut all: Vec<Label> = inputs.concat();
    all.sort();
    let once = |l: &Label| {
        matches!(l, Label::Ellipsis(_)) || all.iter().filter(|other| *other == l).count() == 1
    };
    let mut out: Vec<Label> = all.iter().copied().filter(once).collect();
    out.dedup();
    out
}
