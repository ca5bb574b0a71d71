//! `index`: indexing as in NumPy and PyTorch, with arrays of integers, masks and slices for the
//! axes. It is made of `slice` and `index_select`, with the rules of those ops.

use super::wrap::wrapped;
use super::{expect_indices, nonzero};
use crate::Slice;
use crate::ops::prelude::*;

/// Index of one axis or several: a slice, or a tensor.
#[derive(Clone, Debug)]
pub enum Index {
    /// A position, a range, a new axis or an ellipsis.
    Slice(Slice),
    /// A tensor of i64 holds positions along one axis, negative ones from the end. A mask of bools
    /// covers as many axes as it has, and takes the elements where it is true.
    Tensor(Tensor),
}

impl Index {
    /// The whole axis.
    #[allow(non_upper_case_globals)]
    pub const Full: Index = Index::Slice(Slice::Range { start: None, end: None, step: 1 });
}

impl<T> From<T> for Index
where
    Slice: From<T>,
{
    fn from(slice: T) -> Index {
        Index::Slice(slice.into())
    }
}

impl From<&Tensor> for Index {
    fn from(indices: &Tensor) -> Index {
        Index::Tensor(indices.clone())
    }
}

impl From<Tensor> for Index {
    fn from(indices: Tensor) -> Index {
        Index::Tensor(indices)
    }
}

/// Indices for [`Tensor::index`], each converted from a tensor, a number, a range or a [`Slice`]:
/// `ix![&rows, .., -1]`.
#[macro_export]
macro_rules! ix {
    ($($index:expr),* $(,)?) => { &[$($crate::Index::from($index)),*] };
}
#[cfg(test)]
pub(super) use ix;

/// An index taken apart: what slices do comes first, then the arrays of positions.
pub(super) struct Plan {
    slices: Vec<Slice>,
    arrays: Vec<IndexArray>,
}

/// Positions along neighbouring axes of the sliced tensor, taken as one: of one axis, or of all
/// those of a mask.
struct IndexArray {
    first: usize,
    last: usize,
    /// i64.
    positions: Tensor,
}

/// The positions that the arrays point to.
pub(super) struct IndexedPositions {
    /// The first and the last axis with an array. All axes from one to the other are taken as one.
    first: usize,
    last: usize,
    /// Positions along that one axis.
    pub flat: Tensor,
    /// The common shape of the arrays.
    common: Shape,
    /// The sizes of the axes between that have no array.
    between: Vec<usize>,
}

impl Plan {
    pub fn new(op: &'static str, shape: &Shape, indices: &[Index]) -> Result<Plan> {
        let taken = |index: &Index| match index {
            Index::Slice(Slice::At(_) | Slice::Range { .. }) => 1,
            Index::Slice(_) => 0,
            Index::Tensor(t) if t.dtype() == DType::Bool => t.rank(),
            Index::Tensor(_) => 1,
        };
        let named: usize = indices.iter().map(taken).sum();
        if named > shape.rank() {
            let why = format!("{named} axes are indexed, the tensor has {}", shape.rank());
            return Err(Error::shape(op, &[shape], why));
        }
        let (mut plan, mut from, mut to) = (Plan { slices: Vec::new(), arrays: Vec::new() }, 0, 0);
        for index in indices {
            match index {
                Index::Slice(slice) => {
                    plan.slices.push(*slice);
                    let left = shape.rank() - named;
                    (from, to) = match slice {
                        Slice::At(_) => (from + 1, to),
                        Slice::Range { .. } => (from + 1, to + 1),
                        Slice::NewAxis => (from, to + 1),
                        Slice::Ellipsis => (from + left, to + left),
                    };
                }
                Index::Tensor(t) if t.dtype() == DType::Bool => {
                    let columns = plan.mask(op, shape, t, from, to)?;
                    (from, to) = (from + t.rank(), to + columns);
                }
                Index::Tensor(t) => {
                    expect_indices(op, &t.meta())?;
                    plan.slices.push(Slice::from(..));
                    plan.arrays.push(IndexArray { first: to, last: to, positions: t.clone() });
                    (from, to) = (from + 1, to + 1);
                }
            }
        }
        Ok(plan)
    }

