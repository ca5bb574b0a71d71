//! Rules that read the loss, its held-out value and the norms of gradients.

use super::{Course, has, median};
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};

pub(super) fn not_finite(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let outputs = monitor.outputs.iter();
    let outputs = outputs.filter_map(|o| Some((o.not_finite?, o.name.as_str())));
    let parameters = monitor.parameters.iter();
    let parameters = parameters.filter_map(|p| Some((p.counts.not_finite?, p.name.as_str())));
    // The forward pass orders those of one step.
    let first = outputs.chain(parameters).min_by_key(|(step, _)| *step);
    let first = match (monitor.told.bad_input, first) {
        (Some(bad), Some((step, _))) if bad <= step => Some((bad, "the inputs")),
        (Some(bad), None) => Some((bad, "the inputs")),
        (_, first) => first,
    };
    let (since, place) = match (first, monitor.bad_loss) {
        (Some((step, place)), None) => (step, place),
        (Some((step, place)), Some((bad, _))) if step <= bad => (step, place),
        (_, Some((bad, _))) => (bad, "the loss"),
        (None, None) => return,
    };
    let mut evidence = Vec::new();
    evidence.extend(monitor.first_loss.map(|loss| ("first loss", loss)));
    evidence.extend(monitor.recent.back().map(|loss| ("last finite loss", *loss)));
    let (kind, place) = (SymptomKind::NotFinite, place.to_owned());
    all.push(Symptom { kind, place, since, evidence, confidence: 1.0 });
}

pub(super) fn not_zeroed(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let (stale, passes) = monitor.stale;
    if stale < 3 || (stale as f64) < 0.8 * (passes as f64 - 1.0) {
        return;
    }
    all.push(Symptom {
        kind: SymptomKind::NotZeroed,
        place: String::new(),
        since: 1,
        evidence: vec![("backward passes", passes as f64), ("onto used gradients", stale as f64)],
        confidence: 0.95,
    });
}

pub(super) fn clipping(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let (clipped, steps) = monitor.clipped;
    if steps < 5 || (clipped as f64) < 0.95 * steps as f64 || has(all, &[SymptomKind::ZeroedEarly])
    {
        return;
    }
    let points = monitor.norms.points();
    let of = |part: fn(&(f64, f64)) -> f64| median(points.iter().map(|p| part(&p.1)).collect());
    let (Some(before), Some(after)) = (of(|p| p.0), of(|p| p.1)) else { return };
    let factor = before / after.max(1e-300);
    let is_stuck = course.is_some_and(|c| c.is_stuck);
    let confidence = match factor {
        f if f > 1e3 => 0.85,
        f if f > 20.0 && is_stuck => 0.7,
        _ => return,
    };
    all.push(Symptom {
        kind: SymptomKind::Clipping,
        place: String::new(),
        since: 0,
        evidence: vec![("norm", before), ("norm after", after), ("clipped steps", clipped as f64)],
        confidence,
    });
}

pub(super) fn overfitting(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let points = monitor.validations.points();
    if points.len() < 4 || !course.learns() {
        return;
    }
    let best = (0..points.len()).min_by(|&a, &b| points[a].1.0.total_cmp(&points[b].1.0));
    let Some(best) = best else { return };
    let (since, (least, _)) = points[best];
    let Some(&(_, (last, trained))) = points.last() else { return };
    // A rise that is small beside what was gained is no matter.
    let begin = course.first.max(points[0].1.0);
    if last - least < 0.1 * (begin - least) {
        return;
    }
    // At the end at least three measurements in a row that are worse by a fifth.
    let worse = points[best + 1..].iter().rev().take_while(|p| p.1.0 > 1.2 * least).count();
    if worse < 3 || least <= 0.0 || last < 2.0 * trained {
        return;
    }
    all.push(Symptom {
        kind: SymptomKind::Overfitting,
        place: String::new(),
        since,
        evidence: vec![("best", least), ("now", last), ("training", trained)],
        confidence: if last > 1.5 * least { 0.85 } else { 0.65 },
    });
}

pub(super) fn spike(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let Some((since, loss, middle)) = monitor.spike else { return };
    if has(all, &[SymptomKind::NotFinite, SymptomKind::RateTooHigh, SymptomKind::WrongSign]) {
        return;
    }
    all.push(Symptom {
        kind: SymptomKind::Spike,
        place: String::new(),
        since,
        evidence: {
            let mut evidence = vec![("loss", loss), ("median before", middle)];
            let usual = median(monitor.told.inputs.points().iter().map(|p| p.1).collect());
            let inputs = monitor.told.of_spike.zip(usual);
            evidence.extend(inputs.into_iter().flat_map(|(largest, usual)| {
                [("largest input of its batch", largest), ("usually", usual)]
            }));
            evidence
        },
        confidence: 0.6,
    });
}

/// The share of the first loss above which a loss that stays is a plateau.
const PLATEAU: f64 = 0.05;

/// The loss fell, and then it stayed: as often the end of a good training as a rate that is too
/// high for the rest of the way, so it is never more than a question.
pub(super) fn plateau(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let spans = monitor.losses.spans();
    let quiet = course.steps < 100 || course.is_stuck || course.last < PLATEAU * course.first;
    if quiet || course.fell < 0.1 || all.iter().any(|s| s.confidence >= 0.5) {
        return;
    }
    let mean = |part: &[crate::series::LossSpan]| {
        part.iter().map(|s| s.mean).sum::<f64>() / part.len().max(1) as f64
    };
    let third = spans.len() / 3;
    if third < 5 {
        return;
    }
    // The last two thirds, in two halves.
    let (middle, last) = (&spans[third..2 * third], &spans[spans.len() - third..]);
    let (a, b) = (mean(middle), mean(last));
    let spread = |part: &[crate::series::LossSpan], m: f64| {
        let squares = part.iter().map(|s| (s.mean - m).powi(2)).sum::<f64>();
        (squares / part.len() as f64 / part.len() as f64).sqrt()
    };
    let error = spread(middle, a).hypot(spread(last, b));
    if a - b > (2.0 * error).max(0.02 * (course.first - b)) {
        return;
    }
    let level = a + 2.0 * error.max(0.01 * a.abs());
    let since = spans.iter().find(|s| s.mean <= level).map_or(0, |s| s.step);
    all.push(Symptom {
        kind: SymptomKind::Plateau,
        place: String::new(),
        since,
        evidence: vec![("first loss", course.first), ("loss since then", b)],
        confidence: 0.5,
    });
}

pub(super) fn no_progress(course: &Course, all: &mut Vec<Symptom>) {
    if all.iter().any(|s| s.confidence > 0.5) || course.steps < 100 || !course.is_stuck {
        return;
    }
    let (kind, confidence) = match course.rose() {
        true => (SymptomKind::LossRises, 0.7),
        false if course.last.abs() < 1e-6 => return,
        // The loss of a constant answer is known to be no good one.
        false if course.is_constant() && course.steps >= 200 => (SymptomKind::NoProgress, 0.65),
        false => (SymptomKind::NoProgress, 0.5),
    };
    let mut evidence = vec![("first loss", course.first), ("last loss", course.last)];
    evidence.extend(course.constant.map(|loss| ("of a constant answer", loss)));
    all.push(Symptom { kind, place: String::new(), since: 0, evidence, confidence });
}
