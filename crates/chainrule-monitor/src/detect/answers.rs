//! Rules that combine the last output with the form of the loss and the targets.

use super::{Course, median};
use crate::answer::Answers;
use crate::forms::{Answer, LossForm};
use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};

/// Looks after which outputs that never left a range count as bounded.
const LOOKS: u32 = 12;

fn output(monitor: &Monitor) -> String {
    monitor.outputs.last().map_or_else(String::new, |o| o.name.clone())
}

pub(super) fn form(monitor: &Monitor, course: Option<&Course>, all: &mut Vec<Symptom>) {
    let a = &monitor.answers;
    let learns = course.is_some_and(Course::learns);
    let mut say = |kind, evidence, confidence| {
        all.push(Symptom { kind, place: output(monitor), since: 0, evidence, confidence });
    };
    if a.looks >= 2 && a.width == 1 && a.ones == a.looks {
        // A softmax over one unit.
        say(SymptomKind::OutputActivation, vec![("each output", 1.0)], 0.95);
        return;
    }
    if let Some((least, has_bad)) = a.undefined.filter(|_| monitor.first_loss.is_none()) {
        let confidence = if has_bad { 0.85 } else { 0.6 };
        say(SymptomKind::OutputActivation, vec![("least output", least)], confidence);
        return;
    }
    if let Some(share) = stuck(a).filter(|_| !learns) {
        let evidence = vec![("share of outputs that stay at zero", share)];
        say(SymptomKind::OutputActivation, evidence, 0.85);
        return;
    }
    if let Some(evidence) = beyond_logarithms(a, course) {
        say(SymptomKind::OutputActivation, evidence, 0.85);
        return;
    }
    let is_able = course.and_then(|c| c.skill).is_some_and(|skill| skill > ABLE);
    if a.ordered[0] >= 4 && a.ordered[1] == 0 && a.known.is_none() && !learns {
        say(SymptomKind::LossBroadcast, vec![("looks", f64::from(a.ordered[0]))], 0.8);
        return;
    }
    let Some(known) = &a.known else { return };
    let (low, high) = a.range.unwrap_or((f64::NAN, f64::NAN));
    let range = || vec![("least output", low), ("largest output", high)];
    let takes_logits = matches!(known.form, LossForm::CrossEntropy | LossForm::BinaryLogits);
    let always = |count: u32| a.looks >= 2 && count == a.looks;
    match known.form {
        LossForm::SquaresOfAllPairs => {
            say(SymptomKind::LossBroadcast, vec![("outputs", known.count as f64)], 0.97);
        }
        LossForm::CrossEntropyOverExamples => {
            say(SymptomKind::Dependence, vec![("examples of a softmax", known.count as f64)], 0.95);
        }
        LossForm::CrossEntropyOfSoftmax | LossForm::BinaryOfSigmoid => {
            say(SymptomKind::OutputActivation, vec![("times", 2.0)], 0.95);
        }
        LossForm::CrossEntropyOfOne => say(SymptomKind::Loss, range(), 0.9),
        LossForm::CrossEntropyOfParts | LossForm::CrossEntropyOfProbabilities
            if a.looks >= 2 && a.probabilities == 0 && !is_able =>
        {
            say(SymptomKind::OutputActivation, range(), 0.9);
        }
        LossForm::SquaresOfSoftmax if !course.is_some_and(|c| c.is_done()) => {
            say(SymptomKind::Loss, range(), 0.7);
        }
        LossForm::BinaryProbabilities | LossForm::BinaryLogits
            if let Some([.., least, most]) = a.numbers
                && (least < -0.05 || most > 1.05) =>
        {
            let evidence = vec![("least target", least), ("largest target", most)];
            say(SymptomKind::Loss, evidence, 0.9);
        }
        LossForm::NegativeProbability => say(SymptomKind::LogForgotten, range(), 0.95),
        LossForm::NegativeLikelihood if a.logarithms == 0 => {
            say(SymptomKind::LogForgotten, range(), 0.95);
        }
        LossForm::CrossEntropy if always(a.probabilities) => {
            say(SymptomKind::OutputActivation, range(), 0.95);
        }
        _ if takes_logits && a.looks >= 2 && low >= 0.0 && a.zeros > 0.01 => {
            let evidence = vec![("least output", low), ("share of exact zeros", a.zeros)];
            say(SymptomKind::OutputActivation, evidence, 0.9);
        }
        // A sigmoid of numbers that are never below zero: no answer is below one half.
        LossForm::BinaryProbabilities
            if a.looks >= 2 && low >= 0.5 && a.halves > 0.01 && a.labels.contains_key(&0) =>
        {
            let evidence = vec![("least output", low), ("share of exact halves", a.halves)];
            say(SymptomKind::OutputActivation, evidence, 0.9);
        }
        _ if takes_logits && a.bounds.is_some_and(|(low, high)| low >= 0.0 && high <= 1.0) => {
            say(SymptomKind::OutputActivation, range(), 0.95);
        }
        _ if takes_logits && a.looks >= LOOKS && always(a.inside) && !learns => {
            say(SymptomKind::OutputActivation, range(), 0.8);
        }
        // Logits between -1 and 1 never express certainty.
        _ if takes_logits && a.bounds == Some((-1.0, 1.0)) => {
            say(SymptomKind::OutputActivation, range(), 0.85);
        }
        // Differences between numbers and targets within these bounds are no larger than that.
        LossForm::Absolute
            if let Some((low, high)) = a.bounds
                && a.largest_loss > 1.05 * (high - low) * known.scale * known.count as f64 =>
        {
            let evidence = vec![("largest loss", a.largest_loss), ("largest output", high)];
            say(SymptomKind::OutputActivation, evidence, 0.85);
        }
        LossForm::Squares => {
            squares(a, low, high, learns, &mut say);
            if let Some(evidence) = classes_as_numbers(a, course) {
                say(SymptomKind::Loss, evidence, 0.5);
            }
        }
        _ => {}
    }
    reduction(a, course, &mut say);
}

