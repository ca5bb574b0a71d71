//! A function of two arrays, element by element, and the sum of its values: what losses are made
//! of.

use smallvec::SmallVec;

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::vectorized;
use super::softmax::Row;
use super::threads;

/// A function of two numbers, compiled into the loops below.
pub trait PairFn: Copy + Send + Sync {
    /// Its value at `(x, t)`.
    fn at<const FMA: bool, T: Real>(self, x: T, t: T) -> T;
}

#[inline(always)]
fn terms_body<const FMA: bool, T: Real, F: PairFn>(
    x: &[T],
    t: &[T],
    scale: T,
    out: &mut [T],
    f: F,
) {
    for ((out, &x), &t) in out.iter_mut().zip(x).zip(t) {
        *out = f.at::<FMA, T>(x, t) * scale;
    }
}

vectorized! {
    fn terms[T, F](x: &[T], t: &[T], scale: T, out: &mut [T], f: F) where [T: Real, F: PairFn] = terms_body
}

#[inline(always)]
fn multiply_body<const FMA: bool, T: Real>(out: &mut [T], g: &[T]) {
    for (out, &g) in out.iter_mut().zip(g) {
        *out *= g;
    }
}

vectorized! {
    fn multiply[T](out: &mut [T], g: &[T]) where [T: Real] = multiply_body
}

/// `out = f(x, t) * scale`, and that times `g` if it is given, which then has as many elements.
/// Large arrays by several threads.
pub fn map_pairs<T: Real, F: PairFn>(
    x: &[T],
    t: &[T],
    scale: T,
    g: Option<&[T]>,
    out: &mut [T],
    f: F,
) {
    assert!(x.len() == out.len() && t.len() == out.len(), "arrays of one length");
    let piece = |from: usize, out: &mut [T]| {
        let part = from..from + out.len();
        terms(&x[part.clone()], &t[part.clone()], scale, out, f);
        if let Some(g) = g {
            multiply(out, &g[part]);
        }
    };
    // In pieces that stay in the cache between the two passes.
    let high = if g.is_some() { PIECE / 4 } else { PIECE };
    let shared = out.len() >= SHARED;
    let pieces = out.chunks_mut(high).enumerate();
    threads::for_each(shared, pieces, |(i, out)| piece(i * high, out));
}

#[inline(always)]
fn combine_body<const FMA: bool, T: Real>(x: &[T], a: T, y: &[T], b: T, out: &mut [T]) {
    for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
        *out = x.mul_add::<FMA>(a, y * b);
    }
}

vectorized! {
    /// `out = x * a + y * b`.
    pub fn combine[T](x: &[T], a: T, y: &[T], b: T, out: &mut [T]) where [T: Real] = combine_body
}

/// Terms computed before they are added up.
const BLOCK: usize = 256;

/// The sum of `f(x, t)`, in blocks whose sums add up in f64. Large arrays by several threads.
pub fn sum_pairs<T: Row, F: PairFn>(x: &[T], t: &[T], f: F) -> f64 {
    assert_eq!(x.len(), t.len(), "arrays of one length");
    let piece = |(x, t): (&[T], &[T])| {
        let mut values = [T::ZERO; BLOCK];
        let mut total = 0.0;
        for (x, t) in x.chunks(BLOCK).zip(t.chunks(BLOCK)) {
            let values = &mut values[..x.len()];
            terms(x, t, T::ONE, values, f);
            total += T::row_sum(values).to_f64();
        }
        total
    };
    let mut sums: SmallVec<[f64; 8]> = SmallVec::from_elem(0.0, x.len().div_ceil(PIECE));
    let pieces = x.chunks(PIECE).zip(t.chunks(PIECE)).zip(&mut sums);
    threads::for_each(x.len() >= SHARED, pieces, |((x, t), sum)| *sum = piece((x, t)));
    sums.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Difference;

    impl PairFn for Difference {
        fn at<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
            x - t
        }
    }

    fn check<T: Row>(n: usize) {
        let number = |i: usize| T::from_f64((i * 7 % 31) as f64 * 0.25);
        let x: Vec<T> = (0..n).map(number).collect();
        let t: Vec<T> = (0..n).map(|i| number(i * i % 101 + 3)).collect();
        let wanted: Vec<T> = x.iter().zip(&t).map(|(&x, &t)| x - t).collect();
        let mut out = vec![T::ZERO; n];
        map_pairs(&x, &t, T::from_f64(2.0), Some(&x), &mut out, Difference);
        for ((&out, &wanted), &x) in out.iter().zip(&wanted).zip(&x) {
            assert_eq!(out, wanted * T::from_f64(2.0) * x);
        }
        map_pairs(&x, &t, T::ONE, None, &mut out, Difference);
        assert_eq!(out, wanted);
        combine(&x, T::from_f64(2.0), &t, T::from_f64(-0.5), &mut out);
        for ((&out, &x), &t) in out.iter().zip(&x).zip(&t) {
            assert_eq!(out, T::from_f64(2.0) * x - T::from_f64(0.5) * t);
        }
        // Quarters of small numbers: every sum is exact.
        let sum: f64 = wanted.iter().map(|x| x.to_f64()).sum();
        assert_eq!(sum_pairs(&x, &t, Difference), sum);
    }

    #[test]
    fn pairs_of_every_length() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 255, 256, 257, SHARED + 12_345] {
            check::<f32>(n);
            check::<f64>(n);
        }
    }
}
