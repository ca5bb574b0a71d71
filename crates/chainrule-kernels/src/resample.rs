//! Linear maps of images that treat rows and columns separately: window means, interpolation, and
//! their transposes.

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::vectorized;
use super::threads;
use crate::param::Parameters;

/// A sparse matrix: for each element of the result along one axis, the input elements it is made
/// of.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct Taps {
    /// The size of the axis in the input.
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

    /// The size of the axis in the result.
    pub fn output(&self) -> usize {
        self.starts.len() - 1
    }

    fn line(&self, i: usize) -> &[(usize, f64)] {
        &self.entries[self.starts[i]..self.starts[i + 1]]
    }

    /// The weight of a single line that has the whole axis with one weight.
    fn whole(&self) -> Option<f64> {
        let (_, weight) = *self.entries.first()?;
        let is_one = |(at, entry): (usize, &(usize, f64))| *entry == (at, weight);
        let is_whole = self.output() == 1 && self.entries.len() == self.input;
        (is_whole && self.entries.iter().enumerate().all(is_one)).then_some(weight)
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

/// Form of a matrix's lines; some forms have faster loops.
enum Pattern {
    /// One entry of weight 1 in each, at these places: a copy.
    Picks(Vec<usize>),
    /// Two entries in each.
    Pairs(Vec<[(usize, f64); 2]>),
    /// Any other.
    Mixed,
}

impl Pattern {
    fn of(taps: &Taps) -> Pattern {
        let lines = || (0..taps.output()).map(|i| taps.line(i));
        if lines().all(|line| matches!(line, [(_, 1.0)])) {
            return Pattern::Picks(lines().map(|line| line[0].0).collect());
        }
        match lines().map(|line| line.try_into().ok()).collect() {
            Some(pairs) => Pattern::Pairs(pairs),
            None => Pattern::Mixed,
        }
    }
}

/// The maps of one call.
struct Maps<'a> {
    rows: &'a Taps,
    cols: &'a Taps,
    of_rows: Pattern,
    of_cols: Pattern,
}

/// Every row of the result is a row of the image with elements picked from it, or the one above it.
#[inline(always)]
fn pick<T: Copy>(x: &[T], width: usize, rows: &[usize], cols: &[usize], out: &mut [T]) {
    let mut above: Option<(usize, &[T])> = None;
    for (&at, out) in rows.iter().zip(out.chunks_exact_mut(cols.len())) {
        match above {
            Some((same, above)) if same == at => out.copy_from_slice(above),
            _ => {
                let x = &x[at * width..][..width];
                out.iter_mut().zip(cols).for_each(|(out, &j)| *out = x[j]);
            }
        }
        above = Some((at, out));
    }
}

/// `out = line * cols^T`.
#[inline(always)]
fn along<T: Real>(line: &[f64], maps: &Maps<'_>, out: &mut [T]) {
    match &maps.of_cols {
        Pattern::Picks(places) => {
            out.iter_mut().zip(places).for_each(|(out, &at)| *out = T::from_f64(line[at]));
        }
        Pattern::Pairs(pairs) => {
            for (out, &[(a, x), (b, y)]) in out.iter_mut().zip(pairs) {
                *out = T::from_f64(x * line[a] + y * line[b]);
            }
        }
        Pattern::Mixed => {
            for (j, out) in out.iter_mut().enumerate() {
                let entries = maps.cols.line(j).iter();
                *out = T::from_f64(entries.fold(0.0, |sum, &(at, weight)| sum + weight * line[at]));
            }
        }
    }
}

/// Adds `weight * x` to the sums.
#[inline(always)]
fn add<T: Real>(sums: &mut [f64], weight: f64, x: &[T]) {
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum += weight * x.to_f64();
    }
}

/// Maps the columns of summed rows: for images that lose rows.
#[inline(always)]
fn rows_first<T: Real>(x: &[T], maps: &Maps<'_>, sums: &mut [f64], out: &mut [T]) {
    let width = maps.cols.input;
    for (i, out) in out.chunks_exact_mut(maps.cols.output()).enumerate() {
        sums.fill(0.0);
        for &(at, weight) in maps.rows.line(i) {
            add(sums, weight, &x[at * width..][..width]);
        }
        along(sums, maps, out);
    }
}

/// Rows kept for the lines of the result that follow.
const KEPT: usize = 4;

/// Rows of an image after their columns were mapped. Each is kept in slot (row modulo [`KEPT`])
/// until another takes the slot.
struct MappedRows<'a, T> {
    x: &'a [T],
    maps: &'a Maps<'a>,
    numbers: [usize; KEPT],
    /// The row of the image in each slot, then the slots.
    wide: &'a mut [f64],
}

impl<T: Real> MappedRows<'_, T> {
    /// Computes a row if it is not kept yet.
    #[inline(always)]
    fn map(&mut self, at: usize) {
        if self.numbers[at % KEPT] == at {
            return;
        }
        self.numbers[at % KEPT] = at;
        let (width, count) = (self.maps.cols.input, self.maps.cols.output());
        let (row, kept) = self.wide.split_at_mut(width);
        row.iter_mut().zip(&self.x[at * width..]).for_each(|(row, x)| *row = x.to_f64());
        along(row, self.maps, &mut kept[at % KEPT * count..][..count]);
    }

    /// A row that is kept.
    #[inline(always)]
    fn row(&self, at: usize) -> &[f64] {
        let count = self.maps.cols.output();
        &self.wide[self.maps.cols.input + at % KEPT * count..][..count]
    }
}

