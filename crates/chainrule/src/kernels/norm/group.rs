//! Group normalisation: `[n, c, inner]` as rows of `channels * inner` neighbouring elements, a row for each group of channels of each sample. What is
//! done to rows knows nothing of samples; gain and bias repeat from sample to sample.

use crate::kernels::map::{PIECE, SHARED};
use crate::kernels::reduce::moments::Centred;
use crate::kernels::simd::vectorized;
use crate::kernels::softmax::Row;
use crate::kernels::threads;

/// f32 or f64.
pub trait Grouped: Row + Centred {}
impl Grouped for f32 {}
impl Grouped for f64 {}

/// How an array falls into rows.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// Groups of channels in a sample.
    pub groups: usize,
    /// Channels in a group.
    pub channels: usize,
    /// Elements of a channel, which are neighbours.
    pub inner: usize,
}

impl Groups {
    /// Elements of a row.
    pub fn count(self) -> usize {
        self.channels * self.inner
    }

    /// How many rows a thread takes at a time.
    fn rows_at_once(self) -> usize {
        (PIECE / self.count().max(1)).max(1)
    }

    /// The part of gain or bias that belongs to a row.
    #[inline(always)]
    fn of<T>(self, row: usize, x: Option<&[T]>) -> Option<&[T]> {
        x.map(|x| &x[row % self.groups * self.channels..][..self.channels])
    }
}

/// What each row is normalised by.
#[derive(Clone, Copy, Debug)]
pub struct Stats<'a, T> {
    /// Its mean.
    pub mean: &'a [T],
    /// 1 / sqrt(variance + eps).
    pub inv_std: &'a [T],
}

/// Whether the work on so many elements is for several threads.
fn shared(elements: usize) -> bool {
    elements >= SHARED
}

/// The mean and the biased variance of each row.
pub fn row_stats<T: Grouped>(x: &[T], by: Groups, mean: &mut [T], var: &mut [T]) {
    let count = by.count();
    let piece = |(x, (mean, var)): (&[T], (&mut [T], &mut [T]))| {
        T::moments_rows(x, count, T::from_f64(count as f64), mean, var);
    };
    let high = by.rows_at_once();
    if x.is_empty() || !shared(x.len()) {
        return piece((x, (mean, var)));
    }
    let stats = mean.chunks_mut(high).zip(var.chunks_mut(high));
    threads::for_each(true, x.chunks(high * count).zip(stats), piece);
}

/// Rows `first..` as far as `out` goes: `(x - mean) * inv_std * gain + bias`.
#[inline(always)]
fn apply_body<const FMA: bool, T: Grouped>(
    x: &[T],
    by: Groups,
    first: usize,
    stats: Stats<'_, T>,
    gain: Option<&[T]>,
    bias: Option<&[T]>,
    out: &mut [T],
) {
    let rows = x.chunks_exact(by.count()).zip(out.chunks_exact_mut(by.count()));
    for (i, (x, out)) in rows.enumerate() {
        let row = first + i;
        let (mean, inv) = (stats.mean[row], stats.inv_std[row]);
        let (gain, bias) = (by.of(row, gain), by.of(row, bias));
        if by.inner == 1 {
            for (o, &x) in out.iter_mut().zip(x) {
                *o = (x - mean) * inv;
            }
            if let Some(gain) = gain {
                out.iter_mut().zip(gain).for_each(|(o, &gain)| *o *= gain);
            }
            if let Some(bias) = bias {
                out.iter_mut().zip(bias).for_each(|(o, &bias)| *o += bias);
            }
            continue;
        }
        let channels = x.chunks_exact(by.inner).zip(out.chunks_exact_mut(by.inner));
        for (channel, (x, out)) in channels.enumerate() {
            let factor = gain.map_or(inv, |gain| inv * gain[channel]);
            let shift = bias.map_or(T::ZERO, |bias| bias[channel]);
            for (o, &x) in out.iter_mut().zip(x) {
                *o = (x - mean).mul_add::<FMA>(factor, shift);
            }
        }
    }
}

vectorized! {
    fn apply_rows[T](x: &[T], by: Groups, first: usize, stats: Stats<'_, T>, gain: Option<&[T]>, bias: Option<&[T]>, out: &mut [T])
        where [T: Grouped] = apply_body
}

/// Each row less its mean, times `inv_std`; then each channel times its gain, plus its bias.
pub fn group_norm_apply<T: Grouped>(
    x: &[T],
    by: Groups,
    stats: Stats<'_, T>,
    gain: Option<&[T]>,
    bias: Option<&[T]>,
    out: &mut [T],
) {
    assert_eq!(x.len(), out.len());
    if x.is_empty() {
        return;
    }
    if !shared(x.len()) {
        return apply_rows(x, by, 0, stats, gain, bias, out);
    }
    let (high, size) = (by.rows_at_once(), by.rows_at_once() * by.count());
    let pieces = x.chunks(size).zip(out.chunks_mut(size)).enumerate();
    threads::for_each(true, pieces, |(i, (x, out))| {
        apply_rows(x, by, i * high, stats, gain, bias, out);
    });
}

/// What the backward starts from.
#[derive(Clone, Copy, Debug)]
pub struct GroupUpstream<'a, T> {
    /// The upstream gradient.
    pub g: &'a [T],
    /// The input.
    pub x: &'a [T],
    /// What its rows were normalised by.
    pub stats: Stats<'a, T>,
    /// The gain, if there is one.
    pub gain: Option<&'a [T]>,
}

