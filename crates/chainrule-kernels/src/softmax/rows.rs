//! Loops over single rows: the largest element, sums, and maps with a number that differs from row
//! to row.
//!
//! Each is a plain loop, and f32 has twins of AVX-512 and AVX2: rows of 10 or 27 elements are
//! mostly remainder, which the compiler leaves to a scalar loop and the twins do with a mask.
//!
//! Sums have a fixed order, whatever the vector instructions and the position of the row: element i
//! goes to lane i mod 16, 16 blocks at a time; the lanes fold in halves (i with i + 8, + 4, + 2, +
//! 1); the folded parts add up in f64. Long rows therefore lose no accuracy.

use crate::math::Real;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// Elements in a block: one AVX-512 register of f32.
const LANES: usize = 16;

/// Elements that add up in the lanes before these are folded.
const GROUP: usize = 16 * LANES;

/// f32 or f64, with the loops over one row. Slices that go together have the same length, except
/// that `out` may be longer: then up to 15 elements beyond the row may get any value. (The rows
/// that follow are written later, and a whole store is faster than one under a mask, which a load
/// of the neighbouring bytes has to wait for.)
pub trait Row: Real {
    /// The largest element that is not NaN; minus infinity if there is none.
    fn row_max(x: &[Self]) -> Self;
    /// The sum.
    fn row_sum(x: &[Self]) -> Self;
    /// The sum of products.
    fn row_dot(a: &[Self], b: &[Self]) -> Self;
    /// `out = (x - first) - second`.
    fn row_minus(x: &[Self], first: Self, second: Self, out: &mut [Self]);
    /// `out = x * factor`.
    fn row_scale(x: &[Self], factor: Self, out: &mut [Self]);
    /// `y = y * factor`.
    fn row_scale_in_place(y: &mut [Self], factor: Self);
    /// `out = g - p * sum`.
    fn row_minus_product(g: &[Self], p: &[Self], sum: Self, out: &mut [Self]);
    /// `out = y * (g - dot)`.
    fn row_softmax_grad(y: &[Self], g: &[Self], dot: Self, out: &mut [Self]);
}

macro_rules! row {
    ($t:ty, $wide:tt) => {
        row! { impl $t, $wide {
            fn row_max(x: &[$t]) -> $t;
            fn row_sum(x: &[$t]) -> $t;
            fn row_dot(a: &[$t], b: &[$t]) -> $t;
            fn row_minus(x: &[$t], first: $t, second: $t, out: &mut [$t]) -> ();
            fn row_scale(x: &[$t], factor: $t, out: &mut [$t]) -> ();
            fn row_scale_in_place(y: &mut [$t], factor: $t) -> ();
            fn row_minus_product(g: &[$t], p: &[$t], sum: $t, out: &mut [$t]) -> ();
            fn row_softmax_grad(y: &[$t], g: &[$t], dot: $t, out: &mut [$t]) -> ();
        } }
    };
    (impl $t:ty, $wide:tt { $(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)* }) => {
        impl Row for $t {
            $(
                #[inline(always)]
                fn $name($($arg: $ty),*) -> $ret {
                    row!(@ $wide $name($($arg),*))
                }
            )*
        }
    };
    (@ plain $name:ident($($arg:ident),*)) => {
        plain::$name($($arg),*)
    };
    (@ wide $name:ident($($arg:ident),*)) => {{
        #[cfg(target_arch = "x86_64")]
        match level() {
            // SAFETY: the processor supports the instructions of this level.
            Level::Avx512 => return unsafe { avx512::$name($($arg),*) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2::$name($($arg),*) },
            Level::Portable => {}
        }
        plain::$name($($arg),*)
    }};
}
row!(f32, wide);
row!(f64, plain);

/// The loops for both types and every processor.
mod plain {
    use super::{GROUP, LANES, Real};
    use crate::simd::array;

    #[inline(always)]
    pub fn row_max<T: Real>(x: &[T]) -> T {
        let larger = |v: T, m: T| if v > m { v } else { m };
        let mut lanes = [-T::INFINITY; LANES];
        let (blocks, tail) = x.as_chunks::<LANES>();
        for block in blocks {
            for (m, &v) in lanes.iter_mut().zip(block) {
                *m = larger(v, *m);
            }
        }
        tail.iter().fold(fold(lanes, larger), |m, &v| larger(v, m))
    }

    #[inline(always)]
    pub fn row_sum<T: Real>(x: &[T]) -> T {
        sum_of(x, x, |x, _| x)
    }

    #[inline(always)]
    pub fn row_dot<T: Real>(a: &[T], b: &[T]) -> T {
        sum_of(a, b, |a, b| a * b)
    }

