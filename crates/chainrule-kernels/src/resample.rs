//! Linear maps of images that treat rows and columns apart: means over windows, interpolation, and
//! the transposes of these.

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::vectorized;
use super::threads;
use crate::param::Parameters;

/// A sparse matrix: for each element of the result along one axis, which elements of the input it
/// is made of.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct Taps {
    /// The size of the axis before.
    input: usize,
    /// Element `i` of the result has the entries `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    /// Place and weight of each entry.
    entries: Vec<(usize, f64)>,
}

impl Taps {
    /// From the places and weights of each element of the result.
    pub fn new<I: IntoIterator<Item = (usize, f64)>>(
        input: usize,
        lines: impl Iterator<Item = I>,
    ) -> Taps {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        for line in lines {
            entries.extend(line);
            starts.push(entries.len());
        }
        assert!(entries.iter().all(|e| e.0 < input), "resample: an entry outside of the input");
        Taps { input, starts, entries }
    }

    /// The size of the axis after.
    pub fn output(&self) -> usize {
        self.starts.len() - 1
    }

    fn line(&self, i: usize) -> &[(usize, f64)] {
        &self.entries[self.starts[i]..self.starts[i + 1]]
    }

    /// The transposed matrix.
    pub fn transposed(&self) -> Taps {
        let mut lines = vec![Vec::new(); self.input];
        for i in 0..self.output() {
            for &(at, weight) in self.line(i) {
                lines[at].push((i, weight));
            }
        }
        Taps::new(self.output(), lines.into_iter())
    }

    /// The same entries with other weights: `f(weight, sum of the weights of the line, entries of
    /// the line)`.
    pub fn reweighted(&self, f: impl Fn(f64, f64, usize) -> f64) -> Taps {
        let line = |i: usize| {
            let line = self.line(i);
            let sum = line.iter().map(|e| e.1).sum();
            line.iter().map(|&(at, w)| (at, f(w, sum, line.len()))).collect::<Vec<_>>()
        };
        Taps::new(self.input, (0..self.output()).map(line))
    }
}

#[inline(always)]
fn images_body<const FMA: bool, T: Real>(x: &[T], rows: &Taps, cols: &Taps, out: &mut [T]) {
    let (from, to) = (rows.input * cols.input, rows.output() * cols.output());
    let mut line = vec![0.0; cols.input];
    for (x, out) in x.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
        for (i, out) in out.chunks_exact_mut(cols.output()).enumerate() {
            line.fill(0.0);
            for &(at, weight) in rows.line(i) {
                for (sum, x) in line.iter_mut().zip(&x[at * cols.input..]) {
                    *sum += weight * x.to_f64();
                }
            }
            for (j, out) in out.iter_mut().enumerate() {
                let sum =
                    cols.line(j).iter().fold(0.0, |sum, &(at, weight)| sum + weight * line[at]);
                *out = T::from_f64(sum);
            }
        }
    }
}

vectorized! {
    fn images[T](x: &[T], rows: &Taps, cols: &Taps, out: &mut [T]) where [T: Real] = images_body
}

/// Maps each image of `x`, rows and columns each by its matrix: `out = rows * x * cols^T`. Sums are
/// taken in f64 and rounded once.
///
/// # Panics
///
/// If a slice is no whole number of images.
pub fn resample<T: Real>(x: &[T], rows: &Taps, cols: &Taps, out: &mut [T]) {
    let (from, to) = (rows.input * cols.input, rows.output() * cols.output());
    assert!(x.len() * to == out.len() * from, "resample: the sizes");
    if out.is_empty() {
        return;
    }
    if from == 0 {
        return out.fill(T::ZERO);
    }
    let many = (PIECE / from.max(to)).max(1);
    let shared = x.len().max(out.len()) >= SHARED;
    let pieces = x.chunks(many * from).zip(out.chunks_mut(many * to));
    threads::for_each(shared, pieces, |(x, out)| images(x, rows, cols, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps(input: usize, output: usize) -> Taps {
        let line = |i: usize| {
            let at = i * 5 % input;
            (at..input.min(at + 3)).map(move |j| (j, (i + 2 * j) as f64 * 0.25 - 1.0))
        };
        Taps::new(input, (0..output).map(line))
    }

    fn dense(t: &Taps) -> Vec<Vec<f64>> {
        let row = |i| {
            let mut row = vec![0.0; t.input];
            t.line(i).iter().for_each(|&(at, w)| row[at] += w);
            row
        };
        (0..t.output()).map(row).collect()
    }

    #[test]
    fn odd_sizes_against_dense_matrices() {
        for n in [1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let (rows, cols) = (taps(3, 5), taps(n, n / 2 + 1));
            let x: Vec<f64> = (0..2 * 3 * n).map(|i| (i * 7 % 11) as f64).collect();
            let mut out = vec![f64::NAN; 2 * rows.output() * cols.output()];
            resample(&x, &rows, &cols, &mut out);
            let (a, b) = (dense(&rows), dense(&cols));
            for (k, &y) in out.iter().enumerate() {
                let (image, i, j) = (k / (5 * b.len()), k / b.len() % 5, k % b.len());
                let mut want = 0.0;
                for r in 0..3 {
                    for c in 0..n {
                        want += a[i][r] * b[j][c] * x[(image * 3 + r) * n + c];
                    }
                }
                assert!((y - want).abs() < 1e-9, "{n}: {y} for {want}");
            }
        }
    }

    #[test]
    fn the_transpose_is_the_transpose() {
        let t = taps(7, 9);
        let (a, b) = (dense(&t), dense(&t.transposed()));
        assert!((0..9).all(|i| (0..7).all(|j| a[i][j] == b[j][i])));
        assert_eq!(dense(&t.transposed().transposed()), a);
    }

    #[test]
    fn large_batches_are_shared_among_threads() {
        let (rows, cols) = (taps(10, 4), taps(10, 6));
        let x: Vec<f32> = (0..(SHARED + 400) / 100 * 100).map(|i| (i * 31 % 1009) as f32).collect();
        let mut out = vec![f32::NAN; x.len() / 100 * 24];
        resample(&x, &rows, &cols, &mut out);
        let mut want = vec![0.0; 24];
        for (x, out) in x.chunks_exact(100).zip(out.chunks_exact(24)) {
            resample(x, &rows, &cols, &mut want);
            assert_eq!(out, want);
        }
    }
}
