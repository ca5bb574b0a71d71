//! Measures of a training beside its tensors: noise of gradients, curvature, smoothness of the
//! loss, time and memory.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use chainrule_core::kernels::moments::dot;

use crate::monitor::Monitor;
use crate::numbers::Number;
use crate::series::Series;

/// Weight of the previous value in a running mean.
const KEPT: f64 = 0.9;

/// Measures over the steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures {
    /// Running means of the squared true gradient and of the variance of one example's, both in
    /// one unit, and their number.
    squared: f64,
    variance: f64,
    pairs: u32,
    pub curvatures: Series<f64>,
    pub noises: Series<f64>,
    pub seconds: Series<f64>,
    pub bytes: Series<f64>,
}

impl Monitor {
    /// Squared norms of gradients that are means over `few` and over `many` examples, as of a
    /// micro-batch and of all of them, or of halves of a batch and the whole. Counts in any unit
    /// give the noise scale in that unit.
    ///
    /// The norm of a mean over `n` examples is `|G|² + tr(S) / n`, where `G` is the gradient over
    /// all data and `S` the covariance over examples: two sizes give both.
    ///
    /// ```
    /// # let mut monitor = chainrule::monitor::Monitor::new();
    /// // |G|² = 4 and tr(S) = 32.
    /// monitor.gradient_noise((8.0, 4.0 + 32.0 / 8.0), (32.0, 4.0 + 32.0 / 32.0));
    /// assert!((monitor.noise_scale().unwrap() - 8.0).abs() < 1e-9);
    /// ```
    pub fn gradient_noise(&mut self, few: (f64, f64), many: (f64, f64)) {
        let ((b, small), (n, large)) = (few, many);
        let squared = (n * large - b * small) / (n - b);
        let variance = (small - large) / (1.0 / b - 1.0 / n);
        if !(squared.is_finite() && variance.is_finite()) {
            return;
        }
        let all = &mut self.measures;
        let kept = if all.pairs == 0 { 0.0 } else { KEPT };
        all.squared = kept * all.squared + (1.0 - kept) * squared;
        all.variance = kept * all.variance + (1.0 - kept) * variance;
        all.pairs += 1;
        if let Some(scale) = self.noise_scale() {
            self.measures.noises.push(self.steps, scale);
        }
    }

    /// The gradient noise scale `tr(S) / |G|²` in the unit of the counts: roughly the batch size
    /// beyond which more examples hardly change the gradient. `None` before anything was reported,
    /// or where noise hides the gradient itself.
    pub fn noise_scale(&self) -> Option<f64> {
        let all = &self.measures;
        (all.pairs > 0 && all.squared > 0.0).then(|| all.variance.max(0.0) / all.squared)
    }

    /// The largest curvature of the loss near the direction of the step: plain gradient descent
    /// overshoots where it is above `2 / rate`.
    pub fn curvature(&mut self, largest: f64) {
        if largest.is_finite() {
            self.measures.curvatures.push(self.steps, largest);
        }
    }

    /// The reported curvatures, with their steps.
    pub fn curvatures(&self) -> &[(u64, f64)] {
        self.measures.curvatures.points()
    }

    /// The seconds that a step takes, and the bytes that tensors take after it.
    pub fn resources(&mut self, seconds: f64, bytes: f64) {
        self.measures.seconds.push(self.steps, seconds);
        self.measures.bytes.push(self.steps, bytes);
    }

    /// Smoothness of the newest losses: 1 less half of von Neumann's ratio, the mean squared
    /// difference of neighbours over the variance: near 1 for a curve that moves slowly, near 0 for
    /// noise, below 0 for a loss that jumps to and fro. `None` before 16 losses, or if all are one.
    ///
    /// ```
    /// # let mut monitor = chainrule::monitor::Monitor::new();
    /// (0..40).for_each(|i| monitor.step(Some(f64::from(40 - i)), None));
    /// assert!(monitor.smoothness().unwrap() > 0.98);
    /// ```
    pub fn smoothness(&self) -> Option<f64> {
        let n = self.recent.len();
        if n < 16 {
            return None;
        }
        let mean = self.recent.iter().sum::<f64>() / n as f64;
        let variance = self.recent.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        let jumps = pairs.map(|(a, b)| (b - a).powi(2)).sum::<f64>() / (n - 1) as f64;
        (variance > 0.0).then(|| 1.0 - jumps / (2.0 * variance))
    }

