//! The gradients of queries, keys and values, from tiles of weights that are recomputed.

use super::form::Form;
use super::tile::{Tile, exclude, products, slopes, weights};
use super::{
    AttentionReal, HeadAddress, Heads, HeadsMut, KEYS, Problem, QUERIES, each_pair, inside,
    packed_len,
};
use crate::gemm::{self, Block};

/// Results kept by the forward pass, and the gradient of its output.
#[derive(Clone, Copy, Debug)]
pub struct AttentionUpstream<'a, T> {
    /// The result.
    pub out: Heads<'a, T>,
    /// The largest score of each row, and the logarithm of the sum of the exponentials below it.
    pub logs: &'a [[T; 2]],
    /// The gradient of the result.
    pub g: Heads<'a, T>,
}

/// Destinations of the gradients.
pub struct Gradients<'a, T> {
    pub dq: HeadsMut<'a, T>,
    pub dk: HeadsMut<'a, T>,
    pub dv: HeadsMut<'a, T>,
}

/// With the weights `p` and the upstream gradient `g`: `dv = p^T g`,
/// `ds = p * (g v^T - sum(g * out))`, `dq = scale ds k`, `dk = scale ds^T q`.
///
/// # Panics
///
/// If an operand reaches outside its data.
pub fn backward<T: AttentionReal>(
    problem: &Problem<'_, T>,
    up: AttentionUpstream<'_, T>,
    to: Gradients<'_, T>,
) {
    let Problem { sizes, queries, keys, depth, width, .. } = *problem;
    problem.check();
    inside("the result", sizes, &up.out, queries, width);
    inside("the gradient", sizes, &up.g, queries, width);
    assert_eq!(up.logs.len(), problem.pairs() * queries, "attention: two numbers for each row");
    let places = [(&to.dq, queries, depth), (&to.dk, keys, depth), (&to.dv, keys, width)];
    for (heads, rows, width) in places {
        let written = Heads { data: &*heads.data, batch: heads.batch, row: heads.row };
        inside("a gradient", sizes, &written, rows, width);
    }
    let [dq, dk, dv] = [to.dq, to.dk, to.dv]
        .map(|heads| (HeadAddress(heads.data.as_mut_ptr()), heads.batch, heads.row));
    let (tile, form) = (QUERIES * KEYS, Form::<T>::new(problem.bf16));
    let keys_len = packed_len::<T>(keys, depth);
    let values_len = packed_len::<T>(keys, width);
    let lengths = [
        tile,
        tile,
        keys_len,
        values_len,
        packed_len::<T>(depth, keys),
        keys * depth,
        keys * width,
        form.room((keys * depth.max(width)).max(QUERIES * (2 * (depth + width) + 3 * KEYS))),
    ];
    each_pair(problem, |pair| {
        let read = |heads: &Heads<'_, T>| {
            let start = problem.offset(pair, heads.batch);
            (heads.data.as_ptr().wrapping_add(start), heads.row)
        };
        let write = |(address, batch, row): (HeadAddress<T>, &[usize], usize)| {
            (address.at(problem.offset(pair, batch)), row)
        };
        gemm::with_buffer(lengths.iter().sum(), |buffer: *mut T| {
            let mut next = buffer;
            let [weights, slopes, keys_at, values_at, columns_at, dk_at, dv_at, room] = lengths
                .map(|len| {
                    let at = next;
                    next = next.wrapping_add(len);
                    at
                });
            // SAFETY: all elements were found inside their data; the buffer has room for everything
            // that is put there; the rows of the gradients of this pair belong to this task alone.
            unsafe {
                let (k, v) = (read(&problem.k), read(&problem.v));
                let (lines, row) = form.along(k, [keys, depth], room);
                gemm::pack_lines(lines, row, [keys, form.steps(depth)], keys_at);
                let (lines, row) = form.along(v, [keys, width], room);
                gemm::pack_lines(lines, row, [keys, form.steps(width)], values_at);
                let (columns, row) = form.across(k, [keys, depth], room);
                gemm::pack_columns(columns, row, [form.steps(keys), depth], columns_at);
                std::slice::from_raw_parts_mut(dk_at, keys * (depth + width)).fill(T::ZERO);
                let pair = BackwardHead {
                    problem,
                    form,
                    room,
                    pair,
                    q: read(&problem.q),
                    out: read(&up.out),
                    g: read(&up.g),
                    packed_keys: keys_at,
                    packed_values: values_at,
                    key_columns: columns_at,
                    dq: write(dq),
                    dk: dk_at,
                    dv: dv_at,
                    logs: &up.logs[pair * queries..][..queries],
                };
                let weights = std::slice::from_raw_parts_mut(weights, tile);
                let slopes = std::slice::from_raw_parts_mut(slopes, tile);
                pair.run(weights, slopes);
                spread(dk_at, write(dk), keys, depth);
                spread(dv_at, write(dv), keys, width);
            }
        });
    });
}

