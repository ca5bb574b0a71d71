//! Elements of tensors, read where they lie, and their counts by powers of two.

use chainrule_core::DType;
use chainrule_core::kernels::moments::{MomentSums, moments};
use chainrule_core::tensor::Tensor;

use crate::stats::{BINS, LOWEST};

/// Elements per part of a pass: they stay in the L1 cache.
pub(crate) const PART: usize = 1024;

/// As [`PART`], of a pass that reads each element once: the sums are put together this seldom.
pub(crate) const WHOLE: usize = 1 << 16;

/// The elements of a tensor.
pub(crate) enum Numbers<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

/// Calls `f` with the elements, which are copied only if they are of another type or not
/// contiguous.
pub(crate) fn with<R>(t: &Tensor, f: impl FnOnce(Numbers<'_>) -> R) -> R {
    let value = t.value_ref();
    match value.dtype() {
        DType::F32 => match value.slice::<f32>() {
            Some(all) => f(Numbers::F32(all)),
            None => f(Numbers::F32(&t.to_vec::<f32>())),
        },
        DType::F64 if value.slice::<f64>().is_some() => {
            f(Numbers::F64(value.slice::<f64>().unwrap_or_default()))
        }
        _ => f(Numbers::F64(&t.to_f64_vec())),
    }
}

/// A number with a fraction.
pub(crate) trait Number: MomentSums {
    /// Sign and exponent as one number below [`Number::EXPONENTS`]; the sign accounts for half of
    /// these.
    fn exponent(self) -> usize;
    /// Number of signs and exponents.
    const EXPONENTS: usize;
    /// The exponent (of 2) at which [`Number::exponent`] is zero.
    const ZERO_AT: i32;
    /// Zeros in the place of a part of a gradient that is not there.
    const NONE: &'static [Self; PART];

    #[inline]
    fn wide(self) -> f64 {
        self.to_f64()
    }
}

impl Number for f32 {
    const EXPONENTS: usize = 512;
    const NONE: &'static [f32; PART] = &[0.0; PART];
    const ZERO_AT: i32 = -127;

    #[inline]
    fn exponent(self) -> usize {
        (self.to_bits() >> 23) as usize
    }
}

impl Number for f64 {
    const EXPONENTS: usize = 4096;
    const NONE: &'static [f64; PART] = &[0.0; PART];
    const ZERO_AT: i32 = -1023;

    #[inline]
    fn exponent(self) -> usize {
        (self.to_bits() >> 52) as usize
    }
}

/// The bins above zero, those below, and one for zero.
pub(crate) const SLOTS: usize = 2 * BINS + 1;

/// The place of a finite number among [`SLOTS`].
#[inline]
pub(crate) fn slot(x: f64) -> usize {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let bin = (exponent - LOWEST).clamp(0, BINS as i32 - 1) as usize;
    let bin = if bits >> 63 == 1 { BINS + bin } else { bin };
    if x == 0.0 { SLOTS - 1 } else { bin }
}

/// Whether a number that is not zero is too small to have an exponent.
fn is_tiny<T: Number>(x: T) -> bool {
    x != T::ZERO && x.exponent().is_multiple_of(T::EXPONENTS / 2)
}

/// Counts by sign and exponent, which are the upper bits of a number: each number takes one step,
/// and exponents are assigned to bins once at the end.
pub(crate) struct Exponents {
    /// Four sets of counts, since neighbours often share a bin and would wait for each other.
    counts: Vec<[u32; 4]>,
    zero_at: i32,
    /// Numbers above and below zero that are too small for an exponent.
    tiny: [u32; 2],
}

impl Exponents {
    pub fn new<T: Number>() -> Exponents {
        Exponents { counts: vec![[0; 4]; T::EXPONENTS], zero_at: T::ZERO_AT, tiny: [0; 2] }
    }

    /// Numbers with the exponent of zeros.
    fn small(&self) -> u64 {
        let of = |at: usize| self.counts[at].iter().map(|n| u64::from(*n)).sum::<u64>();
        of(0) + of(self.counts.len() / 2)
    }

    /// Counts numbers, of which that many are exact zeros.
    pub fn add<T: Number>(&mut self, numbers: &[T], zeros: u64) {
        let before = self.small();
        let (whole, rest) = numbers.as_chunks::<4>();
        for four in whole {
            for (lane, x) in four.iter().enumerate() {
                self.counts[x.exponent()][lane] += 1;
            }
        }
        rest.iter().for_each(|x| self.counts[x.exponent()][0] += 1);
        if self.small() - before > zeros {
            for x in numbers.iter().filter(|x| is_tiny(**x)) {
                self.tiny[usize::from(*x < T::ZERO)] += 1;
            }
        }
    }

    /// Adds the counts to the bins above zero and below it.
    pub fn add_to(&self, bins: &mut [[u32; BINS]; 2]) {
        let half = self.counts.len() / 2;
        for (at, counts) in self.counts.iter().enumerate() {
            let (side, exponent) = (usize::from(at >= half), at % half);
            let count = match exponent {
                0 => self.tiny[side],
                _ => counts.iter().sum(),
            };
            if count > 0 {
                let bin = exponent as i32 + self.zero_at - LOWEST;
                let bin = &mut bins[side][bin.clamp(0, BINS as i32 - 1) as usize];
                *bin = bin.saturating_add(count);
            }
        }
    }
}

/// The sum of the squares of a tensor's elements.
pub(crate) fn squares(t: &Tensor) -> f64 {
    with(t, |all| match all {
        Numbers::F32(all) => moments(all).squares,
        Numbers::F64(all) => moments(all).squares,
    })
}

/// Whether all elements of a tensor are zero.
pub(crate) fn is_zero(t: &Tensor) -> bool {
    with(t, |all| match all {
        Numbers::F32(all) => all.iter().all(|x| *x == 0.0),
        Numbers::F64(all) => all.iter().all(|x| *x == 0.0),
    })
}
