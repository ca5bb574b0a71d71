//! Rows of f32 on AVX-512, where a mask cuts the last block (rows of 10 or 27 are mostly
//! remainder), and columns, whose totals fit in the many registers. Additions are in the order of
//! the plain loops, so the bits are the same.

use std::arch::x86_64::*;

use super::{BLOCK, LANES, Summed};
use crate::simd::array;

/// The last few elements, fewer than 16, and the mask of their lanes. The other lanes hold 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn tail(rest: &[f32]) -> (__m512, __mmask16) {
    debug_assert!(rest.len() < LANES);
    let mask = (1u16 << rest.len()) - 1;
    // SAFETY: the mask lets only elements of `rest` be read.
    (unsafe { _mm512_maskz_loadu_ps(mask, rest.as_ptr()) }, mask)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &[f32; LANES]) -> __m512 {
    // SAFETY: the array holds the 16 elements that are read.
    unsafe { _mm512_loadu_ps(block.as_ptr()) }
}

/// Folds the lanes in halves: i with i + 8, + 4, + 2, + 1.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold(v: __m512) -> f32 {
    let eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// The sum of `f(x)`, as the plain `sum_of`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn sum_of(x: &[f32], f: impl Fn(__m512) -> __m512) -> f32 {
    let mut total = 0.0;
    for span in x.chunks(BLOCK * BLOCK * LANES) {
        let mut part = 0.0;
        for group in span.chunks(BLOCK * LANES) {
            let mut acc = _mm512_setzero_ps();
            let (blocks, rest) = group.as_chunks::<LANES>();
            for block in blocks {
                acc = _mm512_add_ps(acc, f(load(block)));
            }
            if !rest.is_empty() {
                let (v, mask) = tail(rest);
                acc = _mm512_mask_add_ps(acc, mask, acc, f(v));
            }
            part += fold(acc);
        }
        total += part;
    }
    total
}

/// Adds the 16 lanes of `v` to two accumulators in f64, element i to lane i.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_wide(acc: &mut [__m512d; 2], v: __m512) {
    acc[0] = _mm512_add_pd(acc[0], _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    acc[1] = _mm512_add_pd(acc[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(v)));
}

/// Folds 16 lanes in halves: i with i + 8, + 4, + 2, + 1.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold_wide(acc: [__m512d; 2]) -> f64 {
    let eight = _mm512_add_pd(acc[0], acc[1]);
    let four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

/// The sum of each row of `count` elements, in f64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn sum_rows(x: &[f32], count: usize, out: &mut [f64]) {
    for (i, o) in out.iter_mut().enumerate() {
        let mut total = 0.0;
        for span in x[i * count..][..count].chunks(BLOCK * BLOCK * LANES) {
            let mut part = 0.0;
            for group in span.chunks(BLOCK * LANES) {
                let mut acc = [_mm512_setzero_pd(); 2];
                let (blocks, rest) = group.as_chunks::<LANES>();
                let (fours, blocks) = blocks.as_chunks::<4>();
                for [a, b, c, d] in fours {
                    let first = _mm512_add_ps(load(a), load(b));
                    let second = _mm512_add_ps(load(c), load(d));
                    add_wide(&mut acc, _mm512_add_ps(first, second));
                }
                for block in blocks {
                    add_wide(&mut acc, load(block));
                }
                if !rest.is_empty() {
                    add_wide(&mut acc, tail(rest).0);
                }
                part += fold_wide(acc);
            }
            total += part;
        }
        *o = total;
    }
}

/// Columns whose totals stay in registers while the rows go by; narrower vectors have no room for
/// enough of them.
pub const STRIP: usize = 64;

/// Adds rows of `out.len()` elements, at least [`STRIP`], to `out` eight at a time, strip after
/// strip of columns. Gives back the rows that are left.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn add_strips<'a>(out: &mut [f64], x: &'a [f32]) -> &'a [f32] {
    let n = out.len();
    let (groups, rest) = x.split_at(x.len() / (8 * n) * (8 * n));
    // The last strip begins earlier if it would not be full. Columns it adds a second time go to a
    // copy of their old totals.
    let mut last = [0.0; STRIP];
    last.copy_from_slice(&out[n - STRIP..]);
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        add_strip(out, groups, n, i * STRIP);
    }
    if !n.is_multiple_of(STRIP) {
        add_strip(&mut last, groups, n, n - STRIP);
        out[n - STRIP..].copy_from_slice(&last);
    }
    rest
}

