//! `min_axis`: the smallest element over one axis and where it stands; the gradient follows the position.

use super::max::nothing_to_pick;
use super::max_axis::{Place, picked_tangent};
use crate::kernels::reduce::least::Least;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::run::adjacent;

#[derive(Debug)]
pub(crate) struct MinAxis {
    axis: usize,
    keepdim: bool,
}

impl Op for MinAxis {
    fn name(&self) -> &'static str {
        "min_axis"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = inputs[0];
        let axes = Axes::one(self.axis);
        nothing_to_pick(self.name(), &x.shape, axes, "smallest")?;
        Ok(Meta::new(axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::EXTRA
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let positions = at.extra(0);
        let g = cotangent.try_reshape(positions.shape())?;
        let place = Place { axis: self.axis, count: at.input_shape(0)[self.axis] };
        Ok(smallvec![Some(apply(place, &[&g, &positions])?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        picked_tangent(dx, &at.extra(0), self.axis, self.keepdim)
    }
}

impl WholeKernel for MinAxis {
    /// The extra value is the positions, with the axis kept.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let axes = Axes::one(self.axis);
        let (x, extent) = adjacent(&inputs[0], axes)?;
        let Extent { count, inner, .. } = extent;
        let kept = axes.reduce(inputs[0].shape(), true);
        let mut value = Value::uninit(self.name(), out)?;
        let mut at = Value::uninit(self.name(), Meta::new(kept, DType::I64))?;
        let positions = at.as_mut::<i64>();
        match (array(&x), output(&mut value)) {
            (Array::F32(x), Output::F32(o)) => Least::smallest_at(x, count, inner, o, positions),
            (Array::F64(x), Output::F64(o)) => Least::smallest_at(x, count, inner, o, positions),
            (Array::I64(x), Output::I64(o)) => Least::smallest_at(x, count, inner, o, positions),
            (Array::Bool(x), Output::Bool(o)) => Least::smallest_at(x, count, inner, o, positions),
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(Outcome { value: Arc::new(value), extra: smallvec![Arc::new(at)] })
    }
}

methods! {
    /// The smallest element over one axis, and its position along it (i64). With `keepdim` the axis stays, with size 1. For all dtypes.
    ///
    /// Of several equal elements the first is meant; NaN is smaller than everything. An axis without elements is an error. Gradient:
    /// `g` at the returned position, so ties do not share it, as in PyTorch's `min(dim)`; they do in [`Tensor::min`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([[1.0f32, 3.0, 1.0], [3.0, 2.0, 0.0]]).min_axis(1, false);
    /// assert_eq!(values.to_vec::<f32>(), [1.0, 0.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [0, 2]);
    /// ```
    pub fn min_axis / try_min_axis(&self, axis: i64, keepdim: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("min_axis", axis)?;
        let (values, extra) = apply_extra(MinAxis { axis, keepdim }, &[self])?;
        let positions = Tensor::from_parts(extra[0].clone(), Source::None);
        let positions = positions.try_reshape(values.shape())?;
        Ok((values, positions))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "min_axis",
    family: Family::Reduce,
    signature: "x.min_axis(axis, keepdim)",
    formula: "the smallest element over an axis, and its first position",
    gradient: "dx = g at that position",
    at_kinks: "of ties the first gets the whole gradient; NaN is the smallest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_min_axis(axis, axis == 0)?.0));
        let ties = Tensor::from([[1.0, 3.0, 1.0], [3.0, 2.0, 0.0]]);
        let tied = Sample::new("ties", vec![ties], |x| Ok(x[0].try_min_axis(1, false)?.0));
        out.push(tied.at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient to all",
            what: "every element gets the gradient, not only the smallest",
            rule: |_, at, g, _| {
                let kept = g.try_reshape(at.extra(0).shape())?;
                Ok(smallvec![Some(kept.try_expand(at.input_shape(0))?)])
            },
        },
        Mistake {
            name: "always the first",
            what: "the gradient goes to the first element of the axis",
            rule: |op, at, g, _| {
                let op = (op as &dyn std::any::Any).downcast_ref::<MinAxis>();
                let axis = op.expect("the rule of min_axis").axis;
                let (positions, count) = (at.extra(0), at.input_shape(0)[axis]);
                let g = g.try_reshape(positions.shape())?;
                let place = Place { axis, count };
                Ok(smallvec![Some(apply(place, &[&g, &positions.zeros_like()])?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Values, positions and the gradient that PyTorch 2.15 gives for `min(dim)`.
    #[test]
    fn the_first_of_ties_and_nans_gets_the_gradient() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 1.0], [-inf; 4]]).parameter();
        let (values, positions) = x.min_axis(-1, true);
        assert_eq!((values.shape(), positions.shape()), (positions.shape(), values.shape()));
        assert_eq!(positions.to_vec::<i64>(), [1, 2, 0]);
        assert!(values.at::<f64>(&[0, 0]).is_nan() && !positions.requires_grad());
        values.sum_all().backward();
        let want = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), want);
    }

    #[test]
    fn integers_views_and_errors() {
        let x = Tensor::from([[1i64, 9], [7, 7]]);
        let (values, positions) = x.t().min_axis(0, false);
        assert_eq!(values.to_vec::<i64>(), [1, 7]);
        assert_eq!(positions.to_vec::<i64>(), [0, 0]);
        assert!(Tensor::zeros([2, 0]).try_min_axis(1, false).is_err());
        assert!(Tensor::scalar(1.0f32).try_min_axis(0, false).is_err());
    }
}
