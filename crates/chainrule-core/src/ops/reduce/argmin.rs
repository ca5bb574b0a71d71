//! `argmin`: where the smallest element stands.

use super::argmax::{ArgExtreme, position_samples};
use crate::ops::prelude::*;

methods! {
    /// The position of the smallest element along one axis, i64. With `keepdim` the axis stays,
    /// with size 1. For all dtypes; a constant for differentiation.
    ///
    /// The first of several equal elements is meant; NaN is smaller than everything. An axis
    /// without elements is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]);
    /// assert_eq!(x.argmin(1, false).to_vec::<i64>(), [0, 2]);
    /// ```
    pub fn argmin / try_argmin(&self, axis: i64, keepdim: bool) -> Tensor {
        let axes = Axes::one(self.shape().axis("argmin", axis)?);
        apply(ArgExtreme { axes, keepdim, least: true }, &[self])
    }

    /// The position of the smallest of all elements in row-major order, a 0-d i64 tensor.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[4, 3], [1, 2]]).argmin_all().item(), 2.0);
    /// ```
    pub fn argmin_all / try_argmin_all(&self) -> Tensor {
        let axes = Axes::all(&self.shape());
        apply(ArgExtreme { axes, keepdim: false, least: true }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "argmin",
    family: Family::Reduce,
    signature: "x.argmin(axis, keepdim), x.argmin_all()",
    python: &[Binding::with(
        "argmin",
        &[Parameter::int("dim").or_none().also("axis"), KEEPDIM],
        |x, a| match a.maybe_int(0) {
            Some(axis) => along_axis(x, axis, |x| x.try_argmin(axis, a.flag(1))),
            // The axes that stay have size 1.
            None if a.flag(1) => x.try_argmin_all()?.try_reshape(vec![1i64; x.rank()]),
            None => x.try_argmin_all(),
        },
    )],
    formula: "the first position of the smallest element",
    gradient: "",
    at_kinks: "of ties the first is meant; NaN is the smallest",
    samples: |g| position_samples(g, Tensor::try_argmin, Tensor::try_argmin_all),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn the_first_of_ties_and_nans() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 1.0], [-inf; 4]]).parameter();
        assert_eq!(x.argmin(1, true).to_vec::<i64>(), [1, 2, 0]);
        assert!(!x.argmin(1, true).requires_grad());
        assert_eq!(Tensor::from([[1.0f32, 0.0], [0.0, 2.0]]).argmin_all().item(), 1.0);
        assert!(Tensor::zeros([2, 0]).try_argmin_all().is_err());
        assert_eq!(Tensor::from([3i64, 1, 1]).argmin(0, false).item(), 1.0);
    }
}
