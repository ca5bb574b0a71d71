//! The oracle for f32 is the standard library's f64; for f64, identities and values of 50-digit
//! arithmetic.

use super::*;
use crate::simd::{Level, detected};
use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

/// The sizes around the widths of the vectors.
pub(crate) const SIZES: [usize; 12] = [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 1600];

/// Deterministic numbers in (-1, 1), for the tests of other kernels too.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Runs the tests of these modules again in a child process at each lower level.
#[test]
fn lower_levels_pass_the_same_tests() {
    const CHILD: &str = "CHAINRULE_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        if level > detected() {
            continue;
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["math::", "softmax::", "norm::"])
            .env("CHAINRULE_SIMD", level.name())
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {text}", level.name());
        assert!(text.contains("the_whole_range_of_f32 ... ok"), "{}: {text}", level.name());
    }
}

type Slice = fn(&[f32], &mut [f32]);

/// Compares `f` with the oracle on every bit pattern at this stride.
fn sweep(name: &str, f: Slice, oracle: fn(f64) -> f64, stride: usize) {
    let x: Vec<f32> = (0..=u32::MAX).step_by(stride).map(f32::from_bits).collect();
    let mut y = vec![0.0; x.len()];
    f(&x, &mut y);
    for (&x, &y) in x.iter().zip(&y) {
        let truth = oracle(x.into());
        let rounded = truth as f32;
        let right = if truth.is_nan() {
            y.is_nan()
        } else if truth == 0.0 || rounded.is_infinite() {
            y.to_bits() == rounded.to_bits()
        } else if rounded.abs() < f32::MIN_POSITIVE {
            (f64::from(y) - truth).abs() <= 1.4013e-45
        } else {
            (f64::from(y) - truth).abs() <= 3e-7 * truth.abs()
        };
        assert!(right, "{name}({x:e}, bits {:#x}) = {y:e}, not {truth:e}", x.to_bits());
    }
}

fn sigmoid_oracle(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

#[test]
fn the_whole_range_of_f32() {
    // A prime, so that all low bits occur.
    const STRIDE: usize = 8191;
    sweep("exp", exp_slice, f64::exp, STRIDE);
    sweep("log", log_slice, f64::ln, STRIDE);
    sweep("tanh", tanh_slice, f64::tanh, STRIDE);
    sweep("sigmoid", sigmoid_slice, sigmoid_oracle, STRIDE);
    sweep("sqrt", sqrt_slice, f64::sqrt, STRIDE);
    sweep("rsqrt", rsqrt_slice, |x| 1.0 / x.sqrt(), STRIDE);
    sweep("exp2", exp2_slice, f64::exp2, STRIDE);
    sweep("expm1", expm1_slice, f64::exp_m1, STRIDE);
    sweep("log2", log2_slice, f64::log2, STRIDE);
    sweep("log10", log10_slice, f64::log10, STRIDE);
    sweep("log1p", log1p_slice, f64::ln_1p, STRIDE);
    sweep("erf", erf_slice, erf::erf_f64, STRIDE);
    sweep("erfc", erfc_slice, erf::erfc_f64, STRIDE);
}

/// Every float within 1000 steps of the places where something happens.
#[test]
fn the_edges_of_f32() {
    let check = |name: &str, f: Slice, oracle: fn(f64) -> f64, edges: &[f32]| {
        let near = |e: &f32| {
            (-1000..=1000).map({
                let bits = e.to_bits();
                move |d| f32::from_bits(bits.wrapping_add_signed(d))
            })
        };
        let x: Vec<f32> = edges.iter().flat_map(near).collect();
        let mut y = vec![0.0; x.len()];
        f(&x, &mut y);
        for (&x, &y) in x.iter().zip(&y) {
            let truth = oracle(x.into());
            let error = (f64::from(y) - truth).abs();
            let same = y.to_bits() == (truth as f32).to_bits() || (y.is_nan() && truth.is_nan());
            let close = error <= (3e-7 * truth.abs()).max(1.4013e-45);
            assert!(same || (close && truth != 0.0), "{name}({x:e}) = {y:e}, not {truth:e}");
        }
    };
    let edges = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 1.0, -1.0, 0.5];
    let exp_edges = [88.722_84, -87.336_54, -103.972_08, 0.346_573_6, -0.346_573_6, 89.0, -104.5];
    check("exp", exp_slice, f64::exp, &[&edges[..], &exp_edges].concat());
    check("log", log_slice, f64::ln, &[&edges[..], &[FRAC_1_SQRT_2, SQRT_2]].concat());
    check("tanh", tanh_slice, f64::tanh, &[&edges[..], &[9.010_913, 10.0, 0.173_286_8]].concat());
    check("sigmoid", sigmoid_slice, sigmoid_oracle, &[&edges[..], &exp_edges].concat());
    check("expm1", expm1_slice, f64::exp_m1, &[&edges[..], &exp_edges, &[-17.328_68]].concat());
    let exp2_edges = [127.5, 128.0, -126.0, -149.0, -149.5, -150.0, -151.0, -0.5];
    check("exp2", exp2_slice, f64::exp2, &[&edges[..], &exp2_edges].concat());
    let log_edges = [FRAC_1_SQRT_2, SQRT_2, 2.0, 10.0, f32::MAX];
    check("log2", log2_slice, f64::log2, &[&edges[..], &log_edges].concat());
    check("log10", log10_slice, f64::log10, &[&edges[..], &log_edges].concat());
    let log1p_edges = [FRAC_1_SQRT_2 - 1.0, SQRT_2 - 1.0, 1e9, 16_777_216.0, f32::MAX];
    check("log1p", log1p_slice, f64::ln_1p, &[&edges[..], &log1p_edges].concat());
    let erf_edges = [0.9, -0.9, 3.832_5, 3.95, 10.054, 9.194, 10.2, -10.2];
    check("erf", erf_slice, erf::erf_f64, &[&edges[..], &erf_edges].concat());
    check("erfc", erfc_slice, erf::erfc_f64, &[&edges[..], &erf_edges].concat());
}

