//! The largest element and its position, and moves of elements to and from positions along an axis.
//!
//! NaN counts as larger than everything, so that it is not lost; of several equal elements the
//! first one counts.

use super::LANES;
use crate::simd::vectorized;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// A number that has an order.
pub trait Ranked: Copy + PartialOrd + Default + Send + Sync {
    /// The least element of the type.
    const LOWEST: Self;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;

    /// The largest element of each row of `count` elements, of which there must be one at least.
    fn max_rows(x: &[Self], count: usize, out: &mut [Self]) {
        plain_max(x, count, out)
    }

    /// As [`Ranked::max_rows`], with the first position of that element.
    fn argmax_rows(x: &[Self], count: usize, out: &mut [Self], index: &mut [i64]) {
        plain_argmax(x, count, out, index)
    }
}

macro_rules! ranked {
    ($($t:ty, $lowest:expr, |$x:ident| $nan:expr;)*) => {$(
        impl Ranked for $t {
            const LOWEST: $t = $lowest;
            #[inline(always)]
            fn is_nan(self) -> bool {
                let $x = self;
                $nan
            }
        }
    )*};
}
ranked! {
    f64, f64::NEG_INFINITY, |x| f64::is_nan(x);
    i64, i64::MIN, |_x| false;
    u8, 0, |_x| false;
}

impl Ranked for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }

    fn max_rows(x: &[f32], count: usize, out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if level() == Level::Avx512 {
            // SAFETY: the processor has what this level stands for.
            return unsafe { super::wide::max_rows(x, count, out) };
        }
        plain_max(x, count, out)
    }

    fn argmax_rows(x: &[f32], count: usize, out: &mut [f32], index: &mut [i64]) {
        #[cfg(target_arch = "x86_64")]
        if level() == Level::Avx512 {
            // SAFETY: the processor has what this level stands for.
            return unsafe { super::wide::argmax_rows(x, count, out, index) };
        }
        plain_argmax(x, count, out, index)
    }
}

/// The larger of the two; NaN if one is.
#[inline(always)]
fn larger<T: Ranked>(m: T, v: T) -> T {
    if v > m || v.is_nan() { v } else { m }
}

/// The larger of the two, neither being NaN.
#[inline(always)]
fn higher<T: Ranked>(m: T, v: T) -> T {
    if v > m { v } else { m }
}

/// NaN is looked for beside the comparisons, all of which it loses, so that each of them is one
/// instruction. Two vectors of lanes hide their latency.
#[inline(always)]
fn row_max<T: Ranked>(row: &[T]) -> T {
    const WIDTH: usize = 2 * LANES;
    let mut lanes = [T::LOWEST; WIDTH];
    let mut nan = false;
    let (chunks, rest) = row.as_chunks::<WIDTH>();
    for chunk in chunks {
        for (m, &v) in lanes.iter_mut().zip(chunk) {
            nan |= v.is_nan();
            *m = higher(*m, v);
        }
    }
    for (m, &v) in lanes.iter_mut().zip(rest) {
        nan |= v.is_nan();
        *m = higher(*m, v);
    }
    if nan {
        return row[first(row, T::is_nan)];
    }
    let mut width = WIDTH / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = higher(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Position of the first element equal to the largest, `m`.
#[inline(always)]
fn position<T: Ranked>(row: &[T], m: T) -> usize {
    if m.is_nan() { first(row, T::is_nan) } else { first(row, |v| v == m) }
}

/// Position of the first element that `hit` holds for, or 0.
#[inline(always)]
fn first<T: Copy>(row: &[T], hit: impl Fn(T) -> bool) -> usize {
    const CHUNK: usize = 4 * LANES;
    for (k, chunk) in row.chunks(CHUNK).enumerate() {
        // Without an exit inside a chunk the compare is a few vector instructions.
        let mut any = false;
        for &v in chunk {
            any |= hit(v);
        }
        if any {
            return k * CHUNK + chunk.iter().position(|&v| hit(v)).unwrap_or(0);
        }
    }
    0
}

#[inline(always)]
fn max_rows_body<const FMA: bool, T: Ranked>(x: &[T], count: usize, out: &mut [T]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = row_max(&x[i * count..][..count]);
    }
}

vectorized! {
    fn plain_max[T](x: &[T], count: usize, out: &mut [T]) where [T: Ranked] = max_rows_body
}

#[inline(always)]
fn max_columns_body<const FMA: bool, T: Ranked>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
) {
    if inner == 0 {
        return;
    }
    for (out, x) in out.chunks_exact_mut(inner).zip(x.chunks_exact(count * inner)) {
        out.copy_from_slice(&x[..inner]);
        let mut groups = x[inner..].chunks_exact(4 * inner);
        for group in groups.by_ref() {
            let row = |i: usize| &group[i * inner..][..inner];
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            for j in 0..inner {
                out[j] = larger(larger(larger(larger(out[j], a[j]), b[j]), c[j]), d[j]);
            }
        }
        for row in groups.remainder().chunks_exact(inner) {
            for (m, &v) in out.iter_mut().zip(row) {
                *m = larger(*m, v);
            }
        }
    }
}

