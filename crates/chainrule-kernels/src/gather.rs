//! Rows and elements picked by index, and the reverse: added to what is at their places, in the
//! order of the indices.
//!
//! The callers have checked the indices with [`first_outside`]; a wrong one ends in a panic here,
//! never in foreign memory.

use std::hint::black_box;
use std::ops::Add;

use super::copy::line;
use super::map::{PIECE, SHARED};
use super::simd::vectorized;
use super::threads;
use crate::shape::MAX_RANK;

/// Whether an index lies outside of `0..size`. As an unsigned number a negative one is larger than
/// any size.
#[inline(always)]
fn outside(index: i64, size: usize) -> bool {
    index as u64 >= size as u64
}

#[inline(always)]
fn any_outside_body<const FMA: bool>(indices: &[i64], size: usize) -> bool {
    indices.iter().fold(false, |any, &i| any | outside(i, size))
}

vectorized! {
    fn any_outside(indices: &[i64], size: usize) -> bool = any_outside_body
}

/// The position of the first index that does not lie in `0..size`.
pub fn first_outside(indices: &[i64], size: usize) -> Option<usize> {
    // A pass without branches finds out whether there is one; only then is its position looked up.
    if !any_outside(indices, size) {
        return None;
    }
    indices.iter().position(|&i| outside(i, size))
}

/// From `x`, `[outer, size, inner]`, the rows at `indices`: `out[o, k, ..] = x[o, indices[k], ..]`.
pub fn take_rows<T: Copy + Send + Sync>(
    x: &[T],
    size: usize,
    inner: usize,
    indices: &[i64],
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let (whole, block) = (size * inner, indices.len() * inner);
    let shared = out.len() >= SHARED;
    if !shared {
        let blocks = x.chunks_exact(whole).zip(out.chunks_exact_mut(block));
        return blocks.for_each(|(x, out)| take_block(x, inner, indices, out));
    }
    let high = (PIECE / inner).max(1);
    for (x, out) in x.chunks_exact(whole).zip(out.chunks_exact_mut(block)) {
        let pieces = out.chunks_mut(high * inner).zip(indices.chunks(high));
        threads::for_each(shared, pieces, |(out, indices)| take_block(x, inner, indices, out));
    }
}

/// Bytes of a table that is in L1 and L2 most of the time.
const NEAR: usize = 1 << 18;
/// Rows of a larger table prefetched at a time, if they are no longer than a cache line; copying a
/// longer row prefetches the rest of it soon enough.
const TOUCHED: usize = 64;
const LINE: usize = 64;

fn take_block<T: Copy>(x: &[T], inner: usize, indices: &[i64], out: &mut [T]) {
    if inner == 1 {
        // Copying a single element would cost a call of `memcpy`.
        return out.iter_mut().zip(indices).for_each(|(out, &i)| *out = x[i as usize]);
    }
    let far = size_of_val(x) > NEAR && inner * size_of::<T>() <= LINE;
    for (out, indices) in out.chunks_mut(TOUCHED * inner).zip(indices.chunks(TOUCHED)) {
        if far {
            // Waits for all of these rows at once; the loop below would wait for a few at a time.
            for &i in indices {
                black_box(x[i as usize * inner]);
            }
        }
        match inner {
            2..4 => take_short::<2, T>(x, inner, indices, out),
            4..8 => take_short::<4, T>(x, inner, indices, out),
            8..=16 => take_short::<8, T>(x, inner, indices, out),
            _ => {
                for (out, &i) in out.chunks_exact_mut(inner).zip(indices) {
                    line(&x[i as usize * inner..][..inner], out);
                }
            }
        }
    }
}

/// Rows of `W` to `2 * W` elements: the first `W` and the last ones, which may overlap, so that no
/// copy is a call.
fn take_short<const W: usize, T: Copy>(x: &[T], inner: usize, indices: &[i64], out: &mut [T]) {
    for (out, &i) in out.chunks_exact_mut(inner).zip(indices) {
        let row = &x[i as usize * inner..][..inner];
        out[..W].copy_from_slice(&row[..W]);
        out[inner - W..].copy_from_slice(&row[inner - W..]);
    }
}

