//! Distances between all pairs of rows of two matrices. They are computed from differences, not
//! from products, so that distances between close rows keep their digits.
//!
//! Columns of the result are computed side by side from a transposed copy of the second matrix, of
//! some rows at once, so that what is read of it serves all of them. The differences of 32 elements
//! are summed in the dtype, these sums in f64.

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::{Level, array, level, vectorized};
use super::threads;

/// Columns of the result computed side by side.
const WIDE: usize = 64;
/// Rows that are computed at once, at most.
const STRIP: usize = 2;
/// Rows per piece if the second matrix has many rows, and the number of pieces if it has fewer.
const HIGH: usize = 32;
const PARTS: usize = 8;
/// Differences added in one pass over the sums of a row.
const STEP: usize = 4;
/// Differences summed in their own dtype.
const BLOCK: usize = 32;

/// The sum that a distance is computed from.
trait Metric: Copy + Send + Sync {
    /// Whether a difference takes an instruction or two.
    const IS_SHORT: bool = true;
    /// The sum with one more difference.
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T;
    /// The sum of two sums.
    fn join(self, a: f64, b: f64) -> f64 {
        a + b
    }
    /// The distance from the sum.
    fn root<T: Real>(self, sum: T) -> T {
        sum
    }
}

#[derive(Clone, Copy)]
struct Taxicab;

impl Metric for Taxicab {
    #[inline(always)]
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T {
        sum + difference.abs()
    }
}

#[derive(Clone, Copy)]
struct Euclidean;

impl Metric for Euclidean {
    #[inline(always)]
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T {
        difference.mul_add::<FMA>(difference, sum)
    }
    #[inline(always)]
    fn root<T: Real>(self, sum: T) -> T {
        sum.sqrt()
    }
}

#[derive(Clone, Copy)]
struct Chebyshev;

impl Metric for Chebyshev {
    #[inline(always)]
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T {
        let size = difference.abs();
        // Only a NaN differs from itself.
        #[allow(clippy::eq_op)]
        let takes = (size > sum) | (size != size);
        if takes { size } else { sum }
    }
    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        if (b > a) | b.is_nan() { b } else { a }
    }
}

/// Elements that differ.
#[derive(Clone, Copy)]
struct Hamming;

impl Metric for Hamming {
    #[inline(always)]
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T {
        if difference != T::ZERO { sum + T::ONE } else { sum }
    }
}

#[derive(Clone, Copy)]
struct Power(f64);

impl Metric for Power {
    const IS_SHORT: bool = false;
    #[inline(always)]
    fn plus<const FMA: bool, T: Real>(self, sum: T, difference: T) -> T {
        sum + difference.abs().pow::<FMA>(T::from_f64(self.0))
    }
    #[inline(always)]
    fn root<T: Real>(self, sum: T) -> T {
        sum.pow::<false>(T::from_f64(1.0 / self.0))
    }
}

/// The rows of `b`, transposed: panels of [`WIDE`] rows, element by element. Lanes past the last
/// row hold 0.
fn panels<T: Real>(b: &[T], width: usize) -> Vec<[T; WIDE]> {
    let rows = b.len() / width;
    let mut out = vec![[T::ZERO; WIDE]; rows.div_ceil(WIDE) * width];
    for (panel, rows) in out.chunks_exact_mut(width).zip(b.chunks(WIDE * width)) {
        for (lane, row) in rows.chunks_exact(width).enumerate() {
            panel.iter_mut().zip(row).for_each(|(out, &x)| out[lane] = x);
        }
    }
    out
}

