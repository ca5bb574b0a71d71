//! Python's `random` module, number for number.

use super::RngError;
use super::mt19937::Mt19937;

/// The generator of CPython's `random` module: the same seed gives the same numbers.
///
/// A data split that a Python program makes with `random.seed(42); random.shuffle(words)` can thus
/// be made again here. Equal to CPython 3.11.
///
/// ```
/// use chainrule::rng::PythonRandom;
///
/// let mut random = PythonRandom::seed(42);
/// let mut x: Vec<i32> = (0..10).collect();
/// random.shuffle(&mut x);
/// assert_eq!(x, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PythonRandom {
    engine: Mt19937,
    /// The second number of the last pair that `gauss` made.
    gauss_next: Option<f64>,
}

impl PythonRandom {
    /// `random.seed(seed)` for an integer. As in Python the sign is dropped: -42 seeds like 42.
    pub fn seed(seed: impl Into<i128>) -> Self {
        let size = seed.into().unsigned_abs();
        let words = [0, 32, 64, 96].map(|shift| (size >> shift) as u32);
        let used = words.iter().rposition(|&w| w != 0).map_or(1, |last| last + 1);
        Self { engine: Mt19937::from_key(&words[..used]), gauss_next: None }
    }

    /// `random.random()`: a uniform number of [0, 1) with 53 random bits.
    #[inline]
    pub fn random(&mut self) -> f64 {
        let high = f64::from(self.engine.next_u32() >> 5);
        let low = f64::from(self.engine.next_u32() >> 6);
        (high * 67_108_864.0 + low) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `random.uniform(a, b)`: `a + (b - a) * random()`.
    pub fn uniform(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.random()
    }

    /// `random.gauss(mean, deviation)`: normal numbers by Box and Muller, of each pair the second
    /// is kept for the next call. Uses the system's `log`, `sin` and `cos`, as CPython does.
    pub fn gauss(&mut self, mean: f64, deviation: f64) -> f64 {
        let z = self.gauss_next.take().unwrap_or_else(|| {
            let angle = self.random() * std::f64::consts::TAU;
            let radius = (-2.0 * (1.0 - self.random()).ln()).sqrt();
            self.gauss_next = Some(angle.sin() * radius);
            angle.cos() * radius
        });
        mean + z * deviation
    }

    /// `random.getrandbits(k)`: an integer of `k` random bits.
    ///
    /// # Errors
    /// If `k` is above 64.
    pub fn getrandbits(&mut self, k: u32) -> Result<u64, RngError> {
        if k > 64 {
            return Err(RngError::TooManyBits { k });
        }
        Ok(self.bits(k) as u64)
    }

    /// A uniform integer of 0 .. `n` (what `random.randrange(n)` draws); 0 if `n` is 0.
    #[inline]
    pub fn randbelow(&mut self, n: u64) -> u64 {
        self.below(u128::from(n)) as u64
    }

    /// `random.randint(low, high)`: a uniform integer of `low ..= high`, both ends included.
    ///
    /// # Errors
    /// If `low` is above `high`.
    pub fn randint(&mut self, low: i64, high: i64) -> Result<i64, RngError> {
        if low > high {
            return Err(RngError::EmptyClosedRange { low, high });
        }
        let width = i128::from(high) - i128::from(low) + 1;
        Ok((i128::from(low) + self.below(width as u128) as i128) as i64)
    }

    /// `random.shuffle(items)`, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.randbelow(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// Draws again until the number is below `n`, so that no number is favoured.
    fn below(&mut self, n: u128) -> u128 {
        if n == 0 {
            return 0;
        }
        let k = u128::BITS - n.leading_zeros();
        loop {
            let drawn = self.bits(k);
            if drawn < n {
                return drawn;
            }
        }
    }

    /// Up to 128 bits, low word first; a last word that is not whole gives its top bits.
    #[inline]
    fn bits(&mut self, k: u32) -> u128 {
        let mut value = 0;
        for shift in (0..k).step_by(32) {
            let missing = 32 - (k - shift).min(32);
            value |= u128::from(self.engine.next_u32() >> missing) << shift;
        }
        value
    }
}

/// Every expected value is printed by CPython 3.11.
#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(seed: i128, n: u32) -> (Vec<u32>, PythonRandom) {
        let mut random = PythonRandom::seed(seed);
        let mut x: Vec<u32> = (0..n).collect();
        random.shuffle(&mut x);
        (x, random)
    }

    #[test]
    fn seeds_of_every_size_and_sign() {
        let cases: [(i128, [u32; 10], u64, f64); 13] = [
            (0, [7, 8, 1, 5, 3, 4, 2, 0, 9, 6], 1537810351, 0.5833820394550312),
            (1, [6, 8, 9, 7, 5, 3, 0, 4, 1, 2], 3387541014, 0.20995480637147712),
            (42, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1], 2536146025, 0.4219218196852704),
            (-42, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1], 2536146025, 0.4219218196852704),
            (1337, [0, 3, 7, 2, 1, 6, 4, 5, 8, 9], 3958785211, 0.9956454806598528),
            ((1 << 32) - 1, [0, 7, 1, 5, 2, 6, 4, 8, 3, 9], 1525079338, 0.8974354974718768),
            (1 << 32, [8, 9, 3, 2, 4, 7, 0, 6, 5, 1], 60122280, 0.1380847623629401),
            ((1 << 63) - 1, [4, 1, 9, 8, 6, 0, 3, 7, 2, 5], 2653543119, 0.7665520242910694),
            (-(1 << 63), [5, 7, 9, 2, 0, 4, 1, 3, 6, 8], 1968830774, 0.6511980643080132),
            ((1 << 64) - 1, [2, 6, 7, 9, 8, 1, 4, 5, 3, 0], 3165929296, 0.19254874236859254),
            (1 << 64, [3, 2, 9, 0, 6, 8, 4, 7, 1, 5], 2594297161, 0.025106433313814902),
            (i128::MAX, [5, 8, 7, 9, 2, 1, 0, 4, 3, 6], 858439766, 0.20420439986876582),
            (
                123456789012345678901234567890,
                [5, 1, 9, 7, 6, 8, 4, 0, 2, 3],
                1124751513,
                0.6767871384922387,
            ),
        ];
        for (seed, order, bits, next) in cases {
            let (x, mut random) = shuffled(seed, 10);
            assert_eq!(x, order, "seed {seed}");
            assert_eq!(random.getrandbits(32), Ok(bits), "seed {seed}");
            assert_eq!(random.random(), next, "seed {seed}");
        }
    }

    #[test]
    fn shuffles_of_every_length() {
        // The length, the FNV-1a digest of the shuffled 32-bit words, and the draw that follows.
        let cases = [
            (0, 0xcbf29ce484222325, 2746317213),
            (1, 0x4d25767f9dce13f5, 2746317213),
            (2, 0x89cd31291d2aefa4, 107420369),
            (3, 0x9f19854a6eada506, 107420369),
            (5, 0xb93ea9428f3e0061, 1051802512),
            (31, 0xc058b683805d26fa, 2530876844),
            (32, 0x231bd5cf0572ddc5, 2998485882),
            (33, 0x1d4627cf14442315, 2998485882),
            (127, 0x63a0e5c7e87772aa, 4283481572),
            (128, 0xf2483df72ecce6e5, 4283481572),
            (129, 0x0e158e0d452a26b5, 4283481572),
            (1000, 0x416ee932d7abfaed, 1754569613),
        ];
        for (n, digest, after) in cases {
            let (x, mut random) = shuffled(42, n);
            assert_eq!(super::super::tests::digest(&x, |v| v.to_le_bytes()), digest, "length {n}");
            assert_eq!(random.getrandbits(32), Ok(after), "length {n}");
        }
        assert_eq!(shuffled(42, 1000).0[..6], [776, 507, 895, 922, 33, 483]);
    }

    #[test]
    fn bits_of_every_width() {
        let mut random = PythonRandom::seed(42);
        let drawn = [0, 1, 2, 5, 8, 31, 32, 33, 40, 53, 63, 64].map(|k| random.getrandbits(k));
        let expected = [
            0,
            1,
            0,
            0,
            189,
            590620971,
            1051802512,
            958682846,
            114832269481,
            6671341247540589,
            5030118478018109776,
            10892664235628797826,
        ];
        assert_eq!(drawn, expected.map(Ok));
        let message = random.getrandbits(65).unwrap_err().to_string();
        assert_eq!(message, "getrandbits: gives at most 64 bits, got k = 65");
    }

    #[test]
    fn integers_below_a_bound() {
        let mut random = PythonRandom::seed(7);
        let bounds = [
            1,
            2,
            3,
            10,
            255,
            256,
            257,
            1 << 31,
            1 << 32,
            (1 << 32) + 1,
            1 << 40,
            1 << 63,
            u64::MAX,
        ];
        let drawn = bounds.map(|n| random.randbelow(n));
        let expected = [
            0,
            0,
            1,
            0,
            18,
            48,
            187,
            249103477,
            922121676,
            369140570,
            152119891099,
            1673359773981742884,
            7830996856503103182,
        ];
        assert_eq!(drawn, expected);
        assert_eq!(random.randbelow(0), 0);
    }

    #[test]
    fn randint_includes_both_ends() {
        let mut random = PythonRandom::seed(1337);
        let floats = [(); 4].map(|()| random.random());
        assert_eq!(
            floats,
            [0.6177528569514706, 0.5332655736050008, 0.36584835924937553, 0.5857873539022715]
        );
        let small = [(); 12].map(|()| random.randint(-5, 5).unwrap());
        assert_eq!(small, [-3, 0, 1, 5, 0, -1, 1, -2, 5, 0, -4, 1]);
        let wide = [(); 2].map(|()| random.randint(i64::MIN, i64::MAX).unwrap());
        assert_eq!(wide, [2493953728374649685, 3101306152692961588]);
        assert_eq!(random.randint(3, 3), Ok(3));
        assert_eq!(random.getrandbits(32), Ok(1732459142));
        let message = random.randint(4, 3).unwrap_err().to_string();
        assert_eq!(message, "randint: needs low <= high, got low 4 and high 3");
    }

    #[test]
    fn uniform_and_gauss() {
        let mut random = PythonRandom::seed(1337);
        let drawn = [(); 4].map(|()| random.uniform(-1.0, 1.0));
        assert_eq!(
            drawn,
            [0.23550571390294128, 0.06653114721000164, -0.26830328150124894, 0.1715747078045431]
        );
        let mut random = PythonRandom::seed(1337);
        let drawn = [(); 5].map(|()| random.gauss(0.0, 1.0));
        assert_eq!(
            drawn,
            [
                -0.9117532932976627,
                -0.8322834003509737,
                -0.8833109857747158,
                0.9912180893337817,
                0.9424983732594854
            ]
        );
        assert_eq!(random.gauss(2.5, 0.1), 2.6609500240494346);
        assert_eq!(random.random(), 0.38370480861420864);
    }
}
