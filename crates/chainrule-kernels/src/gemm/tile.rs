//! The inner loops: a panel of a product, a row times a matrix, dot products, and the two ways to
//! pack an operand.
//!
//! Each is written once over `Vector` and compiled for each level. A panel is two or three vectors
//! wide; down it go strips of up to `ROWS` rows, whose sums stay in registers while k runs.

#[cfg(target_arch = "x86_64")]
use super::vector::{F32x8, F32x16, F64x4, F64x8, Pairs16};
use super::vector::{Plain, Vector};
use crate::simd::{Level, level, prefetch};
#[cfg(target_arch = "x86_64")]
use crate::{simd::array, transpose::avx2::block};
use std::ops::{Add, Mul};

/// One panel of a product: `out = alpha * a * b`, or that added to `out`.
#[derive(Clone, Copy)]
pub(super) struct Panel<T> {
    pub rows: usize,
    pub k: usize,
    /// Element `(i, p)` of A is at `a_strip * (i / ROWS) + a_row * (i % ROWS) + a_col * p`.
    pub a: *const T,
    pub a_strip: usize,
    pub a_row: usize,
    pub a_col: usize,
    /// Element `(p, j)` of B is at `b_row * p + j`.
    pub b: *const T,
    pub b_row: usize,
    /// Destination where the first strip, which must be a full one, packs the rows of B for the
    /// others. Null: they read it where it is.
    pub packed: *mut T,
    pub ahead: Ahead<T>,
    /// Columns of the panel: at most those of a full one.
    pub cols: usize,
    pub alpha: T,
    /// Whether something is added: element `(i, j)` of it is at `plus_row * i + j`.
    pub add: bool,
    pub plus: *const T,
    pub plus_row: usize,
    pub out: *mut T,
    pub out_row: usize,
}

/// Prefetch distance of packing on the way, in rows.
const ROWS_AHEAD: usize = 8;

/// Prefetch of the data read after a panel: after each `STRETCH` depths `lines.0` lines, `lines.1`
/// apart, each time `step` further on.
#[derive(Clone, Copy)]
pub(super) struct Ahead<T> {
    /// May be null.
    pub data: *const T,
    pub lines: (usize, usize),
    pub step: usize,
}

impl<T> Ahead<T> {
    pub const NOTHING: Ahead<T> = Ahead { data: std::ptr::null(), lines: (0, 0), step: 0 };
}

/// An operand as the packing reads it: `len` lines of depth `k`; packed lines lie side by side,
/// `width` to a panel.
pub struct Source<T> {
    pub data: *const T,
    /// Between one line and the next.
    pub line: usize,
    /// Between one step of the depth and the next.
    pub depth: usize,
    pub len: usize,
    pub k: usize,
}

/// Rows and depth from which a tile prefetches its part of C: that of a smaller product is in
/// cache.
const LARGE: usize = 64;

/// Depths between two prefetches of a tile: that much of a row of f32 is a cache line.
pub(super) const STRETCH: usize = 16;

type PanelFn<T> = unsafe fn(&Panel<T>);

/// The kernels of one element type for one level.
pub struct GemmKernels<T> {
    pub lanes: usize,
    /// Rows of a strip.
    pub rows: usize,
    /// Columns of a full panel.
    pub cols: usize,
    /// By the number of vectors. The first is for less than one.
    panels: [PanelFn<T>; 4],
    /// `out[j] += sum_p a[p * a_step] * b[p * b_row + j]` for `n` columns, the sums scaled by
    /// alpha.
    pub row: unsafe fn(
        k: usize,
        n: usize,
        alpha: T,
        a: *const T,
        a_step: usize,
        b: *const T,
        b_row: usize,
        out: *mut T,
    ),
    /// The dot product of two runs of `k` numbers.
    pub dot: unsafe fn(k: usize, a: *const T, b: *const T) -> T,
    /// Writes lines as the columns of one panel, `width` numbers a row.
    pub transpose: unsafe fn(from: &Source<T>, to: *mut T, width: usize),
    copy: unsafe fn(from: &Source<T>, to: *mut T, width: usize, unit: usize),
}

impl<T: Copy> GemmKernels<T> {
    /// Computes a panel.
    ///
    /// # Safety
    ///
    /// The addresses that the fields of `panel` describe must be readable, those of `out` writable
    /// by nobody else.
    #[inline]
    pub(super) unsafe fn panel(&self, panel: &Panel<T>) {
        let vectors = if panel.cols < self.lanes { 0 } else { panel.cols.div_ceil(self.lanes) };
        // SAFETY: the caller's promise; the table belongs to a level that the processor has.
        unsafe { self.panels[vectors](panel) }
    }

