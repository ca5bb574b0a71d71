//! Elementwise loops over rows, compiled for each set of vector instructions.

use std::mem::MaybeUninit;

use super::math::Real;
use super::simd::{array, vectorized};

/// An operand of a tile: a row of it for each row of the output, or one element for each row.
///
/// Row `i` starts at `data[i * step]`; with `splat` the row is that one element, repeated. A step
/// of 0 uses the same row throughout.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// The distance between the starts of two rows.
    pub step: usize,
    /// Whether a row is one repeated element.
    pub splat: bool,
}

impl<'a, T: Copy> Rows<'a, T> {
    #[inline(always)]
    fn row(&self, i: usize, n: usize) -> &'a [T] {
        &self.data[i * self.step..][..n]
    }

    #[inline(always)]
    fn one(&self, i: usize) -> T {
        self.data[i * self.step]
    }
}

#[inline(always)]
fn unary_body<const FMA: bool, T: Copy, U, F: Fn(T) -> U>(x: &[T], out: &mut [U], f: F) {
    for (o, &x) in out.iter_mut().zip(x) {
        *o = f(x);
    }
}

vectorized! {
    /// `out[i] = f(x[i])`.
    pub fn unary[T, U, F](x: &[T], out: &mut [U], f: F) where [T: Copy, F: Fn(T) -> U] = unary_body
}

/// Most copies of a repeated element laid out at a time, and the number they are a multiple of: a
/// remainder would be done one by one.
const SPREAD: usize = 256;
const FULL: usize = 16;

/// A row as slices of at most [`SPREAD`] elements where an operand is repeated, else as one: so
/// that each op needs just one loop.
///
/// Nothing is laid out before [`Spread::turn`]: by narrower stores than the loads that follow, the
/// first row would take as long as ten.
#[repr(align(64))]
struct Spread<T> {
    copies: [MaybeUninit<T>; SPREAD],
    /// Number of copies laid out.
    filled: usize,
}

impl<T: Copy> Spread<T> {
    #[inline(always)]
    fn new() -> Self {
        Spread { copies: [MaybeUninit::uninit(); SPREAD], filled: 0 }
    }

    /// Elements `first..first + n` of row `i`, which has `width`.
    #[inline(always)]
    fn part<'s>(
        &'s self,
        rows: &Rows<'s, T>,
        i: usize,
        width: usize,
        first: usize,
        n: usize,
    ) -> &'s [T] {
        if !rows.splat {
            return &rows.row(i, width)[first..][..n];
        }
        // SAFETY: `filled` copies were laid out.
        unsafe { self.copies[..self.filled][..n].assume_init_ref() }
    }

    /// Goes on to row `i`, of which `n` elements are taken at a time.
    #[inline(always)]
    fn turn(&mut self, rows: &Rows<'_, T>, i: usize, n: usize) {
        if rows.splat && (rows.step != 0 || i == 0) {
            self.filled = n.next_multiple_of(FULL).min(SPREAD);
            spread(&mut self.copies[..self.filled], MaybeUninit::new(rows.one(i)));
        }
    }
}

#[inline(always)]
fn spread_body<const FMA: bool, T: Copy>(copies: &mut [T], x: T) {
    let (full, rest) = copies.as_chunks_mut::<FULL>();
    full.iter_mut().for_each(|copies| *copies = [x; FULL]);
    debug_assert!(rest.is_empty());
}

vectorized! {
    /// Lays out copies of an element, a multiple of [`FULL`], in stores as wide as the loads that
    /// follow.
    fn spread[T](copies: &mut [T], x: T) where [T: Copy] = spread_body
}

/// Loop over slices of the operands.
type Loop<'a, const N: usize, T, U> = &'a mut dyn FnMut([&[T]; N], &mut [U]);

/// Cuts rows into slices of the same length, and calls `f` on each set of them.
///
/// It knows nothing of what `f` computes: so it is compiled once for a type of element, and only
/// the plain loops once for each op and level.
///
/// Operands come by reference here and in what calls it: what was just written field by field is
/// slow to copy as a whole.
fn by_rows<const N: usize, T: Copy, U>(
    rows: [&Rows<'_, T>; N],
    n: usize,
    out: &mut [U],
    f: Loop<'_, N, T, U>,
) {
    if n == 0 {
        return;
    }
    if n == 1 && out.len() == 1 {
        return f(array(|j| &rows[j].data[..1]), out);
    }
    if !rows.iter().any(|r| r.splat) {
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            f(array(|j| rows[j].row(i, n)), out);
        }
        return;
    }
    let part = SPREAD.min(n);
    let mut spread: [Spread<T>; N] = std::array::from_fn(|_| Spread::new());
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        spread.iter_mut().zip(rows).for_each(|(s, r)| s.turn(r, i, part));
        for (k, out) in out.chunks_mut(part).enumerate() {
            f(array(|j| spread[j].part(rows[j], i, n, k * part, out.len())), out);
        }
    }
}

