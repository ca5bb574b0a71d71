//! Singular values and eigenvalues with their vectors, of which Python has the gradients.

use chainrule::{DType, Element, Error, Result, Tensor};
use faer::{MatRef, Side};
use pyo3::prelude::*;

use crate::tensor::{PyTensor, work};

/// Exponent of 2 of the largest element from which on a matrix is scaled: its squares, and their
/// sums, stay within the range of f32.
const LARGE: i32 = 20;

/// An element type of the decompositions.
trait Real: Element + faer::traits::RealField + Copy {
    fn wide(self) -> f64;
    fn narrow(x: f64) -> Self;
}

impl Real for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn narrow(x: f64) -> f32 {
        x as f32
    }
}

impl Real for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(x: f64) -> f64 {
        x
    }
}

/// Matrices in the last two axes, one after the other.
struct Matrices<T> {
    op: &'static str,
    /// The axes before them.
    batch: Vec<usize>,
    rows: usize,
    columns: usize,
    elements: Vec<T>,
}

impl<T: Real> Matrices<T> {
    /// The tensor has two axes and an element at least.
    fn new(op: &'static str, a: &Tensor) -> Result<Matrices<T>> {
        let shape = a.shape();
        let (batch, sizes) = shape.dims().split_at(shape.rank() - 2);
        let elements = a.try_to_vec::<T>()?;
        Ok(Matrices { op, batch: batch.to_vec(), rows: sizes[0], columns: sizes[1], elements })
    }

    /// Calls `f` with each matrix divided by a power of 2, and with that.
    fn each(
        &mut self,
        reads: impl Fn(usize, usize) -> bool,
        mut f: impl FnMut(MatRef<'_, T>, f64) -> Option<()>,
    ) -> Result<()> {
        let (op, rows, columns) = (self.op, self.rows, self.columns);
        for x in self.elements.chunks_exact_mut(rows * columns) {
            let is_read = |at: usize| reads(at / columns, at % columns);
            let read = x.iter().enumerate().filter(|(at, _)| is_read(*at)).map(|(_, x)| x.wide());
            let (sum, largest) = read
                .fold((0.0, 0.0), |(sum, most): (f64, f64), x| (sum + x * 0.0, most.max(x.abs())));
            if sum != 0.0 {
                return Err(Error::decomposition(
                    op,
                    "the matrix holds values that are not finite; take them out, or look where \
                     they come from",
                ));
            }
            let scale = scale_of(largest);
            if scale != 1.0 {
                x.iter_mut().for_each(|x| *x = T::narrow(x.wide() / scale));
            }
            f(MatRef::from_row_major_slice(x, rows, columns), scale)
                .ok_or_else(|| Error::decomposition(op, "it did not converge"))?;
        }
        Ok(())
    }

    /// A result with these axes for each matrix.
    fn result(&self, elements: &[T], sizes: &[usize]) -> Result<Tensor> {
        Tensor::try_from_slice(elements, [&self.batch[..], sizes].concat())
    }
}

/// The power of 2 that a matrix with that largest element is divided by.
fn scale_of(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    let exponent = largest.log2().round() as i32;
    // Beyond 1000 the power or its inverse would be no normal number.
    if exponent.abs() < LARGE { 1.0 } else { 2f64.powi(exponent.clamp(-1000, 1000)) }
}

/// Adds a matrix row by row.
fn push<T: Real>(from: MatRef<'_, T>, to: &mut Vec<T>) {
    for i in 0..from.nrows() {
        to.extend((0..from.ncols()).map(|j| from[(i, j)]));
    }
}

fn svd<T: Real>(a: &Tensor, is_full: bool) -> Result<[Tensor; 3]> {
    let mut all = Matrices::<T>::new("svd", a)?;
    let (rows, columns) = (all.rows, all.columns);
    let k = rows.min(columns);
    let (left, right) = if is_full { (rows, columns) } else { (k, k) };
    let (mut u, mut s, mut v) = (Vec::new(), Vec::new(), Vec::new());
    let always = |_, _| true;
    all.each(always, |m, scale| {
        let found = if is_full { m.svd() } else { m.thin_svd() }.ok()?;
        push(found.U(), &mut u);
        let values = found.S().column_vector();
        s.extend((0..k).map(|i| T::narrow(values[i].wide() * scale)));
        push(found.V().transpose(), &mut v);
        Some(())
    })?;
    Ok([all.result(&u, &[rows, left])?, all.result(&s, &[k])?, all.result(&v, &[right, columns])?])
}

fn eigh<T: Real>(a: &Tensor, is_upper: bool) -> Result<[Tensor; 2]> {
    let mut all = Matrices::<T>::new("eigh", a)?;
    let n = all.rows;
    let side = if is_upper { Side::Upper } else { Side::Lower };
    let reads = |i: usize, j: usize| if is_upper { i <= j } else { i >= j };
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    all.each(reads, |m, scale| {
        let found = m.self_adjoint_eigen(side).ok()?;
        let of = found.S().column_vector();
        values.extend((0..n).map(|i| T::narrow(of[i].wide() * scale)));
        push(found.U(), &mut vectors);
        Some(())
    })?;
    Ok([all.result(&values, &[n])?, all.result(&vectors, &[n, n])?])
}

#[pymethods]
impl PyTensor {
    /// The parts of matrices with an element at least, of f32 or f64.
    fn _svd(&self, py: Python<'_>, full_matrices: bool) -> PyResult<Vec<PyTensor>> {
        let t = self.untaped()?;
        let found = work(py, t.numel(), || match t.dtype() {
            DType::F32 => svd::<f32>(&t, full_matrices),
            _ => svd::<f64>(&t, full_matrices),
        });
        Ok(found?.into_iter().map(PyTensor::from).collect())
    }

    /// Values and vectors of symmetric matrices, as [`PyTensor::_svd`] takes them.
    fn _eigh(&self, py: Python<'_>, is_upper: bool) -> PyResult<Vec<PyTensor>> {
        let t = self.untaped()?;
        let found = work(py, t.numel(), || match t.dtype() {
            DType::F32 => eigh::<f32>(&t, is_upper),
            _ => eigh::<f64>(&t, is_upper),
        });
        Ok(found?.into_iter().map(PyTensor::from).collect())
    }
}
