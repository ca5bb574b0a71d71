//! The loops of the optimizers: one pass over a parameter, its gradient and the state kept for it.
//!
//! The formulas stand in the optimizers' own files; this module walks the memory.

use smallvec::SmallVec;

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::vectorized;
use super::threads;

#[inline(always)]
fn update0_body<const FMA: bool, T: Copy, F: Fn(T, T) -> T>(p: &mut [T], g: &[T], f: F) {
    for (p, &g) in p.iter_mut().zip(g) {
        *p = f(*p, g);
    }
}

#[inline(always)]
fn replace_body<const FMA: bool, T: Copy, F: Fn(T) -> T>(x: &mut [T], f: F) {
    for x in x {
        *x = f(*x);
    }
}

#[inline(always)]
fn update1_body<const FMA: bool, T: Copy, F: Fn(T, T, T) -> (T, T)>(
    p: &mut [T],
    g: &[T],
    a: &mut [T],
    f: F,
) {
    for ((p, &g), a) in p.iter_mut().zip(g).zip(a) {
        (*p, *a) = f(*p, g, *a);
    }
}

#[inline(always)]
fn update2_body<const FMA: bool, T: Copy, F: Fn(T, T, T, T) -> (T, T, T)>(
    p: &mut [T],
    g: &[T],
    a: &mut [T],
    b: &mut [T],
    f: F,
) {
    for (((p, &g), a), b) in p.iter_mut().zip(g).zip(a).zip(b) {
        (*p, *a, *b) = f(*p, g, *a, *b);
    }
}

#[inline(always)]
fn update3_body<const FMA: bool, T: Copy, F: Fn(T, T, T, T, T) -> (T, T, T, T)>(
    p: &mut [T],
    g: &[T],
    a: &mut [T],
    b: &mut [T],
    c: &mut [T],
    f: F,
) {
    for ((((p, &g), a), b), c) in p.iter_mut().zip(g).zip(a).zip(b).zip(c) {
        (*p, *a, *b, *c) = f(*p, g, *a, *b, *c);
    }
}

vectorized! {
    fn replace_here[T, F](x: &mut [T], f: F) where [T: Copy, F: Fn(T) -> T] = replace_body
}
vectorized! {
    /// `p[i] = f(p[i], g[i])`.
    pub fn update0[T, F](p: &mut [T], g: &[T], f: F) where [T: Copy, F: Fn(T, T) -> T] = update0_body
}
vectorized! {
    /// `(p[i], a[i]) = f(p[i], g[i], a[i])`.
    pub fn update1[T, F](p: &mut [T], g: &[T], a: &mut [T], f: F)
        where [T: Copy, F: Fn(T, T, T) -> (T, T)] = update1_body
}
vectorized! {
    /// `(p[i], a[i], b[i]) = f(p[i], g[i], a[i], b[i])`.
    pub fn update2[T, F](p: &mut [T], g: &[T], a: &mut [T], b: &mut [T], f: F)
        where [T: Copy, F: Fn(T, T, T, T) -> (T, T, T)] = update2_body
}
vectorized! {
    /// `(p[i], a[i], b[i], c[i]) = f(p[i], g[i], a[i], b[i], c[i])`.
    pub fn update3[T, F](p: &mut [T], g: &[T], a: &mut [T], b: &mut [T], c: &mut [T], f: F)
        where [T: Copy, F: Fn(T, T, T, T, T) -> (T, T, T, T)] = update3_body
}

/// The arrays that an optimizer keeps for one parameter.
pub type Slices<'a, T> = SmallVec<[&'a mut [T]; 3]>;

/// Elements from which threads share an update, and the number that a thread takes at a time. An
/// update reads and writes up to five arrays that nothing has touched since the last step: with
/// 50,000 parameters it takes one thread 80 us and two threads 50 us.
const UPDATE_SHARED: usize = 1 << 15;
const UPDATE_PIECE: usize = 1 << 13;

/// Runs `update` on the whole arrays, or on pieces of a fixed size by several threads where they
/// are large.
///
/// `update` treats each element by itself, so that the pieces change nothing.
pub fn in_pieces<T: Send + Sync>(
    p: &mut [T],
    g: &[T],
    state: &mut [&mut [T]],
    update: impl Fn(&mut [T], &[T], &mut [&mut [T]]) + Sync,
) {
    if p.len() < UPDATE_SHARED || threads::is_alone() {
        return update(p, g, state);
    }
    let mut rest: Slices<'_, T> = state.iter_mut().map(|s| &mut **s).collect();
    let mut first = |n: usize| -> Slices<'_, T> {
        let heads = rest.iter_mut().map(|s| s.split_off_mut(..n).expect("as long as p"));
        heads.collect()
    };
    let pieces = p.chunks_mut(UPDATE_PIECE).zip(g.chunks(UPDATE_PIECE));
    let pieces: Vec<_> = pieces.map(|(p, g)| (first(p.len()), p, g)).collect();
    threads::for_each(true, pieces.into_iter(), |(mut state, p, g)| update(p, g, &mut state));
}