    /// The newest measures by name, as far as they are known: `smoothness`, `noise_scale`,
    /// `curvature` and `stable_curvature`, `seconds`, `bytes`.
    pub fn measures(&self) -> BTreeMap<String, f64> {
        let known = self.measured().into_iter();
        known.filter_map(|(name, x)| Some((name, x.as_f64()?))).collect()
    }

    /// The newest measures by name.
    pub(crate) fn measured(&self) -> Map<String, Value> {
        let last = |series: &Series<f64>| series.points().last().map(|p| p.1);
        let all = &self.measures;
        let rate = last(&self.rates).filter(|rate| *rate > 0.0);
        let curvature = last(&all.curvatures);
        let named = [
            ("smoothness", self.smoothness()),
            ("noise_scale", self.noise_scale()),
            ("curvature", curvature),
            ("stable_curvature", curvature.and(rate).map(|rate| 2.0 / rate)),
            ("seconds", last(&all.seconds)),
            ("bytes", last(&all.bytes)),
        ];
        let known = named.into_iter().filter_map(|(name, x)| Some((name.to_owned(), json!(x?))));
        known.collect()
    }
}

/// The rank of the outputs of examples, `tr(G)² / tr(G²)` with their products `G`: the number of
/// directions that they spread over evenly. It reads 32 examples at most.
pub(crate) fn rank<T: Number>(rows: usize, values: &[T]) -> Option<f64> {
    const MOST_ROWS: usize = 32;
    const MOST_PRODUCTS: usize = 1 << 22;
    let width = values.len() / rows.max(1);
    let rows = rows.min(MOST_ROWS);
    if rows < 2 || width < 2 || rows * rows * width > MOST_PRODUCTS {
        return None;
    }
    let row = |i: usize| &values[i * width..][..width];
    let (mut trace, mut squares) = (0.0, 0.0);
    for i in 0..rows {
        for j in 0..=i {
            let product = dot(row(i), row(j));
            squares += if i == j { product * product } else { 2.0 * product * product };
            trace += if i == j { product } else { 0.0 };
        }
    }
    let rank = trace * trace / squares;
    rank.is_finite().then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_alternate_are_not_smooth() {
        let mut monitor = Monitor::new();
        (0..64).for_each(|i| monitor.step(Some(1.0 + f64::from(i % 2)), None));
        assert!(monitor.smoothness().unwrap() < -0.9);
        let mut noisy = Monitor::new();
        (0..64u64).for_each(|i| noisy.step(Some((i * 7919 % 101) as f64), None));
        assert!(noisy.smoothness().unwrap().abs() < 0.5);
    }

    #[test]
    fn ranks_of_known_matrices() {
        // Rows that are multiples of one, and rows that are orthogonal and alike in size.
        let one: Vec<f64> = (0..32).map(|i| f64::from(1 + i / 4) * f64::from(1 + i % 4)).collect();
        assert!((rank(8, &one).unwrap() - 1.0).abs() < 1e-12);
        let axes: Vec<f32> = (0..16).map(|i| if i / 4 == i % 4 { 2.0 } else { 0.0 }).collect();
        assert!((rank(4, &axes).unwrap() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn noise_of_known_gradients_is_recovered() {
        // Gradients of examples are 3 + e, where e is 4 or -4: |G|² = 9, tr(S) = 16.
        let mut monitor = Monitor::new();
        for step in 0..200u64 {
            let e: Vec<f64> =
                (0..4).map(|i| if (step >> i) & 1 == 0 { 4.0 } else { -4.0 }).collect();
            let mean = |n: usize| 3.0 + e[..n].iter().sum::<f64>() / n as f64;
            let large = mean(4).powi(2);
            let small = (3.0 + e[0]).powi(2);
            monitor.gradient_noise((1.0, small), (4.0, large));
            monitor.step(None, None);
        }
        let scales: Vec<f64> = monitor.measures.noises.points().iter().map(|p| p.1).collect();
        let middle = crate::detect::median(scales).unwrap();
        assert!((0.8..4.0).contains(&middle), "{middle}");
    }
}
