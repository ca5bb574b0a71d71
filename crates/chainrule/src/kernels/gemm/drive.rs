//! How a product is cut: what is packed, in which order the panels are computed, and what goes to which thread.
//!
//! The common axis is cut into blocks of `DEPTH`, always from its beginning; within a block an element of the result
//! is one chain of multiply-adds, and the blocks are added in order. The tiles, the packing and the threads therefore
//! cannot change a single bit: they only decide when and where an element is computed. (A product with a single row
//! or column goes its own way, which is fixed as well.)

use super::tile::{Element, Kernels, Panel, Source};
use crate::kernels::threads;
use std::cell::Cell;
use std::ops::Range;

/// Length of a block of the common axis: a packed panel of 48 columns by 256 is 48 KiB.
const DEPTH: usize = 256;
/// What is packed at a time: at most so much of the common axis, of the rows and of the columns.
const DEPTH_GROUP: usize = 4 * DEPTH;
const ROWS_GROUP: usize = 1536;
const COLS_GROUP: usize = 1536;
/// Rows and columns of one task at least.
const TASK_ROWS: usize = 96;
const TASK_COLS: usize = 192;
/// Multiplications of one task at least, about 20 us.
pub(super) const TASK_WORK: usize = 2 << 20;
/// Below so many multiplications a product stays on the calling thread: waking another costs 10 to 25 us.
const THREADED_WORK: usize = 6 << 20;
/// Packing fewer numbers stays on the calling thread, for the same reason.
const THREADED_PACK: usize = 256 << 10;
/// A right operand of up to so many numbers is read where it lies, if its rows are contiguous.
const DIRECT_B: usize = 16 << 10;
/// A left operand of up to so many numbers is read where it lies.
const DIRECT_A: usize = 16 << 10;
/// Columns of one task where a single row is multiplied, and the matrix size from which there are tasks at all.
const ROW_TASK_COLS: usize = 256;
const THREADED_ROW_WORK: usize = 1 << 20;

/// Up to so many depths, the rows of the result are finished one after the other.
const SHALLOW: usize = 16;

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
    fn at(&self, row: usize, col: usize) -> *const T {
        self.data.wrapping_add(row * self.row + col * self.col)
    }

    fn transposed(self) -> Self {
        Operand { data: self.data, rows: self.cols, cols: self.rows, row: self.col, col: self.row }
    }
}

/// What is added to a product.
#[derive(Clone, Copy)]
pub(super) enum Addend<T> {
    Nothing,
    /// What the output holds.
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
pub(in crate::kernels) struct Shared<T>(pub *mut T);

// SAFETY: each task touches its own part behind the address, or only reads.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    pub fn at(&self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// Whether a product of so much work is worth more than one thread.
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

impl Room {
    /// Without memory yet.
    pub const fn new() -> Room {
        Room(Cell::new(Vec::new()))
    }

