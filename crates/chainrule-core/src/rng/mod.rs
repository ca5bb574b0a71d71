//! Reproducible random numbers, equal to those of the programs that one compares with.
//!
//! - [`Generator`] yields the bits of PyTorch's CPU generator. [`manual_seed`] and [`with_default`]
//!   seed and use the one that everything takes which is not given a generator.
//! - [`PythonRandom`] yields the numbers of Python's `random` module.
//! - [`CounterRng`] has as many independent streams as one likes, for work on several threads.
//!
//! Everything here works on plain numbers and slices; the functions that make random tensors are
//! elsewhere. None of it is fit for secrets.

pub(crate) mod mt19937;
mod multinomial;
mod normal;
mod python;
mod state;
#[allow(missing_docs, reason = "for the layers above alone")]
mod stream;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub use chainrule_kernels::counter::CounterRng;
pub use multinomial::Probability;
pub use python::PythonRandom;
pub use state::GeneratorState;
#[doc(hidden)]
pub use stream::Stream;

/// An invalid request for random numbers.
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
        /// Index of the weight.
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
        /// The fault of the bytes.
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
///
/// A clone goes its own way from where this one is. A program that was traced with a generator
/// draws from that very generator, so that the two can take turns. While a trace is on, tensors can
/// be drawn ([`Tensor::rand`](crate::Tensor::rand), dropout, ...), which become instructions; plain
/// numbers can not: the methods of this type panic, since a program would have the same numbers in
/// each run.
#[derive(Debug)]
pub struct Generator {
    stream: Arc<Mutex<Stream>>,
    /// Later ones have larger numbers.
    number: u64,
}

impl Default for Generator {
    /// Seeded as `torch.Generator()` is: with 67280421310721.
    fn default() -> Self {
        Self::manual_seed(67_280_421_310_721)
    }
}

impl Clone for Generator {
    #[track_caller]
    fn clone(&self) -> Self {
        Self::of(self.open().clone())
    }
}

impl PartialEq for Generator {
    /// Whether what comes next is the same.
    fn eq(&self, other: &Self) -> bool {
        let one = self.snapshot();
        one == other.snapshot()
    }
}

