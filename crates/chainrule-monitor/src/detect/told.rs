//! Rules about batches, modes and settings that the caller reports.

use super::{Course, has};
use crate::facts::Dependence;
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};

fn whole(
    kind: SymptomKind,
    since: u64,
    evidence: Vec<(&'static str, f64)>,
    confidence: f64,
) -> Symptom {
    Symptom { kind, place: String::new(), since, evidence, confidence }
}

pub(super) fn zeroed_early(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let (emptied, seen) = monitor.told.emptied;
    if emptied < 3 || (emptied as f64) < 0.9 * seen as f64 {
        return;
    }
    // No gradient at the step means this, and nothing else.
    all.retain(|s| !matches!(s.kind, SymptomKind::NoGradient | SymptomKind::NotUpdated));
    let evidence = vec![("steps looked at", seen as f64), ("without gradient", emptied as f64)];
    all.push(whole(SymptomKind::ZeroedEarly, 0, evidence, 0.95));
}

/// Share of the weights lost in one step above which little is left after twenty.
const FORGETS: f64 = 0.05;

/// Bounds of settings within which an optimizer's averages work.
pub(super) fn settings(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let of = |name: &str| monitor.told.settings.iter().find(|s| s.0 == name).map(|s| s.1);
    let learns = course.is_some_and(Course::learns);
    let mut say = |place: &str, name: &'static str, value: f64, confidence: f64| {
        all.push(Symptom {
            kind: SymptomKind::OptimizerSetting,
            place: place.to_owned(),
            since: 0,
            evidence: vec![(name, value)],
            confidence,
        });
    };
    if let Some(m) = of("momentum").filter(|m| !(0.0..1.0).contains(m)) {
        say("momentum", "momentum", m, 0.95);
    }
    if let (Some(m), Some(d)) = (of("momentum"), of("dampening"))
        && m > 0.0
        && d >= 1.0
    {
        say("dampening", "dampening", d, 0.9);
    }
    let unit = |name: &'static str| of(name).filter(|b| !(0.0..1.0).contains(b));
    for name in ["beta1", "beta2"] {
        if let Some(b) = unit(name) {
            say("betas", name, b, 0.95);
        }
    }
    if let (Some(a), Some(b)) = (of("beta1"), of("beta2")) {
        // With beta1^2 > beta2 the mean outlives the scale that divides it, and Adam diverges.
        let is_inside = (0.0..1.0).contains(&a) && (0.0..1.0).contains(&b);
        if is_inside && a * a > b && a > 0.0 {
            say("betas", "beta1", a, if learns { 0.5 } else { 0.85 });
        } else if is_inside && a >= 0.995 {
            // A mean over more steps than there were follows gradients of long ago.
            let is_short = monitor.steps < (3.0 / (1.0 - a)) as u64;
            say("betas", "beta1", a, if learns || !is_short { 0.4 } else { 0.75 });
        }
    }
    if let Some(d) = of("weight_decay").filter(|d| *d < 0.0) {
        say("weight_decay", "weight decay", d, 0.9);
    }
    // The share of its weights that a step removes: anything learned in between is forgotten.
    let rate = monitor.rates.points().iter().map(|p| p.1).fold(0.0, f64::max);
    if let Some(share) = of("weight_decay").map(|d| d * rate).filter(|share| *share > FORGETS) {
        let confidence = if learns { 0.4 } else { 0.82 };
        say("weight_decay", "share of the weights lost in a step", share, confidence);
    }
    // An eps above the gradients replaces their size as the divisor, so that updates are scaled by
    // rate / eps.
    let gradient = monitor.parameters.iter().filter_map(|p| p.median_gradient(crate::Stats::rms));
    let largest = gradient.fold(0.0, f64::max);
    if let Some(eps) = of("eps").filter(|eps| *eps > 1e-4 && largest > 0.0 && *eps > 10.0 * largest)
    {
        say("eps", "eps", eps, if learns { 0.4 } else { 0.85 });
    }
    if let Some(n) = of("optimizers").filter(|n| *n >= 5.0 && 2.0 * n > monitor.looks() as f64) {
        say("a new optimizer in each step", "optimizers", n, if learns { 0.6 } else { 0.85 });
    }
    if let Some(p) = of("dropout").filter(|p| *p >= 0.85) {
        all.push(Symptom {
            kind: SymptomKind::Dropout,
            place: String::new(),
            since: 0,
            evidence: vec![("probability", p)],
            confidence: if learns && p < 0.95 { 0.5 } else { 0.8 },
        });
    }
}

pub(super) fn modes(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let (training, evaluating) = monitor.told.modes;
    if training >= 3 {
        let evidence = vec![("passes in evaluation mode", training as f64)];
        // Fine-tuning with frozen statistics is intended, but then dropout is off too.
        let confidence = if 2 * training >= monitor.steps { 0.8 } else { 0.65 };
        all.push(whole(SymptomKind::EvaluationMode, 0, evidence, confidence));
    }
    if evaluating >= 2 {
        let evidence = vec![("passes in training mode", evaluating as f64)];
        all.push(whole(SymptomKind::TrainingMode, 0, evidence, 0.75));
    }
}

pub(super) fn dependence(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let Some((on, share)) = monitor.told.dependence else { return };
    let (place, name) = match on {
        Dependence::OtherExamples => ("other examples of the batch", "the output moved by"),
        Dependence::LaterPlaces => ("later places of the sequence", "the output moved by"),
    };
    let (kind, place) = (SymptomKind::Dependence, place.to_owned());
    all.push(Symptom { kind, place, since: 0, evidence: vec![(name, share)], confidence: 0.9 });
}

pub(super) fn same_batch(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let Some((rows, of)) = monitor.told.same.filter(|_| course.steps >= 20) else { return };
    let evidence = vec![("rows of the batch", rows as f64), ("rows of the data", of as f64)];
    all.push(whole(SymptomKind::SameBatch, 0, evidence, 0.8));
}

/// A rate below this share of the largest one counts as nothing.
const NOTHING: f64 = 2e-3;

pub(super) fn rate_decays(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let points = monitor.rates.points();
    let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let Some(top) = points.iter().rposition(|p| p.1 >= 0.5 * most).filter(|_| most > 0.0) else {
        return;
    };
    // From the last step with a rate that counts to the end.
    let Some(at) = points.iter().rposition(|p| p.1 >= NOTHING * most) else { return };
    let Some(since) = points.get(at + 1).map(|p| p.0) else { return };
    let rest = monitor.steps.saturating_sub(since);
    let has_fallen = at >= top && course.steps >= 30;
    if !has_fallen || (rest as f64) < 0.3 * monitor.steps as f64 {
        return;
    }
    // It is fine if the rate was lowered after the loss had reached its end.
    let is_done = course.last < 0.1 * course.first.abs()
        || course.constant.is_some_and(|c| course.last < 0.1 * c);
    let last = points.last().map_or(0.0, |p| p.1);
    let evidence =
        vec![("largest rate", most), ("last rate", last), ("steps at next to none", rest as f64)];
    let confidence = if is_done { 0.4 } else { 0.8 };
    all.retain(|s| is_done || s.kind != SymptomKind::RateTooLow);
    if !has(all, &[SymptomKind::NotFinite]) {
        all.push(whole(SymptomKind::RateDecays, since, evidence, confidence));
    }
}
