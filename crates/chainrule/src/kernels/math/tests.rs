//! The oracle for f32 is the standard library's f64; for f64, identities and values of 50-digit arithmetic.

use super::*;
use crate::kernels::simd::{Level, detected};
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

/// Runs all tests of this module's parent path again in a child process at each lower level.
#[test]
fn lower_levels_pass_the_same_tests() {
    const CHILD: &str = "CHAINRULE_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let (_, kernels) = module_path!().rsplit_once("::math::").unwrap().0.split_once("::").unwrap();
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        if level > detected() {
            continue;
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["math", "softmax", "norm"].map(|module| format!("{kernels}::{module}::")))
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
}

#[test]
fn sine_and_cosine_of_f32() {
    let mut x: Vec<f32> = (0..200_000).map(|i| (i as f32 - 1e5) * 0.099_99).collect();
    x.extend((0..3000).map(|i| (f64::from(i) * std::f64::consts::FRAC_PI_2) as f32));
    x.extend([0.0, -0.0, 1e-40, 1e4, 123_456.79, -3e38, f32::MAX]);
    let mut y = vec![0.0; x.len()];
    for (f, oracle) in [(sin_slice as Slice, f64::sin as fn(f64) -> f64), (cos_slice, f64::cos)] {
        f(&x, &mut y);
        for (&x, &y) in x.iter().zip(&y) {
            let truth = oracle(x.into());
            assert!((f64::from(y) - truth).abs() <= 3e-7, "{x}: {y}, not {truth}");
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
    let cases: [Case; 7] = [
        (exp_slice, 1.0, std::f64::consts::E),
        (exp_slice, -20.0, 2.061_153_622_438_558e-9),
        (log_slice, 10.0, std::f64::consts::LN_10),
        (tanh_slice, 0.5, 0.462_117_157_260_009_76),
        (sigmoid_slice, -2.0, 0.119_202_922_022_117_56),
        (sin_slice, 1.0, 0.841_470_984_807_896_5),
        (cos_slice, 1.0, 0.540_302_305_868_139_7),
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

/// A result does not depend on where in the slice its element stands, except for the last bits: a remainder loop
/// must compute the same function.
#[test]
fn every_size_gives_the_same_bits() {
    let all: [Slice; 8] = [
        exp_slice,
        log_slice,
        tanh_slice,
        sigmoid_slice,
        sin_slice,
        cos_slice,
        sqrt_slice,
        rsqrt_slice,
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
