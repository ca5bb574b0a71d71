//! Reductions of one axis of `[outer, count, inner]`: sums here, means and variances in
//! [`moments`], largest elements in [`extremum`].
//!
//! Sums are taken in an order fixed by the sizes. A row goes into 16 lanes, element i into lane i
//! mod 16, and the lanes fold in halves; a column is summed from the top. Long sums are cut into
//! blocks whose sums are added in turn: that keeps their digits, and lets threads take whole blocks
//! without changing a bit. Sums of f32 are kept in f64: four elements of a lane, or eight of a
//! column, are added in pairs as they are, and their sum goes into the f64 total, which is rounded
//! once at the end. The error therefore does not grow with the length, and the conversion costs
//! little.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod extremum;
pub mod least;
mod logsumexp;
pub mod moments;
pub mod powers;
pub mod product;
pub mod truth;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use logsumexp::logsumexp_columns;

use std::cell::Cell;
use std::thread::LocalKey;

#[cfg(target_arch = "x86_64")]
use super::simd::{Level, level};
use super::simd::{array, vectorized};
use super::threads;

/// Rows or groups summed one after the other before their sum is folded into the total.
const BLOCK: usize = 128;

const LANES: usize = 16;

/// From this many elements on, several threads share a sum. One thread reads a smaller array faster
/// than it wakes another.
const PARALLEL: usize = 1 << 21;

/// About how many elements one piece of a shared sum has; a multiple of a row's block.
const PIECE: usize = 1 << 15;

/// A number that can be summed.
pub trait Summed: Copy + Default + Send + Sync + 'static {
    /// Type of the running sum.
    type Total: Summed<Total = Self::Total>;

    /// The sum; integers wrap around.
    fn plus(self, other: Self) -> Self;

    /// Converts an element for summing.
    fn widen(self) -> Self::Total;

    /// Converts a finished sum back.
    fn narrow(total: Self::Total) -> Self;

    /// The total after a few more elements.
    #[inline(always)]
    fn plus_all<const N: usize>(total: Self::Total, x: [Self; N]) -> Self::Total {
        x.into_iter().fold(total, |total, x| total.plus(x.widen()))
    }

    /// The sum of a few rows, where it can be taken without totals. Returns whether it was.
    #[inline(always)]
    fn sum_few(_x: &[Self], _out: &mut [Self]) -> bool {
        false
    }

    /// Adds rows to `out` eight at a time and returns those that are left.
    #[inline(always)]
    fn add_eights<'a>(out: &mut [Self::Total], x: &'a [Self]) -> &'a [Self] {
        add_groups::<8, Self>(out, x)
    }

    /// The sum of each row of `count` elements.
    fn sum_rows(x: &[Self], count: usize, out: &mut [Self::Total]) {
        plain_rows(x, count, out)
    }

    /// The totals of this thread's last sum, kept to be reused.
    fn totals() -> &'static LocalKey<Cell<Vec<Self::Total>>>;
}

/// Calls `f` with this many totals, all zero, in memory that the next call reuses: a step that runs
/// again and again allocates nothing.
fn with_totals<T: Summed, R>(n: usize, f: impl FnOnce(&mut [T::Total]) -> R) -> R {
    // The buffer is taken, not borrowed: while this thread waits for others it may start another
    // sum.
    let mut totals = T::totals().take();
    totals.clear();
    totals.resize(n, T::Total::default());
    let result = f(&mut totals);
    T::totals().set(totals);
    result
}

macro_rules! own_total {
    ($ty:ty, |$a:ident, $b:ident| $plus:expr) => {
        impl Summed for $ty {
            type Total = $ty;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                let ($a, $b) = (self, other);
                $plus
            }
            #[inline(always)]
            fn widen(self) -> $ty {
                self
            }
            #[inline(always)]
            fn narrow(total: $ty) -> $ty {
                total
            }
            fn totals() -> &'static LocalKey<Cell<Vec<$ty>>> {
                thread_local! {
                    static TOTALS: Cell<Vec<$ty>> = const { Cell::new(Vec::new()) };
                }
                &TOTALS
            }
        }
    };
}
own_total!(f64, |a, b| a + b);
own_total!(i64, |a, b| a.wrapping_add(b));

