//! Mean and squared deviations, in two passes: first the mean, then the deviations from it.
//!
//! The mean is rounded, which shows in the variance when the dtype has few digits and the mean is
//! far from 0. The deviations are therefore summed as well: their exact sum is 0, and their
//! computed sum corrects the sum of squares.

use super::{BLOCK, LANES, Summed, sum, sum_of};
use crate::map::Rows;
use crate::math::Real;
use crate::simd::vectorized;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// The squared deviations, corrected for the rounding of the mean; an overflow stays one.
#[inline(always)]
pub(super) fn corrected<T: Real>(squares: T, rest: T, n: T) -> T {
    let exact = squares - rest * (rest / n);
    if squares == T::INFINITY { squares } else { exact }
}

/// Columns treated together: the length of the arrays of running values.
const TILE: usize = 256;

/// f32 or f64, with the squared deviations of rows.
pub trait Centred: Real + Summed {
    /// For each row of `count` elements the squared deviations from its mean, divided by `scale`.
    fn squares_rows(x: &[Self], count: usize, scale: Self, mean: &[Self], var: &mut [Self]) {
        plain_rows(x, count, scale, mean, var)
    }
}
impl Centred for f64 {}
impl Centred for f32 {
    fn squares_rows(x: &[f32], count: usize, scale: f32, mean: &[f32], var: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if level() == Level::Avx512 {
            // SAFETY: the processor has what this level stands for.
            return unsafe { super::wide::squares_rows(x, count, scale, mean, var) };
        }
        plain_rows(x, count, scale, mean, var)
    }
}

#[inline(always)]
fn rows_body<const FMA: bool, T: Centred>(
    x: &[T],
    count: usize,
    scale: T,
    mean: &[T],
    var: &mut [T],
) {
    let n = T::from_f64(count as f64);
    for (i, (&m, var)) in mean.iter().zip(var).enumerate() {
        let (mut squares, mut rest) = (T::ZERO, T::ZERO);
        for block in x[i * count..][..count].chunks(BLOCK * LANES) {
            squares += sum_of(block, |x| (x - m) * (x - m));
            rest += sum_of(block, |x| x - m);
        }
        *var = corrected(squares, rest, n) / scale;
    }
}

vectorized! {
    fn plain_rows[T](x: &[T], count: usize, scale: T, mean: &[T], var: &mut [T]) where [T: Centred] = rows_body
}

/// The rows of a tile of columns: each `inner` elements after the one before it.
#[inline(always)]
fn rows<T>(x: &[T], inner: usize, from: usize, width: usize) -> impl Iterator<Item = &[T]> {
    x.chunks_exact(inner).map(move |row| &row[from..][..width])
}

#[inline(always)]
fn tile_squares<T: Real>(
    x: &[T],
    inner: usize,
    from: usize,
    mean: &[T],
    squares: &mut [T],
    rest: &mut [T],
) {
    let width = mean.len();
    let mut group = x.chunks_exact(4 * inner);
    for four in group.by_ref() {
        let row = |i: usize| &four[i * inner + from..][..width];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        for j in 0..width {
            let m = mean[j];
            let (a, b, c, d) = (a[j] - m, b[j] - m, c[j] - m, d[j] - m);
            squares[j] += (a * a + b * b) + (c * c + d * d);
            rest[j] += (a + b) + (c + d);
        }
    }
    for row in rows(group.remainder(), inner, from, width) {
        for (j, &x) in row.iter().enumerate() {
            let d = x - mean[j];
            squares[j] += d * d;
            rest[j] += d;
        }
    }
}

#[inline(always)]
fn squares_columns_body<const FMA: bool, T: Real>(
    x: &[T],
    count: usize,
    inner: usize,
    scale: T,
    mean: &[T],
    var: &mut [T],
) {
    let n = T::from_f64(count as f64);
    for (o, (mean, var)) in mean.chunks_exact(inner).zip(var.chunks_exact_mut(inner)).enumerate() {
        let x = &x[o * count * inner..][..count * inner];
        for from in (0..inner).step_by(TILE) {
            let width = TILE.min(inner - from);
            let mean = &mean[from..][..width];
            let var = &mut var[from..][..width];
            let (mut squares, mut rest) = ([T::ZERO; TILE], [T::ZERO; TILE]);
            let (squares, rest) = (&mut squares[..width], &mut rest[..width]);
            var.fill(T::ZERO);
            for block in x.chunks(BLOCK * inner) {
                squares.fill(T::ZERO);
                tile_squares(block, inner, from, mean, squares, rest);
                for (v, &s) in var.iter_mut().zip(squares.iter()) {
                    *v += s;
                }
            }
            for (v, &r) in var.iter_mut().zip(rest.iter()) {
                *v = corrected(*v, r, n) / scale;
            }
        }
    }
}

vectorized! {
    /// Over the middle axis of `[outer, count, inner]` the squared deviations from the mean,
    /// divided by `scale`.
    fn squares_columns[T](x: &[T], count: usize, inner: usize, scale: T, mean: &[T], var: &mut [T])
        where [T: Real] = squares_columns_body
}

/// Over the middle axis of `[outer, count, inner]` the mean, which is the sum divided, and the
/// squared deviations from it divided by `scale`.
pub fn moments<T: Centred>(
    x: &[T],
    count: usize,
    inner: usize,
    scale: T,
    mean: &mut [T],
    var: &mut [T],
) {
    sum(x, count, inner, mean);
    let n = T::from_f64(count as f64);
    mean.iter_mut().for_each(|mean| *mean = *mean / n);
    match inner {
        0 => {}
        1 => T::squares_rows(x, count, scale, mean, var),
        _ => squares_columns(x, count, inner, scale, mean, var),
    }
}

