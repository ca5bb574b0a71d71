//! Draws of categories by weight, as PyTorch's CPU kernels make them.

use std::cmp::Ordering;
use std::fmt::Display;

use super::RngError;
use super::stream::Stream;

mod sealed {
    /// The arithmetic in the weights' own precision that the draws need.
    pub trait Weight: Copy + PartialOrd {
        const ZERO: Self;
        fn is_finite(self) -> bool;
        fn add(self, other: Self) -> Self;
        fn divide(self, other: Self) -> Self;
        fn divide_f64(self, other: f64) -> Self;
        fn as_f64(self) -> f64;
    }
}
use sealed::Weight;

/// A type that [`Generator::multinomial`](crate::Generator::multinomial) takes weights in: `f32` or
/// `f64`. The type matters: a draw rounds in the weights' own precision.
pub trait Probability: Weight + Display {}

macro_rules! probability {
    ($float:ty) => {
        impl Weight for $float {
            const ZERO: Self = 0.0;
            fn is_finite(self) -> bool {
                <$float>::is_finite(self)
            }
            fn add(self, other: Self) -> Self {
                self + other
            }
            fn divide(self, other: Self) -> Self {
                self / other
            }
            fn divide_f64(self, other: f64) -> Self {
                self / other as Self
            }
            fn as_f64(self) -> f64 {
                f64::from(self)
            }
        }
        impl Probability for $float {}
    };
}
probability!(f32);
probability!(f64);

impl Stream {
    pub(super) fn multinomial<P: Probability>(
        &mut self,
        probs: &[P],
        count: usize,
        replacement: bool,
    ) -> Result<Vec<i64>, RngError> {
        let positive = count_positive(probs)?;
        if count == 0 {
            return Err(RngError::NoDraws);
        }
        if count == 1 {
            return Ok(vec![self.draw_one(probs)]);
        }
        if replacement {
            return self.draw_with_replacement(probs, count);
        }
        if count > positive {
            return Err(RngError::TooManyDraws { count, positive });
        }
        Ok(self.draw_without_replacement(probs, count))
    }

    /// `p / q` of each category that can be drawn, with its index. One of weight 0 has none, but
    /// takes its uniform all the same.
    fn scores<P: Probability>(&mut self, probs: &[P]) -> impl Iterator<Item = (P, usize)> {
        probs.iter().enumerate().filter_map(|(i, &p)| {
            let q = -(-self.uniform_f64()).ln_1p();
            (p > P::ZERO).then(|| (p.divide_f64(q), i))
        })
    }

    /// The category of the greatest score, of equal ones the first.
    fn draw_one<P: Probability>(&mut self, probs: &[P]) -> i64 {
        let greater =
            |best: (P, usize), next: (P, usize)| if next.0 > best.0 { next } else { best };
        // `count_positive` has made sure that there is a score.
        self.scores(probs).reduce(greater).map_or(0, |(_, i)| i as i64)
    }

    fn draw_without_replacement<P: Probability>(&mut self, probs: &[P], count: usize) -> Vec<i64> {
        let mut scores: Vec<(P, usize)> = self.scores(probs).collect();
        // The greatest first, of equal ones the first. Scores are never NaN.
        let order = |a: &(P, usize), b: &(P, usize)| {
            b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then(a.1.cmp(&b.1))
        };
        if count < scores.len() {
            scores.select_nth_unstable_by(count, order);
            scores.truncate(count);
        }
        scores.sort_unstable_by(order);
        scores.into_iter().map(|(_, i)| i as i64).collect()
    }

    fn draw_with_replacement<P: Probability>(
        &mut self,
        probs: &[P],
        count: usize,
    ) -> Result<Vec<i64>, RngError> {
        let mut sum = P::ZERO;
        let mut sums: Vec<P> = Vec::with_capacity(probs.len());
        for &p in probs {
            sum = sum.add(p);
            sums.push(sum);
        }
        if !sum.is_finite() {
            return Err(RngError::SumOverflows);
        }
        for partial in &mut sums {
            *partial = partial.divide(sum);
        }
        Ok((0..count).map(|_| search(&sums, self.uniform_f64())).collect())
    }
}

/// The first category whose running sum reaches `u` of [0, 1). The sum at the last positive weight
/// is 1, so that there is one; weights of 0 at the beginning own nothing, not even `u` = 0.
fn search<P: Probability>(sums: &[P], u: f64) -> i64 {
    sums.partition_point(|&sum| sum.as_f64() < u || sum <= P::ZERO) as i64
}

/// The number of positive weights, if all are weights.
fn count_positive<P: Probability>(probs: &[P]) -> Result<usize, RngError> {
    let mut positive = 0;
    for (index, &p) in probs.iter().enumerate() {
        if !(p >= P::ZERO && p.is_finite()) {
            return Err(RngError::NotAWeight { index, weight: p.to_string() });
        }
        positive += usize::from(p > P::ZERO);
    }
    if positive == 0 {
        return Err(RngError::NoWeight { categories: probs.len() });
    }
    Ok(positive)
}

#[cfg(test)]
mod tests {
    use super::search;

    #[test]
    fn a_running_sum_owns_what_is_below_it_and_itself() {
        let sums = [0.0, 0.25_f32, 0.25, 0.5, 1.0, 1.0];
        let largest = 1.0 - f64::EPSILON / 2.0;
        let cases =
            [(0.0, 1), (0.1, 1), (0.25, 1), (0.2500001, 3), (0.5, 3), (0.6, 4), (largest, 4)];
        for (u, category) in cases {
            assert_eq!(search(&sums, u), category, "{u}");
        }
    }
}
