//! The detectors put to the test: small training loops, each with one mistake written into it, and the same loops without.

mod runs;

use super::{Mistake, Report};
use crate::error::Result;
use crate::rng::Generator;

/// The steps within which a mistake must be named.
pub const STEPS: usize = 20;

/// What became of one planted mistake.
#[derive(Clone, Debug)]
pub struct Row {
    /// The mistake.
    pub mistake: Mistake,
    /// The training loop.
    pub run: &'static str,
    /// The seed of shapes and numbers.
    pub seed: u64,
    /// Whether anything was found.
    pub detected: bool,
    /// Whether the mistake was among what was found.
    pub named: bool,
    /// Whether nothing else was.
    pub alone: bool,
    /// The step at which it was named.
    pub step: Option<usize>,
}

/// What was found in a loop without a mistake.
#[derive(Clone, Debug)]
pub struct Clean {
    /// The training loop.
    pub run: &'static str,
    /// The seed of shapes and numbers.
    pub seed: u64,
    /// What was found, all of it wrongly.
    pub alarms: Report,
}

/// All rows.
#[derive(Clone, Debug, Default)]
pub struct Benchmark {
    /// The loops with a mistake.
    pub planted: Vec<Row>,
    /// The loops without.
    pub clean: Vec<Clean>,
}

impl Benchmark {
    /// How many mistakes were planted, detected and named, and how many findings there were in clean loops.
    pub fn totals(&self) -> (usize, usize, usize, usize) {
        let count = |of: fn(&Row) -> bool| self.planted.iter().filter(|row| of(row)).count();
        let alarms = self.clean.iter().map(|clean| clean.alarms.findings.len()).sum();
        (self.planted.len(), count(|r| r.detected), count(|r| r.named), alarms)
    }
}

/// Runs every loop with every mistake that applies to it, and without one, once for each of `seeds` seeds from `seed` on.
pub fn benchmark(seed: u64, seeds: u64) -> Result<Benchmark> {
    let mut out = Benchmark::default();
    for seed in seed..seed + seeds {
        for run in runs::RUNS {
            for &mistake in run.mistakes {
                let report = (run.run)(&mut Generator::manual_seed(seed), Some(mistake))?;
                let found = report.get(mistake);
                out.planted.push(Row {
                    mistake,
                    run: run.name,
                    seed,
                    detected: !report.is_clean(),
                    named: found.is_some(),
                    alone: report.findings.iter().all(|f| f.mistake == mistake),
                    step: found.map(|f| f.step),
                });
            }
            let alarms = (run.run)(&mut Generator::manual_seed(seed), None)?;
            out.clean.push(Clean { run: run.name, seed, alarms });
        }
    }
    Ok(out)
}
