//! `split` and `chunk`: a tensor in parts along an axis, each a view.

use crate::ops::prelude::*;

methods! {
    /// Parts of `size` positions along `axis`, as views; the last one has what is left over.
    /// Gradient: `dx` has the gradient of each part in its place.
    ///
    /// A size of 0 is an error, except for an axis of size 0: that gives one empty part, whatever
    /// the size.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let parts = Tensor::arange(0, 5).split(2, 0);
    /// assert_eq!(parts.len(), 3);
    /// assert_eq!(parts[2].to_vec::<i64>(), [4]);
    /// ```
    pub fn split / try_split(&self, size: usize, axis: i64) -> Vec<Tensor> {
        let shape = self.shape();
        let n = shape[shape.axis("split", axis)?];
        if size == 0 && n > 0 {
            return Err(Error::shape("split", &[&shape], "parts of size 0 have no end; use 1 at least"));
        }
        let count = if n == 0 { 1 } else { n.div_ceil(size) };
        let sizes: Vec<usize> = (0..count).map(|i| size.min(n - i * size)).collect();
        parts(self, &sizes, axis)
    }

    /// Parts of these sizes along `axis`, as views. The sizes must add up to that of the axis.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let parts = Tensor::arange(0, 5).split_with_sizes(&[1, 4], 0);
    /// assert_eq!(parts[1].to_vec::<i64>(), [1, 2, 3, 4]);
    /// ```
    pub fn split_with_sizes / try_split_with_sizes(&self, sizes: &[usize], axis: i64) -> Vec<Tensor> {
        let shape = self.shape();
        let n = shape[shape.axis("split_with_sizes", axis)?];
        let total = sizes.iter().fold(0usize, |t, &s| t.saturating_add(s));
        if total != n {
            let why = format!("the sizes {sizes:?} add up to {total}, axis {axis} has {n}");
            return Err(Error::shape("split_with_sizes", &[&shape], why));
        }
        parts(self, sizes, axis)
    }

    /// At most `count` parts of equal size along `axis`, as views; the last one may be smaller. As
    /// in PyTorch there may be fewer parts than asked for: their size is that of the axis divided
    /// by `count`, rounded up. An empty axis gives `count` empty parts. A count of 0 is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::arange(0, 7).chunk(3, 0)[2].to_vec::<i64>(), [6]);
    /// assert_eq!(Tensor::arange(0, 6).chunk(4, 0).len(), 3);
    /// ```
    pub fn chunk / try_chunk(&self, count: usize, axis: i64) -> Vec<Tensor> {
        let shape = self.shape();
        let n = shape[shape.axis("chunk", axis)?];
        if count == 0 {
            return Err(Error::argument("chunk", "0 chunks hold nothing; ask for 1 at least"));
        }
        if n == 0 {
            return Ok(vec![self.clone(); count.min(1 << 16)]);
        }
        self.try_split(n.div_ceil(count), axis)
    }
}

/// The parts one after the other.
#[track_caller]
fn parts(x: &Tensor, sizes: &[usize], axis: i64) -> Result<Vec<Tensor>> {
    let mut out = Vec::with_capacity(sizes.len());
    let mut start = 0;
    for &size in sizes {
        out.push(x.try_narrow(axis, start, size)?);
        start += size;
    }
    Ok(out)
}

/// The parts, weighted and joined in reverse order: a result that tells them apart.
#[track_caller]
fn turned(parts: &[Tensor], axis: i64) -> Result<Tensor> {
    let weigh = |(i, part): (usize, &Tensor)| part.try_mul((i + 2) as f64);
    let parts = parts.iter().enumerate().rev().map(weigh).collect::<Result<Vec<_>>>()?;
    Tensor::try_cat(&parts.iter().collect::<Vec<_>>(), axis)
}

pub(super) const ENTRY: Entry = Entry {
    name: "split",
    family: Family::Shape,
    signature: "x.split(size, axis), x.split_with_sizes(&sizes, axis), x.chunk(count, axis)",
    python: &[
        Binding::by_hand("split", "its result is a view, which aliases"),
        Binding::by_hand("chunk", "its result is a view, which aliases"),
    ],
    formula: "x in parts along an axis",
    gradient: "dx has the gradient of each part in its place",
    at_kinks: "",
    samples: |g| {
        vec![
            Sample::new("equal parts", vec![normal(g, [6, 2])], |x| {
                turned(&x[0].try_split(2, 0)?, 0)
            }),
            Sample::new("a smaller last part", vec![normal(g, [2, 5])], |x| {
                turned(&x[0].try_split(3, -1)?, 1)
            }),
            Sample::new("sizes", vec![normal(g, [2, 5, 2])], |x| {
                turned(&x[0].try_split_with_sizes(&[1, 0, 4], 1)?, 1)
            }),
            Sample::new("chunks", vec![normal(g, [7])], |x| turned(&x[0].try_chunk(3, 0)?, 0)),
            Sample::new("empty", vec![normal(g, [0, 3])], |x| turned(&x[0].try_split(2, 0)?, 0)),
        ]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(parts: Result<Vec<Tensor>>) -> Vec<usize> {
        parts.unwrap().iter().map(|p| p.shape()[0]).collect()
    }

    /// Sizes of PyTorch's `split` and `chunk`.
    #[test]
    fn sizes_of_the_parts() {
        let x = Tensor::zeros([7, 2]);
        assert_eq!(sizes(x.try_split(3, 0)), [3, 3, 1]);
        assert_eq!(sizes(x.try_split(usize::MAX, 0)), [7]);
        assert_eq!(sizes(x.try_chunk(4, 0)), [2, 2, 2, 1]);
        assert_eq!(sizes(x.try_chunk(5, 0)), [2, 2, 2, 1]);
        assert_eq!(sizes(x.try_chunk(usize::MAX, 0)), [1; 7]);
        let none = Tensor::zeros([0]);
        assert_eq!(sizes(none.try_split(0, 0)), [0]);
        assert_eq!(sizes(none.try_split(2, 0)), [0]);
        assert_eq!(sizes(none.try_chunk(3, 0)), [0, 0, 0]);
        assert!(none.split_with_sizes(&[], 0).is_empty());
        let text = x.try_split_with_sizes(&[3, 3], 0).unwrap_err().kind().to_string();
        let want = "split_with_sizes: shape [7, 2]: the sizes [3, 3] add up to 6, axis 0 has 7";
        assert_eq!(text, want);
        assert!(x.try_split_with_sizes(&[usize::MAX, 8], 0).is_err());
        assert!(x.try_split(0, 0).is_err() && x.try_chunk(0, 0).is_err());
        assert!(x.try_split(1, 2).is_err() && Tensor::zeros(()).try_chunk(1, 0).is_err());
    }
}