/// The share of outputs of a last ReLU that are zero at each look and ought to be larger, so that
/// no gradient passes, if it is nearly all.
fn stuck(a: &Answers) -> Option<f64> {
    let is_half_open = a.bounds.is_some_and(|(low, high)| low == 0.0 && high.is_infinite());
    let least = a.blocked.iter().copied().fold(f64::INFINITY, f64::min);
    (is_half_open && a.blocked.len() >= 2 && least > 0.9).then_some(least)
}

/// The skill at which a training's last layer is good enough.
const ABLE: f64 = 0.8;

/// Numbers outside zero to one that have no gradient at all, as behind the bounds of a logarithm,
/// while those inside have one.
fn beyond_logarithms(a: &Answers, course: Option<&Course>) -> Option<Vec<(&'static str, f64)>> {
    let ([within, still], [beyond, stuck]) = (a.within, a.beyond);
    let (low, high) = a.range?;
    let is_free = low < 0.0 || high > 1.0 || a.bounds.is_some_and(|bounds| bounds.1 > 1.0);
    let is_bounded = beyond == stuck && 10 * beyond > within + beyond && 20 * still <= within;
    let learns = course.is_some_and(Course::learns) && a.above < 4;
    let evidence = vec![("outputs beyond 0 and 1", beyond as f64), ("between", within as f64)];
    (a.looks >= 3 && is_free && is_bounded && !learns).then_some(evidence)
}

/// Squared differences of zeros and ones, with little learned.
fn classes_as_numbers(a: &Answers, course: Option<&Course>) -> Option<Vec<(&'static str, f64)>> {
    let [n, sum, squares, least, most] = a.numbers?;
    let are_ones =
        least.abs() < 0.01 && (most - 1.0).abs() < 0.01 && (sum - squares).abs() < 0.01 * sum;
    let skill = course?.skill.filter(|skill| *skill < 0.5)?;
    (are_ones && course?.steps >= 100).then(|| vec![("targets of 0 or 1", n), ("learned", skill)])
}

/// Ratio of the first loss to that of a chance answer from which on the training starts out wrong.
const SURE: f64 = 3.0;

