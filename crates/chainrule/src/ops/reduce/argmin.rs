//! `argmin`: where the smallest element stands.

use super::max::nothing_to_pick;
use crate::kernels::reduce::least::Least;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct ArgMin {
    axes: Axes,
    keepdim: bool,
}

impl Op for ArgMin {
    fn name(&self) -> &'static str {
        "argmin"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = inputs[0].shape;
        nothing_to_pick(self.name(), &shape, self.axes, "smallest")?;
        Ok(Meta::new(self.axes.reduce(&shape, self.keepdim), DType::I64))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, _: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![None])
    }

    fn jvp(&self, _: &Saved<'_>, _: &[Option<Tensor>]) -> Result<Tensor> {
        Err(Error::gradient(self.name(), "a position has no derivative"))
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl ReduceKernel for ArgMin {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        fn run<T: Least + Default>(x: &[T], extent: Extent, out: &mut [i64]) {
            let mut values = vec![T::default(); out.len()];
            T::smallest_at(x, extent.count, extent.inner, &mut values, out)
        }
        match (x, out) {
            (Array::F32(x), Output::I64(out)) => run(x, extent, out),
            (Array::F64(x), Output::I64(out)) => run(x, extent, out),
            (Array::I64(x), Output::I64(out)) => run(x, extent, out),
            (Array::Bool(x), Output::I64(out)) => run(x, extent, out),
            _ => unreachable!("positions are i64"),
        }
    }
}

methods! {
    /// The position of the smallest element along one axis, i64. With `keepdim` the axis stays, with size 1. For all dtypes; a constant
    /// for differentiation.
    ///
    /// Of several equal elements the first is meant; NaN is smaller than everything. An axis without elements is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]);
    /// assert_eq!(x.argmin(1, false).to_vec::<i64>(), [0, 2]);
    /// ```
    pub fn argmin / try_argmin(&self, axis: i64, keepdim: bool) -> Tensor {
        let axes = Axes::one(self.shape().axis("argmin", axis)?);
        apply(ArgMin { axes, keepdim }, &[self])
    }

    /// The position of the smallest of all elements in row-major order, a 0-d i64 tensor.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[4, 3], [1, 2]]).argmin_all().item(), 2.0);
    /// ```
    pub fn argmin_all / try_argmin_all(&self) -> Tensor {
        apply(ArgMin { axes: Axes::all(&self.shape()), keepdim: false }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "argmin",
    family: Family::Reduce,
    signature: "x.argmin(axis, keepdim), x.argmin_all()",
    formula: "the first position of the smallest element",
    gradient: "",
    at_kinks: "of ties the first is meant; NaN is the smallest",
    samples: |g| {
        vec![
            Sample::new("rows", vec![normal(g, [3, 17])], |x| x[0].try_argmin(1, false)),
            Sample::new("columns, kept", vec![normal(g, [4, 3])], |x| x[0].try_argmin(0, true)),
            Sample::new("all", vec![normal(g, [2, 3])], |x| x[0].try_argmin_all()),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_argmin_all()),
            Sample::new("no rows", vec![normal(g, [0, 3])], |x| x[0].try_argmin(1, false)),
        ]
    },
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