vectorized! {
    /// The largest element over the middle axis of `[outer, count, inner]`; `count` must be one at
    /// least.
    fn max_columns[T](x: &[T], count: usize, inner: usize, out: &mut [T]) where [T: Ranked] = max_columns_body
}

/// The largest element over the middle axis of `[outer, count, inner]`. With a `count` of 0 there
/// must be no `out` either.
pub fn max<T: Ranked>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    if inner == 1 { T::max_rows(x, count, out) } else { max_columns(x, count, inner, out) }
}

#[inline(always)]
fn argmax_rows_body<const FMA: bool, T: Ranked>(
    x: &[T],
    count: usize,
    out: &mut [T],
    index: &mut [i64],
) {
    for (i, (o, at)) in out.iter_mut().zip(index).enumerate() {
        let row = &x[i * count..][..count];
        *o = row_max(row);
        *at = position(row, *o) as i64;
    }
}

vectorized! {
    fn plain_argmax[T](x: &[T], count: usize, out: &mut [T], index: &mut [i64]) where [T: Ranked] = argmax_rows_body
}

#[inline(always)]
fn argmax_columns_body<const FMA: bool, T: Ranked>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
    index: &mut [i64],
) {
    if inner == 0 {
        return;
    }
    for ((out, index), x) in out
        .chunks_exact_mut(inner)
        .zip(index.chunks_exact_mut(inner))
        .zip(x.chunks_exact(count * inner))
    {
        out.copy_from_slice(&x[..inner]);
        index.fill(0);
        for (i, row) in x.chunks_exact(inner).enumerate().skip(1) {
            for ((m, at), &v) in out.iter_mut().zip(index.iter_mut()).zip(row) {
                let takes = v > *m || (v.is_nan() && !m.is_nan());
                *at = if takes { i as i64 } else { *at };
                *m = if takes { v } else { *m };
            }
        }
    }
}

vectorized! {
    /// The largest element over the middle axis of `[outer, count, inner]` and where it first
    /// stands.
    fn argmax_columns[T](x: &[T], count: usize, inner: usize, out: &mut [T], index: &mut [i64])
        where [T: Ranked] = argmax_columns_body
}

/// The largest element over the middle axis of `[outer, count, inner]` and its first position along
/// it. With a `count` of 0 there must be no `out` either.
pub fn argmax<T: Ranked>(x: &[T], count: usize, inner: usize, out: &mut [T], index: &mut [i64]) {
    if out.is_empty() {
        return;
    }
    if inner == 1 {
        T::argmax_rows(x, count, out, index)
    } else {
        argmax_columns(x, count, inner, out, index)
    }
}

/// Puts `g[o, i]` at position `index[o, i]` of the middle axis of `out`, `[outer, count, inner]`,
/// among zeros. Every index must lie in `0..count`.
pub fn place<T: Copy + Default>(g: &[T], index: &[i64], count: usize, inner: usize, out: &mut [T]) {
    out.fill(T::default());
    for (k, (&g, &at)) in g.iter().zip(index).enumerate() {
        let (o, i) = (k / inner, k % inner);
        out[(o * count + at as usize) * inner + i] = g;
    }
}

