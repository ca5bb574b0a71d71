//! The loss as the model's last output sees it: its form, its scale and the targets, recovered from
//! the output and the gradient that comes back to it.
//!
//! A mean cross-entropy of logits sends back `(softmax(o) - onehot(y)) / n`, a mean of squares `2
//! (o - y) / n`. A form counts as known if every number fits it, and if its loss equals the
//! reported one; so the targets are known too, whoever wrote the loss.

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
    /// Cross-entropy of numbers that are taken for probabilities as they are.
    CrossEntropyOfProbabilities,
    /// The same of numbers that are divided by the sum of their row.
    CrossEntropyOfParts,
    /// Logarithms of single numbers, each times a target: a cross-entropy without other classes.
    CrossEntropyOfOne,
    /// A sum of squares of differences.
    Squares,
    /// Squares of the differences of a softmax and a class.
    SquaresOfSoftmax,
    /// Sizes of differences.
    Absolute,
    /// Squares of the differences of each output with each target.
    SquaresOfAllPairs,
}

impl LossForm {
    /// Whether the answer is the class with the largest number of a row.
    pub fn has_best_class(self) -> bool {
        use LossForm::*;
        matches!(
            self,
            CrossEntropy
                | CrossEntropyOfSoftmax
                | CrossEntropyOfProbabilities
                | CrossEntropyOfParts
                | SquaresOfSoftmax
        )
    }

    /// Whether a row has one target: its class.
    pub fn has_classes(self) -> bool {
        use LossForm::*;
        !matches!(
            self,
            BinaryLogits
                | BinaryOfSigmoid
                | BinaryProbabilities
                | Squares
                | SquaresOfAllPairs
                | Absolute
        )
    }
}

/// The last output at one step: its targets, and how it was compared with them.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub form: LossForm,
    /// The factor before the sum over all examples: `1 / n` of a mean.
    pub scale: f64,
    /// Examples, or places of sequences, that count.
    pub count: usize,
    /// The loss of this form: less than the reported one if that includes a penalty of the weights.
    pub own: f64,
    /// The recovered targets: classes, zeros and ones, or numbers; empty where they are unknown.
    pub targets: Vec<f64>,
}

impl Answer {
    /// Whether the factor is that of a mean over all numbers, of a mean over the examples, or of a
    /// sum. It must be one of these when only a few numbers are known, which fit many forms.
    fn is_mean(&self, numbers: usize) -> bool {
        let usual = [1.0 / numbers as f64, 1.0 / self.count.max(1) as f64, 1.0];
        usual.into_iter().any(|s| near(self.scale, s) || near(self.scale, 0.5 * s))
    }
}

/// Outputs with fewer numbers than this are not judged.
const FEW: usize = 2;

/// Relative differences below this are rounding of 32-bit numbers.
const NEAR: f64 = 2e-3;

pub(crate) fn near(a: f64, b: f64) -> bool {
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
    let is_usable = width > 0 && o.len() == g.len() && o.len() >= FEW && loss.is_finite();
    if !is_usable || !o.iter().chain(g).all(|x| x.is_finite()) {
        return None;
    }
    let classes = (2..=4096).contains(&width);
    let is_narrow = classes && width <= 128;
    let of_rows: [(bool, Form); 8] = [
        (classes, of_classes),
        (classes, of_likelihood),
        (classes, of_probabilities),
        (classes, of_parts),
        (classes, of_examples),
        (is_narrow, of_softmax),
        (is_narrow, of_shares),
        (is_narrow, of_softmax_squares),
    ];
    let of_numbers: [Form; 7] =
        [of_elements, of_any_targets, of_one, of_pairs, of_squares, of_any_logits, of_absolute];
    let of_rows = of_rows.into_iter().filter_map(|(applies, form)| applies.then_some(form));
    let found = of_rows.chain(of_numbers).find_map(|form| form(loss, width, o, g));
    let found = found.or_else(|| with_penalty(loss, width, o, g));
    found.filter(|answer| o.len() >= 8 || answer.is_mean(o.len()))
}

