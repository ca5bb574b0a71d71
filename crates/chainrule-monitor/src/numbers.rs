//! Elements of tensors, read where they lie, and what is summed over them in one pass.

use chainrule_core::DType;
use chainrule_core::tensor::Tensor;

use crate::stats::{BINS, LOWEST};

/// Elements that one part of a pass takes: what it reads stays in the first cache.
pub(crate) const PART: usize = 512;

/// Sums that are kept side by side, so that the compiler adds several numbers at once.
const LANES: usize = 8;

/// The elements of a tensor.
pub(crate) enum Numbers<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

/// Calls `f` with the elements, which are copied only where they are of another type or no
/// neighbours.
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
pub(crate) trait Number: Copy {
    fn wide(self) -> f64;
}

impl Number for f32 {
    #[inline]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Number for f64 {
    #[inline]
    fn wide(self) -> f64 {
        self
    }
}

/// The numbers of a part in `room`.
pub(crate) fn widened<'r, T: Number>(part: &[T], room: &'r mut [f64; PART]) -> &'r [f64] {
    let room = &mut room[..part.len()];
    room.iter_mut().zip(part).for_each(|(wide, x)| *wide = x.wide());
    room
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

/// Sums over numbers that are all finite.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub sum: f64,
    pub squares: f64,
    pub largest: f64,
    pub zeros: u64,
}

/// The sums of a part, or none if a number is not finite or its square is not.
pub(crate) fn moments(part: &[f64]) -> Option<Moments> {
    // Three loops over what is in the cache: together they would need too many registers.
    let (whole, rest) = part.as_chunks::<LANES>();
    let (mut sum, mut largest) = ([0.0; LANES], [0.0f64; LANES]);
    for few in whole {
        for lane in 0..LANES {
            sum[lane] += few[lane];
        }
    }
    for few in whole {
        for lane in 0..LANES {
            let size = few[lane].abs();
            largest[lane] = if size > largest[lane] { size } else { largest[lane] };
        }
    }
    let all = Moments {
        sum: sum.iter().chain(rest).sum(),
        squares: dot(part, part),
        largest: largest.iter().chain(rest).fold(0.0, |most, x| most.max(x.abs())),
        zeros: part.iter().filter(|x| **x == 0.0).count() as u64,
    };
    (all.sum.is_finite() && all.squares.is_finite()).then_some(all)
}

/// The sum of products of two parts of one length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = [0.0; LANES];
    let ((whole, rest), (of_b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in whole.iter().zip(of_b) {
        for lane in 0..LANES {
            sum[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = rest.iter().zip(rest_of_b).map(|(a, b)| a * b).sum();
    sum.iter().sum::<f64>() + rest
}

/// The sum of the squares of a tensor's elements.
pub(crate) fn squares(t: &Tensor) -> f64 {
    fn of<T: Number>(all: &[T]) -> f64 {
        let mut room = [0.0; PART];
        let parts = all.chunks(PART);
        parts
            .map(|part| {
                let part = widened(part, &mut room);
                dot(part, part)
            })
            .sum()
    }
    with(t, |all| match all {
        Numbers::F32(all) => of(all),
        Numbers::F64(all) => of(all),
    })
}
