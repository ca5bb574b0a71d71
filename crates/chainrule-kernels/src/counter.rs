//! A counter-based generator: any number of independent streams, with no state to hand around.

/// Random numbers as a pure function of (seed, stream, position): Philox4x32-10.
///
/// Every worker, epoch or file can have a stream of its own, and any place of a stream is reached
/// at once with [`CounterRng::skip`]. The contents of a stream do not depend on the number of
/// threads or on the order in which they run.
///
/// Source: J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011. The key is the seed; the counter is the block number (low half) and the stream
/// (high half), each written low word first.
///
/// ```
/// use chainrule::rng::CounterRng;
///
/// let mut a = CounterRng::new(42, 3);
/// let draws: Vec<u32> = (0..10).map(|_| a.next_u32()).collect();
/// let mut b = CounterRng::new(42, 3);
/// b.skip(9);
/// assert_eq!(b.next_u32(), draws[9]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRng {
    key: [u32; 2],
    stream: u64,
    /// The number of the block that `words` is.
    block: u64,
    words: [u32; 4],
    /// Used entries of `words`, below 4.
    used: u8,
}

impl CounterRng {
    /// The stream `stream` of the seed `seed`, at its beginning.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self { key: halves(seed), stream, block: 0, words: [0; 4], used: 0 };
        rng.load(0);
        rng
    }

    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let word = self.words[usize::from(self.used & 3)];
        self.used += 1;
        if self.used == 4 {
            self.used = 0;
            self.load(self.block.wrapping_add(1));
        }
        word
    }

    /// 64 random bits: two 32-bit draws, the first one is the high word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// A uniform number of [0, 1): the top 24 bits of one 32-bit draw.
    #[inline]
    pub fn uniform_f32(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// A uniform number of [0, 1): the top 53 bits of one 64-bit draw.
    #[inline]
    pub fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Leaves out the next `draws` 32-bit draws, in constant time.
    pub fn skip(&mut self, draws: u64) {
        let past = u64::from(self.used) + draws % 4;
        self.used = (past % 4) as u8;
        self.load(self.block.wrapping_add(draws / 4 + past / 4));
    }

    fn load(&mut self, block: u64) {
        self.block = block;
        let ([low, high], [low_stream, high_stream]) = (halves(block), halves(self.stream));
        self.words = philox([low, high, low_stream, high_stream], self.key);
    }
}

pub fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Ten rounds of Philox4x32 on one counter.
#[inline(always)]
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [low0, high0] = halves(u64::from(counter[0]) * 0xd251_1f53);
        let [low1, high1] = halves(u64::from(counter[2]) * 0xcd9e_8d57);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three `philox4x32 10` lines of `kat_vectors`, which Random123 publishes.
    #[test]
    fn known_answers_of_random123() {
        let cases = [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([!0; 4], [!0; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected);
        }
    }

    /// The third vector again, by way of the public type: how seed, stream and block are laid out.
    #[test]
    fn seed_is_the_key_and_stream_the_high_half_of_the_counter() {
        let mut rng = CounterRng::new(0x299f31d0_a4093822, 0x03707344_13198a2e);
        // The block is 0x85a308d3_243f6a88; skip() counts draws, of which a u64 holds a quarter.
        for _ in 0..4 {
            rng.skip(0x85a308d3_243f6a88);
        }
        let words = [(); 4].map(|()| rng.next_u32());
        assert_eq!(words, [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn skip_is_the_same_as_drawing() {
        for before in 0..9 {
            for skipped in [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65] {
                let (mut jump, mut walk) = (CounterRng::new(5, 6), CounterRng::new(5, 6));
                for _ in 0..before {
                    assert_eq!(jump.next_u32(), walk.next_u32());
                }
                jump.skip(skipped);
                for _ in 0..skipped {
                    walk.next_u32();
                }
                assert_eq!(jump, walk, "{before} drawn, {skipped} skipped");
            }
        }
        let mut rng = CounterRng::new(1, 2);
        rng.next_u32();
        rng.skip(u64::MAX);
        assert_eq!((rng.used, rng.block), (0, 1 << 62), "1 + (2^64 - 1) draws are 2^62 blocks");
    }

    #[test]
    fn uniforms_take_the_top_bits() {
        let (mut bits, mut rng) = (CounterRng::new(9, 0), CounterRng::new(9, 0));
        for _ in 0..1000 {
            let (word, u) = (bits.next_u32(), rng.uniform_f32());
            assert_eq!(f64::from(u), f64::from(word >> 8) / 2f64.powi(24));
            let (word, u) = (bits.next_u64(), rng.uniform_f64());
            assert_eq!(u * 2f64.powi(53), (word >> 11) as f64);
            assert!((0.0..1.0).contains(&u));
        }
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| CounterRng::new(seed, stream).next_u64();
        let mut seen: Vec<u64> =
            (0..30).flat_map(|s| (0..30).map(move |t| first(s, t << 31))).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 900);
    }
}
