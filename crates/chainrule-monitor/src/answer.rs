//! The loss as the model's last output sees it: its form, its scale and the targets, recovered from
//! the output and the gradient that comes back to it.
//!
//! A mean cross-entropy of logits sends `(softmax(o) - onehot(y)) / n` back, a mean of squares
//! `2 (o - y) / n`. A form is taken for known where every number fits it, and the loss that belongs
//! to it is the loss that was told; so the targets are known, too, whoever wrote the loss.

use std::collections::BTreeMap;

/// Form of a loss, as a function of the model's last output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossForm {
    /// Cross-entropy of logits.
    CrossEntropy,
    /// Cross-entropy of a softmax over the examples, in place of the classes.
    CrossEntropyOverExamples,
    /// Cross-entropy that takes the probabilities of a softmax for logits.
    CrossEntropyOfSoftmax,
    /// Minus the number of the right class, which should be a log-probability.
    NegativeLikelihood,
    /// The same of the probabilities of a softmax.
    NegativeProbability,
    /// Binary cross-entropy of logits.
    BinaryLogits,
    /// Binary cross-entropy that takes the probabilities of a sigmoid for logits.
    BinaryOfSigmoid,
    /// Binary cross-entropy of probabilities.
    BinaryProbabilities,
    /// A sum of squares of differences.
    Squares,
    /// Squares of the differences of each output with each target.
    SquaresOfAllPairs,
}

/// The last output at one step: what it was compared with, and how.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub form: LossForm,
    /// The factor before the sum over all examples: `1 / n` of a mean.
    pub scale: f64,
    /// Examples, or places of sequences, that count.
    pub count: usize,
    /// The recovered targets: classes, zeros and ones, or numbers; empty where they are unknown.
    pub targets: Vec<f64>,
}

/// Relative differences below this are rounding of 32-bit numbers.
const NEAR: f64 = 2e-3;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEAR * a.abs().max(b.abs())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let all: Vec<f64> = row.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|x| x / sum).collect()
}

/// The answer in rows of `width` numbers, with its gradient, if its loss has a known form.
pub(crate) fn recognised(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let is_usable = width > 0 && o.len() == g.len() && o.len() >= 8 && loss.is_finite();
    if !is_usable || !o.iter().chain(g).all(|x| x.is_finite()) {
        return None;
    }
    let classes = (2..=4096).contains(&width);
    let by_class = || [of_classes, of_likelihood].into_iter().find_map(|f| f(loss, width, o, g));
    let by_class = || by_class().or_else(|| of_examples(loss, width, o, g));
    let doubled = || (width <= 128).then(|| of_softmax(loss, width, o, g)).flatten();
    let spread = || (width <= 128).then(|| of_shares(loss, width, o, g)).flatten();
    classes
        .then(|| by_class().or_else(doubled).or_else(spread))
        .flatten()
        .or_else(|| of_elements(loss, o, g))
        .or_else(|| of_pairs(loss, width, o, g))
        .or_else(|| of_squares(loss, o, g))
}

/// The rows that have a gradient, each with its number.
fn rows<'a>(
    width: usize,
    o: &'a [f64],
    g: &'a [f64],
) -> impl Iterator<Item = (&'a [f64], &'a [f64])> {
    o.chunks(width).zip(g.chunks(width)).filter(|(_, g)| g.iter().any(|x| *x != 0.0))
}

/// The common factor of numbers that should all be one, weighted by their size.
struct Factor {
    got: f64,
    wanted: f64,
}

impl Factor {
    /// The factor `s` with `got = s * wanted`, if all agree.
    fn of(pairs: &[(f64, f64)]) -> Option<f64> {
        let sum = pairs.iter().fold(Factor { got: 0.0, wanted: 0.0 }, |a, (got, wanted)| Factor {
            got: a.got + got * wanted,
            wanted: a.wanted + wanted * wanted,
        });
        let s = sum.got / sum.wanted;
        let largest = pairs.iter().map(|p| p.1.abs()).fold(0.0, f64::max);
        let fits = |(got, wanted): &(f64, f64)| {
            (got - s * wanted).abs() <= s.abs() * (NEAR * wanted.abs() + 1e-5 * largest)
        };
        (s.is_finite() && s != 0.0 && pairs.iter().all(fits)).then_some(s)
    }
}

