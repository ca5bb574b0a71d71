//! The gates of long short-term memory: a step from their sums, and its backward, each in one pass.
//!
//! A row has the sums of the gates i, f, g and o, of `size` elements each. Rows are shared among
//! threads when there are many.

use super::map::{PIECE, SHARED};
use super::math::Real;
use super::simd::vectorized;
use super::threads;

/// The four gates of a row.
#[inline(always)]
fn gates<T>(row: &[T], size: usize) -> [&[T]; 4] {
    super::simd::array(|k| &row[k * size..][..size])
}

#[inline(always)]
fn step_body<const FMA: bool, T: Real>(sums: &[T], cell: &[T], size: usize, out: &mut [T]) {
    let rows = sums.chunks_exact(4 * size).zip(cell.chunks_exact(size));
    for ((sums, cell), out) in rows.zip(out.chunks_exact_mut(2 * size)) {
        let [i, f, g, o] = gates(sums, size);
        let (h, new) = out.split_at_mut(size);
        for j in 0..size {
            let kept = f[j].sigmoid::<FMA>() * cell[j];
            new[j] = kept + i[j].sigmoid::<FMA>() * g[j].tanh::<FMA>();
        }
        for j in 0..size {
            h[j] = o[j].sigmoid::<FMA>() * new[j].tanh::<FMA>();
        }
    }
}

vectorized! {
    fn step_rows[T](sums: &[T], cell: &[T], size: usize, out: &mut [T]) where [T: Real] = step_body
}

/// One step: for each row `c' = sigmoid(f) c + sigmoid(i) tanh(g)` and `h = sigmoid(o) tanh(c')`.
/// A row of `out` is `h` and then `c'`.
pub fn step<T: Real>(sums: &[T], cell: &[T], size: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let many = (PIECE / size).max(1) * size;
    let pieces = sums.chunks(4 * many).zip(cell.chunks(many)).zip(out.chunks_mut(2 * many));
    threads::for_each(sums.len() >= SHARED, pieces, |((sums, cell), out)| {
        step_rows(sums, cell, size, out);
    });
}

#[inline(always)]
fn back_body<const FMA: bool, T: Real>(
    sums: &[T],
    cell: &[T],
    grad: &[T],
    size: usize,
    dsums: &mut [T],
    dcell: &mut [T],
) {
    let rows = sums.chunks_exact(4 * size).zip(cell.chunks_exact(size));
    let rows = rows.zip(grad.chunks_exact(2 * size));
    let results = dsums.chunks_exact_mut(4 * size).zip(dcell.chunks_exact_mut(size));
    for (((sums, cell), grad), (dsums, dcell)) in rows.zip(results) {
        let [i, f, g, o] = gates(sums, size);
        let (dh, dnew) = grad.split_at(size);
        let (di, rest) = dsums.split_at_mut(size);
        let (df, rest) = rest.split_at_mut(size);
        let (dg, d_o) = rest.split_at_mut(size);
        for j in 0..size {
            let (i, f, o) = (i[j].sigmoid::<FMA>(), f[j].sigmoid::<FMA>(), o[j].sigmoid::<FMA>());
            let g = g[j].tanh::<FMA>();
            let t = (f * cell[j] + i * g).tanh::<FMA>();
            let dc = dnew[j] + dh[j] * o * (T::ONE - t * t);
            di[j] = dc * g * i * (T::ONE - i);
            df[j] = dc * cell[j] * f * (T::ONE - f);
            dg[j] = dc * i * (T::ONE - g * g);
            d_o[j] = dh[j] * t * o * (T::ONE - o);
            dcell[j] = dc * f;
        }
    }
}

vectorized! {
    fn back_rows[T](sums: &[T], cell: &[T], grad: &[T], size: usize, dsums: &mut [T], dcell: &mut [T])
        where [T: Real] = back_body
}

/// The gradients of sums and cell from that of what [`step`] gives.
pub fn back<T: Real>(
    sums: &[T],
    cell: &[T],
    grad: &[T],
    size: usize,
    dsums: &mut [T],
    dcell: &mut [T],
) {
    if dcell.is_empty() {
        return;
    }
    let many = (PIECE / size).max(1) * size;
    let given = sums.chunks(4 * many).zip(cell.chunks(many)).zip(grad.chunks(2 * many));
    let results = dsums.chunks_mut(4 * many).zip(dcell.chunks_mut(many));
    let pieces = given.zip(results);
    threads::for_each(sums.len() >= SHARED, pieces, |(((sums, cell), grad), (dsums, dcell))| {
        back_rows(sums, cell, grad, size, dsums, dcell);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    fn plain(sums: [f64; 4], cell: f64) -> [f64; 2] {
        let [i, f, g, o] = sums;
        let new = sigmoid(f) * cell + sigmoid(i) * g.tanh();
        [sigmoid(o) * new.tanh(), new]
    }

    /// Values against the formula, gradients against its differences.
    #[test]
    fn odd_sizes_against_the_formula() {
        for size in [1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let make = |n: usize, k: usize| -> Vec<f64> {
                (0..n).map(|i| ((i * k % 29) as f64 - 14.0) * 0.2).collect()
            };
            let (sums, cell, grad) = (make(12 * size, 7), make(3 * size, 11), make(6 * size, 5));
            let mut out = vec![f64::NAN; 6 * size];
            step(&sums, &cell, size, &mut out);
            let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
            let mut less = vec![f32::NAN; 6 * size];
            step(&narrow(&sums), &narrow(&cell), size, &mut less);
            let (mut dsums, mut dcell) = (vec![f64::NAN; 12 * size], vec![f64::NAN; 3 * size]);
            back(&sums, &cell, &grad, size, &mut dsums, &mut dcell);
            for (row, j) in (0..3).flat_map(|row| (0..size).map(move |j| (row, j))) {
                let of: [f64; 4] = std::array::from_fn(|k| sums[(row * 4 + k) * size + j]);
                let c = cell[row * size + j];
                let at = |k: usize| (row * 2 + k) * size + j;
                for (k, want) in plain(of, c).into_iter().enumerate() {
                    assert!((out[at(k)] - want).abs() < 1e-14);
                    assert!((f64::from(less[at(k)]) - want).abs() < 2e-6);
                }
                let loss = |sums: [f64; 4], c: f64| {
                    let [h, new] = plain(sums, c);
                    h * grad[at(0)] + new * grad[at(1)]
                };
                let slope = |f: &dyn Fn(f64) -> f64| (f(1e-5) - f(-1e-5)) / 2e-5;
                for k in 0..4 {
                    let moved = |by: f64| {
                        let mut of = of;
                        of[k] += by;
                        loss(of, c)
                    };
                    assert!((dsums[(row * 4 + k) * size + j] - slope(&moved)).abs() < 1e-8);
                }
                let want = slope(&|by| loss(of, c + by));
                assert!((dcell[row * size + j] - want).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let sums: Vec<f32> =
            (0..4 * 40 * 2000).map(|i| (i * 31 % 1009) as f32 * 0.01 - 5.0).collect();
        let cell = &sums[..40 * 2000];
        let mut out = [vec![0.0; 80 * 2000], vec![0.0; 80 * 2000]];
        for (count, out) in [1, 3].into_iter().zip(&mut out) {
            threads::with_num_threads(count, || step(&sums, cell, 40, out));
        }
        assert_eq!(out[0], out[1]);
    }
}
