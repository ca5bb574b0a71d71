//! The report on a backward pass that was followed, as text.

use std::collections::HashMap;
use std::fmt;

use super::edits::EditKind;
use super::expression::Expression;
use super::known::Known;
use super::replay::{Replay, Run};
use super::search::Hit;
use crate::program::{Id, Origin, Place, bindings};
use crate::verdict::other::fraction;
use crate::verdict::reading::{Sizes, meaning, sizes_of};

/// A line of a backward pass that is wrong, and what it should be.
#[derive(Clone, Debug)]
pub struct Correction {
    pub(super) place: Option<Place>,
    pub(super) source: String,
    pub(super) corrected: String,
    pub(super) why: String,
}

impl Correction {
    /// The line of the user's code.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The text of the line, empty where its file cannot be read.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The line as it should be, or the expression.
    pub fn corrected(&self) -> &str {
        &self.corrected
    }

    /// The evidence: the value that stands there, and the right one.
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// The findings of [`backward`](super::backward()). `Display` writes it as a report.
#[derive(Clone, Debug)]
pub struct Followed {
    pub(super) given: usize,
    pub(super) wrong: Vec<String>,
    pub(super) corrections: Vec<Correction>,
    pub(super) is_whole: bool,
    /// Relative error of the worst gradient after the corrections, over all points.
    pub(super) error: f64,
}

impl Followed {
    /// Whether all gradients are right.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The inputs whose gradients are wrong.
    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }

    /// The mistakes with their corrections, after all of which the gradients are right; or after
    /// which more of them are, if [`Followed::is_whole`] says so. Empty where no edit of one
    /// instruction, or of two, makes them right.
    pub fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    /// Whether the corrections make all gradients right.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The relative error of the worst gradient once the corrections are made, at the given inputs
    /// and near them; infinite if they do not make all right.
    pub fn error(&self) -> f64 {
        if self.is_whole { self.error } else { f64::INFINITY }
    }
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_right() {
            return write!(
                f,
                "all {} gradients are right, at the given inputs and near them",
                self.given
            );
        }
        write!(
            f,
            "{} of {} gradients are wrong: {}",
            self.wrong.len(),
            self.given,
            self.wrong.join(", ")
        )?;
        if self.corrections.is_empty() {
            write!(f, "\nunidentified: no edit of one instruction, or of two, makes them right")?;
        }
        write_corrections(f, &self.corrections, self.is_whole.then_some(self.error))
    }
}

/// A block for each mistake. `error` is the error of the gradients after the corrections, if these
/// make all of them right.
pub(crate) fn write_corrections(
    f: &mut fmt::Formatter<'_>,
    corrections: &[Correction],
    error: Option<f64>,
) -> fmt::Result {
    for (i, c) in corrections.iter().enumerate() {
        if corrections.len() > 1 {
            write!(f, "\nmistake {} of {}", i + 1, corrections.len())?;
        }
        let place = c.place.as_ref().map_or_else(|| "here".to_string(), Place::to_string);
        let width = place.len().max("corrected".len()) + 2;
        let (blank, carets) = marks(&c.source, &c.corrected);
        write!(f, "\n{place:<width$}{}\n{:<width$}{blank}{carets}{}", c.source, "", c.why)?;
        write!(f, "\n{:<width$}{}", "corrected", c.corrected)?;
        if i + 1 == corrections.len() {
            match error {
                Some(0.0) => write!(f, "    right to the last bit")?,
                Some(error) => write!(f, "    right to {error:.0e}")?,
                None => write!(f, "    other gradients are wrong still")?,
            }
            if error.is_some() {
                write!(f, "; all else of the backward is right")?;
            }
        }
    }
    Ok(())
}

/// The blanks before the carets, and the carets under the part of a line that its correction
/// changes: whole words, or everything after the `=` if little of it stays.
fn marks(source: &str, corrected: &str) -> (String, String) {
    if source.is_empty() {
        return (String::new(), String::new());
    }
    let (old, new): (Vec<char>, Vec<char>) =
        (source.chars().collect(), corrected.chars().collect());
    let mut first = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - first;
    let back = old.iter().rev().zip(new.iter().rev()).take(rest);
    let mut end = old.len() - back.take_while(|(a, b)| a == b).count();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    while first > 0 && first < old.len() && word(old[first - 1]) && word(old[first]) {
        first -= 1;
    }
    while end > first && end < old.len() && word(old[end - 1]) && word(old[end]) {
        end += 1;
    }
    let behind = old.iter().position(|c| *c == '=').map_or(0, |at| at + 2).min(old.len());
    if first < behind || end <= first {
        (first, end) = (behind, old.len());
        while end > first && matches!(old[end - 1], ';' | ' ') {
            end -= 1;
        }
    }
    (" ".repeat(first), format!("{} ", "^".repeat((end - first).max(1))))
}

/// Writes edits in the user's words.
pub(crate) struct Writer<'a> {
    pub replay: &'a Replay,
    pub run: &'a Run,
    pub known: &'a Known,
    /// Names of values that the program has none for.
    pub names: HashMap<Id, String>,
}