/// The distance to `truth` in units in the last place of an f32 of that size.
fn ulps(y: f32, truth: f64) -> f64 {
    let unit = f64::from_bits(truth.abs().max(1.2e-38).to_bits() & 0x7ff0_0000_0000_0000);
    (f64::from(y) - truth).abs() / unit * 8_388_608.0
}

/// The f32 next to each multiple of pi/2 up to 12,000 and the two on either side of it, a stride
/// through all f32, and sizes beyond the fast path.
fn angles() -> Vec<f32> {
    let around = |m: u32| {
        let nearest = (f64::from(m) * std::f64::consts::FRAC_PI_2) as f32;
        (0..5).map(move |k| f32::from_bits(nearest.to_bits().saturating_sub(2) + k))
    };
    let mut x: Vec<f32> = (0..7_600).flat_map(around).collect();
    x.extend((0x3000_0000..1e4f32.to_bits()).step_by(1_021).map(f32::from_bits));
    x.extend((0..0x7f80_0000).step_by(65_521).map(f32::from_bits));
    x.extend([1e-40, 1e4, 9_999.999, 123_456.79, 3e38, f32::MAX]);
    let turned: Vec<f32> = x.iter().map(|x| -x).collect();
    x.extend(turned);
    x
}

#[test]
fn sine_and_cosine_of_f32() {
    let x = angles();
    let mut y = vec![0.0; x.len()];
    for (f, oracle) in [(sin_slice as Slice, f64::sin as fn(f64) -> f64), (cos_slice, f64::cos)] {
        f(&x, &mut y);
        for (&x, &y) in x.iter().zip(&y) {
            let truth = oracle(x.into());
            assert!(ulps(y, truth) <= 0.9, "{x}: {y}, not {truth}");
        }
        let mut edge = [0.0; 3];
        f(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN], &mut edge);
        assert!(edge.iter().all(|y| y.is_nan()), "{edge:?}");
    }
    let mut zero = [1.0, 1.0];
    sin_slice(&[0.0f32, -0.0], &mut zero);
    assert_eq!(zero.map(f32::to_bits), [0.0f32, -0.0].map(f32::to_bits));
}

