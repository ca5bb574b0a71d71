//! The normal distribution function beside the power that its density is made of: what the Gaussian
//! error linear unit and its slope need at one go.

use super::erf::erf_f64;
use super::scalar::{exp_f32, mul_add_f32, poly};

/// `Phi(x) = (1 + erf(x / sqrt 2)) / 2` within 2e-7, and `e^(-x^2 / 2)`, which is `sqrt(2 pi)`
/// times the density. One power, one division.
#[inline(always)]
pub fn normal_f32<const FMA: bool>(x: f32) -> (f32, f32) {
    let a = x.abs();
    // At 15 the power has long been 0.
    let a = if 15.0 < a { 15.0 } else { a };
    let power = exp_f32::<FMA>(a * a * -0.5);
    // e^(a^2 / 2) Phi(-a) (a + 4) in t = (a - 4) / (a + 4) up to 15, to 5e-7, and near 0 to 5e-10:
    // a weighted least-squares fit of f64 values.
    let u = 1.0 / (a + 4.0);
    #[rustfmt::skip]
    let tail = poly::<FMA, 9>((a - 4.0) * u, [
        0.755_284_85, -0.607_897_7, 0.387_142_96, -0.186_496, 0.060_391_57, -0.007_681_343, -0.003_633_959,
        0.001_780_822_4, 0.000_520_364_5,
    ]);
    let beyond = power * u * tail;
    // 1 - beyond above 0, and beyond itself below, without a branch.
    let (one, sign) = if x < 0.0 { (0.0, 1.0) } else { (1.0, -1.0) };
    (mul_add_f32::<FMA>(sign, beyond, one), power)
}

/// The same in f64.
#[inline(always)]
pub fn normal_f64(x: f64) -> (f64, f64) {
    (0.5 + 0.5 * erf_f64(x * std::f64::consts::FRAC_1_SQRT_2), (x * x * -0.5).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::erf::erfc_f64;

    /// The true value, from f64, with its digits in the lower tail too.
    fn exact(x: f32) -> (f64, f64) {
        let x = f64::from(x);
        (0.5 * erfc_f64(-x * std::f64::consts::FRAC_1_SQRT_2), (x * x * -0.5).exp())
    }

    #[test]
    fn f32_is_within_its_bound_everywhere() {
        let steps = (-1_600_000..=1_600_000).map(|i| i as f32 * 1e-5);
        for x in steps.chain([f32::MIN_POSITIVE, 1e-30, f32::MAX, -f32::MAX]) {
            let (want, power) = exact(x);
            for got in [normal_f32::<true>(x), normal_f32::<false>(x)] {
                let off = (f64::from(got.0) - want).abs();
                assert!(off <= 2e-7, "Phi({x}): {} not {want}", got.0);
                // In the lower tail the rounding of the square counts.
                let slack = 1e-6 + 6e-8 * f64::from(x * x).min(300.0);
                assert!(off <= slack * want + 1e-37, "Phi({x}): {} not {want}", got.0);
                assert!((f64::from(got.1) - power).abs() <= slack * power + 1e-37, "power at {x}");
            }
        }
    }

    #[test]
    fn edges_are_exact() {
        let inf = f32::INFINITY;
        for (x, want) in [(0.0, (0.5, 1.0)), (inf, (1.0, 0.0)), (-inf, (0.0, 0.0))] {
            let got = normal_f32::<true>(x);
            assert!((got.0 - want.0).abs() <= 6e-8 && got.1 == want.1, "{x}: {got:?}");
            let wide = normal_f64(x.into());
            assert_eq!((wide.0 as f32, wide.1 as f32), want, "{x}");
        }
        assert_eq!(normal_f32::<true>(20.0), (1.0, 0.0));
        assert_eq!(normal_f32::<false>(-20.0), (0.0, 0.0));
        assert!(normal_f32::<true>(f32::NAN).0.is_nan() && normal_f64(f64::NAN).0.is_nan());
    }
}
