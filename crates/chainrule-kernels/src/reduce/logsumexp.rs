//! Log-sum-exp over columns; that over rows is with the softmax.

use super::extremum::{self, Ranked};
use super::{Summed, sum_columns};
use crate::math::{self, Real};

/// About how many exponentials are taken at once: few enough to stay in L1.
const TILE: usize = 2048;

/// `out = log(sum(exp(x)))` over the middle axis of `[outer, count, inner]`. Over nothing it is
/// minus infinity.
pub fn logsumexp_columns<T: Real + Ranked + Summed>(
    x: &[T],
    count: usize,
    inner: usize,
    out: &mut [T],
) {
    if count == 0 {
        return out.fill(-T::INFINITY);
    }
    if inner == 0 {
        return;
    }
    let rows = (TILE / inner).clamp(1, count);
    let mut shifted = vec![T::ZERO; rows * inner];
    let mut exps = vec![T::ZERO; rows * inner];
    let (mut shift, mut part) = (vec![T::ZERO; inner], vec![T::ZERO; inner]);
    let mut sum = vec![T::ZERO; inner];
    for (out, x) in out.chunks_exact_mut(inner).zip(x.chunks_exact(count * inner)) {
        extremum::max(x, count, inner, &mut shift);
        // An infinity is not taken out: infinity less infinity would be NaN.
        for s in &mut shift {
            *s = if s.abs() == T::INFINITY { T::ZERO } else { *s };
        }
        sum.fill(T::ZERO);
        for block in x.chunks(rows * inner) {
            let (shifted, exps) = (&mut shifted[..block.len()], &mut exps[..block.len()]);
            for (to, row) in shifted.chunks_exact_mut(inner).zip(block.chunks_exact(inner)) {
                for ((to, &x), &s) in to.iter_mut().zip(row).zip(&shift) {
                    *to = x - s;
                }
            }
            math::exp_slice(shifted, exps);
            sum_columns(exps, block.len() / inner, inner, &mut part);
            for (s, &p) in sum.iter_mut().zip(&part) {
                *s += p;
            }
        }
        math::log_slice(&sum, out);
        for (o, &s) in out.iter_mut().zip(&shift) {
            *o += s;
        }
    }
}
