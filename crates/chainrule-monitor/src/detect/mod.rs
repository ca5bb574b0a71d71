//! Detectors: rules that read symptoms from the records of a monitor.
//!
//! Dead units and small gradients occur in networks that learn, so such rules first ask how far the
//! loss fell.

mod answers;
mod end;
mod layers;
mod loss;
mod told;
mod updates;

use crate::monitor::Monitor;
use crate::symptom::{Symptom, SymptomKind};
use crate::track::{OutputTrack, ParameterTrack};

/// The course of the loss.
#[derive(Clone, Copy, Debug)]
struct Course {
    first: f64,
    /// The loss of the very first step.
    start: f64,
    last: f64,
    /// `(first - last) / |first|`.
    fell: f64,
    /// Whether it is where it began, or higher.
    is_stuck: bool,
    /// Whether something else moves the loss too, as in a game of two nets; then the loss does not
    /// measure progress.
    is_contested: bool,
    steps: u64,
    /// The loss of the best constant answer, if it is known.
    constant: Option<f64>,
    /// The share of the possible gain over a constant answer, if it is known: in right answers for
    /// classes, in squares otherwise.
    skill: Option<f64>,
    /// Classes that were seen.
    kinds: usize,
    /// The fall over the last three fifths, less the part that noise may explain.
    tail: f64,
}

/// Share of a constant answer's loss above which nothing is learned from the inputs.
const AS_A_CONSTANT: f64 = 0.98;

/// Share of a constant answer's loss above which a long training learned almost nothing, and the
/// skill below which it did (as one less that share).
const NOTHING: f64 = 0.85;

/// Share of a constant answer's loss below which something is learned.
const GOOD: f64 = 0.8;

/// Share of a constant answer's loss below which something was learned from the inputs.
const FAIR: f64 = 0.93;

/// Skill at which a training has learned nearly everything.
const DONE: f64 = 0.9;

/// Share of a constant answer's loss below which more than a little was learned.
const HALF: f64 = 0.7;

/// Skill below which a training has learned little.
const LITTLE: f64 = 0.6;

/// The skill above which a training has learned something, whatever its loss.
const SOME: f64 = 0.3;

/// Number of classes from which on the share of right answers is no measure.
const MANY: usize = 20;

impl Course {
    /// No course before five steps.
    fn of(monitor: &Monitor) -> Option<Course> {
        let spans = monitor.losses.spans();
        if spans.len() < 5 {
            return None;
        }
        let part = (spans.len() / 10).clamp(1, 10);
        let of = |part: &[crate::series::LossSpan]| median(part.iter().map(|s| s.mean).collect());
        let first = of(&spans[..part])?;
        let last = of(&spans[spans.len() - part.max(3)..])?;
        let jumps = spans.windows(2).map(|w| (w[1].mean - w[0].mean).abs()).collect();
        let noise = median(jumps)?;
        // A training that is over after a few steps fell before the median could see it.
        let start = monitor.first_loss.unwrap_or(first);
        let at_once = start - last > 0.3 * start.abs() && start - last > 8.0 * noise;
        let first = if at_once { first.max(start) } else { first };
        let fell = (first - last) / first.abs().max(1e-12);
        // Columns that are constant over all examples have a free answer, which models that do not
        // know the column are far from.
        let constant = monitor.constant.filter(|loss| *loss > 0.01 * start);
        let is_constant = constant.is_some_and(|loss| last > AS_A_CONSTANT * loss);
        let stays = fell < 0.05 && first - last < 4.0 * noise.max(1e-4 * first.abs());
        // A loss that rose in the first steps is measured from where it began.
        let rise = (0.05 * start.abs()).max(4.0 * noise);
        let is_back = first > start + rise && start - last < 0.05 * start.abs();
        // A slow training that falls all the time will get there.
        let middle = of(&spans[spans.len() / 2 - part / 2..][..part])?;
        let is_falling = middle - last > noise.max(0.005 * last.abs());
        let is_level = is_constant && !is_falling && monitor.steps >= 100;
        // A start far below a constant answer means earlier progress, perhaps in another training.
        let is_good = constant.is_some_and(|loss| last < GOOD * loss);
        let is_contested = is_contested(monitor);
        let steps = monitor.steps;
        let skill = monitor.answers.skill(3 * steps / 5).or_else(|| {
            let numbers = monitor.answers.labels.is_empty();
            constant.filter(|c| numbers && *c > 0.0).map(|constant| 1.0 - last / constant)
        });
        // Right answers are progress, though a few sure and wrong ones make the loss large.
        let is_able = skill.is_some_and(|skill| skill > SOME);
        let is_stuck = !is_contested && !is_good && !is_able && (stays || is_back || is_level);
        let tail = tail(spans);
        Some(Course {
            first,
            start,
            last,
            fell,
            is_stuck,
            is_contested,
            steps,
            constant,
            skill,
            kinds: monitor.answers.labels.len(),
            tail,
        })
    }

    fn rose(&self) -> bool {
        let first = self.first.min(self.start);
        !self.is_contested && self.last > first + first.abs().max(1e-6)
    }

    /// Whether little was learned of what there may be.
    fn is_poor(&self) -> bool {
        match (self.skill, self.constant) {
            _ if self.is_contested => false,
            // Most letters of a text cannot be predicted, however much is learned.
            (Some(_), Some(constant)) if self.kinds >= MANY => self.last > GOOD * constant,
            (Some(skill), _) => skill < LITTLE,
            (_, Some(constant)) => self.last > HALF * constant,
            _ => self.fell < 0.3,
        }
    }

