//! The oracle is the definition in f64, written without the row kernels.

use super::*;
use crate::math::tests::noise;

const SHAPES: [(usize, usize); 16] = [
    (0, 5),
    (1, 1),
    (3, 1),
    (2, 7),
    (3, 8),
    (5, 9),
    (32, 10),
    (4, 15),
    (4, 16),
    (4, 17),
    (32, 27),
    (70, 27),
    (3, 127),
    (3, 129),
    (2, 1024),
    (2, 5003),
];

/// f32 numbers in (-8, 8), as f32 and as f64.
fn logits(count: usize, seed: u64) -> (Vec<f32>, Vec<f64>) {
    let x: Vec<f32> = noise(count, seed).iter().map(|v| (v * 8.0) as f32).collect();
    let wide = x.iter().map(|&x| x.into()).collect();
    (x, wide)
}

/// log-sum-exp of a row in f64.
fn lse(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + x.iter().map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// Runs an f32 and an f64 kernel and compares both with the oracle, absolutely.
fn compare(name: &str, narrow: &[f32], wide: &[f64], truth: &[f64], tolerance: f64) {
    for (i, ((&narrow, &wide), &truth)) in narrow.iter().zip(wide).zip(truth).enumerate() {
        let (off, off_wide) = ((f64::from(narrow) - truth).abs(), (wide - truth).abs());
        assert!(off <= tolerance, "{name}, f32, {i}: {narrow} not {truth}");
        assert!(off_wide <= tolerance * 1e-8, "{name}, f64, {i}: {wide} not {truth}");
    }
}

#[test]
fn values() {
    for (rows, n) in SHAPES {
        let (x, xd) = logits(rows * n, 7);
        let sums: Vec<f64> = xd.chunks(n).map(lse).collect();
        let logp: Vec<f64> = (0..rows * n).map(|i| xd[i] - sums[i / n]).collect();
        let p: Vec<f64> = logp.iter().map(|v| v.exp()).collect();
        let (mut y, mut yd) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        softmax_rows(&x, n, &mut y);
        softmax_rows(&xd, n, &mut yd);
        compare("softmax", &y, &yd, &p, 3e-7);
        log_softmax_rows(&x, n, &mut y);
        log_softmax_rows(&xd, n, &mut yd);
        compare("log_softmax", &y, &yd, &logp, 2e-6);
        let (mut s, mut sd) = (vec![0.0; rows], vec![0.0; rows]);
        logsumexp_rows(&x, n, &mut s);
        logsumexp_rows(&xd, n, &mut sd);
        compare("logsumexp", &s, &sd, &sums, 2e-6);

        let targets: Vec<i64> = (0..rows).map(|row| (row * 5 % n) as i64).collect();
        let losses: Vec<f64> = (0..rows).map(|r| -logp[r * n + targets[r] as usize]).collect();
        cross_entropy_rows(&x, &targets, n, &mut s, &mut y);
        cross_entropy_rows(&xd, &targets, n, &mut sd, &mut yd);
        compare("losses", &s, &sd, &losses, 2e-6);
        compare("probabilities", &y, &yd, &p, 3e-7);
        let hot = |i: usize| f64::from(i % n == targets[i / n] as usize);
        let grad: Vec<f64> = (0..rows * n).map(|i| (p[i] - hot(i)) * 0.25).collect();
        let (mut out, mut outd) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        cross_entropy_grad_rows(&y, &targets, n, 0.25, &mut out);
        cross_entropy_grad_rows(&yd, &targets, n, 0.25, &mut outd);
        compare("cross-entropy gradient", &out, &outd, &grad, 2e-7);
    }
}

#[test]
fn gradients() {
    for (rows, n) in SHAPES {
        let (x, xd) = logits(rows * n, 8);
        let (g, gd) = logits(rows * n, 9);
        // The product with the Jacobian of the definition, p_i (delta_ij - p_j), entry by entry.
        let p: Vec<f64> = xd.chunks(n).flat_map(|x| x.iter().map(|v| (v - lse(x)).exp())).collect();
        type Entry<'a> = &'a dyn Fn(&[f64], &[f64], usize) -> f64;
        let rows_of = |v: &[f64], f: Entry<'_>| -> Vec<f64> {
            let pairs = v.chunks(n).zip(gd.chunks(n));
            pairs.flat_map(|(p, g)| (0..n).map(|j| f(p, g, j)).collect::<Vec<_>>()).collect()
        };
        let soft =
            rows_of(&p, &|p, g, j| (0..n).map(|i| g[i] * p[i] * (f64::from(i == j) - p[j])).sum());
        let log = rows_of(&p, &|p, g, j| (0..n).map(|i| g[i] * (f64::from(i == j) - p[j])).sum());
        let (mut y, mut yd) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let (mut out, mut outd) = (y.clone(), yd.clone());
        softmax_rows(&x, n, &mut y);
        softmax_rows(&xd, n, &mut yd);
        softmax_grad_rows(&y, &g, n, &mut out);
        softmax_grad_rows(&yd, &gd, n, &mut outd);
        compare("softmax_grad", &out, &outd, &soft, 6e-6);
        log_softmax_rows(&x, n, &mut y);
        log_softmax_rows(&xd, n, &mut yd);
        log_softmax_grad_rows(&y, &g, n, &mut out);
        log_softmax_grad_rows(&yd, &gd, n, &mut outd);
        compare("log_softmax_grad", &out, &outd, &log, 4e-5);
    }
}

