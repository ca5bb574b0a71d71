//! Running sums, products and extremes along the middle axis of `[outer, count, inner]`, and the
//! linear recurrence that their backward passes come down to. f32 is carried in f64; integers wrap
//! around.
//!
//! Each goes through memory in order: along the last axis row by row, along another with one total
//! for each column. The blocks of the outer axes are shared among threads when there is much to do.

use super::map::{PIECE, SHARED};
use super::reduce::extremum::Ranked;
use super::reduce::product::Factor;
use super::simd::array;
use super::threads;
use crate::param::Parameters;

/// Direction of a scan, and whether each result leaves out the element at its own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct Direction {
    /// From the end to the beginning.
    pub reverse: bool,
    /// Without the element itself.
    pub exclusive: bool,
}

/// Calls `f` on pieces of whole blocks of `size` elements of both arrays; by several threads if
/// they are large.
fn blocks<T: Sync, U: Send>(
    x: &[T],
    out: &mut [U],
    size: usize,
    f: impl Fn(&[T], &mut [U]) + Sync,
) {
    if size == 0 {
        return f(x, out);
    }
    let piece = (PIECE / size).max(1) * size;
    let shared = out.len() >= SHARED;
    threads::for_each(shared, x.chunks(piece).zip(out.chunks_mut(piece)), |(x, out)| f(x, out));
}

/// Rows are visited from the first or from the last.
#[inline]
fn nth_row(i: usize, count: usize, reverse: bool) -> usize {
    if reverse { count - 1 - i } else { i }
}

/// One step of a scan: the new total, and what is written.
#[inline(always)]
fn step<T: Factor>(
    total: &mut T::Total,
    x: T,
    exclusive: bool,
    f: impl Fn(T::Total, T::Total) -> T::Total,
) -> T {
    let before = *total;
    *total = f(before, x.widen());
    T::narrow(if exclusive { before } else { *total })
}

/// Rows scanned side by side, since the steps within one row wait for each other.
const TOGETHER: usize = 8;

/// `N` rows of `count` elements.
#[inline(always)]
fn scan_rows<const N: usize, T: Factor>(
    x: &[T],
    count: usize,
    reverse: bool,
    exclusive: bool,
    start: T::Total,
    out: &mut [T],
    f: impl Fn(T::Total, T::Total) -> T::Total + Copy,
) {
    let mut totals = [start; N];
    let x: [&[T]; N] = array(|k| &x[k * count..][..count]);
    let mut rows = out.chunks_exact_mut(count);
    let out: [&mut [T]; N] = std::array::from_fn(|_| rows.next().expect("N rows"));
    for i in 0..count {
        let at = nth_row(i, count, reverse);
        for k in 0..N {
            out[k][at] = step(&mut totals[k], x[k][at], exclusive, f);
        }
    }
}

fn scan<T: Factor>(
    x: &[T],
    count: usize,
    inner: usize,
    Direction { reverse, exclusive }: Direction,
    start: T::Total,
    out: &mut [T],
    f: impl Fn(T::Total, T::Total) -> T::Total + Copy,
) {
    if out.is_empty() {
        return;
    }
    if inner == 1 {
        let (mut x, mut out) =
            (x.chunks_exact(TOGETHER * count), out.chunks_exact_mut(TOGETHER * count));
        for (x, out) in x.by_ref().zip(out.by_ref()) {
            scan_rows::<TOGETHER, T>(x, count, reverse, exclusive, start, out, f);
        }
        let rest =
            x.remainder().chunks_exact(count).zip(out.into_remainder().chunks_exact_mut(count));
        return rest
            .for_each(|(x, out)| scan_rows::<1, T>(x, count, reverse, exclusive, start, out, f));
    }
    let mut totals = vec![start; inner];
    for (x, out) in x.chunks_exact(count * inner).zip(out.chunks_exact_mut(count * inner)) {
        totals.fill(start);
        for i in 0..count {
            let at = nth_row(i, count, reverse) * inner;
            let (x, out) = (&x[at..][..inner], &mut out[at..][..inner]);
            for ((o, &x), total) in out.iter_mut().zip(x).zip(&mut totals) {
                *o = step(total, x, exclusive, f);
            }
        }
    }
}

/// The running sum.
pub fn cumsum<T: Factor>(x: &[T], count: usize, inner: usize, way: Direction, out: &mut [T]) {
    blocks(x, out, count * inner, |x, out| {
        scan(x, count, inner, way, T::Total::default(), out, |a, b| {
            <T::Total as super::reduce::Summed>::plus(a, b)
        })
    })
}

/// The running product.
pub fn cumprod<T: Factor<Total: Factor>>(
    x: &[T],
    count: usize,
    inner: usize,
    way: Direction,
    out: &mut [T],
) {
    blocks(x, out, count * inner, |x, out| {
        scan(x, count, inner, way, T::Total::ONE, out, |a, b| a.times(b))
    })
}

