//! Scaled dot-product attention by tiles: `softmax(scale q k^T + mask) v` without the matrix of
//! scores.
//!
//! A block of queries meets the keys block by block, with a running maximum and sum for each row
//! (Milakov and Gimelshein 2018; Dao et al. 2022), so that memory grows with the length, not with
//! its square. Each row keeps its result and the logarithm of its sum of exponentials, from which
//! the backward pass computes the tiles again. Blocks that the causal rule excludes are never
//! computed.
//!
//! One pair of queries and keys (a head of one sequence) is one task. Tasks do not depend on each
//! other, so threads change no bit.

mod backward;
mod dropout;
mod form;
mod forward;
#[cfg(test)]
mod tests;
mod tile;

pub use backward::{AttentionUpstream, Gradients, backward};
pub use dropout::Dropout;
pub use forward::forward;

use super::gemm::tile::GemmKernels;
use super::gemm::{self, GemmElement, halves};
use super::reduce::Summed;
use super::softmax::Row;
use super::threads;

/// f32 or f64. Numbers of f32 can be rounded to bf16 for their products.
pub trait AttentionReal: Row + GemmElement + Summed {
    /// Kernels of pairs of bf16, if the processor has them.
    fn pairs() -> Option<&'static GemmKernels<Self>> {
        None
    }

    /// Numbers rounded to bf16.
    fn nearest(from: &[Self], to: &mut [Self]) {
        to.copy_from_slice(from);
    }

    /// Each number with the next as a pair.
    ///
    /// # Safety
    ///
    /// There must be kernels of pairs.
    unsafe fn pair_line(_: &[Self], _: &mut [Self]) {
        unreachable!("there are no kernels of pairs")
    }

    /// The numbers of two rows as pairs; those of a second row that there is not are 0.
    ///
    /// # Safety
    ///
    /// There must be kernels of pairs.
    unsafe fn pair_rows(_: &[Self], _: Option<&[Self]>, _: &mut [Self]) {
        unreachable!("there are no kernels of pairs")
    }
}

impl AttentionReal for f32 {
    fn pairs() -> Option<&'static GemmKernels<f32>> {
        gemm::tile::pairs()
    }

    fn nearest(from: &[f32], to: &mut [f32]) {
        halves::round(from, to);
    }

    unsafe fn pair_line(from: &[f32], to: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe { halves::convert::line(from, to) }
    }

    unsafe fn pair_rows(first: &[f32], second: Option<&[f32]>, to: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe { halves::convert::rows(first, second, to) }
    }
}

impl AttentionReal for f64 {}

/// Queries of a tile: a multiple of the rows of a strip of the product, and few, so that a causal
/// tile holds few excluded elements.
const QUERIES: usize = 24;
/// Keys of a tile; with the queries of a tile and their scores they stay in L1. A multiple of every
/// panel.
const KEYS: usize = 128;

/// Matrices for each of several heads, whose rows are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a, T> {
    /// The elements, from the first on.
    pub data: &'a [T],
    /// Elements between one position of each leading axis and the next.
    pub batch: &'a [usize],
    /// Elements between one row and the next.
    pub row: usize,
}

/// As [`Heads`], to be written. No two positions may be the same element.
pub struct HeadsMut<'a, T> {
    /// The elements, from the first on.
    pub data: &'a mut [T],
    /// Elements between one position of each leading axis and the next.
    pub batch: &'a [usize],
    /// Elements between one row and the next.
    pub row: usize,
}

/// The mask: which scores count, beside the causal rule.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a, T> {
    /// All scores count.
    None,
    /// A score counts if this is not 0.
    Keep(Grid<'a, u8>),
    /// All scores count, with these numbers added; minus infinity excludes one.
    Add(Grid<'a, T>),
}

/// A number for every score, with any strides.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a, T> {
    /// The elements, from the first on.
    pub data: &'a [T],
    /// Elements between one position of each leading axis and the next.
    pub batch: &'a [usize],
    /// Elements between one query and the next.
    pub row: usize,
    /// Elements between one key and the next.
    pub col: usize,
}

