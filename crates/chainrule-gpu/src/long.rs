//! Sorting, running sums and gradients of gathers along long axes, in several steps, so that the
//! work for each element does not grow with the square of the axis.

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use crate::graph::{Fold, Step, ValueId};
use crate::read::Reader;

/// Length of an axis from which on its running sums are taken in pieces.
const SUMS_FROM: usize = 64;

/// Number of indices from which on they are sorted first; fewer are searched for each element.
const ROWS_FROM: usize = 512;

/// Values that are joined at once.
const JOINED: usize = 6;

impl Reader {
    /// Running sums: within pieces of about the square root of the length, and of the pieces'
    /// totals.
    pub(crate) fn cumulate(
        &mut self,
        x: ValueId,
        axis: usize,
        reverse: bool,
        exclusive: bool,
    ) -> Result<Step> {
        let (dims, dtype) = (self.dims(x), self.dtype(x));
        let n = dims[axis];
        if n < SUMS_FROM || dims.contains(&0) {
            return Ok(Step::Cumulate { x, axis, reverse, exclusive });
        }
        let size = n.isqrt();
        let (pieces, whole) = (n.div_ceil(size), n.next_multiple_of(size));
        let with = |sizes: &[usize]| [&dims[..axis], sizes, &dims[axis + 1..]].concat();
        let mut padded = x;
        if whole > n {
            let zero = self.scalar(0.0, dtype)?;
            // The padding stands at the end, and adds nothing in either direction.
            let pad = Step::Pad(x, vec![0; dims.len()], zero);
            padded = self.add("whole_pieces", dtype, with(&[whole]), pad)?;
        }
        let both = with(&[pieces, size]);
        let x = self.add("pieces", dtype, both.clone(), Step::Reshape(padded))?;
        let inside = Step::Cumulate { x, axis: axis + 1, reverse, exclusive };
        let inside = self.add("sums_inside", dtype, both.clone(), inside)?;
        let fold = Step::Fold(Fold::Sum, x, vec![axis + 1]);
        let sums = self.add("sums_of_pieces", dtype, with(&[pieces]), fold)?;
        let before = Step::Cumulate { x: sums, axis, reverse, exclusive: true };
        let before = self.add("sums_before", dtype, with(&[pieces]), before)?;
        let column = self.add("column", dtype, with(&[pieces, 1]), Step::Reshape(before))?;
        let sums = Step::Map("Add", vec![inside, column]);
        let sums = self.add("sums", dtype, both, sums)?;
        if whole == n {
            return Ok(Step::Reshape(sums));
        }
        let flat = self.add("flat", dtype, with(&[whole]), Step::Reshape(sums))?;
        Ok(Step::Slice(flat, vec![(axis, 0, 1)]))
    }

    /// Values one after the other; many in parts, so that a kernel need not take them all.
    pub(crate) fn concat(&mut self, all: Vec<ValueId>, axis: usize) -> Result<Step> {
        if all.len() <= JOINED {
            return Ok(Step::Concat(all, axis));
        }
        let (dtype, mut parts) = (self.dtype(all[0]), Vec::new());
        for part in all.chunks(JOINED) {
            let mut dims = self.dims(part[0]);
            dims[axis] = part.iter().map(|&x| self.dims(x)[axis]).sum();
            parts.push(self.add("part", dtype, dims, Step::Concat(part.to_vec(), axis))?);
        }
        self.concat(parts, axis)
    }

    /// The positions that sort an axis; the first `count` of them.
    pub(crate) fn order(
        &mut self,
        x: ValueId,
        axis: usize,
        down: bool,
        count: usize,
    ) -> Result<ValueId> {
        let mut dims = self.dims(x);
        let n = dims[axis];
        let rank = match self.dtype(x) == DType::I64 && !down && self.fits_square(&dims) {
            true => self.counted_rank(x, n)?,
            false => Step::Rank { x, axis, down },
        };
        let rank = self.add("rank", DType::I64, dims.clone(), rank)?;
        let all = self.add("places", DType::I64, dims.clone(), Step::Inverse(rank, axis))?;
        if count == n {
            return Ok(all);
        }
        dims[axis] = count;
        self.add("first", DType::I64, dims, Step::Slice(all, vec![(axis, 0, 1)]))
    }

    /// Whether an axis is the only one, is long, and its square fits into a number.
    fn fits_square(&self, dims: &[usize]) -> bool {
        let n: usize = dims.iter().product();
        dims.contains(&n) && n >= ROWS_FROM && n.checked_mul(n).is_some_and(|all| all < 1 << 31)
    }

    /// The rank of integers as sums of a square of comparisons, which threads share.
    fn counted_rank(&mut self, x: ValueId, n: usize) -> Result<Step> {
        let numbers: Vec<u8> = (0..n as i64).flat_map(i64::to_le_bytes).collect();
        let numbers = self.add("numbers", DType::I64, vec![n], Step::Constant(numbers))?;
        let [own, place] = [self.reshape(x, &[n, 1])?, self.reshape(numbers, &[n, 1])?];
        let [other, other_place] = [self.reshape(x, &[1, n])?, self.reshape(numbers, &[1, n])?];
        let test = |r: &mut Self, op, a, b| {
            r.add("before", DType::Bool, vec![n, n], Step::Map(op, vec![a, b]))
        };
        let less = test(self, "Less", other, own)?;
        let same = test(self, "Equal", other, own)?;
        let earlier = test(self, "Less", other_place, place)?;
        let tie = test(self, "And", same, earlier)?;
        let before = test(self, "Or", less, tie)?;
        let one = Step::Map("Cast", vec![before]);
        let one = self.add("before", DType::I32, vec![n, n], one)?;
        let count = self.add("count", DType::I32, vec![n], Step::Fold(Fold::Sum, one, vec![1]))?;
        let count = self.add("count", DType::I64, vec![n], Step::Map("Cast", vec![count]))?;
        Ok(Step::Reshape(count))
    }

    /// Rows of `g` added to those that the index names; many indices are sorted first, so that the
    /// parts of a row stand beside each other.
    pub(crate) fn scatter_rows(&mut self, x: ValueId, index: ValueId, g: ValueId) -> Result<Step> {
        let count = self.dims(index)[0];
        if count < ROWS_FROM {
            return Ok(Step::ScatterRows { x, index, g });
        }
        let rows = self.dims(x)[0];
        let order = self.order(index, 0, false, count)?;
        let begins = self.add("begins", DType::I64, vec![rows + 1], Step::Begins(index, order))?;
        Ok(Step::Segments { x, order, begins, g })
    }
}
