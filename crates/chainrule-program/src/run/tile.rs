//! The loop over the tiles of a group.
//!
//! Each member runs on a tile before the next one does, through the kernel that it has alone.

use std::cell::Cell;
use std::ptr::NonNull;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::fuse::layout::Part;
use crate::fuse::member::Kind;
use crate::kernels::chain::{Arithmetic, Then, chain};
use crate::kernels::gemm::Room;
use crate::kernels::map::Rows;
use crate::kernels::{reduce, threads};
use crate::place::block::{Arg, At, Block, Product, TileOp};
use crate::tensor::op::{Array, Extent, Input, Kernel, Output};

/// Addresses of a group's arrays.
#[derive(Clone)]
pub(crate) struct Arrays {
    pub inputs: SmallVec<[*const u8; 12]>,
    pub outputs: SmallVec<[*mut u8; 12]>,
}

// SAFETY: inputs are only read, and each piece of rows writes its own rows of the outputs.
unsafe impl Sync for Arrays {}

/// The sums of all pieces.
struct Sums(*mut f64);

// SAFETY: each piece has sums of its own.
unsafe impl Sync for Sums {}

thread_local! {
    /// Scratch buffer of the values that stay inside a group. Another one than that of products,
    /// which call groups.
    static SCRATCH: Room = const { Room::new() };
    /// The sums of columns of the last group that this thread began.
    static TOTALS: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Block {
    /// Runs all members on all rows.
    ///
    /// # Safety
    ///
    /// The arrays must be those of the group: inputs with the elements that the parts need,
    /// readable; outputs with room for the results, not written by anyone else and apart from the
    /// inputs and each other.
    pub unsafe fn run(&self, arrays: &Arrays) {
        let pieces = self.pieces();
        let own = self.sums * self.n;
        let run = |totals: *mut f64| {
            let totals = Sums(totals);
            let piece = |piece: usize| {
                let totals = &totals;
                self.with_scratch(|scratch| {
                    // SAFETY: the sums of a piece are its own; the rest is the caller's promise.
                    unsafe {
                        let totals = totals.0.wrapping_add(piece * own);
                        let totals = std::slice::from_raw_parts_mut(totals, own);
                        totals.fill(0.0);
                        self.piece(arrays, piece, scratch, totals);
                    }
                });
            };
            if pieces == 1 {
                piece(0);
            } else {
                threads::for_each(true, 0..pieces, piece);
            }
            // SAFETY: all pieces have come to an end.
            let all = unsafe { std::slice::from_raw_parts_mut(totals.0, pieces * own) };
            let (first, rest) = all.split_at_mut(own);
            for piece in rest.chunks_exact(own.max(1)) {
                first.iter_mut().zip(piece).for_each(|(a, &b)| *a += b);
            }
            // SAFETY: the caller's promise.
            unsafe { self.finish(arrays, first) };
        };
        if own == 0 {
            return run(NonNull::dangling().as_ptr());
        }
        // The buffer is taken, not borrowed: while this thread waits for others it may run another
        // group.
        let mut totals = TOTALS.take();
        if totals.len() < pieces * own {
            totals.resize(pieces * own, 0.0);
        }
        run(totals.as_mut_ptr());
        TOTALS.set(totals);
    }

    fn with_scratch(&self, f: impl FnOnce(*mut u8)) {
        SCRATCH.with(|room| room.with::<f32, _>(self.scratch.div_ceil(4), |at| f(at.cast())));
    }

    /// Runs all members on `count` elements of the product that the group begins with, from element
    /// `first` on, which are at `at`.
    ///
    /// # Safety
    ///
    /// As [`Block::run`]; the elements must be those of the product's target, and nobody else may
    /// use them meanwhile.
    pub unsafe fn stretch(
        &self,
        arrays: &Arrays,
        product: &Product,
        (first, at, count): (usize, *mut u8, usize),
    ) {
        let size = product.size;
        let mut arrays = arrays.clone();
        arrays.outputs[0] = at.wrapping_sub(first * size);
        self.with_scratch(|scratch| {
            for row in (first..first + count).step_by(self.tile) {
                let rows = self.tile.min(first + count - row);
                if let Some(to) = product.moved {
                    let from = at.wrapping_add((row - first) * size);
                    // SAFETY: the caller's promise; the scratch has room for a tile.
                    unsafe { from.copy_to_nonoverlapping(scratch.wrapping_add(to), rows * size) }
                }
                let tile = Tile { arrays: &arrays, scratch, row, rows, n: 1 };
                for member in &self.members {
                    // SAFETY: the caller's promise; no member sums.
                    unsafe { tile.member(member, &mut []) }
                }
            }
        });
    }

    /// Runs a piece, tile by tile.
    ///
    /// # Safety
    ///
    /// As [`Block::run`]; the scratch must have the room that was planned.
    unsafe fn piece(&self, arrays: &Arrays, piece: usize, scratch: *mut u8, totals: &mut [f64]) {
        for repeat in &self.repeats {
            let (from, to) = (arrays.inputs[repeat.input], scratch.wrapping_add(repeat.place));
            // SAFETY: the caller's promise; the scratch has room for a tile of copies.
            unsafe { lay_out(from, repeat.size, self.tile, to) }
        }
        let end = self.rows.min((piece + 1) * self.piece);
        for row in (piece * self.piece..end).step_by(self.tile) {
            let tile = Tile { arrays, scratch, row, rows: self.tile.min(end - row), n: self.n };
            for member in &self.members {
                // SAFETY: the caller's promise; the members are in an order in which each reads
                // what is there.
                unsafe { tile.member(member, totals) }
            }
        }
    }

    /// Writes the sums of columns.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    unsafe fn finish(&self, arrays: &Arrays, totals: &[f64]) {
        let tile = Tile { arrays, scratch: std::ptr::null_mut(), row: 0, rows: 1, n: self.n };
        for member in &self.members {
            let Kind::ColumnSum { mean } = member.kind else { continue };
            let totals = &totals[member.sum * self.n..][..self.n];
            let count = self.rows;
            // SAFETY: the caller's promise.
            match unsafe { tile.output(&member.out) } {
                Output::F32(out) => {
                    out.iter_mut().zip(totals).for_each(|(o, &total)| *o = total as f32);
                    if mean {
                        out.iter_mut().for_each(|o| *o /= count as f32);
                    }
                }
                Output::F64(out) => {
                    out.copy_from_slice(totals);
                    if mean {
                        out.iter_mut().for_each(|o| *o /= count as f64);
                    }
                }
                _ => unreachable!("only floats are summed so"),
            }
        }
    }
}

