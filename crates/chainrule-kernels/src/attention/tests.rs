//! The oracle is attention with the whole matrix of scores, in f64, and the chain rule in single
//! steps.

use super::*;
use crate::math::tests::noise;
use crate::threads::with_num_threads;

/// Sizes: pairs, queries, keys, depth, width.
type Sizes = [usize; 5];

/// The result and the three gradients of one pair.
struct AttentionTruth {
    out: Vec<f64>,
    dq: Vec<f64>,
    dk: Vec<f64>,
    dv: Vec<f64>,
}

/// `more` has a number for each score, minus infinity for those that are excluded; `factors` those
/// of the dropout.
fn truth(
    [q, k, v, g]: [&[f64]; 4],
    [queries, keys, d, w]: [usize; 4],
    scale: f64,
    more: &[f64],
    factors: &[f64],
) -> AttentionTruth {
    let zeros = |n: usize| vec![0.0; n];
    let (mut out, mut dq) = (zeros(queries * w), zeros(queries * d));
    let (mut dk, mut dv) = (zeros(keys * d), zeros(keys * w));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for i in 0..queries {
        let (q, g) = (&q[i * d..][..d], &g[i * w..][..w]);
        let score = |j: usize| dot(q, &k[j * d..][..d]) * scale + more[i * keys + j];
        let e: Vec<f64> = (0..keys).map(|j| score(j).exp()).collect();
        let sum: f64 = e.iter().sum();
        let p: Vec<f64> = e.iter().map(|e| if sum > 0.0 { e / sum } else { 0.0 }).collect();
        let used = |j: usize| p[j] * factors[i * keys + j];
        let dp: Vec<f64> =
            (0..keys).map(|j| dot(g, &v[j * w..][..w]) * factors[i * keys + j]).collect();
        let mean = dot(&p, &dp);
        for j in 0..keys {
            let ds = p[j] * (dp[j] - mean) * scale;
            (0..w).for_each(|c| out[i * w + c] += used(j) * v[j * w + c]);
            (0..w).for_each(|c| dv[j * w + c] += used(j) * g[c]);
            (0..d).for_each(|c| dq[i * d + c] += ds * k[j * d + c]);
            (0..d).for_each(|c| dk[j * d + c] += ds * q[c]);
        }
    }
    AttentionTruth { out, dq, dk, dv }
}

/// The masks of the tests.
#[derive(Clone, Copy, PartialEq)]
enum ScoreKind {
    All,
    Causal,
    Keep,
    Add,
    Dropped,
}

fn check<T: AttentionReal>(sizes: Sizes, kind: ScoreKind, tolerance: f64) {
    check_as::<T>(sizes, kind, false, tolerance);
}

