//! How a product is cut: what is packed, in which order the panels are computed, and what goes to which thread.
//!
//! The common axis is cut into blocks of `DEPTH`, always from its beginning; within a block an element of the result
//! is one chain of multiply-adds, and the blocks are added in order. The tiles, the packing and the threads therefore
//! cannot change a single bit: they only decide when and where an element is computed. (A product with a single row
//! or column goes its own way, which is fixed as well.)
//!
//! A left operand whose rows do not lie side by side is packed by each task, for its own rows. A right operand with rows side by side is packed
//! by the first strip that reads it, panel by panel, into a room that stays in the nearest cache: that costs next to nothing, however many
//! tasks do it. To turn another one takes longer, and is done once for all tasks.

use super::tile::{Element, Kernels, Panel, Source};
use crate::kernels::threads;
use std::cell::Cell;
use std::ops::Range;

/// Length of a block of the common axis: a packed panel of 48 columns by 128 is 24 KiB, half of the nearest cache. The same for all processors, since the
/// results depend on it.
const DEPTH: usize = 128;
/// So much of a right operand is turned at a time: at most so much of the common axis, and so many columns.
const DEPTH_GROUP: usize = 8 * DEPTH;
const COLS_GROUP: usize = 1536;
/// Rows and columns of one task at most.
const TASK_ROWS: usize = 192;
const TASK_COLS: usize = 384;
/// Columns of one task at most where somebody waits for the elements: the longer the stretches, the better for them.
const FINISHED_COLS: usize = 768;
/// Rows and columns of one task at least.
const LEAST_ROWS: usize = 64;
const LEAST_COLS: usize = 192;
/// With so many tasks several threads finish at nearly the same time.
const TASKS: usize = 16;
/// Multiplications of one task at least, about 20 us.
pub(super) const TASK_WORK: usize = 2 << 20;
/// Below so many multiplications a product stays on the calling thread: waking another costs 10 to 25 us.
const THREADED_WORK: usize = 6 << 20;
/// Packing fewer numbers stays on the calling thread. That is less than what wakes another: one that is about to compute is awake, or not waited for.
const THREADED_PACK: usize = 24 << 10;
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
    /// The last room for what a task packs for itself, while another may hold the one above.
    static OWN: Room = const { Room::new() };
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
        Plan::new(kernels, alpha, a, b, target).run();
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
    /// Whether each task packs its rows of the left operand.
    pack: bool,
    right: Right,
}

/// How the right operand is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    /// Where it lies.
    Direct,
    /// Where it lies by the first strip of a task, packed by the others.
    OnTheWay,
    /// Turned for all tasks.
    Turned,
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
        let large = k.saturating_mul(n) > DIRECT_B && m > 2 * kernels.rows && k > SHALLOW;
        Plan {
            kernels,
            alpha,
            a,
            b,
            addend: target.addend,
            finish: target.finish,
            out: Shared(target.out),
            parallel: target.parallel,
            pack: a.col != 1 && m.saturating_mul(k) > DIRECT_A && n > 2 * kernels.cols,
            right: match b.col {
                1 if large => Right::OnTheWay,
                1 => Right::Direct,
                _ => Right::Turned,
            },
        }
    }

    /// Computes the product.
    ///
    /// # Safety
    ///
    /// As [`product`].
    unsafe fn run(&self) {
        let (k, n) = (self.a.cols, self.b.cols);
        let (depth, cols) = match self.right {
            Right::Turned => (k.min(DEPTH_GROUP), n.min(COLS_GROUP)),
            _ => (k, n),
        };
        let turned = match self.right {
            Right::Turned => cols.next_multiple_of(self.kernels.lanes) * depth,
            _ => 0,
        };
        with_buffer(turned, |buffer: *mut T| {
            for col in (0..n).step_by(cols) {
                for start in (0..k).step_by(depth) {
                    let group = Group {
                        plan: self,
                        col,
                        cols: cols.min(n - col),
                        start,
                        depth: depth.min(k - start),
                        turned: Shared(buffer),
                    };
                    // SAFETY: the caller's promise; the buffer has room for a group.
                    unsafe {
                        group.turn();
                        group.compute();
                    }
                }
            }
        });
    }

    /// Rows and columns of a task of a product of this size, and so how it is split.
    fn task(&self, [m, k, n]: [usize; 3]) -> (usize, usize) {
        let most = if self.finish.is_some() { FINISHED_COLS } else { TASK_COLS };
        let (mut down, mut across) = (m.div_ceil(TASK_ROWS), n.div_ceil(most));
        if self.parallel {
            let wanted = (m.saturating_mul(n).saturating_mul(k) / TASK_WORK).min(TASKS);
            while down * across < wanted {
                if self.finish.is_none() && n.div_ceil(across + 1) >= LEAST_COLS {
                    across += 1;
                } else if m.div_ceil(down + 1) >= LEAST_ROWS {
                    down += 1;
                } else {
                    break;
                }
            }
        }
        let rows = m.div_ceil(down).next_multiple_of(self.kernels.rows);
        (rows, n.div_ceil(across).next_multiple_of(self.kernels.cols))
    }
}

