//! Elementary functions of one f32, written so that a loop over them vectorises: no branch, no
//! table, no library call.
//!
//! The polynomials are minimax fits of the relative error, made for this file with the Remez
//! exchange in 40 digits. The argument is reduced with ln 2 split in parts short enough that the
//! products with the integer are exact, so the plain path (`FMA = false`) is as accurate as the
//! fused one.
//!
//! Selects are written as `if a < b { .. }` rather than `min` and `max`: they are one instruction
//! and let NaN through.

use std::f32::consts::{LN_2, LOG2_E, LOG10_E};

/// Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// ln 2 in two parts: the first has 14 bits, so its product with an integer below 2^10 is exact.
const LN2_HI: f32 = 0.693_115_23;
const LN2_LO: f32 = 3.194_618_3e-5;

/// log10(2) in two parts: the first has 16 bits, so its product with an exponent is exact.
const LOG10_2_HI: f32 = 0.301_025_4;
const LOG10_2_LO: f32 = 4.605_039e-6;

/// `a * b + c`, fused where that is one instruction.
#[inline(always)]
pub fn mul_add_f32<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `c[0] + c[1] x + c[2] x^2 + ...` by Horner's rule.
#[inline(always)]
pub(super) fn poly<const FMA: bool, const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut sum = c[N - 1];
    for k in (0..N - 1).rev() {
        sum = mul_add_f32::<FMA>(sum, x, c[k]);
    }
    sum
}

/// Writes x as n ln 2 + r with |r| <= ln(2)/2. Returns e^r - 1, n, and the bits whose low part is
/// n.
#[inline(always)]
fn reduced_expm1<const FMA: bool>(x: f32) -> (f32, f32, u32) {
    let shifted = mul_add_f32::<FMA>(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mul_add_f32::<FMA>(n, -LN2_HI, x);
    let r = mul_add_f32::<FMA>(n, -LN2_LO, r);
    // (e^r - 1 - r) / r^2, to 1.4e-8 of e^r - 1.
    let q =
        poly::<FMA, 5>(r, [0.499_999_97, 0.166_665_43, 0.041_667_2, 0.008_366_58, 0.001_388_251]);
    (mul_add_f32::<FMA>(r * r, q, r), n, shifted.to_bits())
}

/// e^x: infinity above 88.72, subnormal below -87.33, zero below -103.97.
#[inline(always)]
pub fn exp_f32<const FMA: bool>(x: f32) -> f32 {
    // Beyond these bounds the result is infinite or zero anyway, and n must stay below 2^8.
    let x = if 89.0 < x { 89.0 } else { x };
    let zero = x < -104.5;
    let (p, _, bits) = reduced_expm1::<FMA>(if zero { -104.5 } else { x });
    // A zero that comes out of an underflow costs some processors a hundred times what this select
    // does, and masks make many.
    times_power_of_two(if zero { 0.0 } else { p + 1.0 }, bits)
}

/// `y 2^n`, where n is the low part of `bits` and |n| is below 2^8.
#[inline(always)]
fn times_power_of_two(y: f32, bits: u32) -> f32 {
    // 2^n overflows or underflows by itself, so it is applied as 2^half * 2^rest; the second
    // product rounds once.
    let n = bits << 23;
    let half = ((n as i32) >> 1) as u32 & 0xff80_0000;
    let rest = n.wrapping_sub(half);
    let one = 1f32.to_bits();
    let scaled = y * f32::from_bits(half.wrapping_add(one));
    scaled * f32::from_bits(rest.wrapping_add(one))
}

/// 2^x: infinity from 128 on, subnormal below -126, zero from -150 down. Exact for integers.
#[inline(always)]
pub fn exp2_f32<const FMA: bool>(x: f32) -> f32 {
    let x = if 128.0 < x { 128.0 } else { x };
    let zero = x < -151.0;
    let x = if zero { -151.0 } else { x };
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    // (2^r - 1) / r, to 1.6e-8 of 2^r.
    #[rustfmt::skip]
    let q = poly::<FMA, 6>(r, [
        LN_2, 0.240_225_96, 0.055_503_674, 0.009_625_504, 0.001_338_799_4, 0.000_132_892_96,
    ]);
    let y = mul_add_f32::<FMA>(r, q, 1.0);
    times_power_of_two(if zero { 0.0 } else { y }, shifted.to_bits())
}

/// e^x - 1, with its digits also where x is near 0.
#[inline(always)]
pub fn expm1_f32<const FMA: bool>(x: f32) -> f32 {
    // Beyond these bounds the result is infinite or rounds to -1.
    let a = if 89.0 < x { 89.0 } else { x };
    let a = if a < -20.0 { -20.0 } else { a };
    let (p, _, bits) = reduced_expm1::<FMA>(a);
    // 2^(n-1), since 2^n may be just beyond the range where the result is not.
    let scale = f32::from_bits((bits << 23).wrapping_add(0.5f32.to_bits()));
    let y = 2.0 * mul_add_f32::<FMA>(scale, p, scale - 0.5);
    // The halves of subnormals lose a bit, and -0 would lose its sign.
    if x.abs() < 1e-20 { x } else { y }
}

/// The hyperbolic tangent, as e / (e + 2) with e = exp(2|x|) - 1: exact in the limits at 0 and at
/// infinity.
#[inline(always)]
pub fn tanh_f32<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    // At 10 the quotient has long rounded to 1.
    let a = if 10.0 < a { 10.0 } else { a };
    let (p, _, bits) = reduced_expm1::<FMA>(2.0 * a);
    let scale = f32::from_bits((bits << 23).wrapping_add(1f32.to_bits()));
    let e = mul_add_f32::<FMA>(scale, p, scale - 1.0);
    let y = e / (e + 2.0);
    f32::from_bits(y.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// 1 / (1 + e^-x), by way of e^-|x| so that small results keep their accuracy.
#[inline(always)]
pub fn sigmoid_f32<const FMA: bool>(x: f32) -> f32 {
    let e = exp_f32::<FMA>(-x.abs());
    let top = if x < 0.0 { e } else { 1.0 };
    top / (1.0 + e)
}

/// The bits of sqrt(1/2).
const SQRT_HALF: u32 = 0x3f35_04f3;

/// Writes a normal x as 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2). Returns k and f.
#[inline(always)]
fn log_parts(x: f32) -> (f32, f32) {
    // The offset moves the border between two exponents to sqrt(1/2).
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF);
    let k = ((shifted as i32) >> 23) as f32;
    (k, f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF) - 1.0)
}

