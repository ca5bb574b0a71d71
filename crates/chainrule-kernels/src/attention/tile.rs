//! One tile: the scores of some queries with some keys, and their softmax row by row.

use super::form::Form;
use super::{AttentionReal, Grid, Mask, Problem, QUERIES};
use crate::gemm::{self, Block};
use crate::simd::vectorized;

/// The queries from `first_query` on with the keys from `first_key` on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub pair: usize,
    pub first_query: usize,
    pub queries: usize,
    pub first_key: usize,
    pub keys: usize,
}

impl Tile {
    /// The number of keys, rounded up to whole panels: the row length of the tile. Scores past the
    /// last key are minus infinity.
    pub fn wide<T: AttentionReal>(&self) -> usize {
        self.keys.next_multiple_of(gemm::panel_lines::<T>())
    }
}

/// `out = alpha * lines packed^T` for the queries and keys of a tile. `packed` holds all lines of
/// the other operand in panels; `steps` is the number of steps along the depth.
///
/// # Safety
///
/// The queries' rows at `rows` must be readable, as must `packed` up to the last key; `out` has
/// room for the tile.
pub(super) unsafe fn products<T: AttentionReal>(
    form: &Form<T>,
    tile: &Tile,
    steps: usize,
    alpha: T,
    (rows, row): (*const T, usize),
    packed: *const T,
    out: &mut [T],
) {
    let (lines, wide) = (gemm::panel_lines::<T>(), tile.wide::<T>());
    assert!(out.len() >= tile.queries * wide);
    let a = Block { data: rows, row, col: 1 };
    let b = (packed.wrapping_add(tile.first_key * steps), lines * steps);
    let (sizes, to) = ([tile.queries, steps, tile.keys], (out.as_mut_ptr(), wide));
    // SAFETY: the caller's promise; the first key of a tile begins a panel.
    unsafe { gemm::block_packed(form.kernels, sizes, alpha, a, b, false, to) }
}

/// Applies the mask and the causal rule to the scores, and fills the rows up with minus infinity.
pub(super) fn exclude<T: AttentionReal>(problem: &Problem<'_, T>, tile: &Tile, scores: &mut [T]) {
    let wide = tile.wide::<T>();
    let last_seen = if problem.causal { tile.first_query + 1 } else { usize::MAX };
    if tile.keys == wide
        && last_seen >= tile.first_key + tile.keys
        && matches!(problem.mask, Mask::None)
    {
        return;
    }
    for (i, row) in scores.chunks_exact_mut(wide).take(tile.queries).enumerate() {
        let query = tile.first_query + i;
        let seen = problem.seen(query + 1).saturating_sub(tile.first_key).min(tile.keys);
        row[seen..].fill(-T::INFINITY);
        let row = &mut row[..seen];
        match problem.mask {
            Mask::None => {}
            Mask::Keep(grid) => each(&grid, problem, tile, query, row, |score, keep| {
                if keep == 0 {
                    *score = -T::INFINITY;
                }
            }),
            Mask::Add(grid) => each(&grid, problem, tile, query, row, |score, more| *score += more),
        }
    }
}

/// Calls `f` with the scores of each query and the numbers of the grid that belong to them.
fn each<T: AttentionReal, M: Copy>(
    grid: &Grid<'_, M>,
    problem: &Problem<'_, T>,
    tile: &Tile,
    query: usize,
    row: &mut [T],
    f: impl Fn(&mut T, M),
) {
    if row.is_empty() {
        return;
    }
    let at = problem.offset(tile.pair, grid.batch) + query * grid.row + tile.first_key * grid.col;
    match grid.col {
        0 => row.iter_mut().for_each(|score| f(score, grid.data[at])),
        1 => row.iter_mut().zip(&grid.data[at..]).for_each(|(score, &m)| f(score, m)),
        col => {
            let numbers = grid.data[at..].iter().step_by(col);
            row.iter_mut().zip(numbers).for_each(|(score, &m)| f(score, m));
        }
    }
}

/// The running maximum and sum of each row in a block of queries.
#[derive(Clone, Copy)]
pub(super) struct Running<T> {
    /// The largest score.
    pub max: [T; QUERIES],
    /// The sum of the exponentials of the scores less the largest.
    pub sum: [f64; QUERIES],
    /// Factor by which the last tile rescaled the earlier sums.
    pub shrink: [T; QUERIES],
}

impl<T: AttentionReal> Running<T> {
    pub fn new() -> Self {
        Running { max: [-T::INFINITY; QUERIES], sum: [0.0; QUERIES], shrink: [T::ZERO; QUERIES] }
    }
}

/// The number to subtract before exponentials are taken: 0 for a row that has seen no key yet.
#[inline(always)]
fn shift<T: AttentionReal>(max: T) -> T {
    if max == -T::INFINITY { <T as crate::math::Real>::ZERO } else { max }
}

#[inline(always)]
fn soften_body<const FMA: bool, T: AttentionReal>(
    scores: &mut [T],
    wide: usize,
    running: &mut Running<T>,
) {
    let state = running.max.iter_mut().zip(&mut running.sum).zip(&mut running.shrink);
    for (row, ((max, sum), shrink)) in scores.chunks_exact_mut(wide).zip(state) {
        let before = *max;
        let largest = T::row_max(row);
        if largest > before {
            *max = largest;
        }
        let by = shift(*max);
        *shrink = (before - by).exp::<FMA>();
        for score in row.iter_mut() {
            *score = (*score - by).exp::<FMA>();
        }
        *sum = *sum * shrink.to_f64() + T::row_sum(row).to_f64();
    }
}

vectorized! {
    /// Turns the scores of a tile into exponentials, less the largest score seen so far.
    pub(super) fn soften[T](scores: &mut [T], wide: usize, running: &mut Running<T>) where [T: AttentionReal] = soften_body
}

#[inline(always)]
fn weights_body<const FMA: bool, T: AttentionReal>(scores: &mut [T], wide: usize, logs: &[[T; 2]]) {
    for (row, &[most, log]) in scores.chunks_exact_mut(wide).zip(logs) {
        let by = shift(most);
        for score in row.iter_mut() {
            *score = (*score - by - log).exp::<FMA>();
        }
    }
}

vectorized! {
    /// Turns the scores of a tile into weights, from the largest score of each row and the
    /// logarithm of its sum.
    pub(super) fn weights[T](scores: &mut [T], wide: usize, logs: &[[T; 2]]) where [T: AttentionReal] = weights_body
}

#[inline(always)]
fn slopes_body<const FMA: bool, T: AttentionReal>(
    weights: &[T],
    slopes: &mut [T],
    wide: usize,
    dots: &[T],
) {
    let rows = weights.chunks_exact(wide).zip(slopes.chunks_exact_mut(wide));
    for ((weights, slopes), &dot) in rows.zip(dots) {
        for (slope, &weight) in slopes.iter_mut().zip(weights) {
            *slope = weight * (*slope - dot);
        }
    }
}

vectorized! {
    /// From the gradients of the weights to those of the scores: `slope = weight * (slope - dot)`.
    pub(super) fn slopes[T](weights: &[T], slopes: &mut [T], wide: usize, dots: &[T]) where [T: AttentionReal] = slopes_body
}
