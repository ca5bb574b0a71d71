//! `chainrule diagnose`: why a training program does not learn, with the experiments that prove it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use chainrule::io;
use chainrule_diagnose::data::Source;
use chainrule_diagnose::description::{Program, apply};
use chainrule_diagnose::{Bench, script};

use crate::args::Diagnose;
use crate::output;
use crate::run_folder::write_atomic;

/// Bytes of a description beyond which it is taken for another file.
const MOST: u64 = 64 << 20;

/// Runs the command.
pub fn run(args: &Diagnose) -> Result<()> {
    let start = Instant::now();
    let path = &args.program;
    let about = || format!("{}", path.display());
    let bytes = io::read_bounded(path, MOST).map_err(Error::msg).with_context(about)?;
    let text = String::from_utf8(bytes).context("it is no text in UTF-8").with_context(about)?;
    let mut program = Program::parse(&text).with_context(about)?;
    if args.fix {
        let fix = program.value["fix"].as_array().cloned().unwrap_or_default();
        if fix.is_empty() {
            bail!("{}: the description has no `fix`", path.display());
        }
        let mended = apply(&program.value, &fix).with_context(about)?;
        program = Program::of(mended).with_context(about)?;
    }
    if args.python {
        return output::line(script(&program).trim_end());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let source = Source::new(folder, args.generator.as_deref(), !args.no_data_code);
    let seeds: Vec<u64> = (0..3).map(|i| args.seed + i).collect();
    let (tables, told) = source.tables(&program, &seeds).with_context(about)?;
    if let Some(told) = told {
        output::complain(&format!("note: {told}"));
    }
    let deadline = Instant::now() + Duration::from_secs_f64(args.seconds);
    let bench = Bench::new(program, tables, args.seed, Some(deadline));
    let mut report = chainrule_diagnose::diagnose(&bench).with_context(about)?;
    report.seconds = start.elapsed().as_secs_f64();
    output::line(&report.text())?;
    if let Some(file) = &args.report {
        write_atomic(file, report.html().as_bytes())?;
    }
    if args.json { output::json(&report.json()) } else { Ok(()) }
}