/// Adds the differences of a block of elements of a row.
#[inline(always)]
fn add_block<const FMA: bool, T: Real, M: Metric>(
    row: &[T],
    panel: &[[T; WIDE]],
    metric: M,
    sums: &mut [T; WIDE],
) {
    let (steps, rest) = panel.as_chunks::<STEP>();
    let (x, last) = row.as_chunks::<STEP>();
    for (x, [a, b, c, d]) in x.iter().zip(steps) {
        for i in 0..WIDE {
            let first = metric.plus::<FMA, T>(sums[i], x[0] - a[i]);
            let second = metric.plus::<FMA, T>(first, x[1] - b[i]);
            let third = metric.plus::<FMA, T>(second, x[2] - c[i]);
            sums[i] = metric.plus::<FMA, T>(third, x[3] - d[i]);
        }
    }
    for (&x, column) in last.iter().zip(rest) {
        for (sum, &b) in sums.iter_mut().zip(column) {
            *sum = metric.plus::<FMA, T>(*sum, x - b);
        }
    }
}

/// As [`add_block`], of `R` rows, for which each column is read once.
#[inline(always)]
fn add_blocks<const FMA: bool, const R: usize, T: Real, M: Metric>(
    rows: [&[T]; R],
    panel: &[[T; WIDE]],
    metric: M,
    sums: &mut [[T; WIDE]; R],
) {
    for (at, column) in panel.iter().enumerate() {
        for r in 0..R {
            let x = rows[r][at];
            for i in 0..WIDE {
                sums[r][i] = metric.plus::<FMA, T>(sums[r][i], x - column[i]);
            }
        }
    }
}

/// The sums over `R` rows and a panel.
#[inline(always)]
fn sums<const FMA: bool, const R: usize, T: Real, M: Metric>(
    rows: [&[T]; R],
    panel: &[[T; WIDE]],
    metric: M,
) -> [[f64; WIDE]; R] {
    let mut totals = [[0.0; WIDE]; R];
    for (k, panel) in panel.chunks(BLOCK).enumerate() {
        let rows: [&[T]; R] = array(|r| &rows[r][k * BLOCK..][..panel.len()]);
        let mut sums = [[T::ZERO; WIDE]; R];
        match R {
            1 => add_block::<FMA, T, M>(rows[0], panel, metric, &mut sums[0]),
            _ => add_blocks::<FMA, R, T, M>(rows, panel, metric, &mut sums),
        }
        for (totals, sums) in totals.iter_mut().zip(&sums) {
            for i in 0..WIDE {
                totals[i] = metric.join(totals[i], sums[i].to_f64());
            }
        }
    }
    totals
}

/// The distances of rows to those of the panels, `R` of them at a time; `out` has `count` columns.
/// Rows that are left over, fewer than `R`.
#[inline(always)]
fn strips<'a, const FMA: bool, const R: usize, T: Real, M: Metric>(
    (a, width): (&'a [T], usize),
    panel: &[[T; WIDE]],
    (out, count, first): (&mut [T], usize, usize),
    metric: M,
) -> &'a [T] {
    let strips = a.chunks_exact(R * width);
    let rest = strips.remainder();
    for (strip, out) in strips.zip(out.chunks_exact_mut(R * count)) {
        let totals = sums::<FMA, R, T, M>(array(|r| &strip[r * width..][..width]), panel, metric);
        for (out, totals) in out.chunks_exact_mut(count).zip(&totals) {
            for (out, &total) in out[first..].iter_mut().zip(totals) {
                *out = metric.root(T::from_f64(total));
            }
        }
    }
    rest
}

#[inline(always)]
fn rows_body<const FMA: bool, T: Real, M: Metric>(
    a: &[T],
    width: usize,
    panels: &[[T; WIDE]],
    count: usize,
    metric: M,
    out: &mut [T],
) {
    for (p, panel) in panels.chunks_exact(width).enumerate() {
        let first = p * WIDE;
        // Sums of several rows need the registers of AVX-512.
        let rest = match M::IS_SHORT && level() == Level::Avx512 {
            true => strips::<FMA, STRIP, T, M>((a, width), panel, (out, count, first), metric),
            false => a,
        };
        let done = (a.len() - rest.len()) / width * count;
        strips::<FMA, 1, T, M>((rest, width), panel, (&mut out[done..], count, first), metric);
    }
}

