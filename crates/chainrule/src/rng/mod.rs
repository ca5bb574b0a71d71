//! Random numbers that can be reproduced, here and in the programs that one compares with.
//!
//! - [`Generator`] yields the bits of PyTorch's CPU generator. [`manual_seed`] and [`with_default`]
//!   seed and use the one that everything takes which is not given a generator.
//! - [`PythonRandom`] yields the numbers of Python's `random` module.
//! - [`CounterRng`] has as many independent streams as one likes, for work on several threads.
//!
//! Everything here works on plain numbers and slices; the functions that make random tensors are
//! elsewhere. None of it is fit for secrets.

pub(crate) mod counter;
mod mt19937;
mod multinomial;
mod normal;
mod python;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{LazyLock, Mutex, PoisonError};

pub use counter::CounterRng;
use mt19937::Mt19937;
pub use multinomial::Probability;
use normal::BLOCK;
pub use python::PythonRandom;
pub use state::GeneratorState;

/// What can be wrong with a request for random numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RngError {
    /// `Generator::fill_randint` with an empty range.
    #[error("randint: needs low < high, got low {low} and high {high}")]
    EmptyRange {
        /// The smallest number wanted.
        low: i64,
        /// One more than the largest number wanted.
        high: i64,
    },
    /// `PythonRandom::randint` with an empty range.
    #[error("randint: needs low <= high, got low {low} and high {high}")]
    EmptyClosedRange {
        /// The smallest number wanted.
        low: i64,
        /// The largest number wanted.
        high: i64,
    },
    /// `PythonRandom::getrandbits` with too many bits.
    #[error("getrandbits: gives at most 64 bits, got k = {k}")]
    TooManyBits {
        /// The number of bits wanted.
        k: u32,
    },
    /// `Generator::multinomial` with `count` 0.
    #[error("multinomial: needs at least 1 draw, got count 0")]
    NoDraws,
    /// `Generator::multinomial` with a weight that is none.
    #[error("multinomial: weights must be finite and not negative, got {weight} at index {index}")]
    NotAWeight {
        /// Where the weight is.
        index: usize,
        /// The weight, printed.
        weight: String,
    },
    /// `Generator::multinomial` where nothing can be drawn.
    #[error("multinomial: needs a weight above 0, got {categories} weights and none is")]
    NoWeight {
        /// The number of weights.
        categories: usize,
    },
    /// `Generator::multinomial` without replacement where too little can be drawn.
    #[error(
        "multinomial: {count} draws without replacement need as many weights above 0, got \
         {positive}; draw fewer or with replacement"
    )]
    TooManyDraws {
        /// The draws wanted.
        count: usize,
        /// The number of weights above 0.
        positive: usize,
    },
    /// `Generator::multinomial` with weights too large to add up.
    #[error("multinomial: the sum of the weights overflows; divide them by the largest")]
    SumOverflows,
    /// `GeneratorState::from_bytes` with bytes that are no state.
    #[error("generator state: {reason}; give the bytes of a saved state, unchanged")]
    BadState {
        /// What is wrong with the bytes.
        reason: String,
    },
}

/// The numbers of PyTorch's CPU generator (`torch.Generator`), bit for bit.
///
/// ```
/// use chainrule::rng::Generator;
///
/// let mut generator = Generator::manual_seed(42);
/// let mut batch = [0; 4];
/// generator.fill_randint(0, 10, &mut batch)?; // torch.randint(0, 10, (4,), generator=g)
/// assert_eq!(batch, [2, 7, 6, 4]);
/// # Ok::<(), chainrule::rng::RngError>(())
/// ```
///
/// Tested against PyTorch 2.15 on x86-64 with AVX2. Integers, uniform numbers and normal f32 (16 or
/// more) have the same bits on every machine. (PyTorch itself makes other normal f32 where there is
/// no AVX2.) Normal f64 and fewer than 16 normal numbers use the system's `log`, `sin` and `cos`,
/// as PyTorch does: where that library differs, so may a last bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    seed: u64,
    engine: Mt19937,
    /// The second number of the last pair that `fill_normal_*` made for fewer than 16 elements.
    /// f32 and f64 share it, as in PyTorch.
    next_normal: Option<f64>,
}