    /// Packs one panel of lines of any strides, `width` to a row.
    ///
    /// # Safety
    ///
    /// The source must be readable, with `len <= width`, and `to` writable for `width * k`.
    pub(super) unsafe fn pack_panel(&self, from: &Source<T>, to: *mut T, width: usize) {
        // SAFETY: the caller's promise.
        unsafe { (self.transpose)(from, to, width) }
    }

    /// Packs lines into panels of `width`, panel after panel, each `width * k` apart. The last
    /// panel is as wide as its lines, rounded up to `unit`.
    ///
    /// # Safety
    ///
    /// The source must be readable and `to` writable for `len` rounded up to `unit`, times `k`.
    pub(super) unsafe fn pack(&self, from: &Source<T>, to: *mut T, width: usize, unit: usize) {
        // SAFETY: the caller's promise, for each panel in turn.
        unsafe {
            if from.line == 1 {
                return (self.copy)(from, to, width, unit);
            }
            let mut done = 0;
            while done < from.len {
                let len = width.min(from.len - done);
                let part = Source { data: from.data.add(done * from.line), len, ..*from };
                let wide = len.next_multiple_of(unit).min(width);
                (self.transpose)(&part, to.add(done * from.k), wide);
                done += width;
            }
        }
    }
}

/// A tile of `R` rows and `C` vectors. With `PART` only the lanes of `mask` exist of the one
/// vector. The last of several begins earlier where it would not be full, and computes some
/// elements once more: masks cost more than that. With `PACK` it packs B on the way.
#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const C: usize, const PART: bool, const PACK: bool>(
    panel: &Panel<V::Elem>,
    mut a: *const V::Elem,
    plus: *const V::Elem,
    out: *mut V::Elem,
    mask: V::Mask,
) {
    // Column of a vector.
    let at = |j: usize| match j > 0 && j + 1 == C {
        true => panel.cols - V::LANES,
        false => j * V::LANES,
    };
    // SAFETY: `panel` promises all rows, columns and depths below; the pointers only wrap past the
    // end after their last use.
    unsafe {
        let load = |from| if PART { V::load_part(from, mask) } else { V::load(from) };
        let mut sums = [[V::zero(); C]; R];
        let store = |value: V, to| {
            if PART { value.store_part(to, mask) } else { value.store(to) }
        };
        // Prefetch of C while the sums are made.
        if panel.k >= LARGE && panel.rows >= LARGE {
            for i in 0..R {
                (0..C).for_each(|j| prefetch(out.wrapping_add(i * panel.out_row + at(j))));
            }
        }
        let (mut b, mut packed, mut left) = (panel.b, panel.packed, panel.k);
        let Ahead { data: mut ahead, lines: (lines, line), step } = panel.ahead;
        while left > 0 {
            let mut stretch = left;
            if !ahead.is_null() {
                stretch = left.min(STRETCH);
                (0..lines).for_each(|i| prefetch(ahead.wrapping_add(i * line)));
                ahead = ahead.wrapping_add(step);
            }
            left -= stretch;
            for _ in 0..stretch {
                let mut right = [V::zero(); C];
                for (j, right) in right.iter_mut().enumerate() {
                    *right = load(b.add(at(j)));
                    if PACK {
                        prefetch(b.wrapping_add(at(j) + ROWS_AHEAD * panel.b_row));
                        store(*right, packed.add(at(j)));
                    }
                }
                if PACK {
                    packed = packed.wrapping_add(panel.cols.next_multiple_of(V::LANES));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let left = V::splat(*a.add(i * panel.a_row));
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = left.dot_add(right, *sum);
                    }
                }
                a = a.wrapping_add(panel.a_col);
                b = b.wrapping_add(panel.b_row);
            }
        }
        let alpha = V::splat(panel.alpha);
        for (i, mut sums) in sums.into_iter().enumerate() {
            let (out, plus) = (out.add(i * panel.out_row), plus.wrapping_add(i * panel.plus_row));
            // All of a row is read before any of it is written: what is added may be the output, of
            // which some is written twice.
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = match panel.add {
                    false => alpha.mul(*sum),
                    true => alpha.mul_add(*sum, load(plus.wrapping_add(at(j)))),
                };
            }
            for (j, sum) in sums.into_iter().enumerate() {
                store(sum, out.add(at(j)));
            }
        }
    }
}

