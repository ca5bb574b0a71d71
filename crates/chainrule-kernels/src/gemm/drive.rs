//! The operands and output of a product, and its dispatch. Products with a single row or column are
//! computed here, in an order as fixed as that of the others.

use super::block::{Block, panels};
use super::plan::{Plan, fits};
use super::tile::{GemmElement, GemmKernels};
use crate::threads;
use std::cell::Cell;

/// Smallest task, in multiplications: about 20 us.
pub(super) const TASK_WORK: usize = 2 << 20;
/// Smallest product that threads share, in multiplications: waking a thread costs 10 to 25 us.
const THREADED_WORK: usize = 6 << 20;
/// Columns of one task where a single row is multiplied, and the matrix size from which there are
/// tasks at all.
const ROW_TASK_COLS: usize = 256;
const THREADED_ROW_WORK: usize = 1 << 20;

/// A matrix by address: element `(i, j)` is at `data + i * row + j * col`.
#[derive(Clone, Copy)]
pub(super) struct Operand<T> {
    pub data: *const T,
    pub rows: usize,
    pub cols: usize,
    pub row: usize,
    pub col: usize,
}

// SAFETY: operands are only read.
unsafe impl<T: Sync> Sync for Operand<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Operand<T> {}

impl<T> Operand<T> {
    pub fn at(&self, row: usize, col: usize) -> *const T {
        self.data.wrapping_add(row * self.row + col * self.col)
    }

    pub fn transposed(self) -> Self {
        Operand { data: self.data, rows: self.cols, cols: self.rows, row: self.col, col: self.row }
    }
}

/// Addend of a product.
#[derive(Clone, Copy)]
pub(super) enum Addend<T> {
    Nothing,
    /// The old contents of the output.
    Output,
    /// The same numbers to every row.
    Row(Shared<T>),
}

impl<T> Addend<T> {
    /// A row of as many numbers as the product has columns.
    pub fn row(numbers: &[T]) -> Self {
        Addend::Row(Shared(numbers.as_ptr().cast_mut()))
    }
}

/// An address that tasks share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(pub *mut T);

// SAFETY: each task touches its own part behind the address, or only reads.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    pub fn at(&self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// Whether a product of this much work is worth more than one thread.
pub fn threaded(work: usize) -> bool {
    work >= THREADED_WORK && !threads::is_alone()
}

/// Runs the tasks `0..count`, on the pool if `parallel`.
pub fn run(count: usize, parallel: bool, task: impl Fn(usize) + Send + Sync) {
    threads::for_each(parallel && count > 1, 0..count, task);
}

/// 64 bytes, aligned so.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// A buffer that a thread keeps for the next time.
pub struct Room(Cell<Vec<Line>>);

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl Room {
    /// Without memory yet.
    pub const fn new() -> Room {
        Room(Cell::new(Vec::new()))
    }

    /// Calls `f` with room for `len` numbers, whose contents are arbitrary numbers.
    pub fn with<T: GemmElement, R>(&self, len: usize, f: impl FnOnce(*mut T) -> R) -> R {
        if len == 0 {
            return f(std::ptr::null_mut());
        }
        // The buffer is taken, not borrowed: while this thread waits for others it may run another
        // task that needs one.
        let mut buffer = self.0.take();
        let lines = (len * size_of::<T>()).div_ceil(64);
        if buffer.len() < lines {
            buffer.resize(lines, Line { _bytes: [0; 64] });
        }
        let result = f(buffer.as_mut_ptr().cast());
        self.0.set(buffer);
        result
    }
}

thread_local! {
    /// The last packing buffer of this thread.
    static PACKED: Room = const { Room::new() };
}

/// Calls `f` with a buffer for `len` numbers, whose contents are arbitrary numbers.
pub fn with_buffer<T: GemmElement, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> R {
    PACKED.with(|room| room.with(len, f))
}

/// Epilogue of a product, called with runs of its elements once they are complete: the index of the
/// first element, its address, and the count. It may change them. Runs are disjoint, several
/// threads may call at the same time, and where a run ends depends on the sizes alone.
pub type Finish<'a> = &'a (dyn Fn(usize, *mut u8, usize) + Sync);

