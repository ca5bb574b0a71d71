//! Layer, root-mean-square and group normalisation: each row by its own statistics, and the
//! gradients.
//!
//! A row is read from memory once and then again from L1. Its mean is taken twice: what is left of
//! it after the first, rounded one was subtracted corrects both the mean and the variance, so that
//! rows far from zero lose no digits.
//!
//! Sums along a row go into 32 lanes, which fold into f64 after a group of elements. Sums down the
//! columns are taken in the type itself over pieces of 32 rows, and these in f64: the order is
//! fixed by the sizes alone, so threads, which take whole pieces, change no bit.

use super::group::{GroupRows, apply_channels, grad_channels};
use crate::map::{PIECE, SHARED};
use crate::math::Real;
use crate::param::Parameters;
use crate::reduce::{self, Summed};
use crate::simd::{array, look_ahead, vectorized};
use crate::threads;

/// The lanes of a sum along a row.
pub(super) const LANES: usize = 32;

/// Elements that add up in the lanes before these are folded.
const GROUP: usize = 16 * LANES;

/// Rows whose column sums are taken in the type itself.
pub(super) const ROWS: usize = 32;

/// Kind of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub enum Norm {
    /// By mean and variance.
    Layer,
    /// By the root of the mean square.
    Rms,
}

/// Statistics kept of a row: `xhat = (x - centre) * inv + shift`.
#[derive(Clone, Copy)]
pub(super) struct Stats<T> {
    /// The mean, rounded.
    centre: T,
    /// 1 / sqrt(variance + eps).
    inv: T,
    /// Rounding error of the mean, times `-inv`.
    shift: T,
}

/// Numbers kept of a row.
pub const STATS: usize = 3;

impl<T: Real> Stats<T> {
    #[inline(always)]
    fn read(kept: &[T]) -> Self {
        Stats { centre: kept[0], inv: kept[1], shift: kept[2] }
    }

    #[inline(always)]
    fn write(self, kept: &mut [T]) {
        kept.copy_from_slice(&[self.centre, self.inv, self.shift]);
    }

    #[inline(always)]
    pub(super) fn hat<const FMA: bool>(self, x: T) -> T {
        (x - self.centre).mul_add::<FMA>(self.inv, self.shift)
    }
}

/// The sums of two terms over a row. Terms that need fewer rows get one of them again.
#[inline(always)]
pub(super) fn sums<T: Real>(rows: [&[T]; 3], term: impl Fn(T, T, T) -> [T; 2]) -> [f64; 2] {
    let [a, b, c] = [rows[0].chunks(GROUP), rows[1].chunks(GROUP), rows[2].chunks(GROUP)];
    let mut totals = [0.0; 2];
    for ((a, b), c) in a.zip(b).zip(c) {
        let (a, a_end) = a.as_chunks::<LANES>();
        let (b, b_end) = b.as_chunks::<LANES>();
        let (c, c_end) = c.as_chunks::<LANES>();
        let (mut first, mut second) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            for i in 0..LANES {
                let [x, y] = term(a[i], b[i], c[i]);
                first[i] += x;
                second[i] += y;
            }
        }
        if a_end.is_empty() {
            totals[0] += fold(first);
            totals[1] += fold(second);
            continue;
        }
        // Copies for the rest: the first arrays can then stay in registers.
        let (mut first_ends, mut second_ends) = (first, second);
        let ends = first_ends.iter_mut().zip(&mut second_ends);
        for ((ends, (&a, &b)), &c) in ends.zip(a_end.iter().zip(b_end)).zip(c_end) {
            let [x, y] = term(a, b, c);
            *ends.0 += x;
            *ends.1 += y;
        }
        totals[0] += fold(first_ends);
        totals[1] += fold(second_ends);
    }
    totals
}

/// Folds the lanes in halves.
#[inline(always)]
fn fold<T: Real>(lanes: [T; LANES]) -> f64 {
    let a: [T; 16] = array(|i| lanes[i] + lanes[i + 16]);
    let b: [T; 8] = array(|i| a[i] + a[i + 8]);
    let c: [T; 4] = array(|i| b[i] + b[i + 4]);
    ((c[0] + c[2]) + (c[1] + c[3])).to_f64()
}