/// The operands and options of one attention.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a, T> {
    /// The leading axes.
    pub sizes: &'a [usize],
    /// Rows of `q`.
    pub queries: usize,
    /// Rows of `k` and `v`.
    pub keys: usize,
    /// The length of the rows of `q` and `k`.
    pub depth: usize,
    /// The length of the rows of `v`.
    pub width: usize,
    pub q: Heads<'a, T>,
    pub k: Heads<'a, T>,
    pub v: Heads<'a, T>,
    pub mask: Mask<'a, T>,
    /// Whether query i sees the keys up to i only.
    pub causal: bool,
    /// Factor of the scores, `q k^T`.
    pub scale: T,
    /// Dropout of the weights, if any.
    pub dropout: Option<Dropout>,
    /// Whether the operands of all products are rounded to bf16, which f64 has no use for.
    pub bf16: bool,
}

impl<T: AttentionReal> Problem<'_, T> {
    fn pairs(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Offset of pair `index`, with the strides of the leading axes.
    fn offset(&self, index: usize, batch: &[usize]) -> usize {
        let (mut rest, mut at) = (index, 0);
        for (&size, &stride) in self.sizes.iter().zip(batch).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        at
    }

    /// Number of keys that the queries before `end` see.
    fn seen(&self, end: usize) -> usize {
        if self.causal { self.keys.min(end) } else { self.keys }
    }

    /// The multiplications of all tiles, about.
    fn work(&self) -> usize {
        let scores = self.queries.saturating_mul(self.keys).saturating_mul(self.pairs());
        scores.saturating_mul(self.depth + self.width + 16)
    }

    /// Panics unless every element that the problem addresses is in its data: all unsafe code below
    /// relies on it.
    #[track_caller]
    fn check(&self) {
        inside("q", self.sizes, &self.q, self.queries, self.depth);
        inside("k", self.sizes, &self.k, self.keys, self.depth);
        inside("v", self.sizes, &self.v, self.keys, self.width);
    }
}

/// Panics unless the last element of some heads is in their data.
#[track_caller]
fn inside<T>(name: &str, sizes: &[usize], heads: &Heads<'_, T>, rows: usize, width: usize) {
    let axes = sizes.iter().copied().zip(heads.batch.iter().copied());
    let axes = axes.chain([(rows, heads.row), (width, 1)]);
    assert_eq!(sizes.len(), heads.batch.len(), "attention: strides of {name}");
    let last = axes.into_iter().try_fold(0usize, |last, (size, stride)| {
        // No elements at all: nothing is read.
        last.checked_add(size.checked_sub(1)?.checked_mul(stride)?)
    });
    assert!(
        last.is_none_or(|last| last < heads.data.len()),
        "attention: {name} reaches outside its {} elements",
        heads.data.len()
    );
}

/// An address that tasks share.
#[derive(Clone, Copy)]
struct HeadAddress<T>(*mut T);

// SAFETY: each task writes the rows of its own pair behind the address.
unsafe impl<T: Send> Sync for HeadAddress<T> {}

impl<T> HeadAddress<T> {
    fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// Fewest tasks for each thread: a thread that is interrupted then delays the others only briefly.
const TASKS: usize = 4;
/// Most heads in a task.
const TOGETHER: usize = 32;

/// Runs `f` for each pair, on the pool if there is enough to do.
///
/// The rows of neighbouring heads lie side by side, and processors fetch cache lines in pairs. Two
/// threads that write neighbours keep stealing those lines from each other, so a task takes as many
/// heads of one sequence as leave enough tasks.
fn each_pair<T: AttentionReal>(problem: &Problem<'_, T>, f: impl Fn(usize) + Send + Sync) {
    let parallel = gemm::threaded(problem.work());
    let (pairs, heads) = (problem.pairs(), problem.sizes.last().copied().unwrap_or(1));
    let most = heads.min(pairs / (TASKS * threads::num_threads())).min(TOGETHER);
    let together = (1..=most).rev().find(|n| heads.is_multiple_of(*n)).unwrap_or(1);
    gemm::run(pairs / together, parallel, |task| {
        (task * together..(task + 1) * together).for_each(&f);
    });
}

/// The numbers that this many lines (or columns) take when they are packed.
fn packed_len<T: AttentionReal>(lines: usize, k: usize) -> usize {
    lines.next_multiple_of(gemm::panel_lines::<T>()) * k
}
