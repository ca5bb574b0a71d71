//! The largest element of each window of an image, and where it stands.

use super::map::{PIECE, SHARED};
use super::simd::vectorized;
use super::threads;
use crate::param::Parameters;

/// The windows along one axis, one for each element of the result: each covers `count` elements
/// from `first` on, `step` apart.
#[derive(Clone, Debug, PartialEq, Eq, Parameters)]
pub struct Windows {
    /// Elements between one and the next.
    pub step: usize,
    /// `first` and `count` of each window; none is empty.
    pub spans: Vec<(usize, usize)>,
}

/// The largest element of every window of each `[height, width]` image, and its place in the image.
/// The first of equal elements wins; a NaN is larger than all else, and the last of several NaN
/// counts.
///
/// # Panics
///
/// If a slice is no whole number of images, or a window reaches outside.
pub fn max_pool<T: PartialOrd + Copy + Send + Sync>(
    x: &[T],
    [height, width]: [usize; 2],
    rows: &Windows,
    cols: &Windows,
    out: &mut [T],
    places: &mut [i64],
) {
    let (from, to) = (height * width, rows.spans.len() * cols.spans.len());
    assert!(x.len() * to == out.len() * from && out.len() == places.len(), "max_pool: the sizes");
    if out.is_empty() {
        return;
    }
    let many = (PIECE / from).max(1);
    let results = out.chunks_mut(many * to).zip(places.chunks_mut(many * to));
    let pieces = x.chunks(many * from).zip(results);
    threads::for_each(x.len() >= SHARED, pieces, |(x, (out, places))| {
        images(x, [height, width], rows, cols, out, places);
    });
}

/// The largest element of each column of the rows of a window, and the row it is in.
#[inline(always)]
fn of_columns<T: PartialOrd + Copy>(
    x: &[T],
    step: usize,
    high: usize,
    best: &mut [T],
    row: &mut [u32],
) {
    let width = best.len();
    best.copy_from_slice(&x[..width]);
    row.fill(0);
    for i in 1..high {
        let line = &x[i * step * width..][..width];
        for ((best, row), &v) in best.iter_mut().zip(row.iter_mut()).zip(line) {
            // Only a NaN differs from itself.
            #[allow(clippy::eq_op)]
            let takes = (v > *best) | (v != v);
            *row = if takes { i as u32 } else { *row };
            *best = if takes { v } else { *best };
        }
    }
}

/// Columns first, in vectors, then the few that are left of each window: two short walks instead of
/// one over all of its elements. The upper row wins where elements are equal, the lower one where
/// both are NaN.
#[inline(always)]
fn images_body<const FMA: bool, T: PartialOrd + Copy>(
    x: &[T],
    [height, width]: [usize; 2],
    rows: &Windows,
    cols: &Windows,
    out: &mut [T],
    places: &mut [i64],
) {
    let (mut best, mut row) = (x[..width].to_vec(), vec![0; width]);
    let across = cols.spans.len();
    let mut results = out.chunks_exact_mut(across).zip(places.chunks_exact_mut(across));
    for x in x.chunks_exact(height * width) {
        for (&(top, high), (out, places)) in rows.spans.iter().zip(results.by_ref()) {
            of_columns(&x[top * width..], rows.step, high, &mut best, &mut row);
            for ((&(left, wide), out), place) in cols.spans.iter().zip(out).zip(places) {
                let (mut value, mut at, mut i) = (best[left], left, row[left]);
                for j in 1..wide {
                    let now = left + j * cols.step;
                    let (v, r) = (best[now], row[now]);
                    // Only a NaN differs from itself.
                    #[allow(clippy::eq_op)]
                    let last = (v != v) & ((value == value) | (r >= i));
                    let takes = (v > value) | ((v == value) & (r < i)) | last;
                    (value, at, i) = if takes { (v, now, r) } else { (value, at, i) };
                }
                (*out, *place) = (value, ((top + i as usize * rows.step) * width + at) as i64);
            }
        }
    }
}

