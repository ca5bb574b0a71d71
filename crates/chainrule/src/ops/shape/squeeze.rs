//! `squeeze` and `unsqueeze`: axes of size 1 taken out and put in, without a copy.

use crate::ops::prelude::*;

methods! {
    /// The tensor without these axes, each of which must have size 1: a view. Gradient: `dx = g` with the axes back.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 1, 3, 1]);
    /// assert_eq!(x.squeeze([1, 3]).shape(), [2, 3]);
    /// assert!(x.try_squeeze(0).is_err());
    /// ```
    pub fn squeeze / try_squeeze<A: IntoAxes>(&self, axes: A) -> Tensor {
        let shape = self.shape();
        let axes = axes.into_axes("squeeze", &shape)?;
        if let Some(a) = axes.iter().find(|&a| shape[a] != 1) {
            let why = format!("axis {a} has size {}; only axes of size 1 can go", shape[a]);
            return Err(Error::shape("squeeze", &[&shape], why));
        }
        self.try_reshape(axes.reduce(&shape, false))
    }

    /// The tensor without any axis of size 1: a view.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::zeros([1, 2, 1]).squeeze_all().shape(), [2]);
    /// ```
    pub fn squeeze_all / try_squeeze_all(&self) -> Tensor {
        let kept: Vec<usize> = self.shape().iter().copied().filter(|&d| d != 1).collect();
        self.try_reshape(kept)
    }

    /// The tensor with a new axis of size 1 in front of `axis`: a view. `axis` may be the rank, for a new last one; negative ones count from the
    /// end of the result. Gradient: `dx = g` without the axis.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3]);
    /// assert_eq!(x.unsqueeze(1).shape(), [2, 1, 3]);
    /// assert_eq!(x.unsqueeze(-1).shape(), [2, 3, 1]);
    /// ```
    pub fn unsqueeze / try_unsqueeze(&self, axis: i64) -> Tensor {
        let shape = self.shape();
        let longer = shape.with_axis("unsqueeze", 0, 1)?;
        let axis = longer.axis("unsqueeze", axis)?;
        self.try_reshape(shape.with_axis("unsqueeze", axis, 1)?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "squeeze",
    family: Family::Shape,
    signature: "x.squeeze(axes), x.unsqueeze(axis)",
    formula: "x without, or with, axes of size 1",
    gradient: "dx = g in the shape of x",
    at_kinks: "",
    samples: |g| {
        vec![
            Sample::new("squeeze", vec![normal(g, [2, 1, 3, 1])], |x| x[0].try_squeeze([1, -1])),
            Sample::new("unsqueeze", vec![normal(g, [2, 3])], |x| x[0].try_unsqueeze(-1)),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_unsqueeze(0)),
            Sample::new("empty", vec![normal(g, [0, 1])], |x| x[0].try_squeeze(1)),
            Sample::new("of a transposed view", vec![normal(g, [3, 2])], |x| x[0].try_t()?.try_unsqueeze(1)),
        ]
    },
    mistakes: &[],
};