fn of_classes(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    for sign in [1.0, -1.0] {
        let (mut pairs, mut targets, mut sum) = (Vec::with_capacity(o.len()), Vec::new(), 0.0);
        for (o, g) in rows(width, o, g) {
            let p = softmax(o);
            let k = (0..width).min_by(|&a, &b| (sign * g[a]).total_cmp(&(sign * g[b])))?;
            sum -= p[k].max(1e-300).ln();
            targets.push(k as f64);
            let wanted = p.iter().enumerate().map(|(j, p)| p - f64::from(u8::from(j == k)));
            pairs.extend(g.iter().copied().zip(wanted));
        }
        let Some(scale) = Factor::of(&pairs) else { continue };
        if scale * sign > 0.0 && near(scale * sum, loss) && targets.len() >= 4 {
            let count = targets.len();
            return Some(Answer { form: LossForm::CrossEntropy, scale, count, targets });
        }
    }
    None
}

/// A softmax over the examples: the gradients of each class sum to zero. It may be meant
/// where no two examples are of one class, as where each example is a class.
fn of_examples(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let count = o.len() / width;
    if count < 8 {
        return None;
    }
    let column = |j: usize| o.iter().skip(j).step_by(width).copied().collect::<Vec<f64>>();
    let shares: Vec<Vec<f64>> = (0..width).map(|j| softmax(&column(j))).collect();
    let least = |g: &[f64]| (0..width).min_by(|&a, &b| g[a].total_cmp(&g[b]));
    let classes = g.chunks(width).map(least).collect::<Option<Vec<usize>>>()?;
    let mut counts = vec![0.0; width];
    classes.iter().for_each(|k| counts[*k] += 1.0);
    if counts.iter().all(|n| *n <= 1.0) {
        return None;
    }
    let wanted = (0..o.len()).map(|at| {
        let (i, j) = (at / width, at % width);
        counts[j] * shares[j][i] - f64::from(u8::from(classes[i] == j))
    });
    let scale = Factor::of(&g.iter().copied().zip(wanted).collect::<Vec<_>>())?;
    let part = |(i, k): (usize, &usize)| -shares[*k][i].max(1e-300).ln();
    let sum: f64 = classes.iter().enumerate().map(part).sum();
    let form = LossForm::CrossEntropyOverExamples;
    let fits = scale > 0.0 && near(scale * sum, loss);
    fits.then_some(Answer { form, scale, count, targets: Vec::new() })
}

fn of_likelihood(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let (mut pairs, mut targets, mut sum) = (Vec::new(), Vec::new(), 0.0);
    for (o, g) in rows(width, o, g) {
        let k = (0..width).find(|&k| g[k] != 0.0)?;
        if g.iter().filter(|x| **x != 0.0).count() != 1 {
            return None;
        }
        sum -= o[k];
        targets.push(k as f64);
        pairs.push((g[k], -1.0));
    }
    let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
    let fits = targets.len() >= 8 && near(scale * sum, loss);
    let (form, count) = (LossForm::NegativeLikelihood, targets.len());
    fits.then_some(Answer { form, scale, count, targets })
}

