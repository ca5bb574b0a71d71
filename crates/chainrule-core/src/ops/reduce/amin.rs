//! `amin`: the smallest element over axes, as `min`, but for the gradient of NaN.

use super::max::Extreme;
use super::min::MISTAKES;
use crate::ops::prelude::*;

methods! {
    /// The smallest element over `axes`, by PyTorch's other name: [`Tensor::min`], but for one
    /// case. If the smallest is NaN the gradient is NaN, also if all axes go. Ties share the
    /// gradient equally. For all dtypes; an axis without elements is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 1.0]]);
    /// assert_eq!(x.amin(1, true).to_vec::<f32>(), [1.0, 1.0]);
    /// ```
    pub fn amin / try_amin<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("amin", &self.shape())?;
        apply(Extreme { axes, keepdim, least: true, strict: true }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "amin",
    family: Family::Reduce,
    signature: "x.amin(axes, keepdim)",
    python: &[Binding::reduction("amin", |x, a| {
        let (x, axes, keepdim) = a.reduced(x)?;
        x.try_amin(axes, keepdim)
    })],
    formula: "the smallest element over the axes",
    gradient: "dx = g where x is the smallest, shared equally by ties",
    at_kinks: "ties share the gradient equally; where the smallest is NaN the gradient is NaN",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_amin(axes, keepdim));
        let ties = Tensor::from([[1.0, 3.0, 1.0], [3.0, 2.0, 1.0]]);
        out.push(Sample::new("ties", vec![ties], |x| x[0].try_amin(.., false)).at_kink());
        out
    },
    mistakes: MISTAKES,
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn where_the_smallest_is_nan_the_gradient_is_nan() {
        let x = Tensor::from([[1.0, f64::NAN], [2.0, f64::NAN]]).parameter();
        x.amin(.., false).backward();
        assert!(x.grad().unwrap().to_vec::<f64>().iter().all(|d| d.is_nan()));
    }

    #[test]
    fn an_error_has_its_name() {
        let error = Tensor::zeros([0]).try_amin(0, false).unwrap_err().to_string();
        assert!(error.starts_with("amin: shape [0]: axis 0 has no elements"), "{error}");
    }
}
