//! The bench of experiments on one program: its data for several seeds, and runs with changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Instant;

use chainrule_core::rng::Generator;
use serde_json::Value;

use crate::change::{Change, TargetShape};
use crate::curves::Curve;
use crate::data::{Prepared, Table, Targets};
use crate::description::{Program, apply};
use crate::detect;
use crate::error::Result;
use crate::run::{self, Limits, Outcome, Rows};
use crate::trial::Course;
use crate::watch::Watch;

/// Skills of a training run, as a search compares them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Skill on the rows that were trained on: 0 for the best constant answer, 1 for a perfect one.
    pub fit: f64,
    /// Skill on held-out rows; none if there are too few rows.
    pub held: Option<f64>,
}

/// Largest lead of the skill on training rows over that on held-out rows; more than that is
/// memorised.
pub(crate) const MEMORY: f64 = 0.1;

impl Trial {
    /// The skill that counts: memorised rows do not.
    pub fn value(&self) -> f64 {
        self.held.map_or(self.fit, |held| self.fit.min(held + MEMORY))
    }
}

/// A training that can be run with changes. The search knows nothing else about a program.
pub trait Experiment: Sync {
    /// Trains with these changes, from this seed; none where a change does not apply or run.
    fn run(&self, changes: &[Change], seed: usize) -> Option<Trial>;

    /// Number of seeds: `seed` is below it.
    fn seeds(&self) -> usize;

    /// Whether single runs say little, because the model and the table are tiny.
    fn is_chancy(&self) -> bool;
}

/// Number of rows from which on some are held out.
const ENOUGH: usize = 40;
/// The most rows held out.
const MOST_HELD: usize = 1000;
/// Multiplications of one run: some seconds.
const WORK: f64 = 2.5e10;
/// Steps of one run at most.
const MOST_STEPS: usize = 4500;
/// Multiplications of all runs of a search.
const ALL_WORK: f64 = 2e11;
/// Runs of a search at most.
const MOST_RUNS: usize = 120;

/// Trials by their changes and the number of their seed; none for changes that do not apply.
type Trials = HashMap<(Vec<Change>, usize), Option<Trial>>;

/// A described program on the bench.
pub struct Bench {
    program: Program,
    tables: Vec<Table>,
    /// The seed of the first run.
    seed: u64,
    deadline: Option<Instant>,
    shape: TargetShape,
    known: Mutex<Trials>,
    /// The runs of the first seed.
    courses: Mutex<BTreeMap<Vec<Change>, Course>>,
}

/// Result of the watched run.
pub(crate) struct Watched {
    pub train: Prepared,
    pub own: Option<Prepared>,
    pub run: Outcome,
    pub watch: Watch,
}

impl Bench {
    /// A program with its tables, one for each seed, or one for all.
    pub fn new(
        program: Program,
        tables: Vec<Table>,
        seed: u64,
        deadline: Option<Instant>,
    ) -> Bench {
        let shape = target_shape(&program, &tables[0]);
        let (known, courses) = (Mutex::default(), Mutex::default());
        Bench { program, tables, seed, deadline, shape, known, courses }
    }