#[inline(always)]
fn stats<const FMA: bool, T: Real>(x: &[T], norm: Norm, eps: f64) -> Stats<T> {
    let n = x.len() as f64;
    if norm == Norm::Rms {
        let [squares, _] = sums([x; 3], |x, _, _| [x * x, T::ZERO]);
        let inv = T::from_f64(1.0 / (squares / n + eps).sqrt());
        return Stats { centre: T::ZERO, inv, shift: T::ZERO };
    }
    let [sum, _] = sums([x; 3], |x, _, _| [x, T::ZERO]);
    let centre = T::from_f64(sum / n);
    let [left, squares] = sums([x; 3], |x, _, _| {
        let d = x - centre;
        [d, d * d]
    });
    let left = left / n;
    let inv = 1.0 / ((squares / n - left * left).max(0.0) + eps).sqrt();
    // A NaN must not vanish in the maximum.
    let inv = if squares.is_nan() { squares } else { inv };
    Stats { centre, inv: T::from_f64(inv), shift: T::from_f64(-left * inv) }
}

/// Rows `first..` of the samples.
#[inline(always)]
fn forward_body<const FMA: bool, T: Real>(
    x: &[T],
    (first, layout): (usize, GroupRows),
    by: Affine<'_, T>,
    kind: (Norm, f64),
    out: &mut [T],
    kept: &mut [T],
) {
    let n = layout.len();
    let rows = x.chunks_exact(n).zip(out.chunks_exact_mut(n));
    for (i, ((x, out), kept)) in rows.zip(kept.chunks_exact_mut(STATS)).enumerate() {
        look_ahead(x);
        look_ahead(out);
        let stats = stats::<FMA, T>(x, kind.0, kind.1);
        stats.write(kept);
        let channels = layout.channels_of(first + i);
        let [gain, bias] = [by.gain, by.bias].map(|v| v.map(|v| &v[channels.clone()]));
        if layout.inner != 1 {
            apply_channels::<FMA, T>(x, layout.inner, stats, Affine { gain, bias }, out);
            continue;
        }
        match (gain, bias) {
            (Some(gain), Some(bias)) => {
                for (((out, &x), &gain), &bias) in out.iter_mut().zip(x).zip(gain).zip(bias) {
                    *out = stats.hat::<FMA>(x).mul_add::<FMA>(gain, bias);
                }
            }
            (Some(gain), None) => {
                for ((out, &x), &gain) in out.iter_mut().zip(x).zip(gain) {
                    *out = stats.hat::<FMA>(x) * gain;
                }
            }
            (None, bias) => {
                for (out, &x) in out.iter_mut().zip(x) {
                    *out = stats.hat::<FMA>(x);
                }
                for (out, &bias) in out.iter_mut().zip(bias.unwrap_or_default()) {
                    *out += bias;
                }
            }
        }
    }
}

vectorized! {
    fn forward_rows[T](x: &[T], rows: (usize, GroupRows), by: Affine<'_, T>, kind: (Norm, f64), out: &mut [T], kept: &mut [T])
        where [T: Real] = forward_body
}

/// The learned numbers of each column.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a, T> {
    /// The factor; none is 1.
    pub gain: Option<&'a [T]>,
    /// The offset; none is 0.
    pub bias: Option<&'a [T]>,
}

/// Pieces of one task, or all where the work is small. A row is read three times: half of what a
/// copy needs is enough for threads, and there are enough tasks for them to end at about the same
/// time.
fn task(len: usize, piece: usize) -> usize {
    match len < SHARED / 2 {
        true => len.div_ceil(piece).max(1),
        false => (PIECE / 4 / piece).max(1),
    }
}

/// `out = xhat * gain + bias` for each row, where xhat is the row normalised; `kept` gets [`STATS`]
/// numbers a row for the backward pass.
pub fn forward<T: Real>(
    x: &[T],
    rows: GroupRows,
    by: Affine<'_, T>,
    kind: (Norm, f64),
    out: &mut [T],
    kept: &mut [T],
) {
    let n = rows.len();
    let fits = |v: Option<&[T]>| v.is_none_or(|v| v.len() == rows.width());
    assert!(x.len() == out.len() && fits(by.gain) && fits(by.bias), "{rows:?}");
    if x.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(rows.sample()) && kept.len() == x.len() / n * STATS, "{rows:?}");
    let task = task(x.len(), n);
    if task * n >= x.len() {
        return forward_rows(x, (0, rows), by, kind, out, kept);
    }
    let parts = x.chunks(task * n).zip(out.chunks_mut(task * n));
    let parts = parts.zip(kept.chunks_mut(task * STATS)).enumerate();
    threads::for_each(true, parts, |(i, ((x, out), kept))| {
        forward_rows(x, (i * task, rows), by, kind, out, kept);
    });
}

