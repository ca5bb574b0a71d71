//! Rows of f32 on AVX2: the same bits as the plain loop, which the compiler does not vectorise by
//! itself.

use std::arch::x86_64::*;

use super::{LANES, in_blocks};

/// Sixteen lanes as they are.
type Single = [__m256; 2];
/// Sixteen lanes in f64.
type Double = [__m256d; 4];

#[inline]
#[target_feature(enable = "avx2")]
fn load(chunk: &[f32; LANES]) -> Single {
    // SAFETY: the array holds the 16 elements that are read.
    unsafe { [_mm256_loadu_ps(chunk.as_ptr()), _mm256_loadu_ps(chunk.as_ptr().add(8))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn plus(a: Single, b: Single) -> Single {
    [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
}

/// Adds the 16 lanes of `x` to `acc`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_wide(acc: &mut Double, x: Single) {
    for (acc, x) in acc.as_chunks_mut::<2>().0.iter_mut().zip(x) {
        acc[0] = _mm256_add_pd(acc[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
        acc[1] = _mm256_add_pd(acc[1], _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)));
    }
}

/// Folds 16 lanes in halves: i with i + 8, + 4, + 2, + 1.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(acc: Double) -> f64 {
    let four = _mm256_add_pd(_mm256_add_pd(acc[0], acc[2]), _mm256_add_pd(acc[1], acc[3]));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

/// The last few elements, fewer than 16; the lanes after them hold 0.
#[inline]
#[target_feature(enable = "avx2")]
fn tail(rest: &[f32]) -> Single {
    debug_assert!(rest.len() < LANES);
    let count = _mm256_set1_epi32(rest.len() as i32);
    let low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
    let [first, second] = [low, high].map(|lanes| _mm256_cmpgt_epi32(count, lanes));
    // SAFETY: the masks let only elements of `rest` be read; the second address is used only where
    // it lies within.
    unsafe {
        [
            _mm256_maskload_ps(rest.as_ptr(), first),
            _mm256_maskload_ps(rest.as_ptr().wrapping_add(8), second),
        ]
    }
}

/// The sum of a block: four elements of a lane are added in pairs before they go into f64.
#[inline]
#[target_feature(enable = "avx2")]
fn block_sum(x: &[f32]) -> f64 {
    let mut acc = [_mm256_setzero_pd(); 4];
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (fours, chunks) = chunks.as_chunks::<4>();
    for [a, b, c, d] in fours {
        add_wide(&mut acc, plus(plus(load(a), load(b)), plus(load(c), load(d))));
    }
    for chunk in chunks {
        add_wide(&mut acc, load(chunk));
    }
    if !rest.is_empty() {
        add_wide(&mut acc, tail(rest));
    }
    fold(acc)
}

/// The sum of each row of `count` elements, in f64.
#[target_feature(enable = "avx2")]
pub fn sum_rows(x: &[f32], count: usize, out: &mut [f64]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = in_blocks(&x[i * count..][..count], |block| block_sum(block));
    }
}