vectorized! {
    fn images[T](x: &[T], size: [usize; 2], rows: &Windows, cols: &Windows, out: &mut [T], places: &mut [i64])
        where [T: PartialOrd + Copy] = images_body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sizes_against_plain_loops() {
        for width in [1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let x: Vec<f32> = (0..2 * 3 * width).map(|i| (i * 7 % 11) as f32).collect();
            let spans = |n: usize| (0..n).map(|i| (i, 2.min(n - i))).collect::<Vec<_>>();
            let (rows, cols) =
                (Windows { step: 1, spans: spans(3) }, Windows { step: 1, spans: spans(width) });
            let (mut out, mut places) = (vec![0.0; x.len()], vec![0; x.len()]);
            max_pool(&x, [3, width], &rows, &cols, &mut out, &mut places);
            for (k, (&y, &place)) in out.iter().zip(&places).enumerate() {
                let (image, i, j) = (k / (3 * width), k / width % 3, k % width);
                let at = |p: usize| x[image * 3 * width + p];
                let window = (i..3.min(i + 2))
                    .flat_map(|r| (j..width.min(j + 2)).map(move |c| r * width + c));
                let best = window.clone().map(at).fold(f32::MIN, f32::max);
                let first = window.clone().find(|&p| at(p) == best);
                assert_eq!((y, Some(place as usize)), (best, first));
            }
        }
    }

    /// Against a walk over each window, element by element; ties, NaN and gaps between elements.
    #[test]
    fn windows_of_every_form_against_a_walk() {
        let pool = [3.0, f32::NAN, -0.0, 0.0, f32::NEG_INFINITY, 3.0, 2.0, 3.0, f32::NAN];
        for (width, with_nan) in [(1, true), (7, false), (16, true), (17, false), (33, true)] {
            let x: Vec<f32> = (0..2 * 9 * width)
                .map(|i| pool[i * i * 31 % 97 % if with_nan { 9 } else { 8 }])
                .collect();
            let x: Vec<f32> =
                x.into_iter().map(|v| if with_nan || !v.is_nan() { v } else { 1.0 }).collect();
            for (high, wide, step) in [(1, 1, 1), (2, 3, 1), (4, 2, 2), (9, 5, 1), (3, 4, 3)] {
                let windows = |n: usize, count: usize| Windows {
                    step,
                    spans: (0..n).map(|i| (i, count.min((n - i).div_ceil(step)))).collect(),
                };
                let (rows, cols) = (windows(9, high), windows(width, wide));
                let (mut out, mut places) = (vec![0.0; x.len()], vec![0; x.len()]);
                max_pool(&x, [9, width], &rows, &cols, &mut out, &mut places);
                for (k, (&y, &place)) in out.iter().zip(&places).enumerate() {
                    let x = &x[k / (9 * width) * 9 * width..][..9 * width];
                    let ((top, high), (left, wide)) =
                        (rows.spans[k / width % 9], cols.spans[k % width]);
                    let mut best = top * width + left;
                    for i in 0..high {
                        for j in 0..wide {
                            let at = (top + i * step) * width + left + j * step;
                            if x[at] > x[best] || x[at].is_nan() {
                                best = at;
                            }
                        }
                    }
                    assert_eq!((y.to_bits(), place as usize), (x[best].to_bits(), best));
                }
            }
        }
    }

    #[test]
    fn large_batches_are_shared_among_threads() {
        let x: Vec<f64> = (0..(SHARED + 400) / 100 * 100).map(|i| (i * 31 % 1009) as f64).collect();
        let pairs = Windows { step: 1, spans: (0..5).map(|i| (2 * i, 2)).collect() };
        let n = x.len() / 4;
        let (mut out, mut places) = (vec![0.0; n], vec![0; n]);
        max_pool(&x, [10, 10], &pairs, &pairs, &mut out, &mut places);
        let (mut want, mut at) = (vec![0.0; 25], vec![0; 25]);
        for (k, x) in x.chunks_exact(100).enumerate() {
            max_pool(x, [10, 10], &pairs, &pairs, &mut want, &mut at);
            assert_eq!((&out[k * 25..][..25], &places[k * 25..][..25]), (&want[..], &at[..]));
        }
    }
}