/// For each channel of a row the sum of `g` and of `g * h`, where `h` is the normalised input.
#[inline(always)]
fn channel_sums<T: Grouped>(
    x: &[T],
    g: &[T],
    inner: usize,
    [mean, inv]: [T; 2],
    sums: &mut [T],
    products: &mut [T],
) {
    const BLOCK: usize = 256;
    if inner == 1 {
        sums.copy_from_slice(g);
        for ((p, &x), &g) in products.iter_mut().zip(x).zip(g) {
            *p = g * ((x - mean) * inv);
        }
        return;
    }
    let mut scratch = [T::ZERO; BLOCK];
    let channels = x.chunks_exact(inner).zip(g.chunks_exact(inner));
    for ((sum, product), (x, g)) in sums.iter_mut().zip(products).zip(channels) {
        *sum = T::row_sum(g);
        let mut total = 0.0;
        for (x, g) in x.chunks(BLOCK).zip(g.chunks(BLOCK)) {
            let d = &mut scratch[..x.len()];
            T::row_minus(x, mean, T::ZERO, d);
            total += T::row_dot(g, d).to_f64();
        }
        *product = T::from_f64(total) * inv;
    }
}

/// Rows `first..` as far as `dx` goes, and the sums of their channels.
#[inline(always)]
fn grad_body<const FMA: bool, T: Grouped>(
    up: GroupUpstream<'_, T>,
    by: Groups,
    first: usize,
    dx: &mut [T],
    sums: &mut [T],
    products: &mut [T],
) {
    let count = by.count();
    let per_row = sums.chunks_exact_mut(by.channels).zip(products.chunks_exact_mut(by.channels));
    for (i, (dx, (sums, products))) in dx.chunks_exact_mut(count).zip(per_row).enumerate() {
        let row = first + i;
        let part = row * count..(row + 1) * count;
        let (x, g) = (&up.x[part.clone()], &up.g[part]);
        let (mean, inv) = (up.stats.mean[row], up.stats.inv_std[row]);
        channel_sums(x, g, by.inner, [mean, inv], sums, products);
        let gain = by.of(row, up.gain);
        let total = |x: &[T]| match gain {
            Some(gain) => T::row_dot(gain, x).to_f64(),
            None => T::row_sum(x).to_f64(),
        };
        let n = count as f64;
        // dx = inv * (g * gain - mean of (g * gain) - h * mean of (g * gain * h)), with h = (x - mean) * inv.
        let shift = T::from_f64(total(sums) / n) * inv;
        let slope = T::from_f64(total(products) / n) * inv * inv;
        let back = |x: T| (x - mean).mul_add::<FMA>(slope, shift);
        if by.inner == 1 {
            let elements = dx.iter_mut().zip(x).zip(g);
            if let Some(gain) = gain {
                for (((o, &x), &g), &gain) in elements.zip(gain) {
                    *o = g * (inv * gain) - back(x);
                }
            } else {
                for ((o, &x), &g) in elements {
                    *o = g * inv - back(x);
                }
            }
            continue;
        }
        let channels = x.chunks_exact(by.inner).zip(g.chunks_exact(by.inner));
        for (channel, (dx, (x, g))) in dx.chunks_exact_mut(by.inner).zip(channels).enumerate() {
            let factor = gain.map_or(inv, |gain| inv * gain[channel]);
            for ((o, &x), &g) in dx.iter_mut().zip(x).zip(g) {
                *o = g * factor - back(x);
            }
        }
    }
}