/// A softmax that stands between the model and a loss which takes logits, or log-probabilities.
fn of_softmax(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let count = rows(width, o, g).count();
    let forms = [LossForm::CrossEntropyOfSoftmax, LossForm::NegativeProbability];
    forms.into_iter().find_map(|form| {
        let is_entropy = form == LossForm::CrossEntropyOfSoftmax;
        let (mut pairs, mut targets, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for (o, g) in rows(width, o, g) {
            let q = softmax(o);
            let again = softmax(&q);
            // The class whose gradient points the same way as the one that came.
            let back = |k: usize| -> Vec<f64> {
                let sent = |j: usize| {
                    let own = f64::from(u8::from(j == k));
                    if is_entropy { again[j] - own } else { -own }
                };
                let mean: f64 = (0..width).map(|j| q[j] * sent(j)).sum();
                (0..width).map(|j| q[j] * (sent(j) - mean)).collect()
            };
            let k = (0..width).min_by(|&a, &b| g[a].total_cmp(&g[b]))?;
            sum += if is_entropy { -again[k].ln() } else { -q[k] };
            targets.push(k as f64);
            pairs.extend(g.iter().copied().zip(back(k)));
        }
        let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
        let fits = count >= 8 && near(scale * sum, loss);
        fits.then_some(Answer { form, scale, count, targets })
    })
}

/// A divergence from targets that are shares, which should take log-probabilities and gets those of
/// a softmax themselves: `s * sum(t * (ln t - q))`. The gradient gives the shares of a row, as they
/// sum to one.
fn of_shares(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let count = rows(width, o, g).count();
    let n = count as f64;
    let of = |scale: f64| {
        let (mut sum, mut targets) = (0.0, Vec::with_capacity(count));
        for (o, g) in rows(width, o, g) {
            let q = softmax(o);
            let sent: Vec<f64> = g.iter().zip(&q).map(|(g, q)| g / (scale * q)).collect();
            let mean = (1.0 + sent.iter().sum::<f64>()) / width as f64;
            let shares: Vec<f64> = sent.iter().map(|sent| mean - sent).collect();
            if shares.iter().any(|t| !(-NEAR..=1.0 + NEAR).contains(t)) {
                return None;
            }
            let part = |(t, q): (&f64, &f64)| t * (t.max(1e-12).ln() - q);
            sum += shares.iter().zip(&q).map(part).sum::<f64>();
            let most = (0..width).max_by(|&a, &b| shares[a].total_cmp(&shares[b]))?;
            targets.push(most as f64);
        }
        let (form, is_near) = (LossForm::NegativeProbability, near(scale * sum, loss));
        is_near.then_some(Answer { form, scale, count, targets })
    };
    let scales = [1.0 / n, 1.0 / (n * width as f64), 1.0];
    (count >= 8).then(|| scales.into_iter().find_map(of)).flatten()
}

/// Forms that compare each number with a zero or a one.
fn of_elements(loss: f64, o: &[f64], g: &[f64]) -> Option<Answer> {
    type Wanted = fn(f64, f64) -> (f64, f64);
    // Gradient and loss of an output and its target.
    let forms: [(LossForm, Wanted); 3] = [
        (LossForm::BinaryLogits, |o, t| {
            let p = sigmoid(o);
            (p - t, -(if t > 0.5 { p } else { sigmoid(-o) }).max(1e-300).ln())
        }),
        (LossForm::BinaryOfSigmoid, |o, t| {
            let q = sigmoid(o);
            let p = sigmoid(q);
            ((p - t) * q * (1.0 - q), -(if t > 0.5 { p } else { 1.0 - p }).ln())
        }),
        (LossForm::BinaryProbabilities, |p, t| {
            let right = if t > 0.5 { p } else { 1.0 - p };
            (if t > 0.5 { -1.0 / p } else { 1.0 / (1.0 - p) }, -right.max(1e-300).ln())
        }),
    ];
    forms.into_iter().find_map(|(form, wanted)| {
        let inside = o.iter().all(|p| *p > 0.0 && *p < 1.0);
        if form == LossForm::BinaryProbabilities && !inside {
            return None;
        }
        let targets: Vec<f64> = g.iter().map(|g| f64::from(u8::from(*g < 0.0))).collect();
        let all: Vec<(f64, f64)> = o.iter().zip(&targets).map(|(o, t)| wanted(*o, *t)).collect();
        let pairs: Vec<(f64, f64)> = g.iter().copied().zip(all.iter().map(|w| w.0)).collect();
        let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
        let fits = near(scale * all.iter().map(|w| w.1).sum::<f64>(), loss);
        fits.then_some(Answer { form, scale, count: o.len(), targets })
    })
}

/// Each output against each target: the gradient of an output is `2 (o - mean(y)) / n`, whatever
/// its own target is.
fn of_pairs(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let n = o.len() as f64;
    if width != 1 && width != o.len() {
        return None;
    }
    let (mo, mg) = (o.iter().sum::<f64>() / n, g.iter().sum::<f64>() / n);
    let covariance: f64 = o.iter().zip(g).map(|(o, g)| (o - mo) * (g - mg)).sum();
    let variance: f64 = o.iter().map(|o| (o - mo).powi(2)).sum();
    let size = o.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    let slope = covariance / variance;
    if variance.is_nan() || (variance / n).sqrt() <= 1e-3 * size || !near(slope, 2.0 / n) {
        return None;
    }
    let off = o.iter().zip(g).map(|(o, g)| (g - mg - slope * (o - mo)).abs());
    let spread = slope.abs() * (variance / n).sqrt();
    if off.fold(0.0, f64::max) > 1e-3 * spread {
        return None;
    }
    // Beyond the squares of the outputs about the mean target there is the targets' variance.
    let of_outputs = g.iter().map(|g| g * g).sum::<f64>() / (2.0 * slope);
    let scale = slope / 2.0;
    (loss > 1.05 * of_outputs).then_some(Answer {
        form: LossForm::SquaresOfAllPairs,
        scale,
        count: o.len(),
        targets: Vec::new(),
    })
}

fn of_squares(loss: f64, o: &[f64], g: &[f64]) -> Option<Answer> {
    let squares: f64 = g.iter().map(|g| g * g).sum();
    // g = 2 s (o - y), and the loss is s times the sum of squares.
    let scale = squares / (4.0 * loss);
    let n = o.len() as f64;
    let is_known = [1.0 / n, 0.5 / n, 1.0, 0.5].into_iter().any(|s| near(scale, s));
    if !is_known || loss <= 0.0 {
        return None;
    }
    let targets = o.iter().zip(g).map(|(o, g)| o - g / (2.0 * scale)).collect();
    Some(Answer { form: LossForm::Squares, scale, count: o.len(), targets })
}

/// Most numbers of an output that are looked at.
const MOST: usize = 1 << 19;

/// A loss beside the largest one that is next to nothing.
const TINY_LOSS: f64 = 0.05;

/// Most kinds of labels that are counted.
const CLASSES: usize = 10_000;

/// Answers over the steps of a training.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// Answers that were told, of which some are looked at.
    pub told: u64,
    pub looks: u32,
    /// The newest answer whose loss is known, without its targets.
    pub known: Option<Answer>,
    pub width: usize,
    /// The least and the largest output.
    pub range: Option<(f64, f64)>,
    /// Looks at which all rows were probabilities that sum to one, log-probabilities, between zero
    /// and one, or exactly one.
    pub probabilities: u32,
    pub logarithms: u32,
    pub inside: u32,
    pub ones: u32,
    /// The share of exact zeros, and of exact halves.
    pub zeros: f64,
    pub halves: f64,
    /// The bounds of the module that gave them.
    pub bounds: Option<(f64, f64)>,
    /// Labels by how often they were seen, and the looks at which all were one.
    pub labels: BTreeMap<u64, u64>,
    pub single: u32,
    pub labelled: u32,
    /// Looks with targets that are numbers.
    pub numbered: u32,
    /// Looks whose loss has no known form, though it is not next to nothing beside the largest.
    pub missed: u32,
    /// Whether the monitor has the constant answer's loss from here.
    pub gave_constant: bool,
    largest_loss: f64,
    /// Count, sum, sum of squares, least and largest of targets that are numbers.
    pub numbers: Option<[f64; 5]>,
    /// Counts of pairs of a right class and the answered one, of the newest looks, at most half of
    /// all.
    pub confusion: BTreeMap<(u64, u64), u64>,
}

