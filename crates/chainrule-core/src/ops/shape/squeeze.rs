//! `squeeze`, `unsqueeze` and `flatten`: axes of size 1 taken out and put in, and neighbouring axes
//! joined. All are reshapes, with the rules of that op.

use crate::ops::prelude::*;

methods! {
    /// The tensor without these axes, each of which must have size 1: a view. Gradient: `dx = g`
    /// with the axes back.
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

    /// The tensor with a new axis of size 1 in front of `axis`: a view. `axis` may be the rank, for
    /// a new last one; negative ones count from the end of the result. Gradient: `dx = g` without
    /// the axis.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3]);
    /// assert_eq!(x.unsqueeze(1).shape(), [2, 1, 3]);
    /// assert_eq!(x.unsqueeze(-1).shape(), [2, 3, 1]);
    /// ```
    pub fn unsqueeze / try_unsqueeze(&self, axis: i64) -> Tensor {
        let shape = self.shape();
        let rank = shape.rank() as i64;
        let at = if axis < 0 { axis + rank + 1 } else { axis };
        if !(0..=rank).contains(&at) {
            let why = format!("a new axis cannot be at {axis}; its places run from {} to {rank}", -rank - 1);
            return Err(Error::shape("unsqueeze", &[&shape], why));
        }
        self.try_reshape(shape.with_axis("unsqueeze", at as usize, 1)?)
    }

    /// The axes from `start` to `end`, both included, joined to one: a view where the memory
    /// allows, else a copy. Negative ones count from the end. A 0-d tensor gets one axis of size 1.
    /// Gradient: `dx = g` in the shape of `x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3, 4]);
    /// assert_eq!(x.flatten(1, -1).shape(), [2, 12]);
    /// assert_eq!(x.flatten(0, -1).shape(), [24]);
    /// ```
    pub fn flatten / try_flatten(&self, start: i64, end: i64) -> Tensor {
        let shape = self.shape();
        if shape.rank() == 0 && (-1..=0).contains(&start) && (-1..=0).contains(&end) {
            return self.try_reshape([1]);
        }
        let (first, last) = (shape.axis("flatten", start)?, shape.axis("flatten", end)?);
        if first > last {
            let why = format!("axis {start} comes after axis {end}; the first to join must not come after the last");
            return Err(Error::shape("flatten", &[&shape], why));
        }
        let joined: usize = shape[first..=last].iter().product();
        let sizes = shape[..first].iter().copied().chain([joined]);
        let sizes: Vec<usize> = sizes.chain(shape[last + 1..].iter().copied()).collect();
        self.try_reshape(sizes)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "squeeze",
    family: Family::Shape,
    signature: "x.squeeze(axes), x.unsqueeze(axis), x.flatten(start, end)",
    python: &[
        Binding::by_hand("squeeze", "its result is a view, which aliases")
            .formula("x without axes of size 1"),
        Binding::by_hand("unsqueeze", "its result is a view, which aliases")
            .formula("x with one more axis of size 1"),
        Binding::by_hand("flatten", "its result is a view, which aliases")
            .formula("x with neighbouring axes joined")
            .also(&["ravel"]),
    ],
    formula: "x without, or with, axes of size 1, or with axes joined",
    gradient: "dx = g in the shape of x",
    at_kinks: "",
    samples: |g| {
        vec![
            Sample::new("squeeze", vec![normal(g, [2, 1, 3, 1])], |x| x[0].try_squeeze([1, -1])),
            Sample::new("unsqueeze", vec![normal(g, [2, 3])], |x| x[0].try_unsqueeze(-1)),
            Sample::new("flatten", vec![normal(g, [2, 3, 2])], |x| x[0].try_flatten(0, 1)),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_unsqueeze(0)),
            Sample::new("empty", vec![normal(g, [0, 1])], |x| x[0].try_squeeze(1)),
            Sample::new("of a transposed view", vec![normal(g, [3, 2])], |x| {
                x[0].try_t()?.try_unsqueeze(1)
            }),
        ]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn axes_go_and_come() {
        let x = Tensor::zeros([1, 2, 1]);
        assert_eq!(x.squeeze(0).shape(), [2, 1]);
        assert_eq!(x.squeeze([0, -1]).shape(), [2]);
        assert_eq!(x.squeeze_all().unsqueeze(-2).shape(), [1, 2]);
        assert_eq!(Tensor::scalar(1.0f32).unsqueeze(0).unsqueeze(-1).shape(), [1, 1]);
        assert_eq!(Tensor::zeros([1, 1]).squeeze_all().rank(), 0);
    }

    #[test]
    fn flatten_joins_a_range() {
        let x = Tensor::zeros([2, 3, 0, 4]);
        assert_eq!(x.flatten(0, 1).shape(), [6, 0, 4]);
        assert_eq!(x.flatten(-2, -1).shape(), [2, 3, 0]);
        assert_eq!(x.flatten(1, 1).shape(), x.shape());
        assert_eq!(Tensor::scalar(1.0f32).flatten(0, -1).shape(), [1]);
        let turned = Tensor::from([[1, 2], [3, 4]]).t();
        assert_eq!(turned.flatten(0, 1).to_vec::<i64>(), [1, 3, 2, 4]);
    }

    #[test]
    fn errors_name_the_axis_and_the_way_out() {
        let text = |r: crate::Result<Tensor>| r.unwrap_err().kind().to_string();
        let x = Tensor::zeros([2, 1]);
        assert_eq!(
            text(x.try_squeeze(0)),
            "squeeze: shape [2, 1]: axis 0 has size 2; only axes of size 1 can go"
        );
        assert_eq!(
            text(x.try_unsqueeze(3)),
            "unsqueeze: shape [2, 1]: a new axis cannot be at 3; its places run from -3 to 2"
        );
        assert_eq!(
            text(x.try_flatten(1, 0)),
            "flatten: shape [2, 1]: axis 1 comes after axis 0; the first to join must not come after the last"
        );
        assert!(x.try_unsqueeze(i64::MIN).is_err());
        assert!(Tensor::zeros([1; 8]).try_unsqueeze(0).is_err());
    }
}
