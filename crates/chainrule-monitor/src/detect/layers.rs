//! Rules that compare layers and units.

use super::{Course, has, median};
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};
use crate::track::{OutputKind, OutputTrack, ParameterTrack};

/// The module that a parameter belongs to.
fn owner(name: &str) -> String {
    name.rsplit_once('.').map_or(name, |(owner, _)| owner).to_owned()
}

pub(super) fn symmetric(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let alike = |p: &&ParameterTrack| p.counts.alike_run >= 2;
    let was = |p: &&ParameterTrack| p.counts.alike_run == p.counts.points;
    let found = monitor.parameters.iter().filter(alike).find(was);
    // Some equal units may simply not be needed.
    let is_silent = has(all, &[SymptomKind::NotUpdated]) || course.is_done();
    let Some(p) = found.filter(|_| !is_silent) else { return };
    let size = p.points().last().map_or(f64::NAN, |(_, point)| point.value.rms());
    all.push(Symptom {
        kind: SymptomKind::Symmetric,
        place: p.name.clone(),
        since: 0,
        evidence: vec![("size of the equal weights", size), ("share the loss fell", course.fell)],
        confidence: 0.9,
    });
}

pub(super) fn saturated(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    if course.learns() {
        return;
    }
    let last_output = monitor.outputs.len().saturating_sub(1);
    for (i, o) in monitor.outputs.iter().enumerate() {
        if o.kind == OutputKind::Any || i == last_output && monitor.outputs.len() > 1 {
            continue;
        }
        let shares = o.points().iter().map(|(_, p)| p.saturated).collect();
        let Some(share) = median(shares).filter(|share| *share > 0.8) else { continue };
        let since = o.points().iter().find(|(_, p)| p.saturated > 0.8).map_or(0, |p| p.0);
        all.push(Symptom {
            kind: SymptomKind::Saturated,
            place: o.name.clone(),
            since,
            evidence: vec![("share at the bounds", share), ("share the loss fell", course.fell)],
            confidence: match has(all, &[SymptomKind::RateTooHigh]) {
                // Saturation is then only a consequence of the rate.
                true => 0.6,
                false if course.is_stuck => 0.9,
                false => 0.7,
            },
        });
        return;
    }
}

pub(super) fn dead_units(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    if has(all, &[SymptomKind::Symmetric, SymptomKind::Saturated, SymptomKind::NoGradient]) {
        return;
    }
    let is_alive =
        |p: &ParameterTrack| p.counts.zero_run == 0 && p.counts.points > 0 && p.counts.without == 0;
    if !monitor.parameters.iter().any(is_alive) {
        return;
    }
    let mut worst: Option<Symptom> = None;
    // The candidates: biases whose gradients are zero, and outputs whose values are.
    let biases = monitor.parameters.iter().filter(|p| p.zero_for.len() >= 4);
    let biases = biases.filter(|p| has_dead_rows(monitor, p)).map(|p| {
        let dead = p.zero_for.iter().filter(|run| **run >= 4).count();
        // The first point after which most of the gradient is zero.
        let zeros = |point: &crate::track::ParameterPoint| {
            point.gradient.as_ref().is_some_and(|g| 2 * g.zeros() > g.count())
        };
        let points = p.points();
        let alive = points.iter().rposition(|(_, point)| !zeros(point));
        let since = points.get(alive.map_or(0, |at| at + 1)).map_or(0, |point| point.0);
        (owner(&p.name), dead, p.zero_for.len(), since)
    });
    let outputs = monitor.outputs.iter().filter(|o| o.zero_for.len() >= 4).map(|o| {
        let points = o.points();
        let alive = points.iter().rposition(|(_, p)| 2 * p.value.zeros() <= p.value.count());
        let since = points.get(alive.map_or(0, |at| at + 1)).map_or(0, |point| point.0);
        (o.name.clone(), o.dead().0, o.zero_for.len(), since)
    });
    for (place, dead, units, since) in biases.chain(outputs) {
        let share = dead as f64 / units as f64;
        let confidence = match share {
            1.0 => 0.9,
            s if s > 0.9 && !course.learns() => 0.8,
            s if s > 0.5 && course.is_stuck => 0.7,
            _ => continue,
        };
        // A rate that is too high kills units.
        let is_consequence = has(all, &[SymptomKind::RateTooHigh]);
        let confidence = if is_consequence { f64::min(confidence, 0.6) } else { confidence };
        if worst.as_ref().is_some_and(|w| w.confidence >= confidence) {
            continue;
        }
        worst = Some(Symptom {
            kind: SymptomKind::DeadUnits,
            place,
            since,
            evidence: vec![("units", units as f64), ("dead", dead as f64)],
            confidence,
        });
    }
    all.extend(worst);
}

