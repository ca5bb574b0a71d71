//! `max_axis`: the largest element over one axis and where it stands; the gradient follows the
//! position.

use super::max::no_extreme_of_nothing;
use crate::kernels::reduce::extremum;
use crate::kernels::reduce::least::extreme_at;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::run::adjacent;

/// The largest or the smallest element along an axis, and where it stands.
#[derive(Debug, Parameters)]
pub(super) struct ExtremeAt {
    pub axis: usize,
    pub keepdim: bool,
    pub least: bool,
}

impl Op for ExtremeAt {
    fn name(&self) -> &'static str {
        if self.least { "min_axis" } else { "max_axis" }
    }

    fn id(&self) -> Option<OpId> {
        Some(if self.least { OpId::min_axis } else { OpId::max_axis })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.least {
            "_min_axis({0}, {axis}, {keepdim})"
        } else {
            "_max_axis({0}, {axis}, {keepdim})"
        }))
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn reading(&self) -> Reading {
        let axes = Axes::one(self.axis);
        Reading::Fold { fold: Fold::Extreme, axes, keepdim: self.keepdim }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = inputs[0];
        let axes = Axes::one(self.axis);
        no_extreme_of_nothing(self.name(), &x.shape, axes, self.least)?;
        Ok(Meta::new(axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn orders(&self) -> bool {
        true
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
        let place = PlaceAlong { axis: self.axis, count: at.input_shape(0)[self.axis] };
        Ok(smallvec![Some(apply(place, &[&g, &positions])?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        picked_tangent(dx, &at.extra(0), self.axis, self.keepdim)
    }
}

impl ExtremeAt {
    /// The values and the positions.
    #[track_caller]
    pub(super) fn of(self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let (values, extra) = apply_extra(self, &[x])?;
        let positions = Tensor::from_parts(extra[0].clone(), Source::None);
        let positions = positions.try_reshape(values.shape())?;
        Ok((values, positions))
    }
}

/// The tangent of an element picked along an axis at positions with that axis kept: by way of a
/// one-hot mask.
pub(super) fn picked_tangent(
    dx: &Tensor,
    positions: &Tensor,
    axis: usize,
    keepdim: bool,
) -> Result<Tensor> {
    let shape = dx.shape();
    let along: Vec<usize> =
        (0..shape.rank()).map(|a| if a == axis { shape[a] } else { 1 }).collect();
    let places = Tensor::arange(0, shape[axis] as i64).try_reshape(along)?;
    let one_hot = places.try_eq(positions)?.try_to_dtype(dx.dtype())?;
    dx.try_mul(&one_hot)?.try_sum(Axes::one(axis), keepdim)
}

impl WholeKernel for ExtremeAt {
    /// The extra value is the positions, with the axis kept.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let axes = Axes::one(self.axis);
        let (x, extent) = adjacent(&inputs[0], axes)?;
        let Extent { count, inner, .. } = extent;
        let kept = axes.reduce(inputs[0].shape(), true);
        let mut value = Value::uninit(self.name(), out)?;
        let mut at = Value::uninit(self.name(), Meta::new(kept, DType::I64))?;
        let (least, positions) = (self.least, at.elements_mut::<i64>());
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| extreme_at(
            least,
            x.elements::<T>(),
            count,
            inner,
            value.elements_mut(),
            positions
        ));
        Ok(Outcome { value: value.share(), extra: smallvec![at.share()] })
    }
}

/// Elements put at their positions along an axis, among zeros. The inputs: the elements and the
/// positions, both with the axis of size 1.
#[derive(Debug, Parameters)]
pub(super) struct PlaceAlong {
    pub axis: usize,
    pub count: usize,
}

impl Op for PlaceAlong {
    fn name(&self) -> &'static str {
        "place"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_place({0}, {1}, {axis}, {count})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let mut shape = inputs[0].shape;
        shape.dims_mut()[self.axis] = self.count;
        Ok(Meta::new(shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let pick = Pick { axis: self.axis };
        Ok(smallvec![Some(apply(pick, &[cotangent, &at.input(1)])?), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let place = PlaceAlong { axis: self.axis, count: self.count };
        let dx = tangents[0].as_ref().expect("the only tangent");
        apply(place, &[dx, &at.input(1)])
    }
}

impl WholeKernel for PlaceAlong {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (g, at) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let at: &[i64] = at.slice().expect("made contiguous");
        let (count, inner) = (self.count, out.shape[self.axis + 1..].iter().product());
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(g.dtype(), [F32, F64], |T| extremum::place(
            g.elements::<T>(),
            at,
            count,
            inner,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The elements at positions along an axis, which is left with size 1: the reverse of
/// [`PlaceAlong`].
#[derive(Debug, Parameters)]
struct Pick {
    axis: usize,
}

impl Op for Pick {
    fn name(&self) -> &'static str {
        "pick"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.take_along_axis({0}, {1}, {axis})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[1].shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let place = PlaceAlong { axis: self.axis, count: at.input_shape(0)[self.axis] };
        Ok(smallvec![Some(apply(place, &[cotangent, &at.input(1)])?), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        apply(Pick { axis: self.axis }, &[dx, &at.input(1)])
    }
}

impl WholeKernel for Pick {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, at) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let at: &[i64] = at.slice().expect("made contiguous");
        let count = inputs[0].shape()[self.axis];
        let inner = out.shape[self.axis + 1..].iter().product();
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| extremum::pick(
            x.elements::<T>(),
            at,
            count,
            inner,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The largest element over one axis, and its position along it (i64). With `keepdim` the axis
    /// stays, with size 1. For all dtypes.
    ///
    /// The first of several equal elements is meant; NaN is larger than everything. An axis without
    /// elements is an error. Gradient: `g` at the returned position, so ties do not share it, as in
    /// PyTorch's `max(dim)`; they do in [`Tensor::max`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) =
    ///     Tensor::from([[1.0f32, 3.0, 3.0], [3.0, 2.0, 0.0]]).max_axis(1, false);
    /// assert_eq!(values.to_vec::<f32>(), [3.0, 3.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [1, 0]);
    /// ```
    pub fn max_axis / try_max_axis(&self, axis: i64, keepdim: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("max_axis", axis)?;
        ExtremeAt { axis, keepdim, least: false }.of(self)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "max_axis",
    family: Family::Reduce,
    signature: "x.max_axis(axis, keepdim)",
    python: &[Binding::by_hand("max", "it is max with an axis").no_method().no_function()],
    formula: "the largest element over an axis, and its first position",
    gradient: "dx = g at that position",
    at_kinks: "of ties the first gets the whole gradient; NaN is the largest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_max_axis(axis, axis == -1)?.0));
        let ties = Tensor::from([[1.0, 3.0, 3.0], [3.0, 2.0, 0.0]]);
        let tied = Sample::new("ties", vec![ties], |x| Ok(x[0].try_max_axis(1, false)?.0));
        out.push(tied.at_kink());
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient to all",
            what: "every element gets the gradient, not only the largest",
            rule: to_all,
        },
        Mistake {
            name: "the wrong one",
            what: "the gradient goes to the neighbour of the largest: the positions are off by one",
            rule: |op, at, g, _| {
                let (axis, positions) = (axis_of(op)?, at.extra(0));
                let count = at.input_shape(0)[axis];
                let next = positions.try_add(1i64)?;
                let inside = next.try_lt(count as i64)?.try_to_dtype(DType::I64)?;
                let next = next.try_mul(&inside)?;
                let g = g.try_reshape(positions.shape())?;
                Ok(smallvec![Some(apply(PlaceAlong { axis, count }, &[&g, &next])?)])
            },
        },
    ],
};

pub(super) fn to_all(_: &dyn Op, at: &Saved<'_>, g: &Tensor, _: Wanted) -> Result<Grads> {
    let kept = g.try_reshape(at.extra(0).shape())?;
    Ok(smallvec![Some(kept.try_expand(at.input_shape(0))?)])
}

pub(super) fn axis_of(op: &dyn Op) -> Result<usize> {
    Ok(op.downcast::<ExtremeAt>()?.axis)
}

#[cfg(test)]
mod tests {
    use crate::{Tensor, autograd};

    /// Values, positions and the gradient that PyTorch 2.15 gives for `max(dim)`.
    #[test]
    fn the_first_of_ties_gets_the_gradient() {
        let x = Tensor::from([[1.0, 3.0, 3.0], [3.0, 2.0, 0.0]]).parameter();
        let (values, positions) = x.max_axis(1, true);
        assert_eq!((values.shape(), positions.shape()), (positions.shape(), values.shape()));
        assert_eq!(values.to_vec::<f64>(), [3.0, 3.0]);
        assert_eq!(positions.to_vec::<i64>(), [1, 0]);
        assert!(values.requires_grad() && !positions.requires_grad());
        values.sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    }

    /// As above.
    #[test]
    fn the_first_nan_is_the_largest() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 0.0], [-inf; 4]]).parameter();
        let (values, positions) = x.max_axis(-1, false);
        assert_eq!(positions.to_vec::<i64>(), [1, 0, 0]);
        assert!(values.at::<f64>(&[0]).is_nan());
        values.sum_all().backward();
        let want = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), want);
    }

    #[test]
    fn the_gradient_is_linear_in_g_and_can_be_differentiated() {
        let x = Tensor::from([[1.0, 5.0], [4.0, 2.0]]).parameter();
        let g = Tensor::from([2.0, 3.0]).parameter();
        let y = (x.max_axis(0, false).0 * &g).sum_all();
        let dx = autograd::grad_with(&y, &[&x], &autograd::GradOptions::create_graph())
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(dx.to_vec::<f64>(), [0.0, 3.0, 2.0, 0.0]);
        let weighted = (dx * Tensor::from([[10.0, 20.0], [30.0, 40.0]])).sum_all();
        let dg = autograd::grad(&weighted, &[&g]).unwrap().remove(0);
        assert_eq!(dg.unwrap().to_vec::<f64>(), [30.0, 20.0]);
    }

    #[test]
    fn integers_views_and_errors() {
        let x = Tensor::from([[1i64, 9], [7, 7]]);
        let (values, positions) = x.t().max_axis(0, false);
        assert_eq!(values.to_vec::<i64>(), [9, 7]);
        assert_eq!(positions.to_vec::<i64>(), [1, 0]);
        assert!(Tensor::zeros([2, 0]).try_max_axis(1, false).is_err());
        assert!(Tensor::scalar(1.0f32).try_max_axis(0, false).is_err());
        assert_eq!(Tensor::zeros([0, 3]).max_axis(1, true).1.shape(), [0, 1]);
    }
}
