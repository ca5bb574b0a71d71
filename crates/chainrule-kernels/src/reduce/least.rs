//! The smallest element and its position: the largest in the reversed order.
//!
//! NaN counts as smaller than everything too, so that it is not lost; of several equal ones the
//! first is meant.

use std::cmp::Ordering;

use super::extremum::{self, Ranked};

/// A number in the reversed order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct Reversed<T>(T);

// SAFETY: it is nothing but a float.
unsafe impl bytemuck::Zeroable for Reversed<f32> {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Reversed<f32> {}
// SAFETY: as above.
unsafe impl bytemuck::Zeroable for Reversed<f64> {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Reversed<f64> {}

impl<T: PartialOrd> PartialOrd for Reversed<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        other.0.partial_cmp(&self.0)
    }
    // The vectors need plain comparisons, which the default ones are not.
    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.0 < other.0
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.0 > other.0
    }
}

/// A number that can be the largest or the smallest.
pub trait Least: Ranked {
    /// The smallest element over the middle axis of `[outer, count, inner]`, as [`extremum::max`].
    fn smallest(x: &[Self], count: usize, inner: usize, out: &mut [Self]);

    /// As [`Least::smallest`], and its first position along the axis.
    fn smallest_at(x: &[Self], count: usize, inner: usize, out: &mut [Self], index: &mut [i64]);
}

/// The largest element over the middle axis of `[outer, count, inner]`, or with `least` the
/// smallest.
pub fn extreme<T: Least>(least: bool, x: &[T], count: usize, inner: usize, out: &mut [T]) {
    match least {
        true => T::smallest(x, count, inner, out),
        false => extremum::max(x, count, inner, out),
    }
}

/// As [`extreme`], and its first position along the axis.
pub fn extreme_at<T: Least>(
    least: bool,
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
    index: &mut [i64],
) {
    match least {
        true => T::smallest_at(x, count, inner, out, index),
        false => extremum::argmax(x, count, inner, out, index),
    }
}

macro_rules! by_cast {
    ($($t:ty)*) => {$(
        impl Ranked for Reversed<$t> {
            const LOWEST: Self = Reversed(<$t>::INFINITY);
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0.is_nan()
            }
        }

        impl Least for $t {
            fn smallest(x: &[$t], count: usize, inner: usize, out: &mut [$t]) {
                let x: &[Reversed<$t>] = bytemuck::cast_slice(x);
                extremum::max(x, count, inner, bytemuck::cast_slice_mut(out))
            }

            fn smallest_at(x: &[$t], count: usize, inner: usize, out: &mut [$t], index: &mut [i64]) {
                let x: &[Reversed<$t>] = bytemuck::cast_slice(x);
                extremum::argmax(x, count, inner, bytemuck::cast_slice_mut(out), index)
            }
        }
    )*};
}
by_cast!(f32 f64);

/// Integers and bools are rarer: their order is reversed in a copy, and no further loops are
/// compiled for them.
macro_rules! by_copy {
    ($($t:ty, |$x:ident| $reverse:expr;)*) => {$(
        impl Least for $t {
            fn smallest(x: &[$t], count: usize, inner: usize, out: &mut [$t]) {
                let reversed: Vec<$t> = x.iter().map(|&$x| $reverse).collect();
                extremum::max(&reversed, count, inner, out);
                out.iter_mut().for_each(|$x| *$x = { let $x = *$x; $reverse });
            }

            fn smallest_at(x: &[$t], count: usize, inner: usize, out: &mut [$t], index: &mut [i64]) {
                let reversed: Vec<$t> = x.iter().map(|&$x| $reverse).collect();
                extremum::argmax(&reversed, count, inner, out, index);
                out.iter_mut().for_each(|$x| *$x = { let $x = *$x; $reverse });
            }
        }
    )*};
}
by_copy! {
    i64, |x| !x;
    u8, |x| 1 - x;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of the smallest, where NaN is the smallest: a plain scan.
    fn scan(column: &[f64]) -> usize {
        let mut best = 0;
        for (i, v) in column.iter().enumerate() {
            if column[best].is_nan() {
                break;
            }
            if v.is_nan() || *v < column[best] {
                best = i;
            }
        }
        best
    }

    #[test]
    fn the_smallest_is_found_at_odd_sizes() {
        for count in [1usize, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            for inner in [1usize, 2, 15, 16, 17] {
                for with_nan in [false, true] {
                    let mut x: Vec<f64> =
                        (0..3 * count * inner).map(|i| ((i * 7919) % 13) as f64 + 20.0).collect();
                    if with_nan {
                        (0..x.len()).step_by(11).for_each(|i| x[i] = f64::NAN);
                    }
                    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
                    let (mut values, mut index) = (vec![0.0; 3 * inner], vec![-1; 3 * inner]);
                    f64::smallest_at(&x, count, inner, &mut values, &mut index);
                    let mut only = vec![0.0f32; 3 * inner];
                    f32::smallest(&narrow, count, inner, &mut only);
                    for k in 0..3 * inner {
                        let (o, j) = (k / inner, k % inner);
                        let column: Vec<f64> =
                            (0..count).map(|i| x[(o * count + i) * inner + j]).collect();
                        let want = scan(&column);
                        assert_eq!(index[k], want as i64, "{count} {inner} {column:?}");
                        for v in [values[k], f64::from(only[k])] {
                            assert!(v == column[want] || (v.is_nan() && column[want].is_nan()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn integers_and_bools_have_a_smallest_too() {
        let (mut v, mut at) = ([0i64], [9i64]);
        i64::smallest_at(&[i64::MAX, i64::MIN, 3, i64::MIN], 4, 1, &mut v, &mut at);
        assert_eq!((v[0], at[0]), (i64::MIN, 1));
        let (mut v, mut at) = ([7u8], [9i64]);
        u8::smallest_at(&[1u8, 1, 0, 0], 4, 1, &mut v, &mut at);
        assert_eq!((v[0], at[0]), (0, 2));
    }
}