/// Inputs of the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct RowNormUpstream<'a, T> {
    /// The gradient of the output.
    pub g: &'a [T],
    /// The input.
    pub x: &'a [T],
    /// Statistics kept by the forward pass.
    pub kept: &'a [T],
    /// The learned factor; none is 1.
    pub gain: Option<&'a [T]>,
}

/// One piece of samples: the gradient of the input, and the piece's sums of `g * xhat` and `g` for
/// each channel, if they are wanted.
#[inline(always)]
fn backward_body<const FMA: bool, T: Real>(
    up: RowNormUpstream<'_, T>,
    layout: GroupRows,
    norm: Norm,
    dx: &mut [T],
    dgain: &mut [T],
    dbias: &mut [T],
) {
    dgain.fill(T::ZERO);
    dbias.fill(T::ZERO);
    let n = layout.len();
    let rows = up.x.chunks_exact(n).zip(up.g.chunks_exact(n)).zip(dx.chunks_exact_mut(n));
    for (i, (((x, g), dx), kept)) in rows.zip(up.kept.chunks_exact(STATS)).enumerate() {
        [x, g, &*dx].into_iter().for_each(look_ahead);
        let (stats, channels) = (Stats::read(kept), layout.channels_of(i));
        let gain = up.gain.map(|gain| &gain[channels.clone()]);
        let dgain = dgain.get_mut(channels.clone()).unwrap_or_default();
        let dbias = dbias.get_mut(channels).unwrap_or_default();
        if layout.inner != 1 {
            let slope = |both| Slope::new(both, n, norm, stats);
            let of = (layout.inner, stats);
            grad_channels::<FMA, T>((x, g), gain, of, slope, dx, [dgain, dbias]);
            continue;
        }
        for ((sum, &g), &x) in dgain.iter_mut().zip(g).zip(x) {
            *sum = g.mul_add::<FMA>(stats.hat::<FMA>(x), *sum);
        }
        for (sum, &g) in dbias.iter_mut().zip(g) {
            *sum += g;
        }
        match gain {
            Some(gain) => {
                let both =
                    sums([x, g, gain], |x, g, gain| [g * gain, g * gain * stats.hat::<FMA>(x)]);
                let by = Slope::new(both, n, norm, stats);
                for (((dx, &x), &g), &gain) in dx.iter_mut().zip(x).zip(g).zip(gain) {
                    *dx = by.at::<FMA>(g * gain, stats.hat::<FMA>(x));
                }
            }
            None => {
                let both = sums([x, g, g], |x, g, _| [g, g * stats.hat::<FMA>(x)]);
                let by = Slope::new(both, n, norm, stats);
                for ((dx, &x), &g) in dx.iter_mut().zip(x).zip(g) {
                    *dx = by.at::<FMA>(g, stats.hat::<FMA>(x));
                }
            }
        }
    }
}

/// `dx = inv * (g - mean(g) - xhat * mean(g * xhat))` for one row; without the first mean where
/// nothing was centred.
#[derive(Clone, Copy)]
pub(super) struct Slope<T> {
    mean: T,
    along: T,
    inv: T,
}

impl<T: Real> Slope<T> {
    #[inline(always)]
    fn new([sum, product]: [f64; 2], n: usize, norm: Norm, stats: Stats<T>) -> Self {
        let mean = if norm == Norm::Layer { T::from_f64(sum / n as f64) } else { T::ZERO };
        Slope { mean, along: T::from_f64(-product / n as f64), inv: stats.inv }
    }

    #[inline(always)]
    pub(super) fn at<const FMA: bool>(self, g: T, hat: T) -> T {
        hat.mul_add::<FMA>(self.along, g - self.mean) * self.inv
    }
}

vectorized! {
    fn backward_rows[T](up: RowNormUpstream<'_, T>, rows: GroupRows, norm: Norm, dx: &mut [T], dgain: &mut [T], dbias: &mut [T])
        where [T: Real] = backward_body
}

/// Outputs of one task of [`backward`]: its rows of `dx`, and its partial sums for gain and bias.
type Parts<'a, T> = ((&'a mut [T], &'a mut [T]), &'a mut [T]);

