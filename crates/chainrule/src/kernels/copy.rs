//! Copies between strided and row-major elements.

use std::ops::Add;

use crate::shape::{MAX_RANK, Shape, Strides};

/// Writes the elements at `offset` plus multiples of `strides` to `out`, in row-major order of `shape`.
///
/// Every element must lie in `data`; `out` holds `shape.numel()` elements.
pub fn gather<T: Copy>(data: &[T], offset: usize, strides: &Strides, shape: &Shape, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let rank = shape.rank();
    match rank {
        0 => out[0] = data[offset],
        1 => row(data, offset, strides[0], out),
        _ if strides[rank - 2] == 1 => tiles(data, offset, strides, shape, out),
        _ => {
            let n = shape[rank - 1];
            let mut walk = Walk::new(&shape.dims()[..rank - 1], strides, offset);
            for chunk in out.chunks_exact_mut(n) {
                row(data, walk.at, strides[rank - 1], chunk);
                walk.next();
            }
        }
    }
}

/// The reverse of [`gather`]: writes `x`, row-major of `shape`, to the places of `out` at `offset` plus multiples of `strides`.
pub fn scatter<T: Copy>(x: &[T], out: &mut [T], offset: usize, strides: &Strides, shape: &Shape) {
    if x.is_empty() {
        return;
    }
    let rank = shape.rank();
    if rank == 0 {
        out[offset] = x[0];
        return;
    }
    let n = shape[rank - 1];
    let mut walk = Walk::new(&shape.dims()[..rank - 1], strides, offset);
    for row in x.chunks_exact(n) {
        if strides[rank - 1] == 1 {
            out[walk.at..walk.at + n].copy_from_slice(row);
        } else {
            let mut at = walk.at as isize;
            for &x in row {
                out[at as usize] = x;
                at += strides[rank - 1];
            }
        }
        walk.next();
    }
}

/// As [`scatter`], but each element is added to what is at its place, in the order of `x`: places may coincide.
pub fn scatter_add<T: Copy + Add<Output = T>>(
    x: &[T],
    out: &mut [T],
    offset: usize,
    strides: &Strides,
    shape: &Shape,
) {
    if x.is_empty() {
        return;
    }
    let rank = shape.rank();
    if rank == 0 {
        out[offset] = out[offset] + x[0];
        return;
    }
    let n = shape[rank - 1];
    let mut walk = Walk::new(&shape.dims()[..rank - 1], strides, offset);
    for row in x.chunks_exact(n) {
        if strides[rank - 1] == 1 {
            for (o, &x) in out[walk.at..walk.at + n].iter_mut().zip(row) {
                *o = *o + x;
            }
        } else {
            let mut at = walk.at as isize;
            for &x in row {
                out[at as usize] = out[at as usize] + x;
                at += strides[rank - 1];
            }
        }
        walk.next();
    }
}

/// One line of elements that lie `step` apart.
#[inline]
fn row<T: Copy>(data: &[T], at: usize, step: isize, out: &mut [T]) {
    match step {
        1 => out.copy_from_slice(&data[at..at + out.len()]),
        0 => out.fill(data[at]),
        -1 => {
            // On its own, so that the loop is one of vectors.
            let line = &data[at + 1 - out.len()..=at];
            for (o, &x) in out.iter_mut().zip(line.iter().rev()) {
                *o = x;
            }
        }
        _ if step > 0 => {
            let step = step as usize;
            for (o, &x) in out.iter_mut().zip(data[at..].iter().step_by(step)) {
                *o = x;
            }
        }
        _ => {
            let (n, back) = (out.len(), step.unsigned_abs());
            let line = &data[at - (n - 1) * back..=at];
            for (o, &x) in out.iter_mut().zip(line.iter().rev().step_by(back)) {
                *o = x;
            }
        }
    }
}

