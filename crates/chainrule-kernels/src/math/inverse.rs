//! Inverse functions of one f64 for ops that are rarely hot. The standard library's inverse
//! hyperbolic functions lose digits near 1 and overflow in between; it has no inverse error
//! function.

use super::erf::{erf_f64, erfc_f64};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, PI};

/// From here on `x^2 + 1` and `x^2 - 1` round to `x^2`.
const LARGE: f64 = 268_435_456.0;

/// The inverse hyperbolic sine.
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let y = if LARGE < a {
        a.ln() + LN_2
    } else {
        // log(a + sqrt(a^2 + 1)), with the 1 taken out of the root.
        (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p()
    };
    y.copysign(x)
}

/// The inverse hyperbolic cosine: NaN below 1.
pub fn acosh(x: f64) -> f64 {
    if LARGE < x {
        return x.ln() + LN_2;
    }
    let above = x - 1.0;
    let y = (above + (above * (above + 2.0)).sqrt()).ln_1p();
    if x < 1.0 { f64::NAN } else { y }
}

/// The inverse hyperbolic tangent: infinite at 1 and -1, NaN beyond.
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// The inverse error function, within 1e-14 relative: infinite at 1 and -1, NaN beyond.
///
/// The start is Winitzki's formula ("A handy approximation for the error function and its inverse",
/// 2008), good to 2e-3; each of the steps after Halley triples the digits.
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || a.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    const W: f64 = 0.147;
    let l = -(-a * a).ln_1p();
    let half = 2.0 / (PI * W) - 0.5 * l;
    // sqrt(sqrt(half^2 + l / W) - half), as a quotient where that would cancel.
    let root = (half * half + l / W).sqrt();
    let mut y = (if 0.0 < half { l / W / (root + half) } else { root - half }).sqrt();
    if y < 1e-8 {
        // erf(y) is a multiple of y.
        return x / FRAC_2_SQRT_PI;
    }
    for _ in 0..3 {
        // Near 1 the digits are in the complements; 1 - a is exact there.
        let off = if a < 0.5 { erf_f64(y) - a } else { (1.0 - a) - erfc_f64(y) };
        let newton = off * (y * y).exp() / FRAC_2_SQRT_PI;
        y -= newton / (1.0 + y * newton);
    }
    y.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50-digit values, rounded to f64.
    #[test]
    fn inverses_against_exact_values() {
        type InverseCase = (fn(f64) -> f64, f64, f64);
        #[rustfmt::skip]
        let cases: [InverseCase; 38] = [
            (asinh, 1e-300, 1.0e-300),
            (asinh, 1e-9, 1.0e-9),
            (asinh, 0.3, 0.295_673_047_563_422_44),
            (asinh, -1.0, -0.881_373_587_019_543),
            (asinh, 7.5, 2.712_465_305_184_344),
            (asinh, 1e6, 14.508_657_738_524_47),
            (asinh, -3e9, -22.515_025_306_174_465),
            (asinh, 1e300, 691.468_675_078_773_7),
            (asinh, 1.7e308, 710.419_984_073_788_2),
            (acosh, 1.000_000_000_1, 1.414_213_620_867_586_2e-5),
            (acosh, 1.003, 0.077_440_315_067_075_77),
            (acosh, 1.5, 0.962_423_650_119_206_9),
            (acosh, 2.0, 1.316_957_896_924_816_8),
            (acosh, 40.0, 4.381_870_348_040_067),
            (acosh, 1e7, 16.811_242_831_518_264),
            (acosh, 3e9, 22.515_025_306_174_465),
            (acosh, 1.7e308, 710.419_984_073_788_2),
            (atanh, 1e-300, 1.0e-300),
            (atanh, 1e-9, 1.0e-9),
            (atanh, 0.1, 0.100_335_347_731_075_58),
            (atanh, -0.5, -0.549_306_144_334_054_9),
            (atanh, 0.75, 0.972_955_074_527_656_6),
            (atanh, -0.999_999, -7.254_328_619_247_669),
            (atanh, 0.999_999_999_999_9, 15.313_221_246_314_33),
            (erfinv, 1e-300, 8.862_269_254_527_58e-301),
            (erfinv, 3e-9, 2.658_680_776_358_274e-9),
            (erfinv, 1e-8, 8.862_269_254_527_58e-9),
            (erfinv, 0.001, 0.000_886_227_157_466_552_1),
            (erfinv, 0.1, 0.088_855_990_494_257_69),
            (erfinv, -0.3, -0.272_462_714_726_754_3),
            (erfinv, 0.499_9, 0.476_825_023_625_427_8),
            (erfinv, 0.5, 0.476_936_276_204_469_9),
            (erfinv, 0.75, 0.813_419_847_597_618_5),
            (erfinv, -0.9, -1.163_087_153_676_674_3),
            (erfinv, 0.99, 1.821_386_367_718_449_4),
            (erfinv, 0.999_999, 3.458_910_737_275_499),
            (erfinv, 0.999_999_999_9, 4.572_824_958_544_925),
            (erfinv, 0.999_999_999_999_999_9, 5.863_584_748_755_167_6),
        ];
        for (f, x, truth) in cases {
            let error = (f(x) - truth).abs() / truth.abs();
            assert!(error <= 6e-16, "{x:e}: {} not {truth}, off by {error:e}", f(x));
        }
    }

    #[test]
    fn ends_and_beyond() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let same = |f: fn(f64) -> f64, x: f64, want: f64| {
            let y = f(x);
            assert!(y.to_bits() == want.to_bits() || (y.is_nan() && want.is_nan()), "{x}: {y}");
        };
        for f in [asinh, atanh, erfinv] {
            same(f, 0.0, 0.0);
            same(f, -0.0, -0.0);
            same(f, nan, nan);
        }
        same(asinh, inf, inf);
        same(asinh, -inf, -inf);
        for (x, want) in [(1.0, 0.0), (inf, inf), (0.99, nan), (-inf, nan), (-3e9, nan), (nan, nan)]
        {
            same(acosh, x, want);
        }
        for f in [atanh, erfinv] {
            for (x, want) in
                [(1.0, inf), (-1.0, -inf), (1.1, nan), (-2.0, nan), (inf, nan), (-inf, nan)]
            {
                same(f, x, want);
            }
        }
    }

    #[test]
    fn erfinv_undoes_erf() {
        for i in 1..2000 {
            let y = f64::from(i) * 0.002;
            // Rounding of erf moves y by the inverse of its slope.
            let lost = 1e-16 * (y * y).exp();
            assert!((erfinv(erf_f64(y)) - y).abs() <= 1e-14 * y + 2.0 * lost, "{y}");
        }
    }
}
