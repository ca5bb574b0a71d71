//! `any` and `all`: whether one element over axes, or each of them, is true.

use crate::kernels::reduce::truth;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Truth {
    axes: Axes,
    keepdim: bool,
    all: bool,
}

impl Op for Truth {
    fn name(&self) -> &'static str {
        if self.all { "all" } else { "any" }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::any)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.all {
            "np.all({0}, axis={axes}, keepdims={keepdim})"
        } else {
            "np.any({0}, axis={axes}, keepdims={keepdim})"
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.axes.reduce(&inputs[0].shape, self.keepdim), DType::Bool))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl ReduceKernel for Truth {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        let Output::Bool(out) = out else { unreachable!("the result is bool") };
        match (x, self.all) {
            (Array::F32(x), false) => truth::any(x, count, inner, out),
            (Array::F64(x), false) => truth::any(x, count, inner, out),
            (Array::I64(x), false) => truth::any(x, count, inner, out),
            (Array::Bool(x), false) => truth::any(x, count, inner, out),
            (Array::F32(x), true) => truth::all(x, count, inner, out),
            (Array::F64(x), true) => truth::all(x, count, inner, out),
            (Array::I64(x), true) => truth::all(x, count, inner, out),
            (Array::Bool(x), true) => truth::all(x, count, inner, out),
        }
    }
}

methods! {
    /// Whether an element over `axes` (a number, a list, or `..` for all) is true: a bool tensor.
    /// With `keepdim` the axes stay, with size 1.
    ///
    /// Numbers of any dtype are true unless they are 0; NaN is true. Over no elements the result
    /// is false. A constant for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[0.0f32, 2.0], [0.0, 0.0]]);
    /// assert_eq!(x.any(1, false).to_vec::<bool>(), [true, false]);
    /// assert_eq!(x.gt(5).any(.., false).item(), 0.0);
    /// ```
    pub fn any / try_any<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("any", &self.shape())?;
        apply(Truth { axes, keepdim, all: false }, &[self])
    }

    /// Whether every element over `axes` (a number, a list, or `..` for all) is true: a bool
    /// tensor. With `keepdim` the axes stay, with size 1.
    ///
    /// Numbers of any dtype are true unless they are 0; NaN is true. Over no elements the result
    /// is true. A constant for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [0.0, 3.0]]);
    /// assert_eq!(x.all(1, false).to_vec::<bool>(), [true, false]);
    /// ```
    pub fn all / try_all<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("all", &self.shape())?;
        apply(Truth { axes, keepdim, all: true }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "any, all",
    family: Family::Reduce,
    signature: "x.any(axes, keepdim), x.all(axes, keepdim)",
    python: &[
        Binding::reduction("any", |x, a| {
            let (x, axes, keepdim) = a.reduced(x)?;
            x.try_any(axes, keepdim)
        })
        .formula("whether an element over the axes is not 0"),
        Binding::reduction("all", |x, a| {
            let (x, axes, keepdim) = a.reduced(x)?;
            x.try_all(axes, keepdim)
        })
        .formula("whether every element over the axes is not 0"),
    ],
    formula: "whether an element over the axes is not 0, or every one",
    gradient: "",
    at_kinks: "NaN is not 0; of nothing, any is false and all is true",
    samples: |g| {
        vec![
            Sample::new("any in rows", vec![normal(g, [3, 17])], |x| x[0].try_any(1, false)),
            Sample::new("all in columns", vec![normal(g, [4, 3])], |x| x[0].try_all(0, true)),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_any(.., false)),
            Sample::new("empty", vec![normal(g, [0, 3])], |x| x[0].try_all(0, false)),
        ]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    /// As PyTorch 2.15.
    #[test]
    fn every_dtype_nan_and_nothing() {
        let x = Tensor::from([[1.0, f64::NAN], [0.0, -0.0]]);
        assert_eq!(x.any(1, false).to_vec::<bool>(), [true, false]);
        assert_eq!(x.all(1, false).to_vec::<bool>(), [true, false]);
        assert_eq!(x.all(0, true).shape(), [1, 2]);
        assert_eq!(Tensor::from([0i64, 2]).all(0, false).to_vec::<bool>(), [false]);
        assert_eq!(Tensor::from([false, true]).any(0, false).dtype(), DType::Bool);
        assert_eq!(Tensor::zeros([2, 0]).any(1, false).to_vec::<bool>(), [false, false]);
        assert_eq!(Tensor::zeros([2, 0]).all(.., false).to_vec::<bool>(), [true]);
        assert_eq!(Tensor::ones([2, 3, 2]).all([0, 2], false).to_vec::<bool>(), [true; 3]);
        assert!(Tensor::zeros([2]).try_any(1, false).is_err());
    }
}
