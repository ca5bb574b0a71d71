//! The inner loops of a convolution: two kinds of tile, and the rows that are copied before and
//! after.
//!
//! Both tiles keep their sums in registers while k runs, as those of a product do. They differ in
//! that one operand is never laid out: a patch is the same image at other offsets, so its elements
//! are read where they lie, by a table of offsets.

#[cfg(target_arch = "x86_64")]
use crate::gemm::vector::{F32x8, F32x16, F64x4, F64x8, Pairs16};
use crate::gemm::vector::{Plain, Vector};
use crate::simd::{Level, array};

/// Some columns of a product whose B is read through a table: row `p` of it begins at
/// `b + offsets[p]`.
pub(super) struct Shifted<T> {
    pub rows: usize,
    pub k: usize,
    /// A, packed tile after tile, each of them `[k, rows]`.
    pub a: *const T,
    pub b: *const T,
    pub offsets: *const usize,
    /// Whether the product is added to what `out` holds.
    pub add: bool,
    pub out: *mut T,
    pub out_row: usize,
}

/// Some columns of a product whose A is read through a table: row `i` of it begins at
/// `a + offsets[i]`. It is added to `out`.
pub(super) struct Gathered<T> {
    pub rows: usize,
    pub k: usize,
    pub a: *const T,
    pub offsets: *const usize,
    pub b: *const T,
    pub b_row: usize,
    pub out: *mut T,
    pub out_row: usize,
}

/// The kernels of one element type for one level. The entries of a table differ in the number of
/// vectors, from one on.
pub struct ConvKernels<T> {
    pub(super) lanes: usize,
    /// The most rows of a tile.
    pub(super) rows: usize,
    /// The most vectors of a tile.
    pub(super) wide: usize,
    pub(super) shifted: [unsafe fn(&Shifted<T>); 3],
    pub(super) gathered: [unsafe fn(&Gathered<T>); 3],
    /// Copies rows of `n` numbers, adding a number to each:
    /// `(count, n, from, from_row, to, to_row, plus)`.
    pub(super) copy: unsafe fn(usize, usize, *const T, usize, *mut T, usize, T),
}

/// The sums of a tile as they begin.
#[inline(always)]
unsafe fn begin<V: Vector, const R: usize, const C: usize>(
    add: bool,
    out: *const V::Elem,
    out_row: usize,
) -> [[V; C]; R] {
    // SAFETY: the caller promises `R` rows of `C` vectors, if they are added to.
    unsafe {
        let mut sums = [[V::zero(); C]; R];
        if add {
            for (i, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(out.add(i * out_row + j * V::LANES));
                }
            }
        }
        sums
    }
}

#[inline(always)]
unsafe fn finish<V: Vector, const R: usize, const C: usize>(
    sums: [[V; C]; R],
    out: *mut V::Elem,
    out_row: usize,
) {
    // SAFETY: the caller promises `R` rows of `C` vectors.
    unsafe {
        for (i, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                sum.store(out.add(i * out_row + j * V::LANES));
            }
        }
    }
}

/// A tile of `R` rows and `C` vectors, from row `row` of the panel on.
#[inline(always)]
unsafe fn shifted_tile<V: Vector, const R: usize, const C: usize>(
    panel: &Shifted<V::Elem>,
    row: usize,
) {
    // SAFETY: `panel` promises all rows, columns and offsets below.
    unsafe {
        let out = panel.out.add(row * panel.out_row);
        let mut sums = begin::<V, R, C>(panel.add, out, panel.out_row);
        let mut a = panel.a.add(row * panel.k);
        for p in 0..panel.k {
            let b = panel.b.add(*panel.offsets.add(p));
            let mut right = [V::zero(); C];
            for (j, right) in right.iter_mut().enumerate() {
                *right = V::load(b.add(j * V::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let left = V::splat(*a.add(i));
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.dot_add(right, *sum);
                }
            }
            a = a.wrapping_add(R);
        }
        finish(sums, out, panel.out_row);
    }
}

/// A tile of `R` rows and `C` vectors, from row `row` of the panel on.
#[inline(always)]
unsafe fn gathered_tile<V: Vector, const R: usize, const C: usize>(
    panel: &Gathered<V::Elem>,
    row: usize,
) {
    // SAFETY: `panel` promises all rows, columns and depths below.
    unsafe {
        let out = panel.out.add(row * panel.out_row);
        let mut sums = begin::<V, R, C>(true, out, panel.out_row);
        let lefts: [*const V::Elem; R] = array(|i| panel.a.add(*panel.offsets.add(row + i)));
        let mut b = panel.b;
        for p in 0..panel.k {
            let mut right = [V::zero(); C];
            for (j, right) in right.iter_mut().enumerate() {
                *right = V::load(b.add(j * V::LANES));
            }
            for (left, sums) in lefts.iter().zip(&mut sums) {
                let left = V::splat(*left.add(p));
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.dot_add(right, *sum);
                }
            }
            b = b.wrapping_add(panel.b_row);
        }
        finish(sums, out, panel.out_row);
    }
}

