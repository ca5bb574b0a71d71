//! Squared differences plus a penalty of the weights: the penalty stays constant from look to look
//! while the squares change.

use crate::forms::{Answer, LossForm};

/// Looks that must agree.
const LOOKS: usize = 4;

/// Change of the rest, relative to that of the squares, below which the rest is a penalty.
const STEADY: f64 = 0.02;

/// The largest change of a penalty from look to look.
const DRIFT: f64 = 0.2;

/// Change of the squares, relative to the loss, below which rounding makes them useless.
const VARIED: f64 = 1e-3;

/// Losses without a known form at the newest looks, each with the squares that a scale of one would
/// imply by its gradient.
#[derive(Clone, Debug, Default)]
pub(crate) struct Penalised {
    seen: Vec<(f64, f64)>,
    /// The position of the scale, once it is known, and the part of the newest loss beyond the
    /// squares.
    known: Option<(usize, f64)>,
}

impl Penalised {
    /// The answer, if squares and a penalty explain this loss and those before it.
    pub fn add(&mut self, loss: f64, width: usize, o: &[f64], g: &[f64]) -> Option<Answer> {
        if o.len() < 8 || !loss.is_finite() {
            return None;
        }
        // g = 2 s (o - y), so that s times the sum of squares is the sum of g^2 over 4 s.
        let squares = g.iter().map(|g| g * g).sum::<f64>() / 4.0;
        self.seen.push((loss, squares));
        if self.seen.len() > LOOKS {
            self.seen.remove(0);
        }
        let n = o.len() as f64;
        let rows = n / width as f64;
        let scales = [1.0 / n, 1.0 / rows, 0.5 / n, 0.5 / rows];
        // Weights move little from one look to the next, and so does their penalty.
        let rest = |which: usize| loss - squares / scales[which];
        let goes_on = |&(which, before): &(usize, f64)| {
            rest(which) > 0.0 && (rest(which) - before).abs() < DRIFT * before
        };
        let known = self.known.filter(goes_on).map(|(which, _)| which);
        let which = known.or_else(|| scales.iter().position(|scale| self.fits(*scale)))?;
        self.known = Some((which, rest(which)));
        let scale = scales[which];
        let targets = o.iter().zip(g).map(|(o, g)| o - g / (2.0 * scale)).collect();
        let (form, count, own) = (LossForm::Squares, o.len(), squares / scale);
        Some(Answer { form, scale, count, own, targets })
    }

    fn fits(&self, scale: f64) -> bool {
        let own = self.seen.iter().map(|(_, squares)| squares / scale);
        let rest = self.seen.iter().zip(own.clone()).map(|((loss, _), own)| loss - own);
        let largest = self.seen.iter().map(|(loss, _)| *loss).fold(0.0, f64::max);
        let change = range(own);
        self.seen.len() == LOOKS
            && rest.clone().all(|rest| rest > 0.0)
            && change > VARIED * largest
            && range(rest) < STEADY * change
    }
}

fn range(numbers: impl Iterator<Item = f64>) -> f64 {
    let ends = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
    let (low, high) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    high - low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses of eight numbers that come nearer to their targets, as a function of the differences,
    /// with a penalty that shrinks a little.
    fn last(loss: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> Option<Answer> {
        let mut all = Penalised::default();
        let at = |step: i32| {
            let off: Vec<f64> = (0..8).map(|i| 0.7f64.powi(step) * f64::from(i - 3)).collect();
            let o: Vec<f64> = off.iter().map(|d| 5.0 + d).collect();
            let g: Vec<f64> = off.iter().map(|d| slope(*d) / 8.0).collect();
            let mean = off.iter().map(|d| loss(*d)).sum::<f64>() / 8.0;
            (mean + 0.3 - 1e-4 * f64::from(step), o, g)
        };
        (0..5).map(at).map(|(loss, o, g)| all.add(loss, 1, &o, &g)).last().flatten()
    }

    #[test]
    fn squares_beside_a_penalty_are_known() {
        let found = last(|d| d * d, |d| 2.0 * d).unwrap();
        assert_eq!(found.form, LossForm::Squares);
        assert!(found.targets.iter().all(|y| (y - 5.0).abs() < 1e-9));
        let half = last(|d| 0.5 * d * d, |d| d).unwrap();
        assert!((half.scale - 0.5 / 8.0).abs() < 1e-12);
        // Other losses leave what changes with them.
        assert!(last(|d| d.cosh().ln(), f64::tanh).is_none());
        assert!(last(|d| d * d + 0.2 * d.abs(), |d| 2.0 * d).is_none());
    }
}
