//! The plan of a product: packing, order of the tiles, and tasks of the threads.
//!
//! The axis k is cut into blocks of `DEPTH`, always from its beginning; within a block an element
//! of the result is one chain of multiply-adds, and the blocks are added in order. The tiles, the
//! packing and the threads therefore cannot change a single bit: they only decide when and where an
//! element is computed.
//!
//! A strip of A, as many rows as a tile has and as deep as a block, stays in L1 while the panels of
//! B, packed, stream by from L2, which gives the 16 bytes a cycle that they need. A tile of C is
//! therefore touched once per block of k, and A is read once: in place, or packed before if its
//! rows are strided and n is large enough to pay for it.
//!
//! Each thread packs B for itself, since numbers that another core has just written come slowly. B
//! is near if a core's own cache holds it: a thread then packs all of it, once in a product, and
//! tasks take whole rows, as the ops before and after do. A far B is packed by each task, only the
//! columns it needs.

use super::drive::{Addend, Finish, Operand, Room, Shared, TASK_WORK, Target, run, with_buffer};
use super::tile::{Ahead, GemmElement, GemmKernels, Panel, STRETCH, Source};
use crate::threads;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Block of k: a strip of 8 rows by 512 is 16 KiB, a third of L1. The same for all processors,
/// since the results depend on it.
const DEPTH: usize = 512;
/// Largest B, in bytes, that counts as near: a core's own cache holds it.
const NEAR: usize = 1 << 20;
/// Pack a strided A when n is at least this.
const PACKED_LEFT: usize = 320;
/// Largest packed group of A, for all tasks: depth in k, and rows.
const DEPTH_GROUP: usize = 2 * DEPTH;
const ROWS_GROUP: usize = 1536;
/// Strips of A that one thread packs at a time.
const STRIPS: usize = 8;
/// Rows and columns of one task at most.
const TASK_ROWS: usize = 192;
const TASK_COLS: usize = 384;
/// Most columns of one task with an epilogue, which runs best on long stretches.
const FINISHED_COLS: usize = 768;
/// Rows and columns of one task at least.
const LEAST_ROWS: usize = 64;
const LEAST_COLS: usize = 192;
/// Bytes of a far B packed at a time.
const OWN: usize = 480 << 10;
/// Limits of such a task: most columns, fewest columns, fewest rows.
const OWN_COLS: usize = 240;
const OWN_LEAST_COLS: usize = 96;
const OWN_LEAST_ROWS: usize = 256;
/// Tasks of a product: enough for several threads to finish at nearly the same time.
const TASKS: usize = 16;
/// Smallest packing that threads share, in numbers. Waking a thread costs more than less packing; a
/// thread that is about to compute is awake already, or not waited for.
const THREADED_PACK: usize = 24 << 10;
/// Largest B read in place, in numbers, if its rows are contiguous.
const DIRECT_B: usize = 16 << 10;
/// Largest A read in place, in numbers.
const DIRECT_A: usize = 16 << 10;
/// Largest k at which a panel stays in L1 while all rows of a task go by.
const FLAT: usize = 128;
/// Largest k at which the rows of C are finished one after the other.
const SHALLOW: usize = 16;

thread_local! {
    /// Scratch buffer of this thread's packed B, and the product it belongs to.
    static RIGHT: (Room, Cell<u64>) = const { (Room::new(), Cell::new(0)) };
}

/// Whether the whole product is near: then one thread computes it without planning.
pub(super) fn fits<T>(a: &Operand<T>, b: &Operand<T>) -> bool {
    let (left, right) = (a.rows.saturating_mul(a.cols), b.rows.saturating_mul(b.cols));
    let depths = SHALLOW + 1..=DEPTH;
    b.col == 1 && left <= DIRECT_A && right <= DIRECT_B && depths.contains(&a.cols)
}

/// A product and the decisions that its sizes and strides lead to.
pub(super) struct Plan<'a, T: 'static> {
    kernels: &'static GemmKernels<T>,
    alpha: T,
    a: Operand<T>,
    b: Operand<T>,
    addend: Addend<T>,
    finish: Option<Finish<'a>>,
    out: Shared<T>,
    parallel: bool,
    /// Whether A is packed.
    pack: bool,
    right: Right,
}

/// How B is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    /// In place.
    Direct,
    /// Packed by each thread, once in this product.
    Near { product: u64 },
    /// Packed by each task.
    Far,
}

