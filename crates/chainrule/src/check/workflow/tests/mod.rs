//! The detectors on their benchmark, and on what they must leave alone.

use super::benchmark::{STEPS, benchmark};
use super::*;

mod unusual;

#[test]
fn each_planted_mistake_is_named_and_clean_runs_are_silent() {
    let seeds = std::env::var("CHAINRULE_WORKFLOW_SEEDS").ok().and_then(|s| s.parse().ok());
    let found = benchmark(1, seeds.unwrap_or(3)).unwrap();
    let missed = found.planted.iter().filter(|r| !r.named || r.step.is_none_or(|s| s > STEPS));
    let missed: Vec<_> = missed.map(|r| (r.run, r.mistake, r.seed, r.detected)).collect();
    let beside: Vec<_> = found
        .planted
        .iter()
        .filter(|r| r.named && !r.alone)
        .map(|r| (r.run, r.mistake, r.seed))
        .collect();
    let alarms = found.clean.iter().filter(|c| !c.alarms.is_clean());
    let alarms: Vec<_> = alarms.map(|c| format!("{} {}: {}", c.run, c.seed, c.alarms)).collect();
    println!("{:?}, more than one named: {beside:?}", found.totals());
    assert!(missed.is_empty() && alarms.is_empty(), "missed {missed:#?}, alarms {alarms:#?}");
}

#[test]
fn every_mistake_has_its_record() {
    for mistake in Mistake::all() {
        assert_eq!(mistake.record().mistake, mistake);
    }
    assert_eq!(CATALOGUE.len(), Mistake::ShiftedLabels as usize + 1);
}