    /// The sum of `term(a[i], b[i])` in the order that the file's head describes.
    #[inline(always)]
    fn sum_of<T: Real>(a: &[T], b: &[T], term: impl Fn(T, T) -> T) -> T {
        let mut total = 0.0;
        for (a, b) in a.chunks(GROUP).zip(b.chunks(GROUP)) {
            let (a_blocks, a_tail) = a.as_chunks::<LANES>();
            let (b_blocks, b_tail) = b.as_chunks::<LANES>();
            let mut lanes = [T::ZERO; LANES];
            for (a, b) in a_blocks.iter().zip(b_blocks) {
                for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                    *lane += term(a, b);
                }
            }
            // A second array: the first can then stay in registers, since only constants index it.
            let mut ends = lanes;
            for ((lane, &a), &b) in ends.iter_mut().zip(a_tail).zip(b_tail) {
                *lane += term(a, b);
            }
            total += fold(ends, |x, y| x + y).to_f64();
        }
        T::from_f64(total)
    }

    /// Folds the lanes in halves.
    #[inline(always)]
    fn fold<T: Real>(lanes: [T; LANES], f: impl Fn(T, T) -> T) -> T {
        let a: [T; 8] = array(|i| f(lanes[i], lanes[i + 8]));
        let b: [T; 4] = array(|i| f(a[i], a[i + 4]));
        f(f(b[0], b[2]), f(b[1], b[3]))
    }

    #[inline(always)]
    pub fn row_minus<T: Real>(x: &[T], first: T, second: T, out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = (x - first) - second;
        }
    }

    #[inline(always)]
    pub fn row_scale<T: Real>(x: &[T], factor: T, out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x * factor;
        }
    }

    #[inline(always)]
    pub fn row_scale_in_place<T: Real>(y: &mut [T], factor: T) {
        for y in y {
            *y *= factor;
        }
    }

    #[inline(always)]
    pub fn row_minus_product<T: Real>(g: &[T], p: &[T], sum: T, out: &mut [T]) {
        for ((out, &g), &p) in out.iter_mut().zip(g).zip(p) {
            *out = g - p * sum;
        }
    }

    #[inline(always)]
    pub fn row_softmax_grad<T: Real>(y: &[T], g: &[T], dot: T, out: &mut [T]) {
        for ((out, &y), &g) in out.iter_mut().zip(y).zip(g) {
            *out = y * (g - dot);
        }
    }
}

