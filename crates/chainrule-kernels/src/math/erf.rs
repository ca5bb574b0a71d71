//! The error function and its complement.
//!
//! The polynomials were fitted for this file in 50 digits: by the Remez exchange near 0, in the
//! tail by a Chebyshev expansion of `e^(x^2) erfc(x) (x + c)` in `t = (x - c) / (x + c)`, which
//! maps the half line to a short interval.

use super::scalar::{exp_f32, mul_add_f32, poly};

/// The error function: by a polynomial near 0, elsewhere as `1 - e^-r(x)`, where r is
/// `-log(erfc x)`.
#[inline(always)]
pub fn erf_f32<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    // (erf x - x) / x in x^2 up to 0.9, to 1.5e-8 of erf.
    #[rustfmt::skip]
    let near = poly::<FMA, 6>(a * a, [
        0.128_379_15, -0.376_125_04, 0.112_819_225, -0.026_770_54, 0.004_999_050_4, -0.000_602_139,
    ]);
    let near = mul_add_f32::<FMA>(near, a, a);
    // From 3.84 on the result rounds to 1.
    let b = if 3.95 < a { 3.95 } else { a };
    // -log(erfc x) from 0.9 to 3.95, to 2e-9 of erf.
    #[rustfmt::skip]
    let r = poly::<FMA, 7>(b, [
        0.000_166_450_05, 1.127_797_1, 0.636_976_5, 0.104_113_13, -0.022_314_845, 0.003_065_37,
        -0.000_198_204_94,
    ]);
    let far = 1.0 - exp_f32::<FMA>(-r);
    let y = if a < 0.9 { near } else { far };
    f32::from_bits(y.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// `c[0] + c[1] x + ...` by Horner's rule.
#[inline(always)]
fn poly_f64<const FMA: bool, const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let mut sum = c[N - 1];
    for k in (0..N - 1).rev() {
        sum = if FMA { sum.mul_add(x, c[k]) } else { sum * x + c[k] };
    }
    sum
}

/// 1 - erf(x), subnormal above 9.19, zero above 10.05. In f64 within: the square in the exponent
/// would cost f32 its digits.
#[inline(always)]
pub fn erfc_f32<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    let a = f64::from(if 10.2 < a { 10.2 } else { a });
    // e^(a^2) erfc(a) (a + 3) in t up to 10.2, to 8e-9.
    let u = 1.0 / (a + 3.0);
    #[rustfmt::skip]
    let tail = poly_f64::<FMA, 10>((a - 3.0) * u, [
        1.074_006_906_201_080_9, -0.883_394_461_213_199_6, 0.590_228_425_271_463_4,
        -0.310_466_608_215_089_6, 0.119_527_222_165_799_31, -0.026_836_676_401_322_86,
        -0.001_216_964_436_486_725_7, 0.003_078_083_442_397_967_3, -0.000_499_071_239_600_648_7,
        -0.000_333_824_522_824_826_44,
    ]);
    // e^(-a^2) as 2^n e^r; adding 1.5 * 2^52 rounds to an integer, as it does in `scalar`.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let power = -(a * a);
    let shifted = power * std::f64::consts::LOG2_E + ROUND;
    let r = power - (shifted - ROUND) * std::f64::consts::LN_2;
    // (e^r - 1 - r) / r^2, to 2e-10 of e^r.
    #[rustfmt::skip]
    let q = poly_f64::<FMA, 6>(r, [
        0.500_000_001_345_772_7, 0.166_666_666_816_142_56, 0.041_666_465_006_040_05,
        0.008_333_310_934_448_869, 0.001_393_364_103_198_670_1, 0.000_198_909_808_697_503_27,
    ]);
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1f64.to_bits()));
    let y = (1.0 + (r + r * r * q)) * scale * (tail * u);
    (if x < 0.0 { 2.0 - y } else { y }) as f32
}

/// (erf x - x) / x for |x| up to 1, to 8e-18.
fn erf_near_0(square: f64) -> f64 {
    #[rustfmt::skip]
    const C: [f64; 12] = [
        0.128_379_167_095_512_56, -0.376_126_389_031_835_2, 0.112_837_916_709_441_85,
        -0.026_866_170_643_111_482, 0.005_223_977_606_118_337, -0.000_854_832_592_930_634,
        0.000_120_552_935_767_278_23, -1.492_471_230_077_111e-5, 1.644_713_158_213_493_8e-6,
        -1.620_631_401_862_289_5e-7, 1.371_098_214_763_559_3e-8, -7.779_472_645_983_996e-10,
    ];
    poly_f64::<false, 12>(square, C)
}

/// 1 - erf(a) for a from 0.5 on, zero above 27.3.
fn erfc_tail(a: f64) -> f64 {
    const CENTRE: f64 = 3.75;
    // e^(a^2) erfc(a) (a + 3.75) from 0.5 to 28, to 3e-17.
    #[rustfmt::skip]
    const C: [f64; 21] = [
        1.091_922_909_562_789_1, -0.958_741_576_652_909_2, 0.736_318_925_221_751_7,
        -0.490_470_291_207_726_67, 0.279_062_049_033_776_96, -0.131_955_401_176_749_3,
        0.049_118_778_615_540_114, -0.012_535_880_071_384_215, 0.000_986_338_075_343_671,
        0.000_794_823_383_087_776, -0.000_348_646_818_657_062_15, 1.059_239_433_643_761_5e-5,
        3.747_154_253_839_840_4e-5, -8.898_302_109_194_857e-6, -3.288_946_845_656_437e-6,
        1.643_399_365_103_692e-6, 2.788_703_644_152_654e-7, -2.461_280_219_867_188_6e-7,
        -2.565_328_033_758_966_8e-8, 2.619_654_220_856_517_7e-8, 2.277_428_781_072_123_3e-9,
    ];
    let a = if 28.0 < a { 28.0 } else { a };
    let tail = poly_f64::<false, 21>((a - CENTRE) / (a + CENTRE), C) / (a + CENTRE);
    // The square in two parts, the first exact: its rounding would be multiplied by up to 745.
    let high = f64::from_bits(a.to_bits() & 0xffff_ffff_0000_0000);
    let low = (a - high) * (a + high);
    (-high * high).exp() * ((-low).exp() * tail)
}

/// The error function, within 1e-15 relative.
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 1.0 {
        return x + x * erf_near_0(x * x);
    }
    // From 5.93 on the result rounds to 1.
    let y = if a < 6.0 { 1.0 - erfc_tail(a) } else { 1.0 };
    if x.is_nan() { x } else { y.copysign(x) }
}

/// 1 - erf(x), within 1e-15 relative.
pub fn erfc_f64(x: f64) -> f64 {
    if x < 0.5 {
        return 1.0 + erf_f64(-x);
    }
    erfc_tail(x)
}
