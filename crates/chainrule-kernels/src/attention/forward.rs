//! The result of attention, with two numbers for each row that the backward pass needs: the largest
//! score and the logarithm of the sum.

use super::form::Form;
use super::tile::{Running, Tile, exclude, products, soften};
use super::{
    AttentionReal, HeadAddress, HeadsMut, KEYS, Problem, QUERIES, each_pair, inside, packed_len,
};
use crate::gemm::{self, Block};

/// Writes the result, and for each of its rows the largest score and `log(sum(exp(score -
/// largest)))`. The two stay apart: in their sum, a mask that adds large numbers would swallow the
/// logarithm. A query that sees no key has a largest score of minus infinity and a result of 0.
///
/// # Panics
///
/// If an operand reaches outside its data.
pub fn forward<T: AttentionReal>(
    problem: &Problem<'_, T>,
    out: HeadsMut<'_, T>,
    logs: &mut [[T; 2]],
) {
    let Problem { sizes, queries, keys, depth, width, .. } = *problem;
    problem.check();
    let written = super::Heads { data: &*out.data, batch: out.batch, row: out.row };
    inside("the result", sizes, &written, queries, width);
    assert_eq!(logs.len(), problem.pairs() * queries, "attention: two numbers for each row");
    let (to, to_logs) = (HeadAddress(out.data.as_mut_ptr()), HeadAddress(logs.as_mut_ptr()));
    each_pair(problem, |pair| {
        let start = |batch| problem.offset(pair, batch);
        let (q, k) = (problem.q.data.as_ptr(), problem.k.data.as_ptr());
        let (q, k) =
            (q.wrapping_add(start(problem.q.batch)), k.wrapping_add(start(problem.k.batch)));
        let v = problem.v.data.as_ptr().wrapping_add(start(problem.v.batch));
        let (scores, form) = (QUERIES * KEYS, Form::<T>::new(problem.bf16));
        let (keys_len, values_len) = (packed_len::<T>(keys, depth), packed_len::<T>(width, keys));
        let rounded = form.room((keys * depth.max(width)).max(QUERIES * (depth + KEYS)));
        gemm::with_buffer(scores + keys_len + values_len + rounded, |buffer: *mut T| {
            // SAFETY: `check` found all elements inside their data; the buffer has room for the
            // scores of a tile, the packed keys and values, and what is rounded at a time; the rows
            // of the result and the logarithms of this pair belong to this task alone.
            unsafe {
                let (keys_at, values_at) = (buffer.add(scores), buffer.add(scores + keys_len));
                let room = buffer.add(scores + keys_len + values_len);
                let (k, row) = form.along((k, problem.k.row), [keys, depth], room);
                gemm::pack_lines(k, row, [keys, form.steps(depth)], keys_at);
                let (v, row) = form.across((v, problem.v.row), [keys, width], room);
                gemm::pack_columns(v, row, [form.steps(keys), width], values_at);
                let pair = ForwardHead {
                    problem,
                    form,
                    room,
                    pair,
                    q,
                    packed_keys: keys_at,
                    packed_values: values_at,
                    out: to.at(start(out.batch)),
                    out_row: out.row,
                };
                let scores = std::slice::from_raw_parts_mut(buffer, scores);
                let logs = std::slice::from_raw_parts_mut(to_logs.at(pair.pair * queries), queries);
                pair.run(scores, logs);
            }
        });
    });
}

/// One head of one sequence.
struct ForwardHead<'a, T: AttentionReal> {
    problem: &'a Problem<'a, T>,
    form: Form<T>,
    /// Scratch space for rounded queries and exponentials.
    room: *mut T,
    pair: usize,
    q: *const T,
    packed_keys: *const T,
    packed_values: *const T,
    out: *mut T,
    out_row: usize,
}

