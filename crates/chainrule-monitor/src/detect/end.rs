//! Rules that judge the result of a training which no earlier rule explains.

use super::{Course, updates};
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};

fn has_cause(all: &[Symptom]) -> bool {
    all.iter().any(|s| s.confidence > 0.5 && s.kind != SymptomKind::NoProgress)
}

fn say(kind: SymptomKind, evidence: Vec<(&'static str, f64)>, confidence: f64) -> Symptom {
    Symptom { kind, place: String::new(), since: 0, evidence, confidence }
}

/// Weights that moved this far, relative to their size, have tried enough.
const FAR: f64 = 0.3;

/// The loss is that of a constant answer although the weights moved far, and no layer or rate is to
/// blame: the targets have nothing to do with the inputs.
pub(super) fn unrelated_targets(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let learned_nothing = course.is_constant() && course.is_stuck || course.is_empty();
    let Some(constant) = course.constant.filter(|_| learned_nothing) else {
        return;
    };
    let travel = updates::travel(monitor).unwrap_or(0.0);
    let is_able = course.last < 1.1 * constant && !has_narrow(monitor);
    let has_classes = monitor.answers.labels.len() > 1;
    if course.steps < 150 || has_cause(all) || travel < FAR || !is_able || !has_classes {
        return;
    }
    let evidence = vec![("last loss", course.last), ("of a constant answer", constant)];
    all.push(say(SymptomKind::Labels, evidence, 0.5));
}

/// Whether a layer with few units may be the bottleneck.
fn has_narrow(monitor: &Monitor) -> bool {
    super::hidden(monitor).any(|o| (1..4).contains(&o.zero_for.len()))
}

/// Weights that moved less than this share of their size are about where they began.
const NEAR: f64 = 0.15;

/// Steps after which a low rate is to blame rather than a short training.
const ENOUGH: u64 = 200;

/// Little was learned, and the weights are about where they began.
pub(super) fn hardly_moved(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let Some(travel) = updates::travel(monitor).filter(|t| *t > 0.0 && *t < NEAR) else { return };
    let is_over = course.steps >= ENOUGH || monitor.has_ended;
    if course.steps < 15 || !is_over || !course.is_poor() || course.rose() || has_cause(all) {
        return;
    }
    let kind =
        if course.steps < ENOUGH { SymptomKind::TooFewSteps } else { SymptomKind::RateTooLow };
    let mut evidence = vec![("way of the weights beside their size", travel)];
    evidence.extend([("first loss", course.first), ("last loss", course.last)]);
    evidence.push(("steps", course.steps as f64));
    all.push(say(kind, evidence, 0.7));
}

/// Updates of at most this share of the weights at each look count as small.
const SMALL: f64 = 1e-2;

/// Nothing was learned in many steps, none of them large: a larger rate may help.
pub(super) fn small_steps(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let matrices = monitor.parameters.iter().filter(|p| p.is_matrix());
    let largest = matrices.map(|p| p.counts.largest_ratio).fold(0.0, f64::max);
    let is_small = largest > 0.0 && largest < SMALL;
    if !monitor.has_ended || !course.is_empty() || !is_small || course.rose() || has_cause(all) {
        return;
    }
    let evidence = vec![
        ("largest update beside the weights", largest),
        ("first loss", course.first),
        ("last loss", course.last),
    ];
    all.push(say(SymptomKind::RateTooLow, evidence, 0.5));
}

/// The share of the last loss by which as many steps again must lower it.
const WORTH: f64 = 0.2;

/// Too few steps to expect anything of.
const SHORT: u64 = 50;

/// The training ended with little learned while the loss was still falling, or after very few
/// steps.
pub(super) fn too_few_steps(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    if !monitor.has_ended || !course.is_poor() || course.rose() || has_cause(all) {
        return;
    }
    if course.constant.is_some_and(|constant| course.last < 0.5 * constant) {
        return;
    }
    // The expected fall over another run of the same length.
    let again = course.tail / 0.6;
    // Steps that brought no more than a constant answer are few, too.
    let is_short =
        course.last > 0.0 && (course.steps <= SHORT || course.steps < ENOUGH && course.is_bare());
    if !is_short && again < WORTH * course.last.abs() {
        return;
    }
    let mut evidence = vec![("first loss", course.first), ("last loss", course.last)];
    evidence.extend(course.constant.map(|loss| ("of a constant answer", loss)));
    evidence.extend([("fall in as many steps again", again), ("steps", course.steps as f64)]);
    // More steps may not be wanted, so this is not certain.
    all.push(say(SymptomKind::TooFewSteps, evidence, 0.5));
}

#[cfg(test)]
mod tests {
    use crate::monitor::Monitor;
    use crate::symptom::SymptomKind;

    fn kinds(losses: impl Iterator<Item = f64>, has_ended: bool) -> Vec<SymptomKind> {
        let mut monitor = Monitor::new();
        losses.for_each(|loss| monitor.step(Some(loss), Some(0.01)));
        if has_ended {
            monitor.end();
        }
        monitor.findings().iter().map(|s| s.kind).collect()
    }

    #[test]
    fn a_training_that_ends_while_its_loss_falls_is_named() {
        let slow =
            |steps: u32| (0..steps).map(move |i| 2.0 - 0.5 * f64::from(i) / f64::from(steps));
        assert_eq!(kinds(slow(300), true), [SymptomKind::TooFewSteps]);
        assert_eq!(kinds(slow(20), true), [SymptomKind::TooFewSteps]);
        // Neither a training that goes on nor one that has learned counts.
        assert_eq!(kinds(slow(300), false), []);
        assert_eq!(kinds((0..300).map(|i| 2.0 / (1.0 + f64::from(i))), true), []);
    }
}
