//! Rules about updates, compared with weights and gradients.

use super::{Course, has, median, places};
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};
use crate::track::ParameterTrack;

fn trained(monitor: &Monitor) -> Vec<&ParameterTrack> {
    monitor.parameters.iter().filter(|p| p.counts.points >= 3).collect()
}

fn names(parameters: &[&ParameterTrack]) -> String {
    places(&parameters.iter().map(|p| p.name.as_str()).collect::<Vec<_>>())
}

/// Certainty of something that may be intended for some parameters; in a training that learns it is
/// only a question.
fn certainty(is_all: bool, course: Option<&Course>) -> f64 {
    match course {
        _ if is_all => 0.95,
        Some(course) if course.learns() => 0.5,
        _ => 0.85,
    }
}

pub(super) fn never_a_gradient(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let trained = trained(monitor);
    let without: Vec<_> =
        trained.iter().copied().filter(|p| p.counts.without == p.counts.points).collect();
    if without.is_empty() {
        all_zero(&trained, all);
        return;
    }
    let is_all = without.len() == trained.len();
    all.push(Symptom {
        kind: SymptomKind::NoGradient,
        place: if is_all { String::new() } else { names(&without) },
        since: 0,
        evidence: vec![("parameters", trained.len() as f64), ("without", without.len() as f64)],
        confidence: certainty(is_all, course),
    });
}

/// All gradients are present, and all have been zero since the first look: a factor of the loss, or
/// a bound that it exceeds, blocks them.
fn all_zero(trained: &[&ParameterTrack], all: &mut Vec<Symptom>) {
    let is_zero = |p: &&ParameterTrack| p.counts.zero + p.counts.without == p.counts.points;
    if trained.is_empty() || !trained.iter().all(is_zero) {
        return;
    }
    let count = trained.len() as f64;
    all.push(Symptom {
        kind: SymptomKind::NoGradient,
        place: String::new(),
        since: 0,
        evidence: vec![("parameters", count), ("with a gradient of zeros", count)],
        confidence: 0.65,
    });
}

pub(super) fn not_updated(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let trained: Vec<_> = trained(monitor).into_iter().filter(|p| p.counts.updates >= 3).collect();
    let with_gradient = |p: &&ParameterTrack| p.counts.updates > p.counts.without + p.counts.zero;
    let with: Vec<_> = trained.into_iter().filter(with_gradient).collect();
    let is_still = |p: &&ParameterTrack| {
        p.counts.unchanged >= 3
            && p.counts.unchanged + p.counts.without + p.counts.zero >= p.counts.updates
    };
    let rate = rate(monitor);
    let still: Vec<_> = with.iter().copied().filter(is_still).collect();
    let is_all = still.len() == with.len();
    // Updates so small that rounding eats some of them, or all, are another symptom.
    let is_rounded = !is_all || rate.is_some_and(|rate| rate > 0.0 && rate < 1e-6);
    if still.is_empty() || is_tiny(monitor) && is_rounded {
        return;
    }
    let mut evidence = vec![("parameters", with.len() as f64), ("unchanged", still.len() as f64)];
    evidence.extend(rate.map(|rate| ("rate", rate)));
    all.push(Symptom {
        kind: SymptomKind::NotUpdated,
        place: if is_all { String::new() } else { names(&still) },
        since: 0,
        evidence,
        confidence: certainty(is_all, course),
    });
}

/// The largest rate.
fn rate(monitor: &Monitor) -> Option<f64> {
    monitor.rates.points().iter().map(|p| p.1).reduce(f64::max)
}

/// Whether the gradient is the same from start to end in spite of updates: they lead nowhere.
fn is_steady(monitor: &Monitor) -> bool {
    let of = |p: &ParameterTrack| {
        let all = p.points().iter().filter_map(|(_, point)| point.agreement).collect::<Vec<_>>();
        all.len() >= 5
            && all.iter().all(|cosine| *cosine > 0.999)
            && p.counts.largest_ratio < 1e-3
            && is_level(p)
    };
    let all = trained(monitor);
    !all.is_empty() && all.into_iter().all(of)
}