/// The reverse of [`take_rows`]: `out`, `[outer, size, inner]`, becomes zero, then
/// `out[o, indices[k], ..] += g[o, k, ..]`, for every `k` in its order. Rows with the index `skip`
/// are left out.
pub fn add_rows<T: Copy + Default + Add<Output = T>>(
    g: &[T],
    size: usize,
    inner: usize,
    indices: &[i64],
    skip: Option<i64>,
    out: &mut [T],
) {
    out.fill(T::default());
    add_rows_to(g, size, inner, indices, skip, out);
}

/// As `add_rows`, but what is in `out` stays.
pub fn add_rows_to<T: Copy + Add<Output = T>>(
    g: &[T],
    size: usize,
    inner: usize,
    indices: &[i64],
    skip: Option<i64>,
    out: &mut [T],
) {
    if g.is_empty() {
        return;
    }
    let blocks = out.chunks_exact_mut(size * inner);
    for (g, out) in g.chunks_exact(indices.len() * inner).zip(blocks) {
        if inner == 1 && skip.is_none() {
            indices.iter().zip(g).for_each(|(&i, &g)| out[i as usize] = out[i as usize] + g);
            continue;
        }
        for (g, &i) in g.chunks_exact(inner).zip(indices) {
            if skip == Some(i) {
                continue;
            }
            for (out, &g) in out[i as usize * inner..][..inner].iter_mut().zip(g) {
                *out = *out + g;
            }
        }
    }
}

/// `out[o, indices[k], ..] = v[o, k, ..]` for every `k` in its order, so that the last of equal
/// indices stays.
pub fn put_rows<T: Copy>(v: &[T], size: usize, inner: usize, indices: &[i64], out: &mut [T]) {
    if v.is_empty() {
        return;
    }
    let blocks = out.chunks_exact_mut(size * inner);
    for (v, out) in v.chunks_exact(indices.len() * inner).zip(blocks) {
        if inner == 1 {
            indices.iter().zip(v).for_each(|(&i, &v)| out[i as usize] = v);
            continue;
        }
        for (v, &i) in v.chunks_exact(inner).zip(indices) {
            line(v, &mut out[i as usize * inner..][..inner]);
        }
    }
}

/// Addresses of the elements that an array of indices names: the index along `axis`, else the
/// index's own position in the array of `strides`.
#[derive(Clone, Copy, Debug)]
pub struct IndexedPlaces<'a> {
    /// The indices, row-major.
    pub indices: &'a [i64],
    /// Their shape, of one axis at least.
    pub shape: &'a [usize],
    /// The strides of the array that they point into.
    pub strides: &'a [isize],
    /// The axis along which they point.
    pub axis: usize,
}

/// A row of indices: the one at `j` names the place `base + j * step + index * along`.
#[derive(Clone, Copy)]
struct IndexedRow<'a> {
    indices: &'a [i64],
    base: usize,
    step: usize,
    along: usize,
}

impl IndexedRow<'_> {
    #[inline(always)]
    fn place(self, j: usize, index: i64) -> usize {
        self.base + j * self.step + index as usize * self.along
    }

    /// Whether the indices count neighbours from `base` on.
    #[inline(always)]
    fn is_stretch(self) -> bool {
        (self.step, self.along) == (0, 1)
    }
}