/// A form whose gradients fit number by number, for a loss that is larger: a penalty of the weights
/// sends no gradient to the output.
fn with_penalty(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let forms: [(bool, Form); 5] = [
        (width > 1, of_classes),
        (width > 1, of_parts),
        (width > 1, of_probabilities),
        (width > 1, of_softmax_squares),
        (true, of_elements),
    ];
    let enough = o.len() >= 8 && width <= 4096;
    forms.into_iter().filter(|(applies, _)| *applies && enough).find_map(|(_, form)| {
        let answer = form(f64::INFINITY, width, o, g)?;
        // A single class may be half of a loss with two terms.
        let is_varied = answer.targets.iter().any(|k| *k != answer.targets[0]);
        (is_varied && loss > answer.own && answer.scale > 0.0).then_some(answer)
    })
}

/// Whether the loss of a form is the reported one; an infinite reported loss matches any.
fn gives(loss: f64, told: f64) -> bool {
    told == f64::INFINITY || near(loss, told)
}

type Form = fn(f64, usize, &[f64], &[f64]) -> Option<Answer>;

/// The rows that have a gradient, each with its number.
pub(crate) fn rows<'a>(
    width: usize,
    o: &'a [f64],
    g: &'a [f64],
) -> impl Iterator<Item = (&'a [f64], &'a [f64])> + Clone {
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
        if scale * sign > 0.0 && gives(scale * sum, loss) && targets.len() >= 4 {
            let count = targets.len();
            return Some(Answer {
                form: LossForm::CrossEntropy,
                scale,
                count,
                own: scale * sum,
                targets,
            });
        }
    }
    None
}

/// A softmax over the examples: the gradients of each class sum to zero. It may be intended if no
/// two examples are of one class, as when each example is its own class.
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
    fits.then_some(Answer { form, scale, count, own: loss, targets: Vec::new() })
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
    fits.then_some(Answer { form, scale, count, own: loss, targets })
}

/// A softmax between the model and a loss that expects logits, or log-probabilities.
fn of_softmax(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let count = rows(width, o, g).count();
    let forms = [LossForm::CrossEntropyOfSoftmax, LossForm::NegativeProbability];
    forms.into_iter().find_map(|form| {
        let is_entropy = form == LossForm::CrossEntropyOfSoftmax;
        let (mut pairs, mut targets, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for (o, g) in rows(width, o, g) {
            let q = softmax(o);
            let again = softmax(&q);
            // The class whose gradient points in the same direction as the one that came back.
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
        fits.then_some(Answer { form, scale, count, own: loss, targets })
    })
}

/// A divergence from targets that are shares, which expects log-probabilities and gets a softmax
/// instead: `s * sum(t * (ln t - q))`. The gradient gives the shares of a row, since they sum to
/// one.
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
        is_near.then_some(Answer { form, scale, count, own: loss, targets })
    };
    let scales = [1.0 / n, 1.0 / (n * width as f64), 1.0];
    (count >= 8).then(|| scales.into_iter().find_map(of)).flatten()
}

/// Forms that compare each number with a zero or a one.
fn of_elements(loss: f64, _: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
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
        let own = scale * all.iter().map(|w| w.1).sum::<f64>();
        gives(own, loss).then_some(Answer { form, scale, count: o.len(), own, targets })
    })
}

/// Each output against each target: the gradient of an output is `2 (o - mean(y)) / n`, whatever
/// its own target.
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
    // The squares of the outputs about the mean target, plus the targets' variance.
    let of_outputs = g.iter().map(|g| g * g).sum::<f64>() / (2.0 * slope);
    let scale = slope / 2.0;
    (loss > 1.05 * of_outputs).then_some(Answer {
        form: LossForm::SquaresOfAllPairs,
        scale,
        count: o.len(),
        own: loss,
        targets: Vec::new(),
    })
}