    /// The program as it is.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.tables[0].x.rows()
    }

    pub(crate) fn table(&self, seed: usize) -> &Table {
        &self.tables[seed.min(self.tables.len() - 1)]
    }

    /// Runs so far.
    pub fn runs(&self) -> usize {
        self.known().len()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Trials> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The edits that make these changes, in order, and the resulting program; none if one of them
    /// changes nothing.
    pub fn edited(&self, changes: &[Change]) -> Option<(Vec<Value>, Program)> {
        let mut sorted = changes.to_vec();
        sorted.sort();
        let steps = self.in_order(&sorted)?;
        let program = steps.last().map_or_else(|| self.program.clone(), |(_, p)| p.clone());
        Some((steps.into_iter().flat_map(|(edits, _)| edits).collect(), program))
    }

    /// The edits of each change, and the program after them, in the given order.
    fn in_order(&self, changes: &[Change]) -> Option<Vec<(Vec<Value>, Program)>> {
        let mut program = self.program.clone();
        let mut out = Vec::new();
        for change in changes {
            let new = change.edits(&program, &self.shape, self.rows())?;
            program = Program::of(apply(&program.value, &new).ok()?).ok()?;
            out.push((new, program.clone()));
        }
        Some(out)
    }

    /// The edits of each of the changes, which lead to the same program when applied one after
    /// another in the given order. If another order leads to another program, the first change gets
    /// all edits.
    pub fn edits_of_each(&self, changes: &[Change]) -> Vec<Vec<Value>> {
        let Some((all, program)) = self.edited(changes) else { return Vec::new() };
        let steps = self.in_order(changes).unwrap_or_default();
        if steps.last().is_some_and(|(_, p)| p.value == program.value) {
            return steps.into_iter().map(|(edits, _)| edits).collect();
        }
        let mut out = vec![Vec::new(); changes.len()];
        out[0] = all;
        out
    }

    fn limits(&self, program: &Program, rows: usize) -> Limits {
        let step = 6.0 * (program.work().max(1) * program.batch.min(rows).max(1)) as f64;
        let steps = ((WORK / step) as usize).clamp(30, MOST_STEPS);
        Limits { steps, deadline: self.deadline }
    }

    /// The data of a seed: rows to train on, held-out rows, and the program's own validation.
    fn data(
        &self,
        program: &Program,
        seed: usize,
    ) -> Result<(Prepared, Option<Prepared>, Option<Prepared>)> {
        let (all, own) = crate::data::both(program, self.table(seed))?;
        if all.rows < ENOUGH || detect::is_complete(&all) {
            return Ok((all, None, own));
        }
        let order = Generator::manual_seed(11 + seed as u64).randperm(all.rows);
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
        let (held, kept) = order.split_at((all.rows / 4).min(MOST_HELD));
        let mut kept = kept.to_vec();
        // If a program does not shuffle, the order of the rows is part of it.
        kept.sort_unstable();
        Ok((all.pick(&kept), Some(all.pick(held)), own))
    }

    /// Runs that a search may take: fewer if each run of the program is long.
    pub fn budget(&self) -> usize {
        let rows = self.rows();
        let step = 6.0 * (self.program.work().max(1) * self.program.batch.min(rows).max(1)) as f64;
        let steps = self.program.steps(rows).min(self.limits(&self.program, rows).steps);
        ((ALL_WORK / (step * steps as f64)) as usize).clamp(14, MOST_RUNS)
    }

    /// Whether the run is complete, and was not cut short for its work.
    pub fn is_whole(&self, program: &Program) -> bool {
        let rows = self.rows();
        program.steps(rows) <= self.limits(program, rows).steps
    }

    /// The program as it is, watched.
    pub(crate) fn watched(&self, seed: usize) -> Result<Watched> {
        let (train, held, own) = self.data(&self.program, seed)?;
        let planned = self.program.steps(self.rows());
        let rows = Rows { train: &train, held: held.as_ref(), own: own.as_ref(), planned };
        let mut watch = Watch::default();
        let limits = self.limits(&self.program, self.rows());
        let run =
            run::train(&self.program, &rows, self.seed + seed as u64, limits, Some(&mut watch))?;
        let trial = Trial { fit: run.fit, held: run.held };
        self.keep(&[], seed, &run);
        self.known().insert((Vec::new(), seed), Some(trial));
        Ok(Watched { train, own, run, watch })
    }

    /// Keeps the course of a run of the first seed for the report.
    fn keep(&self, changes: &[Change], seed: usize, run: &Outcome) {
        if seed == 0 {
            let (losses, fit, held) = (run.losses.clone(), run.fit, run.held);
            let mut all = self.courses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.insert(changes.to_vec(), Course { losses, fit, held });
        }
    }

    /// The runs of the first seed with these sets of changes, as far as they exist.
    pub(crate) fn curves(&self, sets: &[Vec<Change>]) -> Vec<Curve> {
        let all = self.courses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sets.iter().filter_map(|set| Some((set.clone(), all.get(set)?.clone()))).collect()
    }

    fn try_run(&self, changes: &[Change], seed: usize) -> Option<Trial> {
        let (_, program) = self.edited(changes)?;
        let (train, held, _) = self.data(&program, seed).ok()?;
        let planned = program.steps(self.rows());
        let rows = Rows { train: &train, held: held.as_ref(), own: None, planned };
        let limits = self.limits(&program, self.rows());
        let run = run::train(&program, &rows, self.seed + seed as u64, limits, None).ok()?;
        // A run that was stopped by the clock proves nothing.
        if run.late {
            return None;
        }
        self.keep(changes, seed, &run);
        Some(Trial { fit: run.fit, held: run.held })
    }
}

/// The shape of the targets as the program codes them.
fn target_shape(program: &Program, table: &Table) -> TargetShape {
    match crate::data::prepare(program, &table.x, &table.y).map(|d| d.y) {
        Ok(Targets::Classes(c)) => {
            let classes = c.into_iter().max().unwrap_or(0) + 1;
            TargetShape { columns: None, classes, negative: false, is_stretched: false }
        }
        Ok(y) => {
            let most = y.classes().into_iter().max().unwrap_or(0).max(0) as usize;
            let (low, high) = detect::target_range(&y);
            let (negative, is_stretched) = (low < 0.0, high > 1.0);
            TargetShape { columns: Some(y.columns()), classes: most + 1, negative, is_stretched }
        }
        Err(_) => TargetShape { columns: None, classes: 2, negative: false, is_stretched: false },
    }
}

impl Experiment for Bench {
    fn run(&self, changes: &[Change], seed: usize) -> Option<Trial> {
        let mut key = changes.to_vec();
        key.sort();
        if let Some(known) = self.known().get(&(key.clone(), seed)) {
            return *known;
        }
        let trial = self.try_run(&key, seed);
        self.known().insert((key, seed), trial);
        trial
    }

    fn seeds(&self) -> usize {
        // A tiny program depends most on its seed, and a run of it takes no time.
        if self.is_chancy() { 7 } else { 3 }
    }

    fn is_chancy(&self) -> bool {
        self.rows() < ENOUGH || self.program.weights() < 100
    }
}