/// Adds the columns from `first` on of groups of eight rows of `n`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn add_strip(out: &mut [f64; STRIP], groups: &[f32], n: usize, first: usize) {
    let mut totals = *out;
    for group in groups.chunks_exact(8 * n) {
        let rows: [&[f32]; 8] = array(|i| &group[i * n + first..][..STRIP]);
        for (j, total) in totals.iter_mut().enumerate() {
            *total = f32::plus_all::<8>(*total, array(|i| rows[i][j]));
        }
    }
    *out = totals;
}

/// For each row of `count` elements the squared deviations from its mean, divided by `scale`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn squares_rows(x: &[f32], count: usize, scale: f32, mean: &[f32], var: &mut [f32]) {
    let n = count as f32;
    for (i, (&mean, var)) in mean.iter().zip(var).enumerate() {
        let shift = _mm512_set1_ps(mean);
        let (mut squares, mut rest) = (0.0, 0.0);
        for block in x[i * count..][..count].chunks(BLOCK * LANES) {
            squares += sum_of(block, |v| {
                let d = _mm512_sub_ps(v, shift);
                _mm512_mul_ps(d, d)
            });
            rest += sum_of(block, |v| _mm512_sub_ps(v, shift));
        }
        *var = super::moments::corrected(squares, rest, n) / scale;
    }
}

/// The largest element that is not NaN (minus infinity if there is none), and whether one is NaN.
#[inline]
#[target_feature(enable = "avx512f")]
fn row_max(row: &[f32]) -> (f32, bool) {
    let mut max = _mm512_set1_ps(f32::NEG_INFINITY);
    let mut nan = 0u16;
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        let v = load(block);
        nan |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
        // The second operand is the result if one is NaN.
        max = _mm512_max_ps(v, max);
    }
    if !rest.is_empty() {
        let (v, mask) = tail(rest);
        nan |= _mm512_mask_cmp_ps_mask::<_CMP_UNORD_Q>(mask, v, v);
        max = _mm512_mask_max_ps(max, mask, v, max);
    }
    (_mm512_reduce_max_ps(max), nan != 0)
}

/// The first position that `hit` finds in the mask of a block, or 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn first(row: &[f32], hit: impl Fn(__m512) -> __mmask16) -> usize {
    let (blocks, rest) = row.as_chunks::<LANES>();
    for (i, block) in blocks.iter().enumerate() {
        let found = hit(load(block));
        if found != 0 {
            return i * LANES + found.trailing_zeros() as usize;
        }
    }
    let (v, mask) = tail(rest);
    let found = hit(v) & mask;
    if found == 0 {
        return 0;
    }
    blocks.len() * LANES + found.trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx512f")]
fn first_nan(row: &[f32]) -> usize {
    first(row, |v| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v))
}

/// The largest element of each row of `count` elements; NaN if there is one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn max_rows(x: &[f32], count: usize, out: &mut [f32]) {
    for (i, o) in out.iter_mut().enumerate() {
        let row = &x[i * count..][..count];
        let (max, nan) = row_max(row);
        *o = if nan { row[first_nan(row)] } else { max };
    }
}

/// As [`max_rows`], and where it first stands.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn argmax_rows(x: &[f32], count: usize, out: &mut [f32], index: &mut [i64]) {
    for (i, (o, at)) in out.iter_mut().zip(index).enumerate() {
        let row = &x[i * count..][..count];
        let (max, nan) = row_max(row);
        let position = if nan {
            first_nan(row)
        } else {
            let max = _mm512_set1_ps(max);
            first(row, |v| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(v, max))
        };
        *o = row[position];
        *at = position as i64;
    }
}
