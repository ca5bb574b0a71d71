//! Sums of powers of magnitudes and their roots, over one axis of `[outer, count, inner]`: the
//! p-norms. All sums are kept in f64.
//!
//! A row is cut into pieces of a fixed size, whose sums are added in turn: threads may take whole
//! pieces without changing a bit.

use super::{LANES, PARALLEL, PIECE, least};
use crate::math::Real;
use crate::simd::vectorized;
use crate::threads;

/// The sum of `f(x)`, in 16 lanes.
#[inline(always)]
fn piece<T: Real>(x: &[T], f: &impl Fn(f64) -> f64) -> f64 {
    let mut acc = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a += f(x.to_f64());
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a += f(x.to_f64());
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] += acc[i + width];
        }
        width /= 2;
    }
    acc[0]
}

#[inline(always)]
fn sums_body<const FMA: bool, T: Real, F: Fn(f64) -> f64>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [f64],
    f: F,
) {
    out.fill(0.0);
    if inner == 1 {
        for (i, o) in out.iter_mut().enumerate() {
            for x in x[i * count..][..count].chunks(PIECE) {
                *o += piece(x, &f);
            }
        }
        return;
    }
    if count == 0 || inner == 0 {
        return;
    }
    for (out, x) in out.chunks_exact_mut(inner).zip(x.chunks_exact(count * inner)) {
        for row in x.chunks_exact(inner) {
            for (o, &x) in out.iter_mut().zip(row) {
                *o += f(x.to_f64());
            }
        }
    }
}

vectorized! {
    fn sums_here[T, F](x: &[T], count: usize, inner: usize, out: &mut [f64], f: F)
        where [T: Real, F: Fn(f64) -> f64] = sums_body
}

/// The sum of `f(x)` over the middle axis; large ones by several threads, to the same bits.
fn sums<T: Real>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [f64],
    f: impl Fn(f64) -> f64 + Copy + Sync,
) {
    if x.len() < PARALLEL {
        return sums_here(x, count, inner, out, f);
    }
    if inner == 1 && out.len() == 1 {
        let mut parts = vec![0.0; count.div_ceil(PIECE)];
        let pieces = parts.iter_mut().zip(x.chunks(PIECE));
        threads::for_each(true, pieces, |(o, x)| {
            sums_here(x, x.len(), 1, std::slice::from_mut(o), f);
        });
        out[0] = parts.iter().sum();
        return;
    }
    let arrays = (PIECE / (count * inner)).max(1);
    let pieces = out.chunks_mut(arrays * inner).zip(x.chunks(arrays * count * inner));
    threads::for_each(true, pieces, |(out, x)| sums_here(x, count, inner, out, f));
}

/// A float type with p-norms.
pub trait Normed: Real + least::Least {}
impl<T: Real + least::Least> Normed for T {}

/// `sum(|x|^p)^(1/p)` over the middle axis of `[outer, count, inner]`. For `p` = 0 it is the number
/// of nonzero elements, for an infinite `p` the largest or smallest magnitude, which needs at least
/// one element.
pub fn norm<T: Normed>(x: &[T], count: usize, inner: usize, p: f64, out: &mut [T]) {
    if p.is_infinite() {
        let sizes: Vec<T> = x.iter().map(|x| x.abs()).collect();
        return least::extreme(p < 0.0, &sizes, count, inner, out);
    }
    let mut totals = vec![0.0; out.len()];
    let to = &mut totals[..];
    if p == 1.0 {
        sums(x, count, inner, to, f64::abs);
    } else if p == 2.0 {
        sums(x, count, inner, to, |x| x * x);
    } else if p == 0.0 {
        sums_body::<false, T, _>(x, count, inner, to, |x| f64::from(x != 0.0));
    } else if p.fract() == 0.0 && p.abs() <= 64.0 {
        sums_body::<false, T, _>(x, count, inner, to, |x| x.abs().powi(p as i32));
    } else {
        sums_body::<false, T, _>(x, count, inner, to, |x| x.abs().powf(p));
    }
    for (o, &total) in out.iter_mut().zip(&totals) {
        *o = T::from_f64(match p {
            0.0 | 1.0 => total,
            2.0 => total.sqrt(),
            p => total.powf(1.0 / p),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_match_plain_ones_at_odd_sizes() {
        for count in [1usize, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            for inner in [1usize, 2, 17] {
                let x: Vec<f32> =
                    (0..2 * count * inner).map(|i| ((i * 7919) % 13) as f32 - 6.0).collect();
                for p in [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut out = vec![f32::NAN; 2 * inner];
                    norm(&x, count, inner, p, &mut out);
                    for (k, &o) in out.iter().enumerate() {
                        let at =
                            |i: usize| f64::from(x[(k / inner * count + i) * inner + k % inner]);
                        let sizes = (0..count).map(|i| at(i).abs());
                        let want = if p == 0.0 {
                            sizes.filter(|&s| s != 0.0).count() as f64
                        } else if p == f64::INFINITY {
                            sizes.fold(0.0, f64::max)
                        } else if p == f64::NEG_INFINITY {
                            sizes.fold(9.0, f64::min)
                        } else {
                            sizes.map(|s| s.powf(p)).sum::<f64>().powf(1.0 / p)
                        };
                        assert!(
                            (f64::from(o) - want).abs() <= 1e-6 * want,
                            "{p} {count} {inner}: {o} {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let x: Vec<f32> = (0..2_400_000u32)
            .map(|i| (i.wrapping_mul(2654435761) >> 8) as f32 * 1e-3 - 7.0)
            .collect();
        for (outer, inner) in [(1, 1), (1, 3), (2000, 1), (200, 3)] {
            let count = x.len() / outer / inner;
            let (mut here, mut shared) = (vec![0.0; outer * inner], vec![0.0; outer * inner]);
            sums_here(&x, count, inner, &mut here, |x| x * x);
            threads::with_num_threads(3, || sums(&x, count, inner, &mut shared, |x| x * x));
            assert_eq!(here, shared, "{outer} {count} {inner}");
        }
    }
}
