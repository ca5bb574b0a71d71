//! Rules about the loss, the held-out loss and the norms of gradients.

use super::{Course, has, hidden, median};
use crate::monitor::{AFTER, Monitor, SPIKE};
use crate::symptom::{Symptom, SymptomKind};

pub(super) fn not_finite(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let outputs = monitor.outputs.iter();
    let outputs = outputs.filter_map(|o| Some((o.not_finite?, o.name.as_str())));
    let parameters = monitor.parameters.iter();
    let parameters = parameters.filter_map(|p| Some((p.counts.not_finite?, p.name.as_str())));
    // The forward pass gives the order of those within one step.
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
    // A rise that is small compared with the gain does not matter.
    let begin = course.first.max(points[0].1.0);
    if last - least < 0.1 * (begin - least) {
        return;
    }
    if missing_classes(monitor, course, (since, last, trained), all) {
        return;
    }
    if let Some(constant) = course.constant.filter(|c| least > NOTHING_LEARNED * c) {
        return by_heart(course, constant, (since, least, last), all);
    }
    // At the end, at least three measurements in a row are worse by a fifth.
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

/// Targets for each class of a few, from which on one that never came is missing.
const FOR_EACH: u64 = 20;

/// The answer has classes that no target of the training was, and the held-out loss rises far above
/// that of the training: examples were split in the order of their classes.
fn missing_classes(
    monitor: &Monitor,
    course: &Course,
    (since, last, trained): (u64, f64, f64),
    all: &mut Vec<Symptom>,
) -> bool {
    let a = &monitor.answers;
    let (width, seen) = (a.width as u64, a.labels.values().sum::<u64>());
    let is_of_classes = a.known.as_ref().is_some_and(|known| known.form.has_best_class());
    let is_few = (3..super::MANY as u64).contains(&width) && seen >= FOR_EACH * width;
    let missing = width.saturating_sub(a.labels.len() as u64);
    let is_far = last > 2.0 * trained && last > course.start.max(course.first);
    if !is_of_classes || !is_few || missing == 0 || !a.is_whole() || !is_far {
        return false;
    }
    all.push(Symptom {
        kind: SymptomKind::DataOrder,
        place: String::new(),
        since,
        evidence: vec![
            ("classes of the answer", width as f64),
            ("never trained on", missing as f64),
            ("held-out loss", last),
            ("training", trained),
        ],
        confidence: 0.85,
    });
    true
}

/// Share of a constant answer's loss above which a held-out loss shows that nothing general was
/// learned.
const NOTHING_LEARNED: f64 = 0.98;

/// The training loss falls, but the held-out one was never below a constant answer's: inputs and
/// targets are unrelated, as if one of them had been shuffled alone.
fn by_heart(
    course: &Course,
    constant: f64,
    (since, least, last): (u64, f64, f64),
    all: &mut Vec<Symptom>,
) {
    if course.last > 0.8 * constant || last < 1.02 * constant {
        return;
    }
    all.push(Symptom {
        kind: SymptomKind::Overfitting,
        place: String::new(),
        since,
        evidence: vec![
            ("best", least),
            ("of a constant answer", constant),
            ("now", last),
            ("training", course.last),
        ],
        confidence: 0.8,
    });
}

pub(super) fn spike(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let Some((since, loss, middle)) = monitor.spike else { return };
    if has(all, &[SymptomKind::NotFinite, SymptomKind::RateTooHigh, SymptomKind::WrongSign]) {
        return;
    }
    // One that is over and stayed below the first loss did no harm.
    if course.is_done() && loss < course.start {
        return;
    }
    // If the loss stays high, the data changed; a single batch is not to blame.
    let after = &monitor.after_spike;
    if after.len() >= AFTER / 2 && median(after.clone()).is_some_and(|m| m > SPIKE * middle) {
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
        // A finished training has recovered from it.
        confidence: if course.is_done() { 0.5 } else { 0.6 },
    });
}

/// Share of the first loss above which a loss that stays counts as a plateau.
const PLATEAU: f64 = 0.05;

