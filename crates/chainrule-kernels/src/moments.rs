//! Sums over numbers for statistics, in f64, each in one pass over what is in the first cache.

use super::math::Real;
use super::simd::vectorized;

/// Sums that are kept side by side, so that an addition does not wait for the one before.
const LANES: usize = 16;

/// Differences that are kept at once, in the first cache.
const PART: usize = 512;

/// Sums over numbers; `sum` or `squares` is not finite where one of them is not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The sum.
    pub sum: f64,
    /// The sum of squares.
    pub squares: f64,
    /// The largest size.
    pub largest: f64,
    /// Number of exact zeros.
    pub zeros: u64,
}

/// `a * b + c`, in one instruction where there is one.
#[inline(always)]
fn fused<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    <f64 as Real>::mul_add::<FMA>(a, b, c)
}

// Sums are of 64 bits, and sizes and zeros of the width of the numbers, so that more of them fit
// into a register; each has a loop of its own over what the first one brought into the cache.
#[inline(always)]
fn moments_body<const FMA: bool, T: Real>(x: &[T]) -> Moments {
    let (mut sum, mut squares) = ([0.0f64; LANES], [0.0f64; LANES]);
    let (whole, rest) = x.as_chunks::<LANES>();
    for few in whole {
        for lane in 0..LANES {
            let x = few[lane].to_f64();
            sum[lane] += x;
            squares[lane] = fused::<FMA>(x, x, squares[lane]);
        }
    }
    let (mut largest, mut zeros) = ([T::ZERO; LANES], [0u32; LANES]);
    for few in whole {
        for lane in 0..LANES {
            let size = few[lane].abs();
            largest[lane] = if size > largest[lane] { size } else { largest[lane] };
        }
        for lane in 0..LANES {
            zeros[lane] += u32::from(few[lane] == T::ZERO);
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        let (wide, size) = (x.to_f64(), x.abs());
        sum[lane] += wide;
        squares[lane] = fused::<FMA>(wide, wide, squares[lane]);
        largest[lane] = if size > largest[lane] { size } else { largest[lane] };
        zeros[lane] += u32::from(*x == T::ZERO);
    }
    let most = largest.iter().fold(T::ZERO, |most, x| if *x > most { *x } else { most });
    Moments {
        sum: sum.iter().sum(),
        squares: squares.iter().sum(),
        largest: most.to_f64(),
        zeros: zeros.iter().map(|n| u64::from(*n)).sum(),
    }
}

vectorized! {
    /// The moments of numbers.
    pub fn moments[T](x: &[T]) -> Moments where [T: Real] = moments_body
}

#[inline(always)]
fn dot_body<const FMA: bool, T: Real>(a: &[T], b: &[T]) -> f64 {
    let mut sum = [0.0; LANES];
    let ((whole, rest), (of_b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in whole.iter().zip(of_b) {
        for lane in 0..LANES {
            sum[lane] = fused::<FMA>(a[lane].to_f64(), b[lane].to_f64(), sum[lane]);
        }
    }
    for (lane, (a, b)) in rest.iter().zip(rest_of_b).enumerate() {
        sum[lane] = fused::<FMA>(a.to_f64(), b.to_f64(), sum[lane]);
    }
    sum.iter().sum()
}

vectorized! {
    /// The sum of products of two lists of one length.
    pub fn dot[T](a: &[T], b: &[T]) -> f64 where [T: Real] = dot_body
}

#[inline(always)]
fn change_body<const FMA: bool, T: Real>(from: &[T], to: &[T], along: &[T]) -> (Moments, f64) {
    let (mut all, mut product) = (Moments::default(), 0.0);
    let mut moved = [T::ZERO; PART];
    for ((from, to), along) in from.chunks(PART).zip(to.chunks(PART)).zip(along.chunks(PART)) {
        let moved = &mut moved[..from.len()];
        for ((moved, from), to) in moved.iter_mut().zip(from).zip(to) {
            *moved = *to - *from;
        }
        let part = moments_body::<FMA, T>(moved);
        all.sum += part.sum;
        all.squares += part.squares;
        all.largest = if part.largest > all.largest { part.largest } else { all.largest };
        all.zeros += part.zeros;
        product += dot_body::<FMA, T>(moved, along);
    }
    (all, product)
}

vectorized! {
    /// The moments of `to - from`, and the sum of its products with `along`; all are of one length.
    pub fn change[T](from: &[T], to: &[T], along: &[T]) -> (Moments, f64)
        where [T: Real] = change_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919) % 101) as f32 / 8.0 - 5.0).collect()
    }

    #[test]
    fn sums_are_those_of_a_plain_loop() {
        for n in [0, 1, 15, 16, 17, 100, 515] {
            let x = numbers(n);
            let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            let plain = Moments {
                sum: wide.iter().sum(),
                squares: wide.iter().map(|x| x * x).sum(),
                largest: wide.iter().fold(0.0, |most, x| most.max(x.abs())),
                zeros: wide.iter().filter(|x| **x == 0.0).count() as u64,
            };
            // Eighths and their squares have no rounding.
            assert_eq!((moments(&x), moments(&wide)), (plain, plain));
        }
    }

    #[test]
    fn a_change_is_seen_with_its_direction() {
        let (from, to, along) =
            (numbers(43), numbers(60)[17..].to_vec(), numbers(77)[34..].to_vec());
        let moved: Vec<f32> = from.iter().zip(&to).map(|(a, b)| b - a).collect();
        let (seen, product) = change(&from, &to, &along);
        assert_eq!(seen, moments(&moved));
        assert_eq!(product, dot(&moved, &along));
        assert_eq!(dot(&from, &from), moments(&from).squares);
    }

    #[test]
    fn numbers_that_are_not_finite_show() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = numbers(30);
            x[11] = bad;
            let seen = moments(&x);
            assert!(!(seen.sum.is_finite() && seen.squares.is_finite()), "{bad}");
        }
    }
}