    /// Calls `f` with room for `len` numbers, whose contents are arbitrary numbers.
    pub fn with<T: Element, R>(&self, len: usize, f: impl FnOnce(*mut T) -> R) -> R {
        if len == 0 {
            return f(std::ptr::null_mut());
        }
        // Taken, not borrowed: while this thread waits for others it may come here again.
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
pub fn with_buffer<T: Element, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> R {
    PACKED.with(|room| room.with(len, f))
}

/// What is done with stretches of a product's elements once they are complete: it is given the number of the first, its address, and how many there are.
/// It may change them. The stretches are apart, several threads may come at the same time, and where a stretch ends depends on the sizes alone.
pub type Finish<'a> = &'a (dyn Fn(usize, *mut u8, usize) + Sync);

/// Where a product goes.
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
/// `a.cols == b.rows`; all elements of `a` and `b` must be readable, and those of the target writable by nobody else.
pub(super) unsafe fn product<T: Element>(
    kernels: &'static Kernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    target: Target<'_, T>,
) {
    let Target { out, addend, finish, parallel } = target;
    // SAFETY: the caller's promise; a transposed product has the same elements in the same order if it is one column.
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
        let plan = Plan::new(kernels, alpha, a, b, target);
        let rows = if plan.pack_a { a.rows.min(ROWS_GROUP) } else { a.rows };
        let cols = if plan.pack_b { b.cols.min(COLS_GROUP) } else { b.cols };
        let depth = if plan.pack_a || plan.pack_b { a.cols.min(DEPTH_GROUP) } else { a.cols };
        let a_len = if plan.pack_a { rows.next_multiple_of(kernels.rows) * depth } else { 0 };
        let b_len = if plan.pack_b { cols.next_multiple_of(kernels.lanes) * depth } else { 0 };
        // Both parts stay aligned.
        let a_room = a_len.next_multiple_of(64);
        with_buffer(a_room + b_len, |buffer: *mut T| {
            let (a_buffer, b_buffer) = (Shared(buffer), Shared(buffer.wrapping_add(a_room)));
            for col in (0..b.cols).step_by(cols) {
                for start in (0..a.cols).step_by(depth) {
                    for row in (0..a.rows).step_by(rows) {
                        let group = Group {
                            plan: &plan,
                            row,
                            rows: rows.min(a.rows - row),
                            col,
                            cols: cols.min(b.cols - col),
                            start,
                            depth: depth.min(a.cols - start),
                            a_buffer,
                            b_buffer,
                        };
                        group.pack(row == 0);
                        group.compute();
                    }
                }
            }
        });
    }
}

/// Writes a row that is to be added to every row of the output, and says whether the product is added to the output.
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

/// A product and the decisions that its sizes and strides lead to.
struct Plan<'a, T: 'static> {
    kernels: &'static Kernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    addend: Addend<T>,
    finish: Option<Finish<'a>>,
    out: Shared<T>,
    parallel: bool,
    pack_a: bool,
    pack_b: bool,
}

impl<'a, T: Element> Plan<'a, T> {
    fn new(
        kernels: &'static Kernels<T>,
        alpha: T,
        a: Operand<T>,
        b: Operand<T>,
        target: Target<'a, T>,
    ) -> Self {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        Plan {
            kernels,
            alpha,
            a,
            b,
            addend: target.addend,
            finish: target.finish,
            out: Shared(target.out),
            parallel: target.parallel,
            pack_a: a.col != 1 && m.saturating_mul(k) > DIRECT_A && n > 2 * kernels.cols,
            pack_b: b.col != 1 || (k.saturating_mul(n) > DIRECT_B && m > 2 * kernels.rows),
        }
    }
}

/// The part of a product that is packed at a time.
struct Group<'a, T: 'static> {
    plan: &'a Plan<'a, T>,
    row: usize,
    rows: usize,
    col: usize,
    cols: usize,
    start: usize,
    depth: usize,
    a_buffer: Shared<T>,
    b_buffer: Shared<T>,
}

impl<T: Element> Group<'_, T> {
    /// Packs the left operand, and the right one if `right`.
    ///
    /// # Safety
    ///
    /// The operands must be readable; the buffers must have room for the group.
    unsafe fn pack(&self, right: bool) {
        let Plan { kernels, a, b, pack_a, pack_b, .. } = *self.plan;
        let blocks = self.depth.div_ceil(DEPTH);
        // Full strips and panels only, so that tasks write apart from each other.
        let (a_lines, b_lines) = (8 * kernels.rows, 2 * kernels.cols);
        let a_tasks = if pack_a { self.rows.div_ceil(a_lines) } else { 0 };
        let b_tasks = if pack_b && right { self.cols.div_ceil(b_lines) } else { 0 };
        let task = |task: usize| {
            let (block, part) = (task / (a_tasks + b_tasks), task % (a_tasks + b_tasks));
            let from = block * DEPTH;
            let k = DEPTH.min(self.depth - from);
            // SAFETY: the part lies inside the operand, and its place inside the buffer belongs to this task alone.
            unsafe {
                if part < a_tasks {
                    let line = part * a_lines;
                    let data = a.at(self.row + line, self.start + from);
                    let len = a_lines.min(self.rows - line);
                    let padded = self.rows.next_multiple_of(kernels.rows);
                    let to = self.a_buffer.at(padded * from + line * k);
                    let source = Source { data, line: a.row, depth: a.col, len, k };
                    kernels.pack(&source, to, kernels.rows, kernels.rows);
                } else {
                    let line = (part - a_tasks) * b_lines;
                    let data = b.at(self.start + from, self.col + line);
                    let len = b_lines.min(self.cols - line);
                    let padded = self.cols.next_multiple_of(kernels.lanes);
                    let to = self.b_buffer.at(padded * from + line * k);
                    let source = Source { data, line: b.col, depth: b.row, len, k };
                    kernels.pack(&source, to, kernels.cols, kernels.lanes);
                }
            }
        };
        let numbers = (a_tasks * a_lines + b_tasks * b_lines) * self.depth;
        run(blocks * (a_tasks + b_tasks), self.plan.parallel && numbers >= THREADED_PACK, task);
    }

