//! The Mersenne Twister MT19937, the engine under PyTorch's CPU generator and Python's `random`.
//!
//! Source: M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
//! uniform pseudo-random number generator", ACM TOMACS 8(1), 1998.

/// Words of state, and the number of draws between two refills.
pub(super) const WORDS: usize = 624;
/// The distance of the recurrence.
const SHIFT: usize = 397;

/// The engine: a block of raw words, and how many of them are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mt19937 {
    pub(super) words: [u32; WORDS],
    /// The next word to hand out. 0 means freshly seeded: the first draw makes the first block.
    /// `WORDS` means used up. The two are distinguished because PyTorch's saved state distinguishes
    /// them.
    pub(super) next: usize,
}

impl Mt19937 {
    /// Seeds from one word (`init_genrand` in the authors' program).
    pub(super) fn from_word(seed: u32) -> Self {
        let mut words = [0; WORDS];
        words[0] = seed;
        for i in 1..WORDS {
            let last = words[i - 1];
            words[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { words, next: 0 }
    }

    /// Seeds from a key of several words (`init_by_array`). An empty key counts as one zero word.
    pub(super) fn from_key(key: &[u32]) -> Self {
        let key = if key.is_empty() { &[0][..] } else { key };
        let mut engine = Self::from_word(19_650_218);
        let words = &mut engine.words;
        let mut at = 1;
        for (_, (j, &part)) in (0..WORDS.max(key.len())).zip(key.iter().enumerate().cycle()) {
            let last = words[at - 1];
            words[at] = (words[at] ^ (last ^ (last >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(part)
                .wrapping_add(j as u32);
            at = following(words, at);
        }
        for _ in 1..WORDS {
            let last = words[at - 1];
            words[at] = (words[at] ^ (last ^ (last >> 30)).wrapping_mul(1_566_083_941))
                .wrapping_sub(at as u32);
            at = following(words, at);
        }
        words[0] = 0x8000_0000;
        engine
    }

    /// One 32-bit draw.
    #[inline]
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.is_used_up() {
            self.refill();
        }
        let word = self.words[self.next];
        self.next += 1;
        temper(word)
    }

    /// One 64-bit draw: two 32-bit draws, the first one is the high word.
    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// Writes `convert(draw)` to each element, one 32-bit draw each, a block at a time: much
    /// faster than single draws, since the inner loop has no branch.
    #[inline]
    pub(super) fn fill_with<T>(&mut self, mut out: &mut [T], convert: impl Fn(u32) -> T) {
        while !out.is_empty() {
            if self.is_used_up() {
                self.refill();
            }
            let count = out.len().min(WORDS - self.next);
            let (now, later) = out.split_at_mut(count);
            for (slot, &word) in now.iter_mut().zip(&self.words[self.next..]) {
                *slot = convert(temper(word));
            }
            self.next += count;
            out = later;
        }
    }

    #[inline]
    fn is_used_up(&self) -> bool {
        self.next == 0 || self.next >= WORDS
    }

    /// Makes the next block. Three loops instead of one with a modulus, so that they vectorise.
    #[cold]
    fn refill(&mut self) {
        let w = &mut self.words;
        for i in 0..WORDS - SHIFT {
            w[i] = w[i + SHIFT] ^ twist(w[i], w[i + 1]);
        }
        for i in WORDS - SHIFT..WORDS - 1 {
            w[i] = w[i + SHIFT - WORDS] ^ twist(w[i], w[i + 1]);
        }
        w[WORDS - 1] = w[SHIFT - 1] ^ twist(w[WORDS - 1], w[0]);
        self.next = 0;
    }
}

/// The next position in the seeding of `from_key`: on wrapping around, word 0 mirrors the last.
fn following(words: &mut [u32; WORDS], at: usize) -> usize {
    if at + 1 < WORDS {
        return at + 1;
    }
    words[0] = words[WORDS - 1];
    1
}

#[inline(always)]
fn twist(high: u32, low: u32) -> u32 {
    let mixed = (high & 0x8000_0000) | (low & 0x7fff_ffff);
    (mixed >> 1) ^ ((low & 1).wrapping_neg() & 0x9908_b0df)
}

#[inline(always)]
fn temper(mut word: u32) -> u32 {
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c_5680;
    word ^= (word << 15) & 0xefc6_0000;
    word ^ (word >> 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 10,000th draw from seed 5489 is fixed by the C++ standard (`std::mt19937`).
    #[test]
    fn the_ten_thousandth_draw_is_the_one_of_the_cpp_standard() {
        let mut engine = Mt19937::from_word(5489);
        let mut draws = vec![0; 10_000];
        engine.fill_with(&mut draws, |w| w);
        assert_eq!(draws[9_999], 4_123_659_995);
    }

    /// The first lines of `mt19937ar.out`, which the authors publish beside their program.
    #[test]
    fn a_key_gives_the_authors_output() {
        let mut engine = Mt19937::from_key(&[0x123, 0x234, 0x345, 0x456]);
        let draws: Vec<u32> = (0..5).map(|_| engine.next_u32()).collect();
        assert_eq!(draws, [1067595299, 955945823, 477289528, 4107218783, 4228976476]);
    }

    #[test]
    fn blocks_and_single_draws_are_one_stream() {
        for sizes in [[1, 623, 1], [624, 624, 2], [0, 700, 1300], [623, 2, 622]] {
            let (mut whole, mut single) = (Mt19937::from_word(7), Mt19937::from_word(7));
            for size in sizes {
                let mut draws = vec![0; size];
                whole.fill_with(&mut draws, |w| w);
                let expected: Vec<u32> = (0..size).map(|_| single.next_u32()).collect();
                assert_eq!(draws, expected, "sizes {sizes:?}");
            }
            assert_eq!(whole, single);
        }
    }
}
