//! The diagnosis of a folder of programs whose faults are known, with and without their fix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::data::Source;
use crate::description::{Program, apply};
use crate::diagnosis::diagnose;
use crate::lab::Bench;

/// Seconds of one diagnosis at most.
const SECONDS: u64 = 60;

/// The report of a program as JSON, with `fix` applied or not.
fn report(path: &Path, is_fixed: bool) -> Option<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut program = Program::parse(&text).unwrap();
    if is_fixed {
        let fix = program.value["fix"].as_array().cloned().unwrap_or_default();
        if fix.is_empty() {
            return None;
        }
        program = Program::of(apply(&program.value, &fix).unwrap()).unwrap();
    }
    let begun = Instant::now();
    let source = Source::new(path.parent().unwrap(), None, true);
    let (tables, _) = source.tables(&program, &[1, 2, 3]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(SECONDS);
    Some(match diagnose(&Bench::new(program, tables, 1, Some(deadline))) {
        Ok(mut report) => {
            report.seconds = begun.elapsed().as_secs_f64();
            report.json()
        }
        Err(e) => json!({"id": path.file_stem()?.to_str()?, "error": e.to_string(), "causes": []}),
    })
}

/// Writes `buggy.jsonl` and `fixed.jsonl`, which `scripts/diagnosis_score.py --from` counts.
/// `CHAINRULE_PROGRAMS` names another folder of programs, `CHAINRULE_SCORE` the folder to write to.
#[test]
#[ignore = "some minutes; needs python3 with NumPy"]
fn programs_with_known_faults() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("programs");
    let folder = std::env::var_os("CHAINRULE_PROGRAMS").map_or(own, PathBuf::from);
    let out = std::env::var_os("CHAINRULE_SCORE").map_or_else(std::env::temp_dir, PathBuf::from);
    fs::create_dir_all(&out).unwrap();
    let only = std::env::var("CHAINRULE_ONLY").unwrap_or_default();
    let wanted = |path: &PathBuf| {
        let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
        path.extension().is_some_and(|e| e == "json")
            && (only.is_empty() || only.split(',').any(|o| o == name))
    };
    let entries = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(wanted).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no programs in {}", folder.display());
    for (name, is_fixed) in [("buggy.jsonl", false), ("fixed.jsonl", true)] {
        let mut file = fs::File::create(out.join(name)).unwrap();
        for line in paths.iter().filter_map(|path| report(path, is_fixed)) {
            writeln!(file, "{line}").unwrap();
        }
    }
}
