//! Matrix products of strided operands: `C = alpha A B` with A `[m, k]`, B `[k, n]`, C `[m, n]`.
//!
//! An operand may be any view that strides can say: transposed, sliced, broadcast. The result has
//! contiguous rows. Small products read their operands in place; larger ones pack them first and
//! use the thread pool. The bits of a result depend on the sizes, the strides and the level of
//! [`simd`](super::simd), never on the threads.
//!
//! `drive` has the entry points, `plan` splits the work, `tile` computes, `vector` has the SIMD
//! types.

mod block;
pub(super) mod drive;
pub(super) mod halves;
mod plan;
#[cfg(test)]
mod tests;
pub mod tile;
pub(super) mod vector;

pub use block::{Block, block, block_packed, pack_columns, pack_lines, panel_lines};
pub use drive::{Finish, Room, with_buffer};
pub(super) use drive::{run, threaded};
pub use tile::GemmElement;

use drive::{Addend, Operand, TASK_WORK, Target, laid_out, product};
use tile::GemmKernels;

/// A matrix to multiply: element `(i, j)` is `data[i * row_stride + j * col_stride]`.
///
/// Strides may be zero (broadcasting) or positive. The element with the largest index must lie
/// inside `data`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    /// The elements, beginning with `(0, 0)`.
    pub data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements between one row and the next.
    pub row_stride: isize,
    /// Elements between one column and the next.
    pub col_stride: isize,
}

impl<'a, T> Mat<'a, T> {
    /// A matrix with contiguous rows.
    #[cfg(test)]
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Mat { data, rows, cols, row_stride: cols as isize, col_stride: 1 }
    }

    /// The same elements with rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Mat {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// Treatment of the old contents of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accum {
    /// The product replaces them; they are not read.
    Replace,
    /// The product is added to them.
    Add,
}

/// The leading axes of a batched product, as a tensor has them: product `(i, j, ...)` takes its
/// operands `i * strides[0] + j * strides[1] + ...` elements further on. A stride of zero repeats
/// an operand.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The length of each axis.
    pub sizes: &'a [usize],
    /// The strides of A.
    pub a_strides: &'a [isize],
    /// The strides of B.
    pub b_strides: &'a [isize],
}

impl Batch<'_> {
    /// No leading axes: one product.
    pub const ONE: Batch<'static> = Batch { sizes: &[], a_strides: &[], b_strides: &[] };
}

#[cfg(test)]
/// `out = alpha * a b`, or `out += alpha * a b`, in f32. `out` has contiguous rows.
///
/// # Panics
///
/// If the inner sizes differ, an operand reaches outside its data, a stride is negative, or `out`
/// has another length.
pub fn gemm_f32(alpha: f32, a: Mat<'_, f32>, b: Mat<'_, f32>, accum: Accum, out: &mut [f32]) {
    float_products(f32::current(), alpha, a, b, Batch::ONE, accum, out);
}

#[cfg(test)]
/// As [`gemm_f32`], in i64, where sums wrap around.
///
/// # Panics
///
/// As [`gemm_f32`].
pub fn gemm_i64(alpha: i64, a: Mat<'_, i64>, b: Mat<'_, i64>, accum: Accum, out: &mut [i64]) {
    batched_i64(alpha, a, b, Batch::ONE, accum, out);
}

/// Many products at once: `a` and `b` describe the first one, `batch` where the others are. `out`
/// has all results one after the other.
///
/// # Panics
///
/// As `gemm_f32`, or if the lists of `batch` differ in length.
pub fn batched_f32(
    alpha: f32,
    a: Mat<'_, f32>,
    b: Mat<'_, f32>,
    batch: Batch<'_>,
    accum: Accum,
    out: &mut [f32],
) {
    float_products(f32::current(), alpha, a, b, batch, accum, out);
}

/// `out = a b + row`, with the row added to every row, in f32. `out` has contiguous rows.
///
/// # Panics
///
/// As [`batched_f32`], or if the row has not as many numbers as the product has columns.
pub fn affine_f32(a: Mat<'_, f32>, b: Mat<'_, f32>, row: &[f32], out: &mut [f32]) {
    finished(1.0, (a, b), Batch::ONE, Plus::Row(row), None, out);
}

/// Addend of a product.
#[derive(Clone, Copy, Debug)]
pub enum Plus<'a, T> {
    /// Nothing.
    Nothing,
    /// The same row for all rows, with as many numbers as there are columns.
    Row(&'a [T]),
    /// The old contents of the output.
    Output,
}

