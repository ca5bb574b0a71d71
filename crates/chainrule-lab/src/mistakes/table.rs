//! The results, case by case and in all.

use std::collections::BTreeMap;

use super::trial::{Fate, Naming};
use super::{Subject, Trial};

/// Counts of planted mistakes by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Mistakes that were planted, without the harmless ones.
    pub planted: usize,
    /// Noticed by the oracle.
    pub detected: usize,
    /// Named, with their place, and nothing else named.
    pub named: usize,
    /// Named among others that give the same numbers.
    pub listed: usize,
    /// Changed a gradient and were not noticed.
    pub missed: usize,
    /// Changed no gradient of a parameter.
    pub harmless: usize,
    /// Noticed, and something else was named.
    pub misnamed: usize,
    /// Noticed, and nothing was named.
    pub unidentified: usize,
    /// In the composed models, from the gradients of the parameters alone: named, listed, and
    /// neither.
    pub from_parameters: [usize; 3],
}

/// The cases of one mistake at one op in one setting.
#[derive(Clone, Debug)]
pub struct MistakeRow {
    /// The op whose backward was wrong; `leaf` for a parameter whose parts were not added.
    pub op: &'static str,
    /// The mistake.
    pub mistake: &'static str,
    /// `alone`, or the composed model.
    pub setting: String,
    /// Outcomes of the mistake.
    pub counts: Counts,
    /// The verdict's text in the first case that was not named.
    pub said: String,
}

/// All results of [`mistakes`](super::mistakes).
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<(String, &'static str, &'static str), MistakeRow>,
    untouched: usize,
    alarms: Vec<String>,
}

impl Table {
    pub(super) fn add(&mut self, subject: &Subject, trial: Trial) {
        let setting = if subject.is_model { subject.name.clone() } else { "alone".to_string() };
        let row = MistakeRow {
            op: trial.op,
            mistake: trial.mistake,
            setting: setting.clone(),
            counts: Counts::default(),
            said: String::new(),
        };
        let row = self.rows.entry((setting, trial.op, trial.mistake)).or_insert(row);
        row.counts.add(&trial);
        let unnamed =
            trial.naming.is_some_and(|n| n != Naming::Named) || trial.fate == Fate::Missed;
        if unnamed && row.said.is_empty() {
            row.said = format!("{} (input {:?}): {}", subject.name, trial.input, trial.said);
        }
    }

    pub(super) fn untouched(&mut self, subject: &Subject, alarm: bool) {
        self.untouched += 1;
        if alarm {
            self.alarms.push(subject.name.clone());
        }
    }

    /// The rows, by setting, op and mistake.
    pub fn rows(&self) -> impl Iterator<Item = &MistakeRow> {
        self.rows.values()
    }

    /// The sums of all rows.
    pub fn totals(&self) -> Counts {
        self.rows.values().fold(Counts::default(), |sum, row| sum.plus(&row.counts))
    }

    /// Number of runs in which nothing was planted.
    pub fn untouched_runs(&self) -> usize {
        self.untouched
    }

    /// Runs in which the checks raised an alarm though nothing was planted.
    pub fn false_alarms(&self) -> &[String] {
        &self.alarms
    }
}

impl Counts {
    fn add(&mut self, trial: &Trial) {
        match trial.fate {
            Fate::Harmless => {
                self.harmless += 1;
                return;
            }
            Fate::Missed => self.missed += 1,
            Fate::Detected => self.detected += 1,
        }
        self.planted += 1;
        match trial.naming {
            Some(Naming::Named) => self.named += 1,
            Some(Naming::Listed) => self.listed += 1,
            Some(Naming::Misnamed) => self.misnamed += 1,
            Some(Naming::Unidentified) => self.unidentified += 1,
            None => {}
        }
        match trial.from_parameters {
            Some(Naming::Named) => self.from_parameters[0] += 1,
            Some(Naming::Listed) => self.from_parameters[1] += 1,
            Some(_) => self.from_parameters[2] += 1,
            None => {}
        }
    }

    /// The sum of two.
    pub fn plus(&self, other: &Counts) -> Counts {
        let add = |i: usize| self.from_parameters[i] + other.from_parameters[i];
        Counts {
            planted: self.planted + other.planted,
            detected: self.detected + other.detected,
            named: self.named + other.named,
            listed: self.listed + other.listed,
            missed: self.missed + other.missed,
            harmless: self.harmless + other.harmless,
            misnamed: self.misnamed + other.misnamed,
            unidentified: self.unidentified + other.unidentified,
            from_parameters: [add(0), add(1), add(2)],
        }
    }
}
