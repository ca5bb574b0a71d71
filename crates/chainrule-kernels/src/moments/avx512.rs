//! The sums of f32 with registers of 512 bits: what a step asks of a parameter in one pass.
//!
//! Lanes of 32 bits take few numbers each, and are then added to sums of 64 bits. Squares of
//! numbers far from one have no place in 32 bits: these are summed with 64 bits throughout.

use std::arch::x86_64::*;

use super::{LANES, Moments, StepMoments};
use crate::softmax::rows::avx512::{load, mask};

/// Registers that are summed in 32 bits before 64 bits take the sum.
const FEW: usize = 16;

/// The largest of some numbers between which their squares, and products of two such sets, lose
/// nothing that counts.
const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 1e15;

/// Whether sums of 32 bits have lost nothing: a number that is not finite shows in them.
fn is_whole(of: &Moments) -> bool {
    let is_usual = of.largest == 0.0 || (SMALLEST..LARGEST).contains(&of.largest);
    is_usual && of.sum.is_finite() && of.squares.is_finite()
}

/// Sums of 64 bits.
type Wide = __m512d;

/// Sums of one set of numbers.
#[derive(Clone, Copy)]
struct Sums {
    sum: Wide,
    squares: Wide,
    largest: __m512,
    zeros: __m512i,
}

/// Sums of 32 bits.
#[derive(Clone, Copy)]
struct Few {
    sum: __m512,
    squares: __m512,
}

impl Few {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn new() -> Few {
        Few { sum: _mm512_setzero_ps(), squares: _mm512_setzero_ps() }
    }
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

