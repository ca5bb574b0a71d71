//! The answers of a model over the steps, with the targets and the form of its loss where they are
//! known.

use std::collections::BTreeMap;

use crate::forms::{Answer, LossForm, near, recognised, rows};
use crate::penalty::Penalised;

/// The most numbers of one output that are examined.
const MOST: usize = 1 << 19;

/// A loss below this share of the largest one counts as nothing.
const TINY_LOSS: f64 = 0.05;

/// Looks for which numbers at bounds are kept, and the largest output whose targets are counted
/// column by column.
const BLOCKED: usize = 16;
const COLUMNS: usize = 1024;

/// Looks whose right answers are counted.
const RIGHT: usize = 8;

/// Fewest answers for which the share of right ones is known.
const ENOUGH: u64 = 24;

/// The most kinds of labels that are counted.
const CLASSES: usize = 10_000;

/// Answers over the steps of a training.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// Answers reported so far, only some of which are examined.
    pub told: u64,
    pub looks: u32,
    /// The newest answer whose loss has a known form, without its targets.
    pub known: Option<Answer>,
    pub width: usize,
    /// The smallest and the largest output.
    pub range: Option<(f64, f64)>,
    /// Looks at which all rows were probabilities that sum to one, were log-probabilities, lay
    /// between zero and one, or were exactly one.
    pub probabilities: u32,
    pub logarithms: u32,
    pub inside: u32,
    pub ones: u32,
    /// The share of exact zeros, and of exact halves.
    pub zeros: f64,
    pub halves: f64,
    /// The bounds of the module that gave the outputs.
    pub bounds: Option<(f64, f64)>,
    /// At each look, the share of numbers at one of these bounds, or at zero, that their gradient
    /// moves back inside.
    pub blocked: Vec<f64>,
    /// Numbers between zero and one, and all others, each with the count of those without a
    /// gradient.
    pub within: [u64; 2],
    pub beyond: [u64; 2],
    /// Looks at which no number was below one, and none had a gradient.
    pub above: u32,
    /// The least number at the first look, if the loss was not finite there: of numbers that are,
    /// of which only those of zero or below have gradients that are not; and whether some have.
    pub undefined: Option<(f64, bool)>,
    /// The loss over the sum of sizes of its gradient, at the first looks: how far the numbers are
    /// from where the loss vanishes, for losses of differences, be they means or sums.
    pub distances: Vec<f64>,
    /// For the newest looks: the step, the number of right answers, and the number of answers.
    right: Vec<(u64, u64, u64)>,
    /// Looks at which the gradients of single numbers are ordered as the numbers are, and other
    /// looks.
    pub ordered: [u32; 2],
    /// Counts of each label, and the looks at which all labels were the same.
    pub labels: BTreeMap<u64, u64>,
    pub single: u32,
    pub labelled: u32,
    /// Looks with targets that are numbers.
    pub numbered: u32,
    /// Looks whose loss has no known form although it is not negligible beside the largest.
    pub missed: u32,
    /// Whether the monitor's constant-answer loss was computed here.
    pub gave_constant: bool,
    pub largest_loss: f64,
    penalised: Penalised,
    /// The newest loss in excess of its form: a penalty of the weights.
    penalty: f64,
    /// Count, sum and sum of squares of the targets of each column, where these are few.
    columns: Vec<[f64; 3]>,
    /// Count, sum, sum of squares, least and largest of targets that are numbers.
    pub numbers: Option<[f64; 5]>,
    /// Counts of pairs of a right class and the class answered, over the newest looks, at most half
    /// of all.
    pub confusion: BTreeMap<(u64, u64), u64>,
}

/// The most classes in a table of answers.
const TABLE: u64 = 32;

