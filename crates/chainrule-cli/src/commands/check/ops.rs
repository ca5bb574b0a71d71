//! `chainrule check ops`: every op of the table on its samples.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use chainrule::check::ops::{Count, OpReport, OpsReport, Property, entry, of_entry};
use chainrule::ops::{Entry, table};
use serde::Serialize;

use crate::args::CheckOps;
use crate::{machine, output};

/// Everything that was found.
#[derive(Serialize)]
struct OpsSummary {
    passed: bool,
    ops: usize,
    samples: usize,
    /// Number of ops with a failure.
    failed: usize,
    counts: BTreeMap<&'static str, Tally>,
    largest_error: f64,
    results: Vec<CheckedOp>,
}

/// Checks and failures of a property.
#[derive(Clone, Copy, Default, Serialize)]
struct Tally {
    checked: usize,
    failed: usize,
}

/// One op.
#[derive(Serialize)]
struct CheckedOp {
    name: &'static str,
    family: String,
    samples: usize,
    passed: bool,
    counts: BTreeMap<&'static str, Tally>,
    largest_error: f64,
    failures: Vec<FailedProperty>,
}

#[derive(Serialize)]
struct FailedProperty {
    property: &'static str,
    sample: &'static str,
    what: String,
}

/// Runs the command.
pub fn run(args: &CheckOps) -> Result<ExitCode> {
    machine::use_threads(args.threads);
    let entries: Vec<&Entry> = match &args.op {
        Some(name) => vec![entry(name)?],
        None => table().collect(),
    };
    let mut report = OpsReport { ops: Vec::with_capacity(entries.len()) };
    if !args.json {
        output::line(&OpsReport::head())?;
    }
    for entry in entries {
        let op = of_entry(entry, args.seed);
        if !args.json {
            output::line(&op.line())?;
        }
        report.ops.push(op);
    }
    match args.json {
        true => output::json(&OpsSummary::new(&report))?,
        false => output::line(&report.verdict())?,
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl OpsSummary {
    fn new(report: &OpsReport) -> OpsSummary {
        let results: Vec<CheckedOp> = report.ops.iter().map(CheckedOp::new).collect();
        let mut counts: BTreeMap<&'static str, Tally> = BTreeMap::new();
        for (name, tally) in results.iter().flat_map(|op| &op.counts) {
            let sum = counts.entry(*name).or_default();
            sum.checked += tally.checked;
            sum.failed += tally.failed;
        }
        OpsSummary {
            passed: report.passed(),
            ops: results.len(),
            samples: results.iter().map(|op| op.samples).sum(),
            failed: results.iter().filter(|op| !op.passed).count(),
            counts,
            largest_error: results.iter().map(|op| op.largest_error).fold(0.0, f64::max),
            results,
        }
    }
}

impl CheckedOp {
    fn new(op: &OpReport) -> CheckedOp {
        let tally = |Count { checked, failed }| Tally { checked, failed };
        let failures = op.failures.iter().map(|f| FailedProperty {
            property: f.property.name(),
            sample: f.sample,
            what: f.what.clone(),
        });
        CheckedOp {
            name: op.name,
            family: format!("{:?}", op.family).to_lowercase(),
            samples: op.samples,
            passed: op.passed(),
            counts: Property::ALL.map(|p| (p.name(), tally(op.count(p)))).into(),
            largest_error: op.largest_error,
            failures: failures.collect(),
        }
    }
}