/// The reverse of [`place`]: `out[o, i]` is what stands at position `index[o, i]` of the middle
/// axis of `x`.
pub fn pick<T: Copy>(x: &[T], index: &[i64], count: usize, inner: usize, out: &mut [T]) {
    for (k, (out, &at)) in out.iter_mut().zip(index).enumerate() {
        let (o, i) = (k / inner, k % inner);
        *out = x[(o * count + at as usize) * inner + i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of the largest, where NaN is the largest: a plain scan.
    fn scan(column: &[f64]) -> usize {
        let mut best = 0;
        for (i, v) in column.iter().enumerate() {
            if column[best].is_nan() {
                break;
            }
            if v.is_nan() || *v > column[best] {
                best = i;
            }
        }
        best
    }

    #[test]
    fn the_largest_is_found_at_odd_sizes() {
        for count in [1usize, 7, 8, 9, 10, 15, 16, 17, 27, 127, 128, 129] {
            for inner in [1usize, 2, 15, 16, 17] {
                for with_nan in [false, true] {
                    let mut x: Vec<f64> =
                        (0..3 * count * inner).map(|i| ((i * 7919) % 13) as f64 - 20.0).collect();
                    if with_nan {
                        (0..x.len()).step_by(11).for_each(|i| x[i] = f64::NAN);
                    }
                    let (mut values, mut index) = (vec![0.0; 3 * inner], vec![-1; 3 * inner]);
                    argmax(&x, count, inner, &mut values, &mut index);
                    let mut only = vec![0.0; 3 * inner];
                    max(&x, count, inner, &mut only);
                    let mut picked = vec![0.0; 3 * inner];
                    pick(&x, &index, count, inner, &mut picked);
                    for k in 0..3 * inner {
                        let (o, j) = (k / inner, k % inner);
                        let column: Vec<f64> =
                            (0..count).map(|i| x[(o * count + i) * inner + j]).collect();
                        let want = scan(&column);
                        assert_eq!(index[k], want as i64, "{count} {inner} {column:?}");
                        for v in [values[k], only[k], picked[k]] {
                            assert_eq!(v.to_bits(), column[want].to_bits());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_level_finds_the_same_in_f32() {
        for n in [1usize, 7, 8, 9, 10, 15, 16, 17, 27, 127, 128, 129] {
            for nan in [None, Some(0), Some(n / 2), Some(n - 1)] {
                let mut x: Vec<f32> = (0..3 * n).map(|i| ((i * 31) % 7) as f32 - 9.0).collect();
                if let Some(at) = nan {
                    x[n + at] = f32::NAN;
                    x[2 * n - 1] = f32::NAN;
                }
                let (mut v, mut at) = ([[0.0f32; 3]; 3], [[-1; 3]; 2]);
                plain_argmax(&x, n, &mut v[0], &mut at[0]);
                f32::argmax_rows(&x, n, &mut v[1], &mut at[1]);
                f32::max_rows(&x, n, &mut v[2]);
                assert_eq!(at[0], at[1]);
                assert_eq!(v[0].map(f32::to_bits), v[1].map(f32::to_bits));
                assert_eq!(v[0].map(f32::to_bits), v[2].map(f32::to_bits));
            }
        }
    }

    #[test]
    fn the_lowest_can_be_the_largest() {
        let (mut v, mut at) = ([0i64], [9i64]);
        argmax(&[i64::MIN; 20], 20, 1, &mut v, &mut at);
        assert_eq!((v[0], at[0]), (i64::MIN, 0));
        let mut v = [0.0f32];
        max(&[f32::NEG_INFINITY; 3], 3, 1, &mut v);
        assert_eq!(v[0], f32::NEG_INFINITY);
        let (mut v, mut at) = ([7u8], [9i64]);
        argmax(&[0u8, 0, 1, 1], 4, 1, &mut v, &mut at);
        assert_eq!((v[0], at[0]), (1, 2));
    }

    #[test]
    fn place_undoes_pick() {
        let x = [1, 2, 3, 4, 5, 6];
        let mut picked = [0; 2];
        pick(&x, &[2, 0], 3, 2, &mut picked);
        assert_eq!(picked, [5, 2]);
        let mut out = [9; 6];
        place(&picked, &[2, 0], 3, 2, &mut out);
        assert_eq!(out, [0, 2, 0, 0, 5, 0]);
    }
}