impl IndexedPlaces<'_> {
    /// Calls `f(position of the first index, row)` for each row of indices.
    #[inline]
    fn each_row(self, mut f: impl FnMut(usize, IndexedRow<'_>)) {
        let last = self.shape.len() - 1;
        let n = self.shape[last];
        if self.indices.is_empty() {
            return;
        }
        let along = self.strides[self.axis] as usize;
        let step = if self.axis == last { 0 } else { self.strides[last] as usize };
        let mut at = [0usize; MAX_RANK];
        for (row, indices) in self.indices.chunks_exact(n).enumerate() {
            let before = (0..last).filter(|&a| a != self.axis);
            let base: usize = before.map(|a| at[a] * self.strides[a] as usize).sum();
            f(row * n, IndexedRow { indices, base, step, along });
            for a in (0..last).rev() {
                at[a] += 1;
                if at[a] < self.shape[a] {
                    break;
                }
                at[a] = 0;
            }
        }
    }

    /// Calls `f(position of the index, place that it names)` for each index in its order.
    #[inline]
    pub fn for_each(self, mut f: impl FnMut(usize, usize)) {
        self.each_row(|first, row| {
            row.indices.iter().enumerate().for_each(|(j, &i)| f(first + j, row.place(j, i)));
        });
    }

    /// `out[k] = x[place of k]`.
    pub fn take<T: Copy>(self, x: &[T], out: &mut [T]) {
        self.each_row(|first, row| {
            let out = &mut out[first..][..row.indices.len()];
            if row.is_stretch() {
                let x = &x[row.base..];
                out.iter_mut().zip(row.indices).for_each(|(out, &i)| *out = x[i as usize]);
                return;
            }
            for (j, (out, &i)) in out.iter_mut().zip(row.indices).enumerate() {
                *out = x[row.place(j, i)];
            }
        });
    }

    /// `out` becomes zero, then `out[place of k] += g[k]` for every `k` in its order.
    pub fn add<T: Copy + Default + Add<Output = T>>(self, g: &[T], out: &mut [T]) {
        out.fill(T::default());
        self.add_to(g, out);
    }

    /// `out[place of k] += g[k]` for every `k` in its order.
    pub fn add_to<T: Copy + Add<Output = T>>(self, g: &[T], out: &mut [T]) {
        self.each_row(|first, row| {
            let g = &g[first..][..row.indices.len()];
            if row.is_stretch() {
                let out = &mut out[row.base..];
                for (&i, &g) in row.indices.iter().zip(g) {
                    let out = &mut out[i as usize];
                    *out = *out + g;
                }
                return;
            }
            for (j, (&i, &g)) in row.indices.iter().zip(g).enumerate() {
                let out = &mut out[row.place(j, i)];
                *out = *out + g;
            }
        });
    }

    /// `out[place of k] = v[k]` for every `k` in its order, so that the last of equal places stays.
    pub fn put<T: Copy>(self, v: &[T], out: &mut [T]) {
        self.for_each(|k, place| out[place] = v[k]);
    }

    /// Marks each `k` whose place, of `len` places, no later `k` writes.
    pub fn last(self, len: usize, out: &mut [u8]) {
        let mut last = vec![0; len];
        self.for_each(|k, place| last[place] = k);
        self.for_each(|k, place| out[k] = (last[place] == k) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 11] = [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129];

    #[test]
    fn the_first_index_outside_is_found() {
        for n in SIZES {
            let mut indices: Vec<i64> = (0..n as i64).collect();
            assert_eq!(first_outside(&indices, n), None);
            for at in 0..n {
                for wrong in [-1, n as i64, i64::MIN, i64::MAX] {
                    let right = std::mem::replace(&mut indices[at], wrong);
                    assert_eq!(first_outside(&indices, n), Some(at));
                    indices[at] = right;
                }
            }
        }
        assert_eq!(first_outside(&[0], 0), Some(0));
    }

    #[test]
    fn rows_come_and_go_back() {
        for inner in SIZES.into_iter().chain(2..7) {
            let (outer, size) = (2, 3);
            let indices = [2i64, 0, 2, 2];
            let x: Vec<f64> = (0..outer * size * inner).map(|i| i as f64).collect();
            let mut out = vec![-1.0; outer * 4 * inner];
            take_rows(&x, size, inner, &indices, &mut out);
            let mut back = vec![7.0; x.len()];
            add_rows(&out, size, inner, &indices, None, &mut back);
            let mut skipped = vec![7.0; x.len()];
            add_rows(&out, size, inner, &indices, Some(2), &mut skipped);
            for o in 0..outer {
                for j in 0..inner {
                    let of = |row: usize| x[(o * size + row) * inner + j];
                    for (k, &i) in indices.iter().enumerate() {
                        assert_eq!(out[(o * 4 + k) * inner + j], of(i as usize));
                    }
                    let at = |v: &[f64], row: usize| v[(o * size + row) * inner + j];
                    assert_eq!([0, 1, 2].map(|r| at(&back, r)), [of(0), 0.0, 3.0 * of(2)]);
                    assert_eq!([0, 1, 2].map(|r| at(&skipped, r)), [of(0), 0.0, 0.0]);
                }
            }
            // Twice as much added once more, then put in place of it.
            add_rows_to(&out, size, inner, &indices, None, &mut back);
            let twice: Vec<f64> = back.clone();
            put_rows(&out, size, inner, &indices, &mut back);
            for (k, (&put, &sum)) in back.iter().zip(&twice).enumerate() {
                let row = k / inner % size;
                assert_eq!(put, if row == 1 { 0.0 } else { x[k] });
                assert_eq!(sum, [2.0, 0.0, 6.0][row] * x[k]);
            }
        }
    }

    #[test]
    fn rows_of_a_far_table_arrive() {
        for (inner, count) in [(2, 63), (3, 64), (3, 150), (7, 65), (8, 128), (9, 200)] {
            let size = NEAR / 8;
            let x: Vec<i64> = (0..(size * inner) as i64).collect();
            let indices: Vec<i64> = (0..count).map(|k| k * 7919 % size as i64).collect();
            let mut out = vec![-1; indices.len() * inner];
            take_rows(&x, size, inner, &indices, &mut out);
            for (k, row) in out.chunks(inner).enumerate() {
                let from = indices[k] as usize * inner;
                assert_eq!(row, &x[from..][..inner], "{inner} {k}");
            }
        }
    }

    #[test]
    fn large_takes_are_shared_out() {
        let indices: Vec<i64> = (0..SHARED as i64 + 77).map(|k| k * 31 % 1000).collect();
        for (outer, inner) in [(1, 1), (2, 1), (1, 3)] {
            let x: Vec<i64> = (0..(outer * 1000 * inner) as i64).collect();
            let mut out = vec![-1; outer * indices.len() * inner];
            take_rows(&x, 1000, inner, &indices, &mut out);
            for (k, &got) in out.iter().enumerate() {
                let (o, r, j) = (k / inner / indices.len(), k / inner % indices.len(), k % inner);
                assert_eq!(got, x[(o * 1000 + indices[r] as usize) * inner + j]);
            }
        }
    }

    #[test]
    fn the_last_of_equal_places() {
        let places =
            IndexedPlaces { indices: &[2, 0, 2, 1, 1], shape: &[5], strides: &[1], axis: 0 };
        let (mut last, mut put) = ([7; 5], [9; 4]);
        places.last(4, &mut last);
        assert_eq!(last, [0, 1, 1, 0, 1]);
        places.put(&[1, 2, 3, 4, 5], &mut put);
        assert_eq!(put, [2, 5, 3, 9]);
    }

    /// Against coordinates computed by division, for every axis of a smaller array of indices.
    #[test]
    fn places_on_every_axis() {
        let (dims, shape) = ([3usize, 4, 5], [2usize, 3, 4]);
        let strides = [20isize, 5, 1];
        let x: Vec<i64> = (0..60).map(|i| i * i).collect();
        for axis in 0..3 {
            let indices: Vec<i64> = (0..24).map(|k| (k * 7 + 1) % dims[axis] as i64).collect();
            let places =
                IndexedPlaces { indices: &indices, shape: &shape, strides: &strides, axis };
            let place = |k: usize| {
                let mut at = [k / 12, k / 4 % 3, k % 4];
                at[axis] = indices[k] as usize;
                at[0] * 20 + at[1] * 5 + at[2]
            };
            let mut out = vec![0; 24];
            places.take(&x, &mut out);
            let mut sums = vec![9; 60];
            places.add(&out, &mut sums);
            let mut expected = vec![0; 60];
            for k in 0..24 {
                assert_eq!(out[k], x[place(k)]);
                expected[place(k)] += x[place(k)];
            }
            assert_eq!(sums, expected);
        }
    }
}