/// The same for any x above 0.
#[inline(always)]
fn log_parts_subnormal(x: f32) -> (f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let m = if subnormal { x * 8_388_608.0 } else { x };
    let bias = if subnormal { -23.0 } else { 0.0 };
    let (k, f) = log_parts(m);
    (k + bias, f)
}

/// `log(1 + f) - f + k c`, for the f of [`log_parts`].
#[inline(always)]
fn log_tail<const FMA: bool>(f: f32, k: f32, c: f32) -> f32 {
    // (log(1 + f) - f + f^2/2) / f^3, to 8e-10 of the logarithm.
    #[rustfmt::skip]
    let p = poly::<FMA, 9>(f, [
        0.333_333_13, -0.250_000_1, 0.200_021_19, -0.166_679_96, 0.142_195_52, -0.124_055_885,
        0.118_881_59, -0.116_756_54, 0.067_466_51,
    ]);
    let square = f * f;
    let small = mul_add_f32::<FMA>(k, c, square * f * p);
    mul_add_f32::<FMA>(square, -0.5, small)
}

/// `y`, the logarithm of `x`, where `x` is positive and finite, and what is due elsewhere.
#[inline(always)]
fn log_edges(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let edge = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if x > 0.0 { y } else { edge }
}

/// The natural logarithm: minus infinity at 0, NaN below.
#[inline(always)]
pub fn log_f32<const FMA: bool>(x: f32) -> f32 {
    let (k, f) = log_parts_subnormal(x);
    let small = log_tail::<FMA>(f, k, LN2_LO);
    log_edges(x, mul_add_f32::<FMA>(k, LN2_HI, f + small))
}

/// The logarithm to base 2, exact for powers of two.
#[inline(always)]
pub fn log2_f32<const FMA: bool>(x: f32) -> f32 {
    let (k, f) = log_parts_subnormal(x);
    let tail = log_tail::<FMA>(f, 0.0, 0.0);
    log_edges(x, k + mul_add_f32::<FMA>(f, LOG2_E, tail * LOG2_E))
}

/// The logarithm to base 10.
#[inline(always)]
pub fn log10_f32<const FMA: bool>(x: f32) -> f32 {
    let (k, f) = log_parts_subnormal(x);
    let tail = log_tail::<FMA>(f, 0.0, 0.0);
    let small = mul_add_f32::<FMA>(k, LOG10_2_LO, tail * LOG10_E);
    let small = mul_add_f32::<FMA>(f, LOG10_E, small);
    log_edges(x, mul_add_f32::<FMA>(k, LOG10_2_HI, small))
}

/// log(1 + x), with its digits also where x is near 0: minus infinity at -1, NaN below.
#[inline(always)]
pub fn log1p_f32<const FMA: bool>(x: f32) -> f32 {
    let u = 1.0 + x;
    let (k, f) = log_parts(u);
    // The rounding error of 1 + x goes back into f, scaled as f is. From 2^30 on nothing that
    // matters is lost.
    let lost = x - (u - 1.0);
    let down = f32::from_bits(
        1f32.to_bits().wrapping_sub(u.to_bits().wrapping_sub(SQRT_HALF) & 0xff80_0000),
    );
    let f = if u < 1e9 { mul_add_f32::<FMA>(lost, down, f) } else { f };
    let small = log_tail::<FMA>(f, k, LN2_LO);
    let y = log_edges(u, mul_add_f32::<FMA>(k, LN2_HI, f + small));
    // The result has the sign of x, which for -0 would be lost.
    f32::from_bits(y.to_bits() | (x.to_bits() & 0x8000_0000))
}
