//! Copies between strided and row-major elements.

use std::ops::Add;

use super::map::PIECE;
use super::simd::vectorized;
use super::threads;
use super::transpose::{Columns, transpose};
use crate::shape::{MAX_RANK, Shape, Strides};

/// Longest line copied by one `memcpy`, in bytes. Beyond, the C library may turn to string
/// instructions, which on some processors are ten times slower when both sides lie alike within
/// their pages, as large arrays do.
const CALL: usize = 1024;

#[inline(always)]
fn long_body<const FMA: bool, T: Copy>(x: &[T], out: &mut [T]) {
    // Two halves in turn: the compiler would turn a plainer loop into a call of `memcpy`.
    const HALF: usize = 16;
    let ((pieces, rest), (outs, out_rest)) =
        (x.as_chunks::<{ 2 * HALF }>(), out.as_chunks_mut::<{ 2 * HALF }>());
    for (x, out) in pieces.iter().zip(outs) {
        let ((a, b), (c, d)) = (x.split_at(HALF), out.split_at_mut(HALF));
        c.copy_from_slice(a);
        d.copy_from_slice(b);
    }
    out_rest.copy_from_slice(rest);
}

vectorized! {
    /// A copy of a long line.
    fn long[T](x: &[T], out: &mut [T]) where [T: Copy] = long_body
}

/// A copy of a whole line.
#[inline]
pub fn line<T: Copy>(x: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "lines of one length");
    if size_of_val(x) <= CALL { out.copy_from_slice(x) } else { long(x, out) }
}

/// Elements of a strided copy from which threads share it; a strided copy takes longer than one of
/// lines.
pub const SHARED: usize = 1 << 16;

/// Positions of the first axis, each of `each` elements, that a thread takes at a time of `all`.
pub fn share(all: usize, each: usize) -> usize {
    if all * each < SHARED { all } else { (PIECE / 4 / each).clamp(1, all) }
}

/// Writes the elements at `offset` plus multiples of `strides` to `out`, in row-major order of
/// `shape`.
///
/// Every element must lie in `data`; `out` holds `shape.numel()` elements.
pub fn gather<T: Copy + Send + Sync>(
    data: &[T],
    offset: usize,
    strides: &Strides,
    shape: &Shape,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let rank = shape.rank();
    let all = shape.first().copied().unwrap_or(1);
    let each = out.len() / all;
    // A single transposed matrix is split among threads by its own code.
    let high = if rank == 2 && strides[0] == 1 { all } else { share(all, each) };
    if high == all {
        return gather_part(data, offset, strides, shape, out);
    }
    threads::for_each(true, out.chunks_mut(high * each).enumerate(), |(i, out)| {
        let mut shape = *shape;
        shape.dims_mut()[0] = out.len() / each;
        let offset = offset.strict_add_signed((i * high) as isize * strides[0]);
        gather_part(data, offset, strides, &shape, out);
    });
}

