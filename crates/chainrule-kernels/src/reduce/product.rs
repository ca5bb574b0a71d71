//! Products over one axis of `[outer, count, inner]`: those of f32 in f64, those of integers
//! wrapping around.
//!
//! A row goes into 16 lanes, which fold in halves at the end; a column is multiplied from the top.

use super::{LANES, Summed};
use crate::simd::vectorized;

/// A number that products are taken of.
pub trait Factor: Summed {
    /// 1.
    const ONE: Self;
    /// The product; integers wrap around.
    fn times(self, other: Self) -> Self;
}

impl Factor for f32 {
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }
}

impl Factor for f64 {
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
}

impl Factor for i64 {
    const ONE: i64 = 1;
    #[inline(always)]
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
}

#[inline(always)]
fn row<T: Summed<Total: Factor>>(x: &[T]) -> T::Total {
    let mut acc = [T::Total::ONE; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a = a.times(x.widen());
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a = a.times(x.widen());
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] = acc[i].times(acc[i + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// Columns that are multiplied together: their totals stay in L1.
const TILE: usize = 256;
/// Rows that are multiplied in one pass over the totals.
const ROWS: usize = 4;

/// Multiplies the totals of some columns by those of rows of `inner` elements.
#[inline(always)]
fn columns<T: Summed<Total: Factor>>(x: &[T], inner: usize, first: usize, totals: &mut [T::Total]) {
    let rows = x.chunks_exact(ROWS * inner);
    for rest in rows.remainder().chunks_exact(inner) {
        for (total, &x) in totals.iter_mut().zip(&rest[first..]) {
            *total = total.times(x.widen());
        }
    }
    for rows in rows {
        let [a, b, c, d] = crate::simd::array(|k| &rows[k * inner + first..][..totals.len()]);
        for ((((total, a), b), c), d) in totals.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let two = total.times(a.widen()).times(b.widen());
            *total = two.times(c.widen()).times(d.widen());
        }
    }
}

#[inline(always)]
fn product_body<const FMA: bool, T: Summed<Total: Factor>>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
) {
    if inner == 1 {
        for (i, o) in out.iter_mut().enumerate() {
            *o = T::narrow(row(&x[i * count..][..count]));
        }
        return;
    }
    if inner == 0 {
        return;
    }
    let mut totals = [T::Total::ONE; TILE];
    for (i, out) in out.chunks_exact_mut(inner).enumerate() {
        let x = &x[i * count * inner..][..count * inner];
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            let totals = &mut totals[..out.len()];
            totals.fill(T::Total::ONE);
            columns(x, inner, t * TILE, totals);
            for (o, &total) in out.iter_mut().zip(totals.iter()) {
                *o = T::narrow(total);
            }
        }
    }
}

vectorized! {
    /// The product over the middle axis of `[outer, count, inner]`; 1 if there is nothing to
    /// multiply.
    pub fn product[T](x: &[T], count: usize, inner: usize, out: &mut [T]) where [T: Summed<Total: Factor>] = product_body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_match_plain_products_at_odd_sizes() {
        for count in [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            for inner in [1usize, 2, 15, 16, 17, 257] {
                // Products of ones, twos and halves are exact.
                let x: Vec<f32> = (0..2 * count * inner)
                    .map(|i| [1.0, 2.0, 0.5, -1.0][(i * 31) % 7 % 4])
                    .collect();
                let mut out = vec![f32::NAN; 2 * inner];
                product(&x, count, inner, &mut out);
                for (k, &o) in out.iter().enumerate() {
                    let factor =
                        |i: usize| f64::from(x[(k / inner * count + i) * inner + k % inner]);
                    let plain: f64 = (0..count).map(factor).product();
                    assert_eq!(o, plain as f32, "{count} {inner}");
                }
            }
        }
    }

    #[test]
    fn f32_goes_through_f64_and_integers_wrap() {
        let mut out = [0.0f32];
        product(&[1e30f32, 1e30, 1e-30, 1e-30], 4, 1, &mut out);
        assert!((out[0] - 1.0).abs() < 1e-6);
        let mut out = [0i64];
        product(&[i64::MAX, 2], 2, 1, &mut out);
        assert_eq!(out[0], -2);
    }
}
