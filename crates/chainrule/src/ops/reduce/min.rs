//! `min`: the smallest element over axes, whose gradient ties share.

use super::max::{are_extreme, nothing_to_pick};
use crate::kernels::reduce::least::Least;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct Min {
    pub(super) axes: Axes,
    pub(super) keepdim: bool,
    /// Whether it was called by this name, which tells what becomes of NaN.
    pub(super) amin: bool,
}

impl Op for Min {
    fn name(&self) -> &'static str {
        if self.amin { "amin" } else { "min" }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = inputs[0];
        nothing_to_pick(self.name(), &x.shape, self.axes, "smallest")?;
        Ok(Meta::new(self.axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let kept = self.axes.reduce(&x.shape(), true);
        let smallest = self.are_smallest(&x, &at.output().try_reshape(kept)?)?;
        let share = cotangent.try_reshape(kept)?.try_div(&smallest.try_sum(self.axes, true)?)?;
        Ok(smallvec![Some(smallest.try_mul(&share)?)])
    }

    /// The mean of the tangents of what nothing falls short of.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let lowest = x.detach().try_neg()?.try_max(self.axes, true)?.try_neg()?;
        let smallest = self.are_smallest(&x, &lowest)?;
        let sum = dx.try_mul(&smallest)?.try_sum(self.axes, self.keepdim)?;
        sum.try_div(&smallest.try_sum(self.axes, self.keepdim)?)
    }
}

impl Min {
    /// 1 where `x` is the smallest, `y`, else 0.
    fn are_smallest(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        are_extreme(x, y, !self.amin && self.axes == Axes::all(&x.shape()))
    }
}

impl ReduceKernel for Min {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => Least::smallest(x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => Least::smallest(x, count, inner, out),
            (Array::I64(x), Output::I64(out)) => Least::smallest(x, count, inner, out),
            (Array::Bool(x), Output::Bool(out)) => Least::smallest(x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The smallest element over `axes` (a number, a list, or `..` for all). With `keepdim` the axes stay, with size 1. For all dtypes.
    ///
    /// NaN is smaller than everything. An axis without elements is an error. Gradient: `g` at the smallest element, shared equally by
    /// ties. Where the smallest is NaN, the NaNs share it if all axes go, as in PyTorch's `min`; if some do, the gradient is NaN, as in
    /// its `amin`. For the position too, and a gradient that goes to the first of several, see [`Tensor::min_axis`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]).parameter();
    /// x.min(1, false).sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.5, 0.0, 0.5, 0.0, 0.0, 1.0]);
    /// ```
    pub fn min / try_min<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("min", &self.shape())?;
        apply(Min { axes, keepdim, amin: false }, &[self])
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
        rule: |op, at, g, _| {
            let shape = at.input_shape(0);
            let kept = g.try_reshape(of(op).axes.reduce(&shape, true))?;
            Ok(smallvec![Some(kept.try_expand(shape)?)])
        },
    },
    Mistake {
        name: "largest for smallest",
        what: "the gradient goes to the largest element",
        rule: |op, at, g, _| {
            let x = at.input(0);
            let largest = x.try_max(of(op).axes, true)?;
            let there = x.try_eq(&largest)?.try_to_dtype(x.dtype())?;
            Ok(smallvec![Some(there.try_mul(&g.try_reshape(largest.shape())?)?)])
        },
    },
];

fn of(op: &dyn Op) -> &Min {
    let op = (op as &dyn std::any::Any).downcast_ref::<Min>();
    op.expect("the rule of min")
}

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
