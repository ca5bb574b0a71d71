//! Operands of the products of a tile: as they are, or rounded to bf16.

use super::AttentionReal;
use crate::gemm::tile::GemmKernels;

/// The numbers that the products of an attention take.
#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Nothing,
    /// Rounded numbers, one in each place.
    Rounded,
    /// Rounded numbers, two in each place, of which one follows the other along the depth.
    Pairs,
}

/// The products of an attention: their kernels, and the operands that these take.
#[derive(Clone, Copy)]
pub(super) struct Form<T: AttentionReal> {
    pub kernels: &'static GemmKernels<T>,
    rounding: Rounding,
}

impl<T: AttentionReal> Form<T> {
    /// Products of operands that are rounded to bf16, or of all of theirs.
    pub fn new(bf16: bool) -> Form<T> {
        match T::pairs() {
            _ if !bf16 => Form { kernels: T::current(), rounding: Rounding::Nothing },
            Some(kernels) => Form { kernels, rounding: Rounding::Pairs },
            None => Form { kernels: T::current(), rounding: Rounding::Rounded },
        }
    }

    /// Places along a depth of this many numbers.
    pub fn steps(&self, depth: usize) -> usize {
        if self.rounding == Rounding::Pairs { depth.div_ceil(2) } else { depth }
    }

    /// The numbers to keep free for operands of this many numbers.
    pub fn room(&self, numbers: usize) -> usize {
        if self.rounding == Rounding::Nothing { 0 } else { numbers }
    }

    /// Rows whose depth runs along them, and the distance of one row from the next.
    ///
    /// # Safety
    ///
    /// The rows must be readable, and `to` writable for all of them where there is
    /// [`Form::room`].
    pub unsafe fn along(
        &self,
        (data, row): (*const T, usize),
        [rows, depth]: [usize; 2],
        to: *mut T,
    ) -> (*const T, usize) {
        if self.rounding == Rounding::Nothing {
            return (data, row);
        }
        let steps = self.steps(depth);
        for i in 0..rows {
            // SAFETY: the caller's promise.
            let (from, to) = unsafe {
                let from = std::slice::from_raw_parts(data.wrapping_add(i * row), depth);
                (from, std::slice::from_raw_parts_mut(to.wrapping_add(i * steps), steps))
            };
            match self.rounding {
                // SAFETY: there are kernels of pairs.
                Rounding::Pairs => unsafe { T::pair_line(from, to) },
                _ => T::nearest(from, to),
            }
        }
        (to.cast_const(), steps)
    }

    /// Rows side by side whose depth runs from row to row.
    ///
    /// # Safety
    ///
    /// As [`Form::along`].
    pub unsafe fn across(
        &self,
        (data, row): (*const T, usize),
        [depth, width]: [usize; 2],
        to: *mut T,
    ) -> (*const T, usize) {
        if self.rounding == Rounding::Nothing {
            return (data, row);
        }
        // SAFETY: the caller's promise, for rows below the depth.
        let read =
            |p: usize| unsafe { std::slice::from_raw_parts(data.wrapping_add(p * row), width) };
        for step in 0..self.steps(depth) {
            // SAFETY: as above.
            let to =
                unsafe { std::slice::from_raw_parts_mut(to.wrapping_add(step * width), width) };
            if self.rounding == Rounding::Rounded {
                T::nearest(read(step), to);
                continue;
            }
            let second = (2 * step + 1 < depth).then(|| read(2 * step + 1));
            // SAFETY: there are kernels of pairs.
            unsafe { T::pair_rows(read(2 * step), second, to) }
        }
        (to.cast_const(), width)
    }
}