#[inline(always)]
fn centred_body<const FMA: bool, T: Real>(
    x: Rows<'_, T>,
    mean: Rows<'_, T>,
    g: Rows<'_, T>,
    factor: T,
    n: usize,
    out: &mut [T],
) {
    if n == 0 {
        return;
    }
    let at = |r: &Rows<'_, T>, i: usize| r.data[i * r.step];
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        if !x.splat && mean.splat && g.splat {
            let (m, g) = (at(&mean, i), factor * at(&g, i));
            for (o, &x) in out.iter_mut().zip(&x.data[i * x.step..][..n]) {
                *o = (x - m) * g;
            }
        } else if !x.splat && !mean.splat && !g.splat {
            let means = mean.data[i * mean.step..][..n].iter();
            let gs = g.data[i * g.step..][..n].iter();
            let xs = x.data[i * x.step..][..n].iter();
            for (o, ((&x, &m), &g)) in out.iter_mut().zip(xs.zip(means).zip(gs)) {
                *o = (x - m) * (factor * g);
            }
        } else {
            let one = |r: &Rows<'_, T>, j: usize| r.data[i * r.step + if r.splat { 0 } else { j }];
            for (j, o) in out.iter_mut().enumerate() {
                *o = (one(&x, j) - one(&mean, j)) * (factor * one(&g, j));
            }
        }
    }
}

vectorized! {
    /// `out = (x - mean) * (factor * g)` for rows of `n` elements.
    pub fn centred[T](x: Rows<'_, T>, mean: Rows<'_, T>, g: Rows<'_, T>, factor: T, n: usize, out: &mut [T])
        where [T: Real] = centred_body
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and squared deviations in f64, by Welford's recurrence: another path than the kernel's.
    fn welford(x: impl Iterator<Item = f64>) -> (f64, f64) {
        let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for x in x {
            n += 1.0;
            let d = x - mean;
            mean += d / n;
            squares += d * (x - mean);
        }
        (mean, squares)
    }

    fn check<T: Centred>(tolerance: f64, offset: f64) {
        for count in [1usize, 7, 8, 9, 15, 16, 17, 32, 127, 128, 129, 300, 5000] {
            for inner in [1usize, 2, 8, 15, 17, 200, 255, 256, 257] {
                if count * inner > 200_000 {
                    continue;
                }
                let x: Vec<T> = (0..2 * count * inner)
                    .map(|i| T::from_f64(offset + ((i * 7919) % 1009) as f64 / 256.0))
                    .collect();
                let (mut mean, mut var) = (vec![T::ZERO; 2 * inner], vec![T::ZERO; 2 * inner]);
                moments(&x, count, inner, T::ONE, &mut mean, &mut var);
                for k in 0..2 * inner {
                    let (o, j) = (k / inner, k % inner);
                    let column = (0..count).map(|i| x[(o * count + i) * inner + j].to_f64());
                    let (m, s) = welford(column);
                    let scale = s.max(1e-6 * count as f64);
                    assert!(
                        (mean[k].to_f64() - m).abs() <= tolerance * m.abs().max(1.0),
                        "mean {count} {inner}"
                    );
                    assert!(
                        (var[k].to_f64() - s).abs() <= tolerance * scale,
                        "var {count} {inner}: {} {s}",
                        var[k].to_f64()
                    );
                }
            }
        }
    }

    #[test]
    fn moments_match_another_recurrence() {
        check::<f32>(3e-6, 0.0);
        check::<f64>(1e-13, 0.0);
    }

    /// Without the correction the variance here would be off by 1e-3: the mean is rounded to 1/128.
    #[test]
    fn a_far_mean_does_not_spoil_the_variance() {
        check::<f32>(3e-6, 65536.0);
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        for n in [1usize, 8, 9, 10, 15, 16, 17, 27, 127, 128, 129, 2048, 2049, 5000] {
            let x: Vec<f32> = (0..2 * n).map(|i| (i as f32 * 0.37).sin() + 3.0).collect();
            let (mean, mut v) = ([2.9, 3.1], [[0.0; 2]; 2]);
            plain_rows(&x, n, 3.0, &mean, &mut v[0]);
            f32::squares_rows(&x, n, 3.0, &mean, &mut v[1]);
            assert_eq!(v[0], v[1], "{n}");
        }
    }

    #[test]
    fn centred_takes_any_mix_of_splats() {
        for n in [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let data: Vec<f64> = (0..3 * n.max(1)).map(|i| (i * i % 23) as f64).collect();
            for mix in 0..8 {
                let rows = |bit: usize| Rows {
                    data: &data[..],
                    step: if mix >> bit & 1 == 1 { 1 } else { n },
                    splat: mix >> bit & 1 == 1,
                };
                let mut out = vec![f64::NAN; 3 * n];
                centred(rows(0), rows(1), rows(2), 0.5, n, &mut out);
                for (k, &o) in out.iter().enumerate() {
                    let at = |bit: usize| data[if mix >> bit & 1 == 1 { k / n } else { k }];
                    assert_eq!(o, (at(0) - at(1)) * at(2) * 0.5);
                }
            }
        }
    }
}
