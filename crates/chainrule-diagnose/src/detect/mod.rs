//! Detectors: each examines the description, the data or a watched run, and suspects causes. A
//! suspicion is no verdict: experiments decide.

mod course;
mod start;
mod statement;
mod table;

use crate::cause::Cause;
use crate::change::Change;
use crate::data::{Prepared, Targets};
use crate::description::Program;
use crate::run::Outcome;
use crate::watch::Watch;

pub(crate) use table::{
    constant_loss, information, is_complete, is_split_by_class, not_finite, rare_classes,
    share_of_copies,
};

/// A suspected cause.
#[derive(Clone, Debug)]
pub struct Suspicion {
    /// The cause.
    pub cause: Cause,
    /// From 0 to 1. At 1 the description alone shows that something is wrong.
    pub strength: f64,
    /// The place in the description, as a path.
    pub place: String,
    /// The step from which on it holds.
    pub since: usize,
    /// Evidence in words.
    pub text: String,
    /// Evidence as numbers, by name.
    pub numbers: Vec<(&'static str, f64)>,
    /// The changes that would fix it, best first.
    pub remedies: Vec<Change>,
}

/// Findings being collected: for each cause the strongest.
#[derive(Default)]
pub(crate) struct Findings {
    all: Vec<Suspicion>,
    /// The one that was added last, if it was strong enough.
    newest: Option<usize>,
}

impl Findings {
    pub(crate) fn add(
        &mut self,
        cause: Cause,
        strength: f64,
        place: impl Into<String>,
        text: impl Into<String>,
        remedies: &[Change],
    ) -> &mut Findings {
        self.since(cause, strength, place, 0, text, remedies)
    }

    pub(crate) fn since(
        &mut self,
        cause: Cause,
        strength: f64,
        place: impl Into<String>,
        since: usize,
        text: impl Into<String>,
        remedies: &[Change],
    ) -> &mut Findings {
        let new = Suspicion {
            cause,
            strength,
            place: place.into(),
            since,
            text: text.into(),
            numbers: Vec::new(),
            remedies: remedies.to_vec(),
        };
        self.newest = self.all.iter().position(|f| f.cause == cause);
        match self.newest.map(|i| &mut self.all[i]) {
            Some(old) if old.strength >= strength => {
                let mut more = new.remedies;
                more.retain(|r| !old.remedies.contains(r));
                old.remedies.extend(more);
                self.newest = None;
            }
            Some(old) => *old = new,
            None => {
                self.newest = Some(self.all.len());
                self.all.push(new);
            }
        }
        self
    }

    /// Attaches numbers to the finding that was just added.
    pub(crate) fn with(&mut self, numbers: &[(&'static str, f64)]) {
        if let Some(newest) = self.newest {
            self.all[newest].numbers = numbers.to_vec();
        }
    }

    pub(crate) fn has(&self, cause: Cause) -> bool {
        self.all.iter().any(|f| f.cause == cause)
    }
}

/// The input of all detectors.
pub(crate) struct Seen<'a> {
    pub program: &'a Program,
    pub data: &'a Prepared,
    pub watch: &'a Watch,
    pub run: &'a Outcome,
    /// The loss of the best constant answer, where there is such a number.
    pub base: Option<f64>,
}

/// All suspicions, the strongest first.
pub(crate) fn findings(seen: &Seen<'_>) -> Vec<Suspicion> {
    let mut all = Findings::default();
    statement::look(seen, &mut all);
    table::look(seen, &mut all);
    start::look(seen, &mut all);
    course::look(seen, &mut all);
    // The sort is stable: among equals, the one found first stays first.
    all.all.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    all.all
}

/// The smallest, the largest and the mean size of the targets' numbers.
pub(crate) fn target_range(y: &Targets) -> (f64, f64) {
    match y {
        Targets::Classes(_) => (0.0, 1.0),
        Targets::Numbers { numbers, .. } => {
            numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| {
                (a.min(v.into()), b.max(v.into()))
            })
        }
    }
}