/// Some columns of a product, and some of the common axis: what is turned at a time.
struct Group<'a, T: 'static> {
    plan: &'a Plan<'a, T>,
    col: usize,
    cols: usize,
    start: usize,
    depth: usize,
    turned: Shared<T>,
}

impl<T: Element> Group<'_, T> {
    /// Turns the right operand, if that is how it is read.
    ///
    /// # Safety
    ///
    /// The operand must be readable; the buffer must have room for the group.
    unsafe fn turn(&self) {
        let Plan { kernels, b, right, parallel, .. } = *self.plan;
        if right != Right::Turned {
            return;
        }
        let blocks = self.depth.div_ceil(DEPTH);
        // Full panels only, so that tasks write apart from each other.
        let lines = 2 * kernels.cols;
        let parts = self.cols.div_ceil(lines);
        let shared = parallel && parts * lines * self.depth >= THREADED_PACK;
        run(blocks * parts, shared, |task| {
            let (block, line) = (task / parts, task % parts * lines);
            let from = block * DEPTH;
            let k = DEPTH.min(self.depth - from);
            let data = b.at(self.start + from, self.col + line);
            let len = lines.min(self.cols - line);
            let source = Source { data, line: b.col, depth: b.row, len, k };
            // SAFETY: the part lies inside the operand, and its place inside the buffer belongs to this task alone.
            unsafe {
                let to = self.turned.at(self.place(from, k, line));
                kernels.pack(&source, to, kernels.cols, kernels.lanes);
            }
        });
    }

    /// Where in the buffer the panel that begins with this column is, of the `k` depths from `from` on.
    fn place(&self, from: usize, k: usize, col: usize) -> usize {
        self.cols.next_multiple_of(self.plan.kernels.lanes) * from + col * k
    }

    /// Computes the group, task by task.
    ///
    /// # Safety
    ///
    /// As [`product`]; what is to be turned must be turned.
    unsafe fn compute(&self) {
        let m = self.plan.a.rows;
        let (rows, cols) = self.plan.task([m, self.depth, self.cols]);
        let down = m.div_ceil(rows);
        let across = self.cols.div_ceil(cols);
        run(down * across, self.plan.parallel, |task| {
            // Row by row, so that each thread writes rows of its own where it can: the ops that follow read rows.
            let (row, col) = (task / across * rows, task % across * cols);
            let part = Part {
                group: self,
                rows: row..m.min(row + rows),
                cols: col..self.cols.min(col + cols),
            };
            // SAFETY: the tasks are disjoint parts of the group.
            unsafe { part.compute() }
            if let Some(finish) = self.plan.finish
                && self.start + self.depth == self.plan.a.cols
            {
                part.complete(finish);
            }
        });
    }
}

/// What one task computes: rows of the product and columns of a group. Both begin with a full strip or panel.
struct Part<'a, T: 'static> {
    group: &'a Group<'a, T>,
    rows: Range<usize>,
    cols: Range<usize>,
}

/// Some rows of the left operand and some of the common axis, as a task reads them.
struct Left<T> {
    data: *const T,
    strip: usize,
    row: usize,
    col: usize,
}