impl Summed for f32 {
    type Total = f64;

    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn widen(self) -> f64 {
        self as f64
    }

    #[inline(always)]
    fn narrow(total: f64) -> f32 {
        total as f32
    }

    #[inline(always)]
    fn plus_all<const N: usize>(total: f64, x: [f32; N]) -> f64 {
        total + fold(x) as f64
    }

    /// Four or eight, which are added as they are.
    #[inline(always)]
    fn sum_few(x: &[f32], out: &mut [f32]) -> bool {
        match x.len() / out.len() {
            4 => sum_group::<4>(x, out),
            8 => sum_group::<8>(x, out),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn add_eights<'a>(out: &mut [f64], x: &'a [f32]) -> &'a [f32] {
        #[cfg(target_arch = "x86_64")]
        if out.len() >= wide::STRIP && level() == Level::Avx512 {
            // SAFETY: the processor has what this level stands for.
            return unsafe { wide::add_strips(out, x) };
        }
        add_groups::<8, f32>(out, x)
    }

    fn sum_rows(x: &[f32], count: usize, out: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        match level() {
            // SAFETY: the processor has what this level stands for.
            Level::Avx512 => return unsafe { wide::sum_rows(x, count, out) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2::sum_rows(x, count, out) },
            Level::Portable => {}
        }
        single_rows(x, count, out)
    }

    fn totals() -> &'static LocalKey<Cell<Vec<f64>>> {
        f64::totals()
    }
}

/// The sum of `N` rows.
#[inline(always)]
fn sum_group<const N: usize>(x: &[f32], out: &mut [f32]) {
    let n = out.len();
    let rows: [&[f32]; N] = array(|i| &x[i * n..][..n]);
    for (j, out) in out.iter_mut().enumerate() {
        // The start value of a total is 0, so the sum of negative zeros is positive zero.
        *out = 0.0 + fold::<f32, N>(array(|i| rows[i][j]));
    }
}

#[inline(always)]
fn lanes<T: Summed, U: Copy>(x: &[U], f: &impl Fn(U) -> T) -> T {
    let mut acc = [T::default(); LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a = a.plus(f(x));
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a = a.plus(f(x));
    }
    fold(acc)
}

/// Brings lanes together in halves.
#[inline(always)]
fn fold<T: Summed, const N: usize>(mut acc: [T; N]) -> T {
    let mut width = N / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] = acc[i].plus(acc[i + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// The sum of each row of f32, without vectors.
fn single_rows(x: &[f32], count: usize, out: &mut [f64]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = in_blocks(&x[i * count..][..count], single_lanes);
    }
}

/// The sum of a block of f32.
fn single_lanes(x: &[f32]) -> f64 {
    let mut acc = [0f64; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (groups, chunks) = chunks.as_chunks::<4>();
    for [a, b, c, d] in groups {
        let mut four = [0f32; LANES];
        for (i, four) in four.iter_mut().enumerate() {
            *four = (a[i] + b[i]) + (c[i] + d[i]);
        }
        for (acc, four) in acc.iter_mut().zip(four) {
            *acc += four as f64;
        }
    }
    for chunk in chunks {
        for (acc, &x) in acc.iter_mut().zip(chunk) {
            *acc += x as f64;
        }
    }
    for (acc, &x) in acc.iter_mut().zip(rest) {
        *acc += x as f64;
    }
    fold(acc)
}

/// The sum of `f(x)`: 16 lanes, in blocks of 128 groups; 128 blocks make a span, and the spans are
/// added in turn.
#[inline(always)]
fn sum_of<T: Summed, U: Copy>(x: &[U], f: impl Fn(U) -> T) -> T {
    in_blocks(x, |block| lanes(block, &f))
}

#[inline(always)]
fn in_blocks<T: Summed, U: Copy>(x: &[U], f: impl Fn(&[U]) -> T) -> T {
    let mut total = T::default();
    for span in x.chunks(BLOCK * BLOCK * LANES) {
        let mut part = T::default();
        for block in span.chunks(BLOCK * LANES) {
            part = part.plus(f(block));
        }
        total = total.plus(part);
    }
    total
}

#[inline(always)]
fn rows_body<const FMA: bool, T: Summed>(x: &[T], count: usize, out: &mut [T::Total]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = sum_of(&x[i * count..][..count], T::widen);
    }
}

vectorized! {
    fn plain_rows[T](x: &[T], count: usize, out: &mut [T::Total]) where [T: Summed] = rows_body
}

/// Adds rows of `out.len()` elements to `out` from the top, eight or four at a time, which loads
/// and stores `out` less often.
#[inline(always)]
fn add_rows<T: Summed>(out: &mut [T::Total], x: &[T]) {
    let rest = T::add_eights(out, x);
    let rest = add_groups::<4, T>(out, rest);
    add_groups::<1, T>(out, rest);
}

/// Adds `N` rows at a time and returns the rows that are left.
#[inline(always)]
fn add_groups<'a, const N: usize, T: Summed>(out: &mut [T::Total], x: &'a [T]) -> &'a [T] {
    let n = out.len();
    let mut groups = x.chunks_exact(N * n);
    for group in groups.by_ref() {
        let rows: [&[T]; N] = array(|i| &group[i * n..][..n]);
        for (j, out) in out.iter_mut().enumerate() {
            *out = T::plus_all::<N>(*out, array(|i| rows[i][j]));
        }
    }
    groups.remainder()
}