impl Default for Generator {
    /// Seeded as `torch.Generator()` is: with 67280421310721.
    fn default() -> Self {
        Self::manual_seed(67_280_421_310_721)
    }
}

impl Generator {
    /// A generator at the beginning of the stream of `seed`, like
    /// `torch.Generator().manual_seed(seed)`. As in PyTorch only the low 32 bits of the seed
    /// choose the stream.
    pub fn manual_seed(seed: u64) -> Self {
        Self { seed, engine: Mt19937::from_word(seed as u32), next_normal: None }
    }

    /// The seed that the generator was made with (`initial_seed()` in PyTorch).
    pub fn initial_seed(&self) -> u64 {
        self.seed
    }

    /// Everything that decides what comes next, to be saved or compared.
    pub fn state(&self) -> GeneratorState {
        GeneratorState(self.clone())
    }

    /// Goes on from where [`Generator::state`] was taken.
    pub fn set_state(&mut self, state: &GeneratorState) {
        self.clone_from(&state.0);
    }

    /// 32 random bits.
    #[inline]
    pub fn random_u32(&mut self) -> u32 {
        self.engine.next_u32()
    }

    /// 64 random bits: two 32-bit draws, the first one is the high word.
    #[inline]
    pub fn random_u64(&mut self) -> u64 {
        self.engine.next_u64()
    }