/// The gradient of the input, and of gain and bias where there is room for them (an element for
/// each channel, or none). `scratch` has room for the partial sums: [`GroupRows::pieces`] rows of
/// as many elements for each of the two that is wanted.
pub fn backward<T: Real + Summed>(
    up: RowNormUpstream<'_, T>,
    rows: GroupRows,
    norm: Norm,
    dx: &mut [T],
    [dgain, dbias]: [&mut [T]; 2],
    scratch: &mut [T],
) {
    let width = rows.width();
    let samples = dx.len().checked_div(rows.sample()).unwrap_or(0);
    assert!([up.g.len(), up.x.len(), samples * rows.sample()] == [dx.len(); 3], "{rows:?}");
    assert!(up.kept.len() >= samples * rows.groups * STATS, "{rows:?}");
    assert!(up.gain.is_none_or(|gain| gain.len() == width), "{rows:?}");
    let parts = rows.pieces(samples);
    let wide = |sums: &[T]| if sums.is_empty() { 0 } else { width };
    let (gain_wide, bias_wide) = (wide(dgain), wide(dbias));
    let (gains, biases) =
        scratch[..parts * (gain_wide + bias_wide)].split_at_mut(parts * gain_wide);
    let piece = rows.samples_at_once() * rows.sample();
    // The work on one piece of samples; `i` counts pieces.
    let one = |i: usize, dx: &mut [T], gains: &mut [T], biases: &mut [T]| {
        let at = i * piece;
        let up = RowNormUpstream {
            g: &up.g[at..][..dx.len()],
            x: &up.x[at..][..dx.len()],
            kept: &up.kept[at / rows.len() * STATS..],
            gain: up.gain,
        };
        backward_rows(up, rows, norm, dx, gains, biases);
    };
    let task = task(dx.len(), piece.max(1));
    let run = |(i, ((dx, gains), biases)): (usize, Parts<'_, T>)| {
        let (mut gains, mut biases) = (Chunks(gains, gain_wide), Chunks(biases, bias_wide));
        for (k, dx) in dx.chunks_mut(piece).enumerate() {
            one(i * task + k, dx, gains.next(), biases.next());
        }
    };
    if samples > 0 && task >= parts {
        run((0, ((dx, gains), biases)));
    } else if samples > 0 {
        // Empty partial sums cannot be cut into chunks: each task then gets an empty one.
        let gains = chunked(gains, task * gain_wide, parts.div_ceil(task));
        let biases = chunked(biases, task * bias_wide, parts.div_ceil(task));
        let tasks = dx.chunks_mut(task * piece).zip(gains).zip(biases).enumerate();
        threads::for_each(true, tasks, run);
    }
    let (gains, biases) = scratch[..parts * (gain_wide + bias_wide)].split_at(parts * gain_wide);
    for (partial, total) in [(gains, dgain), (biases, dbias)] {
        if !total.is_empty() {
            reduce::sum(partial, parts, width, total);
        }
    }
}

/// Chunks that may be of no elements.
struct Chunks<'a, T>(&'a mut [T], usize);

impl<'a, T> Chunks<'a, T> {
    fn next(&mut self) -> &'a mut [T] {
        let (first, rest) = std::mem::take(&mut self.0).split_at_mut(self.1);
        self.0 = rest;
        first
    }
}