#[inline(always)]
fn pairs_body<const FMA: bool, T: Copy, U, F: Fn(T, T) -> U>(
    a: &[T],
    b: &[T],
    out: &mut [U],
    f: &F,
) {
    for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *o = f(a, b);
    }
}

vectorized! {
    /// `out[i] = f(a[i], b[i])`.
    fn pairs[T, U, F](a: &[T], b: &[T], out: &mut [U], f: &F) where [T: Copy, F: Fn(T, T) -> U] = pairs_body
}

/// `out[i, j] = f(a[i, j], b[i, j])` for rows of `n` elements.
pub fn binary<T: Copy, U>(
    a: &Rows<'_, T>,
    b: &Rows<'_, T>,
    n: usize,
    out: &mut [U],
    f: impl Fn(T, T) -> U,
) {
    by_rows([a, b], n, out, &mut |[a, b], out| pairs(a, b, out, &f));
}

#[inline(always)]
fn scale_rows_body<const FMA: bool, T: Copy + std::ops::Mul<Output = T>>(
    factors: &Rows<'_, T>,
    rows: &Rows<'_, T>,
    n: usize,
    out: &mut [T],
) {
    for (i, out) in out.chunks_exact_mut(n.max(1)).enumerate() {
        let factor = factors.one(i);
        for (o, &x) in out.iter_mut().zip(rows.row(i, n)) {
            *o = factor * x;
        }
    }
}

vectorized! {
    /// `out[i, j] = factors[i] * rows[i, j]` for rows of `n` elements, of which the factors are one
    /// repeated element each and the others are not.
    pub fn scale_rows[T](factors: &Rows<'_, T>, rows: &Rows<'_, T>, n: usize, out: &mut [T])
        where [T: Copy + std::ops::Mul<Output = T>] = scale_rows_body
}

/// A function of one float, whose body may differ where a fused multiply-add is one instruction.
/// Parameters are its fields.
pub trait Function: Copy {
    /// The value at `x`: `#[inline(always)]`, and without a branch or a call, so that the loop over
    /// it vectorises.
    fn at<const FMA: bool, T: Real>(self, x: T) -> T;
}

/// As [`Function`], of two floats.
pub trait Function2: Copy {
    /// The value at `a, b`.
    fn at<const FMA: bool, T: Real>(self, a: T, b: T) -> T;
}

#[inline(always)]
fn function_body<const FMA: bool, T: Real, F: Function>(x: &[T], out: &mut [T], f: F) {
    // A loop of its own: a closure may stay a call, which no instruction set of the caller reaches.
    for (o, &x) in out.iter_mut().zip(x) {
        *o = f.at::<FMA, T>(x);
    }
}

vectorized! {
    /// `out[i] = f(x[i])`.
    pub fn function[T, F](x: &[T], out: &mut [T], f: F) where [T: Real, F: Function] = function_body
}

#[inline(always)]
fn function_pairs_body<const FMA: bool, T: Real, F: Function2>(
    a: &[T],
    b: &[T],
    out: &mut [T],
    f: F,
) {
    for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *o = f.at::<FMA, T>(a, b);
    }
}

vectorized! {
    fn function_pairs[T, F](a: &[T], b: &[T], out: &mut [T], f: F) where [T: Real, F: Function2] = function_pairs_body
}

/// `out[i, j] = f(a[i, j], b[i, j])` for rows of `n` elements.
pub fn function2<T: Real>(
    a: &Rows<'_, T>,
    b: &Rows<'_, T>,
    n: usize,
    out: &mut [T],
    f: impl Function2,
) {
    by_rows([a, b], n, out, &mut |[a, b], out| function_pairs(a, b, out, f));
}

#[inline(always)]
fn triples_body<const FMA: bool, T: Copy, F: Fn(T, T, T) -> T>(
    [a, b, c]: [&[T]; 3],
    out: &mut [T],
    f: &F,
) {
    for (o, ((&a, &b), &c)) in out.iter_mut().zip(a.iter().zip(b).zip(c)) {
        *o = f(a, b, c);
    }
}

vectorized! {
    fn triples[T, F](rows: [&[T]; 3], out: &mut [T], f: &F) where [T: Copy, F: Fn(T, T, T) -> T] = triples_body
}

