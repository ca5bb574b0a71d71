//! The loop of a map with three operands of one dtype, for backward kernels that see both operands and the gradient.

use crate::kernels::map::Rows;

/// `out[i, j] = f(a[i, j], b[i, j], c[i, j])` for rows of `n` elements.
pub(super) fn ternary<T: Copy>(
    [a, b, c]: [Rows<'_, T>; 3],
    n: usize,
    out: &mut [T],
    f: impl Fn(T, T, T) -> T,
) {
    if n == 0 {
        return;
    }
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        let [a0, b0, c0] = [a, b, c].map(|rows| &rows.data[i * rows.step..]);
        if a.splat || b.splat || c.splat {
            let at = |row: &[T], splat: bool, j: usize| row[if splat { 0 } else { j }];
            for (j, o) in out.iter_mut().enumerate() {
                *o = f(at(a0, a.splat, j), at(b0, b.splat, j), at(c0, c.splat, j));
            }
        } else {
            let operands = a0[..n].iter().zip(&b0[..n]).zip(&c0[..n]);
            for (o, ((&a, &b), &c)) in out.iter_mut().zip(operands) {
                *o = f(a, b, c);
            }
        }
    }
}
