//! Sums over numbers for statistics, in f64, each in one pass over what is in the first cache.

#[cfg(target_arch = "x86_64")]
mod avx512;

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

/// The sums over a parameter at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepMoments {
    /// Moments of the values before the update.
    pub value: Moments,
    /// Moments of the values after the update less those before.
    pub update: Moments,
    /// Moments of the gradient.
    pub gradient: Moments,
    /// The sum of products of update and gradient.
    pub slope: f64,
    /// The sum of products of this gradient and the one before.
    pub product: f64,
}

/// Numbers whose sums are taken.
pub trait MomentSums: Real {
    /// The moments of numbers.
    fn moments(x: &[Self]) -> Moments;

    /// The sums of a parameter `from` before its update and `to` after it, of its gradient and of
    /// the gradient at the step before; all are of one length.
    fn step(from: &[Self], to: &[Self], gradient: &[Self], before: &[Self]) -> StepMoments;
}

impl MomentSums for f32 {
    #[inline]
    fn moments(x: &[f32]) -> Moments {
        #[cfg(target_arch = "x86_64")]
        if super::simd::level() == super::simd::Level::Avx512 {
            // SAFETY: `level()` never exceeds what the processor was found to have.
            return unsafe { avx512::moments(x) };
        }
        moments_of(x)
    }

    #[inline]
    fn step(from: &[f32], to: &[f32], gradient: &[f32], before: &[f32]) -> StepMoments {
        #[cfg(target_arch = "x86_64")]
        if super::simd::level() == super::simd::Level::Avx512 {
            // SAFETY: as above.
            return unsafe { avx512::step(from, to, gradient, before) };
        }
        step_of(from, to, gradient, before)
    }
}

impl MomentSums for f64 {
    #[inline]
    fn moments(x: &[f64]) -> Moments {
        moments_of(x)
    }

    #[inline]
    fn step(from: &[f64], to: &[f64], gradient: &[f64], before: &[f64]) -> StepMoments {
        step_of(from, to, gradient, before)
    }
}

/// The moments of numbers.
#[inline]
pub fn moments<T: MomentSums>(x: &[T]) -> Moments {
    T::moments(x)
}