impl<T: AttentionReal> ForwardHead<'_, T> {
    /// # Safety
    ///
    /// The addresses must be those of the problem's pair; `scores` has room for a tile, and `logs`
    /// is the pair's. Rounded operands have a room of their own.
    unsafe fn run(&self, scores: &mut [T], logs: &mut [[T; 2]]) {
        let Problem { queries, depth, width, .. } = *self.problem;
        for first in (0..queries).step_by(QUERIES) {
            let count = QUERIES.min(queries - first);
            let seen = self.problem.seen(first + count);
            let mut running = Running::new();
            let row = self.problem.q.row;
            let q = (self.q.wrapping_add(first * row), row);
            // SAFETY: the caller's promise.
            let q = unsafe { self.form.along(q, [count, depth], self.room) };
            for key in (0..seen).step_by(KEYS) {
                let tile = Tile {
                    pair: self.pair,
                    first_query: first,
                    queries: count,
                    first_key: key,
                    keys: KEYS.min(seen - key),
                };
                let scores = &mut scores[..count * tile.wide::<T>()];
                let (scale, steps) = (self.problem.scale, self.form.steps(depth));
                // SAFETY: as above.
                unsafe { products(&self.form, &tile, steps, scale, q, self.packed_keys, scores) }
                exclude(self.problem, &tile, scores);
                soften(scores, tile.wide::<T>(), &mut running);
                self.drop_out(&tile, scores);
                // SAFETY: as above.
                unsafe { self.add_values(&tile, scores, &running) }
            }
            for i in 0..count {
                let row = self.out.wrapping_add((first + i) * self.out_row);
                // SAFETY: a row of this pair.
                let row = unsafe { std::slice::from_raw_parts_mut(row, width) };
                let sum = running.sum[i];
                match seen {
                    0 => row.fill(T::ZERO),
                    _ if sum == 0.0 => row.fill(T::ZERO),
                    _ => T::row_scale_in_place(row, T::from_f64(1.0 / sum)),
                }
                let log = if sum == 0.0 { 0.0 } else { sum.ln() };
                logs[first + i] = [running.max[i], T::from_f64(log)];
            }
        }
    }

    fn drop_out(&self, tile: &Tile, scores: &mut [T]) {
        let Some(dropout) = self.problem.dropout else {
            return;
        };
        let mut factors = [T::ZERO; KEYS];
        let factors = &mut factors[..tile.keys];
        for (i, row) in scores.chunks_exact_mut(tile.wide::<T>()).enumerate() {
            dropout.factors(tile.pair, tile.first_query + i, tile.first_key, factors);
            row.iter_mut().zip(&*factors).for_each(|(weight, &factor)| *weight *= factor);
        }
    }

    /// Adds the values of the tile's keys, weighted by their exponentials, to the result, which is
    /// first rescaled to the new maximum.
    ///
    /// # Safety
    ///
    /// As [`ForwardHead::run`].
    unsafe fn add_values(&self, tile: &Tile, scores: &[T], running: &Running<T>) {
        let width = self.problem.width;
        let out = self.out.wrapping_add(tile.first_query * self.out_row);
        let add = tile.first_key > 0;
        if add {
            for i in 0..tile.queries {
                // SAFETY: a row of this pair.
                let row =
                    unsafe { std::slice::from_raw_parts_mut(out.add(i * self.out_row), width) };
                T::row_scale_in_place(row, running.shrink[i]);
            }
        }
        let (form, room) = (&self.form, self.room.wrapping_add(QUERIES * self.problem.depth));
        let scores = (scores.as_ptr(), tile.wide::<T>());
        // SAFETY: the scores of the tile, and the room behind that of the queries.
        let (data, row) = unsafe { form.along(scores, [tile.queries, tile.keys], room) };
        let a = Block { data, row, col: 1 };
        // Values are packed by columns: rows of a power of two apart would share a few sets of the
        // cache.
        let lines = gemm::panel_lines::<T>();
        let v = self.packed_values.wrapping_add(form.steps(tile.first_key) * lines);
        let v = (v, lines * form.steps(self.problem.keys));
        let sizes = [tile.queries, form.steps(tile.keys), width];
        let to = (out, self.out_row);
        // SAFETY: the values of the tile's keys, and rows of the result that belong to this pair.
        unsafe { gemm::block_packed(form.kernels, sizes, T::ONE, a, v, add, to) }
    }
}