    /// A mask is an array of positions along its axes. Gives how many axes of the sliced tensor
    /// that are.
    fn mask(
        &mut self,
        op: &'static str,
        shape: &Shape,
        mask: &Tensor,
        from: usize,
        to: usize,
    ) -> Result<usize> {
        if mask.rank() == 0 {
            // A new axis with one position, or with none.
            let positions = Tensor::from(vec![0i64; mask.try_item()? as usize]);
            self.slices.push(Slice::NewAxis);
            self.arrays.push(IndexArray { first: to, last: to, positions });
            return Ok(1);
        }
        let own = &shape[from..];
        if own.get(..mask.rank()) != Some(mask.shape().dims()) {
            let why =
                format!("a mask at axis {from} must have the sizes of the axes from there on");
            return Err(Error::shape(op, &[shape, &mask.shape()], why));
        }
        self.slices.extend(vec![Slice::from(..); mask.rank()]);
        let positions = Tensor::from(nonzero::places(mask)?);
        self.arrays.push(IndexArray { first: to, last: to + mask.rank() - 1, positions });
        Ok(mask.rank())
    }

    /// Whether this is `x[range(n), columns]` of a matrix of `n` rows, the row numbers the same in
    /// each run: a gather, which programs know more of.
    fn takes_one_of_each_row(&self, shape: &Shape) -> bool {
        let ([rows, columns], [n, _]) = (&self.arrays[..], &shape[..]) else { return false };
        let (rows, columns) = (&rows.positions, &columns.positions);
        rows.rank() == 1
            && rows.numel() == *n
            && columns.shape() == rows.shape()
            && !log::varies(rows)
            && counts_up(rows)
    }

    /// Whether the slices leave the tensor as it is.
    pub fn whole(&self) -> bool {
        let full = Slice::from(..);
        self.slices.iter().all(|s| *s == full || *s == Slice::Ellipsis)
    }

    /// The tensor after the slices.
    #[track_caller]
    pub fn sliced(&self, x: &Tensor) -> Result<Tensor> {
        // An ellipsis too many is left to the slice.
        let once = self.slices.iter().filter(|s| **s == Slice::Ellipsis).count() <= 1;
        if self.whole() && once { Ok(x.clone()) } else { x.try_slice(&self.slices) }
    }

    /// Flat positions of the arrays' elements in a tensor of `shape`; `None` without arrays.
    pub fn places(&self, op: &'static str, shape: &Shape) -> Result<Option<IndexedPositions>> {
        let ([one, ..], Some(end)) = (&self.arrays[..], self.arrays.last()) else {
            return Ok(None);
        };
        let (first, last) = (one.first, end.last);
        let check = |a: &IndexArray| {
            let size = shape[a.first..=a.last].iter().product();
            wrapped(op, &a.positions, size, format!("axis {}", a.first))
        };
        let metas: Vec<Meta> = self.arrays.iter().map(|a| a.positions.meta()).collect();
        let common = broadcast_shapes(op, &metas)?;
        let strides = shape.contiguous_strides();
        let stepped = |positions: Tensor, axis: usize| {
            let step = strides[axis] / strides[last].max(1);
            if step == 1 { Ok(positions) } else { positions.try_mul(step as i64) }
        };
        let mut flat = stepped(check(one)?, one.last)?;
        for array in &self.arrays[1..] {
            flat = flat.try_add(&stepped(check(array)?, array.last)?)?;
        }
        let covered = |axis: &usize| self.arrays.iter().any(|a| (a.first..=a.last).contains(axis));
        let free: Vec<usize> = (first..last).filter(|axis| !covered(axis)).collect();
        // The axes in between become one new last axis each time.
        flat = flat.try_reshape([common.numel()])?;
        for &axis in &free {
            let row = stepped(Tensor::arange(0, shape[axis] as i64), axis)?;
            flat = flat.try_unsqueeze(1)?.try_add(&row)?.try_flatten(0, 1)?;
        }
        let between = free.iter().map(|&a| shape[a]).collect();
        Ok(Some(IndexedPositions { first, last, flat, common, between }))
    }
}