impl Answers {
    /// Examines an output, the gradient that came back to it, and the loss.
    pub fn add(&mut self, step: u64, loss: f64, dims: &[usize], o: &[f64], g: &[f64]) {
        let width = if dims.len() < 2 { 1 } else { dims[dims.len() - 1] };
        if o.is_empty() || o.len() > MOST || o.len() != g.len() || width == 0 {
            return;
        }
        self.looks += 1;
        self.width = width;
        let (mut low, mut high) = self.range.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        o.iter().filter(|x| x.is_finite()).for_each(|x| (low, high) = (low.min(*x), high.max(*x)));
        self.range = Some((low, high));
        let all = |holds: fn(&[f64]) -> bool| u32::from(o.chunks(width).all(holds));
        self.inside += all(|row| row.iter().all(|x| (0.0..=1.0).contains(x)));
        self.ones += all(|row| row.iter().all(|x| *x == 1.0));
        let sums = |row: &[f64]| {
            row.iter().all(|x| *x >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-4
        };
        self.probabilities += u32::from(width > 1 && all(sums) == 1);
        self.logarithms += all(|row| (row.iter().map(|x| x.exp()).sum::<f64>() - 1.0).abs() < 1e-3);
        let share = |of: f64| o.iter().filter(|x| **x == of).count() as f64 / o.len() as f64;
        (self.zeros, self.halves) = (share(0.0), share(0.5));
        let channels = dims.get(1).copied().filter(|_| dims.len() > 2);
        let found = recognised(loss, width, o, g).or_else(|| {
            let c = channels?;
            recognised(loss, c, &last(dims, c, o), &last(dims, c, g))
        });
        self.see_bounds(o, g);
        self.see_distance(loss, o, g);
        let found = found.or_else(|| {
            let answer = self.penalised.add(loss, width, o, g)?;
            // The earlier looks had the same form too, so they no longer count as missed.
            self.missed = if self.known.is_none() { 0 } else { self.missed };
            Some(answer)
        });
        if found.is_none() && width == 1 {
            self.ordered[usize::from(!is_ordered(o, g))] += 1;
        }
        self.largest_loss = self.largest_loss.max(loss.abs());
        // A tiny loss is mostly rounding, so the remainder fits no form.
        let tells = loss.abs() > TINY_LOSS * self.largest_loss && !self.is_silent(width, o, g);
        self.missed += u32::from(found.is_none() && tells);
        if let Some(mut answer) = found {
            self.penalty = if near(answer.own, loss) { 0.0 } else { (loss - answer.own).max(0.0) };
            self.confuse(&answer, width, o, g);
            self.see_right(&answer, (step, loss), o, g);
            self.count(std::mem::take(&mut answer.targets), &answer);
            self.known = Some(answer);
        }
    }

    fn confuse(&mut self, answer: &Answer, width: usize, o: &[f64], g: &[f64]) {
        if self.looks.is_power_of_two() {
            self.confusion.clear();
        }
        let is_one = width as u64 <= TABLE && width * answer.targets.len() <= o.len() && width > 1;
        if !answer.form.has_best_class() || !is_one {
            return;
        }
        for ((o, _), right) in rows(width, o, g).zip(&answer.targets) {
            let best = (0..width).max_by(|&a, &b| o[a].total_cmp(&o[b])).unwrap_or(0);
            *self.confusion.entry((*right as u64, best as u64)).or_insert(0) += 1;
        }
    }

    /// The share reached of the possible gain over always answering the most frequent label: 0 for
    /// a constant answer, 1 if all answers are right. Only steps from `since` on count.
    pub fn skill(&self, since: u64) -> Option<f64> {
        let of = |since: u64| {
            let late = self.right.iter().filter(|(step, ..)| *step >= since);
            late.fold((0, 0), |a, b| (a.0 + b.1, a.1 + b.2))
        };
        let (right, all) = match of(since) {
            (_, few) if few < ENOUGH => of(since / 2),
            late => late,
        };
        let labels: u64 = self.labels.values().sum();
        let most = *self.labels.values().max()? as f64 / labels as f64;
        let is_known = all >= ENOUGH && most < 1.0 && self.is_whole();
        is_known.then(|| (right as f64 / all as f64 - most) / (1.0 - most))
    }

    fn see_right(&mut self, answer: &Answer, (step, loss): (u64, f64), o: &[f64], g: &[f64]) {
        let width = self.width;
        let is_one = answer.form.has_best_class() && width * answer.targets.len() <= o.len();
        let (right, known) = match answer.form {
            LossForm::BinaryLogits | LossForm::BinaryProbabilities if width == 1 => {
                let is_logit = answer.form == LossForm::BinaryLogits;
                let middle = if is_logit { 0.0 } else { 0.5 };
                let heard = o.iter().zip(g).filter(|(o, g)| is_logit || !is_beyond(**o, **g));
                let pairs = heard.zip(&answer.targets).map(|((o, _), t)| (*o, *t));
                let of = |(o, t): (f64, f64)| -(if t > 0.5 { o } else { 1.0 - o }).ln();
                let known = if is_logit { 0.0 } else { pairs.clone().map(of).sum() };
                (pairs.filter(|(o, t)| (*o > middle) == (*t > 0.5)).count(), known)
            }
            _ if is_one => {
                let best = |o: &[f64]| (0..width).max_by(|&a, &b| o[a].total_cmp(&o[b]));
                let pairs = rows(width, o, g).zip(&answer.targets);
                let part = |((o, _), k): ((&[f64], &[f64]), &f64)| {
                    -(o[*k as usize] / o.iter().sum::<f64>()).ln()
                };
                let known = if answer.form == LossForm::CrossEntropyOfParts {
                    pairs.clone().map(part).sum()
                } else {
                    0.0
                };
                (pairs.filter(|((o, _), k)| best(o) == Some(**k as usize)).count(), known)
            }
            _ => return,
        };
        // Answers at the bound of a logarithm are sure ones, and have no gradient: each that is
        // wrong costs all that the bound lets through.
        let rest = (loss - self.penalty) / answer.scale - known;
        let silent = match answer.form {
            LossForm::CrossEntropyOfParts => o.len() / width - answer.targets.len(),
            LossForm::BinaryProbabilities => o.len() - answer.targets.len(),
            _ => 0,
        };
        let wrong = (rest / BOUND).round().clamp(0.0, silent as f64) as usize;
        let all = answer.targets.len() + silent;
        self.right.push((step, (right + silent - wrong) as u64, all as u64));
        if self.right.len() > RIGHT {
            self.right.remove(0);
        }
    }

    /// Whether the loss is of probabilities, as it was before, of which too few are within the
    /// bounds of the logarithm for its form to show.
    fn is_silent(&self, width: usize, o: &[f64], g: &[f64]) -> bool {
        let form = self.known.as_ref().map(|known| known.form);
        match form {
            Some(LossForm::CrossEntropyOfParts) => rows(width, o, g).count() < 4,
            Some(LossForm::BinaryProbabilities) => {
                o.iter().zip(g).filter(|(o, g)| !is_beyond(**o, **g)).count() < 4
            }
            _ => false,
        }
    }

    /// Numbers at bounds, and those without a gradient.
    fn see_bounds(&mut self, o: &[f64], g: &[f64]) {
        let n = o.len() as f64;
        let low = self.bounds.map_or(0.0, |bounds| bounds.0);
        let blocked = o.iter().zip(g).filter(|(o, g)| **o == low && **g < 0.0).count();
        self.blocked.push(blocked as f64 / n);
        if self.blocked.len() > BLOCKED {
            self.blocked.remove(0);
        }
        for (o, g) in o.iter().zip(g) {
            let of = if *o > 1e-7 && *o < 1.0 - 1e-7 { &mut self.within } else { &mut self.beyond };
            of[0] += 1;
            of[1] += u64::from(*g == 0.0);
        }
        let is_above = o.iter().zip(g).all(|(o, g)| *o >= 1.0 && *g == 0.0);
        self.above = if is_above { self.above + 1 } else { 0 };
    }

    fn see_distance(&mut self, loss: f64, o: &[f64], g: &[f64]) {
        let mut numbers = o.iter().zip(g);
        let is_known = o.iter().all(|o| o.is_finite());
        if self.looks == 1 && !loss.is_finite() && is_known {
            let least = o.iter().copied().fold(f64::INFINITY, f64::min);
            let has_bad = g.iter().any(|g| !g.is_finite());
            let is_of_logarithm = least <= 0.0 && numbers.all(|(o, g)| g.is_finite() || *o <= 0.0);
            self.undefined = is_of_logarithm.then_some((least, has_bad));
        }
        let distance = loss / g.iter().map(|g| g.abs()).sum::<f64>();
        if distance.is_finite() && self.distances.len() < RIGHT {
            self.distances.push(distance);
        }
    }

    fn count(&mut self, targets: Vec<f64>, answer: &Answer) {
        let is_binary = |y: &f64| y.abs().min((y - 1.0).abs()) < 0.05;
        let has_numbers = match answer.form {
            LossForm::Squares => true,
            LossForm::BinaryProbabilities | LossForm::BinaryLogits => {
                !targets.iter().all(is_binary)
            }
            _ => false,
        };
        self.count_columns(&targets, answer);
        if has_numbers {
            self.numbered += 1;
            let all = self.numbers.get_or_insert([0.0, 0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY]);
            for y in targets {
                let [n, sum, squares, low, high] = *all;
                *all = [n + 1.0, sum + y, squares + y * y, low.min(y), high.max(y)];
            }
        } else if let Some(first) = targets.first().filter(|_| self.labels.len() <= CLASSES) {
            self.labelled += 1;
            let of = |k: &f64| k.round();
            self.single +=
                u32::from(targets.len() >= 8 && targets.iter().all(|k| of(k) == of(first)));
            for k in &targets {
                *self.labels.entry(of(k) as u64).or_insert(0) += 1;
            }
        }
    }

    /// The targets of each column, if there is one for each output.
    fn count_columns(&mut self, targets: &[f64], answer: &Answer) {
        let width = self.width;
        if answer.form.has_classes() || width > COLUMNS || !targets.len().is_multiple_of(width) {
            return;
        }
        self.columns.resize(width, [0.0; 3]);
        for row in targets.chunks(width) {
            for (all, y) in self.columns.iter_mut().zip(row) {
                *all = [all[0] + 1.0, all[1] + y, all[2] + y * y];
            }
        }
    }

    /// Whether nearly all targets are known: the loss has a known form at nine of ten looks. A
    /// weighted loss has one only in batches without rare classes.
    pub fn is_whole(&self) -> bool {
        10 * self.missed <= self.labelled + self.numbered + self.missed
    }

    /// The loss of the best constant answer, from the targets so far.
    pub fn constant(&self) -> Option<f64> {
        self.constant_answer().map(|loss| loss + self.penalty)
    }

    fn constant_answer(&self) -> Option<f64> {
        let known = self.known.as_ref().filter(|known| known.scale > 0.0 && self.is_whole())?;
        let scale = known.scale * known.count as f64;
        let n = self.columns.first().map_or(0.0, |column| column[0]);
        let mean = |of: &dyn Fn(&[f64; 3]) -> f64| {
            let all = n * self.columns.len() as f64;
            (all >= 100.0 && n >= 20.0).then(|| {
                scale * self.columns.iter().map(of).sum::<f64>() / self.columns.len() as f64
            })
        };
        match known.form {
            LossForm::Squares => mean(&|[n, sum, squares]| {
                (squares / n - (sum / n).powi(2)).max(0.0) * n / (n - 1.0)
            }),
            LossForm::BinaryLogits | LossForm::BinaryProbabilities if self.labels.len() == 2 => {
                mean(&|[n, sum, _]| entropy(&[*sum, n - sum]))
            }
            LossForm::CrossEntropy
            | LossForm::CrossEntropyOfProbabilities
            | LossForm::CrossEntropyOfParts => {
                let counts: Vec<f64> = self.labels.values().map(|n| *n as f64).collect();
                // With a single label there is nothing more to learn.
                let is_known = counts.len() > 1 && counts.iter().sum::<f64>() >= 60.0;
                is_known.then(|| scale * entropy(&counts))
            }
            _ => None,
        }
    }
}

/// Minus the logarithm of 1e-7, the usual bound of probabilities.
const BOUND: f64 = 16.118;

/// Whether a probability is beyond the bounds of a logarithm, and has no gradient there.
fn is_beyond(p: f64, g: f64) -> bool {
    g == 0.0 && !(1e-6..=1.0 - 1e-6).contains(&p)
}

/// The entropy of kinds with these counts.
fn entropy(counts: &[f64]) -> f64 {
    let all: f64 = counts.iter().sum();
    let part = |n: &f64| if *n > 0.0 { n / all * (all / n).ln() } else { 0.0 };
    // The entropy of a few labels underestimates that of all, by this much for n labels of k kinds.
    let bias = (counts.len() as f64 - 1.0) / (2.0 * all);
    counts.iter().map(part).sum::<f64>() + bias
}

/// Whether larger numbers have gradients at least as large, as happens when each is compared with
/// the targets of all.
fn is_ordered(o: &[f64], g: &[f64]) -> bool {
    let mut all: Vec<(f64, f64)> = o.iter().copied().zip(g.iter().copied()).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let slack = 1e-5 * g.iter().fold(0.0f64, |a, g| a.max(g.abs()));
    let rises = all.windows(2).all(|w| w[1].1 >= w[0].1 - slack);
    let steps = all.windows(2).filter(|w| w[1].1 > w[0].1 + slack).count();
    all.len() >= 12 && rises && steps >= 4
}

/// The numbers with axis 1, of that length, moved to the end.
fn last(dims: &[usize], channels: usize, numbers: &[f64]) -> Vec<f64> {
    let inner: usize = dims[2..].iter().product();
    let at = |i: usize| {
        let (row, rest) = (i / (channels * inner), i % (channels * inner));
        numbers[row * channels * inner + rest % channels * inner + rest / channels]
    };
    (0..numbers.len()).map(at).collect()
}