/// Whether the last gradient is as large as the first, within a hundredth.
fn is_level(p: &ParameterTrack) -> bool {
    let norm = |at: Option<&(u64, crate::track::ParameterPoint)>| {
        at.and_then(|(_, point)| Some(point.gradient.as_ref()?.norm()))
    };
    let (first, last) = (norm(p.points().first()), norm(p.points().last()));
    first.zip(last).is_some_and(|(a, b)| (a - b).abs() < 0.01 * a)
}

/// Whether no update was ever more than a hundred-thousandth of the weights.
fn is_tiny(monitor: &Monitor) -> bool {
    let mut all = trained(monitor).into_iter().filter(|p| p.counts.updates >= 3).peekable();
    all.peek().is_some() && all.all(|p| p.counts.largest_ratio < 1e-5)
}

/// Distance that the weights moved, relative to their size, in the matrix that moved farthest: the
/// sum of all updates, as measured at the looks.
pub(super) fn travel(monitor: &Monitor) -> Option<f64> {
    let of = |p: &ParameterTrack| {
        let each = |(step, point): &(u64, crate::track::ParameterPoint)| {
            Some((*step, point.update.as_ref()?.rms() / point.value.rms().max(1e-3)))
        };
        let all: Vec<(u64, f64)> = p.points().iter().filter_map(each).collect();
        let ends = all.iter().skip(1).map(|x| x.0).chain([monitor.steps]);
        let way: f64 = all.iter().zip(ends).map(|(x, end)| x.1 * (end - x.0) as f64).sum();
        (all.len() >= 2).then_some(way)
    };
    let matrices = monitor.parameters.iter().filter(|p| p.is_matrix());
    matrices.filter_map(of).filter(|way| way.is_finite()).reduce(f64::max)
}

pub(super) fn rate_too_low(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let excluded = [
        SymptomKind::NotUpdated,
        SymptomKind::NoGradient,
        SymptomKind::Clipping,
        SymptomKind::NotFinite,
    ];
    let is_low = is_tiny(monitor) || course.steps >= 50 && is_steady(monitor);
    if course.steps < 15 || !course.is_stuck || !is_low || has(all, &excluded) {
        return;
    }
    // Gradients of zero have nothing to do with the rate.
    let alive = |p: &&ParameterTrack| p.counts.points > p.counts.zero + p.counts.without;
    let ratios = trained(monitor).into_iter().filter(alive).map(|p| p.counts.largest_ratio);
    let Some(ratio) = ratios.reduce(f64::max) else { return };
    let mut evidence = vec![("largest update beside the weights", ratio)];
    evidence.extend(rate(monitor).map(|rate| ("rate", rate)));
    evidence.push(("first loss", course.first));
    evidence.push(("last loss", course.last));
    let (kind, place) = (SymptomKind::RateTooLow, String::new());
    all.push(Symptom { kind, place, since: 0, evidence, confidence: 0.85 });
}

pub(super) fn wrong_sign(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let (turned, changed) = monitor.told.turned;
    if turned >= 3 && 2 * turned > changed && !course.is_some_and(Course::learns) {
        all.push(Symptom {
            kind: SymptomKind::WrongSign,
            place: String::new(),
            since: 0,
            evidence: vec![("gradients turned round before the update", turned as f64)],
            confidence: 0.95,
        });
        return;
    }
    let seen: Vec<_> =
        trained(monitor).into_iter().filter(|p| p.counts.uphill + p.counts.downhill >= 3).collect();
    let up = |p: &&&ParameterTrack| {
        let first = p.points().first().and_then(|(_, point)| point.slope);
        p.counts.uphill >= 4 * p.counts.downhill && first.is_some_and(|slope| slope > 0.1)
    };
    let uphill = seen.iter().filter(up).count();
    if uphill > 0 && 2 * uphill > seen.len() {
        let slopes = seen.iter().filter_map(|p| p.points().first()?.1.slope).collect();
        let slope = median(slopes).unwrap_or(f64::NAN);
        all.push(Symptom {
            kind: SymptomKind::WrongSign,
            place: String::new(),
            since: 0,
            evidence: vec![("cosine of update and gradient", slope)],
            confidence: 0.95,
        });
        return;
    }
    // A loss that falls without end is a negated one.
    let Some(c) = course else { return };
    if c.last < 0.0 && c.first - c.last > 10.0 * c.first.abs().max(1.0) {
        all.push(Symptom {
            kind: SymptomKind::WrongSign,
            place: String::new(),
            since: 0,
            evidence: vec![("first loss", c.first), ("last loss", c.last)],
            confidence: 0.7,
        });
    }
}

