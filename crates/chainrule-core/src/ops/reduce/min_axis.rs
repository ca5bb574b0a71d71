//! `min_axis`: the smallest element over one axis and where it stands: `max_axis` at the other end.

use super::max_axis::{ExtremeAt, PlaceAlong, axis_of, to_all};
use crate::ops::prelude::*;

methods! {
    /// The smallest element over one axis, and its position along it (i64). With `keepdim` the axis
    /// stays, with size 1. For all dtypes.
    ///
    /// The first of several equal elements is meant; NaN is smaller than everything. An axis
    /// without elements is an error. Gradient: `g` at the returned position, so ties do not share
    /// it, as in PyTorch's `min(dim)`; they do in [`Tensor::min`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) =
    ///     Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]).min_axis(1, false);
    /// assert_eq!(values.to_vec::<f32>(), [1.0, 0.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [0, 2]);
    /// ```
    pub fn min_axis / try_min_axis(&self, axis: i64, keepdim: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("min_axis", axis)?;
        ExtremeAt { axis, keepdim, least: true }.of(self)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "min_axis",
    family: Family::Reduce,
    signature: "x.min_axis(axis, keepdim)",
    python: &[Binding::by_hand("min", "it is min with an axis").no_method().no_function()],
    formula: "the smallest element over an axis, and its first position",
    gradient: "dx = g at that position",
    at_kinks: "of ties the first gets the whole gradient; NaN is the smallest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_min_axis(axis, axis == 0)?.0));
        let ties = Tensor::from([[1.0, 3.0, 1.0], [3.0, 2.0, 0.0]]);
        let tied = Sample::new("ties", vec![ties], |x| Ok(x[0].try_min_axis(1, false)?.0));
        out.push(tied.at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient to all",
            what: "every element gets the gradient, not only the smallest",
            rule: to_all,
        },
        Mistake {
            name: "always the first",
            what: "the gradient goes to the first element of the axis",
            rule: |op, at, g, _| {
                let (axis, positions) = (axis_of(op)?, at.extra(0));
                let place = PlaceAlong { axis, count: at.input_shape(0)[axis] };
                let g = g.try_reshape(positions.shape())?;
                Ok(smallvec![Some(apply(place, &[&g, &positions.zeros_like()])?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Values, positions and the gradient that PyTorch 2.15 gives for `min(dim)`.
    #[test]
    fn the_first_of_ties_and_nans_gets_the_gradient() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 1.0], [-inf; 4]]).parameter();
        let (values, positions) = x.min_axis(-1, true);
        assert_eq!((values.shape(), positions.shape()), (positions.shape(), values.shape()));
        assert_eq!(positions.to_vec::<i64>(), [1, 2, 0]);
        assert!(values.at::<f64>(&[0, 0]).is_nan() && !positions.requires_grad());
        values.sum_all().backward();
        let want = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), want);
    }

    #[test]
    fn integers_views_and_errors() {
        let x = Tensor::from([[1i64, 9], [7, 7]]);
        let (values, positions) = x.t().min_axis(0, false);
        assert_eq!(values.to_vec::<i64>(), [1, 7]);
        assert_eq!(positions.to_vec::<i64>(), [0, 0]);
        assert!(Tensor::zeros([2, 0]).try_min_axis(1, false).is_err());
        assert!(Tensor::scalar(1.0f32).try_min_axis(0, false).is_err());
    }
}