    /// Size and zeros of those lanes of `x` that are `there`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn count(&mut self, x: __m512, there: __mmask16) {
        // The second operand is what stays where one is NaN.
        self.largest = _mm512_max_ps(_mm512_abs_ps(x), self.largest);
        let zeros = _mm512_mask_cmp_ps_mask::<_CMP_EQ_OQ>(there, x, _mm512_setzero_ps());
        self.zeros = _mm512_mask_add_epi32(self.zeros, zeros, self.zeros, _mm512_set1_epi32(1));
    }

    /// Adds those lanes of `x` that are `there`, with 32 bits; the others are zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add_few(&mut self, few: &mut Few, x: __m512, there: __mmask16) {
        few.sum = _mm512_add_ps(few.sum, x);
        few.squares = _mm512_fmadd_ps(x, x, few.squares);
        self.count(x, there);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn take(&mut self, few: Few) {
        self.sum = add_wide(self.sum, few.sum);
        self.squares = add_wide(self.squares, few.squares);
    }

    /// As [`Sums::add_few`] with 64 bits; the numbers in that width.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add(&mut self, x: __m512, there: __mmask16) -> [Wide; 2] {
        let [low, high] = wide(x);
        self.sum = _mm512_add_pd(self.sum, _mm512_add_pd(low, high));
        self.squares = _mm512_fmadd_pd(high, high, _mm512_fmadd_pd(low, low, self.squares));
        self.count(x, there);
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
fn wide(x: __m512) -> [Wide; 2] {
    let high = _mm512_extractf32x8_ps::<1>(x);
    [_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(high)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_wide(sum: Wide, few: __m512) -> Wide {
    let [low, high] = wide(few);
    _mm512_add_pd(sum, _mm512_add_pd(low, high))
}

/// Adds the products of two sets of lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_products(sum: Wide, a: [Wide; 2], b: [Wide; 2]) -> Wide {
    _mm512_fmadd_pd(a[1], b[1], _mm512_fmadd_pd(a[0], b[0], sum))
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn moments(x: &[f32]) -> Moments {
    let none = _mm512_setzero_ps();
    // Two sets, so that an addition does not wait for the one before.
    let mut sums = [Sums::new(), Sums::new()];
    for part in x.chunks(2 * FEW * LANES) {
        let mut few = [Few::new(), Few::new()];
        let (whole, rest) = part.as_chunks::<{ 2 * LANES }>();
        for pair in whole {
            sums[0].add_few(&mut few[0], load(&pair[..LANES], none), mask(LANES));
            sums[1].add_few(&mut few[1], load(&pair[LANES..], none), mask(LANES));
        }
        for rest in rest.chunks(LANES) {
            sums[0].add_few(&mut few[0], load(rest, none), mask(rest.len()));
        }
        sums[0].take(few[0]);
        sums[1].take(few[1]);
    }
    let [mut all, more] = [sums[0].end(), sums[1].end()];
    super::add_to(&mut all, more);
    if is_whole(&all) { all } else { wide_moments(x) }
}

/// As [`moments`], with 64 bits throughout.
#[cold]
#[target_feature(enable = "avx512f,avx512dq")]
fn wide_moments(x: &[f32]) -> Moments {
    let mut sums = Sums::new();
    for x in x.chunks(LANES) {
        sums.add(load(x, _mm512_setzero_ps()), mask(x.len()));
    }
    sums.end()
}

/// The sums of a step.
#[derive(Clone, Copy)]
struct StepSums {
    value: Sums,
    update: Sums,
    gradient: Sums,
    slope: Wide,
    product: Wide,
}

/// Those with 32 bits.
struct StepFew {
    value: Few,
    update: Few,
    gradient: Few,
    slope: __m512,
    product: __m512,
}

impl StepFew {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn new() -> StepFew {
        let (few, zero) = (Few::new(), _mm512_setzero_ps());
        StepFew { value: few, update: few, gradient: few, slope: zero, product: zero }
    }
}

impl StepSums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn new() -> StepSums {
        let (sums, zero) = (Sums::new(), _mm512_setzero_pd());
        StepSums { value: sums, update: sums, gradient: sums, slope: zero, product: zero }
    }

    /// Adds those of 16 numbers of each set that are `there`, with 32 bits: values before and
    /// after, gradient, the one before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add_few(&mut self, few: &mut StepFew, numbers: [__m512; 4], there: __mmask16) {
        let [from, to, gradient, before] = numbers;
        let moved = _mm512_sub_ps(to, from);
        self.value.add_few(&mut few.value, from, there);
        self.update.add_few(&mut few.update, moved, there);
        self.gradient.add_few(&mut few.gradient, gradient, there);
        few.slope = _mm512_fmadd_ps(moved, gradient, few.slope);
        few.product = _mm512_fmadd_ps(gradient, before, few.product);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn take(&mut self, few: StepFew) {
        self.value.take(few.value);
        self.update.take(few.update);
        self.gradient.take(few.gradient);
        self.slope = add_wide(self.slope, few.slope);
        self.product = add_wide(self.product, few.product);
    }

    /// As [`StepSums::add_few`], with 64 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add(&mut self, numbers: [&[f32]; 4]) {
        let there = mask(numbers[0].len());
        let [from, to, gradient, before] = numbers.map(|x| load(x, _mm512_setzero_ps()));
        self.value.add(from, there);
        let moved = self.update.add(_mm512_sub_ps(to, from), there);
        let gradient = self.gradient.add(gradient, there);
        self.slope = add_products(self.slope, moved, gradient);
        self.product = add_products(self.product, gradient, wide(before));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn end(&self) -> StepMoments {
        StepMoments {
            value: self.value.end(),
            update: self.update.end(),
            gradient: self.gradient.end(),
            slope: _mm512_reduce_add_pd(self.slope),
            product: _mm512_reduce_add_pd(self.product),
        }
    }
}

/// Calls `f` with some registers of each set, and those that are left at the end.
#[inline(always)]
fn each(sets: [&[f32]; 4], few: usize, mut f: impl FnMut([&[f32]; 4])) {
    let len = sets[0].len();
    for begin in (0..len).step_by(few) {
        let end = len.min(begin + few);
        f(sets.map(|x| &x[begin..end]));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn step(from: &[f32], to: &[f32], gradient: &[f32], before: &[f32]) -> StepMoments {
    let sets = [from, to, gradient, before];
    let none = _mm512_setzero_ps();
    let mut sums = StepSums::new();
    each(sets, FEW * LANES, |part| {
        let mut few = StepFew::new();
        let [from, to, gradient, before] = part.map(|x| x.as_chunks::<LANES>());
        let olds = from.0.iter().zip(to.0);
        for ((from, to), (gradient, before)) in olds.zip(gradient.0.iter().zip(before.0)) {
            let numbers = [from, to, gradient, before].map(|x| load(x, none));
            sums.add_few(&mut few, numbers, mask(LANES));
        }
        let rest = [from.1, to.1, gradient.1, before.1];
        if !rest[0].is_empty() {
            sums.add_few(&mut few, rest.map(|x| load(x, none)), mask(rest[0].len()));
        }
        sums.take(few);
    });
    let all = sums.end();
    let is_usual = [&all.value, &all.update, &all.gradient].into_iter().all(is_whole);
    // The gradient before is known by the product alone.
    let has_product = all.gradient.largest == 0.0 || all.product.abs() > SMALLEST * SMALLEST;
    if is_usual && has_product && all.product.is_finite() { all } else { wide_step(sets) }
}

/// As [`step`], with 64 bits throughout.
#[cold]
#[target_feature(enable = "avx512f,avx512dq")]
fn wide_step(sets: [&[f32]; 4]) -> StepMoments {
    let mut sums = StepSums::new();
    each(sets, LANES, |numbers| sums.add(numbers));
    sums.end()
}