/// The same loops for f32, block by block, the last under a mask; lane for lane they compute as the
/// plain ones do. `$block` is the type of a block, whose operations stand beside the invocation.
#[cfg(target_arch = "x86_64")]
macro_rules! wide_rows {
    ($features:literal, $block:ty) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_max(x: &[f32]) -> f32 {
            let least = splat(f32::NEG_INFINITY);
            let mut m = least;
            for block in x.chunks(LANES) {
                // The second operand wins against NaN.
                m = max(load(block, least), m);
            }
            fold::<true>(m)
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_sum(x: &[f32]) -> f32 {
            let mut total = 0.0;
            for group in x.chunks(GROUP) {
                let mut lanes = splat(0.0);
                for block in group.chunks(LANES) {
                    lanes = add(lanes, load(block, splat(0.0)));
                }
                total += f64::from(fold::<false>(lanes));
            }
            total as f32
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_dot(a: &[f32], b: &[f32]) -> f32 {
            let zero = splat(0.0);
            let mut total = 0.0;
            for (a, b) in a.chunks(GROUP).zip(b.chunks(GROUP)) {
                let mut lanes = zero;
                for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
                    // Not fused, as in the plain loop.
                    lanes = add(lanes, mul(load(a, zero), load(b, zero)));
                }
                total += f64::from(fold::<false>(lanes));
            }
            total as f32
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_minus(x: &[f32], first: f32, second: f32, out: &mut [f32]) {
            let (first, second) = (splat(first), splat(second));
            for (block, x) in x.chunks(LANES).enumerate() {
                store(&mut out[block * LANES..], sub(sub(load(x, first), first), second));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_scale(x: &[f32], factor: f32, out: &mut [f32]) {
            let factor = splat(factor);
            for (block, x) in x.chunks(LANES).enumerate() {
                store(&mut out[block * LANES..], mul(load(x, factor), factor));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_scale_in_place(y: &mut [f32], factor: f32) {
            let factor = splat(factor);
            for y in y.chunks_mut(LANES) {
                store(y, mul(load(y, factor), factor));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_minus_product(g: &[f32], p: &[f32], sum: f32, out: &mut [f32]) {
            let sum = splat(sum);
            for (block, (g, p)) in g.chunks(LANES).zip(p.chunks(LANES)).enumerate() {
                store(&mut out[block * LANES..], sub(load(g, sum), mul(load(p, sum), sum)));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub fn row_softmax_grad(y: &[f32], g: &[f32], dot: f32, out: &mut [f32]) {
            let dot = splat(dot);
            for (block, (y, g)) in y.chunks(LANES).zip(g.chunks(LANES)).enumerate() {
                store(&mut out[block * LANES..], mul(load(y, dot), sub(load(g, dot), dot)));
            }
        }

        /// Folds the lanes in halves, by the maximum or by addition.
        #[inline]
        #[target_feature(enable = $features)]
        fn fold<const MAX: bool>(v: $block) -> f32 {
            let f = |a: __m128, b: __m128| {
                if MAX { _mm_max_ps(a, b) } else { _mm_add_ps(a, b) }
            };
            let (low, high) = halves(v);
            let eight = if MAX { _mm256_max_ps(low, high) } else { _mm256_add_ps(low, high) };
            let four = f(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = f(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(f(two, _mm_shuffle_ps::<1>(two, two)))
        }
    };
}

/// Loops over blocks.
#[cfg(target_arch = "x86_64")]
macro_rules! one_by_one {
    ($features:literal, $block:ty; $($name:ident($($arg:ident: $ty:ty),*) => $body:expr;)*) => {
        $(
            #[inline]
            #[target_feature(enable = $features)]
            fn $name($($arg: $ty),*) -> $block {
                $body
            }
        )*
    };
}

/// A block is one register, its mask bits.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512 {
    use super::{GROUP, LANES};
    use std::arch::x86_64::*;

    type Block512 = __m512;
    wide_rows!("avx512f,avx512dq", Block512);

    /// The lanes of `x`, at most 16 elements; `fill` in those that are left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn load(x: &[f32], fill: Block512) -> Block512 {
        if x.len() >= LANES {
            // SAFETY: 16 elements are there.
            unsafe { _mm512_loadu_ps(x.as_ptr()) }
        } else {
            // SAFETY: the mask admits no lane beyond the slice, and a masked lane is not read.
            unsafe { _mm512_mask_loadu_ps(fill, mask(x.len()), x.as_ptr()) }
        }
    }

    /// Writes 16 lanes to `out`, or as many as there is room for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn store(out: &mut [f32], v: Block512) {
        if out.len() >= LANES {
            // SAFETY: 16 elements are there.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), v) }
        } else {
            // SAFETY: the mask admits no lane beyond the slice, and a masked lane is not written.
            unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask(out.len()), v) }
        }
    }

    /// The first `len` lanes, all of them from 16 on.
    #[inline(always)]
    pub fn mask(len: usize) -> __mmask16 {
        ((1u32 << len.min(LANES)) - 1) as __mmask16
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn halves(v: Block512) -> (__m256, __m256) {
        (_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v))
    }

    one_by_one! { "avx512f,avx512dq", Block512;
        splat(x: f32) => _mm512_set1_ps(x);
        max(a: Block512, b: Block512) => _mm512_max_ps(a, b);
        add(a: Block512, b: Block512) => _mm512_add_ps(a, b);
        sub(a: Block512, b: Block512) => _mm512_sub_ps(a, b);
        mul(a: Block512, b: Block512) => _mm512_mul_ps(a, b);
    }
}

/// A block is two registers.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use super::{GROUP, LANES};
    use std::arch::x86_64::*;

    type Block256 = (__m256, __m256);
    wide_rows!("avx2,fma", Block256);

    /// Eight lanes of ones, then of zeros: a window into it is a mask.
    static LANES_ON: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// The lanes of `x`, at most 16 elements; `fill` in those that are left.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn load(x: &[f32], fill: Block256) -> Block256 {
        let from = x.as_ptr();
        // SAFETY: an eighth element or a sixteenth is there, or a mask admits no lane beyond the
        // slice; a masked lane is not read.
        unsafe {
            let part = |from, len: usize, fill| {
                let mask = _mm256_loadu_si256(LANES_ON.as_ptr().add(8 - len).cast());
                let lanes = _mm256_maskload_ps(from, mask);
                _mm256_blendv_ps(fill, lanes, _mm256_castsi256_ps(mask))
            };
            match x.len() {
                LANES.. => (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))),
                8.. => (_mm256_loadu_ps(from), part(from.add(8), x.len() - 8, fill.1)),
                _ => (part(from, x.len(), fill.0), fill.1),
            }
        }
    }

    /// Writes 16 lanes to `out`, or as many as there is room for.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn store(out: &mut [f32], v: Block256) {
        let store = |out: &mut [f32; 8], v| {
            // SAFETY: 8 elements are there.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), v) }
        };
        let (eights, tail) = out.as_chunks_mut::<8>();
        let next = match eights {
            [first, second, ..] => {
                store(first, v.0);
                store(second, v.1);
                return;
            }
            [first] => {
                store(first, v.0);
                v.1
            }
            [] => v.0,
        };
        let mut rest = [0.0; 8];
        store(&mut rest, next);
        // Masked stores take far longer than loads.
        for (to, rest) in tail.iter_mut().zip(rest) {
            *to = rest;
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn halves(v: Block256) -> (__m256, __m256) {
        v
    }

    one_by_one! { "avx2,fma", Block256;
        splat(x: f32) => (_mm256_set1_ps(x), _mm256_set1_ps(x));
        max(a: Block256, b: Block256) => (_mm256_max_ps(a.0, b.0), _mm256_max_ps(a.1, b.1));
        add(a: Block256, b: Block256) => (_mm256_add_ps(a.0, b.0), _mm256_add_ps(a.1, b.1));
        sub(a: Block256, b: Block256) => (_mm256_sub_ps(a.0, b.0), _mm256_sub_ps(a.1, b.1));
        mul(a: Block256, b: Block256) => (_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1));
    }
}