/// `out = alpha * a b`, or that with something added, after which `finish` gets each stretch of
/// elements as soon as it is complete, while it is still near. `out` has contiguous rows.
///
/// # Panics
///
/// As [`batched_f32`], or if a row has not as many numbers as the product has columns.
pub fn finished<T: GemmElement>(
    alpha: T,
    operands: (Mat<'_, T>, Mat<'_, T>),
    batch: Batch<'_>,
    plus: Plus<'_, T>,
    finish: Option<Finish<'_>>,
    out: &mut [T],
) {
    let addend = match plus {
        Plus::Nothing => Addend::Nothing,
        Plus::Output => Addend::Output,
        Plus::Row(row) => {
            assert_eq!(row.len(), operands.1.cols, "gemm: one number to add for each column");
            Addend::row(row)
        }
    };
    let kernels = T::current();
    // SAFETY: `products` has checked the operands and the target.
    let one = |a: Operand<T>, b: Operand<T>, target: Target<'_, T>| unsafe {
        product(kernels, alpha, a, b, target)
    };
    products(one, operands, batch, addend, finish, out);
}

/// As [`finished`], of operands that are rounded to bf16: products of two such numbers are exact
/// in f32, in which they are summed.
///
/// AVX512-BF16, if the processor has it, adds the products of two depths at once: its instruction
/// rounds to nearest even after each addition, and takes and gives subnormal numbers as zero.
/// Elsewhere the f32 products of rounded copies are computed, which keep them. NaN and infinities
/// come through either way.
///
/// # Panics
///
/// As [`finished`].
pub fn finished_bf16(
    alpha: f32,
    operands: (Mat<'_, f32>, Mat<'_, f32>),
    batch: Batch<'_>,
    plus: Plus<'_, f32>,
    finish: Option<Finish<'_>>,
    out: &mut [f32],
) {
    let addend = match plus {
        Plus::Nothing => Addend::Nothing,
        Plus::Output => Addend::Output,
        Plus::Row(row) => {
            assert_eq!(row.len(), operands.1.cols, "gemm: one number to add for each column");
            Addend::row(row)
        }
    };
    let pairs = tile::pairs();
    // SAFETY: `products` has checked the operands and the target.
    let one = |a: Operand<f32>, b: Operand<f32>, target: Target<'_, f32>| unsafe {
        halves::product(pairs, alpha, a, b, target)
    };
    products(one, operands, batch, addend, finish, out);
}

/// As [`batched_f32`], in i64, where sums wrap around.
///
/// # Panics
///
/// As [`batched_f32`].
pub fn batched_i64(
    alpha: i64,
    a: Mat<'_, i64>,
    b: Mat<'_, i64>,
    batch: Batch<'_>,
    accum: Accum,
    out: &mut [i64],
) {
    let count = check(&a, &b, &batch, out.len());
    let size = a.rows * b.cols;
    if accum == Accum::Replace {
        out.fill(0);
    }
    if size == 0 {
        return;
    }
    for (index, out) in out.chunks_exact_mut(size).enumerate().take(count) {
        let (from_a, from_b) = offsets(&batch, index);
        for (i, out) in out.chunks_exact_mut(b.cols).enumerate() {
            for p in 0..a.cols {
                let left = a.data[from_a + i * a.row_stride as usize + p * a.col_stride as usize];
                let left = alpha.wrapping_mul(left);
                let from = from_b + p * b.row_stride as usize;
                for (j, out) in out.iter_mut().enumerate() {
                    let right = b.data[from + j * b.col_stride as usize];
                    *out = out.wrapping_add(left.wrapping_mul(right));
                }
            }
        }
    }
}

/// Multiplications of one product from which all threads share it, instead of each thread taking
/// whole products of the batch.
const LARGE: usize = 64 << 20;

fn float_products<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    alpha: T,
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    batch: Batch<'_>,
    accum: Accum,
    out: &mut [T],
) {
    let addend = if accum == Accum::Add { Addend::Output } else { Addend::Nothing };
    // SAFETY: `products` has checked the operands and the target.
    let one = |a: Operand<T>, b: Operand<T>, target: Target<'_, T>| unsafe {
        product(kernels, alpha, a, b, target)
    };
    products(one, (a, b), batch, addend, None, out);
}