/// Adds the sums of blocks to `out`, span by span; they are used up.
#[inline(always)]
fn add_blocks<T: Summed<Total = T>>(out: &mut [T], sums: &mut [T], inner: usize) {
    for span in sums.chunks_mut(BLOCK * inner) {
        let (first, rest) = span.split_at_mut(inner);
        add_rows(first, rest);
        add_rows::<T>(out, first);
    }
}

/// Columns summed together when there are few rows: their totals stay in L1.
const TILE: usize = 256;

/// `totals` is all zero. It has room for `inner` totals and as many again for each block of rows,
/// or is empty if those are few.
#[inline(always)]
fn columns_body<const FMA: bool, T: Summed>(
    x: &[T],
    count: usize,
    inner: usize,
    totals: &mut [T::Total],
    out: &mut [T],
) {
    let arrays = x.chunks_exact(count * inner);
    if are_few(count, inner) {
        for (out, x) in out.chunks_exact_mut(inner).zip(arrays) {
            if T::sum_few(x, out) {
                continue;
            }
            let mut totals = [T::Total::default(); TILE];
            let totals = &mut totals[..inner];
            add_rows(totals, x);
            store(totals, out);
        }
        return;
    }
    let (totals, sums) = totals.split_at_mut(inner);
    for (out, x) in out.chunks_exact_mut(inner).zip(arrays) {
        for (sum, block) in sums.chunks_exact_mut(inner).zip(x.chunks(BLOCK * inner)) {
            add_rows(sum, block);
        }
        add_blocks(totals, sums, inner);
        store(totals, out);
        sums.fill(T::Total::default());
        totals.fill(T::Total::default());
    }
}

/// Whether the totals of columns stay in registers and L1, so that they need no memory of their
/// own.
#[inline(always)]
fn are_few(count: usize, inner: usize) -> bool {
    count <= BLOCK && inner <= TILE
}

/// Rounds totals to the type of the elements.
#[inline(always)]
fn store<T: Summed>(totals: &[T::Total], out: &mut [T]) {
    for (o, &total) in out.iter_mut().zip(totals) {
        *o = T::narrow(total);
    }
}

vectorized! {
    fn columns[T](x: &[T], count: usize, inner: usize, totals: &mut [T::Total], out: &mut [T]) where [T: Summed] = columns_body
}