/// `count` chunks of `len` elements, the last with what is left.
fn chunked<T: Send>(all: &mut [T], len: usize, count: usize) -> Vec<&mut [T]> {
    let mut chunks = Chunks(all, 0);
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        chunks.1 = len.min(chunks.0.len());
        out.push(chunks.next());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::tests::{SIZES, noise};

    fn of(n: usize) -> GroupRows {
        GroupRows::of_elements(n)
    }

    /// The chain rule in single steps, in f64: value, gradient of the row, normalised row.
    fn truth(x: &[f64], u: &[f64], norm: Norm, eps: f64) -> (Vec<f64>, Vec<f64>) {
        let n = x.len() as f64;
        let mean = if norm == Norm::Layer { x.iter().sum::<f64>() / n } else { 0.0 };
        let d: Vec<f64> = x.iter().map(|x| x - mean).collect();
        let v = d.iter().map(|d| d * d).sum::<f64>() / n + eps;
        let hat: Vec<f64> = d.iter().map(|d| d / v.sqrt()).collect();
        let dv = -0.5 * v.powf(-1.5) * u.iter().zip(&d).map(|(u, d)| u * d).sum::<f64>();
        let dd: Vec<f64> = u.iter().zip(&d).map(|(u, d)| u / v.sqrt() + dv * 2.0 * d / n).collect();
        let dmean = if norm == Norm::Layer { dd.iter().sum::<f64>() / n } else { 0.0 };
        (hat, dd.iter().map(|dd| dd - dmean).collect())
    }

    fn check<T: Real + Summed>(rows: usize, n: usize, norm: Norm, affine: bool, tolerance: f64) {
        let real = |v: Vec<f64>, plus: f64| -> Vec<T> {
            v.into_iter().map(|v| T::from_f64(v + plus)).collect()
        };
        let (x, g) = (real(noise(rows * n, 1), 2.0), real(noise(rows * n, 2), 0.1));
        let (gain, bias) = (real(noise(n, 3), 1.5), real(noise(n, 4), 0.0));
        let (gain, bias) = (affine.then_some(&gain[..]), affine.then_some(&bias[..]));
        let zeros = |len| vec![T::ZERO; len];
        let (mut out, mut kept) = (zeros(rows * n), zeros(rows * STATS));
        forward(&x, of(n), Affine { gain, bias }, (norm, 1e-3), &mut out, &mut kept);
        let (mut dx, mut dgain, mut dbias) = (zeros(rows * n), zeros(n), zeros(n));
        let mut scratch = zeros(of(n).pieces(rows) * n * 2);
        let up = RowNormUpstream { g: &g, x: &x, kept: &kept, gain };
        backward(up, of(n), norm, &mut dx, [&mut dgain, &mut dbias], &mut scratch);
        let close = |what: &str, got: T, want: f64, size: f64| {
            let apart = (got.to_f64() - want).abs();
            assert!(apart <= tolerance * size, "{what}, {rows}x{n}: {apart:e} apart of {want}");
        };
        let (mut want_gain, mut want_bias) = (vec![0.0; n], vec![0.0; n]);
        for row in 0..rows {
            let of =
                |v: &[T]| -> Vec<f64> { v[row * n..][..n].iter().map(|v| v.to_f64()).collect() };
            let at = |v: Option<&[T]>, j: usize, none: f64| v.map_or(none, |v| v[j].to_f64());
            let (x, g) = (of(&x), of(&g));
            let u: Vec<f64> = g.iter().enumerate().map(|(j, g)| g * at(gain, j, 1.0)).collect();
            let (hat, want) = truth(&x, &u, norm, 1e-3);
            let size = 1.0 + kept[row * STATS + 1].to_f64();
            for j in 0..n {
                let y = hat[j] * at(gain, j, 1.0) + at(bias, j, 0.0);
                close("out", out[row * n + j], y, 4.0 + hat[j].abs());
                close("dx", dx[row * n + j], want[j], 8.0 * size);
                want_gain[j] += g[j] * hat[j];
                want_bias[j] += g[j];
            }
        }
        for j in 0..n {
            close("dgain", dgain[j], want_gain[j], 4.0 * (1 + rows) as f64);
            close("dbias", dbias[j], want_bias[j], 4.0 * (1 + rows) as f64);
        }
    }

    #[test]
    fn values_and_gradients_at_odd_sizes() {
        for n in SIZES.into_iter().chain([31, 32, 33, 513]) {
            for norm in [Norm::Layer, Norm::Rms] {
                for (rows, affine) in [(3, true), (3, false), (33, true), (0, true)] {
                    check::<f32>(rows, n, norm, affine, 3e-7);
                    check::<f64>(rows, n, norm, affine, 5e-15);
                }
            }
        }
    }

    /// Arrays large enough for several threads: the same bits as with one.
    #[test]
    fn threads_change_no_bit() {
        let (rows, n) = (1037, 129);
        let x: Vec<f32> = noise(rows * n, 1).into_iter().map(|x| x as f32).collect();
        let run = |threads: usize| {
            threads::with_num_threads(threads, || {
                let (mut out, mut kept) = (vec![0.0; x.len()], vec![0.0; rows * STATS]);
                let by = Affine { gain: None, bias: None };
                forward(&x, of(n), by, (Norm::Layer, 1e-5), &mut out, &mut kept);
                let (mut dx, mut dgain, mut dbias) =
                    (vec![0.0; x.len()], vec![0.0; n], vec![0.0; n]);
                let mut scratch = vec![0.0; of(n).pieces(rows) * n * 2];
                let up = RowNormUpstream { g: &out, x: &x, kept: &kept, gain: None };
                let sums = [&mut dgain[..], &mut dbias[..]];
                backward(up, of(n), Norm::Layer, &mut dx, sums, &mut scratch);
                [out, kept, dx, dgain, dbias]
                    .concat()
                    .into_iter()
                    .map(f32::to_bits)
                    .collect::<Vec<_>>()
            })
        };
        let one = run(1);
        assert!(run(2) == one && run(5) == one);
    }
}
