//! The oracle is the chain rule in single steps, in f64.

use super::*;
use crate::math::tests::{SIZES, noise};

/// Expected results of a column, in f64 from the definition.
struct NormTruth {
    mean: f64,
    var: f64,
    xhat: Vec<f64>,
    dx: Vec<f64>,
    dgain: f64,
    dbias: f64,
}

const EPS: f64 = 1e-5;

/// The chain rule in single steps, as one writes it by hand: no collapsed formula.
fn truth(x: &[f64], g: &[f64], gain: f64, correction: usize) -> NormTruth {
    let n = x.len() as f64;
    let divisor = n - correction as f64;
    let mean = x.iter().sum::<f64>() / n;
    let diff: Vec<f64> = x.iter().map(|x| x - mean).collect();
    let var = diff.iter().map(|d| d * d).sum::<f64>() / divisor;
    let inv_std = (var + EPS).powf(-0.5);
    let xhat: Vec<f64> = diff.iter().map(|d| d * inv_std).collect();
    let dgain = g.iter().zip(&xhat).map(|(g, h)| g * h).sum();
    let dinv_std: f64 = g.iter().zip(&diff).map(|(g, d)| g * gain * d).sum();
    let dvar = -0.5 * (var + EPS).powf(-1.5) * dinv_std;
    let through = |(g, d): (&f64, &f64)| g * gain * inv_std + dvar * 2.0 * d / divisor;
    let ddiff: Vec<f64> = g.iter().zip(&diff).map(through).collect();
    let dmean = -ddiff.iter().sum::<f64>();
    let dx = ddiff.iter().map(|d| d + dmean / n).collect();
    NormTruth { mean, var, xhat, dx, dgain, dbias: g.iter().sum() }
}

fn close(name: &str, got: f64, truth: f64, tolerance: f64) {
    assert!((got - truth).abs() <= tolerance * (1.0 + truth.abs()), "{name}: {got} not {truth}");
}

fn check<T: Column>(n: usize, c: usize, correction: usize, affine: bool, tolerance: f64) {
    let real = |v: Vec<f64>, k: f64, plus: f64| -> Vec<T> {
        v.iter().map(|v| T::from_f64(v * k + plus)).collect()
    };
    let x = real(noise(n * c, 1), 3.0, 2.0);
    let g = real(noise(n * c, 2), 1.0, 0.1);
    let (gain, bias) = (real(noise(c, 3), 1.0, 1.5), real(noise(c, 4), 1.0, 0.0));
    let (gain_used, bias_used) = (affine.then_some(&gain[..]), affine.then_some(&bias[..]));
    let zeros = |len| vec![T::ZERO; len];
    let (mut mean, mut var, mut inv) = (zeros(c), zeros(c), zeros(c));
    batch_norm_stats(&x, n, c, correction, &mut mean, &mut var);
    inv_std(&var, T::from_f64(EPS), &mut inv);
    let (mut out, mut plain, mut xhat) = (zeros(n * c), zeros(n * c), zeros(n * c));
    let by = ColumnAffine { mean: &mean, inv_std: &inv, gain: gain_used, bias: bias_used };
    batch_norm_apply(&x, n, c, by, &mut out, Some(&mut xhat));
    batch_norm_apply(&x, n, c, by, &mut plain, None);
    assert_eq!(out, plain);
    let (mut dx, mut dgain, mut dbias) = (zeros(n * c), zeros(c), zeros(c));
    let up = BatchNormUpstream { g: &g, xhat: &xhat, inv_std: &inv, gain: gain_used, correction };
    batch_norm_grad(up, n, c, &mut dx, &mut dgain, &mut dbias);
    for j in 0..c {
        let column = |v: &[T]| (0..n).map(|i| v[i * c + j].to_f64()).collect::<Vec<_>>();
        let gain = if affine { gain[j].to_f64() } else { 1.0 };
        let bias = if affine { bias[j].to_f64() } else { 0.0 };
        let t = truth(&column(&x), &column(&g), gain, correction);
        close("mean", mean[j].to_f64(), t.mean, tolerance);
        close("var", var[j].to_f64(), t.var, tolerance);
        close("dgain", dgain[j].to_f64(), t.dgain, tolerance * n as f64);
        close("dbias", dbias[j].to_f64(), t.dbias, tolerance * n as f64);
        for i in 0..n {
            close("xhat", xhat[i * c + j].to_f64(), t.xhat[i], tolerance * 4.0);
            let y = t.xhat[i] * gain + bias;
            close("out", out[i * c + j].to_f64(), y, tolerance * 8.0);
            close("dx", dx[i * c + j].to_f64(), t.dx[i], tolerance * 8.0);
        }
    }
}

#[test]
fn statistics_values_and_gradients() {
    let widths = SIZES.into_iter().chain([2, 3, 4, 5, 10, 31, 32, 33, 47, 200]);
    for c in widths.filter(|&c| c <= 200) {
        // Three rows may lie close together, which makes their gradient ill-conditioned.
        check::<f64>(3, c, 0, true, 1e-11);
        for n in [8, 32, 33, 70] {
            for (correction, affine) in [(0, true), (1, true), (1, false)] {
                check::<f32>(n, c, correction, affine, 1e-6);
                check::<f64>(n, c, correction, affine, 1e-14);
            }
        }
    }
}

/// 200,000 rows far from zero: a single f32 sum, or E[x^2] - E[x]^2, would fail.
#[test]
fn many_rows_keep_their_accuracy() {
    let n = 200_000;
    let x: Vec<f32> = noise(n, 5).iter().map(|v| (v + 1000.0) as f32).collect();
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
    let var = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n as f64;
    let (mut m, mut v) = ([0.0f32], [0.0f32]);
    batch_norm_stats(&x, n, 1, 0, &mut m, &mut v);
    assert!((f64::from(m[0]) - mean).abs() <= 6e-8 * mean, "{} not {mean}", m[0]);
    assert!((f64::from(v[0]) - var).abs() <= 2e-6 * var, "{} not {var}", v[0]);
}

/// A column's bits depend neither on its neighbours nor on the tile it falls into.
#[test]
fn a_column_alone_gives_the_same_bits() {
    let (n, c) = (70, 57);
    let x: Vec<f32> = noise(n * c, 6).iter().map(|&v| v as f32).collect();
    let (mut mean, mut var) = (vec![0.0; c], vec![0.0; c]);
    batch_norm_stats(&x, n, c, 1, &mut mean, &mut var);
    for j in 0..c {
        let column: Vec<f32> = (0..n).map(|i| x[i * c + j]).collect();
        let (mut m, mut v) = ([0.0], [0.0]);
        batch_norm_stats(&column, n, 1, 1, &mut m, &mut v);
        assert_eq!([m[0].to_bits(), v[0].to_bits()], [mean[j].to_bits(), var[j].to_bits()]);
    }
}