vectorized! {
    fn grad_rows[T](up: GroupUpstream<'_, T>, by: Groups, first: usize, dx: &mut [T], sums: &mut [T], products: &mut [T])
        where [T: Grouped] = grad_body
}

/// The gradients of the input, the gain and the bias. The sums over samples are taken in f64.
pub fn group_norm_grad<T: Grouped>(
    up: GroupUpstream<'_, T>,
    by: Groups,
    dx: &mut [T],
    dgain: &mut [T],
    dbias: &mut [T],
) {
    assert!(up.x.len() == dx.len() && up.g.len() == dx.len());
    let channels = by.groups * by.channels;
    if dx.is_empty() {
        dgain.fill(T::ZERO);
        dbias.fill(T::ZERO);
        return;
    }
    let mut sums = vec![T::ZERO; dx.len() / by.inner];
    let mut products = sums.clone();
    if !shared(dx.len()) {
        grad_rows(up, by, 0, dx, &mut sums, &mut products);
    } else {
        let high = by.rows_at_once();
        let per_row =
            sums.chunks_mut(high * by.channels).zip(products.chunks_mut(high * by.channels));
        let pieces = dx.chunks_mut(high * by.count()).zip(per_row).enumerate();
        threads::for_each(true, pieces, |(i, (dx, (sums, products)))| {
            grad_rows(up, by, i * high, dx, sums, products);
        });
    }
    for (out, parts) in [(dgain, &products), (dbias, &sums)] {
        let mut totals = vec![0.0; channels];
        for sample in parts.chunks_exact(channels) {
            totals.iter_mut().zip(sample).for_each(|(total, x)| *total += x.to_f64());
        }
        out.iter_mut().zip(totals).for_each(|(out, total)| *out = T::from_f64(total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<T: Grouped>(n: usize, k: usize) -> Vec<T> {
        (0..n).map(|i| T::from_f64(((i * k + 3) % 17) as f64 * 0.25 - 1.0)).collect()
    }

    /// Against loops in f64 that go by the formulas.
    fn check<T: Grouped>(samples: usize, by: Groups, tolerance: f64) {
        let (count, rows) = (by.count(), samples * by.groups);
        let channels = by.groups * by.channels;
        let (x, g) = (numbers::<T>(rows * count, 5), numbers::<T>(rows * count, 7));
        let (gain, bias) = (numbers::<T>(channels, 3), numbers::<T>(channels, 4));
        let (mut mean, mut var) = (vec![T::ZERO; rows], vec![T::ZERO; rows]);
        row_stats(&x, by, &mut mean, &mut var);
        let inv: Vec<T> = var.iter().map(|&v| T::ONE / (v + T::from_f64(0.1)).sqrt()).collect();
        let stats = Stats { mean: &mean, inv_std: &inv };
        let (mut y, mut dx) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
        let (mut dgain, mut dbias) = (vec![T::ONE; channels], vec![T::ONE; channels]);
        group_norm_apply(&x, by, stats, Some(&gain), Some(&bias), &mut y);
        let up = GroupUpstream { g: &g, x: &x, stats, gain: Some(&gain) };
        group_norm_grad(up, by, &mut dx, &mut dgain, &mut dbias);
        let near = |what: &str, got: T, want: f64| {
            let (got, size) = (got.to_f64(), want.abs().max(1.0));
            assert!((got - want).abs() <= tolerance * size, "{by:?}, {what}: {got}, not {want}");
        };
        let (mut gains, mut biases) = (vec![0.0; channels], vec![0.0; channels]);
        for row in 0..rows {
            let wide = |x: &[T]| -> Vec<f64> {
                x[row * count..][..count].iter().map(|x| x.to_f64()).collect()
            };
            let (x, g) = (wide(&x), wide(&g));
            let n = count as f64;
            let m = x.iter().sum::<f64>() / n;
            let v = x.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / n;
            let inv = 1.0 / (v + 0.1).sqrt();
            let channel = |i: usize| row % by.groups * by.channels + i / by.inner;
            let h: Vec<f64> = x.iter().map(|x| (x - m) * inv).collect();
            let gg: Vec<f64> = (0..count).map(|i| g[i] * gain[channel(i)].to_f64()).collect();
            let a = gg.iter().sum::<f64>() / n;
            let b = gg.iter().zip(&h).map(|(g, h)| g * h).sum::<f64>() / n;
            for i in 0..count {
                let c = channel(i);
                near("y", y[row * count + i], h[i] * gain[c].to_f64() + bias[c].to_f64());
                near("dx", dx[row * count + i], inv * (gg[i] - a - h[i] * b));
                gains[c] += g[i] * h[i];
                biases[c] += g[i];
            }
        }
        for c in 0..channels {
            near("dgain", dgain[c], gains[c]);
            near("dbias", dbias[c], biases[c]);
        }
    }

    #[test]
    fn groups_of_every_size() {
        for inner in [1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 257] {
            for (samples, groups, channels) in [(1, 1, 2), (2, 3, 1), (3, 2, 5)] {
                let by = Groups { groups, channels, inner };
                check::<f64>(samples, by, 1e-12);
                check::<f32>(samples, by, 2e-5);
            }
        }
    }

    /// Large arrays are split among threads.
    #[test]
    fn many_rows() {
        check::<f64>(300, Groups { groups: 4, channels: 8, inner: 17 }, 1e-10);
        check::<f64>(900, Groups { groups: 5, channels: 31, inner: 1 }, 1e-10);
    }
}