/// `y[i] = b[i] + c y[before]`, where `before` is the place visited before `i`, and the factor `c`
/// is `a[i]` or, if `lagged`, `a[before]`. The first place visited has `b` alone.
pub fn recurrence<T: Factor<Total: Factor>>(
    (a, b): (&[T], &[T]),
    count: usize,
    inner: usize,
    reverse: bool,
    lagged: bool,
    out: &mut [T],
) {
    let size = count * inner;
    if out.is_empty() {
        return;
    }
    let mut totals = vec![T::Total::default(); inner];
    for (k, out) in out.chunks_exact_mut(size).enumerate() {
        let (a, b) = (&a[k * size..][..size], &b[k * size..][..size]);
        if inner == 1 {
            recurrence_row(a, b, reverse, lagged, out);
            continue;
        }
        for i in 0..count {
            let at = nth_row(i, count, reverse) * inner;
            let (b, out) = (&b[at..][..inner], &mut out[at..][..inner]);
            if i == 0 {
                totals.iter_mut().zip(b).for_each(|(total, &b)| *total = b.widen());
            } else {
                let from = nth_row(i - usize::from(lagged), count, reverse) * inner;
                let a = &a[from..][..inner];
                for ((total, &a), &b) in totals.iter_mut().zip(a).zip(b) {
                    *total = super::reduce::Summed::plus(b.widen(), a.widen().times(*total));
                }
            }
            out.iter_mut().zip(&totals).for_each(|(o, &total)| *o = T::narrow(total));
        }
    }
}

/// The same for one row.
fn recurrence_row<T: Factor<Total: Factor>>(
    a: &[T],
    b: &[T],
    reverse: bool,
    lagged: bool,
    out: &mut [T],
) {
    let mut total = T::Total::default();
    // Value of the element before; the first place visited has none.
    let mut before = None;
    let each = |((o, &a), &b): ((&mut T, &T), &T)| {
        let own = a.widen();
        total = match before.replace(own) {
            Some(before) => {
                let factor = if lagged { before } else { own };
                super::reduce::Summed::plus(b.widen(), factor.times(total))
            }
            None => b.widen(),
        };
        *o = T::narrow(total);
    };
    match reverse {
        false => out.iter_mut().zip(a).zip(b).for_each(each),
        true => out.iter_mut().zip(a).zip(b).rev().for_each(each),
    }
}

/// `log(e^a + e^b)` without overflow; equal infinities stay what they are.
fn log_add_exp(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    match low == high && low.is_infinite() {
        true => low,
        false => high + (low - high).exp().ln_1p(),
    }
}

/// The logarithm of the running sum of exponentials. Its totals are logarithms, so the sums neither
/// overflow nor vanish.
pub fn logcumsumexp<T: super::math::Real>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    let size = count * inner;
    blocks(x, out, size, |x, out| {
        if out.is_empty() {
            return;
        }
        let mut totals = vec![0.0; inner];
        for (x, out) in x.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
            totals.fill(f64::NEG_INFINITY);
            for (x, out) in x.chunks_exact(inner).zip(out.chunks_exact_mut(inner)) {
                for ((o, &x), total) in out.iter_mut().zip(x).zip(&mut totals) {
                    *total = log_add_exp(*total, x.to_f64());
                    *o = T::from_f64(*total);
                }
            }
        }
    })
}