/// Output of a product.
#[derive(Clone, Copy)]
pub(super) struct Target<'a, T> {
    /// Has contiguous rows.
    pub out: *mut T,
    pub addend: Addend<T>,
    pub finish: Option<Finish<'a>>,
    pub parallel: bool,
}

/// `alpha * a * b`, or that with something added, in contiguous rows.
///
/// # Safety
///
/// `a.cols == b.rows`; all elements of `a` and `b` must be readable, and those of the target not
/// accessed by anyone else.
pub(super) unsafe fn product<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    target: Target<'_, T>,
) {
    let Target { out, addend, finish, parallel } = target;
    // SAFETY: the caller's promise; a transposed product has the same elements in the same order if
    // it is one column.
    unsafe {
        let one_row = a.rows == 1 && (b.row == 1 || b.col == 1);
        if one_row || (b.cols == 1 && (a.row == 1 || a.col == 1)) {
            let add = laid_out(addend, a.rows, b.cols, out);
            let (a, b) = if one_row { (a, b) } else { (b.transposed(), a.transposed()) };
            row(kernels, alpha, a, b, add, out, parallel);
            if let Some(finish) = finish {
                finish(0, out.cast(), b.cols);
            }
            return;
        }
        if !parallel && fits(&a, &b) {
            let left = Block { data: a.data, row: a.row, col: a.col };
            let plus = match addend {
                Addend::Nothing => None,
                Addend::Output => Some((out.cast_const(), b.cols)),
                Addend::Row(row) => Some((row.at(0).cast_const(), 0)),
            };
            let (sizes, right) = ([a.rows, a.cols, b.cols], (b.data, b.row));
            panels(kernels, sizes, alpha, left, right, plus, (out, b.cols));
            if let Some(finish) = finish {
                finish(0, out.cast(), a.rows * b.cols);
            }
            return;
        }
        Plan::new(kernels, alpha, a, b, target).run();
    }
}

/// Writes a row that is to be added to every row of the output, and says whether the product is
/// added to the output.
///
/// # Safety
///
/// The row must be readable, and the output writable.
pub(super) unsafe fn laid_out<T: Copy>(
    addend: Addend<T>,
    rows: usize,
    cols: usize,
    out: *mut T,
) -> bool {
    if let Addend::Row(from) = addend {
        for i in 0..rows {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(from.at(0), out.add(i * cols), cols) };
        }
    }
    !matches!(addend, Addend::Nothing)
}

/// A product of which A is one row, and B has contiguous rows or columns.
///
/// # Safety
///
/// As [`product`].
unsafe fn row<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    add: bool,
    out: *mut T,
    parallel: bool,
) {
    // Dot products win where both would do: a single column is a single dot product.
    let dots = b.row == 1 && (b.col != 1 || b.cols == 1);
    let (k, n) = (b.rows, b.cols);
    let wide = if k.saturating_mul(n) >= THREADED_ROW_WORK { ROW_TASK_COLS } else { n };
    let (out, b_data) = (Shared(out), Shared(b.data.cast_mut()));
    let gathered = if dots && a.col != 1 { k } else { 0 };
    with_buffer(gathered, |buffer: *mut T| {
        // Dot products need the row without gaps.
        // SAFETY: the buffer has room for the `gathered` numbers of the row, which are readable.
        let left = unsafe {
            for p in 0..gathered {
                *buffer.add(p) = *a.data.add(p * a.col);
            }
            Shared(if gathered > 0 { buffer } else { a.data.cast_mut() })
        };
        run(n.div_ceil(wide), parallel, |task| {
            let from = task * wide;
            let len = wide.min(n - from);
            // SAFETY: each task has columns of its own, and reads operands that the caller promises
            // to be valid.
            unsafe {
                let out = std::slice::from_raw_parts_mut(out.at(from), len);
                if !dots {
                    if !add {
                        out.fill(T::default());
                    }
                    (kernels.row)(
                        k,
                        len,
                        alpha,
                        left.at(0),
                        a.col,
                        b_data.at(from),
                        b.row,
                        out.as_mut_ptr(),
                    );
                    return;
                }
                for (j, out) in out.iter_mut().enumerate() {
                    let dot = alpha * (kernels.dot)(k, left.at(0), b_data.at((from + j) * b.col));
                    *out = if add { *out + dot } else { dot };
                }
            }
        });
    });
}
