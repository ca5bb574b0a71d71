//! `chainrule check mistakes`: every classic mistake planted, and how many are detected and named.

use std::process::ExitCode;

use anyhow::Result;
use chainrule::check::workflow::Mistake;
use chainrule_lab::loops::{Benchmark, STEPS, benchmark};
use chainrule_lab::mistakes::{Mistakes, mistakes};
use serde::Serialize;

use crate::args::CheckMistakes;
use crate::run_folder::{OldFiles, RunFolder};
use crate::{machine, output};

const TABLE: &str = "mistakes.csv";
const PAGE: &str = "mistakes.md";
const WORKFLOW: &str = "workflow.csv";

/// Runs of each training loop with each mistake, at other shapes and numbers.
const RUNS: u64 = 3;

/// The share of the mistakes that must be named, in percent.
const NAMED: usize = 95;

/// The last line of `--json`.
#[derive(Serialize)]
struct MistakesReport {
    planted: usize,
    detected: usize,
    named: usize,
    listed_among_several: usize,
    missed: usize,
    harmless: usize,
    untouched_runs: usize,
    false_alarms: usize,
    workflow: Option<Workflow>,
}

/// The same of the mistakes of a training loop; `null` where only one op was asked for.
#[derive(Serialize)]
struct Workflow {
    planted: usize,
    detected: usize,
    named: usize,
}

/// Runs the command.
pub fn run(args: &CheckMistakes) -> Result<ExitCode> {
    let folder =
        RunFolder::create("check-mistakes", args.out.as_deref(), OldFiles::forced(args.force))?;
    machine::use_threads(args.threads);
    let options = Mistakes { seed: args.seed, op: args.op.clone(), points: args.points };
    let table = mistakes(&options)?;
    let counts = table.totals();
    let loops = match args.op {
        None => Some(benchmark(args.seed, RUNS)?),
        Some(_) => None,
    };
    let of_loops = |count: fn(&Benchmark) -> usize| loops.as_ref().map_or(0, count);
    let found = MistakesReport {
        planted: counts.planted,
        detected: counts.detected,
        named: counts.named,
        listed_among_several: counts.listed,
        missed: counts.missed,
        harmless: counts.harmless,
        untouched_runs: table.untouched_runs() + of_loops(|found| found.untouched_runs),
        false_alarms: table.false_alarms().len() + of_loops(|found| found.false_alarms),
        workflow: loops.as_ref().map(Workflow::of),
    };
    folder.write(TABLE, table.csv().as_bytes())?;
    let mut page = table.page();
    if let Some(loops) = &loops {
        folder.write(WORKFLOW, rows(loops).as_bytes())?;
        page.push_str(&section(loops));
    }
    folder.write(PAGE, page.as_bytes())?;
    if !args.json {
        output::line(&table.to_string())?;
        if let Some(loops) = &loops {
            output::line(&sentence(loops))?;
        }
        output::line(&format!("the full table: {}", folder.file(TABLE).display()))?;
        return Ok(found.status());
    }
    output::json(&found)?;
    Ok(found.status())
}

impl Workflow {
    fn of(found: &Benchmark) -> Workflow {
        Workflow { planted: found.planted, detected: found.detected, named: found.named }
    }
}

/// The detectors' findings in a training loop, in a sentence.
fn sentence(found: &Benchmark) -> String {
    format!(
        "Mistakes of the training loop: {} planted, {} detected and {} named within {STEPS} steps; {} loops as they should be, {} false alarms.",
        found.planted, found.detected, found.named, found.untouched_runs, found.false_alarms
    )
}

/// The loops as CSV: a line each.
fn rows(found: &Benchmark) -> String {
    let mut out = String::from("loop,seed,planted,named at step,also found\n");
    for row in &found.rows {
        let planted = row.planted.map_or(String::new(), |mistake| mistake.name().to_owned());
        let step = row.step().map_or(String::new(), |step| step.to_string());
        let others = row.found.iter().filter(|(mistake, _)| Some(*mistake) != row.planted);
        let others: Vec<String> = others.map(|(mistake, _)| mistake.name().to_owned()).collect();
        let cells = [row.run.to_owned(), row.seed.to_string(), planted, step, others.join("; ")];
        out.push_str(&cells.map(|cell| cell.replace(',', ";")).join(","));
        out.push('\n');
    }
    out
}

/// The loops as a section of the page: for each mistake how often it was planted and named, and
/// when.
fn section(found: &Benchmark) -> String {
    let kinds =
        Mistake::all().filter(|kind| found.rows.iter().any(|row| row.planted == Some(*kind)));
    let mut out = format!(
        "\n## Mistakes of the training loop\n\n{}\n\n| mistake | planted | named | latest step |\n| --- | ---: | ---: | ---: |\n",
        sentence(found)
    );
    for kind in kinds {
        let rows = || found.rows.iter().filter(|row| row.planted == Some(kind));
        let latest = rows().filter_map(|row| row.step()).max();
        out.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            kind.name(),
            rows().count(),
            rows().filter(|row| row.named()).count(),
            latest.map_or("-".to_owned(), |step| step.to_string())
        ));
    }
    out
}

impl MistakesReport {
    /// The condition of success: nothing is missed, nearly all are named, and nothing is alarmed
    /// without need.
    fn status(&self) -> ExitCode {
        // If several coincide, the verdict must list them all.
        let alone = self.planted - self.listed_among_several;
        let loops = self.workflow.as_ref().is_none_or(|of| of.named * 100 >= of.planted * NAMED);
        let named = self.named * 100 >= alone * NAMED && loops;
        match self.missed == 0 && self.false_alarms == 0 && named {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