/// `out[i, j] = f(a[i, j], b[i, j], c[i, j])` for rows of `n` elements.
pub fn ternary<T: Copy>(
    rows: [&Rows<'_, T>; 3],
    n: usize,
    out: &mut [T],
    f: impl Fn(T, T, T) -> T,
) {
    by_rows(rows, n, out, &mut |rows, out| triples(rows, out, &f));
}

#[inline(always)]
fn select_body<const FMA: bool, T: Copy>(
    c: Rows<'_, u8>,
    a: Rows<'_, T>,
    b: Rows<'_, T>,
    n: usize,
    out: &mut [T],
) {
    if n == 0 {
        return;
    }
    let part = if c.splat || a.splat || b.splat { SPREAD.min(n) } else { n };
    let (mut sc, mut sa, mut sb) = (Spread::new(), Spread::new(), Spread::new());
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        sc.turn(&c, i, part);
        sa.turn(&a, i, part);
        sb.turn(&b, i, part);
        for (k, out) in out.chunks_mut(part).enumerate() {
            let c = sc.part(&c, i, n, k * part, out.len());
            let a = sa.part(&a, i, n, k * part, out.len());
            let b = sb.part(&b, i, n, k * part, out.len());
            for (o, ((&c, &a), &b)) in out.iter_mut().zip(c.iter().zip(a).zip(b)) {
                *o = if c != 0 { a } else { b };
            }
        }
    }
}

vectorized! {
    /// `out[i, j] = c[i, j] ? a[i, j] : b[i, j]` for rows of `n` elements.
    pub fn select[T](c: Rows<'_, u8>, a: Rows<'_, T>, b: Rows<'_, T>, n: usize, out: &mut [T]) where [T: Copy] = select_body
}

#[inline(always)]
fn add_assign_body<const FMA: bool, T: Copy + std::ops::Add<Output = T>>(out: &mut [T], x: &[T]) {
    for (o, &x) in out.iter_mut().zip(x) {
        *o = *o + x;
    }
}

vectorized! {
    /// `out[i] += x[i]`.
    pub fn add_assign[T](out: &mut [T], x: &[T]) where [T: Copy + std::ops::Add<Output = T>] = add_assign_body
}

/// From this many elements on, several threads share a pass over memory: waking them costs less
/// than it saves.
pub const SHARED: usize = 1 << 17;

/// Elements that a thread takes at a time. Fixed, so that work is split by size and never by the
/// number of threads.
pub const PIECE: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 11] = [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129];

    #[test]
    fn rows_and_splats_agree_with_plain_loops() {
        for n in SIZES {
            let rows = 3;
            let a: Vec<f32> = (0..rows * n).map(|i| i as f32 * 0.5).collect();
            let b: Vec<f32> = (0..rows.max(n)).map(|i| 1.0 - i as f32).collect();
            let full = Rows { data: &a, step: n, splat: false };
            for (b, at) in [
                (Rows { data: &b, step: 0, splat: false }, (|_, j| j) as fn(usize, usize) -> usize),
                (Rows { data: &b, step: 1, splat: true }, |i, _| i),
                (Rows { data: &b, step: 0, splat: true }, |_, _| 0),
            ] {
                let (mut ab, mut ba) = (vec![0.0f32; rows * n], vec![0.0f32; rows * n]);
                binary(&full, &b, n, &mut ab, |x, y| x - 2.0 * y);
                binary(&b, &full, n, &mut ba, |x, y| x - 2.0 * y);
                for i in 0..rows {
                    for j in 0..n {
                        let (x, y) = (a[i * n + j], b.data[at(i, j)]);
                        assert_eq!(ab[i * n + j], x - 2.0 * y);
                        assert_eq!(ba[i * n + j], y - 2.0 * x);
                    }
                }
            }
        }
    }

    #[test]
    fn scaled_rows_are_products() {
        for n in SIZES {
            let x: Vec<f32> = (0..3 * n).map(|i| i as f32 * 0.5 - 7.0).collect();
            let factors = [2.0f32, -3.0, 0.25];
            for (step, own) in [(n, 1), (0, 1), (n, 0)] {
                let rows = Rows { data: &x, step, splat: false };
                let repeated = Rows { data: &factors, step: own, splat: true };
                let (mut out, mut want) = (vec![0.0f32; 3 * n], vec![0.0f32; 3 * n]);
                scale_rows(&repeated, &rows, n, &mut out);
                binary(&repeated, &rows, n, &mut want, |a, b| a * b);
                assert_eq!(out, want);
            }
        }
    }

    #[test]
    fn select_takes_any_mix_of_splats() {
        for n in SIZES {
            let c: Vec<u8> = (0..n).map(|i| (i % 3 == 0) as u8).collect();
            let a: Vec<i64> = (0..n as i64).collect();
            let rows = |splat| {
                (
                    Rows { data: &c[..], step: 0, splat },
                    Rows { data: &a[..], step: 0, splat: false },
                )
            };
            let minus = [-1i64];
            let b = Rows { data: &minus[..], step: 0, splat: true };
            let mut out = vec![7; n];
            let (c0, a0) = rows(false);
            select(c0, a0, b, n, &mut out);
            for (i, &o) in out.iter().enumerate() {
                assert_eq!(o, if i % 3 == 0 { i as i64 } else { -1 });
            }
        }
    }
}
