//! Sums over one axis of `[outer, count, inner]`, in an order fixed by the sizes.

use super::simd::vectorized;

/// How many rows or groups are summed one after the other before their sum is folded into the total: long sums then lose no digits.
const BLOCK: usize = 128;

const LANES: usize = 16;

/// A number that sums are taken of.
pub trait Summed:
    Copy + Default + std::ops::Add<Output = Self> + std::ops::AddAssign + Send + Sync
{
}
impl<T: Copy + Default + std::ops::Add<Output = T> + std::ops::AddAssign + Send + Sync> Summed
    for T
{
}

#[inline(always)]
fn lanes<T: Summed, U: Copy, F: Fn(U) -> T>(x: &[U], f: &F) -> T {
    let mut acc = [T::default(); LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a += f(x);
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a += f(x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] = acc[i] + acc[i + width];
        }
        width /= 2;
    }
    acc[0]
}

/// The sum of `f(x)`: 16 lanes, in blocks whose sums are folded.
#[inline(always)]
pub fn sum_of<T: Summed, U: Copy, F: Fn(U) -> T>(x: &[U], f: F) -> T {
    if x.len() <= BLOCK * LANES {
        return lanes(x, &f);
    }
    let mut total = T::default();
    for block in x.chunks(BLOCK * LANES) {
        total += lanes(block, &f);
    }
    total
}

#[inline(always)]
fn rows_body<const FMA: bool, T: Summed>(x: &[T], count: usize, out: &mut [T]) {
    if count == 0 {
        return out.fill(T::default());
    }
    for (o, row) in out.iter_mut().zip(x.chunks_exact(count)) {
        *o = sum_of(row, |x| x);
    }
}

vectorized! {
    /// The sum of each row of `count` elements.
    pub fn sum_rows[T](x: &[T], count: usize, out: &mut [T]) where [T: Summed] = rows_body
}

#[inline(always)]
fn add_to<T: Summed>(out: &mut [T], x: &[T]) {
    for (o, &x) in out.iter_mut().zip(x) {
        *o += x;
    }
}

#[inline(always)]
fn columns_body<const FMA: bool, T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
    out.fill(T::default());
    if count == 0 || inner == 0 {
        return;
    }
    if count <= BLOCK {
        for (out, x) in out
            .chunks_exact_mut(inner)
            .zip(x.chunks_exact(count * inner))
        {
            for row in x.chunks_exact(inner) {
                add_to(out, row);
            }
        }
        return;
    }
    let mut block_sum = vec![T::default(); inner];
    for (out, x) in out
        .chunks_exact_mut(inner)
        .zip(x.chunks_exact(count * inner))
    {
        for block in x.chunks(BLOCK * inner) {
            block_sum.fill(T::default());
            for row in block.chunks_exact(inner) {
                add_to(&mut block_sum, row);
            }
            add_to(out, &block_sum);
        }
    }
}

vectorized! {
    /// The sum over the middle axis of `[outer, count, inner]`.
    pub fn sum_columns[T](x: &[T], count: usize, inner: usize, out: &mut [T]) where [T: Summed] = columns_body
}

/// The sum over the middle axis of `[outer, count, inner]`.
pub fn sum<T: Summed>(x: &[T], count: usize, inner: usize, out: &mut [T]) {
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
        for count in [0usize, 1, 7, 15, 16, 17, 127, 128, 129, 2049, 5000] {
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
}