    /// A uniform number of [0, 1): the low 53 bits of a 64-bit draw.
    #[inline]
    fn uniform_f64(&mut self) -> f64 {
        (self.engine.next_u64() & ((1 << 53) - 1)) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `torch.rand(n)`: uniform numbers of [0, 1), the low 24 bits of a 32-bit draw each.
    pub fn fill_uniform_f32(&mut self, out: &mut [f32]) {
        let low_bits = (1 << 24) - 1;
        // By way of i32, for which processors have a conversion.
        self.engine.fill_with(out, |w| (w & low_bits) as i32 as f32 * (1.0 / 16_777_216.0));
    }

    /// `torch.rand(n, dtype=torch.float64)`: uniform numbers of [0, 1), the low 53 bits of a 64-bit
    /// draw each.
    pub fn fill_uniform_f64(&mut self, out: &mut [f64]) {
        out.fill_with(|| self.uniform_f64());
    }

    /// `torch.randn(n)`: normal numbers of mean 0 and variance 1 (Box and Muller).
    ///
    /// The length matters, as in PyTorch: fewer than 16 numbers are made in pairs, and the second
    /// of a pair may be left for the next such call; 16 and more are made in blocks of 16, and
    /// where the length is no multiple of 16 the last 16 are drawn anew.
    pub fn fill_normal_f32(&mut self, out: &mut [f32]) {
        if out.len() < BLOCK {
            return out.fill_with(|| self.single_normal() as f32);
        }
        self.fill_uniform_f32(out);
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        normal::blocks_f32(blocks);
        if !rest.is_empty()
            && let Some(last) = out.last_chunk_mut::<BLOCK>()
        {
            self.fill_uniform_f32(last);
            normal::blocks_f32(std::slice::from_mut(last));
        }
    }

    /// `torch.randn(n, dtype=torch.float64)`; see [`Generator::fill_normal_f32`].
    pub fn fill_normal_f64(&mut self, out: &mut [f64]) {
        if out.len() < BLOCK {
            return out.fill_with(|| self.single_normal());
        }
        self.fill_uniform_f64(out);
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        normal::blocks_f64(blocks);
        if !rest.is_empty()
            && let Some(last) = out.last_chunk_mut::<BLOCK>()
        {
            self.fill_uniform_f64(last);
            normal::blocks_f64(std::slice::from_mut(last));
        }
    }

    fn single_normal(&mut self) -> f64 {
        // Adding the mean, 0, makes 0 of -0.
        self.next_normal.take().map(|kept| kept + 0.0).unwrap_or_else(|| {
            let (angle, radius) = (self.uniform_f64(), self.uniform_f64());
            let (now, later) = normal::pair(angle, radius);
            self.next_normal = Some(later);
            now
        })
    }

    /// `torch.randint(low, high, (n,))`: integers of `low .. high`, a draw modulo the width each.
    /// A width of 2^28 or more takes 64-bit draws, else 32-bit draws.
    ///
    /// # Errors
    /// If `low` is not below `high`.
    pub fn fill_randint(&mut self, low: i64, high: i64, out: &mut [i64]) -> Result<(), RngError> {
        if low >= high {
            return Err(RngError::EmptyRange { low, high });
        }
        let width = high.wrapping_sub(low) as u64;
        if width >= 1 << 28 {
            out.fill_with(|| low.wrapping_add((self.engine.next_u64() % width) as i64));
        } else {
            let width = width as u32;
            self.engine.fill_with(out, |w| low + i64::from(w % width));
        }
        Ok(())
    }

    /// `torch.empty(n).bernoulli_(p)`: 1 with probability `p`, else 0, one 64-bit draw each: whether its uniform number is below `p`.
    ///
    /// PyTorch draws so except on processors by Intel, where it takes one draw as the seed of another generator.
    pub fn fill_bernoulli(&mut self, p: f64, out: &mut [u8]) {
        const AT_ONCE: usize = 256;
        // The low 53 bits of a draw are below this where their quotient by 2^53 is below p. Both products are exact.
        let limit = (p * 9_007_199_254_740_992.0).ceil() as u64;
        let mut words = [0u32; 2 * AT_ONCE];
        for out in out.chunks_mut(AT_ONCE) {
            let words = &mut words[..2 * out.len()];
            self.engine.fill_with(words, |w| w);
            for (out, pair) in out.iter_mut().zip(words.as_chunks::<2>().0) {
                let bits = u64::from(pair[0] & 0x1f_ffff) << 32 | u64::from(pair[1]);
                *out = u8::from(bits < limit);
            }
        }
    }

    /// `torch.randperm(n)`: the numbers 0 .. n in random order.
    pub fn randperm(&mut self, n: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..n as i64).collect();
        if n < (u32::MAX / 20) as usize {
            for i in 0..n.saturating_sub(1) {
                let other = i + self.random_u32() as usize % (n - i);
                order.swap(i, other);
            }
        } else {
            self.shuffle_inside_out(&mut order);
        }
        order
    }

    /// The order in which PyTorch draws a permutation too long for 32-bit draws. `order` counts
    /// from 0, so that the swap leaves what an array filled on the way would hold.
    fn shuffle_inside_out(&mut self, order: &mut [i64]) {
        for i in 0..order.len() {
            let other = (self.random_u64() % (i as u64 + 1)) as usize;
            order.swap(i, other);
        }
    }
}

static DEFAULT: LazyLock<Mutex<Generator>> = LazyLock::new(Mutex::default);

/// `torch.manual_seed(seed)`: puts the default generator at the beginning of the stream of `seed`.
pub fn manual_seed(seed: u64) {
    with_default(|generator| *generator = Generator::manual_seed(seed));
}

/// Runs `draw` with the default generator, which all threads share and use one at a time.
///
/// A program that never calls [`manual_seed`] gets the stream of [`Generator::default`]: the same
/// numbers on each run. (PyTorch seeds its default generator anew on each run.)
///
/// `draw` must not itself ask for the default generator, not even by making a random tensor: it
/// would wait for itself.
pub fn with_default<R>(draw: impl FnOnce(&mut Generator) -> R) -> R {
    // A panic inside `draw` leaves a generator that is whole, just further on.
    draw(&mut DEFAULT.lock().unwrap_or_else(PoisonError::into_inner))
}
