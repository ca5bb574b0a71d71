//! The detectors on all loops.

use super::{LoopRow, benchmark};
use chainrule_check::workflow::Mistake;

#[test]
fn each_planted_mistake_is_named_and_clean_runs_are_silent() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("CHAINRULE_WORKFLOW_SEED").unwrap_or(1);
    let found = benchmark(first, number("CHAINRULE_WORKFLOW_SEEDS").unwrap_or(2)).unwrap();
    let wrong = |row: &&LoopRow| if row.planted.is_some() { !row.named() } else { !row.alone() };
    let wrong: Vec<_> = found.rows.iter().filter(wrong).collect();
    let beside = found.rows.iter().filter(|row| row.named() && !row.alone()).count();
    let latest = found.rows.iter().filter_map(LoopRow::step).max();
    println!(
        "planted {}, detected {}, named {}, of these beside others {beside}, at step {latest:?} at the latest; untouched {}, false alarms {}",
        found.planted, found.detected, found.named, found.untouched_runs, found.false_alarms
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_mistake_is_planted_in_two_loops() {
    let found = benchmark(1, 1).unwrap();
    for mistake in Mistake::all() {
        let loops = found.rows.iter().filter(|row| row.planted == Some(mistake)).count();
        assert!(loops >= 2, "{mistake:?} is planted in {loops}");
    }
}
