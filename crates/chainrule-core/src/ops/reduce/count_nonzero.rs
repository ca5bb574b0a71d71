//! `count_nonzero`: how many elements over axes are not 0.

use crate::ops::prelude::*;

methods! {
    /// The number of elements over `axes` (a number, a list, or `..` for all) that are not 0, i64;
    /// the axes are gone. For all dtypes.
    ///
    /// NaN is not 0. A constant for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[0.0f32, 2.0, 3.0], [0.0, 0.0, 1.0]]);
    /// assert_eq!(x.count_nonzero(1).to_vec::<i64>(), [2, 1]);
    /// assert_eq!(x.count_nonzero(..).item(), 3.0);
    /// ```
    pub fn count_nonzero / try_count_nonzero<A: IntoAxes>(&self, axes: A) -> Tensor {
        let axes = axes.into_axes("count_nonzero", &self.shape())?;
        let zero = Tensor::try_full((), 0.0, self.dtype())?;
        self.try_ne(zero)?.try_sum(axes, false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "count_nonzero",
    family: Family::Reduce,
    signature: "x.count_nonzero(axes)",
    python: &[Binding::with(
        "count_nonzero",
        &[Parameter::axes("dim").or_none().also("axis")],
        |x, a| x.try_count_nonzero(a.axes(0, x)),
    )],
    formula: "the number of elements over the axes that are not 0",
    gradient: "",
    at_kinks: "NaN is not 0",
    samples: |g| vec![Sample::new("rows", vec![normal(g, [3, 17])], |x| x[0].try_count_nonzero(1))],
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn every_dtype_nan_and_nothing() {
        let count = |x: &Tensor| {
            let n = x.count_nonzero(..);
            assert_eq!((n.dtype(), n.rank()), (DType::I64, 0));
            n.item()
        };
        assert_eq!(count(&Tensor::from([f64::NAN, 0.0, -0.0, 1.0])), 2.0);
        assert_eq!(count(&Tensor::from([0i64, 3])), 1.0);
        assert_eq!(count(&Tensor::from([true, false, true])), 2.0);
        assert_eq!(count(&Tensor::zeros([0, 3])), 0.0);
        assert_eq!(Tensor::ones([2, 3]).count_nonzero([0]).to_vec::<i64>(), [2; 3]);
    }
}