fn of_squares(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let squares: f64 = g.iter().map(|g| g * g).sum();
    // g = 2 s (o - y), and the loss is s times the sum of squares.
    let scale = squares / (4.0 * loss);
    let n = o.len() as f64;
    let rows = n / width as f64;
    let usual = [1.0 / n, 0.5 / n, 1.0 / rows, 0.5 / rows, 1.0, 0.5];
    if !usual.into_iter().any(|s| near(scale, s)) || loss <= 0.0 {
        return None;
    }
    let targets = o.iter().zip(g).map(|(o, g)| o - g / (2.0 * scale)).collect();
    Some(Answer { form: LossForm::Squares, scale, count: o.len(), own: loss, targets })
}

/// Cross-entropy of the classes' probabilities: `-s / p` at the right class and zero elsewhere.
fn of_probabilities(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let (mut pairs, mut targets, mut sum) = (Vec::new(), Vec::new(), 0.0);
    for (o, g) in rows(width, o, g) {
        let k = (0..width).find(|&k| g[k] != 0.0)?;
        if g.iter().filter(|x| **x != 0.0).count() != 1 || o[k] <= 0.0 {
            return None;
        }
        sum -= o[k].ln();
        targets.push(k as f64);
        pairs.push((g[k] * o[k], -1.0));
    }
    let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
    let fits = targets.len() >= 4 && gives(scale * sum, loss);
    let (form, count) = (LossForm::CrossEntropyOfProbabilities, targets.len());
    fits.then_some(Answer { form, scale, count, own: scale * sum, targets })
}

/// Probabilities below this may be below the bound of a logarithm.
const BOUND: f64 = 1e-6;

/// Cross-entropy of numbers that are first divided by the sum of their row.
fn of_parts(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let (mut pairs, mut targets, mut entropy) = (Vec::new(), Vec::new(), 0.0);
    for (o, g) in rows(width, o, g) {
        let sum: f64 = o.iter().sum();
        let k = (0..width).min_by(|&a, &b| g[a].total_cmp(&g[b]))?;
        if sum <= 0.0 || o[k] <= 0.0 {
            return None;
        }
        entropy -= (o[k] / sum).ln();
        targets.push(k as f64);
        let own = |j: usize| if j == k { 1.0 / o[k] } else { 0.0 };
        // Numbers below a bound have no gradient.
        let heard = (0..width).filter(|&j| g[j] != 0.0 || o[j] > BOUND);
        pairs.extend(heard.map(|j| (g[j], 1.0 / sum - own(j))));
    }
    let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
    // Rows at a bound of the logarithm have no gradient, and an unknown loss.
    let count = o.len() / width;
    let is_whole = targets.len() == count;
    let least = scale * entropy;
    // Few rows fit by chance, but not with the factor of a mean.
    let is_known = targets.len() >= 4 || !is_whole && near(scale, 1.0 / count as f64);
    let fits = is_known && (gives(least, loss) || !is_whole && loss > least - NEAR * loss.abs());
    let own = if is_whole { least } else { loss };
    let form = LossForm::CrossEntropyOfParts;
    fits.then_some(Answer { form, scale, count, own, targets })
}

/// `-s t ln o` of single numbers, whatever the targets: the gradient is `-s t / o`.
fn of_one(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let inside = o.iter().zip(g).all(|(o, g)| *o > 0.0 || *g == 0.0);
    let sum: f64 = o.iter().zip(g).map(|(o, g)| if *g == 0.0 { 0.0 } else { g * o * o.ln() }).sum();
    let varied = o.iter().any(|x| (x - o[0]).abs() > NEAR * o[0].abs());
    let (form, count) = (LossForm::CrossEntropyOfOne, o.len());
    let fits = width == 1 && inside && varied && loss.abs() > 1e-9 && near(sum, loss);
    fits.then_some(Answer { form, scale: f64::NAN, count, own: loss, targets: Vec::new() })
}