pub(super) fn rate_too_high(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    if has(all, &[SymptomKind::WrongSign]) {
        return;
    }
    let matrices = || monitor.parameters.iter().filter(|p| p.is_matrix() || p.shape.is_empty());
    let ratio =
        median(matrices().filter(|p| p.first_norm > 0.0).map(|p| p.counts.largest_ratio).collect());
    let spans = monitor.losses.spans();
    let first = spans.first().map_or(f64::NAN, |span| span.mean);
    let most = spans.iter().map(|span| span.most).fold(f64::NEG_INFINITY, f64::max);
    let broke = monitor.bad_loss.is_some() || has(all, &[SymptomKind::NotFinite]);
    let grew = most > 3.0 * first.abs().max(1e-9);
    let is_large = ratio.is_some_and(|ratio| ratio > 0.2);
    let (rose, is_stuck) = course.map_or((false, false), |c| (c.rose(), c.is_stuck));
    // If most answers are right, that outweighs a loss made large by a few confident wrong ones.
    if !broke && course.is_some_and(|c| c.skill.is_some_and(|skill| skill > super::LITTLE)) {
        return;
    }
    let confidence = match (broke, rose) {
        (true, _) if grew && monitor.steps > 1 => 0.9,
        (true, _) if is_large => 0.8,
        (false, true) if grew => 0.9,
        (false, true) if is_large => 0.8,
        (false, false) if is_stuck && is_large => 0.8,
        (false, false) if grew && is_large && course.is_some_and(|c| !c.learns()) => 0.7,
        _ => return,
    };
    // A part of the examples is answered right: the loss of the others may be meant so.
    let is_able =
        !broke && course.is_some_and(|c| c.skill.is_some_and(|skill| skill > super::SOME));
    let confidence = if is_able { f64::min(confidence, 0.5) } else { confidence };
    // Summing over the examples is what makes the rate too high.
    let sum = all.iter_mut().find(|s| s.is_sum());
    let confidence = match sum {
        Some(sum) => {
            sum.confidence = sum.confidence.max(confidence);
            f64::min(confidence, 0.6)
        }
        None => confidence,
    };
    let mut evidence = vec![("first loss", first), ("largest loss", most)];
    evidence.extend(ratio.map(|ratio| ("largest update beside the weights", ratio)));
    evidence.extend(rate(monitor).map(|rate| ("rate", rate)));
    let rising = spans.iter().find(|span| span.most > 3.0 * first.abs());
    let (kind, place) = (SymptomKind::RateTooHigh, String::new());
    let since = rising.map_or(0, |span| span.step);
    all.push(Symptom { kind, place, since, evidence, confidence });
}

pub(super) fn weights_vanish(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    if course.learns() {
        return;
    }
    let norms = |p: &&ParameterTrack| p.is_matrix() && p.first_norm > 0.0;
    let now = |p: &ParameterTrack| p.points().last().map_or(f64::NAN, |(_, p)| p.value.norm());
    let matrices: Vec<_> = monitor.parameters.iter().filter(norms).collect();
    let shares: Vec<f64> = matrices.iter().map(|p| now(p) / p.first_norm).collect();
    if shares.is_empty() || shares.iter().any(|share| share.is_nan() || *share > 0.05) {
        return;
    }
    let share = shares.into_iter().fold(0.0, f64::max);
    all.push(Symptom {
        kind: SymptomKind::WeightsVanish,
        place: names(&matrices),
        since: 0,
        evidence: vec![("share of the first norm", share)],
        confidence: 0.85,
    });
}