/// Whether the indices are 0, 1, 2, ...
fn counts_up(indices: &Tensor) -> bool {
    let Ok(value) = indices.value().contiguous() else { return false };
    let list: &[i64] = value.slice().expect("made contiguous");
    list.iter().enumerate().all(|(i, x)| i as i64 == *x)
}

impl IndexedPositions {
    /// Sizes with all axes from the first to the last array as one, of `count` positions; those
    /// before and after as one each.
    pub fn merged(&self, shape: &Shape, count: usize) -> [usize; 3] {
        [shape[..self.first].iter().product(), count, shape[self.last + 1..].iter().product()]
    }

    /// Number of positions along that one axis.
    pub fn span(&self, shape: &Shape) -> usize {
        shape[self.first..=self.last].iter().product()
    }

    /// The shape of the result, and how it is brought there: from
    /// `[before, common, between, after]` the axes in the order that they get.
    pub fn result(&self, op: &'static str, shape: &Shape) -> Result<(Shape, Option<Vec<i64>>)> {
        let (before, after) = (&shape[..self.first], &shape[self.last + 1..]);
        let parts = [before, &self.common, &self.between, after];
        let sizes: Vec<usize> = parts.concat();
        if sizes.len() > MAX_RANK {
            let why = format!("the result would have {} axes; a tensor has at most 8", sizes.len());
            return Err(Error::shape(op, &[shape, &self.common], why));
        }
        let out = Shape::new(&sizes);
        if self.between.is_empty() {
            return Ok((out, None));
        }
        // Arrays with something between them put their common axes in front.
        let (start, end) = (before.len(), before.len() + self.common.rank());
        let order = (start..end).chain(0..start).chain(end..sizes.len());
        Ok((out, Some(order.map(|a| a as i64).collect())))
    }
}

methods! {
    /// Indexing with arrays, masks and slices, written with [`ix!`](crate::ix): an index for each
    /// axis from the first on, as in NumPy and PyTorch.
    ///
    /// - A slice (a position, a range, `Slice::NewAxis`, `Slice::Ellipsis`) does what it does in
    ///   [`Tensor::slice`]. `..` is one whole axis, and so is [`Index::Full`].
    /// - A tensor of i64 takes these positions; negative ones count from the end. Several of them
    ///   broadcast to a common shape and are read together: `x.index(ix![&i, &j])` is
    ///   `y[k] = x[i[k], j[k]]`. Their common axes stand where the first of them stood if they are
    ///   neighbours, and in front of all others if an axis without one lies between.
    /// - A mask of bools stands for as many axes as it has, and takes the elements where it is
    ///   true: as its [`Tensor::nonzero_axes`] would.
    ///
    /// Positions (numbers) are taken first, as in PyTorch; NumPy counts them among the arrays. Any
    /// dtype. Only slices give a view, else the result is a copy. Errors for a position outside its
    /// axis, arrays that do not broadcast, a mask of another shape, too many indices. Gradient:
    /// each element of `g` is added at the place that it came from.
    ///
    /// ```
    /// use chainrule::{Tensor, ix};
    /// let x = Tensor::arange(0, 6).reshape([2, 3]);
    /// let (i, j) = (Tensor::from([0i64, 1, 1]), Tensor::from([2i64, 0, -1]));
    /// assert_eq!(x.index(ix![&i, &j]).to_vec::<i64>(), [2, 3, 5]);
    /// assert_eq!(x.index(ix![.., &j]).to_vec::<i64>(), [2, 0, 2, 5, 3, 5]);
    /// assert_eq!(x.index(ix![&x.gt(3)]).to_vec::<i64>(), [4, 5]);
    /// ```
    pub fn index / try_index(&self, indices: &[Index]) -> Tensor {
        let name = "index";
        let plan = Plan::new(name, &self.shape(), indices)?;
        let x = plan.sliced(self)?;
        let shape = x.shape();
        if plan.takes_one_of_each_row(&shape) {
            let columns = wrapped(name, &plan.arrays[1].positions, shape[1], "axis 1")?;
            return x.try_gather(1, &columns.try_unsqueeze(1)?)?.try_squeeze(1);
        }
        let Some(places) = plan.places(name, &shape)? else {
            return Ok(x);
        };
        let (out, order) = places.result(name, &shape)?;
        let taken = if places.first == places.last {
            x.try_index_select(places.first as i64, &places.flat)?
        } else {
            let merged = x.try_reshape(places.merged(&shape, places.span(&shape)).as_slice())?;
            merged.try_index_select(1, &places.flat)?
        };
        let taken = taken.try_reshape(out)?;
        order.map_or_else(|| Ok(taken.clone()), |order| taken.try_permute(&order))
    }
}

