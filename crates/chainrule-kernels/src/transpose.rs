//! Copies of transposed matrices.
//!
//! A matrix that is read down its columns goes through blocks of 8 by 8 that are turned in
//! registers, inside square tiles whose two sides stay in L1 and L2. Only bits are moved, so one
//! loop serves every type of a size.

#[cfg(target_arch = "x86_64")]
use super::simd::{Level, array, level, prefetch};
use super::threads;

/// Rows and columns of a tile.
const TILE: usize = 128;

/// Elements from which threads share a matrix.
const SHARED: usize = 1 << 18;

/// Reading of a matrix: element `(i, j)` at `data[at + i + j * step]`.
#[derive(Clone, Copy)]
pub struct Columns<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Offset of the first element.
    pub at: usize,
    /// From one column to the next.
    pub step: isize,
}

impl<'a, T> Columns<'a, T> {
    /// `n` elements of column `j` from row `i` on.
    #[inline(always)]
    fn part(&self, i: usize, j: usize, n: usize) -> &'a [T] {
        let from = (self.at as isize + self.step * j as isize) as usize + i;
        &self.data[from..from + n]
    }
}

/// Writes the matrix in row-major order, `cols` to a row.
///
/// # Panics
///
/// If `out` is not whole rows, or an element lies outside `data`.
pub fn transpose<T: Copy + Send + Sync>(x: Columns<'_, T>, cols: usize, out: &mut [T]) {
    assert_eq!(out.len() % cols, 0, "transpose: whole rows");
    let high = TILE * cols;
    let bands = out.chunks_mut(high).enumerate();
    threads::for_each(bands.len() * high >= SHARED, bands, |(band, out)| {
        for j in (0..cols).step_by(TILE) {
            tile(x, band * TILE, j, cols, out);
        }
    });
}

/// Columns `j..j + TILE` of a band of rows that starts with row `i`.
fn tile<T: Copy>(x: Columns<'_, T>, i: usize, j: usize, cols: usize, out: &mut [T]) {
    let (rows, wide) = (out.len() / cols, TILE.min(cols - j));
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 && level() >= Level::Avx2 && rows >= 8 && cols >= 8 {
        // The last blocks begin inside those before.
        let left = j.min(cols - 8);
        let wide = wide.max(8).min(cols - left);
        let ends = [left, left + wide - 1].map(|column| x.part(i, column, rows).as_ptr());
        let to = &mut out[left..][..(rows - 1) * cols + wide];
        // SAFETY: the processor has AVX2. Columns of `rows` numbers of 4 bytes lie at even steps
        // from the first to the last, and `to` has `rows` rows of `wide`.
        unsafe {
            let (from, to) = (ends[0].cast(), to.as_mut_ptr().cast());
            avx2::tile((from, x.step), [rows, wide], (to, cols));
        }
        return;
    }
    for k in 0..wide {
        for (row, &x) in x.part(i, j + k, rows).iter().enumerate() {
            out[row * cols + j + k] = x;
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use super::{array, prefetch};
    use std::arch::x86_64::*;

    /// Transposes `wide` columns of `rows` numbers, `step` apart, to rows of `wide` numbers,
    /// `width` apart. Both sizes are 8 at least. Each line is prefetched: the hardware prefetcher
    /// does not follow this many streams.
    ///
    /// # Safety
    ///
    /// The columns must be readable, and the rows writable and apart from them.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn tile(
        (from, step): (*const f32, isize),
        [rows, wide]: [usize; 2],
        (to, width): (*mut f32, usize),
    ) {
        for top in (0..rows).step_by(8).map(|top| top.min(rows - 8)) {
            for left in (0..wide).step_by(8).map(|left| left.min(wide - 8)) {
                let line = from.wrapping_offset(step * left as isize).wrapping_add(top);
                let lines = array(|k| line.wrapping_offset(step * k as isize));
                let to = to.wrapping_add(top * width + left);
                // SAFETY: the caller's promise, for 8 columns and 8 rows.
                unsafe { block(&lines, to, width) };
                lines.into_iter().for_each(|line| prefetch(line.wrapping_add(16)));
                (0..8).for_each(|row| prefetch(to.wrapping_add(row * width + 32)));
            }
        }
    }

    /// Transposes 8 lines of 8 numbers: number `t` of line `i` goes to row `t`, column `i`.
    ///
    /// # Safety
    ///
    /// Each line must be readable for 8 numbers, and 8 rows of 8 numbers, `width` apart, be
    /// writable from `to` on.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn block(lines: &[*const f32; 8], to: *mut f32, width: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            // Line `i` goes beside line `i + 4`: the loads exchange the halves, and the rest stays
            // within halves.
            let pair = |i: usize, at: usize| {
                let low = _mm_loadu_ps(lines[i].add(at));
                _mm256_insertf128_ps::<1>(
                    _mm256_castps128_ps256(low),
                    _mm_loadu_ps(lines[i + 4].add(at)),
                )
            };
            for at in [0, 4] {
                let (l0, l1, l2, l3) = (pair(0, at), pair(1, at), pair(2, at), pair(3, at));
                let (x0, x1) = (_mm256_unpacklo_ps(l0, l1), _mm256_unpackhi_ps(l0, l1));
                let (y0, y1) = (_mm256_unpacklo_ps(l2, l3), _mm256_unpackhi_ps(l2, l3));
                let to = to.add(at * width);
                _mm256_storeu_ps(to, _mm256_shuffle_ps::<0b01_00_01_00>(x0, y0));
                _mm256_storeu_ps(to.add(width), _mm256_shuffle_ps::<0b11_10_11_10>(x0, y0));
                _mm256_storeu_ps(to.add(2 * width), _mm256_shuffle_ps::<0b01_00_01_00>(x1, y1));
                _mm256_storeu_ps(to.add(3 * width), _mm256_shuffle_ps::<0b11_10_11_10>(x1, y1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + Send + Sync + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        for rows in [1usize, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            for cols in [1usize, 7, 8, 9, 16, 127, 128, 129, 257] {
                let data: Vec<T> = (0..3 + rows * cols).map(&number).collect();
                let mut out = vec![data[0]; rows * cols];
                transpose(Columns { data: &data, at: 3, step: rows as isize }, cols, &mut out);
                let last = data.len() - rows;
                let mut back = vec![data[0]; rows * cols];
                let x = Columns { data: &data, at: last, step: -(rows as isize) };
                transpose(x, cols, &mut back);
                for i in 0..rows {
                    for j in 0..cols {
                        assert_eq!(out[i * cols + j], data[3 + i + j * rows], "{rows}x{cols}");
                        assert_eq!(back[i * cols + j], data[last + i - j * rows], "{rows}x{cols}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_element_arrives() {
        check(|i| i as f32);
        check(|i| i as f64);
        check(|i| i as i64);
        check(|i| i as u8);
    }

    #[test]
    fn threads_share_a_large_matrix() {
        let (rows, cols) = (1001, 703);
        let data: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
        let mut out = vec![0.0; rows * cols];
        transpose(Columns { data: &data, at: 0, step: rows as isize }, cols, &mut out);
        assert!((0..rows * cols).all(|k| out[k] == data[k / cols + k % cols * rows]));
    }
}