/// A transposed matrix, in square tiles: both sides then stay in cache.
fn tiles<T: Copy>(data: &[T], offset: usize, strides: &Strides, shape: &Shape, out: &mut [T]) {
    const SIDE: usize = 16;
    let rank = shape.rank();
    let (rows, cols) = (shape[rank - 2], shape[rank - 1]);
    let step = strides[rank - 1];
    let mut walk = Walk::new(&shape.dims()[..rank - 2], strides, offset);
    for matrix in out.chunks_exact_mut(rows * cols) {
        for i in (0..rows).step_by(SIDE) {
            for j in (0..cols).step_by(SIDE) {
                for j in j..(j + SIDE).min(cols) {
                    let from = (walk.at as isize + step * j as isize) as usize + i;
                    let high = SIDE.min(rows - i);
                    for (k, &x) in data[from..from + high].iter().enumerate() {
                        matrix[(i + k) * cols + j] = x;
                    }
                }
            }
        }
        walk.next();
    }
}

/// Steps through positions in row-major order, keeping the offset.
pub struct Walk<'a> {
    dims: &'a [usize],
    strides: &'a Strides,
    index: [usize; MAX_RANK],
    /// The offset of the present position.
    pub at: usize,
}

impl<'a> Walk<'a> {
    /// At the first position.
    pub fn new(dims: &'a [usize], strides: &'a Strides, offset: usize) -> Self {
        Walk { dims, strides, index: [0; MAX_RANK], at: offset }
    }

    /// On to the next position; from the last back to the first.
    #[inline]
    pub fn next(&mut self) {
        let mut at = self.at as isize;
        for (axis, &d) in self.dims.iter().enumerate().rev() {
            self.index[axis] += 1;
            at += self.strides[axis];
            if self.index[axis] < d {
                break;
            }
            at -= self.strides[axis] * d as isize;
            self.index[axis] = 0;
        }
        self.at = at as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathers_any_strides() {
        let data: Vec<i64> = (0..5 * 33).collect();
        let mut strides = [0; MAX_RANK];
        for (rows, cols, rs, cs, offset) in [
            (5, 33, 33, 1, 0),
            (33, 5, 1, 33, 0),
            (17, 5, 1, 33, 16),
            (5, 11, 33, -3, 32),
            (4, 3, 0, 2, 7),
            (5, 33, 33, -1, 32),
            (1, 17, 33, -1, 16),
            (3, 4, 1, 1, 2),
            (0, 3, 1, 1, 0),
        ] {
            strides[..2].copy_from_slice(&[rs, cs]);
            let mut out = vec![-1; rows * cols];
            gather(&data, offset, &strides, &Shape::new(&[rows, cols]), &mut out);
            for i in 0..rows {
                for j in 0..cols {
                    let at = offset as isize + i as isize * rs + j as isize * cs;
                    assert_eq!(out[i * cols + j], data[at as usize]);
                }
            }
        }
    }

    /// Windows that overlap, lines that step backward or stand still: each place gets the sum of what falls on it.
    #[test]
    fn scatter_add_sums_what_meets() {
        let mut strides = [0; MAX_RANK];
        for (rows, cols, rs, cs, offset) in
            [(4, 17, 1, 1, 0), (3, 5, 2, -1, 20), (2, 3, 0, 0, 4), (0, 3, 1, 1, 0), (7, 1, 1, 2, 3)]
        {
            strides[..2].copy_from_slice(&[rs, cs]);
            let x: Vec<i64> = (1..=(rows * cols) as i64).collect();
            let (mut out, mut want) = (vec![1; 32], vec![1; 32]);
            scatter_add(&x, &mut out, offset, &strides, &Shape::new(&[rows, cols]));
            for i in 0..rows {
                for j in 0..cols {
                    let at = offset as isize + i as isize * rs + j as isize * cs;
                    want[at as usize] += x[i * cols + j];
                }
            }
            assert_eq!(out, want);
        }
    }
}