/// The largest element so far and where it stands last; NaN counts as larger than everything.
/// `goes_on(new, old)` is whether the new one takes the place of an old one, neither being NaN.
pub fn extremes<T: Ranked>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
    index: &mut [i64],
    goes_on: impl Fn(T, T) -> bool,
) {
    if out.is_empty() {
        return;
    }
    let size = count * inner;
    let mut best = vec![(T::LOWEST, 0i64); inner];
    let arrays = x.chunks_exact(size).zip(out.chunks_exact_mut(size));
    for ((x, out), index) in arrays.zip(index.chunks_exact_mut(size)) {
        if inner == 1 {
            let (mut best, mut place) = (x[0], 0);
            for (i, ((o, at), &x)) in out.iter_mut().zip(index).zip(x).enumerate() {
                let takes = x.is_nan() || (!best.is_nan() && goes_on(x, best));
                (best, place) = if takes { (x, i as i64) } else { (best, place) };
                (*o, *at) = (best, place);
            }
            continue;
        }
        best.iter_mut().zip(x).for_each(|(best, &x)| *best = (x, 0));
        let rows = x.chunks_exact(inner).zip(out.chunks_exact_mut(inner));
        for (i, ((x, out), index)) in rows.zip(index.chunks_exact_mut(inner)).enumerate() {
            for (((o, at), &x), best) in out.iter_mut().zip(index).zip(x).zip(&mut best) {
                if x.is_nan() || (!best.0.is_nan() && goes_on(x, best.0)) {
                    *best = (x, i as i64);
                }
                (*o, *at) = *best;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 11] = [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129];

    fn column<T: Copy>(x: &[T], count: usize, inner: usize, k: usize) -> Vec<T> {
        (0..count).map(|i| x[(k / inner * count + i) * inner + k % inner]).collect()
    }

    fn plain(x: &[i64], way: Direction, start: i64, f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
        let mut x = x.to_vec();
        if way.reverse {
            x.reverse();
        }
        let mut total = start;
        let mut out: Vec<i64> = Vec::new();
        for x in x {
            let before = total;
            total = f(total, x);
            out.push(if way.exclusive { before } else { total });
        }
        if way.reverse {
            out.reverse();
        }
        out
    }

    #[test]
    fn rows_side_by_side_are_those_alone() {
        let x: Vec<f32> = (0..19 * 7).map(|i| (i * 7919 % 131) as f32 * 0.1 - 6.0).collect();
        for (reverse, exclusive) in [(false, false), (false, true), (true, false), (true, true)] {
            let way = Direction { reverse, exclusive };
            let (mut sums, mut products) = (vec![f32::NAN; x.len()], vec![f32::NAN; x.len()]);
            cumsum(&x, 7, 1, way, &mut sums);
            cumprod(&x, 7, 1, way, &mut products);
            for (k, x) in x.chunks(7).enumerate() {
                let mut alone = [[f32::NAN; 7]; 2];
                cumsum(x, 7, 1, way, &mut alone[0]);
                cumprod(x, 7, 1, way, &mut alone[1]);
                assert_eq!([&sums[k * 7..][..7], &products[k * 7..][..7]], [&alone[0], &alone[1]]);
            }
        }
    }

    #[test]
    fn scans_match_plain_loops_in_every_direction() {
        for count in SIZES {
            for inner in [1usize, 2, 17] {
                for (reverse, exclusive) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let way = Direction { reverse, exclusive };
                    let x: Vec<i64> =
                        (0..2 * count * inner).map(|i| (i * 7919 % 13) as i64 - 6).collect();
                    let floats: Vec<f32> = x.iter().map(|&x| x as f32).collect();
                    let (mut sums, mut products) = (vec![0i64; x.len()], vec![0i64; x.len()]);
                    let mut narrow = vec![0.0f32; x.len()];
                    cumsum(&x, count, inner, way, &mut sums);
                    cumsum(&floats, count, inner, way, &mut narrow);
                    cumprod(&x, count, inner, way, &mut products);
                    for k in 0..2 * inner {
                        let of = column(&x, count, inner, k);
                        let want = plain(&of, way, 0, |a, b| a + b);
                        assert_eq!(column(&sums, count, inner, k), want, "{count} {inner} {way:?}");
                        let want: Vec<f32> = want.iter().map(|&x| x as f32).collect();
                        assert_eq!(column(&narrow, count, inner, k), want);
                        let want = plain(&of, way, 1, i64::wrapping_mul);
                        assert_eq!(column(&products, count, inner, k), want);
                    }
                }
            }
        }
    }

    #[test]
    fn recurrences_match_plain_loops() {
        for count in SIZES {
            for (inner, reverse, lagged) in
                [(1, false, false), (3, true, false), (1, true, true), (3, false, true)]
            {
                let a: Vec<i64> = (0..2 * count * inner).map(|i| (i * 31 % 5) as i64 - 2).collect();
                let b: Vec<i64> = (0..2 * count * inner).map(|i| (i * 17 % 7) as i64 - 3).collect();
                let mut y = vec![0; a.len()];
                recurrence((&a, &b), count, inner, reverse, lagged, &mut y);
                for k in 0..2 * inner {
                    let (a, b) = (column(&a, count, inner, k), column(&b, count, inner, k));
                    let order: Vec<usize> =
                        (0..count).map(|i| nth_row(i, count, reverse)).collect();
                    let mut want = b.clone();
                    for w in order.windows(2) {
                        let factor = if lagged { a[w[0]] } else { a[w[1]] };
                        want[w[1]] = b[w[1]].wrapping_add(factor.wrapping_mul(want[w[0]]));
                    }
                    assert_eq!(
                        column(&y, count, inner, k),
                        want,
                        "{count} {inner} {reverse} {lagged}"
                    );
                }
            }
        }
    }

    #[test]
    fn long_f32_scans_keep_their_digits_and_threads_change_no_bit() {
        let x = vec![0.1f32; 1 << 18];
        let way = Direction { reverse: false, exclusive: false };
        for (count, inner) in [(1 << 18, 1), (1 << 10, 1), (1 << 8, 4)] {
            let mut out = vec![0.0; x.len()];
            cumsum(&x, count, inner, way, &mut out);
            let last = 0.1f32 as f64 * count as f64;
            assert_eq!(out[x.len() - 1], last as f32);
            let mut here = vec![0.0; x.len()];
            scan(&x, count, inner, way, 0.0, &mut here, |a, b| a + b);
            assert_eq!(out, here);
        }
    }

    #[test]
    fn logarithms_of_sums_neither_overflow_nor_vanish() {
        let mut out = [0.0f32; 6];
        logcumsumexp(&[1000.0, -1000.0, 1000.0, -1000.0, 1000.0, -1000.0], 3, 2, &mut out);
        let want = [0.0, 0.0, 2f32.ln(), 2f32.ln(), 3f32.ln(), 3f32.ln()];
        for (i, (o, w)) in out.iter().zip(want).enumerate() {
            let base = if i % 2 == 0 { 1000.0 } else { -1000.0 };
            assert!((o - base - w).abs() < 1e-3, "{out:?}");
        }
    }
}