    /// Whether almost nothing was learned beyond a constant answer.
    fn is_empty(&self) -> bool {
        self.steps >= 200 && self.is_bare()
    }

    /// The same of a training of any length.
    fn is_bare(&self) -> bool {
        let is_poor = self.constant.is_none_or(|constant| self.last > NOTHING * constant);
        !self.is_contested && is_poor && self.skill.is_some_and(|skill| skill < 1.0 - NOTHING)
    }

    /// Whether nearly everything was learned.
    fn is_done(&self) -> bool {
        match self.skill {
            Some(skill) => skill > DONE,
            None => self.last < 0.1 * self.first.abs(),
        }
    }

    fn learns(&self) -> bool {
        match self.constant {
            _ if self.is_contested => true,
            Some(loss) if self.last < GOOD * loss => true,
            Some(loss) => self.fell > 0.3 && self.last < FAIR * loss,
            None => self.fell > 0.3,
        }
    }

    /// Whether the loss is still a constant answer's, as far as that is known.
    fn is_constant(&self) -> bool {
        self.constant.is_some_and(|loss| self.last > AS_A_CONSTANT * loss)
    }
}

/// The fall of the loss over its last three fifths, along a fitted straight line, less twice the
/// error of the fit.
fn tail(spans: &[crate::series::LossSpan]) -> f64 {
    let part = &spans[2 * spans.len() / 5..];
    let n = part.len() as f64;
    let at = |i: usize| (i as f64 + 0.5) / n - 0.5;
    let mean = part.iter().map(|s| s.mean).sum::<f64>() / n;
    let (mut along, mut squares) = (0.0, 0.0);
    for (i, s) in part.iter().enumerate() {
        along += at(i) * (s.mean - mean);
        squares += at(i).powi(2);
    }
    let slope = along / squares;
    let off = |(i, s): (usize, &crate::series::LossSpan)| (s.mean - mean - slope * at(i)).powi(2);
    let rest = part.iter().enumerate().map(off).sum::<f64>();
    -slope - 2.0 * (rest / (n - 2.0).max(1.0) / squares).sqrt()
}

/// Whether other optimizers move the loss, too.
fn is_contested(monitor: &Monitor) -> bool {
    monitor.told.settings.iter().any(|(name, n)| name == "other_optimizers" && *n > 0.0)
}

/// The outputs of modules that have matrices, except the last of them.
fn hidden(monitor: &Monitor) -> impl Iterator<Item = &OutputTrack> {
    let has_weights = |o: &&OutputTrack| {
        let of = |p: &ParameterTrack| p.name.rsplit_once('.').is_some_and(|n| n.0 == o.name);
        monitor.parameters.iter().any(|p| p.is_matrix() && of(p))
    };
    let all: Vec<&OutputTrack> = monitor.outputs.iter().filter(has_weights).collect();
    let but_last = all.len().saturating_sub(1);
    all.into_iter().take(but_last)
}

/// All symptoms, the surest first.
pub(crate) fn findings(monitor: &Monitor) -> Vec<Symptom> {
    let mut all = Vec::new();
    let course = Course::of(monitor);
    loss::not_finite(monitor, &mut all);
    updates::never_a_gradient(monitor, course.as_ref(), &mut all);
    updates::not_updated(monitor, course.as_ref(), &mut all);
    loss::not_zeroed(monitor, &mut all);
    told::zeroed_early(monitor, &mut all);
    told::settings(monitor, course.as_ref(), &mut all);
    told::modes(monitor, &mut all);
    told::dependence(monitor, &mut all);
    answers::form(monitor, course.as_ref(), &mut all);
    answers::labels(monitor, &mut all);
    loss::clipping(monitor, course.as_ref(), &mut all);
    updates::wrong_sign(monitor, course.as_ref(), &mut all);
    updates::rate_too_high(monitor, course.as_ref(), &mut all);
    if let Some(course) = course {
        updates::rate_too_low(monitor, &course, &mut all);
        updates::weights_vanish(monitor, &course, &mut all);
        layers::symmetric(monitor, &course, &mut all);
        layers::saturated(monitor, &course, &mut all);
        layers::dead_units(monitor, &course, &mut all);
        layers::vanishing(monitor, &course, &mut all);
        layers::exploding(monitor, &course, &mut all);
        layers::constant_output(monitor, &course, &mut all);
        told::same_batch(monitor, &course, &mut all);
        told::rate_decays(monitor, &course, &mut all);
        answers::scales(monitor, &course, &mut all);
        answers::beginning(monitor, &course, &mut all);
        layers::hidden_softmax(monitor, &course, &mut all);
        loss::overfitting(monitor, &course, &mut all);
        loss::spike(monitor, &course, &mut all);
        loss::plateau(monitor, &course, &mut all);
        loss::no_progress(monitor, &course, &mut all);
        end::unrelated_targets(monitor, &course, &mut all);
        end::hardly_moved(monitor, &course, &mut all);
        end::small_steps(monitor, &course, &mut all);
        end::too_few_steps(monitor, &course, &mut all);
    }
    all.sort_by(|a, b| b.confidence.total_cmp(&a.confidence).then(a.kind.cmp(&b.kind)));
    all
}

/// The median of the finite numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.retain(|x| x.is_finite());
    let middle = numbers.len().checked_sub(1)? / 2;
    let (_, middle, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*middle)
}

/// Several names as one place.
fn places(names: &[&str]) -> String {
    match names {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        all => all.join(", "),
    }
}

fn has(all: &[Symptom], kinds: &[SymptomKind]) -> bool {
    all.iter().any(|s| kinds.contains(&s.kind) && s.confidence > 0.5)
}
