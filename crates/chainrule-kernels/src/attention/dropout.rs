//! The choice of dropped weights: a pure function of the seed and the place, so that the backward
//! pass finds them again.

use crate::counter::{halves, philox};
use crate::math::Real;
use crate::param::Parameters;

/// Each weight is 0 with probability `p`, else divided by `1 - p`.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct Dropout {
    /// The probability, from 0 to 1.
    pub p: f64,
    /// The seed of the choice.
    pub seed: u64,
}

impl Dropout {
    /// The factors of the weights of query `row` of pair `pair`, from key `first` on, which is a
    /// multiple of 4.
    pub fn factors<T: Real>(self, pair: usize, row: usize, first: usize, out: &mut [T]) {
        debug_assert!(first.is_multiple_of(4));
        let [low, high] = halves(pair as u64);
        // 2^32 for p = 1, which no word reaches.
        let threshold = (self.p * 4_294_967_296.0) as u64;
        let kept = if self.p < 1.0 { T::from_f64(1.0 / (1.0 - self.p)) } else { T::ZERO };
        for (i, out) in out.chunks_mut(4).enumerate() {
            let counter = [(first / 4 + i) as u32, row as u32, low, high];
            let words = philox(counter, halves(self.seed));
            for (out, word) in out.iter_mut().zip(words) {
                *out = if u64::from(word) >= threshold { kept } else { T::ZERO };
            }
        }
    }
}