/// The share of a first loss by which one that began wrong has come down.
const RECOVERS: f64 = 0.3;

/// Rules about the first loss and the counts of labels.
pub(super) fn beginning(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    let a = &monitor.answers;
    let Some(known) = a.known.as_ref().filter(|known| known.form.has_best_class()) else { return };
    let chance = (a.width as f64).ln() * known.scale * known.count as f64;
    let has = |kind| all.iter().any(|s: &Symptom| s.kind == kind);
    let (place, since) = (output(monitor), 0);
    let stays = course.last > 1.3 * chance
        && course.fell < 0.6
        && course.skill.is_none_or(|skill| skill < 0.3);
    if course.start > SURE * chance && stays && !has(SymptomKind::InputScale) {
        let evidence = vec![("first loss", course.start), ("of chance", chance)];
        let kind = SymptomKind::InitScale;
        // A training on its way down may get over it.
        let confidence = if course.fell > RECOVERS { 0.5 } else { 0.8 };
        all.push(Symptom { kind, place: place.clone(), since, evidence, confidence });
    }
    let mut counts: Vec<u64> = a.labels.values().copied().collect();
    counts.sort_unstable();
    let (Some(&most), middle) = (counts.last(), counts.len() / 2) else { return };
    let seen = counts.iter().sum::<u64>();
    // The frequencies of letters and words are uneven too, and texts are learned well.
    let is_known = counts.len() >= 3 && seen >= 100 && 2 * most >= seen;
    if is_known && most >= UNEVEN * counts[middle] {
        let evidence =
            vec![("of the largest class", most as f64), ("usual", counts[middle] as f64)];
        let kind = SymptomKind::Unbalanced;
        all.push(Symptom { kind, place, since, evidence, confidence: 0.5 });
    }
}

/// Ratio of the largest class to the middle one from which on the others count as rare.
const UNEVEN: u64 = 8;