/// 50-digit values, rounded to f64.
#[test]
fn f64_against_exact_values() {
    type Case = (fn(&[f64], &mut [f64]), f64, f64);
    let cases: [Case; 12] = [
        (exp_slice, 1.0, std::f64::consts::E),
        (exp_slice, -20.0, 2.061_153_622_438_558e-9),
        (log_slice, 10.0, std::f64::consts::LN_10),
        (tanh_slice, 0.5, 0.462_117_157_260_009_76),
        (sigmoid_slice, -2.0, 0.119_202_922_022_117_56),
        (sin_slice, 1.0, 0.841_470_984_807_896_5),
        (cos_slice, 1.0, 0.540_302_305_868_139_7),
        (exp2_slice, 0.3, 1.231_144_413_344_916_3),
        (expm1_slice, 1e-5, 1.000_005_000_016_666_8e-5),
        (log2_slice, 3.0, 1.584_962_500_721_156),
        (log10_slice, 2.0, std::f64::consts::LOG10_2),
        (log1p_slice, 1e-5, 9.999_950_000_333_332e-6),
    ];
    for (f, x, truth) in cases {
        let mut y = [0.0];
        f(&[x], &mut y);
        assert!((y[0] - truth).abs() <= 1e-15 * truth.abs(), "{x}: {} not {truth}", y[0]);
    }
    let mut y = [0.0; 4];
    exp_slice(&[f64::NEG_INFINITY, f64::INFINITY, f64::NAN, 710.0], &mut y);
    assert!(y[0] == 0.0 && y[1] == f64::INFINITY && y[2].is_nan() && y[3] == f64::INFINITY);
    sigmoid_slice(&[-745.0f64, 800.0, f64::NAN, -800.0], &mut y);
    assert!(y[0] > 0.0 && y[1] == 1.0 && y[2].is_nan() && y[3] == 0.0);
}

/// 50-digit values of x, erf x and erfc x, rounded to f64.
#[test]
fn the_error_function_of_f64() {
    let cases = [
        (1e-300, 1.128_379_167_095_512_6e-300, 1.0),
        (0.001, 0.001_128_378_790_969_236_5, 0.998_871_621_209_030_7),
        (0.3, 0.328_626_759_459_127_4, 0.671_373_240_540_872_6),
        (0.5, 0.520_499_877_813_046_5, 0.479_500_122_186_953_5),
        (0.9999, 0.842_659_278_048_759_5, 0.157_340_721_951_240_52),
        (1.0, 0.842_700_792_949_714_9, 0.157_299_207_050_285_13),
        (1.7, 0.983_790_458_590_774_5, 0.016_209_541_409_225_44),
        (2.5, 0.999_593_047_982_555, 0.000_406_952_017_444_958_9),
        (4.0, 0.999_999_984_582_742_1, 1.541_725_790_028_002e-8),
        (5.5, 0.999_999_999_999_992_7, 7.357_847_917_974_398e-15),
        (-0.4, -0.428_392_355_046_668_45, 1.428_392_355_046_668_4),
        (-3.0, -0.999_977_909_503_001_4, 1.999_977_909_503_001_5),
        (6.5, 1.0, 3.842_148_327_120_647_5e-20),
        (10.0, 1.0, 2.088_487_583_762_545e-45),
        (15.3, 1.0, 7.976_560_125_420_7e-104),
        (20.7, 1.0, 2.208_548_110_248_888_5e-188),
        (26.1, 1.0, 3.081_217_493_314_593e-298),
    ];
    for (x, erf, erfc) in cases {
        let (mut y, mut z) = ([0.0], [0.0]);
        erf_slice(&[x], &mut y);
        erfc_slice(&[x], &mut z);
        assert!((y[0] - erf).abs() <= 4e-16 * erf.abs(), "erf {x}: {} not {erf}", y[0]);
        assert!((z[0] - erfc).abs() <= 1e-15 * erfc, "erfc {x}: {} not {erfc}", z[0]);
    }
    let (inf, edges) = (f64::INFINITY, [0.0, -0.0, f64::INFINITY, -f64::INFINITY, f64::NAN]);
    let (mut y, mut z) = ([0.0; 5], [0.0; 5]);
    erf_slice(&edges, &mut y);
    erfc_slice(&edges, &mut z);
    assert_eq!(
        y[..4].iter().map(|y| y.to_bits()).collect::<Vec<_>>(),
        [0.0, -0.0, 1.0, -1.0].map(f64::to_bits)
    );
    assert_eq!(z[..4], [1.0, 1.0, 0.0, 2.0]);
    assert!(y[4].is_nan() && z[4].is_nan());
    // The last ones are subnormal.
    assert!((erf::erfc_f64(27.0) - 5.237_05e-319).abs() <= 5e-324);
    assert_eq!([erf::erfc_f64(27.5), erf::erfc_f64(-7.0), erf::erfc_f64(inf)], [0.0, 2.0, 0.0]);
}