/// Rows of the next tile, when `left` rows remain and a tile has at most `most`. There are tiles of
/// 8 (or 6), 4, 2 and 1 rows.
pub(super) const fn tile_rows(left: usize, most: usize) -> usize {
    match left {
        // Two tiles of 4 rows rather than 6 and 2: a tile of 2 has too few sums to keep the
        // multipliers busy.
        8 if most == 6 => 4,
        _ if left >= most => most,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Calls `$tile::<V, R, C>($panel, row)` for each tile of the panel.
macro_rules! tiles {
    ($tile:ident, $v:ty, $c:ident, $panel:expr) => {{
        let mut row = 0;
        while row < $panel.rows {
            let rows = tile_rows($panel.rows - row, <$v as Vector>::ROWS);
            match rows {
                8 if <$v as Vector>::ROWS == 8 => $tile::<$v, 8, $c>($panel, row),
                6 if <$v as Vector>::ROWS == 6 => $tile::<$v, 6, $c>($panel, row),
                4 => $tile::<$v, 4, $c>($panel, row),
                2 => $tile::<$v, 2, $c>($panel, row),
                _ => $tile::<$v, 1, $c>($panel, row),
            }
            row += rows;
        }
    }};
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn copy_rows<V: Vector>(
    count: usize,
    n: usize,
    from: *const V::Elem,
    from_row: usize,
    to: *mut V::Elem,
    to_row: usize,
    plus: V::Elem,
) {
    // SAFETY: the caller promises `count` rows of `n` numbers on both sides.
    unsafe {
        let plus = V::splat(plus);
        let whole = n / V::LANES * V::LANES;
        let mask = V::mask(n - whole);
        for row in 0..count {
            let (from, to) = (from.add(row * from_row), to.add(row * to_row));
            let mut j = 0;
            while j < whole {
                V::load(from.add(j)).add(plus).store(to.add(j));
                j += V::LANES;
            }
            if whole < n {
                V::load_part(from.add(j), mask).add(plus).store_part(to.add(j), mask);
            }
        }
    }
}

/// Defines the kernels of a vector type as functions compiled with the given features.
macro_rules! kernels {
    ($name:ident, $vector:ty, $elem:ty, $(#[$features:meta])?) => {
        static $name: ConvKernels<$elem> = {
            $(#[$features])?
            unsafe fn shifted<const C: usize>(panel: &Shifted<$elem>) {
                // SAFETY: the caller's promise.
                unsafe { tiles!(shifted_tile, $vector, C, panel) }
            }
            $(#[$features])?
            unsafe fn gathered<const C: usize>(panel: &Gathered<$elem>) {
                // SAFETY: the caller's promise.
                unsafe { tiles!(gathered_tile, $vector, C, panel) }
            }
            $(#[$features])?
            #[allow(clippy::too_many_arguments)]
            unsafe fn copy(
                count: usize, n: usize, from: *const $elem, from_row: usize, to: *mut $elem, to_row: usize, plus: $elem,
            ) {
                // SAFETY: the caller's promise.
                unsafe { copy_rows::<$vector>(count, n, from, from_row, to, to_row, plus) }
            }
            const WIDE: usize = <$vector as Vector>::WIDE;
            ConvKernels {
                lanes: <$vector as Vector>::LANES,
                rows: <$vector as Vector>::ROWS,
                wide: WIDE,
                shifted: [shifted::<1>, shifted::<2>, shifted::<WIDE>],
                gathered: [gathered::<1>, gathered::<2>, gathered::<WIDE>],
                copy,
            }
        };
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F32, F32x16, f32, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_WORDS, Pairs16, f32, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F64, F64x8, f64, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F32, F32x8, f32, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F64, F64x4, f64, #[target_feature(enable = "avx2,fma")]);
kernels!(PLAIN_F32, Plain<f32, 4>, f32,);
kernels!(PLAIN_F64, Plain<f64, 2>, f64,);

#[cfg(target_arch = "x86_64")]
static AVX512_PAIRS: ConvKernels<f32> = ConvKernels { copy: copy_words, ..AVX512_WORDS };

/// Copies words of two numbers bit for bit, which adding zero would not do.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
#[allow(clippy::too_many_arguments)]
unsafe fn copy_words(
    count: usize,
    n: usize,
    from: *const f32,
    from_row: usize,
    to: *mut f32,
    to_row: usize,
    plus: f32,
) {
    // SAFETY: the caller promises `count` rows of `n` numbers on both sides.
    unsafe {
        if plus.to_bits() != 0 {
            return copy_rows::<Pairs16>(count, n, from, from_row, to, to_row, plus);
        }
        for row in 0..count {
            let to = to.add(row * to_row);
            std::ptr::copy_nonoverlapping(from.add(row * from_row), to, n);
        }
    }
}

/// The kernels of words that hold two numbers of bf16, whose sums are f32, where the processor has
/// them.
pub(super) fn pairs() -> Option<&'static ConvKernels<f32>> {
    #[cfg(target_arch = "x86_64")]
    if crate::gemm::tile::pairs().is_some() {
        return Some(&AVX512_PAIRS);
    }
    None
}

/// An element type that has kernels.
pub trait ConvElement: crate::gemm::tile::GemmElement {
    /// The kernels for a level, which the processor must have.
    fn tiles(level: Level) -> &'static ConvKernels<Self>;
}

impl ConvElement for f32 {
    fn tiles(level: Level) -> &'static ConvKernels<f32> {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &AVX512_F32,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &AVX2_F32,
            _ => &PLAIN_F32,
        }
    }
}

impl ConvElement for f64 {
    fn tiles(level: Level) -> &'static ConvKernels<f64> {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &AVX512_F64,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &AVX2_F64,
            _ => &PLAIN_F64,
        }
    }
}
