//! The sine and the cosine of one f32, computed in f64 inside, without branch, table or library
//! call.
//!
//! Next to a multiple of pi/2 the reduced argument is small: 1e-9 at the worst f32, which an f32
//! reduction leaves with no right digit. In f64 the argument is right to 1e-16, and one rounding at
//! the end remains.
//!
//! The polynomials are minimax fits of the relative error, made for this file with the Remez
//! exchange in 40 digits.

use super::pow::{ROUND, mul_add, poly};
use std::f64::consts::FRAC_1_PI;

/// Below this size `sin_f32` and `cos_f32` are accurate; the slice functions hand anything larger
/// to the library's f64.
pub const TRIG_LIMIT: f32 = 1e4;

/// pi in two parts: the first has 40 bits, so its product with an integer below 2^13 is exact.
const PI_HI: f64 = 3.141_592_653_588_304_5;
const PI_LO: f64 = 1.488_709_496_097_324_6e-12;

/// (pi/2)^2.
const HALF_PI_SQUARE: f64 = 2.467_401_100_272_339_5;

/// Writes x as n pi + r with |r| <= pi/2. Returns r and the bits whose last is that of n.
#[inline(always)]
fn reduced<const FMA: bool>(x: f32) -> (f64, u64) {
    let x = f64::from(x);
    let shifted = mul_add::<FMA>(x, FRAC_1_PI, ROUND);
    let n = shifted - ROUND;
    let r = mul_add::<FMA>(n, -PI_HI, x);
    (mul_add::<FMA>(n, -PI_LO, r), shifted.to_bits())
}

/// y, with its sign turned if the last bit of `turns` is set.
#[inline(always)]
fn turned(y: f64, turns: u64) -> f32 {
    f64::from_bits(y.to_bits() ^ (turns << 63)) as f32
}

/// The sine, for |x| below [`TRIG_LIMIT`] (meaningless beyond).
#[inline(always)]
pub fn sin_f32<const FMA: bool>(x: f32) -> f32 {
    let (r, turns) = reduced::<FMA>(x);
    let square = r * r;
    // (sin r - r) / r^3, to 6e-9 of the sine.
    #[rustfmt::skip]
    let p = poly::<FMA, 4>(square, [
        -0.166_666_595_504_147_67, 0.008_333_066_245_885_413, -1.980_960_289_261_831_3e-4,
        2.605_780_623_460_547_3e-6,
    ]);
    // A product, which keeps the sign of zero.
    turned(r * mul_add::<FMA>(square, p, 1.0), turns)
}

/// The cosine, for |x| below [`TRIG_LIMIT`] (meaningless beyond).
#[inline(always)]
pub fn cos_f32<const FMA: bool>(x: f32) -> f32 {
    let (r, turns) = reduced::<FMA>(x);
    let square = r * r;
    // cos r / ((pi/2)^2 - r^2), to 1e-9: the factor has the zeros, so the digits stay next to them.
    #[rustfmt::skip]
    let p = poly::<FMA, 5>(square, [
        0.405_284_734_171_402_87, -0.038_386_643_464_931_63, 0.001_329_315_716_906_136_6,
        -2.410_684_448_490_977_5e-5, 2.579_241_833_634_145e-7,
    ]);
    turned((HALF_PI_SQUARE - square) * p, turns)
}