/// Indices for a tensor of three axes of at least 3 positions each.
type IndexCase = (&'static str, fn() -> Vec<Index>);

/// One of each kind, which the samples of `index` and `index_put` share; they are for shape
/// `[3, 4, 5]`.
pub(super) const CASES: [IndexCase; 9] = [
    ("rows, one of them twice", || ix![&Tensor::from([2i64, 0, -1])].to_vec()),
    ("last axis, a matrix of indices", || {
        vec![Slice::Ellipsis.into(), (&Tensor::from([[4i64, 0], [-2, 4]])).into()]
    }),
    ("two arrays that broadcast", || {
        ix![&Tensor::from([[2i64], [0]]), &Tensor::from([1i64, -1, 1])].to_vec()
    }),
    ("two arrays apart", || ix![&Tensor::from([2i64, 0]), .., &Tensor::from([1i64, 3])].to_vec()),
    ("apart by a new axis, with a range", || {
        let i = Tensor::from([1i64, 1]);
        ix![1.., &i, Slice::NewAxis, &Tensor::from([0i64])].to_vec()
    }),
    ("three arrays", || {
        let i = Tensor::from([1i64, 2, 1]);
        ix![&i, &i, &Tensor::from([0i64, -1, 0])].to_vec()
    }),
    ("a position and an array", || ix![-1, .., &Tensor::from([0i64, 0, 3])].to_vec()),
    ("a mask of two axes", || {
        let mask = Tensor::arange(0, 20).reshape([4, 5]);
        ix![Slice::from(..).step(-2), &mask.to_dtype(DType::F32).cos().gt(0.3)].to_vec()
    }),
    ("no indices", || ix![.., &Tensor::from(Vec::<i64>::new())].to_vec()),
];

pub(super) const ENTRY: Entry = Entry {
    name: "index",
    family: Family::Index,
    signature: "x.index(ix![&i, &j, .., 0..2])",
    python: &[Binding::by_hand("__getitem__", "any mixture of slices and tensors").no_function()],
    formula: "y[k] = x[i[k], j[k]], for two arrays i and j of one axis",
    gradient: "dx[i[k], j[k]] += g[k]",
    at_kinks: "",
    samples: |g| {
        let mut out: Vec<Sample> = CASES
            .into_iter()
            .map(|(note, indices)| {
                let indices = indices();
                Sample::new(note, vec![normal(g, [3, 4, 5])], move |x| x[0].try_index(&indices))
            })
            .collect();
        out.push(Sample::new("0-d", vec![normal(g, ())], |x| {
            x[0].try_index(ix![&Tensor::scalar(true)])
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests;
