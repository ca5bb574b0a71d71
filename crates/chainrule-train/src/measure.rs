//! Running means and confusion matrices.

use std::fmt;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Weighted mean over batches of different sizes.
///
/// `mean = sum(value_i * weight_i) / sum(weight_i)`, in f64. An unweighted mean of batch means
/// counts the examples of a short last batch too much.
///
/// ```
/// let mut loss = chainrule_train::AverageMeter::new();
/// loss.add(2.0, 30);
/// loss.add(5.0, 10);
/// assert_eq!((loss.mean(), loss.count()), (Some(2.75), 40));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AverageMeter {
    sum: f64,
    count: u64,
}

impl AverageMeter {
    /// Without any value.
    pub fn new() -> AverageMeter {
        AverageMeter::default()
    }

    /// Adds the mean value of `examples` examples.
    pub fn add(&mut self, value: f64, examples: u64) {
        if examples > 0 {
            self.sum += value * examples as f64;
            self.count += examples;
        }
    }

    /// The mean so far; `None` before the first example.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The number of examples so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Resets it.
    pub fn reset(&mut self) {
        *self = AverageMeter::default();
    }
}

/// Confusion matrix: counts of each label and prediction.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule_train::ConfusionMatrix;
///
/// let mut matrix = ConfusionMatrix::new(3);
/// let scores = Tensor::from([[0.1f32, 0.8, 0.1], [0.9, 0.0, 0.1], [0.2, 0.3, 0.5]]);
/// matrix.add(&scores, &Tensor::from([1i64, 0, 1]))?;
/// assert_eq!(matrix.count(1, 2), 1);
/// assert_eq!(matrix.accuracy(), Some(2.0 / 3.0));
/// assert_eq!((matrix.recall(1), matrix.precision(2)), (Some(0.5), Some(0.0)));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfusionMatrix {
    classes: usize,
    counts: Vec<u64>,
}

impl ConfusionMatrix {
    /// A matrix for this number of classes, without examples.
    pub fn new(classes: usize) -> ConfusionMatrix {
        ConfusionMatrix { classes, counts: vec![0; classes * classes] }
    }

    /// Adds examples: scores or probabilities `[n, classes]`, of which the largest is the
    /// prediction (the first of equal ones), and labels `[n]` in i64. Negative labels are ignored.
    ///
    /// Errors for other shapes, NaN scores, and labels that are no classes; then nothing is added.
    pub fn add(&mut self, scores: &Tensor, labels: &Tensor) -> Result<()> {
        let answers = answers(scores, labels, self.classes)?;
        for (label, answer) in answers {
            self.add_answer(label, answer);
        }
        Ok(())
    }

    /// Adds one example of class `label` that was predicted as `answer`.
    ///
    /// Panics if one of them is not less than the number of classes.
    #[track_caller]
    pub fn add_answer(&mut self, label: usize, answer: usize) {
        assert!(
            label < self.classes && answer < self.classes,
            "there are {} classes",
            self.classes
        );
        self.counts[label * self.classes + answer] += 1;
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of examples of class `label` that were predicted as `answer`.
    pub fn count(&self, label: usize, answer: usize) -> u64 {
        self.counts[label * self.classes + answer]
    }

    /// One row per class, one column per prediction.
    pub fn rows(&self) -> Vec<Vec<u64>> {
        (0..self.classes).map(|label| self.row(label).collect()).collect()
    }

    /// Accuracy; `None` without examples.
    pub fn accuracy(&self) -> Option<f64> {
        let right = (0..self.classes).map(|class| self.count(class, class)).sum();
        share(right, self.counts.iter().sum())
    }

    /// Recall of a class; `None` if it has no examples.
    pub fn recall(&self, class: usize) -> Option<f64> {
        share(self.count(class, class), self.row(class).sum())
    }

    /// Precision of a class; `None` if it was never predicted.
    pub fn precision(&self, class: usize) -> Option<f64> {
        let named = (0..self.classes).map(|label| self.count(label, class)).sum();
        share(self.count(class, class), named)
    }

    fn row(&self, label: usize) -> impl Iterator<Item = u64> {
        (0..self.classes).map(move |answer| self.count(label, answer))
    }
}

impl fmt::Display for ConfusionMatrix {
    /// The counts with one row per class and one column per prediction; zeros are dots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.counts.iter().copied().max().unwrap_or(0).max(self.classes as u64);
        let width = widest.to_string().len().max(5) + 1;
        write!(f, "{:>5}", "")?;
        (0..self.classes).try_for_each(|answer| write!(f, "{answer:>width$}"))?;
        for label in 0..self.classes {
            write!(f, "\n{label:>5}")?;
            for n in self.row(label) {
                let cell = if n == 0 { ".".to_owned() } else { n.to_string() };
                write!(f, "{cell:>width$}")?;
            }
        }
        Ok(())
    }
}