/// The sum over the middle axis of `[outer, count, inner]`.
pub fn sum_columns<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if count == 0 || inner == 0 {
        return out.fill(T::default());
    }
    if are_few(count, inner) {
        return columns(x, count, inner, &mut [], out);
    }
    let all = (1 + count.div_ceil(BLOCK)) * inner;
    with_totals::<T, _>(all, |totals| columns(x, count, inner, totals, out));
}

#[inline(always)]
fn block_body<const FMA: bool, T: Summed>(x: &[T], sums: &mut [T::Total]) {
    add_rows(sums, x);
}

vectorized! {
    /// Adds rows of `sums.len()` elements to `sums`.
    pub fn add_block[T](x: &[T], sums: &mut [T::Total]) where [T: Summed] = block_body
}

/// The sum over the middle axis of `[outer, count, inner]`; large ones by several threads, to the
/// same bits.
pub fn sum<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if x.len() < PARALLEL {
        return sum_here(x, count, inner, out);
    }
    let size = count * inner;
    if out.len() > inner {
        let arrays = (PIECE / size).max(1);
        let pieces = out.chunks_mut(arrays * inner).zip(x.chunks(arrays * size));
        return threads::for_each(true, pieces, |(out, x)| sum_here(x, count, inner, out));
    }
    // One array: the sums of its blocks, and then their sum.
    if inner > 1 && count <= BLOCK {
        return sum_here(x, count, inner, out);
    }
    let blocks = if inner == 1 { count.div_ceil(BLOCK * LANES) } else { count.div_ceil(BLOCK) };
    with_totals::<T, _>((1 + blocks) * inner, |totals| {
        let (totals, sums) = totals.split_at_mut(inner);
        if inner == 1 {
            let pieces = sums.chunks_mut(PIECE / (BLOCK * LANES)).zip(x.chunks(PIECE));
            threads::for_each(true, pieces, |(sums, x)| {
                let whole = x.len() / (BLOCK * LANES);
                T::sum_rows(x, BLOCK * LANES, &mut sums[..whole]);
                let rest = &x[whole * BLOCK * LANES..];
                T::sum_rows(rest, rest.len(), &mut sums[whole..]);
            });
        } else {
            let blocks = sums.chunks_mut(inner).zip(x.chunks(BLOCK * inner));
            threads::for_each(true, blocks, |(sums, x)| add_block(x, sums));
        }
        add_blocks(totals, sums, inner);
        store(totals, out);
    });
}