/// Squares of the differences of a softmax of the outputs and a one at the class.
fn of_softmax_squares(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let (mut pairs, mut targets, mut sum) = (Vec::with_capacity(o.len()), Vec::new(), 0.0);
    for (o, g) in rows(width, o, g) {
        let q = softmax(o);
        let k = (0..width).min_by(|&a, &b| g[a].total_cmp(&g[b]))?;
        let off = |j: usize| q[j] - f64::from(u8::from(j == k));
        let mean: f64 = (0..width).map(|j| q[j] * off(j)).sum();
        sum += (0..width).map(|j| off(j).powi(2)).sum::<f64>();
        targets.push(k as f64);
        pairs.extend((0..width).map(|j| (g[j], 2.0 * q[j] * (off(j) - mean))));
    }
    let scale = Factor::of(&pairs).filter(|s| *s > 0.0)?;
    let fits = targets.len() >= 4 && gives(scale * sum, loss);
    let (form, count) = (LossForm::SquaresOfSoftmax, targets.len());
    fits.then_some(Answer { form, scale, count, own: scale * sum, targets })
}

/// Binary cross-entropy of probabilities with targets that may be any numbers: `(p - t) / (p (1 -
/// p))`. Numbers beyond the bounds of the logarithms have no gradient.
fn of_any_targets(loss: f64, _: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let scale = 1.0 / o.len() as f64;
    let (mut sum, mut targets, mut is_whole) = (0.0, Vec::new(), true);
    for (p, g) in o.iter().zip(g) {
        if *g == 0.0 && !(1e-6..=1.0 - 1e-6).contains(p) {
            is_whole = false;
            continue;
        } else if *p <= 0.0 || *p >= 1.0 {
            return None;
        }
        let t = p - g * p * (1.0 - p) / scale;
        sum -= t * p.ln() + (1.0 - t) * (1.0 - p).ln();
        targets.push(t);
    }
    let is_binary = targets.iter().all(|t| t.abs().min((t - 1.0).abs()) < 1e-2);
    let fits = targets.len() >= 4
        && if is_whole { near(scale * sum, loss) } else { is_binary && loss >= scale * sum * 0.99 };
    let (form, count) = (LossForm::BinaryProbabilities, o.len());
    fits.then_some(Answer { form, scale, count, own: loss, targets })
}

/// Logits below which a sigmoid is away from its bounds.
const BENT: f64 = 8.0;

/// Binary cross-entropy of logits with targets that may be any numbers: `s (sigmoid(o) - t)`.
fn of_any_logits(loss: f64, _: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    // Other losses look the same where sigmoids are at their bounds.
    if 2 * o.iter().filter(|o| o.abs() < BENT).count() < o.len() {
        return None;
    }
    let scale = 1.0 / o.len() as f64;
    let targets: Vec<f64> = o.iter().zip(g).map(|(o, g)| sigmoid(*o) - g / scale).collect();
    let part = |(o, t): (&f64, &f64)| o.max(0.0) + (-o.abs()).exp().ln_1p() - t * o;
    let own = scale * o.iter().zip(&targets).map(part).sum::<f64>();
    let (form, count) = (LossForm::BinaryLogits, o.len());
    near(own, loss).then_some(Answer { form, scale, count, own, targets })
}

/// Sizes of differences: the gradient is a number up or down, or zero.
fn of_absolute(loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
    let scale = g.iter().fold(0.0f64, |a, g| a.max(g.abs()));
    let n = o.len() as f64;
    let is_one = g.iter().all(|g| *g == 0.0 || near(g.abs(), scale));
    let usual = [1.0 / n, width as f64 / n, 1.0].into_iter().any(|s| near(scale, s));
    let (form, count) = (LossForm::Absolute, o.len());
    let fits = is_one && usual && loss > 0.0;
    fits.then_some(Answer { form, scale, count, own: loss, targets: Vec::new() })
}

#[cfg(test)]
mod tests;
