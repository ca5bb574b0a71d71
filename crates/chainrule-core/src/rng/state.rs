//! A generator's state as bytes, in the layout of `torch.Generator.get_state()`.

use super::RngError;
use super::mt19937::{Mt19937, WORDS};
use super::stream::Stream;

/// The length of PyTorch's layout: seed, two counters, flags, the words as u64, three f64 of which
/// only the second is used, its flag, and twelve bytes that this generator never fills.
const LEN: usize = 24 + 8 * WORDS + 40;
/// End of the words, and begin of the kept normal number's record.
const NORMAL: usize = 24 + 8 * WORDS;

/// All of a [`Generator`](super::Generator): where in the stream it is, and the normal number that
/// it has kept.
///
/// The bytes are those of PyTorch's `torch.Generator.get_state()` on a little-endian machine, so
/// that a state saved by one can be loaded by the other.
///
/// ```
/// use chainrule::rng::{Generator, GeneratorState};
///
/// let mut generator = Generator::manual_seed(1);
/// generator.random_u32();
/// let bytes = generator.state().to_bytes();
/// let expected = generator.random_u64();
/// generator.set_state(&GeneratorState::from_bytes(&bytes)?);
/// assert_eq!(generator.random_u64(), expected);
/// # Ok::<(), chainrule::rng::RngError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorState(pub(super) Stream);

impl GeneratorState {
    /// The state as 5056 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Stream { seed, engine, next_normal } = &self.0;
        // The draws left in the block, counted as PyTorch does: 1 means that a new block is due.
        let left = if engine.next == 0 { 1 } else { WORDS + 1 - engine.next };
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend(seed.to_le_bytes());
        bytes.extend((left as u32).to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((engine.next as u64).to_le_bytes());
        bytes.extend(engine.words.iter().flat_map(|&w| u64::from(w).to_le_bytes()));
        bytes.extend(0_f64.to_le_bytes());
        bytes.extend(next_normal.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0_f64.to_le_bytes());
        bytes.extend(u32::from(next_normal.is_some()).to_le_bytes());
        bytes.resize(LEN, 0);
        bytes
    }

    /// Reads what [`GeneratorState::to_bytes`] or PyTorch has written.
    ///
    /// # Errors
    /// If the bytes are not a state.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RngError> {
        let bad = |reason: String| Err(RngError::BadState { reason });
        let Ok(bytes) = <&[u8; LEN]>::try_from(bytes) else {
            return bad(format!("has {LEN} bytes, got {}", bytes.len()));
        };
        let (left, seeded, next) = (word_at(bytes, 8), word_at(bytes, 12), long_at(bytes, 16));
        if seeded != 1 {
            return bad("the generator was never seeded".to_string());
        }
        if next > WORDS as u64 {
            return bad(format!("at most {WORDS} words can be used, got {next}"));
        }
        let next = next as usize;
        if left as usize != if next == 0 { 1 } else { WORDS + 1 - next } {
            return bad(format!("{next} words used and {left} left do not fit together"));
        }
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            let long = long_at(bytes, 24 + 8 * i);
            match u32::try_from(long) {
                Ok(w) => *word = w,
                Err(_) => return bad(format!("word {i} is {long}, above 32 bits")),
            }
        }
        if words == [0; WORDS] {
            return bad("every word is 0, from which only zeros come".to_string());
        }
        let kept = f64::from_bits(long_at(bytes, NORMAL + 8));
        let next_normal = (word_at(bytes, NORMAL + 24) != 0).then_some(kept);
        if next_normal.is_some_and(|v| !v.is_finite()) {
            return bad(format!("the kept normal number is {kept}"));
        }
        let engine = Mt19937 { words, next };
        Ok(Self(Stream { seed: long_at(bytes, 0), engine, next_normal }))
    }
}

fn word_at(bytes: &[u8; LEN], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn long_at(bytes: &[u8; LEN], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