fn gather_part<T: Copy + Send + Sync>(
    data: &[T],
    offset: usize,
    strides: &Strides,
    shape: &Shape,
    out: &mut [T],
) {
    let rank = shape.rank();
    match rank {
        0 => out[0] = data[offset],
        1 => row(data, offset, strides[0], out),
        _ if strides[rank - 2] == 1 => matrices(data, offset, strides, shape, out),
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

/// Addresses of an array's elements: `offset` plus multiples of `strides`.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// Offset of the first element.
    pub offset: usize,
    /// From one position of each axis to the next.
    pub strides: &'a Strides,
}

/// The reverse of [`gather`], from places too: writes the elements of `x` to the places of `out`.
pub fn scatter<T: Copy>(x: &[T], from: Places<'_>, out: &mut [T], to: Places<'_>, shape: &Shape) {
    transfer(x, from, out, to, shape, line, |o, x| *o = x);
}

/// As [`scatter`], but each element is added to what is at its place, in the order of the
/// positions: places may coincide.
pub fn scatter_add<T: Copy + Add<Output = T>>(
    x: &[T],
    from: Places<'_>,
    out: &mut [T],
    to: Places<'_>,
    shape: &Shape,
) {
    let row = |x: &[T], out: &mut [T]| out.iter_mut().zip(x).for_each(|(o, &x)| *o = *o + x);
    transfer(x, from, out, to, shape, row, |o, x| *o = *o + x);
}

/// Line by line, a line being as many elements as are neighbours on both sides; where none are,
/// those of the last axis.
fn transfer<T: Copy>(
    x: &[T],
    from: Places<'_>,
    out: &mut [T],
    to: Places<'_>,
    shape: &Shape,
    row: impl Fn(&[T], &mut [T]),
    one: impl Fn(&mut T, T),
) {
    if shape.numel() == 0 {
        return;
    }
    let (mut rank, mut n) = (shape.rank(), 1);
    let near = |a: usize, n: usize| [from, to].iter().all(|p| p.strides[a] == n as isize);
    while rank > 0 && (shape[rank - 1] == 1 || near(rank - 1, n)) {
        rank -= 1;
        n *= shape[rank];
    }
    let mut steps = (1, 1);
    if n == 1 && rank > 0 {
        rank -= 1;
        (n, steps) = (shape[rank], (from.strides[rank], to.strides[rank]));
    }
    let dims = &shape.dims()[..rank];
    let mut source = Walk::new(dims, from.strides, from.offset);
    let mut target = Walk::new(dims, to.strides, to.offset);
    for _ in 0..dims.iter().product() {
        if steps == (1, 1) {
            row(&x[source.at..][..n], &mut out[target.at..][..n]);
        } else {
            let (mut s, mut t) = (source.at as isize, target.at as isize);
            for _ in 0..n {
                one(&mut out[t as usize], x[s as usize]);
                (s, t) = (s + steps.0, t + steps.1);
            }
        }
        source.next();
        target.next();
    }
}

/// One line of elements that lie `step` apart.
#[inline]
fn row<T: Copy>(data: &[T], at: usize, step: isize, out: &mut [T]) {
    match step {
        1 => line(&data[at..at + out.len()], out),
        0 => out.fill(data[at]),
        -1 => {
            // A function of its own, so that the loop is vectorised.
            let back = &data[at + 1 - out.len()..=at];
            for (o, &x) in out.iter_mut().zip(back.iter().rev()) {
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
            let from = &data[at - (n - 1) * back..=at];
            for (o, &x) in out.iter_mut().zip(from.iter().rev().step_by(back)) {
                *o = x;
            }
        }
    }
}

/// Transposed matrices, one after the other.
fn matrices<T: Copy + Send + Sync>(
    data: &[T],
    offset: usize,
    strides: &Strides,
    shape: &Shape,
    out: &mut [T],
) {
    let rank = shape.rank();
    let (rows, cols) = (shape[rank - 2], shape[rank - 1]);
    let mut walk = Walk::new(&shape.dims()[..rank - 2], strides, offset);
    for matrix in out.chunks_exact_mut(rows * cols) {
        transpose(Columns { data, at: walk.at, step: strides[rank - 1] }, cols, matrix);
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
    fn lines_of_any_length() {
        for n in
            [0, 1, 7, 8, 9, 127, 128, 129, 255, 256, 257, 287, 288, 289, 1023, 1024, 1025, 3000]
        {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut out = vec![-1.0; n];
            line(&x, &mut out);
            assert_eq!(out, x);
        }
    }

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

    /// Arrays that are shared out along their first axis: permuted, turned, backward, and a line of
    /// single elements.
    #[test]
    fn threads_gather_the_same() {
        let data: Vec<i64> = (0..300_000).collect();
        let cases: [(&[usize], [isize; 4], usize); 5] = [
            (&[12, 64, 4, 32], [8192, 32, 2048, 1], 5),
            (&[7, 130, 90], [11_700, 1, 130, 0], 0),
            (&[41, 5, 400], [-2000, 400, 1, 0], 82_000),
            (&[70_001], [3, 0, 0, 0], 1),
            (&[300, 301], [1, 300, 0, 0], 0),
        ];
        for (dims, s, offset) in cases {
            let mut strides = [0; MAX_RANK];
            strides[..4].copy_from_slice(&s);
            let shape = Shape::new(dims);
            assert!(shape.numel() >= SHARED);
            let mut out = vec![-1; shape.numel()];
            threads::with_num_threads(3, || gather(&data, offset, &strides, &shape, &mut out));
            let mut walk = Walk::new(shape.dims(), &strides, offset);
            for (i, &x) in out.iter().enumerate() {
                assert_eq!(x, data[walk.at], "element {i} of {shape}");
                walk.next();
            }
        }
    }

    /// Windows that overlap, lines that step backward or stand still: each place gets the sum of
    /// what falls on it.
    #[test]
    fn scatter_add_sums_what_meets() {
        let mut strides = [0; MAX_RANK];
        for (rows, cols, rs, cs, offset) in
            [(4, 17, 1, 1, 0), (3, 5, 2, -1, 20), (2, 3, 0, 0, 4), (0, 3, 1, 1, 0), (7, 1, 1, 2, 3)]
        {
            strides[..2].copy_from_slice(&[rs, cs]);
            let x: Vec<i64> = (1..=(rows * cols) as i64).collect();
            let (mut out, mut want) = (vec![1; 32], vec![1; 32]);
            let shape = Shape::new(&[rows, cols]);
            let (own, to) = (shape.contiguous_strides(), Places { offset, strides: &strides });
            scatter_add(&x, Places { offset: 0, strides: &own }, &mut out, to, &shape);
            for i in 0..rows {
                for j in 0..cols {
                    let at = offset as isize + i as isize * rs + j as isize * cs;
                    want[at as usize] += x[i * cols + j];
                }
            }
            assert_eq!(out, want);
        }
    }

    /// From windows to windows: lines that run together, turned ones, a single element.
    #[test]
    fn scatter_goes_from_places_to_places() {
        let x: Vec<i64> = (0..400).collect();
        let cases: [(&[usize], [isize; 3], [isize; 3]); 6] = [
            (&[2, 3, 17], [51, 17, 1], [60, 17, 1]),
            (&[2, 3, 17], [51, 1, 3], [51, 17, 1]),
            (&[2, 3, 16], [-48, 16, 1], [64, 20, -1]),
            (&[4, 1, 9], [9, 100, 1], [18, 7, 2]),
            (&[3, 0, 2], [1, 1, 1], [1, 1, 1]),
            (&[], [0; 3], [0; 3]),
        ];
        for (dims, s, t) in cases {
            let (mut from, mut to) = ([0; MAX_RANK], [0; MAX_RANK]);
            from[..3].copy_from_slice(&s);
            to[..3].copy_from_slice(&t);
            let shape = Shape::new(dims);
            let (mut a, mut b) = (vec![-1; 400], vec![-1; 400]);
            let (source, target) =
                (Places { offset: 100, strides: &from }, Places { offset: 100, strides: &to });
            scatter(&x, source, &mut a, target, &shape);
            let mut flat = vec![0; shape.numel()];
            gather(&x, 100, &from, &shape, &mut flat);
            let (mut walk, dims) = (Walk::new(shape.dims(), &to, 100), shape.numel());
            for &x in &flat[..dims] {
                b[walk.at] = x;
                walk.next();
            }
            assert_eq!(a, b, "{shape}");
        }
    }
}
