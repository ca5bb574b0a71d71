//! Powers over slices.
//!
//! The special cases are C99's: 0^0 and NaN^0 are 1, a negative base takes an integer exponent and
//! is NaN with any other, and a root of -0 or minus infinity is positive. (PyTorch's root of minus
//! infinity, `x ** 0.5`, is NaN.)

use super::{Real, map, map2, vectorized};
use crate::simd::array;
use std::f64::consts::{LN_2, LOG2_E};

/// The exponents that have a loop of their own; the choice is made once for a whole slice.
#[derive(Clone, Copy)]
enum Exponent<T> {
    Zero,
    One,
    Two,
    Three,
    Half,
    MinusOne,
    MinusTwo,
    MinusHalf,
    Other(T),
}

impl<T: Real> Exponent<T> {
    fn of(e: T) -> Self {
        match e.to_f64() {
            0.0 => Self::Zero,
            1.0 => Self::One,
            2.0 => Self::Two,
            3.0 => Self::Three,
            0.5 => Self::Half,
            -1.0 => Self::MinusOne,
            -2.0 => Self::MinusTwo,
            -0.5 => Self::MinusHalf,
            _ => Self::Other(e),
        }
    }
}

/// The square root as C99's `pow` has it: `sqrt` differs at -0 and at minus infinity.
#[inline(always)]
fn root<T: Real>(x: T) -> T {
    let y = (x + T::ZERO).sqrt();
    if x == -T::INFINITY { T::INFINITY } else { y }
}

#[inline(always)]
fn pow_splat_body<const FMA: bool, T: Real>(x: &[T], e: T, out: &mut [T]) {
    match Exponent::of(e) {
        Exponent::Zero => out.fill(T::ONE),
        Exponent::One => out.copy_from_slice(x),
        Exponent::Two => map(x, out, |x| x * x),
        Exponent::Three => map(x, out, |x| x * x * x),
        Exponent::Half => map(x, out, root),
        Exponent::MinusOne => map(x, out, |x| T::ONE / x),
        // Not 1 / (x * x), whose square leaves the range long before the result does.
        Exponent::MinusTwo => map(x, out, |x| {
            let inverse = T::ONE / x;
            inverse * inverse
        }),
        Exponent::MinusHalf => map(x, out, |x| T::ONE / root(x)),
        Exponent::Other(e) => map(x, out, |x| x.pow::<FMA>(e)),
    }
}

#[inline(always)]
fn pow_of_splat_body<const FMA: bool, T: Real>(x: T, e: &[T], out: &mut [T]) {
    map(e, out, |e| x.pow::<FMA>(e));
}

#[inline(always)]
fn pow_body<const FMA: bool, T: Real>(x: &[T], e: &[T], out: &mut [T]) {
    map2(x, e, out, |x, e| x.pow::<FMA>(e));
}

vectorized! {
    /// `out = x ^ e` with one exponent: 0, 1, 2, 3, -1, -2, 0.5 and -0.5 without a call of the
    /// power function.
    pub fn pow_splat[T](x: &[T], e: T, out: &mut [T]) where [T: Real] = pow_splat_body
}
vectorized! {
    /// `out = x ^ e` of one base.
    pub fn pow_of_splat[T](x: T, e: &[T], out: &mut [T]) where [T: Real] = pow_of_splat_body
}
vectorized! {
    /// `out = x ^ e`, element by element.
    pub fn pow[T](x: &[T], e: &[T], out: &mut [T]) where [T: Real] = pow_body
}

/// 1.5 * 2^52: added to a number of a smaller size, it leaves the nearest integer in the low bits.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;
const SQRT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
const MANTISSA: u64 = (1 << 52) - 1;
const BIAS: u64 = 1023;

#[inline(always)]
pub(super) fn mul_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `c[0] + c[1] x + ...`
#[inline(always)]
pub(super) fn poly<const FMA: bool, const N: usize>(x: f64, c: [f64; N]) -> f64 {
    c[..N - 1].iter().rev().fold(c[N - 1], |sum, &c| mul_add::<FMA>(sum, x, c))
}

/// `log2(x)` of a positive number, to 1e-13 relative; that of 0 is minus infinity.
///
/// In f64, where also the smallest f32 is a normal number. Only shifts that AVX2 has for 64 bits.
#[inline(always)]
fn log2_wide<const FMA: bool>(x: f64) -> f64 {
    // x = 2^k m, with m from sqrt(1/2) to sqrt(2).
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(BIAS << 52);
    let whole = 2f64.powi(52);
    let k = f64::from_bits((shifted >> 52) | whole.to_bits()) - (whole + BIAS as f64);
    let m = f64::from_bits((shifted & MANTISSA) + SQRT_HALF);
    // log m = 2 artanh((m - 1) / (m + 1)); the first term left out is below 4e-14 of the sum.
    let s = (m - 1.0) / (m + 1.0);
    let series = poly::<FMA, 8>(s * s, array(|i| 2.0 * LOG2_E / (2 * i + 1) as f64));
    let log = mul_add::<FMA>(s, series, k);
    let log = if x == f64::INFINITY { x } else { log };
    if x == 0.0 { -f64::INFINITY } else { log }
}

/// `2^p` for a size of at most 200, to 1e-11 relative.
#[inline(always)]
fn exp2_wide<const FMA: bool>(p: f64) -> f64 {
    let shifted = p + ROUND;
    let r = p - (shifted - ROUND);
    let q = poly::<FMA, 10>(r * LN_2, INVERSE_FACTORIALS);
    q * f64::from_bits(shifted.to_bits().wrapping_add(BIAS) << 52)
}

const INVERSE_FACTORIALS: [f64; 10] = {
    let mut out = [1.0; 10];
    let mut i = 1;
    while i < 10 {
        out[i] = out[i - 1] / i as f64;
        i += 1;
    }
    out
};

/// `x^e` with the special cases of C99's `pow`, by way of `2^(e log2 |x|)` in f64: rounded right
/// but for one of some thousand results, whose rest is within 1e-4 of a half of the last place.
#[inline(always)]
pub(super) fn pow_f32<const FMA: bool>(x: f32, e: f32) -> f32 {
    let log = log2_wide::<FMA>(f64::from(x.abs()));
    let log = if x.is_nan() { f64::NAN } else { log };
    // 1^e and x^0 are 1 whatever the other is.
    let p = if e == 0.0 || log == 0.0 { 0.0 } else { f64::from(e) * log };
    // Beyond these bounds the result is 0 or infinite in f32.
    let p = if p > 200.0 { 200.0 } else { p };
    let p = if p < -200.0 { -200.0 } else { p };
    let y = exp2_wide::<FMA>(p) as f32;
    // From 2^24 on each float is an even integer.
    let half = e * 0.5;
    let integer = e.trunc() == e;
    let odd = integer && half.trunc() != half && e.abs() < 16_777_216.0;
    let sign = if odd { x.to_bits() & 0x8000_0000 } else { 0 };
    let y = f32::from_bits(y.to_bits() | sign);
    if x < 0.0 && !integer && x != f32::NEG_INFINITY { f32::NAN } else { y }
}
