//! Softmax, log-softmax, log-sum-exp and cross-entropy over the rows of a contiguous `[rows, n]`
//! array, with their gradients.
//!
//! Short rows matter most (10 classes, 27 letters), and their remainders would be scalar loops. The
//! exponential therefore runs over many rows at once as one flat array, and the loops over single
//! rows (`rows.rs`, also for the order of sums) cut the last block by a mask where the processor
//! can.
//!
//! Infinities and NaN behave as in PyTorch: a logit of minus infinity has probability 0; a row of
//! nothing else, or one that holds plus infinity or NaN, becomes NaN (its log-sum-exp: minus
//! infinity, plus infinity, NaN).

pub(crate) mod rows;
#[cfg(test)]
mod tests;

pub use rows::Row;

use super::simd::{look_ahead, vectorized};

/// A tile is the rows whose exponentials are taken at once: few enough elements to stay in L1.
const TILE: usize = 1024;
/// Most rows of a tile: the length of the arrays that hold the maximum and sum of each row.
const TILE_ROWS: usize = 64;

/// Rows of length n in a tile.
fn tile_rows(n: usize) -> usize {
    (TILE / n).clamp(1, TILE_ROWS)
}

/// Running values of each row of a tile.
struct ShiftedSums<T> {
    shift: [T; TILE_ROWS],
    sum: [T; TILE_ROWS],
}

/// For one tile: `e = exp(x - shift)`, with each row's shift, which is `shift_of(max)`, and the sum
/// of its exponentials.
#[inline(always)]
fn exp_rows<const FMA: bool, T: Row>(
    x: &[T],
    n: usize,
    e: &mut [T],
    shift_of: impl Fn(T) -> T,
) -> ShiftedSums<T> {
    let mut rows = ShiftedSums { shift: [T::ZERO; TILE_ROWS], sum: [T::ONE; TILE_ROWS] };
    for (row, x) in x.chunks(n).enumerate() {
        look_ahead(x);
        let shift = shift_of(T::row_max(x));
        rows.shift[row] = shift;
        T::row_minus(x, shift, T::ZERO, &mut e[row * n..]);
    }
    exp_in_place::<FMA, T>(e);
    for (e, sum) in e.chunks(n).zip(&mut rows.sum) {
        *sum = T::row_sum(e);
    }
    rows
}

/// For one tile: `p = softmax(x)`.
#[inline(always)]
fn softmax_tile<const FMA: bool, T: Row>(
    x: &[T],
    n: usize,
    p: &mut [T],
    scratch: &mut [T; TILE],
) -> ShiftedSums<T> {
    if n > TILE {
        let rows = exp_rows::<FMA, T>(x, n, p, |max| max);
        T::row_scale_in_place(p, T::ONE / rows.sum[0]);
        return rows;
    }
    let e = &mut scratch[..x.len()];
    let rows = exp_rows::<FMA, T>(x, n, e, |max| max);
    for (row, (e, &sum)) in e.chunks(n).zip(&rows.sum).enumerate() {
        let p = &mut p[row * n..][..n];
        look_ahead(p);
        T::row_scale(e, T::ONE / sum, p);
    }
    rows
}

#[inline(always)]
fn exp_in_place<const FMA: bool, T: Row>(y: &mut [T]) {
    for y in y {
        *y = y.exp::<FMA>();
    }
}

#[inline(always)]
fn exp_to<const FMA: bool, T: Row>(x: &[T], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.exp::<FMA>();
    }
}

/// The logarithm of every row's sum, at once.
#[inline(always)]
fn log_sums<const FMA: bool, T: Row>(rows: &mut ShiftedSums<T>, count: usize) {
    for sum in &mut rows.sum[..count] {
        *sum = sum.log::<FMA>();
    }
}

/// Panics unless `x` consists of whole rows of length n and `y` has the same length.
#[track_caller]
fn assert_rows(x: usize, n: usize, y: usize) {
    assert!(x == y && (x == 0 || (n > 0 && x.is_multiple_of(n))), "{x} elements, rows of {n}, {y}");
}