/// As [`MomentSums::step`].
#[inline]
pub fn step<T: MomentSums>(from: &[T], to: &[T], gradient: &[T], before: &[T]) -> StepMoments {
    T::step(from, to, gradient, before)
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
    /// The moments of numbers, by plain loops.
    fn moments_of[T](x: &[T]) -> Moments where [T: Real] = moments_body
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
fn add_to(all: &mut Moments, part: Moments) {
    all.sum += part.sum;
    all.squares += part.squares;
    all.largest = if part.largest > all.largest { part.largest } else { all.largest };
    all.zeros += part.zeros;
}

#[inline(always)]
fn step_body<const FMA: bool, T: Real>(
    from: &[T],
    to: &[T],
    gradient: &[T],
    before: &[T],
) -> StepMoments {
    let mut all = StepMoments::default();
    let mut moved = [T::ZERO; PART];
    let gradients = gradient.chunks(PART).zip(before.chunks(PART));
    for ((from, to), (gradient, before)) in from.chunks(PART).zip(to.chunks(PART)).zip(gradients) {
        let moved = &mut moved[..from.len()];
        for ((moved, from), to) in moved.iter_mut().zip(from).zip(to) {
            *moved = *to - *from;
        }
        add_to(&mut all.value, moments_body::<FMA, T>(from));
        add_to(&mut all.update, moments_body::<FMA, T>(moved));
        add_to(&mut all.gradient, moments_body::<FMA, T>(gradient));
        all.slope += dot_body::<FMA, T>(moved, gradient);
        all.product += dot_body::<FMA, T>(gradient, before);
    }
    all
}

vectorized! {
    /// As [`MomentSums::step`], by plain loops.
    fn step_of[T](from: &[T], to: &[T], gradient: &[T], before: &[T]) -> StepMoments
        where [T: Real] = step_body
}

#[inline(always)]
fn outside_body<const FMA: bool, T: Real>(x: &[T], low: T, high: T) -> usize {
    // Without a branch and of 32 bits, so that many are compared at once.
    x.iter().map(|x| u32::from((*x < low) | (*x > high))).sum::<u32>() as usize
}

vectorized! {
    /// Number of those below `low` or above `high`, of fewer than 2^32 numbers.
    pub fn outside[T](x: &[T], low: T, high: T) -> usize where [T: Real] = outside_body
}

#[inline(always)]
fn zero_columns_body<const FMA: bool, T: Real>(rows: &[T], left: &mut [u32]) {
    for row in rows.chunks(left.len().max(1)) {
        left.iter_mut().zip(row).for_each(|(left, x)| *left &= u32::from(*x == T::ZERO));
    }
}

vectorized! {
    /// Keeps the marks of those columns of some rows whose numbers are all zero. Marks are 0 or 1,
    /// of 32 bits, so that as many are compared at once as there are numbers in a register.
    pub fn zero_columns[T](rows: &[T], left: &mut [u32]) where [T: Real] = zero_columns_body
}

#[inline(always)]
fn outside_columns_body<const FMA: bool, T: Real>(rows: &[T], bounds: (T, T), left: &mut [u32]) {
    let (low, high) = bounds;
    for row in rows.chunks(left.len().max(1)) {
        let both = left.iter_mut().zip(row);
        both.for_each(|(left, x)| *left &= u32::from((*x < low) | (*x > high)));
    }
}

vectorized! {
    /// As [`zero_columns`], of numbers below or above the bounds.
    pub fn outside_columns[T](rows: &[T], bounds: (T, T), left: &mut [u32])
        where [T: Real] = outside_columns_body
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
    fn a_step_is_seen_as_its_parts_are() {
        for n in [0, 1, 15, 16, 17, 43, 64, 1111] {
            let from = numbers(n);
            let [to, gradient, before] =
                [17, 34, 51].map(|skip| numbers(n + skip)[skip..].to_vec());
            let moved: Vec<f32> = from.iter().zip(&to).map(|(a, b)| b - a).collect();
            let expected = StepMoments {
                value: moments(&from),
                update: moments(&moved),
                gradient: moments(&gradient),
                slope: dot(&moved, &gradient),
                product: dot(&gradient, &before),
            };
            assert_eq!(step(&from, &to, &gradient, &before), expected, "{n}");
            // Eighths have no rounding, so that the order of sums makes no difference.
            assert_eq!(step_of(&from, &to, &gradient, &before), expected, "{n}");
            let wide = [&from, &to, &gradient, &before]
                .map(|all| all.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
            assert_eq!(step(&wide[0], &wide[1], &wide[2], &wide[3]), expected, "{n}");
            assert_eq!(dot(&from, &from), expected.value.squares);
        }
    }

    #[test]
    fn sums_lose_nothing_at_any_scale() {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
        for n in [5, 100, 1000, 5003] {
            for scale in [1e-37f32, 1e-25, 1e-18, 1e-9, 1.0, 1e9, 1e18, 1e30, 1e37] {
                let x: Vec<f32> = numbers(n).iter().map(|x| (x + 0.013) * scale).collect();
                let to: Vec<f32> = x.iter().rev().copied().collect();
                // A gradient and the one before it, on scales of their own.
                let g: Vec<f32> = numbers(n).iter().map(|x| (x - 0.4) / scale.sqrt()).collect();
                let before: Vec<f32> = g.iter().map(|x| x * 1e-20 + 1e-28).collect();
                let [wide, wide_g, wide_before] = [&x, &g, &before]
                    .map(|all| all.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
                let (seen, all) = (step(&x, &to, &g, &before), moments(&x));
                assert!(close(all.squares, dot(&wide, &wide)), "{n} {scale}");
                assert_eq!(all.largest, moments(&wide).largest);
                assert!(close(seen.value.squares, dot(&wide, &wide)), "{n} {scale}");
                assert!(close(seen.gradient.squares, dot(&wide_g, &wide_g)), "{n} {scale}");
                let moved: Vec<f64> =
                    x.iter().zip(&to).map(|(from, to)| f64::from(to - from)).collect();
                assert!(close(seen.update.squares, dot(&moved, &moved)), "{n} {scale}");
                let sizes = (dot(&moved, &moved) * dot(&wide_g, &wide_g)).sqrt();
                assert!((seen.slope - dot(&moved, &wide_g)).abs() <= 1e-6 * sizes, "{n} {scale}");
                assert!(close(seen.product, dot(&wide_g, &wide_before)), "{n} {scale}");
            }
        }
    }

    #[test]
    fn those_outside_of_bounds_are_counted() {
        for n in [0, 5, 16, 100, 515] {
            let x = numbers(n);
            let plain = x.iter().filter(|x| **x < -4.0 || **x > 6.5).count();
            assert_eq!(outside(&x, -4.0, 6.5), plain);
            assert_eq!(outside(&x, f32::NEG_INFINITY, f32::INFINITY), 0);
        }
    }

    #[test]
    fn numbers_that_are_not_finite_show() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = numbers(30);
            x[11] = bad;
            let is_seen = |of: Moments| !(of.sum.is_finite() && of.squares.is_finite());
            let other = numbers(30);
            assert!(is_seen(moments(&x)), "{bad}");
            assert!(is_seen(step(&other, &x, &other, &other).update), "{bad}");
            let seen = step(&x, &other, &other, &other);
            assert!(is_seen(seen.value) && !is_seen(seen.gradient), "{bad}");
        }
    }
}