impl<T: Element> Part<'_, T> {
    /// Computes the part.
    ///
    /// # Safety
    ///
    /// As [`Group::compute`].
    unsafe fn compute(&self) {
        let Plan { kernels, a, pack, right, .. } = *self.group.plan;
        let (rows, depth) = (self.rows.len(), self.group.depth.min(DEPTH));
        let left_len = if pack { rows.next_multiple_of(kernels.rows) * depth } else { 0 };
        let right_len = if right == Right::OnTheWay { kernels.cols * depth } else { 0 };
        // Both parts stay aligned.
        let left_room = left_len.next_multiple_of(64);
        OWN.with(|room| {
            room.with(left_room + right_len, |buffer: *mut T| {
                for from in (0..self.group.depth).step_by(DEPTH) {
                    let k = DEPTH.min(self.group.depth - from);
                    let data = a.at(self.rows.start, self.group.start + from);
                    let mut left =
                        Left { data, strip: kernels.rows * a.row, row: a.row, col: a.col };
                    if pack {
                        let source = Source { data, line: a.row, depth: a.col, len: rows, k };
                        // SAFETY: the rows lie inside the operand, and the buffer has room for them.
                        unsafe { kernels.pack(&source, buffer, kernels.rows, kernels.rows) }
                        let strip = kernels.rows * k;
                        left = Left { data: buffer, strip, row: 1, col: kernels.rows };
                    }
                    // SAFETY: the caller's promise.
                    unsafe { self.block(from, k, &left, buffer.wrapping_add(left_room)) }
                }
            });
        });
    }

    /// Computes one block of the common axis.
    ///
    /// # Safety
    ///
    /// As [`Group::compute`]; `packed` has room for a panel if the right operand is packed on the way.
    unsafe fn block(&self, from: usize, k: usize, left: &Left<T>, packed: *mut T) {
        let Group { plan, turned, start, .. } = *self.group;
        let Plan { kernels, alpha, b, addend, out, right, .. } = *plan;
        // With few depths, writing the result is the work: it goes row by row, not panel by panel.
        let step =
            if self.group.depth <= SHALLOW { 2 * kernels.rows } else { self.rows.len().max(1) };
        for first in (0..self.rows.len()).step_by(step) {
            let rows = step.min(self.rows.len() - first);
            for j in self.cols.clone().step_by(kernels.cols) {
                let cols = kernels.cols.min(self.cols.end - j);
                let col = self.group.col + j;
                let (data, b_row) = match right {
                    Right::Turned => {
                        let at = turned.at(self.group.place(from, k, j));
                        (at.cast_const(), cols.next_multiple_of(kernels.lanes))
                    }
                    _ => (b.at(start + from, col), b.row),
                };
                let packs = right == Right::OnTheWay && rows >= kernels.rows;
                let to = out.at((self.rows.start + first) * b.cols + col);
                let (plus, plus_row) = match addend {
                    Addend::Row(numbers) if start + from == 0 => (numbers.at(col), 0),
                    _ => (to, b.cols),
                };
                let panel = Panel {
                    rows,
                    k,
                    a: left.data.wrapping_add(first / kernels.rows * left.strip),
                    a_strip: left.strip,
                    a_row: left.row,
                    a_col: left.col,
                    b: data,
                    b_row,
                    packed: if packs { packed } else { std::ptr::null_mut() },
                    cols,
                    alpha,
                    add: start + from > 0 || !matches!(addend, Addend::Nothing),
                    plus: plus.cast_const(),
                    plus_row,
                    out: to,
                    out_row: b.cols,
                };
                // SAFETY: the addresses are those of the part, in the operands or in what was packed.
                unsafe { kernels.panel(&panel) }
            }
        }
    }

    /// Hands the elements on.
    fn complete(&self, finish: Finish<'_>) {
        let Plan { b, out, .. } = *self.group.plan;
        let first = self.rows.start * b.cols + self.group.col + self.cols.start;
        let stretch = |first, count| finish(first, out.at(first).cast(), count);
        if self.cols.len() == b.cols {
            stretch(first, self.rows.len() * b.cols);
        } else {
            (0..self.rows.len()).for_each(|i| stretch(first + i * b.cols, self.cols.len()));
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