/// All strips of a panel.
#[inline(always)]
unsafe fn panel<V: Vector, const C: usize, const PART: bool>(panel: &Panel<V::Elem>) {
    // SAFETY: the caller's promise; what the first strip has packed is as the others read it.
    unsafe {
        let mask = V::mask(panel.cols.min(V::LANES));
        if panel.packed.is_null() {
            return strips::<V, C, PART>(panel, mask);
        }
        match V::ROWS {
            8 => tile::<V, 8, C, PART, true>(panel, panel.a, panel.plus, panel.out, mask),
            _ => tile::<V, 6, C, PART, true>(panel, panel.a, panel.plus, panel.out, mask),
        }
        let rest = Panel {
            rows: panel.rows - V::ROWS,
            a: panel.a.wrapping_add(panel.a_strip),
            b: panel.packed,
            b_row: panel.cols.next_multiple_of(V::LANES),
            packed: std::ptr::null_mut(),
            plus: panel.plus.wrapping_add(V::ROWS * panel.plus_row),
            out: panel.out.wrapping_add(V::ROWS * panel.out_row),
            ..*panel
        };
        strips::<V, C, PART>(&rest, mask)
    }
}

/// The strips of a panel, one after the other.
#[inline(always)]
unsafe fn strips<V: Vector, const C: usize, const PART: bool>(
    panel: &Panel<V::Elem>,
    mask: V::Mask,
) {
    // SAFETY: the caller's promise, split into strips.
    unsafe {
        let (mut a, mut out, mut left) = (panel.a, panel.out, panel.rows);
        let mut plus = panel.plus;
        // An unpacked last strip of a row or two takes some rows from the strip before: few rows
        // keep the multipliers waiting.
        let split = V::ROWS == 6 && panel.a_strip == V::ROWS * panel.a_row;
        while left > 0 {
            if split && (left == 7 || left == 8) {
                tile::<V, 4, C, PART, false>(panel, a, plus, out, mask);
                a = a.wrapping_add(4 * panel.a_row);
                out = out.wrapping_add(4 * panel.out_row);
                plus = plus.wrapping_add(4 * panel.plus_row);
                left -= 4;
                continue;
            }
            // `ROWS` is 6 or 8, so that tiles of 7 and 8 are only compiled where they fit.
            match left {
                8.. if V::ROWS >= 8 => tile::<V, 8, C, PART, false>(panel, a, plus, out, mask),
                7 if V::ROWS >= 7 => tile::<V, 7, C, PART, false>(panel, a, plus, out, mask),
                6.. => tile::<V, 6, C, PART, false>(panel, a, plus, out, mask),
                5 => tile::<V, 5, C, PART, false>(panel, a, plus, out, mask),
                4 => tile::<V, 4, C, PART, false>(panel, a, plus, out, mask),
                3 => tile::<V, 3, C, PART, false>(panel, a, plus, out, mask),
                2 => tile::<V, 2, C, PART, false>(panel, a, plus, out, mask),
                _ => tile::<V, 1, C, PART, false>(panel, a, plus, out, mask),
            }
            a = a.wrapping_add(panel.a_strip);
            out = out.wrapping_add(V::ROWS * panel.out_row);
            plus = plus.wrapping_add(V::ROWS * panel.plus_row);
            left = left.saturating_sub(V::ROWS);
        }
    }
}

/// Adds `D` rows of the matrix, times their numbers, to the output row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn add_rows<V: Vector, const D: usize>(
    n: usize,
    alpha: V::Elem,
    a: *const V::Elem,
    a_step: usize,
    b: *const V::Elem,
    b_row: usize,
    out: *mut V::Elem,
) {
    // SAFETY: the caller promises `D` numbers of `a`, `D` rows of `b` and `n` numbers of `out`.
    unsafe {
        let mut left = [V::zero(); D];
        for (p, left) in left.iter_mut().enumerate() {
            *left = V::splat(*a.add(p * a_step)).mul(V::splat(alpha));
        }
        let mut j = 0;
        while j + V::LANES <= n {
            let mut sum = V::load(out.add(j));
            for (p, left) in left.iter().enumerate() {
                sum = left.mul_add(V::load(b.add(p * b_row + j)), sum);
            }
            sum.store(out.add(j));
            j += V::LANES;
        }
        if j < n {
            let mask = V::mask(n - j);
            let mut sum = V::load_part(out.add(j), mask);
            for (p, left) in left.iter().enumerate() {
                sum = left.mul_add(V::load_part(b.add(p * b_row + j), mask), sum);
            }
            sum.store_part(out.add(j), mask);
        }
    }
}