/// Copies rows that lie side by side to where they belong.
///
/// # Safety
///
/// `from` must be readable for all rows, and the rows of `to` writable and apart from it.
unsafe fn spread<T: Copy>(from: *const T, (to, row): (*mut T, usize), rows: usize, width: usize) {
    for i in 0..rows {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.add(i * width), to.add(i * row), width) }
    }
}

/// One head of one sequence: each matrix by its address and the distance of its rows.
struct BackwardHead<'a, T: AttentionReal> {
    problem: &'a Problem<'a, T>,
    form: Form<T>,
    /// Scratch space for the rounded copies of a block of queries, followed by those of a tile.
    room: *mut T,
    pair: usize,
    q: (*const T, usize),
    out: (*const T, usize),
    g: (*const T, usize),
    packed_keys: *const T,
    packed_values: *const T,
    /// The keys again, packed by columns.
    key_columns: *const T,
    dq: (*mut T, usize),
    /// Sums over all queries, in rows without gaps.
    dk: *mut T,
    dv: *mut T,
    logs: &'a [[T; 2]],
}

/// A row of a matrix.
///
/// # Safety
///
/// It must be readable for as long as the slice lives.
unsafe fn row<'a, T>((data, row): (*const T, usize), i: usize, width: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.wrapping_add(i * row), width) }
}

/// Sets rows to 0.
///
/// # Safety
///
/// They must be writable.
unsafe fn clear<T: AttentionReal>(
    (data, row): (*mut T, usize),
    rows: std::ops::Range<usize>,
    width: usize,
) {
    for i in rows {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(data.wrapping_add(i * row), width) }.fill(T::ZERO);
    }
}

/// Queries of a block and the gradients of their results, with the depth of products along them
/// and across.
struct QueryBlock<T> {
    q: (*const T, usize),
    g: (*const T, usize),
    q_across: (*const T, usize),
    g_across: (*const T, usize),
}

