//! `meshgrid` and `broadcast_tensors`: tensors stretched to a common shape, as views. Both are
//! expansions, with the rules of that op.

use crate::ops::prelude::*;

/// Order of the first two axes of a [`Tensor::meshgrid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Tensor `i` runs along axis `i`.
    Ij,
    /// The first tensor runs along axis 1 and the second along axis 0, as x and y of a picture.
    Xy,
}

impl Tensor {
    /// The tensors stretched to their common shape, as views. Errors if they do not broadcast.
    /// Gradient: summed over the stretched axes.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::zeros([2, 1]), Tensor::zeros([3]));
    /// let both = Tensor::broadcast_tensors(&[&a, &b]);
    /// assert_eq!(both[1].shape(), [2, 3]);
    /// ```
    #[track_caller]
    pub fn broadcast_tensors(tensors: &[&Tensor]) -> Vec<Tensor> {
        match Tensor::try_broadcast_tensors(tensors) {
            Ok(t) => t,
            Err(e) => crate::error::raise(e),
        }
    }

    /// Like [`Tensor::broadcast_tensors`], but returns the error.
    #[track_caller]
    pub fn try_broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let metas: Vec<Meta> = tensors.iter().map(|t| t.meta()).collect();
        if metas.is_empty() {
            return Ok(Vec::new());
        }
        let shape = broadcast_shapes("broadcast_tensors", &metas)?;
        tensors.iter().map(|t| t.try_expand(shape)).collect()
    }

    /// The coordinates of a grid: of tensors with one axis each (or 0-d, as one position) one
    /// tensor each with all the axes, in which it runs along its own and is the same along the
    /// others. Views. There is no default for the indexing: PyTorch's is `ij`, NumPy's is `xy`.
    ///
    /// Errors for a tensor with more axes, and for none. Gradient: summed over the other axes.
    ///
    /// ```
    /// use chainrule::{Indexing, Tensor};
    /// let (a, b) = (Tensor::arange(0, 2), Tensor::arange(0, 3));
    /// let grid = Tensor::meshgrid(&[&a, &b], Indexing::Ij);
    /// assert_eq!(grid[0].to_vec::<i64>(), [0, 0, 0, 1, 1, 1]);
    /// assert_eq!(grid[1].to_vec::<i64>(), [0, 1, 2, 0, 1, 2]);
    /// assert_eq!(Tensor::meshgrid(&[&a, &b], Indexing::Xy)[0].shape(), [3, 2]);
    /// ```
    #[track_caller]
    pub fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Vec<Tensor> {
        match Tensor::try_meshgrid(tensors, indexing) {
            Ok(t) => t,
            Err(e) => crate::error::raise(e),
        }
    }

    /// Like [`Tensor::meshgrid`], but returns the error.
    #[track_caller]
    pub fn try_meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        let rank = tensors.len();
        if rank == 0 || rank > MAX_RANK {
            let why = format!("a grid of {rank} tensors is not possible; give 1 to {MAX_RANK}");
            return Err(Error::argument("meshgrid", why));
        }
        if let Some(wide) = tensors.iter().find(|t| t.rank() > 1) {
            let why = "each tensor must have one axis; flatten it first";
            return Err(Error::shape("meshgrid", &[&wide.shape()], why));
        }
        let place = |i: usize| match indexing {
            Indexing::Xy if rank > 1 && i < 2 => 1 - i,
            _ => i,
        };
        let mut sizes = [1; MAX_RANK];
        tensors.iter().enumerate().for_each(|(i, t)| sizes[place(i)] = t.numel());
        let shape = sizes[..rank].into_shape("meshgrid")?;
        let stretch = |(i, t): (usize, &&Tensor)| {
            let mut own = [1; MAX_RANK];
            own[place(i)] = t.numel();
            t.try_reshape(&own[..rank])?.try_expand(shape)
        };
        tensors.iter().enumerate().map(stretch).collect()
    }
}

/// A sum of the tensors with different weights, which tells them apart.
fn mixed(tensors: &[Tensor]) -> Result<Tensor> {
    let mut sum = tensors[0].try_mul(2.0)?;
    for (i, t) in tensors.iter().enumerate().skip(1) {
        sum = sum.try_add(&t.try_mul(t)?.try_mul((i + 2) as f64)?)?;
    }
    Ok(sum)
}

pub(super) const ENTRY: Entry = Entry {
    name: "meshgrid",
    family: Family::Shape,
    signature: "Tensor::meshgrid(&[&a, &b], Indexing::Ij), Tensor::broadcast_tensors(&[&a, &b])",
    python: &[Binding::by_hand("meshgrid", "several tensors").no_method().no_function()],
    formula: "y0[i, j] = a[i]; y1[i, j] = b[j]",
    gradient: "da[i] = sum over j of g0[i, j]; db[j] = sum over i of g1[i, j]",
    at_kinks: "",
    samples: |g| {
        let grid = |x: &[Tensor], indexing| {
            mixed(&Tensor::try_meshgrid(&x.iter().collect::<Vec<_>>(), indexing)?)
        };
        vec![
            Sample::new("ij", vec![normal(g, [3]), normal(g, [2])], move |x| grid(x, Indexing::Ij)),
            Sample::new("xy", vec![normal(g, [3]), normal(g, [2]), normal(g, [4])], move |x| {
                grid(x, Indexing::Xy)
            }),
            Sample::new("0-d", vec![normal(g, ()), normal(g, [2])], move |x| grid(x, Indexing::Xy)),
            Sample::new("empty", vec![normal(g, [0]), normal(g, [2])], move |x| {
                grid(x, Indexing::Ij)
            }),
            Sample::new("broadcast", vec![normal(g, [2, 1]), normal(g, [3])], |x| {
                mixed(&Tensor::try_broadcast_tensors(&[&x[0], &x[1]])?)
            }),
        ]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_errors() {
        let sizes = [2, 3, 4].map(|n| Tensor::arange(0, n));
        let grid = Tensor::meshgrid(&sizes.each_ref(), Indexing::Xy);
        assert!(grid.iter().all(|t| t.shape() == [3, 2, 4]));
        assert_eq!(grid[0].at::<i64>(&[2, 1, 3]), 1);
        assert_eq!(grid[1].at::<i64>(&[2, 1, 3]), 2);
        assert_eq!(Tensor::meshgrid(&[&sizes[0]], Indexing::Xy)[0].to_vec::<i64>(), [0, 1]);
        assert!(Tensor::try_meshgrid(&[], Indexing::Ij).is_err());
        assert!(Tensor::try_meshgrid(&[&sizes[0]; 9], Indexing::Ij).is_err());
        assert!(Tensor::try_meshgrid(&[&Tensor::zeros([1, 1])], Indexing::Ij).is_err());
        assert!(Tensor::broadcast_tensors(&[]).is_empty());
        let text = Tensor::try_broadcast_tensors(&[&sizes[0], &sizes[1]]).unwrap_err();
        assert!(text.to_string().starts_with("broadcast_tensors: shapes [2] and [3]"));
    }
}
