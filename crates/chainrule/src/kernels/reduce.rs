//! Reductions of one axis of `[outer, count, inner]`: sums here, means and variances in [`moments`], largest elements in
//! [`extremum`].
//!
//! Sums are taken in an order fixed by the sizes. A row goes into 16 lanes, element i into lane i mod 16, and the lanes fold in
//! halves; a column is summed from the top. Long sums are cut into blocks whose sums are added in turn: that keeps
//! their digits, and lets threads take whole blocks without changing a bit.

pub mod extremum;
pub mod moments;

use rayon::prelude::*;

use super::simd::vectorized;

/// How many rows or groups are summed one after the other before their sum is folded into the total.
const BLOCK: usize = 128;

pub(crate) const LANES: usize = 16;

/// From this many elements on, several threads share a sum: it must outweigh waking them.
const PARALLEL: usize = 1 << 18;

/// About how many elements one piece of a shared sum has; a multiple of a row's block.
const PIECE: usize = 1 << 15;

/// A number that sums are taken of.
pub trait Summed:
    Copy + Default + std::ops::Add<Output = Self> + std::ops::AddAssign + Send + Sync
{
}
impl<T: Copy + Default + std::ops::Add<Output = T> + std::ops::AddAssign + Send + Sync> Summed
    for T
{
}

/// From element 16 - n on: n times true, and then false.
const KEEP: [bool; 2 * LANES] = {
    let mut keep = [false; 2 * LANES];
    let mut i = 0;
    while i < LANES {
        keep[i] = true;
        i += 1;
    }
    keep
};

/// Runs `f` on the 16 lanes and each block of 16 of the first `n` elements of `x`, and brings the lanes together with `both`.
///
/// What follows the `n` elements is read, where there is enough, and left out by a select: rows of 10 or 27 are mostly
/// remainder, and a remainder as a loop would cost more than the rest.
#[inline(always)]
pub(crate) fn lanes<T: Copy>(
    x: &[T],
    n: usize,
    start: T,
    f: impl Fn(T, T) -> T,
    both: impl Fn(T, T) -> T,
) -> T {
    let mut acc = [start; LANES];
    let (chunks, rest) = x[..n].as_chunks::<LANES>();
    for chunk in chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a = f(*a, x);
        }
    }
    if !rest.is_empty() {
        match x[n - rest.len()..].first_chunk::<LANES>() {
            Some(chunk) => {
                let keep = &KEEP[LANES - rest.len()..];
                for ((a, &x), &keep) in acc.iter_mut().zip(chunk).zip(keep) {
                    let next = f(*a, x);
                    *a = if keep { next } else { *a };
                }
            }
            None => {
                for (a, &x) in acc.iter_mut().zip(rest) {
                    *a = f(*a, x);
                }
            }
        }
    }
    fold(&acc, both)
}

/// Brings lanes together in halves: i with i + 8, + 4, + 2, + 1.
///
/// A call of its own: inlined, its many small steps would lead the compiler to keep the lanes in quarter registers, which
/// makes the loop before it three times slower.
#[inline(never)]
fn fold<T: Copy>(lanes: &[T; LANES], both: impl Fn(T, T) -> T) -> T {
    let mut lanes = *lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = both(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of `f` over the first `n` elements of `x`, which may go on behind them: 16 lanes, in blocks whose sums are folded.
#[inline(always)]
pub(crate) fn sum_of<T: Summed>(x: &[T], n: usize, f: impl Fn(T) -> T) -> T {
    let mut from = 0;
    let mut total = T::default();
    loop {
        let size = (n - from).min(BLOCK * LANES);
        let sum = lanes(&x[from..], size, T::default(), |a, x| a + f(x), |a, b| a + b);
        if size == n {
            return sum;
        }
        total += sum;
        from += size;
        if from == n {
            return total;
        }
    }
}

#[inline(always)]
fn rows_body<const FMA: bool, T: Summed>(x: &[T], count: usize, out: &mut [T]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = sum_of(&x[i * count..], count, |x| x);
    }
}

vectorized! {
    /// The sum of each row of `count` elements.
    pub fn sum_rows[T](x: &[T], count: usize, out: &mut [T]) where [T: Summed] = rows_body
}

#[inline(always)]
fn blocks_body<const FMA: bool, T: Summed>(x: &[T], out: &mut [T]) {
    for (o, block) in out.iter_mut().zip(x.chunks(BLOCK * LANES)) {
        *o = sum_of(block, block.len(), |x| x);
    }
}

vectorized! {
    /// The sums of the blocks of one long row.
    fn sum_blocks[T](x: &[T], out: &mut [T]) where [T: Summed] = blocks_body
}

/// Adds rows of `out.len()` elements to `out` from the top, eight at a time: `out` is then loaded and stored an eighth as often.
#[inline(always)]
fn add_rows<T: Summed>(out: &mut [T], x: &[T]) {
    let n = out.len();
    let mut groups = x.chunks_exact(8 * n);
    for group in groups.by_ref() {
        let row = |i: usize| &group[i * n..][..n];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let (e, f, g, h) = (row(4), row(5), row(6), row(7));
        for j in 0..n {
            out[j] = out[j] + a[j] + b[j] + c[j] + d[j] + e[j] + f[j] + g[j] + h[j];
        }
    }
    for row in groups.remainder().chunks_exact(n) {
        for (o, &x) in out.iter_mut().zip(row) {
            *o += x;
        }
    }
}

#[inline(always)]
fn columns_body<const FMA: bool, T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    out.fill(T::default());
    if count == 0 || inner == 0 {
        return;
    }
    let arrays = x.chunks_exact(count * inner);
    if count <= BLOCK {
        for (out, x) in out.chunks_exact_mut(inner).zip(arrays) {
            add_rows(out, x);
        }
        return;
    }
    let mut block_sum = vec![T::default(); inner];
    for (out, x) in out.chunks_exact_mut(inner).zip(arrays) {
        for block in x.chunks(BLOCK * inner) {
            block_sum.fill(T::default());
            add_rows(&mut block_sum, block);
            add_rows(out, &block_sum);
        }
    }
}