/// With products on bf16 the operands are numbers of bf16, so that only weights and slopes are
/// rounded.
fn check_as<T: AttentionReal>(
    [pairs, queries, keys, d, w]: Sizes,
    kind: ScoreKind,
    bf16: bool,
    tolerance: f64,
) {
    let real = |len: usize, seed| -> Vec<T> {
        let all = noise(len, seed).into_iter().map(|x| match bf16 {
            true => half::bf16::from_f64(x * 2.0).to_f64(),
            false => x * 2.0,
        });
        all.map(T::from_f64).collect()
    };
    // Rows with gaps, as a slice of a fused projection has them.
    let (row_d, row_w) = (d + 3, w + 1);
    let (q, k) = (real(pairs * queries * row_d, 1), real(pairs * keys * row_d, 2));
    let (v, g) = (real(pairs * keys * row_w, 3), real(pairs * queries * row_w, 4));
    let sizes = [pairs];
    let (at_q, at_k) = ([queries * row_d], [keys * row_d]);
    let (at_v, at_g) = ([keys * row_w], [queries * row_w]);
    let keep: Vec<u8> =
        (0..queries * keys).map(|i| (i * 7 % 3 != 0 && i / keys % 5 != 4) as u8).collect();
    let added: Vec<T> = real(queries * keys, 5);
    let mask = match kind {
        ScoreKind::Keep => Mask::Keep(Grid { data: &keep[..], batch: &[0], row: keys, col: 1 }),
        ScoreKind::Add => Mask::Add(Grid { data: &added[..], batch: &[0], row: keys, col: 1 }),
        _ => Mask::None,
    };
    let dropout = (kind == ScoreKind::Dropped).then_some(Dropout { p: 0.3, seed: 5 });
    let causal = kind == ScoreKind::Causal;
    let problem = Problem {
        sizes: &sizes,
        queries,
        keys,
        depth: d,
        width: w,
        q: Heads { data: &q[..], batch: &at_q, row: row_d },
        k: Heads { data: &k[..], batch: &at_k, row: row_d },
        v: Heads { data: &v[..], batch: &at_v, row: row_w },
        mask,
        causal,
        scale: T::from_f64(0.6),
        dropout,
        bf16,
    };
    let nan = |len| vec![T::from_f64(f64::NAN); len];
    let (mut out, mut logs) = (nan(g.len()), vec![[nan(1)[0]; 2]; pairs * queries]);
    forward(&problem, HeadsMut { data: &mut out, batch: &at_g, row: row_w }, &mut logs);
    let (mut dq, mut dk, mut dv) = (nan(q.len()), nan(k.len()), nan(v.len()));
    let up = AttentionUpstream {
        out: Heads { data: &out[..], batch: &at_g, row: row_w },
        logs: &logs,
        g: Heads { data: &g[..], batch: &at_g, row: row_w },
    };
    let to = Gradients {
        dq: HeadsMut { data: &mut dq, batch: &at_q, row: row_d },
        dk: HeadsMut { data: &mut dk, batch: &at_k, row: row_d },
        dv: HeadsMut { data: &mut dv, batch: &at_v, row: row_w },
    };
    backward(&problem, up, to);
    for pair in 0..pairs {
        let part = |x: &[T], rows: usize, row: usize, width: usize| -> Vec<f64> {
            let rows = (0..rows).map(|i| &x[(pair * rows + i) * row..][..width]);
            rows.flatten().map(|x| x.to_f64()).collect()
        };
        let more = |i: usize| match kind {
            ScoreKind::Keep if keep[i] == 0 => f64::NEG_INFINITY,
            ScoreKind::Causal if i % keys > i / keys => f64::NEG_INFINITY,
            ScoreKind::Add => added[i].to_f64(),
            _ => 0.0,
        };
        let mut factors = vec![T::ONE; queries * keys];
        for (i, row) in factors.chunks_exact_mut(keys.max(1)).enumerate() {
            dropout.into_iter().for_each(|dropout| dropout.factors(pair, i, 0, row));
        }
        let (rq, rk) = (part(&q, queries, row_d, d), part(&k, keys, row_d, d));
        let (rv, rg) = (part(&v, keys, row_w, w), part(&g, queries, row_w, w));
        let all: Vec<f64> = (0..queries * keys).map(more).collect();
        let factors: Vec<f64> = factors.into_iter().map(|x| x.to_f64()).collect();
        let want = truth([&rq, &rk, &rv, &rg], [queries, keys, d, w], 0.6, &all, &factors);
        for (name, got, want) in [
            ("out", part(&out, queries, row_w, w), want.out),
            ("dq", part(&dq, queries, row_d, d), want.dq),
            ("dk", part(&dk, keys, row_d, d), want.dk),
            ("dv", part(&dv, keys, row_w, w), want.dv),
        ] {
            let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let close = (got - want).abs() <= tolerance * size;
                let what = [pairs, queries, keys, d, w];
                assert!(close, "{name}, {what:?}, element {i}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn values_and_gradients_at_odd_sizes() {
    let sizes: [Sizes; 12] = [
        [1, 1, 1, 1, 1],
        [2, 7, 8, 9, 1],
        [1, 8, 7, 1, 17],
        [2, 15, 17, 16, 15],
        [1, 23, 24, 8, 8],
        [3, 24, 23, 7, 33],
        [1, 25, 127, 17, 16],
        [1, 17, 128, 16, 49],
        [2, 49, 129, 5, 6],
        [1, 129, 65, 33, 31],
        [1, 3, 257, 4, 2],
        [1, 100, 300, 3, 2],
    ];
    for size in sizes {
        for kind in
            [ScoreKind::All, ScoreKind::Causal, ScoreKind::Keep, ScoreKind::Add, ScoreKind::Dropped]
        {
            check::<f32>(size, kind, 4e-6);
            check::<f64>(size, kind, 1e-14);
            check_as::<f32>(size, kind, true, 6e-3);
        }
    }
}

#[test]
fn nothing_to_attend_to_gives_zeros() {
    for size in
        [[2, 3, 0, 4, 5], [0, 3, 4, 5, 6], [2, 0, 3, 4, 5], [2, 3, 4, 0, 5], [2, 3, 4, 5, 0]]
    {
        for kind in [ScoreKind::All, ScoreKind::Causal, ScoreKind::Dropped] {
            check::<f32>(size, kind, 1e-6);
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (pairs, t, d) = (12, 100, 32);
    let x: Vec<f32> = noise(pairs * t * d, 1).into_iter().map(|x| x as f32).collect();
    let run = |threads: usize| {
        with_num_threads(threads, || {
            let (sizes, batch) = ([pairs], [t * d]);
            let heads = Heads { data: &x[..], batch: &batch, row: d };
            let problem = Problem {
                sizes: &sizes,
                queries: t,
                keys: t,
                depth: d,
                width: d,
                q: heads,
                k: heads,
                v: heads,
                mask: Mask::None,
                causal: true,
                scale: 0.2,
                dropout: Some(Dropout { p: 0.1, seed: 3 }),
                bf16: false,
            };
            let mut all = vec![vec![0f32; x.len()]; 4];
            let mut logs = vec![[0.0; 2]; pairs * t];
            let [out, dq, dk, dv] = &mut all[..] else { unreachable!() };
            forward(&problem, HeadsMut { data: out, batch: &batch, row: d }, &mut logs);
            let to = |data| HeadsMut { data, batch: &batch, row: d };
            let up = AttentionUpstream {
                out: Heads { data: &out[..], ..heads },
                logs: &logs,
                g: Heads { data: &x[..], ..heads },
            };
            backward(&problem, up, Gradients { dq: to(dq), dk: to(dk), dv: to(dv) });
            all.concat().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        })
    };
    let one = run(1);
    assert!(run(2) == one && run(5) == one);
}

#[test]
fn dropout_drops_its_share_and_depends_on_the_place_only() {
    let (n, p) = (40_000, 0.3);
    let dropout = Dropout { p, seed: 9 };
    let mut all = vec![0f64; n];
    dropout.factors(7, 3, 0, &mut all);
    let dropped = all.iter().filter(|x| **x == 0.0).count() as f64 / n as f64;
    assert!((dropped - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "{dropped}");
    assert!(all.iter().all(|&x| x == 0.0 || x == 1.0 / 0.7));
    let mut part = vec![0f64; 30];
    dropout.factors(7, 3, 128, &mut part);
    assert_eq!(part, all[128..158]);
    let mut other = vec![0f64; 128];
    for (pair, row) in [(7, 4), (8, 3)] {
        dropout.factors(pair, row, 0, &mut other);
        assert_ne!(other, all[..128]);
    }
    for (p, factor) in [(0.0, 1.0), (1.0, 0.0)] {
        Dropout { p, seed: 1 }.factors(0, 0, 0, &mut other);
        assert_eq!(other, [factor; 128]);
    }
}
