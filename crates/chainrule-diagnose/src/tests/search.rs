//! The search, on a bench whose skills are made up.

use crate::change::Change::{self, *};
use crate::lab::{Experiment, Trial};
use crate::search::{Found, Search};

/// Skills by the changes, which are sorted, and the seed.
struct Known(fn(&[Change], usize) -> f64);

impl Experiment for Known {
    fn run(&self, changes: &[Change], seed: usize) -> Option<Trial> {
        let mut sorted = changes.to_vec();
        sorted.sort();
        let fit = (self.0)(&sorted, seed);
        Some(Trial { fit, held: Some(fit) })
    }

    fn seeds(&self) -> usize {
        3
    }

    fn is_chancy(&self) -> bool {
        false
    }
}

fn found(skill: fn(&[Change], usize) -> f64, suspects: &[Change]) -> Found {
    Search::new(&Known(skill), 120, 1).run(&[], suspects, &|_| true)
}

/// The first suspect is enough for one seed alone, the second for all: no change is added to the
/// first in the place of that.
#[test]
fn a_set_that_holds_on_all_seeds_is_taken() {
    let skill = |set: &[Change], seed: usize| match set {
        [] => 0.0,
        [Up10] if seed > 0 => 0.5,
        _ => 0.95,
    };
    let found = found(skill, &[Up10, AdamFast]);
    assert_eq!((found.changes, found.after), (vec![AdamFast], 0.95));
}

/// Whether the rate is another, in any way.
fn is_faster(set: &[Change]) -> bool {
    set.iter().any(|c| c.is_of_rate())
}

/// The first seed alone needs the inputs scaled.
#[test]
fn a_change_that_other_seeds_do_not_need_is_left_out() {
    let skill = |set: &[Change], seed: usize| match set {
        _ if !is_faster(set) => 0.0,
        _ if seed == 0 && !set.contains(&ScaleX) => 0.6,
        _ => 0.95,
    };
    let found = found(skill, &[Up10, ScaleX]);
    assert_eq!((found.changes, found.without), (vec![Up10], vec![(Up10, 0.0)]));
}

/// A change that all seeds need stays, with the skill without it.
#[test]
fn a_change_that_is_needed_stays() {
    let skill = |set: &[Change], _: usize| match is_faster(set) {
        false => 0.0,
        true if set.contains(&ScaleX) => 0.95,
        true => 0.6,
    };
    let mut found = found(skill, &[Up10, ScaleX]);
    found.without.sort_by_key(|w| w.0);
    assert_eq!(found.without, [(ScaleX, 0.6), (Up10, 0.0)]);
}

/// Two thirds of more seeds than three have to come to the goal.
#[test]
fn a_set_that_a_half_of_the_seeds_denies_is_no_repair() {
    struct Chancy(Known);
    impl Experiment for Chancy {
        fn run(&self, changes: &[Change], seed: usize) -> Option<Trial> {
            self.0.run(changes, seed)
        }
        fn seeds(&self) -> usize {
            7
        }
        fn is_chancy(&self) -> bool {
            true
        }
    }
    // One change alone is luck: it is enough with four of the seeds, all of the search's first.
    let skill = |set: &[Change], seed: usize| match is_faster(set) {
        false => 0.0,
        true if seed >= 4 && !set.contains(&Wider) => 0.0,
        true => 0.95,
    };
    let chancy = Chancy(Known(skill));
    let found = Search::new(&chancy, 120, 1).run(&[], &[Up10], &|_| true);
    assert_eq!((found.changes, found.after), (vec![Up10, Wider], 0.95));
}