vectorized! {
    /// The sum over the middle axis of `[outer, count, inner]`.
    pub fn sum_columns[T](x: &[T], count: usize, inner: usize, out: &mut [T]) where [T: Summed] = columns_body
}

/// The sum over the middle axis of `[outer, count, inner]`; large ones by several threads, to the same bits.
pub fn sum<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if x.len() < PARALLEL || rayon::current_num_threads() == 1 {
        return sum_here(x, count, inner, out);
    }
    let size = count * inner;
    if out.len() > inner {
        let arrays = (PIECE / size).max(1);
        return out
            .par_chunks_mut(arrays * inner)
            .zip(x.par_chunks(arrays * size))
            .for_each(|(out, x)| sum_here(x, count, inner, out));
    }
    // One array: the sums of its blocks, and then their sum.
    if inner == 1 {
        let mut sums = vec![T::default(); count.div_ceil(BLOCK * LANES)];
        sums.par_chunks_mut(PIECE / (BLOCK * LANES))
            .zip(x.par_chunks(PIECE))
            .for_each(|(sums, x)| sum_blocks(x, sums));
        out[0] = sums.into_iter().fold(T::default(), |total, s| total + s);
    } else if count > BLOCK {
        let mut sums = vec![T::default(); count.div_ceil(BLOCK) * inner];
        sums.par_chunks_mut(inner)
            .zip(x.par_chunks(BLOCK * inner))
            .for_each(|(sums, x)| sum_columns(x, x.len() / inner, inner, sums));
        sum_below(&sums, out);
    } else {
        sum_here(x, count, inner, out);
    }
}

/// Adds up rows from the top without cutting them into blocks: they are the sums of blocks already.
fn sum_below<T: Summed>(x: &[T], out: &mut [T]) {
    out.fill(T::default());
    add_rows(out, x);
}

fn sum_here<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    if inner == 1 {
        sum_rows(x, count, out)
    } else {
        sum_columns(x, count, inner, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_match_plain_sums_at_odd_sizes() {
        for count in [0usize, 1, 7, 8, 9, 15, 16, 17, 27, 127, 128, 129, 2049, 5000] {
            for inner in [1usize, 2, 15, 16, 17] {
                let x: Vec<f64> = (0..2 * count * inner)
                    .map(|i| ((i * 7919) % 1009) as f64)
                    .collect();
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
            assert!(
                out.iter().all(|&o| (o as f64 / exact - 1.0).abs() < 1e-5),
                "{out:?} {exact}"
            );
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let x: Vec<f32> = (0..600_000u32)
            .map(|i| (i.wrapping_mul(2654435761) >> 8) as f32 * 1e-3 - 7.0)
            .collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        let pool = pool.expect("three threads");
        for (outer, inner) in [(1, 1), (1, 3), (1, 600), (1, 6000), (2000, 1), (200, 3)] {
            let count = x.len() / outer / inner;
            let (mut here, mut shared) = (vec![0.0; outer * inner], vec![0.0; outer * inner]);
            sum_here(&x, count, inner, &mut here);
            pool.install(|| sum(&x, count, inner, &mut shared));
            assert_eq!(here, shared, "{outer} {count} {inner}");
        }
    }
}
