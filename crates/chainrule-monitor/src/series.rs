//! Values over the steps of a training in bounded memory.

/// Values at steps; every second one is dropped when there are too many.
#[derive(Clone, Debug)]
pub struct Series<T> {
    most: usize,
    every: u64,
    seen: u64,
    points: Vec<(u64, T)>,
}

impl<T> Default for Series<T> {
    fn default() -> Series<T> {
        Series::new(512)
    }
}

impl<T> Series<T> {
    /// At most this many values, at least 2.
    pub fn new(most: usize) -> Series<T> {
        Series { most: most.max(2), every: 1, seen: 0, points: Vec::new() }
    }

    /// Adds the next value, which is kept if it is one of every `n`th, where `n` doubles as the
    /// series fills.
    pub fn push(&mut self, step: u64, value: T) {
        if self.seen.is_multiple_of(self.every) {
            if self.points.len() == self.most {
                let mut index = 0;
                self.points.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.points.push((step, value));
            }
        }
        self.seen += 1;
    }

    /// Whether the next value will be kept.
    pub(crate) fn keeps_next(&self) -> bool {
        self.seen.is_multiple_of(self.every)
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut (u64, T)> {
        self.points.last_mut()
    }

    /// The kept values with their steps.
    pub fn points(&self) -> &[(u64, T)] {
        &self.points
    }
}

/// The losses of neighbouring steps as one point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSpan {
    /// The first step.
    pub step: u64,
    /// Number of steps.
    pub count: u64,
    /// The mean loss.
    pub mean: f64,
    /// The least loss.
    pub least: f64,
    /// The largest loss.
    pub most: f64,
}

impl LossSpan {
    fn merged(self, other: LossSpan) -> LossSpan {
        let count = self.count + other.count;
        let sum = self.mean * self.count as f64 + other.mean * other.count as f64;
        LossSpan {
            step: self.step,
            count,
            mean: sum / count as f64,
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// A curve of losses: means over runs of steps, whose length doubles when it is full.
#[derive(Clone, Debug)]
pub struct LossCurve {
    most: usize,
    width: u64,
    spans: Vec<LossSpan>,
}

impl LossCurve {
    /// A curve of at most this many points, at least 2.
    pub fn new(most: usize) -> LossCurve {
        LossCurve { most: most.max(2), width: 1, spans: Vec::new() }
    }

    /// The loss of the next step.
    pub fn push(&mut self, step: u64, loss: f64) {
        let one = LossSpan { step, count: 1, mean: loss, least: loss, most: loss };
        match self.spans.last_mut() {
            Some(last) if last.count < self.width => *last = last.merged(one),
            _ => {
                if self.spans.len() == self.most {
                    let pairs = self.spans.chunks(2);
                    self.spans = pairs
                        .map(|pair| pair[1..].iter().fold(pair[0], |a, b| a.merged(*b)))
                        .collect();
                    self.width *= 2;
                }
                match self.spans.last_mut() {
                    Some(last) if last.count < self.width => *last = last.merged(one),
                    _ => self.spans.push(one),
                }
            }
        }
    }

    /// The points.
    pub fn spans(&self) -> &[LossSpan] {
        &self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_over_a_million_steps() {
        let (mut series, mut curve) = (Series::new(64), LossCurve::new(64));
        for step in 0..1_000_000u64 {
            series.push(step, step);
            curve.push(step, step as f64);
        }
        assert!((32..=64).contains(&series.points().len()));
        assert!((32..=64).contains(&curve.spans().len()));
        let gaps: Vec<u64> = series.points().windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert_eq!(curve.spans().iter().map(|span| span.count).sum::<u64>(), 1_000_000);
        let total: f64 = curve.spans().iter().map(|span| span.mean * span.count as f64).sum();
        assert!((total / 1e6 - 499_999.5).abs() < 1e-3);
    }
}
