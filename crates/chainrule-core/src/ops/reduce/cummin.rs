//! `cummin`: the smallest element so far along an axis, and where it stands.

use super::cummax::{MISTAKES, extremes};
use crate::ops::prelude::*;

methods! {
    /// The smallest element so far along `axis`, and its position (i64). For all dtypes.
    ///
    /// The last of equal elements is meant, as in PyTorch's `cummin`; NaN is smaller than
    /// everything. Gradient: each `g` is added at the returned position.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([2.0f32, 3.0, 1.0, 1.0]).cummin(0);
    /// assert_eq!(values.to_vec::<f32>(), [2.0, 2.0, 1.0, 1.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [0, 0, 2, 3]);
    /// ```
    pub fn cummin / try_cummin(&self, axis: i64) -> (Tensor, Tensor) {
        extremes(self, self.shape().axis("cummin", axis)?, true)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cummin",
    family: Family::Reduce,
    signature: "x.cummin(axis)",
    python: &[Binding::pair("cummin", &[ALONG], |x, a| {
        along_axis_pair(x, a.int(0), |x| x.try_cummin(a.int(0)))
    })],
    formula: "y[i] = the smallest of x[0] to x[i], and its last position",
    gradient: "dx[p[i]] += g[i], where p[i] is that position",
    at_kinks: "of ties the last gets the gradient; NaN is the smallest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_cummin(axis)?.0));
        let ties = Tensor::from([[2.0, 1.0, 1.0, 3.0]]);
        out.push(Sample::new("ties", vec![ties], |x| Ok(x[0].try_cummin(1)?.0)).at_kink());
        out
    },
    mistakes: MISTAKES,
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The positions that PyTorch 2.15 gives.
    #[test]
    fn the_last_of_ties_and_nans() {
        let positions = |x: Vec<f64>| Tensor::from(x).cummin(0).1.to_vec::<i64>();
        assert_eq!(positions(vec![1.0, 3.0, 1.0, 2.0]), [0, 0, 2, 2]);
        assert_eq!(positions(vec![f64::NAN, 1.0, f64::NAN]), [0, 0, 2]);
    }
}