/// Share of a plateau above which the size of the steps is what keeps the loss up.
const JUMPS: f64 = 0.25;

/// The loss fell and then stayed, although a smaller rate would lower it, or because the whole
/// answer passes through a single number. Just as often the rest of a loss is noise in the data,
/// which is not reported.
pub(super) fn plateau(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let spans = monitor.losses.spans();
    let quiet = course.steps < 100 || course.is_stuck || course.last < PLATEAU * course.first;
    let quiet = quiet || course.skill.is_some_and(|skill| skill > super::DONE);
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
    // The last two thirds of the run, in two halves.
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
    let jumps = jumps(monitor, middle[0].step).filter(|jumps| *jumps > JUMPS * b.abs());
    let narrow = hidden(monitor).any(|o| o.zero_for.len() == 1);
    if jumps.is_none() && !narrow {
        return;
    }
    let level = a + 2.0 * error.max(0.01 * a.abs());
    let since = spans.iter().find(|s| s.mean <= level).map_or(0, |s| s.step);
    let mut evidence = vec![("first loss", course.first), ("loss since then", b)];
    evidence.extend(jumps.map(|jumps| ("of it from the size of the steps", jumps)));
    evidence.extend(narrow.then_some(("units of the narrowest layer", 1.0)));
    let (kind, place) = (SymptomKind::Plateau, String::new());
    all.push(Symptom { kind, place, since, evidence, confidence: 0.5 });
}

/// The part of a constant loss that is due to the size of the steps.
///
/// Steps `u = -r P g` with rate `r` along noisy gradients jump about a valley. There the loss
/// neither falls nor rises, and the noise adds `r tr(P S) / 4` to its minimum, with the covariance
/// `S` of the gradients: a quarter of `-g u`, as nearly all of a gradient is noise by then. With a
/// running mean of gradients only `1 - beta` of the step comes from the newest one.
fn jumps(monitor: &Monitor, since: u64) -> Option<f64> {
    let of = |name: &str| monitor.told.settings.iter().find(|s| s.0 == name).map_or(0.0, |s| s.1);
    let newest = 1.0 - f64::max(of("momentum"), of("beta1")).clamp(0.0, 0.999);
    let mut falls: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
    for p in &monitor.parameters {
        for (step, point) in p.points().iter().filter(|(step, _)| *step >= since) {
            if let (Some(slope), Some(g), Some(u)) = (point.slope, &point.gradient, &point.update) {
                *falls.entry(*step).or_default() -= slope * g.norm() * u.norm();
            }
        }
    }
    let falls: Vec<f64> = falls.into_values().collect();
    let mean = falls.iter().sum::<f64>() / falls.len() as f64;
    (falls.len() >= 5 && mean.is_finite()).then_some(mean / newest / 4.0)
}

/// Whether losses lie on both sides of zero, such as returns less their mean: such a loss has no
/// minimum to approach.
fn is_about_zero(monitor: &Monitor) -> bool {
    let spans = monitor.losses.spans();
    let share =
        |is: fn(f64) -> bool| spans.iter().filter(|s| is(s.mean)).count() * 20 > spans.len();
    share(|x| x < 0.0) && share(|x| x > 0.0)
}

pub(super) fn no_progress(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let stays = course.is_stuck || monitor.has_ended && course.is_empty();
    if all.iter().any(|s| s.confidence > 0.5) || course.steps < 100 || !stays {
        return;
    }
    let (kind, confidence) = match course.rose() {
        true => (SymptomKind::LossRises, 0.7),
        false if course.last.abs() < 1e-6 || is_about_zero(monitor) => return,
        // Even the loss of a constant answer is known not to be good.
        false if course.is_constant() && course.steps >= 200 => (SymptomKind::NoProgress, 0.65),
        false => (SymptomKind::NoProgress, 0.5),
    };
    let mut evidence = vec![("first loss", course.first), ("last loss", course.last)];
    evidence.extend(course.constant.map(|loss| ("of a constant answer", loss)));
    all.push(Symptom { kind, place: String::new(), since: 0, evidence, confidence });
}