    /// Computes the group, task by task.
    ///
    /// # Safety
    ///
    /// As [`product`]; what is to be packed must be packed.
    unsafe fn compute(&self) {
        let kernels = self.plan.kernels;
        let (mut rows, mut cols) = (self.rows, self.cols);
        if (self.rows * self.cols).saturating_mul(self.depth) > TASK_WORK {
            cols = cols.min(TASK_COLS);
            rows = rows
                .min(TASK_ROWS.max(TASK_WORK / (cols * self.depth)).next_multiple_of(kernels.rows));
            cols = self
                .cols
                .min(cols.max(TASK_WORK / (rows * self.depth)).next_multiple_of(kernels.cols));
        }
        let down = self.rows.div_ceil(rows);
        let across = self.cols.div_ceil(cols);
        run(down * across, self.plan.parallel, |task| {
            let (row, col) = (task % down * rows, task / down * cols);
            let (end, cols) = (self.rows.min(row + rows), cols.min(self.cols - col));
            // With few depths, writing the result is the work: it goes row by row, not panel by panel.
            let step = if self.depth <= SHALLOW { 2 * kernels.rows } else { rows };
            for row in (row..end).step_by(step) {
                // SAFETY: the tasks are disjoint parts of the group.
                unsafe { self.part(row, step.min(end - row), col, cols) }
            }
            if let Some(finish) = self.plan.finish
                && self.start + self.depth == self.plan.a.cols
            {
                self.complete(finish, row..end, col..col + cols);
            }
        });
    }

    /// Hands on some rows and columns of the group.
    fn complete(&self, finish: Finish<'_>, rows: Range<usize>, cols: Range<usize>) {
        let n = self.plan.b.cols;
        let first = (self.row + rows.start) * n + self.col + cols.start;
        let stretch = |first, count| finish(first, self.plan.out.at(first).cast(), count);
        if cols.len() == n {
            stretch(first, rows.len() * n);
        } else {
            (0..rows.len()).for_each(|i| stretch(first + i * n, cols.len()));
        }
    }

    /// Computes some rows and columns of the group: both starts are multiples of a strip and of a panel.
    ///
    /// # Safety
    ///
    /// As [`Group::compute`]; the part must lie inside the group.
    unsafe fn part(&self, row: usize, rows: usize, col: usize, cols: usize) {
        let Plan { kernels, alpha, a, b, addend, out, pack_a, pack_b, .. } = *self.plan;
        let out_row = b.cols;
        for from in (0..self.depth).step_by(DEPTH) {
            let k = DEPTH.min(self.depth - from);
            let (strip, a_row, a_col) = if pack_a {
                (kernels.rows * k, 1, kernels.rows)
            } else {
                (kernels.rows * a.row, a.row, a.col)
            };
            // SAFETY: the addresses are those of the part, in the operand or in the buffer that `pack` filled.
            unsafe {
                let left = if pack_a {
                    self.a_buffer
                        .at(self.rows.next_multiple_of(kernels.rows) * from + row * k)
                        .cast_const()
                } else {
                    a.at(self.row + row, self.start + from)
                };
                for j in (col..col + cols).step_by(kernels.cols) {
                    let wide = kernels.cols.min(self.cols - j);
                    let (right, b_row) = if pack_b {
                        let padded = self.cols.next_multiple_of(kernels.lanes);
                        let at = self.b_buffer.at(padded * from + j * k).cast_const();
                        (at, wide.next_multiple_of(kernels.lanes))
                    } else {
                        (b.at(self.start + from, self.col + j), b.row)
                    };
                    let to = out.at((self.row + row) * out_row + self.col + j);
                    let (plus, plus_row) = match addend {
                        Addend::Row(numbers) if self.start + from == 0 => {
                            (numbers.at(self.col + j), 0)
                        }
                        _ => (to, out_row),
                    };
                    kernels.panel(&Panel {
                        rows,
                        k,
                        a: left,
                        a_strip: strip,
                        a_row,
                        a_col,
                        b: right,
                        b_row,
                        cols: wide,
                        alpha,
                        add: self.start + from > 0 || !matches!(addend, Addend::Nothing),
                        plus: plus.cast_const(),
                        plus_row,
                        out: to,
                        out_row,
                    });
                }
            }
        }
    }
}

/// A product of which the left operand is one row, and the right one has contiguous rows or columns.
///
/// # Safety
///
/// As [`product`].
unsafe fn row<T: Element>(
    kernels: &'static Kernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    add: bool,
    out: *mut T,
    parallel: bool,
) {
    // Where both would do: a single column is a single dot product.
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
            // SAFETY: each task has columns of its own, and reads what the caller vouches for.
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