/// Two steps of arithmetic, see [`chain`].
fn two_steps(first: Arithmetic, then: Then, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
    match (inputs, out) {
        ([Input::F32(a), Input::F32(b), Input::F32(c)], Output::F32(out)) => {
            chain(first, then, [a, b, c], n, out);
        }
        ([Input::F64(a), Input::F64(b), Input::F64(c)], Output::F64(out)) => {
            chain(first, then, [a, b, c], n, out);
        }
        _ => unreachable!("chains have three operands of one type of float"),
    }
}

/// Writes copies of a row of `size` bytes one behind the other.
///
/// # Safety
///
/// The row must be readable, and room for all copies writable and apart from it.
unsafe fn lay_out(row: *const u8, size: usize, copies: usize, to: *mut u8) {
    // SAFETY: the caller's promise; what is copied further was written before.
    unsafe {
        row.copy_to_nonoverlapping(to, size);
        let mut there = 1;
        while there < copies {
            let more = there.min(copies - there);
            to.copy_to_nonoverlapping(to.wrapping_add(there * size), more * size);
            there += more;
        }
    }
}

/// Some rows of a group.
struct Tile<'a> {
    arrays: &'a Arrays,
    scratch: *mut u8,
    row: usize,
    rows: usize,
    n: usize,
}