fn squares(
    a: &Answers,
    low: f64,
    high: f64,
    learns: bool,
    say: &mut impl FnMut(SymptomKind, Vec<(&'static str, f64)>, f64),
) {
    let Some([.., least, most]) = a.numbers else { return };
    let spread = most - least;
    let evidence = || {
        let outputs = [("least output", low), ("largest output", high)];
        [outputs, [("least target", least), ("largest target", most)]].concat()
    };
    // The bounds of the module that gave the outputs, or those which they never left.
    let seen = match (a.looks >= LOOKS && !learns, low, high) {
        (true, l, h) if l >= 0.0 && h <= 1.0 => Some((0.0, 1.0)),
        (true, l, h) if l >= -1.0 && h <= 1.0 && h - l > 1.5 => Some((-1.0, 1.0)),
        (_, l, _) if l >= 0.0 && a.zeros > 0.05 && a.looks >= 2 => Some((0.0, f64::INFINITY)),
        _ => None,
    };
    let is_known = a.bounds.is_some();
    let Some((bottom, top)) = a.bounds.or(seen) else { return };
    let beyond = (bottom - least).max(most - top);
    if beyond > 0.05 * spread.max(1e-12) && spread > 0.0 {
        let confidence = match (is_known, learns) {
            (true, _) if beyond > 0.3 * spread => 0.95,
            (true, false) => 0.85,
            (false, false) if beyond > 0.3 * spread => 0.8,
            _ => 0.5,
        };
        say(SymptomKind::OutputActivation, evidence(), confidence);
    }
}

/// Summing over the examples only amounts to a larger rate, as long as all batches have one size.
fn reduction(
    a: &Answers,
    course: Option<&Course>,
    say: &mut impl FnMut(SymptomKind, Vec<(&'static str, f64)>, f64),
) {
    // A form that fits one look among many does so by chance.
    let is_known = |known: &&Answer| known.count >= 8 && a.is_whole();
    let Some(known) = a.known.as_ref().filter(is_known) else { return };
    let n = known.count as f64;
    let factor = known.scale.abs() * n;
    let is_sum = factor > 0.9 * n;
    let is_twice = factor < 1.2 / n * a.width.max(1) as f64 && factor < 0.1;
    if !is_sum && !is_twice {
        return;
    }
    let confidence = match course {
        Some(c) if c.learns() && !c.rose() && c.skill.is_some_and(|skill| skill > ABLE) => return,
        Some(c) if c.learns() => 0.4,
        Some(c) if c.steps >= 20 => 0.7,
        _ => 0.5,
    };
    say(SymptomKind::LossReduction, vec![("factor of the mean loss", factor)], confidence);
}

pub(super) fn labels(monitor: &Monitor, all: &mut Vec<Symptom>) {
    let a = &monitor.answers;
    let seen: u64 = a.labels.values().sum();
    let mut say = |kind, evidence, confidence| {
        all.push(Symptom { kind, place: String::new(), since: 0, evidence, confidence });
    };
    // If the loss has another form at some looks, its targets are not known.
    if !a.is_whole() {
        return;
    }
    if a.labels.len() == 1 && seen >= 100 && a.labelled >= 4 {
        let label = a.labels.keys().next().map_or(0.0, |k| *k as f64);
        say(SymptomKind::Labels, vec![("targets", seen as f64), ("each is", label)], 0.85);
    } else if a.labels.len() > 1 && a.labelled >= 6 && 10 * a.single > 8 * a.labelled {
        let evidence = vec![
            ("batches looked at", f64::from(a.labelled)),
            ("of one class", f64::from(a.single)),
        ];
        say(SymptomKind::DataOrder, evidence, 0.85);
    }
    if let Some([n, .., least, most]) = a.numbers
        && n >= 100.0
        && (most - least) < 1e-4 * most.abs().max(least.abs())
    {
        say(SymptomKind::Labels, vec![("targets", n), ("each is", most)], 0.8);
    }
}

/// Sizes of inputs and targets beyond which a training that does not learn is blamed on them.
const LARGE: f64 = 20.0;

/// The way of outputs to their targets beside the largest of them, of a training that has not come
/// near.
const AFAR: f64 = 3.0;

/// Share of a constant answer's loss above which inputs or targets of that size are blamed.
const POOR: f64 = 0.85;

pub(super) fn scales(monitor: &Monitor, course: &Course, all: &mut Vec<Symptom>) {
    // Hardly better than a constant answer counts as no progress here, however bad the start was.
    let is_poor = course.constant.is_some_and(|loss| course.last > POOR * loss);
    if course.learns() && !is_poor || course.steps < 20 {
        return;
    }
    // If the rate is wrong at any scale, the rate is named first.
    let confidence = |known: f64| if all.iter().any(|s| s.confidence > 0.9) { 0.5 } else { known };
    let inputs = median(monitor.told.inputs.points().iter().map(|p| p.1).collect());
    let mut found = Vec::new();
    if let Some(largest) = inputs.filter(|x| *x > LARGE) {
        let sure = if largest > 5.0 * LARGE { 0.75 } else { 0.55 };
        found.push((SymptomKind::InputScale, vec![("largest input", largest)], confidence(sure)));
    }
    let (outputs, distance) = (monitor.answers.range, median(monitor.answers.distances.clone()));
    let is_unknown = monitor.answers.numbers.is_none() && monitor.answers.labels.is_empty();
    if let (Some((low, high)), Some(far), true) = (outputs, distance, is_unknown) {
        // Targets that the form of the loss does not tell are as far as its slope says.
        let largest = low.abs().max(high.abs());
        if far > LARGE && far > AFAR * largest {
            let evidence = vec![("way of the outputs to the targets", far), ("largest", largest)];
            found.push((SymptomKind::TargetScale, evidence, confidence(0.55)));
        }
    }
    if let Some([n, sum, squares, ..]) = monitor.answers.numbers {
        let size = (squares / n).sqrt();
        if size > LARGE {
            let evidence = vec![("size of the targets", size), ("mean", sum / n)];
            found.push((SymptomKind::TargetScale, evidence, confidence(0.75)));
        }
    }
    all.extend(found.into_iter().map(|(kind, evidence, confidence)| Symptom {
        kind,
        place: String::new(),
        since: 0,
        evidence,
        confidence,
    }));
}