impl Writer<'_> {
    fn name(&self, id: Id) -> Option<String> {
        let info = &self.replay.program.infos()[id.index()];
        if let Some(name) = self.names.get(&id) {
            return Some(name.clone());
        }
        if let Origin::Constant(value) = &info.from
            && info.meta.shape.rank() == 0
        {
            let x = chainrule_core::Tensor::from_parts(
                value.clone(),
                crate::tensor::node::Source::None,
            );
            return Some(number(x.to_f64_vec()[0]));
        }
        if info.given {
            return Some(info.name.clone());
        }
        if self.replay.maker[id.index()].is_some() {
            return None;
        }
        let x = self.run.tensor(id)?;
        let found = self.known.find(&x.to_f64_vec())?;
        (found.factor == 1.0).then(|| self.known.all[found.at].words.replace('`', ""))
    }

    /// A value in words: its name, or the code that makes it.
    pub fn text(&self, e: &Expression) -> String {
        let within = |id: Id| self.replay.maker[id.index()].map(|at| self.own(at));
        e.text(&|id| self.name(id), &number, &within)
    }

    fn own(&self, at: usize) -> Expression {
        Expression::of(&self.replay.program.list()[at])
    }

    /// The name of a value in the right passes.
    fn quantity(&self, id: Id) -> Option<&str> {
        let found = self.known.find(&self.run.tensor(id)?.to_f64_vec())?;
        (found.factor == 1.0).then(|| self.known.all[found.at].words.as_str())
    }

    pub fn sizes(&self, at: usize) -> Sizes {
        let i = &self.replay.program.list()[at];
        let ids = i.inputs.iter().chain([&i.outputs[0]]);
        ids.flat_map(|id| sizes_of(&self.replay.program.infos()[id.index()].meta.shape)).collect()
    }

    /// A factor with its origin.
    pub fn times(&self, at: usize, factor: f64) -> String {
        match meaning(factor, &self.sizes(at)) {
            text if text.is_empty() => fraction(factor),
            text => format!("{} ({text})", fraction(factor)),
        }
    }

    pub fn correction(&self, hit: &Hit) -> Correction {
        let instruction = &self.replay.program.list()[hit.edit.at];
        let place = instruction.location.clone();
        let source = place.as_ref().and_then(line).unwrap_or_default();
        let to = hit.change.to.with(hit.change.number);
        let corrected =
            self.in_line(hit, &source).unwrap_or_else(|| match self.name(instruction.result()) {
                Some(name) => format!("{name} = {}", self.text(&to)),
                None => self.text(&to),
            });
        Correction { place, source, corrected, why: self.why(hit) }
    }

    fn why(&self, hit: &Hit) -> String {
        let at = hit.edit.at;
        let op = self.replay.program.list()[at].op.name();
        let own = self.text(&self.own(at));
        match &hit.edit.kind {
            EditKind::Operand { was, now, turned } => {
                let show = |id: &Id| self.text(&Expression::Value(*id));
                let turned = if *turned { ", transposed" } else { "" };
                if was == now {
                    return format!("`{}` is to be transposed", show(was));
                }
                match (self.quantity(*was), self.quantity(*now)) {
                    (Some(is), Some(due)) if is != due => {
                        format!("`{}` is {is}; due here is {due}{turned}", show(was))
                    }
                    _ => format!("due here is `{}`{turned}, for `{}`", show(now), show(was)),
                }
            }
            EditKind::Factor => {
                format!("`{own}` is {} times what is due", self.times(at, 1.0 / hit.change.number))
            }
            EditKind::Term(id) => {
                format!("the term `{}` is missing", self.signed(hit.change.number, *id))
            }
            EditKind::Times(id) => {
                format!("the factor `{}` is missing", self.text(&Expression::Value(*id)))
            }
            EditKind::Over(id) => {
                format!("a division by `{}` is missing", self.text(&Expression::Value(*id)))
            }
            EditKind::Mask(id) => {
                format!("a mask is missing: {}", self.masked(*id))
            }
            EditKind::Skipped => format!("`{op}` is one too many"),
            EditKind::Swapped => "the operands are exchanged".to_string(),
            EditKind::Number => format!("a number in `{own}` is another one than is due"),
            EditKind::Twin => format!("`{op}` stands where another op is due"),
            EditKind::Donated => {
                format!("an operand of `{own}` is another one than the forward pass has there")
            }
            EditKind::Function => {
                format!("`{own}` takes an operand as it is where a function of it is due")
            }
        }
    }

    /// The effect of a mask.
    pub fn masked(&self, id: Id) -> String {
        let text = self.text(&Expression::Value(id));
        match self.replay.program.infos()[id.index()].meta.dtype {
            chainrule_core::DType::Bool => format!("0 where `{text}` is false"),
            _ => format!("0 where `{text}` is not above 0"),
        }
    }

    fn signed(&self, c: f64, id: Id) -> String {
        let text = self.text(&Expression::Value(id));
        match c {
            1.0 => text,
            -1.0 => format!("-{text}"),
            _ => format!("{} * {text}", number(c)),
        }
    }

    /// The user's line with one name in place of another, if that one occurs in it just once.
    fn in_line(&self, hit: &Hit, source: &str) -> Option<String> {
        let EditKind::Operand { was, now, turned } = &hit.edit.kind else { return None };
        let (was, mut new) = (self.name(*was)?, self.name(*now)?);
        if *turned {
            new = format!("{new}.t()");
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let right = source.find('=').filter(|_| source.starts_with("let ")).map_or(0, |at| at + 1);
        let mut places = source.match_indices(&was).filter(|(at, _)| {
            *at >= right
                && !source[..*at].ends_with(word)
                && !source[at + was.len()..].starts_with(word)
                && !source[..*at].ends_with('.')
        });
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        Some(format!("{}{new}{}", &source[..at], &source[at + was.len()..]))
    }
}

/// The text of a line.
fn line(place: &Place) -> Option<String> {
    let text = bindings::read(place.file())?;
    Some(text.lines().nth(place.line() as usize - 1)?.trim().to_string())
}

/// A number as a fraction of small ones, if it is one.
pub(crate) fn number(x: f64) -> String {
    let text = fraction(x);
    if text.contains('/') { format!("({text})") } else { text }
}