/// `x[i] = f(x[i])`, large arrays by several threads.
pub fn replace<T: Real>(x: &mut [T], f: impl Fn(T) -> T + Sync) {
    let shared = x.len() >= SHARED;
    threads::for_each(shared, x.chunks_mut(PIECE), |x| replace_here(x, &f));
}

/// Partial results of a sum, so that it runs in vectors.
const LANES: usize = 16;

#[inline(always)]
fn fold_body<const FMA: bool, T: Real, F: Fn(f64) -> f64, A: Fn(f64, f64) -> f64>(
    x: &[T],
    f: F,
    add: A,
) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, x) in lanes.iter_mut().zip(chunk) {
            *sum = add(*sum, f(x.to_f64()));
        }
    }
    for (sum, x) in lanes.iter_mut().zip(rest) {
        *sum = add(*sum, f(x.to_f64()));
    }
    lanes.into_iter().fold(0.0, add)
}

vectorized! {
    fn fold[T, F, A](x: &[T], f: F, add: A) -> f64
        where [T: Real, F: Fn(f64) -> f64, A: Fn(f64, f64) -> f64] = fold_body
}

/// The larger of two magnitudes; NaN if one is.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// The sum of `|x|^p`, or for an infinite `p` the largest `|x|`; in f64, and the same for any
/// number of threads.
pub fn power_sum<T: Real>(x: &[T], p: f64) -> f64 {
    let one = |x: &[T]| match p {
        1.0 => fold(x, f64::abs, |a, b| a + b),
        2.0 => fold(x, |x| x * x, |a, b| a + b),
        f64::INFINITY => fold(x, f64::abs, larger),
        _ => fold(x, |x| x.abs().powf(p), |a, b| a + b),
    };
    let mut parts: SmallVec<[f64; 8]> = SmallVec::from_elem(0.0, x.len().div_ceil(PIECE));
    let pieces = parts.iter_mut().zip(x.chunks(PIECE));
    threads::for_each(x.len() >= SHARED, pieces, |(part, x)| *part = one(x));
    parts.into_iter().fold(0.0, |a, b| if p == f64::INFINITY { larger(a, b) } else { a + b })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 13] =
        [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129, UPDATE_SHARED - 1, SHARED + PIECE / 2 + 3];

    fn numbers(n: usize, seed: u32) -> Vec<f32> {
        (0..n as u32).map(|i| ((i * 37 + seed * 11) % 101) as f32 - 50.0).collect()
    }

    #[test]
    fn pieces_are_the_whole() {
        for n in SIZES {
            let (p0, g) = (numbers(n, 0), numbers(n, 1));
            let states: Vec<Vec<f32>> = (2..5).map(|s| numbers(n, s)).collect();
            for count in 0..=3 {
                let (mut p, mut kept) = (p0.clone(), states.clone());
                let mut slices: Slices<'_, f32> =
                    kept[..count].iter_mut().map(|s| &mut s[..]).collect();
                in_pieces(&mut p, &g, &mut slices, |p, g, state| match state {
                    [] => update0(p, g, |p, g| p - 2.0 * g),
                    [a] => update1(p, g, a, |p, g, a| (p + a, a - g)),
                    [a, b] => update2(p, g, a, b, |p, g, a, b| (p + a * b, a - g, b + p)),
                    [a, b, c] => update3(p, g, a, b, c, |p, g, a, b, c| (p + a * b, g, c, a)),
                    _ => unreachable!(),
                });
                drop(slices);
                for i in 0..n {
                    let (p0, g, [a, b, c]) = (p0[i], g[i], [0, 1, 2].map(|s| states[s][i]));
                    let want = match count {
                        0 => (p0 - 2.0 * g, [a, b, c]),
                        1 => (p0 + a, [a - g, b, c]),
                        2 => (p0 + a * b, [a - g, b + p0, c]),
                        _ => (p0 + a * b, [g, c, a]),
                    };
                    assert_eq!((p[i], [0, 1, 2].map(|s| kept[s][i])), want, "{count} of {n}");
                }
            }
        }
    }

    #[test]
    fn power_sums_are_the_plain_ones() {
        for n in SIZES {
            let x = numbers(n, 3);
            let mut squares = x.clone();
            replace(&mut squares, |x| x * x);
            assert!(squares.iter().zip(&x).all(|(s, x)| *s == x * x), "{n}");
            for p in [1.0, 2.0, 3.0, f64::INFINITY] {
                let sizes = x.iter().map(|&x| f64::from(x).abs());
                let want = match p {
                    f64::INFINITY => sizes.fold(0.0, f64::max),
                    p => sizes.map(|x| x.powf(p)).sum(),
                };
                assert!((power_sum(&x, p) - want).abs() <= 1e-12 * want, "{p} of {n}");
            }
        }
        for p in [1.0, 2.0, f64::INFINITY] {
            assert!(power_sum(&[1.0f32, f32::NAN, 2.0], p).is_nan());
            assert_eq!(power_sum(&[1.0, f64::NEG_INFINITY], p), f64::INFINITY);
        }
    }
}