#[inline(always)]
fn softmax_body<const FMA: bool, T: Row>(x: &[T], n: usize, y: &mut [T]) {
    assert_rows(x.len(), n, y.len());
    if x.is_empty() {
        return;
    }
    let mut scratch = [T::ZERO; TILE];
    let tile = tile_rows(n) * n;
    for (x, y) in x.chunks(tile).zip(y.chunks_mut(tile)) {
        softmax_tile::<FMA, T>(x, n, y, &mut scratch);
    }
}

#[inline(always)]
fn log_softmax_body<const FMA: bool, T: Row>(x: &[T], n: usize, y: &mut [T]) {
    assert_rows(x.len(), n, y.len());
    if x.is_empty() {
        return;
    }
    let tile = tile_rows(n) * n;
    for (x, y) in x.chunks(tile).zip(y.chunks_mut(tile)) {
        let mut rows = exp_rows::<FMA, T>(x, n, y, |max| max);
        log_sums::<FMA, T>(&mut rows, x.len() / n);
        let per_row = rows.shift.iter().zip(&rows.sum);
        for (row, (x, (&shift, &log))) in x.chunks(n).zip(per_row).enumerate() {
            T::row_minus(x, shift, log, &mut y[row * n..]);
        }
    }
}

#[inline(always)]
fn logsumexp_body<const FMA: bool, T: Row>(x: &[T], n: usize, out: &mut [T]) {
    assert_eq!(x.len(), n * out.len(), "{} rows of {n}", out.len());
    if n == 0 {
        out.fill(-T::INFINITY);
        return;
    }
    // An infinite maximum is no shift: exp and log then give the infinity by themselves.
    let shift_of = |max: T| {
        if max.abs() == T::INFINITY { T::ZERO } else { max }
    };
    let mut scratch = [T::ZERO; TILE];
    if n > TILE {
        for (x, out) in x.chunks(n).zip(out) {
            *out = logsumexp_long::<FMA, T>(x, shift_of(T::row_max(x)), &mut scratch);
        }
        return;
    }
    let count = tile_rows(n);
    for (x, out) in x.chunks(count * n).zip(out.chunks_mut(count)) {
        let y = &mut scratch[..x.len()];
        let mut rows = exp_rows::<FMA, T>(x, n, y, shift_of);
        log_sums::<FMA, T>(&mut rows, out.len());
        for ((out, &shift), &log) in out.iter_mut().zip(&rows.shift).zip(&rows.sum) {
            *out = shift + log;
        }
    }
}

/// One row that is longer than a tile, piece by piece.
#[inline(always)]
fn logsumexp_long<const FMA: bool, T: Row>(x: &[T], shift: T, scratch: &mut [T]) -> T {
    let mut sum = 0.0;
    for piece in x.chunks(TILE) {
        let y = &mut scratch[..piece.len()];
        T::row_minus(piece, shift, T::ZERO, y);
        exp_in_place::<FMA, T>(y);
        sum += T::row_sum(y).to_f64();
    }
    shift + T::from_f64(sum).log::<FMA>()
}

#[inline(always)]
fn softmax_grad_body<const FMA: bool, T: Row>(y: &[T], g: &[T], n: usize, out: &mut [T]) {
    assert_rows(y.len(), n, out.len());
    assert_eq!(y.len(), g.len());
    let n = n.max(1);
    for (row, (y, g)) in y.chunks(n).zip(g.chunks(n)).enumerate() {
        T::row_softmax_grad(y, g, T::row_dot(y, g), &mut out[row * n..]);
    }
}

#[inline(always)]
fn log_softmax_grad_body<const FMA: bool, T: Row>(logp: &[T], g: &[T], n: usize, out: &mut [T]) {
    assert_rows(logp.len(), n, out.len());
    assert_eq!(logp.len(), g.len());
    if g.is_empty() {
        return;
    }
    let mut scratch = [T::ZERO; TILE];
    if n > TILE {
        for ((logp, g), out) in logp.chunks(n).zip(g.chunks(n)).zip(out.chunks_mut(n)) {
            let sum = T::row_sum(g);
            let pieces = logp.chunks(TILE).zip(g.chunks(TILE)).zip(out.chunks_mut(TILE));
            for ((logp, g), out) in pieces {
                let p = &mut scratch[..g.len()];
                exp_to::<FMA, T>(logp, p);
                T::row_minus_product(g, p, sum, out);
            }
        }
        return;
    }
    let tile = tile_rows(n) * n;
    for ((logp, g), out) in logp.chunks(tile).zip(g.chunks(tile)).zip(out.chunks_mut(tile)) {
        let p = &mut scratch[..g.len()];
        exp_to::<FMA, T>(logp, p);
        for (row, (g, p)) in g.chunks(n).zip(p.chunks(n)).enumerate() {
            T::row_minus_product(g, p, T::row_sum(g), &mut out[row * n..]);
        }
    }
}