/// Checks the operands and computes all products of a batch, each by `multiply`. A row that is
/// added must have as many numbers as a product has columns.
fn products<T: GemmElement>(
    multiply: impl Fn(Operand<T>, Operand<T>, Target<'_, T>) + Sync,
    (mut a, b): (Mat<'_, T>, Mat<'_, T>),
    batch: Batch<'_>,
    addend: Addend<T>,
    finish: Option<Finish<'_>>,
    out: &mut [T],
) {
    let mut count = check(&a, &b, &batch, out.len());
    if out.is_empty() {
        return;
    }
    if a.cols == 0 {
        // SAFETY: the output has this many rows, and the row to add, if any, is readable.
        let add = unsafe { laid_out(addend, count * a.rows, b.cols, out.as_mut_ptr()) };
        if !add {
            out.fill(T::default());
        }
        if let Some(finish) = finish {
            finish(0, out.as_mut_ptr().cast(), out.len());
        }
        return;
    }
    if count > 1 && rows_continue(&a, &batch) {
        // One B for all, and the As lie as the rows of one tall matrix.
        a.rows *= count;
        count = 1;
    }
    let size = a.rows * b.cols;
    let work = size.saturating_mul(a.cols);
    let address = OutputAddress(out.as_mut_ptr());
    let one = |index: usize, parallel: bool| {
        let (from_a, from_b) = offsets(&batch, index);
        let shifted = |first: usize, at: *mut u8, count: usize| {
            if let Some(finish) = finish {
                finish(index * size + first, at, count);
            }
        };
        let target = Target {
            out: address.get().wrapping_add(index * size),
            addend,
            finish: finish.is_some().then_some(&shifted as Finish<'_>),
            parallel,
        };
        // `check` found all elements inside `data`, and `out` has room for `count` results of
        // `size` numbers.
        multiply(operand(&a, from_a), operand(&b, from_b), target);
    };
    let shared = threaded(work.saturating_mul(count));
    if count == 1 || !shared || work >= LARGE {
        let parallel = threaded(work);
        (0..count).for_each(|index| one(index, parallel));
    } else {
        let group = (TASK_WORK / work).max(1);
        run(count.div_ceil(group), true, |task| {
            (task * group..count.min((task + 1) * group)).for_each(|index| one(index, false));
        });
    }
}

/// The output's address, for tasks that write different results.
struct OutputAddress<T>(*mut T);

// SAFETY: each product writes its own part of the output.
unsafe impl<T: Send> Sync for OutputAddress<T> {}

impl<T> OutputAddress<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

fn operand<T>(mat: &Mat<'_, T>, offset: usize) -> Operand<T> {
    // The stride of an axis of one element is arbitrary; the kernels prefer 1.
    let stride = |size: usize, stride: isize| if size == 1 { 1 } else { stride as usize };
    Operand {
        data: mat.data[offset..].as_ptr(),
        rows: mat.rows,
        cols: mat.cols,
        row: stride(mat.rows, mat.row_stride),
        col: stride(mat.cols, mat.col_stride),
    }
}

/// Whether the As follow each other as the rows of one matrix, and B is always the same.
fn rows_continue<T>(a: &Mat<'_, T>, batch: &Batch<'_>) -> bool {
    let mut next = a.rows as isize * a.row_stride;
    for ((&size, &step), &b_step) in
        batch.sizes.iter().zip(batch.a_strides).zip(batch.b_strides).rev()
    {
        if size != 1 && (b_step != 0 || step != next) {
            return false;
        }
        next *= size as isize;
    }
    true
}

/// Offsets of the operands of product `index`.
fn offsets(batch: &Batch<'_>, index: usize) -> (usize, usize) {
    let (mut rest, mut a, mut b) = (index, 0, 0);
    for axis in (0..batch.sizes.len()).rev() {
        let at = rest % batch.sizes[axis];
        rest /= batch.sizes[axis];
        a += at * batch.a_strides[axis] as usize;
        b += at * batch.b_strides[axis] as usize;
    }
    (a, b)
}

/// Checks sizes, strides and bounds, on which all unsafe code below relies. Returns the number of
/// products.
#[track_caller]
fn check<T>(a: &Mat<'_, T>, b: &Mat<'_, T>, batch: &Batch<'_>, out: usize) -> usize {
    let axes = batch.sizes.len();
    assert!(
        batch.a_strides.len() == axes && batch.b_strides.len() == axes,
        "gemm: {axes} batch axes, but {} and {} batch strides",
        batch.a_strides.len(),
        batch.b_strides.len()
    );
    assert!(
        a.cols == b.rows,
        "gemm: {}x{} times {}x{}: inner sizes differ",
        a.rows,
        a.cols,
        b.rows,
        b.cols
    );
    let count = batch.sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    let all = count.and_then(|count| count.checked_mul(a.rows)?.checked_mul(b.cols));
    assert!(
        all == Some(out),
        "gemm: the output holds {out} elements, but the result is {count:?} times {}x{}",
        a.rows,
        b.cols
    );
    if out > 0 && a.cols > 0 {
        inside("left", a, batch.sizes, batch.a_strides);
        inside("right", b, batch.sizes, batch.b_strides);
    }
    count.unwrap_or(0)
}

/// Checks that the last element of a non-empty operand is inside its data.
#[track_caller]
fn inside<T>(name: &str, mat: &Mat<'_, T>, sizes: &[usize], strides: &[isize]) {
    let axes = [(mat.rows, mat.row_stride), (mat.cols, mat.col_stride)];
    let batch = sizes.iter().copied().zip(strides.iter().copied());
    let last = axes.into_iter().chain(batch).try_fold(0usize, |last, (size, stride)| {
        last.checked_add(usize::try_from(stride).ok()?.checked_mul(size - 1)?)
    });
    assert!(
        last.is_some_and(|last| last < mat.data.len()),
        "gemm: the {name} operand, {}x{} with strides {} and {}, reaches outside its {} elements",
        mat.rows,
        mat.cols,
        mat.row_stride,
        mat.col_stride,
        mat.data.len()
    );
}
