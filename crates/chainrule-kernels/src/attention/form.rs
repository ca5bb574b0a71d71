//! Operands of the products of a tile: as they are, or rounded to bf16.

use super::AttentionReal;
use crate::gemm::tile::GemmKernels;

/// The numbers that the products of an attention take.
#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Nothing,
    /// Rounded numbers, one to a word.
    Rounded,
    /// Rounded numbers, two to a word: neighbours along the depth of the product.
    Pairs,
}

/// The products of an attention: which kernels compute them, and the form of their operands.
#[derive(Clone, Copy)]
pub(super) struct Form<T: AttentionReal> {
    pub kernels: &'static GemmKernels<T>,
    rounding: Rounding,
}

impl<T: AttentionReal> Form<T> {
    /// Products of operands rounded to bf16, or of operands as they are.
    pub fn new(bf16: bool) -> Form<T> {
        match T::pairs() {
            _ if !bf16 => Form { kernels: T::current(), rounding: Rounding::Nothing },
            Some(kernels) => Form { kernels, rounding: Rounding::Pairs },
            None => Form { kernels: T::current(), rounding: Rounding::Rounded },
        }
    }

    /// Words along a depth of this many numbers.
    pub fn steps(&self, depth: usize) -> usize {
        if self.rounding == Rounding::Pairs { depth.div_ceil(2) } else { depth }
    }

    /// The numbers of scratch space that operands of this many numbers need.
    pub fn room(&self, numbers: usize) -> usize {
        if self.rounding == Rounding::Nothing { 0 } else { numbers }
    }

    /// Converts rows whose depth runs along them; `row` is the distance from one row to the next.
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

    /// Converts rows whose depth runs from row to row.
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
