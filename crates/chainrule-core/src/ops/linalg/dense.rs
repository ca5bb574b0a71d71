//! Common steps of the decompositions: matrices in the last two axes, each handed to faer as a view
//! of the array.

use faer::{Mat, MatRef};

use crate::kernels::math;
use crate::ops::prelude::*;

/// An element type that the decompositions know.
pub(super) trait Real: Stored + math::Real + faer::traits::RealField {}

impl Real for f32 {}
impl Real for f64 {}

/// The inference of an op on square matrices: rows and columns are equal, the result has the shape
/// of the input.
pub(super) fn infer_square(op: &'static str, a: &Meta) -> Result<Meta> {
    float_inputs(op, std::slice::from_ref(a))?;
    let rank = a.shape.rank();
    if rank < 2 || a.shape[rank - 1] != a.shape[rank - 2] {
        return Err(Error::shape(op, &[&a.shape], "needs square matrices in the last two axes"));
    }
    Ok(*a)
}

/// The sizes of the last two axes.
pub(super) fn matrix_sizes(shape: &Shape) -> (usize, usize) {
    (shape[shape.rank() - 2], shape[shape.rank() - 1])
}

/// A contiguous array as matrices, row by row.
pub(super) fn matrices<'a, T: Real>(
    x: &'a Value,
    (rows, cols): (usize, usize),
) -> impl Iterator<Item = MatRef<'a, T>> {
    let elements = x.slice::<T>().expect("the array was made contiguous");
    // `max`: matrices without elements have none to hand out.
    let each = elements.chunks_exact((rows * cols).max(1));
    each.map(move |m| MatRef::from_row_major_slice(m, rows, cols))
}

/// Writes a matrix row by row.
pub(super) fn write<T: Real>(from: MatRef<'_, T>, to: &mut [T]) {
    let cols = from.ncols().max(1);
    for (i, row) in to.chunks_exact_mut(cols).enumerate() {
        for (j, o) in row.iter_mut().enumerate() {
            *o = from[(i, j)];
        }
    }
}

/// Runs `f` on each matrix of the input and writes what it gives; `f` gives the reason where it
/// cannot.
pub(super) fn each<T: Real>(
    op: &'static str,
    x: &Arc<Value>,
    out: &mut [T],
    f: impl Fn(MatRef<'_, T>) -> Result<Mat<T>, &'static str>,
) -> Result<()> {
    let x = x.contiguous()?;
    let sizes = matrix_sizes(x.shape());
    let count = (x.numel() / (sizes.0 * sizes.1).max(1)).max(1);
    let size = (out.len() / count).max(1);
    for (i, (m, out)) in matrices::<T>(&x, sizes).zip(out.chunks_exact_mut(size)).enumerate() {
        let y = f(m).map_err(|why| failed(op, i, count, why))?;
        write(y.as_ref(), out);
    }
    Ok(())
}

/// The error for matrix `i` of `count`.
#[cold]
pub(super) fn failed(op: &'static str, i: usize, count: usize, why: &str) -> Error {
    match count {
        1 => Error::decomposition(op, why),
        _ => Error::decomposition(op, format!("matrix {i} of {count}: {why}")),
    }
}

/// Well-conditioned square matrices for samples: random ones with a heavy diagonal.
pub(super) fn well_conditioned(g: &mut Generator, shape: &[usize]) -> Tensor {
    let n = shape[shape.len() - 1];
    normal(g, shape) * 0.5 + Tensor::eye(n).to_dtype(DType::F64) * (1.0 + n as f64).sqrt()
}
