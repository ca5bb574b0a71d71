//! The loops of batch normalisation: sums down the columns, and maps along a row with a number for
//! each column.
//!
//! Each is a plain loop along the columns, and f32 has an AVX-512 twin, which keeps the sums in
//! registers and cuts the last block of columns by a mask.
//!
//! A column's sum has a fixed order, whatever its neighbours and the vector instructions: row after
//! row in the type itself for 32 rows, and these parts added in f64.

use crate::math::Real;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// The most columns that a call takes: what belongs to them stays in L1.
pub const COLUMNS: usize = 256;

/// Rows summed in the type itself before the sum goes to f64.
const ROWS: usize = 32;

/// f32 or f64, with the loops. Arrays of n rows start at the first column wanted; `c` is the step
/// from row to row. The number of summed columns is the length of `totals`. In a row everything has
/// the same length.
pub trait Column: Real {
    /// The sums of x down the columns.
    fn column_sums(x: &[Self], c: usize, n: usize, totals: &mut [f64]);
    /// The sums of `(x - mean)^2`, with a mean for each column.
    fn column_squares(x: &[Self], c: usize, n: usize, mean: &[Self], totals: &mut [f64]);
    /// The sums of `a * b`.
    fn column_products(a: &[Self], b: &[Self], c: usize, n: usize, totals: &mut [f64]);
    /// `hat = (x - mean) * inv_std` and `out = hat * gain + bias`, for one row.
    fn normalize<const FMA: bool>(x: &[Self], by: [&[Self]; 4], hat: &mut [Self], out: &mut [Self]);
    /// `dx = (xhat * slope + (g - mean)) * factor`, for one row.
    fn normalize_grad<const FMA: bool>(
        g: &[Self],
        xhat: &[Self],
        by: [&[Self]; 3],
        dx: &mut [Self],
    );
}

impl Column for f64 {
    #[inline(always)]
    fn column_sums(x: &[f64], c: usize, n: usize, totals: &mut [f64]) {
        plain::sums(x, x, [c, c], n, |x, _| x, totals);
    }
    #[inline(always)]
    fn column_squares(x: &[f64], c: usize, n: usize, mean: &[f64], totals: &mut [f64]) {
        plain::sums(x, mean, [c, 0], n, |x, mean| (x - mean) * (x - mean), totals);
    }
    #[inline(always)]
    fn column_products(a: &[f64], b: &[f64], c: usize, n: usize, totals: &mut [f64]) {
        plain::sums(a, b, [c, c], n, |a, b| a * b, totals);
    }
    #[inline(always)]
    fn normalize<const FMA: bool>(x: &[f64], by: [&[f64]; 4], hat: &mut [f64], out: &mut [f64]) {
        plain::normalize::<FMA, f64>(x, by, hat, out);
    }
    #[inline(always)]
    fn normalize_grad<const FMA: bool>(g: &[f64], xhat: &[f64], by: [&[f64]; 3], dx: &mut [f64]) {
        plain::normalize_grad::<FMA, f64>(g, xhat, by, dx);
    }
}

