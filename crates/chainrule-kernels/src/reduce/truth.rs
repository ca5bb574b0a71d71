//! Whether one of the elements, or each of them, is not zero: over one axis of
//! `[outer, count, inner]`.

use crate::simd::vectorized;

/// Elements read between two tests for an early end.
const CHUNK: usize = 1024;

/// Whether one element is zero (`zero`), or is not.
#[inline(always)]
fn row<T: Copy + Default + PartialEq>(x: &[T], zero: bool) -> bool {
    for chunk in x.chunks(CHUNK) {
        // Without an exit inside a chunk the compare is a few vector instructions.
        let mut found = false;
        for &v in chunk {
            found |= (v == T::default()) == zero;
        }
        if found {
            return true;
        }
    }
    false
}

#[inline(always)]
fn exists_body<const FMA: bool, T: Copy + Default + PartialEq>(
    x: &[T],
    count: usize,
    inner: usize,
    zero: bool,
    out: &mut [u8],
) {
    if inner == 1 {
        for (i, o) in out.iter_mut().enumerate() {
            *o = row(&x[i * count..][..count], zero) as u8;
        }
        return;
    }
    out.fill(0);
    if inner == 0 || count == 0 {
        return;
    }
    for (out, x) in out.chunks_exact_mut(inner).zip(x.chunks_exact(count * inner)) {
        for row in x.chunks_exact(inner) {
            for (o, &v) in out.iter_mut().zip(row) {
                *o |= ((v == T::default()) == zero) as u8;
            }
        }
    }
}

vectorized! {
    fn exists[T](x: &[T], count: usize, inner: usize, zero: bool, out: &mut [u8])
        where [T: Copy + Default + PartialEq] = exists_body
}

/// Whether one element over the middle axis is not zero; NaN is not.
pub fn any<T: Copy + Default + PartialEq>(x: &[T], count: usize, inner: usize, out: &mut [u8]) {
    exists(x, count, inner, false, out)
}

/// Whether no element over the middle axis is zero.
pub fn all<T: Copy + Default + PartialEq>(x: &[T], count: usize, inner: usize, out: &mut [u8]) {
    exists(x, count, inner, true, out);
    out.iter_mut().for_each(|o| *o ^= 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_element_decides_at_odd_sizes() {
        for count in [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 1025] {
            for inner in [1usize, 2, 17] {
                let (mut some, mut every) = (vec![7u8; 2 * inner], vec![7u8; 2 * inner]);
                for at in (0..count).step_by(1 + count / 9) {
                    // The one element stands in the last column of the second block.
                    let place = (count + at) * inner + inner - 1;
                    let (mut x, mut y) =
                        (vec![0.0f32; 2 * count * inner], vec![1i64; 2 * count * inner]);
                    (x[place], y[place]) = (f32::NAN, 0);
                    any(&x, count, inner, &mut some);
                    all(&y, count, inner, &mut every);
                    for k in 0..2 * inner {
                        assert_eq!(some[k], (k == 2 * inner - 1) as u8, "{count} {inner} {at}");
                        assert_eq!(every[k], (k != 2 * inner - 1) as u8, "{count} {inner} {at}");
                    }
                }
                if count == 0 {
                    any::<f32>(&[], 0, inner, &mut some);
                    all::<f32>(&[], 0, inner, &mut every);
                    assert!(some.iter().all(|&s| s == 0) && every.iter().all(|&e| e == 1));
                }
            }
        }
    }
}
