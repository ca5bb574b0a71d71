//! The largest element of each window of an image, and where it stands.

use super::map::{PIECE, SHARED};
use super::threads;
use crate::param::Parameters;

/// The windows along one axis, one for each element of the result: `count` elements from `first`
/// on, `step` apart.
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
    let one = |(x, (out, places)): (&[T], (&mut [T], &mut [i64]))| {
        one_image(x, width, rows, cols, out, places);
    };
    let many = (PIECE / from).max(1);
    let results = out.chunks_mut(many * to).zip(places.chunks_mut(many * to));
    threads::for_each(
        x.len() >= SHARED,
        x.chunks(many * from).zip(results),
        |(x, (out, places))| {
            let results = out.chunks_exact_mut(to).zip(places.chunks_exact_mut(to));
            x.chunks_exact(from).zip(results).for_each(one);
        },
    );
}

fn one_image<T: PartialOrd + Copy>(
    x: &[T],
    width: usize,
    rows: &Windows,
    cols: &Windows,
    out: &mut [T],
    places: &mut [i64],
) {
    let across = cols.spans.len();
    let results = out.chunks_exact_mut(across).zip(places.chunks_exact_mut(across));
    for (&(top, high), (out, places)) in rows.spans.iter().zip(results) {
        for ((&(left, wide), out), place) in cols.spans.iter().zip(out).zip(places) {
            let mut at = top * width + left;
            let mut best = x[at];
            for i in 0..high {
                let line = (top + i * rows.step) * width + left;
                let window = x[line..].iter().step_by(cols.step).take(wide);
                for (j, &v) in window.enumerate() {
                    // Only a NaN differs from itself.
                    #[allow(clippy::eq_op)]
                    if v > best || v != v {
                        (best, at) = (v, line + j * cols.step);
                    }
                }
            }
            (*out, *place) = (best, at as i64);
        }
    }
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
