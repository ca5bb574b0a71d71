//! `argmax`: where the largest element stands.

use super::max::no_extreme_of_nothing;
use crate::kernels::reduce::least::{Least, extreme_at};
use crate::ops::prelude::*;

/// Position of the largest or the smallest element.
#[derive(Debug, Parameters)]
pub(super) struct ArgExtreme {
    pub axes: Axes,
    pub keepdim: bool,
    pub least: bool,
}

impl Op for ArgExtreme {
    fn name(&self) -> &'static str {
        if self.least { "argmin" } else { "argmax" }
    }

    fn id(&self) -> Option<OpId> {
        Some(if self.least { OpId::argmin } else { OpId::argmax })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.least {
            "_arg(np.argmin, {0}, {axes}, {keepdim})"
        } else {
            "_arg(np.argmax, {0}, {axes}, {keepdim})"
        }))
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = inputs[0].shape;
        no_extreme_of_nothing(self.name(), &shape, self.axes, self.least)?;
        Ok(Meta::new(self.axes.reduce(&shape, self.keepdim), DType::I64))
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl ReduceKernel for ArgExtreme {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        fn run<T: Least>(least: bool, x: &[T], extent: Extent, out: &mut [i64]) {
            let mut values = vec![T::default(); out.len()];
            extreme_at(least, x, extent.count, extent.inner, &mut values, out)
        }
        match (x, out) {
            (Array::F32(x), Output::I64(out)) => run(self.least, x, extent, out),
            (Array::F64(x), Output::I64(out)) => run(self.least, x, extent, out),
            (Array::I64(x), Output::I64(out)) => run(self.least, x, extent, out),
            (Array::Bool(x), Output::I64(out)) => run(self.least, x, extent, out),
            _ => unreachable!("positions are i64"),
        }
    }
}

methods! {
    /// The position of the largest element along one axis, i64. With `keepdim` the axis stays, with
    /// size 1. For all dtypes; a constant for differentiation.
    ///
    /// The first of several equal elements is meant; NaN is larger than everything. An axis without
    /// elements is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let logits = Tensor::from([[1.0f32, 3.0, 3.0], [3.0, 2.0, 0.0]]);
    /// assert_eq!(logits.argmax(1, false).to_vec::<i64>(), [1, 0]);
    /// ```
    pub fn argmax / try_argmax(&self, axis: i64, keepdim: bool) -> Tensor {
        let axes = Axes::one(self.shape().axis("argmax", axis)?);
        apply(ArgExtreme { axes, keepdim, least: false }, &[self])
    }

    /// The position of the largest of all elements in row-major order, a 0-d i64 tensor.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[1, 3], [9, 2]]).argmax_all().item(), 2.0);
    /// ```
    pub fn argmax_all / try_argmax_all(&self) -> Tensor {
        let axes = Axes::all(&self.shape());
        apply(ArgExtreme { axes, keepdim: false, least: false }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "argmax",
    family: Family::Reduce,
    signature: "x.argmax(axis, keepdim), x.argmax_all()",
    python: &[Binding::with(
        "argmax",
        &[Parameter::int("dim").or_none().also("axis"), KEEPDIM],
        |x, a| match a.maybe_int(0) {
            Some(axis) => along_axis(x, axis, |x| x.try_argmax(axis, a.flag(1))),
            // The axes that stay have size 1.
            None if a.flag(1) => x.try_argmax_all()?.try_reshape(vec![1i64; x.rank()]),
            None => x.try_argmax_all(),
        },
    )],
    formula: "the first position of the largest element",
    gradient: "",
    at_kinks: "of ties the first is meant; NaN is the largest",
    samples: |g| position_samples(g, Tensor::try_argmax, Tensor::try_argmax_all),
    mistakes: &[],
};

pub(super) fn position_samples(
    g: &mut Generator,
    along: fn(&Tensor, i64, bool) -> Result<Tensor>,
    of_all: fn(&Tensor) -> Result<Tensor>,
) -> Vec<Sample> {
    vec![
        Sample::new("rows", vec![normal(g, [3, 17])], move |x| along(&x[0], 1, false)),
        Sample::new("columns, kept", vec![normal(g, [4, 3])], move |x| along(&x[0], 0, true)),
        Sample::new("all", vec![normal(g, [2, 3])], move |x| of_all(&x[0])),
        Sample::new("0-d", vec![normal(g, ())], move |x| of_all(&x[0])),
        Sample::new("no rows", vec![normal(g, [0, 3])], move |x| along(&x[0], 1, false)),
    ]
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn the_first_of_ties_and_nans() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 0.0], [-inf; 4]]).parameter();
        let rows = x.argmax(1, true);
        assert_eq!((rows.shape(), rows.requires_grad()), (Tensor::zeros([3, 1]).shape(), false));
        assert_eq!(rows.to_vec::<i64>(), [1, 0, 0]);
        assert_eq!(x.argmax_all().item(), 1.0);
        assert_eq!(x.argmax(0, false).to_vec::<i64>(), [1, 0, 0, 0]);
    }

    #[test]
    fn every_dtype_views_and_errors() {
        let x = Tensor::from([[1i64, 9], [7, 7]]);
        assert_eq!(x.argmax(0, false).to_vec::<i64>(), [1, 0]);
        assert_eq!(x.t().argmax_all().item(), 2.0);
        assert_eq!(x.eq(7).argmax(1, false).to_vec::<i64>(), [0, 0]);
        let error = Tensor::zeros([2, 0]).try_argmax_all().unwrap_err();
        let want = "argmax: shape [2, 0]: axis 1 has no elements, so there is no largest; check the shape before";
        assert_eq!(error.kind().to_string(), want);
    }
}