#[inline(always)]
fn cross_entropy_body<const FMA: bool, T: Row>(
    x: &[T],
    targets: &[i64],
    n: usize,
    losses: &mut [T],
    probs: &mut [T],
) {
    assert_rows(x.len(), n, probs.len());
    assert!(targets.len() == losses.len() && targets.len() * n == x.len());
    if x.is_empty() {
        return;
    }
    let count = tile_rows(n);
    let tiles = x.chunks(count * n).zip(probs.chunks_mut(count * n));
    let per_row = targets.chunks(count).zip(losses.chunks_mut(count));
    let mut scratch = [T::ZERO; TILE];
    for ((x, probs), (targets, losses)) in tiles.zip(per_row) {
        let mut rows = softmax_tile::<FMA, T>(x, n, probs, &mut scratch);
        log_sums::<FMA, T>(&mut rows, targets.len());
        for (row, (loss, &target)) in losses.iter_mut().zip(targets).enumerate() {
            *loss = (rows.shift[row] - x[row * n..][..n][target as usize]) + rows.sum[row];
        }
    }
}

#[inline(always)]
fn cross_entropy_grad_body<const FMA: bool, T: Row>(
    probs: &[T],
    targets: &[i64],
    n: usize,
    scale: T,
    out: &mut [T],
) {
    assert_rows(probs.len(), n, out.len());
    assert_eq!(targets.len() * n, probs.len());
    for (out, &p) in out.iter_mut().zip(probs) {
        *out = p * scale;
    }
    for (row, &target) in targets.iter().enumerate() {
        let at = row * n + target as usize;
        out[at] = (probs[at] - T::ONE) * scale;
    }
}

vectorized! {
    /// `y = softmax(x)` over each row of length `n`.
    pub fn softmax_rows[T](x: &[T], n: usize, y: &mut [T]) where [T: Row] = softmax_body
}
vectorized! {
    /// `y = log(softmax(x))` over each row of length `n`.
    pub fn log_softmax_rows[T](x: &[T], n: usize, y: &mut [T]) where [T: Row] = log_softmax_body
}
vectorized! {
    /// `out = log(sum(exp(x)))` over each row of length `n`, one element a row. A row without
    /// elements gives minus infinity.
    pub fn logsumexp_rows[T](x: &[T], n: usize, out: &mut [T]) where [T: Row] = logsumexp_body
}
vectorized! {
    /// The gradient of softmax from its output `y`: `out = y * (g - sum(y * g))`.
    pub fn softmax_grad_rows[T](y: &[T], g: &[T], n: usize, out: &mut [T]) where [T: Row] = softmax_grad_body
}
vectorized! {
    /// The gradient of log-softmax from its output `logp`: `out = g - exp(logp) * sum(g)`.
    pub fn log_softmax_grad_rows[T](logp: &[T], g: &[T], n: usize, out: &mut [T]) where [T: Row] = log_softmax_grad_body
}
vectorized! {
    /// Each row's loss, `-log(softmax(x)[target])`, and the probabilities, which the gradient
    /// needs. Every target must lie in `0..n`: the caller has checked it.
    pub fn cross_entropy_rows[T](x: &[T], targets: &[i64], n: usize, losses: &mut [T], probs: &mut [T])
        where [T: Row] = cross_entropy_body
}
vectorized! {
    /// The gradient of the losses from the probabilities: `out = (p - onehot(target)) * scale`,
    /// where `scale` is the upstream gradient (with the 1/rows of a mean). Every target must lie in
    /// `0..n`: the caller has checked it.
    pub fn cross_entropy_grad_rows[T](probs: &[T], targets: &[i64], n: usize, scale: T, out: &mut [T])
        where [T: Row] = cross_entropy_grad_body
}