/// Returns the AVX-512 twin's result if the processor has it.
macro_rules! or_wide {
    ($($call:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        if level() == Level::Avx512 {
            // SAFETY: the processor has what this level stands for.
            return unsafe { avx512::$($call)* };
        }
    };
}

impl Column for f32 {
    #[inline(always)]
    fn column_sums(x: &[f32], c: usize, n: usize, totals: &mut [f64]) {
        or_wide!(sums::<{ avx512::FIRST }>(x, x, [c, c], n, totals));
        plain::sums(x, x, [c, c], n, |x, _| x, totals);
    }
    #[inline(always)]
    fn column_squares(x: &[f32], c: usize, n: usize, mean: &[f32], totals: &mut [f64]) {
        or_wide!(sums::<{ avx512::SQUARE }>(x, mean, [c, 0], n, totals));
        plain::sums(x, mean, [c, 0], n, |x, mean| (x - mean) * (x - mean), totals);
    }
    #[inline(always)]
    fn column_products(a: &[f32], b: &[f32], c: usize, n: usize, totals: &mut [f64]) {
        or_wide!(sums::<{ avx512::PRODUCT }>(a, b, [c, c], n, totals));
        plain::sums(a, b, [c, c], n, |a, b| a * b, totals);
    }
    #[inline(always)]
    fn normalize<const FMA: bool>(x: &[f32], by: [&[f32]; 4], hat: &mut [f32], out: &mut [f32]) {
        or_wide!(normalize(x, by, hat, out));
        plain::normalize::<FMA, f32>(x, by, hat, out);
    }
    #[inline(always)]
    fn normalize_grad<const FMA: bool>(g: &[f32], xhat: &[f32], by: [&[f32]; 3], dx: &mut [f32]) {
        or_wide!(normalize_grad(g, xhat, by, dx));
        plain::normalize_grad::<FMA, f32>(g, xhat, by, dx);
    }
}

/// The loops for both types and every processor.
mod plain {
    use super::{COLUMNS, ROWS, Real};

    /// For each column the sum over n rows of `term(a, b)`; `steps` lead from row to row.
    #[inline(always)]
    pub fn sums<T: Real>(
        a: &[T],
        b: &[T],
        steps: [usize; 2],
        n: usize,
        term: impl Fn(T, T) -> T,
        totals: &mut [f64],
    ) {
        let width = totals.len();
        let mut parts = [T::ZERO; COLUMNS];
        let parts = &mut parts[..width];
        totals.fill(0.0);
        for start in (0..n).step_by(ROWS) {
            parts.fill(T::ZERO);
            for row in start..n.min(start + ROWS) {
                let (a, b) = (&a[row * steps[0]..][..width], &b[row * steps[1]..][..width]);
                for ((part, &a), &b) in parts.iter_mut().zip(a).zip(b) {
                    *part += term(a, b);
                }
            }
            for (total, part) in totals.iter_mut().zip(&*parts) {
                *total += part.to_f64();
            }
        }
    }

    #[inline(always)]
    pub fn normalize<const FMA: bool, T: Real>(
        x: &[T],
        [mean, inv_std, gain, bias]: [&[T]; 4],
        hat: &mut [T],
        out: &mut [T],
    ) {
        for (((hat, &x), &mean), &inv_std) in hat.iter_mut().zip(x).zip(mean).zip(inv_std) {
            *hat = (x - mean) * inv_std;
        }
        for (((out, &hat), &gain), &bias) in out.iter_mut().zip(&*hat).zip(gain).zip(bias) {
            *out = hat.mul_add::<FMA>(gain, bias);
        }
    }

    #[inline(always)]
    pub fn normalize_grad<const FMA: bool, T: Real>(
        g: &[T],
        xhat: &[T],
        [mean, slope, factor]: [&[T]; 3],
        dx: &mut [T],
    ) {
        let by = mean.iter().zip(slope).zip(factor);
        for (((dx, &g), &xhat), ((&mean, &slope), &factor)) in
            dx.iter_mut().zip(g).zip(xhat).zip(by)
        {
            *dx = xhat.mul_add::<FMA>(slope, g - mean) * factor;
        }
    }
}

/// The same loops for f32, in blocks of 16 columns, the last under a mask. Each operation is the
/// one of the plain loop.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::ROWS;
    use crate::softmax::rows::avx512::{load, mask, store};
    use std::arch::x86_64::*;

    const LANES: usize = 16;

    /// Kinds of summand: a, (a - b)^2 or a b.
    pub const FIRST: u8 = 0;
    pub const SQUARE: u8 = 1;
    pub const PRODUCT: u8 = 2;

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn sums<const TERM: u8>(
        a: &[f32],
        b: &[f32],
        steps: [usize; 2],
        n: usize,
        totals: &mut [f64],
    ) {
        totals.fill(0.0);
        let whole = totals.len() / (4 * LANES) * (4 * LANES);
        let (wide, rest) = totals.split_at_mut(whole);
        // Four registers of sums, so that one row's additions do not wait for the last row's.
        for (i, totals) in wide.chunks_mut(4 * LANES).enumerate() {
            block_sums::<TERM, 4>(a, b, steps, i * 4 * LANES, n, totals);
        }
        for (i, totals) in rest.chunks_mut(LANES).enumerate() {
            block_sums::<TERM, 1>(a, b, steps, whole + i * LANES, n, totals);
        }
    }

    /// The sums of at most V registers of columns, from the column `first`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn block_sums<const TERM: u8, const V: usize>(
        a: &[f32],
        b: &[f32],
        steps: [usize; 2],
        first: usize,
        n: usize,
        totals: &mut [f64],
    ) {
        let zero = _mm512_setzero_ps();
        let width = totals.len();
        for start in (0..n).step_by(ROWS) {
            let mut parts = [zero; V];
            for row in start..n.min(start + ROWS) {
                let a = &a[row * steps[0] + first..][..width];
                let b = &b[row * steps[1] + first..][..width];
                for (v, part) in parts.iter_mut().enumerate() {
                    let lanes = v * LANES..if V == 1 { width } else { (v + 1) * LANES };
                    let x = load(&a[lanes.clone()], zero);
                    let term = match TERM {
                        FIRST => x,
                        SQUARE => {
                            let d = _mm512_sub_ps(x, load(&b[lanes], zero));
                            _mm512_mul_ps(d, d)
                        }
                        _ => _mm512_mul_ps(x, load(&b[lanes], zero)),
                    };
                    *part = _mm512_add_ps(*part, term);
                }
            }
            let mut lanes = [0f32; LANES];
            for (totals, part) in totals.chunks_mut(LANES).zip(parts) {
                store(&mut lanes, part);
                for (total, &part) in totals.iter_mut().zip(&lanes) {
                    *total += f64::from(part);
                }
            }
        }
    }

    /// Calls `f` with the place and the mask of each block of n columns.
    #[inline(always)]
    fn blocks(n: usize, mut f: impl FnMut(usize, __mmask16)) {
        for at in (0..n / LANES * LANES).step_by(LANES) {
            f(at, !0);
        }
        if !n.is_multiple_of(LANES) {
            f(n / LANES * LANES, mask(n % LANES));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,fma")]
    pub fn normalize(x: &[f32], by: [&[f32]; 4], hat: &mut [f32], out: &mut [f32]) {
        let n = x.len();
        assert!(by.iter().all(|row| row.len() == n) && hat.len() == n && out.len() == n);
        let [mean, inv_std, gain, bias] = by.map(<[f32]>::as_ptr);
        let (x, hat, out) = (x.as_ptr(), hat.as_mut_ptr(), out.as_mut_ptr());
        // SAFETY: all slices have n elements, and no block with its mask goes beyond.
        blocks(n, |at, k| unsafe {
            let load = |row: *const f32| _mm512_maskz_loadu_ps(k, row.add(at));
            let y = _mm512_mul_ps(_mm512_sub_ps(load(x), load(mean)), load(inv_std));
            _mm512_mask_storeu_ps(hat.add(at), k, y);
            _mm512_mask_storeu_ps(out.add(at), k, _mm512_fmadd_ps(y, load(gain), load(bias)));
        });
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,fma")]
    pub fn normalize_grad(g: &[f32], xhat: &[f32], by: [&[f32]; 3], dx: &mut [f32]) {
        let n = g.len();
        assert!(by.iter().all(|row| row.len() == n) && xhat.len() == n && dx.len() == n);
        let [mean, slope, factor] = by.map(<[f32]>::as_ptr);
        let (g, xhat, dx) = (g.as_ptr(), xhat.as_ptr(), dx.as_mut_ptr());
        // SAFETY: all slices have n elements, and no block with its mask goes beyond.
        blocks(n, |at, k| unsafe {
            let load = |row: *const f32| _mm512_maskz_loadu_ps(k, row.add(at));
            let y = _mm512_sub_ps(load(g), load(mean));
            let y = _mm512_fmadd_ps(load(xhat), load(slope), y);
            _mm512_mask_storeu_ps(dx.add(at), k, _mm512_mul_ps(y, load(factor)));
        });
    }
}