impl Tile<'_> {
    /// Runs one member.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    #[inline]
    unsafe fn member(&self, member: &TileOp, totals: &mut [f64]) {
        let kernel = member.op.kernel();
        // SAFETY: the caller's promise.
        unsafe {
            match (member.kind, kernel) {
                (Kind::Map, Kernel::Map(kernel)) => {
                    let mut inputs: SmallVec<[Input<'_>; 3]> = SmallVec::new();
                    for arg in &member.inputs {
                        inputs.push(self.input(arg, member.flat));
                    }
                    let n = if member.flat { self.rows * self.n } else { self.n };
                    let out = self.output(&member.out);
                    match member.chain {
                        None => kernel.tile(&inputs, n, out),
                        Some((first, then)) => two_steps(first, then, &inputs, n, out),
                    }
                }
                (Kind::RowSum, Kernel::Reduce(_, kernel)) => {
                    let extent = Extent { outer: self.rows, count: self.n, inner: 1 };
                    let x = match self.input(&member.inputs[0], true) {
                        Input::F32(x) => Array::F32(x.data),
                        Input::F64(x) => Array::F64(x.data),
                        Input::I64(x) => Array::I64(x.data),
                        Input::Bool(x) => Array::Bool(x.data),
                    };
                    kernel.reduce(x, extent, self.output(&member.out));
                }
                (Kind::ColumnSum { .. }, _) => {
                    let totals = &mut totals[member.sum * self.n..][..self.n];
                    match self.input(&member.inputs[0], true) {
                        Input::F32(x) => reduce::add_block(x.data, totals),
                        Input::F64(x) => reduce::add_block(x.data, totals),
                        _ => unreachable!("only floats are summed so"),
                    }
                }
                _ => unreachable!("the kind of a member is that of its kernel"),
            }
        }
    }

    /// The tile of an operand; `flat` takes all rows as one.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    #[inline]
    unsafe fn input<'t>(&self, arg: &Arg, flat: bool) -> Input<'t> {
        let (len, step, splat, skip) = match arg.part {
            Part::Whole => {
                let step = if flat { 0 } else { self.n };
                (self.rows * self.n, step, false, self.row * self.n)
            }
            Part::Row => (self.n, 0, false, 0),
            Part::Column => (self.rows, 1, true, self.row),
            Part::Single => (1, 0, true, 0),
        };
        let skip = skip * arg.dtype.size();
        let from = match arg.at {
            At::Input(i) => self.arrays.inputs[i].wrapping_add(skip),
            At::Output(i) => self.arrays.outputs[i].wrapping_add(skip).cast_const(),
            At::Scratch(at) => self.scratch.wrapping_add(at).cast_const(),
        };
        macro_rules! rows {
            ($ty:ty, $variant:ident) => {{
                // SAFETY: the caller's promise.
                let data = unsafe { std::slice::from_raw_parts(from.cast::<$ty>(), len) };
                Input::$variant(Rows { data, step, splat })
            }};
        }
        match arg.dtype {
            DType::F32 => rows!(f32, F32),
            DType::F64 => rows!(f64, F64),
            DType::I64 => rows!(i64, I64),
            DType::Bool => rows!(u8, Bool),
            other => unreachable!("no program holds {other}"),
        }
    }

    /// The tile of a result, to write.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    #[inline]
    unsafe fn output<'t>(&self, arg: &Arg) -> Output<'t> {
        let (len, skip) = match arg.part {
            Part::Whole => (self.rows * self.n, self.row * self.n),
            Part::Column => (self.rows, self.row),
            Part::Row | Part::Single => (self.n, 0),
        };
        let to = match arg.at {
            At::Output(i) => self.arrays.outputs[i].wrapping_add(skip * arg.dtype.size()),
            At::Scratch(at) => self.scratch.wrapping_add(at),
            At::Input(_) => unreachable!("inputs are not written"),
        };
        macro_rules! rows {
            ($ty:ty, $variant:ident) => {{
                // SAFETY: the caller's promise.
                Output::$variant(unsafe { std::slice::from_raw_parts_mut(to.cast::<$ty>(), len) })
            }};
        }
        match arg.dtype {
            DType::F32 => rows!(f32, F32),
            DType::F64 => rows!(f64, F64),
            DType::I64 => rows!(i64, I64),
            DType::Bool => rows!(u8, Bool),
            other => unreachable!("no program holds {other}"),
        }
    }
}