/// Sums rows whose columns are already mapped: for images that gain rows, which need many sums.
#[inline(always)]
fn columns_first<T: Real>(x: &[T], maps: &Maps<'_>, wide: &mut [f64], out: &mut [T]) {
    let count = maps.cols.output();
    let (sums, wide) = wide.split_at_mut(count);
    let mut mapped = MappedRows { x, maps, numbers: [usize::MAX; KEPT], wide };
    for (i, out) in out.chunks_exact_mut(count).enumerate() {
        match *maps.rows.line(i) {
            // Neighbours, which are kept at the same time.
            [(a, u), (b, v)] if a.abs_diff(b) < KEPT => {
                mapped.map(a);
                mapped.map(b);
                for ((out, a), b) in out.iter_mut().zip(mapped.row(a)).zip(mapped.row(b)) {
                    *out = T::from_f64(u * a + v * b);
                }
            }
            ref entries => {
                sums.fill(0.0);
                for &(at, weight) in entries {
                    mapped.map(at);
                    add(sums, weight, mapped.row(at));
                }
                out.iter_mut().zip(sums.iter()).for_each(|(out, &sum)| *out = T::from_f64(sum));
            }
        }
    }
}

/// Sums that are kept side by side, so that an addition does not wait for the one before.
const LANES: usize = 32;

/// The sum of all elements.
#[inline(always)]
fn sum<T: Real>(x: &[T]) -> f64 {
    let mut sums = [0.0; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for few in whole {
        for (sum, x) in sums.iter_mut().zip(few) {
            *sum += x.to_f64();
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += x.to_f64();
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

#[inline(always)]
fn images_body<const FMA: bool, T: Real>(x: &[T], maps: &Maps<'_>, out: &mut [T]) {
    let Maps { rows, cols, .. } = maps;
    let (from, to) = (rows.input * cols.input, rows.output() * cols.output());
    let images = x.chunks_exact(from).zip(out.chunks_exact_mut(to));
    if let (Pattern::Picks(r), Pattern::Picks(c)) = (&maps.of_rows, &maps.of_cols) {
        return images.for_each(|(x, out)| pick(x, cols.input, r, c, out));
    }
    if let (Some(row), Some(col)) = (rows.whole(), cols.whole()) {
        for (x, out) in images {
            out[0] = T::from_f64(row * col * sum(x));
        }
        return;
    }
    let mut wide = vec![0.0; cols.input + (1 + KEPT) * cols.output()];
    for (x, out) in images {
        match rows.output() < rows.input {
            true => rows_first(x, maps, &mut wide[..cols.input], out),
            false => columns_first(x, maps, &mut wide, out),
        }
    }
}

vectorized! {
    fn images[T](x: &[T], maps: &Maps<'_>, out: &mut [T]) where [T: Real] = images_body
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
    let maps = Maps { rows, cols, of_rows: Pattern::of(rows), of_cols: Pattern::of(cols) };
    let many = (PIECE / from.max(to)).max(1);
    let shared = x.len().max(out.len()) >= SHARED;
    let pieces = x.chunks(many * from).zip(out.chunks_mut(many * to));
    threads::for_each(shared, pieces, |(x, out)| images(x, &maps, out));
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

    /// Copies and pairs of entries, alone and mixed, of images that get higher, lower, or stay.
    #[test]
    fn every_pattern_against_dense_matrices() {
        let picks = |input: usize, output: usize| {
            Taps::new(input, (0..output).map(|i| [(i * input / output, 1.0)]))
        };
        let pairs = |input: usize, output: usize| {
            let pair =
                |i: usize| [(i * input / output, 0.75), ((i * 7 + 1) % input, -0.5 * i as f64)];
            Taps::new(input, (0..output).map(pair))
        };
        let of = |input, output| [picks(input, output), pairs(input, output), taps(input, output)];
        for (height, high) in [(1, 1), (3, 8), (9, 4), (11, 11)] {
            for (width, wide) in [(1, 3), (7, 17), (17, 5)] {
                let x: Vec<f32> = (0..2 * height * width).map(|i| (i * 7 % 11) as f32).collect();
                for (rows, cols) in
                    of(height, high).iter().flat_map(|r| of(width, wide).map(|c| (r.clone(), c)))
                {
                    let mut out = vec![f32::NAN; 2 * high * wide];
                    resample(&x, &rows, &cols, &mut out);
                    let (a, b) = (dense(&rows), dense(&cols));
                    for (k, &y) in out.iter().enumerate() {
                        let (image, i, j) = (k / (high * wide), k / wide % high, k % wide);
                        let mut want = 0.0;
                        for r in 0..height {
                            for c in 0..width {
                                want += a[i][r]
                                    * b[j][c]
                                    * f64::from(x[(image * height + r) * width + c]);
                            }
                        }
                        assert!(
                            (f64::from(y) - want).abs() <= 1e-6 * (1.0 + want.abs()),
                            "{y} for {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_copy_keeps_every_bit() {
        let same = Taps::new(3, (0..5).map(|i| [(i * 3 / 5, 1.0)]));
        let x = [-0.0f32, f32::from_bits(0x7fc0_1234), f32::INFINITY].repeat(3);
        let mut out = [1.0; 25];
        resample(&x, &same, &same, &mut out);
        for (k, y) in out.iter().enumerate() {
            assert_eq!(y.to_bits(), x[k % 5 * 3 / 5].to_bits());
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
