//! Rows for group normalisation: how a sample falls into groups of channels, and rows whose
//! channels are several neighbouring elements, for which gain and bias are one number. The loops
//! over rows know nothing of samples; gain and bias repeat from sample to sample.

use super::layer::{Affine, LANES, ROWS, Slope, Stats, sums};
use crate::math::Real;

/// The split of a sample into rows, one for each group of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRows {
    /// Groups of channels in a sample.
    pub groups: usize,
    /// Channels in a group.
    pub channels: usize,
    /// Elements of a channel, which are neighbours.
    pub inner: usize,
}

impl GroupRows {
    /// A sample that is one row of `n` channels, each of one element: layer normalisation.
    pub fn of_elements(n: usize) -> GroupRows {
        GroupRows { groups: 1, channels: n, inner: 1 }
    }

    /// Elements of a row.
    #[expect(clippy::len_without_is_empty, reason = "a row of no elements is of no interest")]
    #[inline(always)]
    pub fn len(self) -> usize {
        self.channels * self.inner
    }

    /// Elements of a sample.
    pub fn sample(self) -> usize {
        self.groups * self.len()
    }

    /// The channels of all groups, for each of which there is a gain and a bias.
    pub fn width(self) -> usize {
        self.groups * self.channels
    }

    /// Samples whose gradients of gain and bias are added in the type itself.
    pub fn samples_at_once(self) -> usize {
        (ROWS / self.inner.max(1)).max(1)
    }

    /// Number of pieces of this many samples.
    pub fn pieces(self, samples: usize) -> usize {
        samples.div_ceil(self.samples_at_once())
    }

    /// The channels of row `row`.
    #[inline(always)]
    pub(super) fn channels_of(self, row: usize) -> std::ops::Range<usize> {
        let first = row % self.groups * self.channels;
        first..first + self.channels
    }
}

/// `out = xhat * gain + bias` for a row.
#[inline(always)]
pub(super) fn apply_channels<const FMA: bool, T: Real>(
    x: &[T],
    inner: usize,
    stats: Stats<T>,
    by: Affine<'_, T>,
    out: &mut [T],
) {
    let channels = x.chunks_exact(inner).zip(out.chunks_exact_mut(inner));
    for (channel, (x, out)) in channels.enumerate() {
        let gain = by.gain.map_or(T::ONE, |gain| gain[channel]);
        let bias = by.bias.map_or(T::ZERO, |bias| bias[channel]);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = stats.hat::<FMA>(x).mul_add::<FMA>(gain, bias);
        }
    }
}

/// The sums of `g` and of `g * xhat` over a channel.
#[inline(always)]
fn channel_sums<const FMA: bool, T: Real>(x: &[T], g: &[T], stats: Stats<T>) -> [f64; 2] {
    let term = |x: T, g: T, _: T| [g, g * stats.hat::<FMA>(x)];
    if x.len() >= LANES {
        return sums([x, g, g], term);
    }
    let mut total = [T::ZERO; 2];
    for (&x, &g) in x.iter().zip(g) {
        let [a, b] = term(x, g, g);
        total = [total[0] + a, total[1] + b];
    }
    total.map(T::to_f64)
}

/// The gradient of a row; what it adds to those of gain and bias, where they are wanted.
#[inline(always)]
pub(super) fn grad_channels<const FMA: bool, T: Real>(
    (x, g): (&[T], &[T]),
    gain: Option<&[T]>,
    (inner, stats): (usize, Stats<T>),
    slope: impl Fn([f64; 2]) -> Slope<T>,
    dx: &mut [T],
    [dgain, dbias]: [&mut [T]; 2],
) {
    let factor = |channel: usize| gain.map_or(T::ONE, |gain| gain[channel]);
    let (mut both, channels) = ([0.0; 2], x.chunks_exact(inner).zip(g.chunks_exact(inner)));
    for (channel, (x, g)) in channels.clone().enumerate() {
        let [sum, product] = channel_sums::<FMA, T>(x, g, stats);
        if let Some(dbias) = dbias.get_mut(channel) {
            *dbias += T::from_f64(sum);
        }
        if let Some(dgain) = dgain.get_mut(channel) {
            *dgain += T::from_f64(product);
        }
        let factor = factor(channel).to_f64();
        both = [both[0] + sum * factor, both[1] + product * factor];
    }
    let by = slope(both);
    for (channel, (dx, (x, g))) in dx.chunks_exact_mut(inner).zip(channels).enumerate() {
        let factor = factor(channel);
        for ((dx, &x), &g) in dx.iter_mut().zip(x).zip(g) {
            *dx = by.at::<FMA>(g * factor, stats.hat::<FMA>(x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer::{Norm, RowNormUpstream, STATS, backward, forward};
    use super::*;
    use crate::reduce::Summed;

    fn numbers<T: Real>(n: usize, k: usize) -> Vec<T> {
        (0..n).map(|i| T::from_f64(((i * k + 3) % 17) as f64 * 0.25 - 1.0)).collect()
    }

    /// Against loops in f64 that go by the formulas.
    fn check<T: Real + Summed>(samples: usize, by: GroupRows, tolerance: f64) {
        let (count, rows, channels) = (by.len(), samples * by.groups, by.width());
        let (x, g) = (numbers::<T>(rows * count, 5), numbers::<T>(rows * count, 7));
        let (gain, bias) = (numbers::<T>(channels, 3), numbers::<T>(channels, 4));
        let zeros = |len| vec![T::ZERO; len];
        let (mut y, mut dx, mut kept) = (zeros(x.len()), zeros(x.len()), zeros(rows * STATS));
        let (mut dgain, mut dbias) = (zeros(channels), zeros(channels));
        let affine = Affine { gain: Some(&gain[..]), bias: Some(&bias[..]) };
        forward(&x, by, affine, (Norm::Layer, 0.1), &mut y, &mut kept);
        let up = RowNormUpstream { g: &g, x: &x, kept: &kept, gain: Some(&gain[..]) };
        let mut scratch = zeros(by.pieces(samples) * channels * 2);
        backward(up, by, Norm::Layer, &mut dx, [&mut dgain, &mut dbias], &mut scratch);
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
                let by = GroupRows { groups, channels, inner };
                check::<f64>(samples, by, 1e-12);
                check::<f32>(samples, by, 2e-5);
            }
        }
    }

    /// Large arrays are split among threads.
    #[test]
    fn many_rows() {
        check::<f64>(300, GroupRows { groups: 4, channels: 8, inner: 17 }, 1e-10);
        check::<f64>(900, GroupRows { groups: 5, channels: 31, inner: 1 }, 1e-10);
    }
}