vectorized! {
    fn rows[T, M](a: &[T], width: usize, panels: &[[T; WIDE]], count: usize, metric: M, out: &mut [T])
        where [T: Real, M: Metric] = rows_body
}

/// The distances `sum(|a - b|^p)^(1/p)` of all rows of `width` elements of `a` and of `b`:
/// `out[i, j]` is that of rows `i` and `j`. `p` is 0 for the number of elements that differ, and
/// may be infinite for the largest difference.
pub fn distances<T: Real>(a: &[T], b: &[T], width: usize, p: f64, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    if width == 0 {
        return out.fill(T::ZERO);
    }
    let metric = (a, b, width);
    match p {
        0.0 => run(metric, Hamming, out),
        1.0 => run(metric, Taxicab, out),
        2.0 => run(metric, Euclidean, out),
        f64::INFINITY => run(metric, Chebyshev, out),
        _ => run(metric, Power(p), out),
    }
}

fn run<T: Real, M: Metric>((a, b, width): (&[T], &[T], usize), metric: M, out: &mut [T]) {
    let (panels, count) = (panels(b, width), b.len() / width);
    // Rows that share each read of a panel; few enough that many threads find work.
    let high = (PIECE / (count * width)).max((a.len() / width).div_ceil(PARTS).min(HIGH));
    let high = high.next_multiple_of(STRIP);
    let shared = out.len().saturating_mul(width) >= SHARED;
    let pieces = a.chunks(high * width).zip(out.chunks_mut(high * count));
    threads::for_each(shared, pieces, |(a, out)| rows(a, width, &panels, count, metric, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(a: &[f64], b: &[f64], p: f64) -> f64 {
        let sizes = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        match p {
            0.0 => sizes.filter(|&d| d != 0.0).count() as f64,
            f64::INFINITY => sizes.fold(0.0, f64::max),
            _ => sizes.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    #[test]
    fn odd_sizes_against_plain_loops() {
        for width in [0, 1, 7, 15, 16, 17, 129] {
            for (n, m) in [(0, 3), (3, 0), (1, 1), (4, 16), (5, 17), (3, 128), (2, 261)] {
                let make = |n: usize, k: usize| -> Vec<f64> {
                    (0..n * width).map(|i| (i * k % 23) as f64 * 0.25 - 3.0).collect()
                };
                let (a, b) = (make(n, 7), make(m, 11));
                let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
                for p in [0.0, 0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
                    let (mut wide, mut out) = (vec![f64::NAN; n * m], vec![f32::NAN; n * m]);
                    distances(&a, &b, width, p, &mut wide);
                    distances(&narrow(&a), &narrow(&b), width, p, &mut out);
                    for k in 0..n * m {
                        let row = |x: &[f64], i: usize| x[i * width..][..width].to_vec();
                        let want = plain(&row(&a, k / m), &row(&b, k % m), p);
                        assert!((wide[k] - want).abs() <= 1e-12 * want, "{} {want}", wide[k]);
                        assert!(
                            (f64::from(out[k]) - want).abs() <= 1e-6 * want,
                            "{} {want}",
                            out[k]
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn nan_and_infinities_reach_their_pairs_alone() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for p in [1.0, 2.0, f64::INFINITY] {
            let mut out = [0.0; 6];
            distances(&[0.0, nan, 1.0, 1.0, inf, 0.0], &[0.0, 1.0, 1.0, 1.0], 2, p, &mut out);
            assert!(out[0].is_nan() && out[1].is_nan());
            assert_eq!(out[2..], [1.0, 0.0, inf, inf]);
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let x: Vec<f32> = (0..130 * 40).map(|i| (i * 31 % 1009) as f32 * 0.37).collect();
        let mut out = [vec![0.0; 130 * 130], vec![0.0; 130 * 130]];
        for (count, out) in [1, 3].into_iter().zip(&mut out) {
            threads::with_num_threads(count, || distances(&x, &x, 40, 2.0, out));
        }
        assert_eq!(out[0], out[1]);
    }
}