/// A row times a matrix, added to the output: eight rows of the matrix at a time, so that it is
/// read as eight streams.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn row<V: Vector>(
    k: usize,
    n: usize,
    alpha: V::Elem,
    a: *const V::Elem,
    a_step: usize,
    b: *const V::Elem,
    b_row: usize,
    out: *mut V::Elem,
) {
    // SAFETY: the caller's promise, split along `k`.
    unsafe {
        let mut p = 0;
        while p + 8 <= k {
            add_rows::<V, 8>(n, alpha, a.add(p * a_step), a_step, b.add(p * b_row), b_row, out);
            p += 8;
        }
        while p < k {
            add_rows::<V, 1>(n, alpha, a.add(p * a_step), a_step, b.add(p * b_row), b_row, out);
            p += 1;
        }
    }
}

/// A dot product: four vectors of partial sums, folded in a fixed order.
#[inline(always)]
unsafe fn dot<V: Vector>(k: usize, a: *const V::Elem, b: *const V::Elem) -> V::Elem
where
    V::Elem: Add<Output = V::Elem> + Default,
{
    const WAYS: usize = 4;
    // SAFETY: all loads stay below `k`; no vector has more than 16 lanes.
    unsafe {
        let mut sums = [V::zero(); WAYS];
        let mut p = 0;
        while p + WAYS * V::LANES <= k {
            for (way, sum) in sums.iter_mut().enumerate() {
                let at = p + way * V::LANES;
                *sum = V::load(a.add(at)).mul_add(V::load(b.add(at)), *sum);
            }
            p += WAYS * V::LANES;
        }
        while p < k {
            let mask = V::mask(V::LANES.min(k - p));
            sums[0] = V::load_part(a.add(p), mask).mul_add(V::load_part(b.add(p), mask), sums[0]);
            p += V::LANES;
        }
        let [s0, s1, s2, s3] = sums;
        let mut lanes = [V::Elem::default(); 16];
        s0.add(s1).add(s2.add(s3)).store(lanes.as_mut_ptr());
        let mut half = V::LANES / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] = lanes[i] + lanes[i + half];
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// Packs lines that lie side by side already: copies runs of `W` numbers. A few depths at a time,
/// so that both sides are long runs.
#[inline(always)]
unsafe fn copy<T: Copy, const W: usize>(from: &Source<T>, to: *mut T, unit: usize) {
    const DEPTHS: usize = 8;
    // SAFETY: reads `len` numbers of each of `k` rows; writes inside the panels that
    // `GemmKernels::pack` describes.
    unsafe {
        for first in (0..from.k).step_by(DEPTHS) {
            let depths = first..from.k.min(first + DEPTHS);
            let mut j = 0;
            while j + W <= from.len {
                for p in depths.clone() {
                    let source = from.data.add(p * from.depth + j);
                    std::ptr::copy_nonoverlapping(source, to.add(j * from.k + p * W), W);
                }
                j += W;
            }
            if j < from.len {
                let left = from.len - j;
                let width = left.next_multiple_of(unit);
                for p in depths {
                    let source = from.data.add(p * from.depth + j);
                    std::ptr::copy_nonoverlapping(source, to.add(j * from.k + p * width), left);
                }
            }
        }
    }
}

/// Packs one panel of lines that run along the depth, or of any strides.
#[inline(always)]
unsafe fn transpose<T: Copy>(from: &Source<T>, to: *mut T, width: usize) {
    // SAFETY: reads `len` lines of depth `k`, writes `width * k` numbers, of which `len <= width`
    // in each row.
    unsafe {
        for p in 0..from.k {
            for i in 0..from.len {
                *to.add(p * width + i) = *from.data.add(i * from.line + p * from.depth);
            }
        }
    }
}

/// As [`transpose`], by blocks of 8 by 8 where the depth has stride 1. The lanes beyond `len` get
/// copies of a line.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn transpose_f32(from: &Source<f32>, to: *mut f32, width: usize) {
    // SAFETY: as for `transpose`; the last block of the depth starts 8 before its end, so that no
    // read passes it, and `width` is a multiple of 8, so that a block of lines fits.
    unsafe {
        if from.depth != 1 || from.k < 8 || !width.is_multiple_of(8) {
            return transpose(from, to, width);
        }
        for first in (0..from.len).step_by(8) {
            let lines: [*const f32; 8] =
                array(|i| from.data.add((first + i).min(from.len - 1) * from.line));
            let mut p = 0;
            loop {
                block(&array(|i| lines[i].add(p)), to.add(p * width + first), width);
                if p + 8 == from.k {
                    break;
                }
                p = (p + 8).min(from.k - 8);
            }
        }
    }
}

