//! The detectors put to the test: small training loops, each with one mistake written into it, and
//! the same loops without.

mod heads;
mod runs;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::rng::Generator;
use chainrule_check::workflow::{Mistake, WorkflowReport};

/// The steps within which a mistake must be named.
pub const STEPS: usize = 20;

/// One loop that was run.
#[derive(Clone, Debug)]
pub struct LoopRow {
    /// The training loop.
    pub run: &'static str,
    /// The seed of shapes and numbers.
    pub seed: u64,
    /// The mistake that was written into it; `None` for a loop as it should be.
    pub planted: Option<Mistake>,
    /// All that was found, with the steps at which it was seen first.
    pub found: Vec<(Mistake, usize)>,
}

impl LoopRow {
    /// Whether anything was found within [`STEPS`] steps.
    pub fn detected(&self) -> bool {
        self.found.iter().any(|&(_, step)| step <= STEPS)
    }

    /// Whether the planted mistake was, and so was called by its name.
    pub fn named(&self) -> bool {
        self.step().is_some_and(|step| step <= STEPS)
    }

    /// Whether nothing else was found.
    pub fn alone(&self) -> bool {
        self.found.iter().all(|&(mistake, _)| Some(mistake) == self.planted)
    }

    /// The step at which the planted mistake was named.
    pub fn step(&self) -> Option<usize> {
        self.found.iter().find(|(mistake, _)| Some(*mistake) == self.planted).map(|found| found.1)
    }
}

/// Results of the detectors over all loops.
#[derive(Clone, Debug, Default)]
pub struct Benchmark {
    /// Number of loops with a mistake.
    pub planted: usize,
    /// In how many of them something was found within [`STEPS`] steps.
    pub detected: usize,
    /// In how many of them the mistake itself.
    pub named: usize,
    /// Number of loops without one.
    pub untouched_runs: usize,
    /// In how many of these something was found.
    pub false_alarms: usize,
    /// All of them one by one.
    pub rows: Vec<LoopRow>,
}

/// Runs each training loop with each mistake that can be written into it, and without one: all of
/// it `runs` times, with shapes and numbers from the seeds `seed`, `seed + 1`, ...
///
/// ```
/// let found = chainrule_lab::loops::benchmark(1, 1)?;
/// assert_eq!((found.named, found.false_alarms), (found.planted, 0));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn benchmark(seed: u64, runs: u64) -> Result<Benchmark> {
    let mut out = Benchmark::default();
    for seed in (0..runs).map(|i| seed.wrapping_add(i)) {
        for run in runs::RUNS {
            let planted = run.mistakes.iter().map(|&mistake| Some(mistake));
            for planted in planted.chain([None]) {
                let report = (run.run)(&mut Generator::manual_seed(seed), planted)?;
                out.add(LoopRow { run: run.name, seed, planted, found: found(&report) });
            }
        }
    }
    Ok(out)
}

fn found(report: &WorkflowReport) -> Vec<(Mistake, usize)> {
    let mut out: Vec<(Mistake, usize)> = Vec::new();
    for finding in &report.findings {
        if out.iter().all(|(mistake, _)| *mistake != finding.mistake) {
            out.push((finding.mistake, finding.step));
        }
    }
    out
}

impl Benchmark {
    fn add(&mut self, row: LoopRow) {
        if row.planted.is_some() {
            self.planted += 1;
            self.detected += usize::from(row.detected());
            self.named += usize::from(row.named());
        } else {
            self.untouched_runs += 1;
            self.false_alarms += usize::from(!row.found.is_empty());
        }
        self.rows.push(row);
    }
}