/// Most classes of a table of answers.
const TABLE: u64 = 32;

impl Answers {
    /// Looks at an output, the gradient that came back to it, and the loss.
    pub fn add(&mut self, loss: f64, dims: &[usize], o: &[f64], g: &[f64]) {
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
        self.largest_loss = self.largest_loss.max(loss.abs());
        // The rest of a tiny loss is rounding, and fits no form.
        self.missed += u32::from(found.is_none() && loss.abs() > TINY_LOSS * self.largest_loss);
        if let Some(mut answer) = found {
            self.confuse(&answer, width, o, g);
            self.count(std::mem::take(&mut answer.targets), answer.form);
            self.known = Some(answer);
        }
    }

    fn confuse(&mut self, answer: &Answer, width: usize, o: &[f64], g: &[f64]) {
        if self.looks.is_power_of_two() {
            self.confusion.clear();
        }
        let is_one = width as u64 <= TABLE && width * answer.count <= o.len() && width > 1;
        if answer.form != LossForm::CrossEntropy || !is_one {
            return;
        }
        for ((o, _), right) in rows(width, o, g).zip(&answer.targets) {
            let best = (0..width).max_by(|&a, &b| o[a].total_cmp(&o[b])).unwrap_or(0);
            *self.confusion.entry((*right as u64, best as u64)).or_insert(0) += 1;
        }
    }