impl<T: AttentionReal> BackwardHead<'_, T> {
    /// # Safety
    ///
    /// As [`BackwardHead::run`].
    unsafe fn query_block(&self, first: usize, count: usize) -> QueryBlock<T> {
        let (form, Problem { depth, width, .. }) = (&self.form, *self.problem);
        let from = |(data, row): (*const T, usize)| (data.wrapping_add(first * row), row);
        let (q, g) = (from(self.q), from(self.g));
        let mut room = self.room;
        let mut next = |width: usize| {
            let at = room;
            room = room.wrapping_add(QUERIES * width);
            at
        };
        // SAFETY: the caller's promise; each has a part of the room.
        unsafe {
            QueryBlock {
                q: form.along(q, [count, depth], next(depth)),
                g: form.along(g, [count, width], next(width)),
                q_across: form.across(q, [count, depth], next(depth)),
                g_across: form.across(g, [count, width], next(width)),
            }
        }
    }

    /// # Safety
    ///
    /// The addresses must be those of the problem's pair; each slice has room for a tile, and what
    /// is rounded has its own.
    unsafe fn run(&self, weights: &mut [T], slopes: &mut [T]) {
        let Problem { queries, depth, width, .. } = *self.problem;
        for first in (0..queries).step_by(QUERIES) {
            let count = QUERIES.min(queries - first);
            let seen = self.problem.seen(first + count);
            if seen == 0 {
                // SAFETY: the caller's promise.
                unsafe { clear(self.dq, first..first + count, depth) };
            }
            let mut dots = [T::ZERO; QUERIES];
            for (i, dot) in dots[..count].iter_mut().enumerate() {
                // SAFETY: as above.
                *dot = unsafe {
                    T::row_dot(row(self.out, first + i, width), row(self.g, first + i, width))
                };
            }
            // SAFETY: as above.
            let block = unsafe { self.query_block(first, count) };
            for key in (0..seen).step_by(KEYS) {
                let tile = Tile {
                    pair: self.pair,
                    first_query: first,
                    queries: count,
                    first_key: key,
                    keys: KEYS.min(seen - key),
                };
                let room = count * tile.wide::<T>();
                // SAFETY: as above.
                unsafe {
                    self.tile(&tile, &block, [&mut weights[..room], &mut slopes[..room]], &dots)
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`BackwardHead::run`].
    unsafe fn tile(
        &self,
        tile: &Tile,
        block: &QueryBlock<T>,
        [p, ds]: [&mut [T]; 2],
        dots: &[T; QUERIES],
    ) {
        let (problem, form) = (self.problem, &self.form);
        let wide = tile.wide::<T>();
        let (deep, across) = (form.steps(problem.depth), form.steps(problem.width));
        // SAFETY: the caller's promise.
        unsafe { products(form, tile, deep, problem.scale, block.q, self.packed_keys, p) }
        exclude(problem, tile, p);
        weights(p, wide, &self.logs[tile.first_query..][..tile.queries]);
        // SAFETY: as above.
        unsafe { products(form, tile, across, T::ONE, block.g, self.packed_values, ds) }
        // The products leave the end of each row as it was.
        if tile.keys < wide {
            ds.chunks_exact_mut(wide).for_each(|row| row[tile.keys..].fill(T::ZERO));
        }
        self.drop_out(tile, p, ds, dots);
        // SAFETY: as above.
        unsafe { self.accumulate(tile, p, ds, block) }
    }

    /// Turns weights and their gradients into the gradients of the scores, and into the weights
    /// that the forward pass used (after dropout).
    fn drop_out(&self, tile: &Tile, p: &mut [T], ds: &mut [T], dots: &[T; QUERIES]) {
        let wide = tile.wide::<T>();
        let Some(dropout) = self.problem.dropout else {
            return slopes(p, ds, wide, dots);
        };
        let mut factors = [T::ZERO; KEYS];
        let factors = &mut factors[..tile.keys];
        let rows = p.chunks_exact_mut(wide).zip(ds.chunks_exact_mut(wide)).zip(dots);
        for (i, ((p, ds), &dot)) in rows.enumerate() {
            dropout.factors(tile.pair, tile.first_query + i, tile.first_key, factors);
            for ((p, ds), &factor) in p.iter_mut().zip(ds).zip(&*factors) {
                *ds = *p * (*ds * factor - dot);
                *p *= factor;
            }
        }
    }

    /// # Safety
    ///
    /// As [`BackwardHead::run`].
    unsafe fn accumulate(&self, tile: &Tile, p: &[T], ds: &[T], block: &QueryBlock<T>) {
        let (form, Problem { depth, width, scale, .. }) = (&self.form, *self.problem);
        let (wide, lines) = (tile.wide::<T>(), gemm::panel_lines::<T>());
        let (queries, keys) = (tile.queries, tile.keys);
        let room =
            |tiles: usize| self.room.wrapping_add(QUERIES * (2 * (depth + width) + tiles * KEYS));
        let columns = |(data, col): (*const T, usize)| Block { data, row: 1, col };
        let k = self.key_columns.wrapping_add(form.steps(tile.first_key) * lines);
        let k = (k, lines * form.steps(self.problem.keys));
        let dv = (self.dv.wrapping_add(tile.first_key * width), width);
        let dk = (self.dk.wrapping_add(tile.first_key * depth), depth);
        let dq = (self.dq.0.wrapping_add(tile.first_query * self.dq.1), self.dq.1);
        let (kernels, steps) = (form.kernels, form.steps(queries));
        // SAFETY: the caller's promise.
        unsafe {
            let p = columns(form.across((p.as_ptr(), wide), [queries, wide], room(0)));
            gemm::block(kernels, [keys, steps, width], T::ONE, p, block.g_across, true, dv);
            let across = columns(form.across((ds.as_ptr(), wide), [queries, wide], room(1)));
            gemm::block(kernels, [keys, steps, depth], scale, across, block.q_across, true, dk);
            let (data, row) = form.along((ds.as_ptr(), wide), [queries, keys], room(2));
            let (down, sizes) = (Block { data, row, col: 1 }, [queries, form.steps(keys), depth]);
            gemm::block_packed(kernels, sizes, scale, down, k, tile.first_key > 0, dq);
        }
    }
}