impl Right {
    fn near() -> Right {
        static PRODUCTS: AtomicU64 = AtomicU64::new(1);
        Right::Near { product: PRODUCTS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl<'a, T: GemmElement> Plan<'a, T> {
    pub(super) fn new(
        kernels: &'static GemmKernels<T>,
        alpha: T,
        a: Operand<T>,
        b: Operand<T>,
        target: Target<'a, T>,
    ) -> Self {
        let (m, k, n) = (a.rows, a.cols, b.cols);
        let large = k.saturating_mul(n) > DIRECT_B && m > 2 * kernels.rows && k > SHALLOW;
        // B is packed as a whole only if there are enough rows for several tasks.
        let near = k.saturating_mul(n).saturating_mul(size_of::<T>()) <= NEAR
            && (!target.parallel || m >= few() * LEAST_ROWS);
        Plan {
            kernels,
            alpha,
            a,
            b,
            addend: target.addend,
            finish: target.finish,
            out: Shared(target.out),
            parallel: target.parallel,
            pack: a.col != 1 && m.saturating_mul(k) > DIRECT_A && n >= PACKED_LEFT,
            right: match large || b.col != 1 {
                true if near => Right::near(),
                true => Right::Far,
                false => Right::Direct,
            },
        }
    }

    /// Computes the product.
    ///
    /// # Safety
    ///
    /// As [`product`].
    pub(super) unsafe fn run(&self) {
        let (m, k) = (self.a.rows, self.a.cols);
        let (depth, rows, packed) = match self.pack {
            true => {
                // A packed B that is kept has all of k.
                let most = if self.right == Right::Far { DEPTH_GROUP } else { usize::MAX };
                let (depth, rows) = (k.min(most), m.min(ROWS_GROUP));
                (depth, rows, rows.next_multiple_of(self.kernels.rows) * depth)
            }
            false => (k, m, 0),
        };
        with_buffer(packed, |buffer: *mut T| {
            for row in (0..m).step_by(rows) {
                for start in (0..k).step_by(depth) {
                    let group = RowGroup {
                        plan: self,
                        row,
                        rows: rows.min(m - row),
                        start,
                        depth: depth.min(k - start),
                        packed: Shared(buffer),
                    };
                    // SAFETY: the caller's promise; the buffer has room for a group.
                    unsafe {
                        group.pack();
                        group.compute();
                    }
                }
            }
        });
    }

    /// Number of parts into which the rows and the columns of a group of this size are cut.
    fn parts(&self, [m, k, n]: [usize; 3]) -> (usize, usize) {
        let wanted = match self.parallel {
            true => (m.saturating_mul(n).saturating_mul(k) / TASK_WORK).clamp(1, TASKS),
            false => 1,
        };
        // The largest number of parts that leaves at least this much to each, up to the number
        // wanted.
        let cut = |len: usize, most: usize, least: usize, wanted: usize| {
            (len / least).min(wanted).max(len.div_ceil(most))
        };
        let across = match (self.right, self.finish) {
            (Right::Near { .. }, _) => 1,
            (_, Some(_)) => n.div_ceil(FINISHED_COLS),
            (Right::Far, None) => cut(n, OWN_COLS, OWN_LEAST_COLS, wanted),
            (Right::Direct, None) => cut(n, TASK_COLS, LEAST_COLS, wanted),
        };
        if self.right != Right::Far {
            return (cut(m, TASK_ROWS, LEAST_ROWS, wanted.div_ceil(across)), across);
        }
        let down = cut(m, usize::MAX, OWN_LEAST_ROWS, wanted.div_ceil(across));
        // Smaller tasks, although more is packed, rather than threads without a task.
        let few = wanted.min(few());
        let across = across.max(cut(n, FINISHED_COLS, OWN_LEAST_COLS, few.div_ceil(down)));
        (down.max(cut(m, usize::MAX, LEAST_ROWS, few.div_ceil(across))), across)
    }
}

/// With fewer tasks, some thread may have none while another has two.
fn few() -> usize {
    2 * threads::num_threads()
}

/// Some rows of a product and some of k: the part of A packed for all tasks at a time.
struct RowGroup<'a, T: 'static> {
    plan: &'a Plan<'a, T>,
    row: usize,
    rows: usize,
    start: usize,
    depth: usize,
    packed: Shared<T>,
}

impl<T: GemmElement> RowGroup<'_, T> {
    /// Packs A, if that is how it is read.
    ///
    /// # Safety
    ///
    /// The operand must be readable; the buffer must have room for the group.
    unsafe fn pack(&self) {
        let Plan { kernels, a, pack, parallel, .. } = *self.plan;
        if !pack {
            return;
        }
        let blocks = self.depth.div_ceil(DEPTH);
        // Full strips only, so that tasks write apart from each other.
        let lines = STRIPS * kernels.rows;
        let shared = parallel && self.rows * self.depth >= THREADED_PACK;
        run(self.rows.div_ceil(lines) * blocks, shared, |task| {
            let (line, from) = (task / blocks * lines, task % blocks * DEPTH);
            let k = DEPTH.min(self.depth - from);
            let data = a.at(self.row + line, self.start + from);
            let len = lines.min(self.rows - line);
            let source = Source { data, line: a.row, depth: a.col, len, k };
            // SAFETY: the part lies inside the operand, and its place inside the buffer belongs to
            // this task alone.
            unsafe {
                let to = self.packed.at(self.place(from, k, line));
                kernels.pack(&source, to, kernels.rows, kernels.rows);
            }
        });
    }

    /// Offset in the buffer of the strip that begins with this row, of the `k` depths from `from`
    /// on.
    fn place(&self, from: usize, k: usize, row: usize) -> usize {
        self.rows.next_multiple_of(self.plan.kernels.rows) * from + row * k
    }

    /// Computes the group, task by task.
    ///
    /// # Safety
    ///
    /// As [`product`]; the operands that the plan packs must be packed.
    unsafe fn compute(&self) {
        let Plan { kernels, b, finish, parallel, .. } = *self.plan;
        let (down, across) = self.plan.parts([self.rows, self.depth, b.cols]);
        run(down * across, parallel, |task| {
            // Row by row, so that each thread writes rows of its own where it can: the ops that
            // follow read rows.
            let part = ProductPart {
                group: self,
                rows: cut(self.rows, down, task / across, kernels.rows),
                cols: cut(b.cols, across, task % across, kernels.cols),
            };
            // SAFETY: the tasks are disjoint parts of the group.
            unsafe { part.compute() }
            if let Some(finish) = finish
                && self.start + self.depth == self.plan.a.cols
            {
                part.complete(finish);
            }
        });
    }
}

/// Part `index` of `len`, cut into `parts` that differ by at most a unit; each begins with a full
/// one.
fn cut(len: usize, parts: usize, index: usize, unit: usize) -> Range<usize> {
    if parts == 1 {
        return 0..len;
    }
    let units = len.div_ceil(unit);
    let at = |index: usize| len.min(index * units / parts * unit);
    at(index)..at(index + 1)
}

/// The work of one task: rows of a group and columns of the product. Both begin with a full strip
/// or panel.
struct ProductPart<'a, T: 'static> {
    group: &'a RowGroup<'a, T>,
    rows: Range<usize>,
    cols: Range<usize>,
}

/// Some rows of A and some of k, as a task reads them.
struct Left<T> {
    data: *const T,
    strip: usize,
    row: usize,
    col: usize,
    /// The lines of `STRETCH` depths of a strip: how many, and how far apart.
    lines: (usize, usize),
}

impl<T: GemmElement> ProductPart<'_, T> {
    /// Computes the part.
    ///
    /// # Safety
    ///
    /// As [`RowGroup::compute`].
    unsafe fn compute(&self) {
        let RowGroup { plan, depth, .. } = *self.group;
        let Plan { kernels, ref b, right, .. } = *plan;
        let lines = |cols: usize| cols.next_multiple_of(kernels.lanes);
        let own = OWN / (size_of::<T>() * depth.min(DEPTH)) / kernels.cols * kernels.cols;
        let len = match right {
            Right::Direct => 0,
            Right::Near { .. } => lines(b.cols) * b.rows,
            Right::Far => lines(self.cols.len().min(own)) * depth.min(DEPTH),
        };
        RIGHT.with(|(room, holds)| {
            room.with(len, |buffer: *mut T| {
                // SAFETY: the caller's promise; the room is for this many columns.
                unsafe {
                    match right {
                        Right::Direct => self.columns(self.cols.clone(), buffer, false),
                        Right::Near { product } => {
                            let packs = holds.replace(product) != product;
                            self.columns(0..b.cols, buffer, packs);
                        }
                        Right::Far => {
                            holds.set(0);
                            for col in self.cols.clone().step_by(own) {
                                let cols = col..self.cols.end.min(col + own);
                                self.columns(cols, buffer, true);
                            }
                        }
                    }
                }
            });
        });
    }

    /// Computes some columns.
    ///
    /// # Safety
    ///
    /// As [`RowGroup::compute`]; if B is packed, `packed` holds these columns, of a near one of all
    /// depths, or has room for them and they are packed here.
    unsafe fn columns(&self, cols: Range<usize>, packed: *mut T, packs: bool) {
        let RowGroup { plan, start, depth, .. } = *self.group;
        let Plan { kernels, ref b, right, .. } = *plan;
        // The first strip packs what has rows side by side, which overlaps with its products.
        let on_the_way = b.col == 1 && self.rows.len() >= kernels.rows;
        let len = cols.len();
        for from in (0..depth).step_by(DEPTH) {
            let (first, k) = (start + from, DEPTH.min(depth - from));
            let to = match right {
                Right::Near { .. } => {
                    packed.wrapping_add(len.next_multiple_of(kernels.lanes) * first)
                }
                _ => packed,
            };
            // SAFETY: the caller's promise.
            unsafe {
                if packs && !on_the_way {
                    let data = b.at(first, cols.start);
                    let source = Source { data, line: b.col, depth: b.row, len, k };
                    kernels.pack(&source, to, kernels.cols, kernels.lanes);
                }
                self.block(from, k, cols.clone(), to, packs && on_the_way);
            }
        }
    }

    /// The source of this part's rows of A, from a block of k on.
    fn left(&self, from: usize, k: usize) -> Left<T> {
        let RowGroup { plan: Plan { kernels, a, pack, .. }, row, start, packed, .. } = *self.group;
        if *pack {
            let data = packed.at(self.group.place(from, k, self.rows.start)).cast_const();
            let (strip, lines) = (kernels.rows * k, (kernels.rows, STRETCH));
            return Left { data, strip, row: 1, col: kernels.rows, lines };
        }
        let data = a.at(row + self.rows.start, start + from);
        let lines = if a.col == 1 { (kernels.rows, a.row) } else { (STRETCH, a.col) };
        Left { data, strip: kernels.rows * a.row, row: a.row, col: a.col, lines }
    }

    /// Computes one block of k.
    ///
    /// # Safety
    ///
    /// As [`RowGroup::compute`]; `right` holds the block's columns, from the task's first on, if
    /// they are packed, or has room for them if the first strip packs them, which must be a full
    /// one.
    unsafe fn block(
        &self,
        from: usize,
        k: usize,
        all: Range<usize>,
        right: *mut T,
        on_the_way: bool,
    ) {
        let RowGroup { plan, row, start, depth, .. } = *self.group;
        let Plan { kernels, alpha, b, addend, out, .. } = *plan;
        let (left, packed) = (self.left(from, k), plan.right != Right::Direct);
        // A strip goes along the panels; but a panel that is read where it lies, or fits beside the
        // strips, goes down all rows. With few depths writing the result is the work: it goes row
        // by row.
        let along = packed && k > FLAT && all.len() > kernels.cols;
        let step = match along {
            _ if depth <= SHALLOW => 2 * kernels.rows,
            true => kernels.rows,
            false => self.rows.len().max(1),
        };
        for first in (0..self.rows.len()).step_by(step) {
            let rows = step.min(self.rows.len() - first);
            let strip = |first: usize| left.data.wrapping_add(first / kernels.rows * left.strip);
            let asks = along && first + step < self.rows.len();
            for col in all.clone().step_by(kernels.cols) {
                let cols = kernels.cols.min(all.end - col);
                let at = right.wrapping_add((col - all.start) * k);
                let packs = on_the_way && first == 0;
                let (data, b_row) = match packed && !packs {
                    true => (at.cast_const(), cols.next_multiple_of(kernels.lanes)),
                    false => (b.at(start + from, col), b.row),
                };
                let to = out.at((row + self.rows.start + first) * b.cols + col);
                let (plus, plus_row) = match addend {
                    Addend::Row(numbers) if start + from == 0 => (numbers.at(col), 0),
                    _ => (to, b.cols),
                };
                let ahead = match asks && col == all.start {
                    true => Ahead {
                        data: strip(first + step),
                        lines: left.lines,
                        step: STRETCH * left.col,
                    },
                    false => Ahead::NOTHING,
                };
                let panel = Panel {
                    rows,
                    k,
                    a: strip(first),
                    a_strip: left.strip,
                    a_row: left.row,
                    a_col: left.col,
                    packed: if packs { at } else { std::ptr::null_mut() },
                    ahead,
                    b: data,
                    b_row,
                    cols,
                    alpha,
                    add: start + from > 0 || !matches!(addend, Addend::Nothing),
                    plus: plus.cast_const(),
                    plus_row,
                    out: to,
                    out_row: b.cols,
                };
                // SAFETY: the addresses are those of the part, in the operands or in what was
                // packed.
                unsafe { kernels.panel(&panel) }
            }
        }
    }

    /// Hands the elements on.
    fn complete(&self, finish: Finish<'_>) {
        let Plan { b, out, .. } = *self.group.plan;
        let first = (self.group.row + self.rows.start) * b.cols + self.cols.start;
        let stretch = |first, count| finish(first, out.at(first).cast(), count);
        if self.cols.len() == b.cols {
            stretch(first, self.rows.len() * b.cols);
        } else {
            (0..self.rows.len()).for_each(|i| stretch(first + i * b.cols, self.cols.len()));
        }
    }
}