#[test]
fn infinities_and_nan() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    // Padding makes short rows, rows over a block and rows over a tile of the same case.
    for n in [3, 20, 3000] {
        let row = |start: [f32; 3], rest: f32| [&start[..], &vec![rest; n - 3]].concat();
        let masked = row([1.0, -inf, 1.0], -inf);
        let cases = [
            masked.clone(),
            row([-inf; 3], -inf),
            row([inf, 0.0, 1.0], 0.0),
            row([nan, 0.0, 1.0], 0.0),
            masked,
        ];
        let x = cases.concat();
        let mut p = vec![0.0; x.len()];
        let mut logp = p.clone();
        let mut losses = [0.0f32; 5];
        let mut sums = [0.0f32; 5];
        softmax_rows(&x, n, &mut p);
        log_softmax_rows(&x, n, &mut logp);
        logsumexp_rows(&x, n, &mut sums);
        for row in [0, 4] {
            let p = &p[row * n..][..n];
            assert!(p[0] == 0.5 && p[1] == 0.0 && p[2] == 0.5 && p[3..].iter().all(|&p| p == 0.0));
            let logp = &logp[row * n..][..n];
            assert!((logp[0] + std::f32::consts::LN_2).abs() < 1e-7 && logp[1] == -inf);
        }
        assert!(
            p[n..4 * n].iter().all(|p| p.is_nan()) && logp[n..4 * n].iter().all(|p| p.is_nan())
        );
        assert!(
            (sums[0] - 1.693_147_2).abs() < 3e-7
                && sums[1] == -inf
                && sums[2] == inf
                && sums[3].is_nan()
        );
        cross_entropy_rows(&x, &[0, 0, 0, 0, 1], n, &mut losses, &mut p);
        assert!((losses[0] - std::f32::consts::LN_2).abs() < 1e-7 && losses[4] == inf);
        assert!(losses[1..4].iter().all(|loss| loss.is_nan()), "{losses:?}");
        assert!(p[0] == 0.5 && p[1] == 0.0 && p[n].is_nan());
    }
}

#[test]
fn rows_without_elements() {
    let mut out = [0.0f32; 3];
    logsumexp_rows(&[], 0, &mut out);
    assert_eq!(out, [f32::NEG_INFINITY; 3]);
    softmax_rows::<f32>(&[], 0, &mut []);
    softmax_grad_rows::<f32>(&[], &[], 0, &mut []);
}

/// A million equal terms: a single running f32 sum would be off by percents.
#[test]
fn long_sums_keep_their_accuracy() {
    let x = vec![0.1f32; 1 << 20];
    let truth = f64::from(0.1f32) * x.len() as f64;
    let sum = f64::from(f32::row_sum(&x));
    assert!((sum - truth).abs() <= 3e-7 * truth, "{sum}, not {truth}");
}

/// The lanes and their folding are part of the contract: these bits hold at every level.
#[test]
fn sums_have_one_order() {
    for n in [0, 1, 7, 8, 9, 15, 16, 17, 27, 127, 128, 129, 1023, 1024, 1025, 5000] {
        let (x, _) = logits(n + 3, 11);
        let x = &x[3..];
        let mut total = 0.0f64;
        for group in x.chunks(256) {
            let mut lanes = [0.0f32; 16];
            for (i, &v) in group.iter().enumerate() {
                lanes[i % 16] += v;
            }
            for half in [8, 4, 2, 1] {
                for i in 0..half {
                    lanes[i] += lanes[i + half];
                }
            }
            total += f64::from(lanes[0]);
        }
        assert_eq!(f32::row_sum(x).to_bits(), (total as f32).to_bits(), "{n}");
        let squares: Vec<f32> = x.iter().map(|v| v * v).collect();
        assert_eq!(f32::row_dot(x, x).to_bits(), f32::row_sum(&squares).to_bits(), "{n}");
    }
}
