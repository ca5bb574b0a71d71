//! The sums of f32 with registers of 512 bits: what a step asks of a parameter in one pass.

use std::arch::x86_64::*;

use super::{LANES, Moments, StepMoments};
use crate::softmax::rows::avx512::{load, mask};

/// Sums of one set of numbers.
#[derive(Clone, Copy)]
struct Sums {
    sum: __m512d,
    squares: __m512d,
    largest: __m512,
    zeros: __m512i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn new() -> Sums {
        Sums {
            sum: _mm512_setzero_pd(),
            squares: _mm512_setzero_pd(),
            largest: _mm512_setzero_ps(),
            zeros: _mm512_setzero_si512(),
        }
    }

    /// Adds those lanes of `x` that are `there`; the others are zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add(&mut self, x: __m512, there: __mmask16) -> [__m512d; 2] {
        let [low, high] = wide(x);
        self.sum = _mm512_add_pd(self.sum, _mm512_add_pd(low, high));
        self.squares = _mm512_fmadd_pd(high, high, _mm512_fmadd_pd(low, low, self.squares));
        // The second operand is what stays where one is NaN.
        self.largest = _mm512_max_ps(_mm512_abs_ps(x), self.largest);
        let zeros = _mm512_mask_cmp_ps_mask::<_CMP_EQ_OQ>(there, x, _mm512_setzero_ps());
        self.zeros = _mm512_mask_add_epi32(self.zeros, zeros, self.zeros, _mm512_set1_epi32(1));
        [low, high]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn end(&self) -> Moments {
        Moments {
            sum: _mm512_reduce_add_pd(self.sum),
            squares: _mm512_reduce_add_pd(self.squares),
            largest: f64::from(_mm512_reduce_max_ps(self.largest)),
            zeros: u64::from(_mm512_reduce_add_epi32(self.zeros) as u32),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn wide(x: __m512) -> [__m512d; 2] {
    let high = _mm512_extractf32x8_ps::<1>(x);
    [_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(high)]
}

/// Adds the products of two sets of lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_products(sum: __m512d, a: [__m512d; 2], b: [__m512d; 2]) -> __m512d {
    _mm512_fmadd_pd(a[1], b[1], _mm512_fmadd_pd(a[0], b[0], sum))
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn moments(x: &[f32]) -> Moments {
    // Two sets, so that an addition does not wait for the one before.
    let mut sums = [Sums::new(), Sums::new()];
    let (whole, rest) = x.as_chunks::<{ 2 * LANES }>();
    let none = _mm512_setzero_ps();
    for pair in whole {
        sums[0].add(load(&pair[..LANES], none), mask(LANES));
        sums[1].add(load(&pair[LANES..], none), mask(LANES));
    }
    for rest in rest.chunks(LANES) {
        sums[0].add(load(rest, none), mask(rest.len()));
    }
    let [mut all, more] = [sums[0].end(), sums[1].end()];
    super::add_to(&mut all, more);
    all
}

/// The sums of a step.
struct StepSums {
    value: Sums,
    update: Sums,
    gradient: Sums,
    slope: __m512d,
    product: __m512d,
}

impl StepSums {
    /// Adds the numbers, at most 16 of each: values before and after, gradient, the one before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add(&mut self, numbers: [&[f32]; 4]) {
        let none = _mm512_setzero_ps();
        let there = mask(numbers[0].len());
        let (from, to) = (load(numbers[0], none), load(numbers[1], none));
        self.value.add(from, there);
        let moved = self.update.add(_mm512_sub_ps(to, from), there);
        let gradient = self.gradient.add(load(numbers[2], none), there);
        self.slope = add_products(self.slope, moved, gradient);
        self.product = add_products(self.product, gradient, wide(load(numbers[3], none)));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn step(from: &[f32], to: &[f32], gradient: &[f32], before: &[f32]) -> StepMoments {
    let (value, zero) = (Sums::new(), _mm512_setzero_pd());
    let (update, gradients) = (value, value);
    let mut sums = StepSums { value, update, gradient: gradients, slope: zero, product: zero };
    let (of_from, from) = from.as_chunks::<LANES>();
    let (of_to, to) = to.as_chunks::<LANES>();
    let (of_gradient, gradient) = gradient.as_chunks::<LANES>();
    let (of_before, before) = before.as_chunks::<LANES>();
    let gradients = of_gradient.iter().zip(of_before);
    for ((from, to), (gradient, before)) in of_from.iter().zip(of_to).zip(gradients) {
        sums.add([from, to, gradient, before]);
    }
    sums.add([from, to, gradient, before]);
    StepMoments {
        value: sums.value.end(),
        update: sums.update.end(),
        gradient: sums.gradient.end(),
        slope: _mm512_reduce_add_pd(sums.slope),
        product: _mm512_reduce_add_pd(sums.product),
    }
}