    fn count(&mut self, targets: Vec<f64>, form: LossForm) {
        if form == LossForm::Squares {
            self.numbered += 1;
            let all = self.numbers.get_or_insert([0.0, 0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY]);
            for y in targets {
                let [n, sum, squares, low, high] = *all;
                *all = [n + 1.0, sum + y, squares + y * y, low.min(y), high.max(y)];
            }
        } else if let Some(first) = targets.first().filter(|_| self.labels.len() <= CLASSES) {
            self.labelled += 1;
            self.single += u32::from(targets.len() >= 8 && targets.iter().all(|k| k == first));
            for k in targets {
                *self.labels.entry(k as u64).or_insert(0) += 1;
            }
        }
    }

    /// Whether the targets that are known are about all that there were: the loss has a known form
    /// at nine of ten looks. A weighted loss has one in batches without rare classes alone.
    pub fn is_whole(&self) -> bool {
        10 * self.missed <= self.labelled + self.numbered + self.missed
    }

    /// The loss of the best answer that is the same for all inputs, from the targets so far.
    pub fn constant(&self) -> Option<f64> {
        let known = self.known.as_ref().filter(|known| known.scale > 0.0 && self.is_whole())?;
        let scale = known.scale * known.count as f64;
        if let (LossForm::Squares, Some([n, sum, squares, ..])) = (known.form, self.numbers) {
            // A constant for each output would do better still.
            let variance = squares / n - (sum / n).powi(2);
            return (n >= 100.0 && self.width == 1).then_some(scale * variance);
        }
        let all = self.labels.values().sum::<u64>() as f64;
        let is_entropy = matches!(known.form, LossForm::CrossEntropy | LossForm::BinaryLogits);
        // Binary losses of several outputs have a constant for each.
        let is_one = known.form == LossForm::CrossEntropy || self.width == 1;
        // Every model learns all there is of a single label.
        if all < 100.0 || !is_entropy || !is_one || self.labels.len() < 2 {
            return None;
        }
        let part = |n: &u64| *n as f64 / all * (all / *n as f64).ln();
        // The entropy of a few labels is below that of all, by this much for n of k kinds.
        let bias = (self.labels.len() as f64 - 1.0) / (2.0 * all);
        Some(scale * (self.labels.values().map(part).sum::<f64>() + bias))
    }
}