/// Accuracy of the argmax of each row.
///
/// Shapes and errors as in [`ConfusionMatrix::add`]. `None` if all labels are ignored.
///
/// ```
/// use chainrule::Tensor;
/// let scores = Tensor::from([[0.1f32, 0.8], [0.9, 0.0], [0.2, 0.3]]);
/// let labels = Tensor::from([1i64, 1, -1]);
/// assert_eq!(chainrule_train::accuracy(&scores, &labels)?, Some(0.5));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn accuracy(scores: &Tensor, labels: &Tensor) -> Result<Option<f64>> {
    let classes = scores.shape().get(1).copied().unwrap_or(0);
    let answers = answers(scores, labels, classes)?;
    let right = answers.iter().filter(|(label, answer)| label == answer).count();
    Ok(share(right as u64, answers.len() as u64))
}

/// Each label that is not ignored, with the argmax of its row.
fn answers(scores: &Tensor, labels: &Tensor, classes: usize) -> Result<Vec<(usize, usize)>> {
    const OP: &str = "accuracy";
    let [s, l] = [scores, labels].map(Tensor::shape);
    if s.len() != 2 || l.len() != 1 || s[0] != l[0] || s[1] != classes {
        let text = format!("wants scores [n, {classes}] and labels [n], has {s} and {l}");
        return Err(Error::argument(OP, text));
    }
    let labels = labels.try_to_vec::<i64>()?;
    let scores = scores.to_f64_vec();
    let mut out = Vec::with_capacity(labels.len());
    for (i, &label) in labels.iter().enumerate().filter(|(_, label)| **label >= 0) {
        let row = &scores[i * classes..(i + 1) * classes];
        if let Some(nan) = row.iter().position(|score| score.is_nan()) {
            return Err(Error::argument(OP, format!("score [{i}, {nan}] is not a number")));
        }
        let label =
            usize::try_from(label).ok().filter(|label| *label < classes).ok_or_else(|| {
                Error::argument(OP, format!("label {label} at {i} is none of {classes} classes"))
            })?;
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let answer = row.iter().position(|&score| score == largest);
        out.push((label, answer.expect("a row with a label has a largest score")));
    }
    Ok(out)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_add_nothing() {
        let mut matrix = ConfusionMatrix::new(2);
        let scores = Tensor::from([[0.5f32, 0.5], [0.0, f32::NAN]]);
        assert!(matrix.add(&scores, &Tensor::from([0i64, 1])).is_err());
        assert!(matrix.add(&Tensor::zeros([2, 2]), &Tensor::from([0i64, 2])).is_err());
        assert!(matrix.add(&Tensor::zeros([2, 3]), &Tensor::from([0i64, 1])).is_err());
        assert!(matrix.add(&Tensor::zeros([2, 2]), &Tensor::zeros([2])).is_err());
        assert_eq!(matrix.accuracy(), None);
        // A row with an ignored label may hold anything.
        matrix.add(&scores, &Tensor::from([1i64, -1])).unwrap();
        assert_eq!((matrix.count(1, 0), matrix.accuracy()), (1, Some(0.0)));
    }

    #[test]
    fn nothing_has_no_mean() {
        let mut meter = AverageMeter::new();
        meter.add(f64::NAN, 0);
        assert_eq!(meter.mean(), None);
        assert_eq!(accuracy(&Tensor::zeros([0, 3]), &Tensor::from([0i64; 0])).unwrap(), None);
    }
}