thread_local! {
    /// Whether a trace is on, in which plain numbers would become constants.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Forbids drawing plain numbers on this thread, or allows it again; returns whether it was
/// forbidden before.
pub(crate) fn close(on: bool) -> bool {
    CLOSED.replace(on)
}

impl Generator {
    fn of(stream: Stream) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { stream: Arc::new(Mutex::new(stream)), number }
    }

    /// A generator at the beginning of the stream of `seed`, like
    /// `torch.Generator().manual_seed(seed)`. As in PyTorch only the low 32 bits of the seed
    /// choose the stream.
    pub fn manual_seed(seed: u64) -> Self {
        Self::of(Stream::of(seed))
    }

    /// Another handle of the same stream.
    #[doc(hidden)]
    pub fn share(&self) -> Self {
        Self { stream: self.stream.clone(), number: self.number }
    }

    /// The number of this generator: later ones have larger numbers.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The stream, whether or not a trace is on.
    #[doc(hidden)]
    pub fn lock(&self) -> MutexGuard<'_, Stream> {
        // A panic while it is locked leaves a valid stream, just further along.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its position in the stream, whether or not a trace is on.
    #[doc(hidden)]
    pub fn snapshot(&self) -> Stream {
        self.lock().clone()
    }

    #[inline]
    #[track_caller]
    fn open(&self) -> MutexGuard<'_, Stream> {
        if CLOSED.get() {
            refuse()
        }
        self.lock()
    }

    /// The seed that the generator was made with (`initial_seed()` in PyTorch).
    pub fn initial_seed(&self) -> u64 {
        self.lock().seed
    }

    /// Everything that decides what comes next, to be saved or compared.
    #[track_caller]
    pub fn state(&self) -> GeneratorState {
        GeneratorState(self.open().clone())
    }

    /// Goes on from where [`Generator::state`] was taken.
    #[track_caller]
    pub fn set_state(&mut self, state: &GeneratorState) {
        self.open().clone_from(&state.0);
    }

    /// 32 random bits.
    #[inline]
    #[track_caller]
    pub fn random_u32(&mut self) -> u32 {
        self.open().random_u32()
    }

    /// 64 random bits: two 32-bit draws, the first one is the high word.
    #[inline]
    #[track_caller]
    pub fn random_u64(&mut self) -> u64 {
        self.open().random_u64()
    }

    /// `torch.rand(n)`: uniform numbers of [0, 1), the low 24 bits of a 32-bit draw each.
    #[track_caller]
    pub fn fill_uniform_f32(&mut self, out: &mut [f32]) {
        self.open().fill_uniform_f32(out);
    }

    /// `torch.rand(n, dtype=torch.float64)`: uniform numbers of [0, 1), the low 53 bits of a 64-bit
    /// draw each.
    #[track_caller]
    pub fn fill_uniform_f64(&mut self, out: &mut [f64]) {
        self.open().fill_uniform_f64(out);
    }

    /// `torch.randn(n)`: normal numbers of mean 0 and variance 1 (Box and Muller).
    ///
    /// The length matters, as in PyTorch: fewer than 16 numbers are made in pairs, and the second
    /// of a pair may be left for the next such call; 16 and more are made in blocks of 16, and
    /// where the length is no multiple of 16 the last 16 are drawn anew.
    #[track_caller]
    pub fn fill_normal_f32(&mut self, out: &mut [f32]) {
        self.open().fill_normal_f32(out);
    }

    /// `torch.randn(n, dtype=torch.float64)`; see [`Generator::fill_normal_f32`].
    #[track_caller]
    pub fn fill_normal_f64(&mut self, out: &mut [f64]) {
        self.open().fill_normal_f64(out);
    }

    /// `torch.randint(low, high, (n,))`: integers of `low .. high`, a draw modulo the width each.
    /// A width of 2^28 or more takes 64-bit draws, else 32-bit draws.
    ///
    /// # Errors
    /// If `low` is not below `high`.
    #[track_caller]
    pub fn fill_randint(&mut self, low: i64, high: i64, out: &mut [i64]) -> Result<(), RngError> {
        self.open().fill_randint(low, high, out)
    }

    /// `torch.empty(n).bernoulli_(p)`: 1 with probability `p`, else 0, one 64-bit draw each:
    /// whether its uniform number is below `p`.
    ///
    /// PyTorch draws so except on processors by Intel, where it takes one draw as the seed of
    /// another generator.
    #[track_caller]
    pub fn fill_bernoulli(&mut self, p: f64, out: &mut [u8]) {
        self.open().fill_bernoulli(p, out);
    }

    /// `torch.randperm(n)`: the numbers 0 .. n in random order.
    #[track_caller]
    pub fn randperm(&mut self, n: usize) -> Vec<i64> {
        self.open().randperm(n)
    }

    /// `torch.multinomial(probs, count, replacement)` of one row: `count` indices of `probs`, drawn
    /// with the given weights, which need not add up to 1.
    ///
    /// One draw, and draws without replacement, take one f64 uniform u per category and choose the
    /// greatest `probs / q`, where q = -log(1 - u) is exponential and rounded to the weights' type.
    /// Several draws with replacement search the running sum of the weights, one f64 uniform each.
    ///
    /// A category of weight 0 is never drawn. (PyTorch draws one without replacement where the
    /// positive weights run out: here that is an error.)
    ///
    /// # Errors
    /// If `count` is 0, a weight is negative, infinite or NaN, no weight is positive, fewer weights
    /// are positive than draws are asked without replacement, or the weights' sum overflows.
    #[track_caller]
    pub fn multinomial<P: Probability>(
        &mut self,
        probs: &[P],
        count: usize,
        replacement: bool,
    ) -> Result<Vec<i64>, RngError> {
        self.open().multinomial(probs, count, replacement)
    }
}

#[cold]
#[track_caller]
fn refuse() -> ! {
    let why = "a generator is used for plain numbers inside a trace, and the program would have the same numbers in each run; draw tensors, which \
               become instructions (Tensor::rand, randn, randint, randperm, dropout), or draw before the trace";
    panic!("Generator: {why}")
}

static DEFAULT: LazyLock<Mutex<Generator>> = LazyLock::new(Mutex::default);

/// `torch.manual_seed(seed)`: puts the default generator at the beginning of the stream of `seed`.
pub fn manual_seed(seed: u64) {
    // The same generator: programs hold it.
    with_default(|generator| *generator.open() = Stream::of(seed));
}

/// Runs `draw` with the default generator, which all threads share and use one at a time.
///
/// A program that never calls [`manual_seed`] gets the stream of [`Generator::default`]: the same
/// numbers on each run. (PyTorch seeds its default generator anew on each run.)
///
/// `draw` must not itself ask for the default generator, not even by making a random tensor: it
/// would wait for itself.
pub fn with_default<R>(draw: impl FnOnce(&mut Generator) -> R) -> R {
    // A panic inside `draw` leaves a valid generator, just further along.
    draw(&mut DEFAULT.lock().unwrap_or_else(PoisonError::into_inner))
}