/// Whether the gradient of a layer's matrix is zero to the same extent as that of its bias. The
/// bias's is zero for another reason where a loss takes differences of outputs.
fn has_dead_rows(monitor: &Monitor, bias: &ParameterTrack) -> bool {
    let of = |p: &ParameterTrack| {
        let gradient = p.points().last()?.1.gradient.as_ref()?;
        Some(gradient.zeros() as f64 / gradient.count().max(1) as f64)
    };
    let layer = owner(&bias.name);
    let matrix = monitor.parameters.iter().find(|p| p.is_matrix() && owner(&p.name) == layer);
    let shares = matrix.and_then(of).zip(of(bias));
    shares.is_none_or(|(of_matrix, of_bias)| of_matrix >= 0.5 * of_bias)
}

/// The matrices in order, with the size of their gradients where these are not exactly zero.
fn sizes(monitor: &Monitor) -> Vec<(&ParameterTrack, f64)> {
    let trained = monitor.parameters.iter().filter(|p| p.is_matrix());
    let size = |p: &ParameterTrack| {
        p.median_gradient(|g| g.norm() / ((g.count() - g.zeros()).max(1) as f64).sqrt())
    };
    trained.filter_map(|p| Some((p, size(p)?))).collect()
}

/// Ratio of the first layer's gradient to the last one's below which it has vanished, and below
/// which it may explain why nothing was learned.
const VANISHED: f64 = 1e-4;
const WEAK: f64 = 5e-3;

/// Skill up to which a training has learned nothing.
const NOTHING: f64 = 0.1;

pub(super) fn vanishing(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let sizes = sizes(monitor);
    let excluded = [SymptomKind::DeadUnits, SymptomKind::Symmetric, SymptomKind::NotFinite];
    if sizes.len() < 3 || course.learns() || has(all, &excluded) {
        return;
    }
    let largest = sizes.iter().map(|s| s.1).fold(0.0, f64::max);
    let (first, last) = (sizes[0].1, sizes[sizes.len() - 1].1);
    // If nothing at all was learned, a weaker fall is enough.
    let is_bare = course.is_stuck || course.skill.is_some_and(|skill| skill < NOTHING);
    let bound = if is_bare && course.steps >= 50 { WEAK } else { VANISHED };
    if first >= bound * last || largest == 0.0 {
        return;
    }
    // From the output backwards: the first layer whose gradient is a hundredth of the last one's.
    let begins = sizes.iter().rev().find(|s| s.1 < 1e-2 * last);
    let at_step = sizes[0].0.points().first().map_or(0, |p| p.0);
    all.push(Symptom {
        kind: SymptomKind::Vanishing,
        place: owner(&begins.map_or(sizes[0].0, |s| s.0).name),
        since: at_step,
        evidence: vec![
            ("gradient of the first layer", first),
            ("of the last", last),
            ("share the loss fell", course.fell),
        ],
        confidence: match course.is_stuck || first < 1e-8 * last {
            _ if first >= VANISHED * last => 0.6,
            true => 0.9,
            false => 0.7,
        },
    });
}

/// A softmax whose shares feed another layer passes almost no gradient to the layers before it.
pub(super) fn hidden_softmax(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let width = monitor.answers.width;
    let has_shares = |o: &&OutputTrack| o.shares_run >= 2 && width > 0 && o.width != width;
    let found = monitor.outputs.iter().find(has_shares);
    let Some(o) = found.filter(|_| course.is_poor()) else { return };
    all.push(Symptom {
        kind: SymptomKind::HiddenActivation,
        place: o.name.clone(),
        since: 0,
        evidence: vec![("units", o.width as f64), ("looks", f64::from(o.shares_run))],
        confidence: 0.85,
    });
}

pub(super) fn exploding(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let sizes = sizes(monitor);
    if sizes.len() < 3 || course.learns() {
        return;
    }
    let (first, last) = (sizes[0].1, sizes[sizes.len() - 1].1);
    // If the last layer's gradient is zero, growth cannot be judged.
    if first <= 1e3 * last || last == 0.0 || !first.is_finite() {
        return;
    }
    let begins = sizes.iter().rev().find(|s| s.1 > 30.0 * last);
    all.push(Symptom {
        kind: SymptomKind::Exploding,
        place: owner(&begins.map_or(sizes[0].0, |s| s.0).name),
        since: 0,
        evidence: vec![("gradient of the first layer", first), ("of the last", last)],
        confidence: 0.75,
    });
}

pub(super) fn constant_output(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let Some(o) = monitor.outputs.last() else { return };
    if o.constant_run < 4 || course.learns() {
        return;
    }
    let points = o.points();
    let varied = points.iter().rposition(|(_, p)| !p.is_constant);
    let since = points.get(varied.map_or(0, |at| at + 1)).map_or(0, |p| p.0);
    all.push(Symptom {
        kind: SymptomKind::ConstantOutput,
        place: o.name.clone(),
        since,
        evidence: vec![("steps looked at", f64::from(o.constant_run))],
        confidence: 0.7,
    });
}
