//! `min`: the smallest element over axes, whose gradient ties share: `max` at the other end.

use super::max::{Extreme, TIES, to_all, to_the_other_end};
use crate::ops::prelude::*;

methods! {
    /// The smallest element over `axes` (a number, a list, or `..` for all). With `keepdim` the
    /// axes stay, with size 1. For all dtypes.
    ///
    /// NaN is smaller than everything. An axis without elements is an error. Gradient: `g` at the
    /// smallest element, shared equally by ties. If the smallest is NaN, the NaNs share it if all
    /// axes go, as in PyTorch's `min`; if some do, the gradient is NaN, as in its `amin`. For the
    /// position too, and a gradient that goes to the first of several, see [`Tensor::min_axis`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]).parameter();
    /// x.min(1, false).sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.5, 0.0, 0.5, 0.0, 0.0, 1.0]);
    /// ```
    pub fn min / try_min<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("min", &self.shape())?;
        apply(Extreme { axes, keepdim, least: true, strict: false }, &[self])
    }

    /// The smallest of all elements, a 0-d tensor: [`Tensor::min`] over all axes.
    pub fn min_all / try_min_all(&self) -> Tensor {
        self.try_min(.., false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "min",
    family: Family::Reduce,
    signature: "x.min(axes, keepdim)",
    python: &[Binding::by_hand(
        "min",
        "a second tensor may stand for the axis, and an axis gives two results",
    )],
    formula: "the smallest element over the axes",
    gradient: "dx = g where x is the smallest, shared equally by ties",
    at_kinks: "ties share the gradient equally; where the smallest is NaN, the NaNs do if all axes go, else the gradient is NaN",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_min(axes, keepdim));
        let ties = Tensor::from([[1.0, 3.0, 1.0], [3.0, 2.0, 1.0]]);
        out.push(Sample::new("ties", vec![ties], |x| x[0].try_min(.., false)).at_kink());
        out
    },
    mistakes: MISTAKES,
};

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "gradient to all",
        what: "every element gets the gradient, not only the smallest",
        rule: to_all,
    },
    Mistake {
        name: "largest for smallest",
        what: "the gradient goes to the largest element",
        rule: to_the_other_end,
    },
    TIES,
];

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    fn gradient(x: &Tensor, min: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
        let x = x.parameter();
        min(&x).sum_all().backward();
        x.grad().unwrap().to_vec()
    }

    /// The values that PyTorch 2.15 gives for `min` over all.
    #[test]
    fn over_all_axes_ties_and_nans_share_the_gradient() {
        let x = Tensor::from([[1.0, 3.0], [1.0, 2.0]]);
        assert_eq!(gradient(&x, Tensor::min_all), [0.5, 0.0, 0.5, 0.0]);
        let x = Tensor::from([[1.0, f64::NAN], [1.0, 2.0]]);
        assert!(x.min_all().item().is_nan());
        assert_eq!(gradient(&x, Tensor::min_all), [0.0, 1.0, 0.0, 0.0]);
    }

    /// The values that PyTorch 2.15 gives for `amin`.
    #[test]
    fn over_some_axes_nan_makes_the_gradient_nan() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 1.0], [-inf; 4]]);
        let y = x.min(1, false).to_vec::<f64>();
        assert!(y[0].is_nan() && y[1..] == [1.0, -inf]);
        let dx = gradient(&x, |x| x.min(1, false));
        assert!(dx[..4].iter().all(|d| d.is_nan()));
        assert_eq!(dx[4..], [0.0, 0.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]);
    }

    #[test]
    fn integers_bools_and_errors() {
        let x = Tensor::from([[1i64, i64::MIN], [i64::MAX, i64::MAX]]);
        assert_eq!(x.min(1, false).to_vec::<i64>(), [i64::MIN, i64::MAX]);
        let all = x.eq(i64::MAX).min(1, false);
        assert_eq!((all.dtype(), all.to_vec::<bool>()), (DType::Bool, vec![false, true]));
        let error = Tensor::zeros([0, 3]).try_min(0, false).unwrap_err();
        let want = "min: shape [0, 3]: axis 0 has no elements, so there is no smallest; check the shape before";
        assert_eq!(error.kind().to_string(), want);
    }
}
