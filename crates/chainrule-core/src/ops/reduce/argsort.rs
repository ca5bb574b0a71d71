//! `argsort`: the positions of the elements along an axis in their order.

use crate::ops::prelude::*;

methods! {
    /// The positions of the elements along `axis` in rising order (falling, if `descending`), i64:
    /// those that [`Tensor::sort`] returns.
    ///
    /// Equal elements keep their order; NaN is larger than everything. For all dtypes; a constant
    /// for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([3.0f32, 1.0, 2.0]).argsort(0, false).to_vec::<i64>(), [1, 2, 0]);
    /// ```
    pub fn argsort / try_argsort(&self, axis: i64, descending: bool) -> Tensor {
        let axis = self.shape().axis("argsort", axis)? as i64;
        Ok(self.detach().try_sort(axis, descending)?.1)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "argsort",
    family: Family::Reduce,
    signature: "x.argsort(axis, descending)",
    python: &[Binding::with("argsort", SORTED, |x, a| {
        along_axis(x, a.int(0), |x| x.try_argsort(a.int(0), a.flag(1)))
    })],
    formula: "the positions of the elements in rising or falling order",
    gradient: "",
    at_kinks: "equal elements keep their order; NaN is the largest",
    samples: |g| vec![Sample::new("rows", vec![normal(g, [3, 17])], |x| x[0].try_argsort(1, true))],
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn columns_and_errors() {
        let x = Tensor::from([[3.0f32, 1.0], [2.0, 5.0]]).parameter();
        let order = x.argsort(0, false);
        assert_eq!(order.to_vec::<i64>(), [1, 0, 0, 1]);
        assert!(!order.requires_grad());
        let error = x.try_argsort(2, false).unwrap_err().to_string();
        assert!(error.starts_with("argsort"), "{error}");
    }
}
