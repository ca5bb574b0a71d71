//! `chainrule check mistakes`: every classic mistake planted, and how many are detected and named.

use std::process::ExitCode;

use anyhow::Result;
use chainrule::check::{Mistakes, mistakes};
use serde::Serialize;

use crate::args::CheckMistakes;
use crate::run_folder::RunFolder;
use crate::{machine, output};

const TABLE: &str = "mistakes.csv";
const PAGE: &str = "mistakes.md";

/// The share of the mistakes that must be named, in percent.
const NAMED: usize = 95;

/// The last line of `--json`.
#[derive(Serialize)]
struct Found {
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
    let folder = RunFolder::create("check-mistakes", args.out.as_deref(), args.force)?;
    machine::use_threads(args.threads);
    let options = Mistakes { seed: args.seed, op: args.op.clone(), points: args.points };
    let table = mistakes(&options)?;
    let counts = table.totals();
    let found = Found {
        planted: counts.planted,
        detected: counts.detected,
        named: counts.named,
        listed_among_several: counts.listed,
        missed: counts.missed,
        harmless: counts.harmless,
        untouched_runs: table.untouched_runs(),
        false_alarms: table.false_alarms().len(),
        workflow: workflow(args),
    };
    folder.write(TABLE, table.csv().as_bytes())?;
    folder.write(PAGE, table.page().as_bytes())?;
    if !args.json {
        output::line(&table.to_string())?;
        output::line(&format!("the full table: {}", folder.file(TABLE).display()))?;
        return Ok(found.status());
    }
    output::json(&found)?;
    Ok(found.status())
}

/// The benchmark of the workflow.
fn workflow(_: &CheckMistakes) -> Option<Workflow> {
    None
}

impl Found {
    /// What must hold: nothing is missed, nearly all are named, and nothing is alarmed without need.
    fn status(&self) -> ExitCode {
        // Where several coincide, the verdict must list them all.
        let alone = self.planted - self.listed_among_several;
        let named = self.named * 100 >= alone * NAMED;
        match self.missed == 0 && self.false_alarms == 0 && named {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
