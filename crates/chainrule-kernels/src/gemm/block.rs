//! Products of blocks that other kernels keep in the cache: on the calling thread, nothing packed,
//! the output with any row stride.

use super::tile::{Ahead, GemmElement, GemmKernels, Panel, Source};

/// A matrix by address: element `(i, j)` is at `data + i * row + j * col`.
#[derive(Clone, Copy)]
pub struct Block<T> {
    pub data: *const T,
    pub row: usize,
    pub col: usize,
}

/// The lines in a panel of [`pack_lines`].
pub fn panel_lines<T: GemmElement>() -> usize {
    2 * T::current().lanes
}

/// `out = alpha * a b`, or that added to `out`, where `a` is m by k and `b` k by n with contiguous
/// rows. Kernels are those of `T` or others of its panels.
///
/// # Safety
///
/// All elements of `a` and `b` must be readable, those of `out` (whose rows are `out_row` apart)
/// writable and no part of `a` or `b`.
pub unsafe fn block<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    sizes: [usize; 3],
    alpha: T,
    a: Block<T>,
    b: (*const T, usize),
    add: bool,
    out: (*mut T, usize),
) {
    let plus = add.then_some((out.0.cast_const(), out.1));
    // SAFETY: the caller's promise.
    unsafe { panels(kernels, sizes, alpha, a, b, plus, out) }
}

/// As [`block`], with any rows added.
///
/// # Safety
///
/// As [`block`]; the addend must be readable, and either be `out` itself or not overlap it.
#[inline]
pub(super) unsafe fn panels<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    [m, k, n]: [usize; 3],
    alpha: T,
    a: Block<T>,
    (b, b_row): (*const T, usize),
    plus: Option<(*const T, usize)>,
    (out, out_row): (*mut T, usize),
) {
    // Panels of nearly the same width: a narrow last one would wait for its own sums.
    let panels = n.div_ceil(kernels.cols).max(1);
    let width = n.div_ceil(panels).next_multiple_of(kernels.lanes);
    let (added, plus_row) = plus.unwrap_or((out, out_row));
    for j in (0..n).step_by(width.max(1)) {
        let panel = Panel {
            rows: m,
            k,
            a: a.data,
            a_strip: kernels.rows * a.row,
            a_row: a.row,
            a_col: a.col,
            b: b.wrapping_add(j),
            b_row,
            packed: std::ptr::null_mut(),
            ahead: Ahead::NOTHING,
            cols: width.min(n - j),
            alpha,
            add: plus.is_some(),
            plus: added.wrapping_add(j),
            plus_row,
            out: out.wrapping_add(j),
            out_row,
        };
        // SAFETY: the caller's promise, for some of the columns.
        unsafe { kernels.panel(&panel) }
    }
}

/// As [`block`], where `b` is packed in panels of [`panel_lines`] columns, `step` apart.
///
/// # Safety
///
/// As [`block`], for the packed numbers.
pub unsafe fn block_packed<T: GemmElement>(
    kernels: &'static GemmKernels<T>,
    [m, k, n]: [usize; 3],
    alpha: T,
    a: Block<T>,
    (b, step): (*const T, usize),
    add: bool,
    (out, out_row): (*mut T, usize),
) {
    let lines = panel_lines::<T>();
    for (panel, j) in (0..n).step_by(lines).enumerate() {
        let b = (b.wrapping_add(panel * step), lines);
        let out = (out.wrapping_add(j), out_row);
        // SAFETY: the caller's promise, for some of the columns.
        unsafe { block(kernels, [m, k, lines.min(n - j)], alpha, a, b, add, out) }
    }
}

/// Packs `len` lines of `k` contiguous numbers, `line` apart, as the columns of panels: number `p`
/// of line `i` goes to `to + i / w * w * k + p * w + i % w`, where `w` is [`panel_lines`].
///
/// # Safety
///
/// The lines must be readable, and `to` writable for `len` rounded up to whole panels, times `k`.
pub unsafe fn pack_lines<T: GemmElement>(
    data: *const T,
    line: usize,
    [len, k]: [usize; 2],
    to: *mut T,
) {
    let (kernels, width) = (T::current(), panel_lines::<T>());
    for first in (0..len).step_by(width) {
        let data = data.wrapping_add(first * line);
        let from = Source { data, line, depth: 1, len: width.min(len - first), k };
        // SAFETY: the caller's promise, for one panel.
        unsafe { kernels.pack_panel(&from, to.wrapping_add(first * k), width) }
    }
}

/// Packs the columns of `rows` rows of `cols` contiguous numbers, `row` apart: number `j` of row
/// `p` goes to `to + j / w * w * rows + p * w + j % w`, where `w` is [`panel_lines`].
///
/// # Safety
///
/// The rows must be readable, and `to` writable for `rows` times `cols` rounded up to whole panels.
pub unsafe fn pack_columns<T: GemmElement>(
    data: *const T,
    row: usize,
    [rows, cols]: [usize; 2],
    to: *mut T,
) {
    let width = panel_lines::<T>();
    for first in (0..cols).step_by(width) {
        let len = width.min(cols - first);
        for p in 0..rows {
            // SAFETY: the caller's promise, for the part of a row that lies in this panel.
            unsafe {
                let (from, to) = (data.add(p * row + first), to.add(first * rows + p * width));
                std::ptr::copy_nonoverlapping(from, to, len);
            }
        }
    }
}