/// A result does not depend on where in the slice its element stands, except for the last bits: a
/// remainder loop must compute the same function.
#[test]
fn every_size_gives_the_same_bits() {
    let all: [Slice; 15] = [
        exp_slice,
        log_slice,
        tanh_slice,
        sigmoid_slice,
        sin_slice,
        cos_slice,
        sqrt_slice,
        rsqrt_slice,
        exp2_slice,
        expm1_slice,
        log2_slice,
        log10_slice,
        log1p_slice,
        erf_slice,
        erfc_slice,
    ];
    for n in SIZES {
        let x: Vec<f32> = noise(n, 1).iter().map(|v| (v * 20.0 + 20.5) as f32).collect();
        for f in all {
            let mut whole = vec![0.0; n];
            f(&x, &mut whole);
            for (i, &y) in whole.iter().enumerate() {
                let mut one = [0.0];
                f(&x[i..=i], &mut one);
                assert_eq!(y.to_bits(), one[0].to_bits(), "element {i} of {n}");
            }
        }
    }
}

/// Bases and exponents that have a rule of their own in C99, and plain ones.
const BASES: [f32; 19] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.7,
    -3.7,
    1e20,
    5.5e-20,
    -1e-20,
    1e-40,
    3e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1.000_000_1,
];
const EXPONENTS: [f32; 18] = [
    0.0,
    -0.0,
    1.0,
    2.0,
    3.0,
    -1.0,
    -2.0,
    0.5,
    -0.5,
    4.0,
    -3.0,
    5.0,
    1.7,
    -1.7,
    1e9,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Equal as C99 asks, to 3e-7 in finite results. The f64 power is the oracle.
fn assert_power(x: f32, e: f32, y: f32) {
    let truth = f64::from(x).powf(f64::from(e));
    let rounded = truth as f32;
    let right = if truth.is_nan() {
        y.is_nan()
    } else if truth == 0.0 || rounded.is_infinite() || rounded == 0.0 {
        y.to_bits() == rounded.to_bits()
    } else {
        (f64::from(y) - truth).abs() <= (3e-7 * truth.abs()).max(1.4013e-45)
    };
    assert!(right, "{x:e} ^ {e:e} = {y:e}, not {truth:e}");
}

#[test]
fn powers() {
    let random: Vec<f32> = noise(129, 4).iter().map(|v| (v * 8.0) as f32).collect();
    let bases = [&BASES[..], &random].concat();
    for e in EXPONENTS {
        let mut y = vec![0.0; bases.len()];
        pow_splat(&bases, e, &mut y);
        bases.iter().zip(&y).for_each(|(&x, &y)| assert_power(x, e, y));
        pow(&bases, &vec![e; bases.len()], &mut y);
        bases.iter().zip(&y).for_each(|(&x, &y)| assert_power(x, e, y));
        // In f64 the short cuts agree with the power function to a few units in the last place.
        let wide: Vec<f64> = bases.iter().map(|&x| x.into()).collect();
        let mut y = vec![0.0; wide.len()];
        pow_splat(&wide, e.into(), &mut y);
        for (&x, &y) in wide.iter().zip(&y) {
            let truth = x.powf(e.into());
            let same = y.to_bits() == truth.to_bits() || (y.is_nan() && truth.is_nan());
            assert!(same || (y - truth).abs() <= 1e-15 * truth.abs(), "{x:e} ^ {e:e}: {y:e}");
        }
    }
}

/// Half a unit in the last place and a little, with the f64 power as the oracle.
#[test]
fn powers_in_f32_are_rounded_from_f64() {
    let (x, e) = (noise(200_000, 8), noise(200_000, 9));
    let x: Vec<f32> = x.iter().map(|x| (x.abs() * 20.0 + 1e-3) as f32).collect();
    let e: Vec<f32> = e.iter().map(|e| (e * 25.0) as f32).collect();
    let mut y = vec![0.0; x.len()];
    pow(&x, &e, &mut y);
    let mut off = 0;
    for ((&x, &e), &y) in x.iter().zip(&e).zip(&y) {
        let truth = f64::from(x).powf(f64::from(e));
        let nearest = truth as f32;
        if y == nearest {
            continue;
        }
        off += 1;
        let unit = f64::from(nearest.next_up()) - f64::from(nearest);
        assert!(
            (f64::from(y) - truth).abs() < 0.5005 * unit,
            "{x:e} ^ {e:e} = {y:e}, not {truth:e}"
        );
    }
    assert!(off < x.len() / 1_000, "{off} are not the nearest");
    // One base or one exponent takes the same steps as many.
    let mut one = vec![0.0; e.len()];
    pow_of_splat(x[0], &e, &mut one);
    pow(&vec![x[0]; e.len()], &e, &mut y);
    assert_eq!(one, y);
    pow_splat(&x, e[0], &mut one);
    pow(&x, &vec![e[0]; x.len()], &mut y);
    assert_eq!(one, y);
}
