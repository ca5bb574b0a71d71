//! Elements that a mask keeps, times a factor.

use super::math::Real;
use super::simd::vectorized;

#[inline(always)]
fn scale_kept_body<const FMA: bool, T: Real>(x: &[T], keep: &[u8], factor: T, out: &mut [T]) {
    for ((out, &x), &keep) in out.iter_mut().zip(x).zip(keep) {
        *out = x * if keep != 0 { factor } else { T::ZERO };
    }
}

vectorized! {
    /// `out = x * factor` where `keep` is not 0, `x * 0` elsewhere (which keeps NaN and makes it of
    /// infinity).
    pub fn scale_kept[T](x: &[T], keep: &[u8], factor: T, out: &mut [T]) where [T: Real] = scale_kept_body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let x: Vec<f32> = (0..n).map(|i| i as f32 - 3.0).collect();
            let keep: Vec<u8> = (0..n).map(|i| (i % 3 == 0) as u8).collect();
            let mut out = vec![7.0; n];
            scale_kept(&x, &keep, 2.0, &mut out);
            for (i, (&out, &x)) in out.iter().zip(&x).enumerate() {
                assert_eq!(out, if i % 3 == 0 { 2.0 * x } else { 0.0 });
            }
        }
    }
}