/// Defines the kernels of a vector type as functions compiled with the given features.
macro_rules! kernels {
    ($name:ident, $vector:ty, $elem:ty, $transpose:expr, $(#[$features:meta])?) => {
        static $name: GemmKernels<$elem> = {
            $(#[$features])?
            unsafe fn some_panel<const C: usize, const PART: bool>(p: &Panel<$elem>) {
                // SAFETY: the caller's promise.
                unsafe { panel::<$vector, C, PART>(p) }
            }
            $(#[$features])?
            #[allow(clippy::too_many_arguments)]
            unsafe fn some_row(
                k: usize, n: usize, alpha: $elem, a: *const $elem, a_step: usize, b: *const $elem, b_row: usize, out: *mut $elem,
            ) {
                // SAFETY: the caller's promise.
                unsafe { row::<$vector>(k, n, alpha, a, a_step, b, b_row, out) }
            }
            $(#[$features])?
            unsafe fn some_dot(k: usize, a: *const $elem, b: *const $elem) -> $elem {
                // SAFETY: the caller's promise.
                unsafe { dot::<$vector>(k, a, b) }
            }
            $(#[$features])?
            unsafe fn some_copy(from: &Source<$elem>, to: *mut $elem, width: usize, unit: usize) {
                // SAFETY: the caller's promise; operands are packed to strips or to panels, nothing
                // else.
                unsafe {
                    if width == <$vector as Vector>::ROWS {
                        copy::<$elem, { <$vector as Vector>::ROWS }>(from, to, unit)
                    } else {
                        copy::<$elem, { <$vector as Vector>::WIDE * <$vector as Vector>::LANES }>(from, to, unit)
                    }
                }
            }
            GemmKernels {
                lanes: <$vector as Vector>::LANES,
                rows: <$vector as Vector>::ROWS,
                cols: <$vector as Vector>::WIDE * <$vector as Vector>::LANES,
                panels: [
                    some_panel::<1, true>,
                    some_panel::<1, false>,
                    some_panel::<2, false>,
                    some_panel::<{ <$vector as Vector>::WIDE }, false>,
                ],
                row: some_row,
                dot: some_dot,
                transpose: $transpose,
                copy: some_copy,
            }
        };
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F32, F32x16, f32, transpose_f32, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_PAIRS, Pairs16, f32, transpose_f32, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F64, F64x8, f64, transpose::<f64>, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F32, F32x8, f32, transpose_f32, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F64, F64x4, f64, transpose::<f64>, #[target_feature(enable = "avx2,fma")]);
kernels!(PLAIN_F32, Plain<f32, 4>, f32, transpose::<f32>,);
kernels!(PLAIN_F64, Plain<f64, 2>, f64, transpose::<f64>,);

/// The kernels of products whose elements are pairs of bf16 in the place of an f32, two steps of
/// the depth in one, where the processor multiplies them. Its panels alone mean anything.
pub(crate) fn pairs() -> Option<&'static GemmKernels<f32>> {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::Avx512 && is_x86_feature_detected!("avx512bf16") {
        return Some(&AVX512_PAIRS);
    }
    None
}

/// An element type that has kernels.
pub trait GemmElement:
    Copy + Default + Add<Output = Self> + Mul<Output = Self> + Send + Sync + 'static
{
    /// The kernels for a level, which the processor must have.
    fn kernels(level: Level) -> &'static GemmKernels<Self>;

    /// The kernels for the level in use.
    fn current() -> &'static GemmKernels<Self> {
        Self::kernels(level())
    }
}

impl GemmElement for f32 {
    fn kernels(level: Level) -> &'static GemmKernels<f32> {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &AVX512_F32,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &AVX2_F32,
            _ => &PLAIN_F32,
        }
    }
}

impl GemmElement for f64 {
    fn kernels(level: Level) -> &'static GemmKernels<f64> {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &AVX512_F64,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &AVX2_F64,
            _ => &PLAIN_F64,
        }
    }
}