/// The numbers with axis 1, of that length, as the last one.
fn last(dims: &[usize], channels: usize, numbers: &[f64]) -> Vec<f64> {
    let inner: usize = dims[2..].iter().product();
    let at = |i: usize| {
        let (row, rest) = (i / (channels * inner), i % (channels * inner));
        numbers[row * channels * inner + rest % channels * inner + rest / channels]
    };
    (0..numbers.len()).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::tensor::Tensor;

    /// The loss of outputs and the gradient that autograd gives them.
    fn told(o: &[f64], width: usize, loss: impl Fn(&Tensor) -> Tensor) -> (f64, Vec<f64>) {
        let o = Tensor::from(o.to_vec()).reshape([o.len() / width, width]).parameter();
        let loss = loss(&o);
        loss.backward();
        (loss.item(), o.grad().unwrap().to_f64_vec())
    }

    fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + 13) % 101) as f64 / 40.0 - 1.2).collect()
    }

    #[test]
    fn a_softmax_over_the_examples_is_seen() {
        let o = numbers(36);
        let over = |axis: i64, classes: Vec<i64>| {
            let rows = classes.len();
            let y = Tensor::from(classes).reshape([rows, 1]);
            let width = 36 / rows;
            let (loss, g) = told(&o, width, |o| -o.log_softmax(axis).gather(1, &y).mean_all());
            recognised(loss, width, &o, &g)
        };
        let classes = vec![0, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2];
        let answer = over(0, classes.clone()).unwrap();
        assert_eq!(answer.form, LossForm::CrossEntropyOverExamples);
        assert!(near(answer.scale, 1.0 / 12.0));
        assert_eq!(over(1, classes).unwrap().form, LossForm::CrossEntropy);
        // Each example is a class of its own, as in a comparison of pairs.
        assert!(over(0, (0..6).collect()).is_none());
    }

    #[test]
    fn a_cross_entropy_gives_its_classes() {
        let (o, classes) = (numbers(36), [0i64, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
        let y = Tensor::from(classes);
        let mean = |o: &Tensor| -o.log_softmax(1).gather(1, &y.reshape([12, 1])).mean_all();
        for sign in [1.0, -1.0] {
            let (loss, g) = told(&o, 3, |o| mean(o) * sign);
            let answer = recognised(loss, 3, &o, &g).unwrap();
            assert_eq!(answer.form, LossForm::CrossEntropy);
            assert!(near(answer.scale, sign / 12.0));
            assert_eq!(answer.targets, classes.map(|k| k as f64));
        }
        let (loss, g) = told(&o, 3, |o| mean(&o.softmax(1)));
        let answer = recognised(loss, 3, &o, &g).unwrap();
        assert_eq!(answer.form, LossForm::CrossEntropyOfSoftmax);
        assert_eq!(answer.targets, classes.map(|k| k as f64));
        let likelihood = |o: &Tensor| -o.gather(1, &y.reshape([12, 1])).mean_all();
        let (loss, g) = told(&o, 3, likelihood);
        assert_eq!(recognised(loss, 3, &o, &g).unwrap().form, LossForm::NegativeLikelihood);
        let (loss, g) = told(&o, 3, |o| likelihood(&o.softmax(1)));
        assert_eq!(recognised(loss, 3, &o, &g).unwrap().form, LossForm::NegativeProbability);
    }

    #[test]
    fn a_divergence_of_probabilities_gives_its_shares() {
        let (o, classes) = (numbers(36), [0usize, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
        let share = |i: usize| if classes[i / 3] == i % 3 { 0.8 } else { 0.1 };
        let t = Tensor::from((0..36).map(share).collect::<Vec<f64>>()).reshape([12, 3]);
        let of = |q: &Tensor| (&t * (t.log() - q)).sum_all() * (1.0 / 12.0);
        let (loss, g) = told(&o, 3, |o| of(&o.softmax(1)));
        let answer = recognised(loss, 3, &o, &g).unwrap();
        assert_eq!(answer.form, LossForm::NegativeProbability);
        assert_eq!(answer.targets, classes.map(|k| k as f64));
        // The right form, and squares of a softmax, are none of it.
        let (loss, g) = told(&o, 3, |o| of(&o.log_softmax(1)));
        assert!(recognised(loss, 3, &o, &g).is_none());
        let (loss, g) = told(&o, 3, |o| (o.softmax(1) - &t).square().mean_all());
        assert!(recognised(loss, 3, &o, &g).is_none());
    }

    #[test]
    fn squares_give_their_targets() {
        let (o, y) = (numbers(10), numbers(30)[20..].to_vec());
        let t = Tensor::from(y.clone());
        let (loss, g) = told(&o, 1, |o| (o - &t.reshape([10, 1])).square().mean_all());
        let answer = recognised(loss, 1, &o, &g).unwrap();
        assert_eq!(answer.form, LossForm::Squares);
        assert!(answer.targets.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-9));
        let (loss, g) = told(&o, 1, |o| (o - &t).square().mean_all());
        assert_eq!(recognised(loss, 1, &o, &g).unwrap().form, LossForm::SquaresOfAllPairs);
    }

    #[test]
    fn binary_forms_are_told_apart() {
        let o = numbers(12);
        let ones: Vec<f64> = (0..12).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
        let t = Tensor::from(ones.clone()).reshape([12, 1]);
        let of = |p: &Tensor| {
            let one = Tensor::scalar(1.0f64);
            -(&t * &p.log() + (&one - &t) * (&one - p).log()).mean_all()
        };
        let logits = told(&o, 1, |o| of(&o.sigmoid()));
        let twice = told(&o, 1, |o| of(&o.sigmoid().sigmoid()));
        let p: Vec<f64> = o.iter().map(|x| sigmoid(*x)).collect();
        let plain = told(&p, 1, of);
        for (o, (loss, g), form) in [
            (&o, logits, LossForm::BinaryLogits),
            (&o, twice, LossForm::BinaryOfSigmoid),
            (&p, plain, LossForm::BinaryProbabilities),
        ] {
            let answer = recognised(loss, 1, o, &g).unwrap();
            assert_eq!((answer.form, &answer.targets), (form, &ones));
        }
    }

    #[test]
    fn other_losses_are_unknown() {
        let o = numbers(24);
        for (loss, g) in [
            told(&o, 3, |o| o.abs().mean_all()),
            told(&o, 3, |o| o.exp().mean_all()),
            told(&o, 3, |o| (o.square() * o).sum_all()),
            (1.0, vec![0.0; 24]),
            (f64::NAN, numbers(24)),
        ] {
            assert!(recognised(loss, 3, &o, &g).is_none(), "{loss}");
        }
    }
}