fn sum_here<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if inner != 1 {
        return sum_columns(x, count, inner, out);
    }
    // A few rows at a time, so that the totals need no memory of their own.
    const ROWS: usize = 64;
    let mut totals = [T::Total::default(); ROWS];
    for (i, out) in out.chunks_mut(ROWS).enumerate() {
        let totals = &mut totals[..out.len()];
        T::sum_rows(&x[i * ROWS * count..], count, totals);
        store(totals, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rows_are_summed_as_totals_are() {
        for count in 1..=17 {
            for inner in [2usize, 15, 16, 17, 250, 256] {
                let x: Vec<f32> =
                    (0..count * inner).map(|i| ((i * 7919) % 1009) as f32 / 7.0 - 60.0).collect();
                let (mut sums, mut totals) = (vec![f32::NAN; inner], vec![0.0; inner]);
                sum_columns(&x, count, inner, &mut sums);
                add_block(&x, &mut totals);
                let totals: Vec<f32> = totals.into_iter().map(f32::narrow).collect();
                assert_eq!(sums, totals, "{count}x{inner}");
                sum_columns(&vec![-0.0f32; count * inner], count, inner, &mut sums);
                assert!(sums.iter().all(|sum| sum.to_bits() == 0), "{count}x{inner}");
            }
        }
    }

    #[test]
    fn sums_match_plain_sums_at_odd_sizes() {
        for count in [0usize, 1, 7, 8, 9, 15, 16, 17, 27, 127, 128, 129, 2049, 5000] {
            for inner in [1usize, 2, 15, 16, 17] {
                let x: Vec<f64> =
                    (0..2 * count * inner).map(|i| ((i * 7919) % 1009) as f64).collect();
                let mut out = vec![f64::NAN; 2 * inner];
                sum(&x, count, inner, &mut out);
                for o in 0..2 {
                    for j in 0..inner {
                        let plain: f64 = (0..count).map(|i| x[(o * count + i) * inner + j]).sum();
                        assert_eq!(out[o * inner + j], plain, "{count} {inner}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_not_touched_by_its_neighbours() {
        for count in [1usize, 10, 15, 17, 27] {
            let mut x = vec![f32::NAN; 3 * count];
            x[count..2 * count].fill(1.0);
            let mut out = [0.0; 3];
            sum(&x, count, 1, &mut out);
            assert!(out[0].is_nan() && out[2].is_nan());
            assert_eq!(out[1], count as f32);
        }
    }

    #[test]
    fn long_f32_sums_keep_their_digits() {
        let x = vec![0.1f32; 1 << 22];
        for inner in [1, 4] {
            let mut out = vec![0.0; inner];
            sum(&x, x.len() / inner, inner, &mut out);
            let exact = 0.1f32 as f64 * (x.len() / inner) as f64;
            assert!(out.iter().all(|&o| o == exact as f32), "{out:?} {exact}");
        }
    }

    #[test]
    fn integers_wrap_around() {
        for (count, inner) in [(2, 1), (2, 3), (20, 1)] {
            let mut x = vec![0i64; count * inner];
            x[..inner].fill(i64::MAX);
            x[inner..2 * inner].fill(1);
            let mut out = vec![0; inner];
            sum(&x, count, inner, &mut out);
            assert_eq!(out, vec![i64::MIN; inner]);
        }
    }

    #[test]
    fn every_level_adds_in_the_same_order() {
        for n in [0usize, 1, 7, 8, 9, 10, 15, 16, 17, 27, 127, 128, 129, 2047, 2048, 2049, 600_000]
        {
            let x: Vec<f32> = (0..3 * n).map(|i| (i as f32 * 0.37).sin()).collect();
            let (mut plain, mut best) = ([0.0f64; 3], [0.0f64; 3]);
            single_rows(&x, n, &mut plain);
            f32::sum_rows(&x, n, &mut best);
            assert_eq!(plain, best, "{n}");
            for (row, best) in best.into_iter().enumerate() {
                let (x, exact) = (&x[row * n..][..n], x[row * n..][..n].iter().map(|x| *x as f64));
                // Three roundings of numbers below 4.
                let bound = x.len() as f64 * f32::EPSILON as f64;
                assert!((best - exact.sum::<f64>()).abs() <= bound, "{n}");
            }
        }
    }

    #[test]
    fn columns_are_added_in_the_same_order_at_every_width() {
        for n in [1usize, 63, 64, 65, 100, 127, 128, 129, 250, 1000] {
            for count in [7usize, 8, 9, 24, 129] {
                let x: Vec<f32> = (0..count * n).map(|i| (i as f32 * 0.37).sin()).collect();
                let first: Vec<f64> = (0..n).map(|j| (j as f64 * 0.11).cos()).collect();
                let (mut plain, mut best) = (first.clone(), first);
                let left = add_groups::<8, f32>(&mut plain, &x);
                assert_eq!(f32::add_eights(&mut best, &x), left, "{count}x{n}");
                assert_eq!(plain, best, "{count}x{n}");
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let x: Vec<f32> = (0..2_400_000u32)
            .map(|i| (i.wrapping_mul(2654435761) >> 8) as f32 * 1e-3 - 7.0)
            .collect();
        for (outer, inner) in [(1, 1), (1, 3), (1, 600), (1, 30_000), (2000, 1), (200, 3)] {
            let count = x.len() / outer / inner;
            let (mut here, mut shared) = (vec![0.0; outer * inner], vec![0.0; outer * inner]);
            sum_here(&x, count, inner, &mut here);
            threads::with_num_threads(3, || sum(&x, count, inner, &mut shared));
            assert_eq!(here, shared, "{outer} {count} {inner}");
        }
    }
}
