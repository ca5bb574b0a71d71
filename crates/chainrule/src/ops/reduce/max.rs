//! `max` over several axes, whose ties share the gradient, and `max_axis` over one, whose gradient follows the index.

use crate::kernels::reduce::extremum;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::run::adjacent;

#[derive(Debug)]
pub(crate) struct Max {
    axes: Axes,
    keepdim: bool,
}

/// The inference of both: there must be something to take the largest of.
fn infer_max(op: &'static str, inputs: &[Meta], axes: Axes, keepdim: bool) -> Result<Meta> {
    let x = infer_number_unary(op, inputs)?;
    let out = axes.reduce(&x.shape, keepdim);
    if axes.count(&x.shape) == 0 && out.numel() != 0 {
        return Err(Error::shape(op, &[&x.shape], "there is no largest element among none"));
    }
    Ok(Meta::new(out, x.dtype))
}

impl Op for Max {
    fn name(&self) -> &'static str {
        "max"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_max(self.name(), inputs, self.axes, self.keepdim)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (x, shape) = (at.input(0).detach(), at.input_shape(0));
        let kept = self.axes.reduce(&shape, true);
        let mask = ties(&x, &at.output().detach().try_reshape(kept)?)?;
        let share = cotangent.try_reshape(kept)?.try_div(&mask.try_sum(self.axes, true)?)?;
        Ok(smallvec![Some(mask.try_mul(&share)?)])
    }

    /// The mean of the tangents at the largest elements.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0).detach();
        let mask = ties(&x, &x.try_max(self.axes, true)?)?;
        let dx = tangents[0].as_ref().expect("the only tangent").try_mul(&mask)?;
        dx.try_sum(self.axes, self.keepdim)?.try_div(&mask.try_sum(self.axes, self.keepdim)?)
    }
}

/// 1 where an element is the largest (or NaN, which counts as that), else 0.
fn ties(x: &Tensor, largest: &Tensor) -> Result<Tensor> {
    let equal = x.try_eq(largest)?.try_to_dtype(x.dtype())?;
    equal.try_add(&x.try_ne(x)?.try_to_dtype(x.dtype())?)
}

impl ReduceKernel for Max {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => extremum::max(x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => extremum::max(x, count, inner, out),
            (Array::I64(x), Output::I64(out)) => extremum::max(x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct MaxAxis {
    axis: usize,
    keepdim: bool,
}

impl Op for MaxAxis {
    fn name(&self) -> &'static str {
        "max_axis"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_max(self.name(), inputs, Axes::one(self.axis), self.keepdim)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::EXTRA
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let place = Place { axis: self.axis, shape: at.input_shape(0) };
        Ok(smallvec![Some(apply(place, &[cotangent, &at.extra(0)])?)])
    }

    /// The tangent at the index, picked by a sum over a mask of that position.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (dx, shape) = (tangents[0].as_ref().expect("the only tangent"), at.input_shape(0));
        let axes = Axes::one(self.axis);
        let index = at.extra(0).try_reshape(axes.reduce(&shape, true))?;
        let mut along = [1usize; MAX_RANK];
        along[self.axis] = shape[self.axis];
        let positions = Tensor::arange(0, shape[self.axis] as i64).try_reshape(&along[..shape.rank()])?;
        let here = positions.try_eq(&index)?.try_to_dtype(dx.dtype())?;
        here.try_mul(dx)?.try_sum(axes, self.keepdim)
    }
}

impl WholeKernel for MaxAxis {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, Extent { count, inner, .. }) = adjacent(&inputs[0], Axes::one(self.axis))?;
        let mut value = Value::uninit(self.name(), out)?;
        let mut index = Value::uninit(self.name(), Meta::new(out.shape, DType::I64))?;
        let at = index.as_mut::<i64>();
        match (array(&x), output(&mut value)) {
            (Array::F32(x), Output::F32(out)) => extremum::argmax(x, count, inner, out, at),
            (Array::F64(x), Output::F64(out)) => extremum::argmax(x, count, inner, out, at),
            (Array::I64(x), Output::I64(out)) => extremum::argmax(x, count, inner, out, at),
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(Outcome { value, extra: smallvec![Arc::new(index)] })
    }
}

/// A gradient put back where the index points, among zeros.
#[derive(Debug, Clone, Copy)]
struct Place {
    axis: usize,
    shape: Shape,
}

/// What stands where the index points: the reverse of [`Place`].
#[derive(Debug, Clone, Copy)]
struct Pick {
    axis: usize,
    /// The shape of the input.
    shape: Shape,
}

impl Op for Place {
    fn name(&self) -> &'static str {
        "max_axis_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let picked = apply(Pick { axis: self.axis, shape: self.shape }, &[cotangent, &at.input(1)])?;
        Ok(smallvec![Some(picked.try_reshape(at.input_shape(0))?), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(*self, &[tangents[0].as_ref().expect("the only tangent"), &at.input(1)])
    }
}

impl WholeKernel for Place {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (g, index) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let mut value = Value::uninit(self.name(), out)?;
        let at = index.slice::<i64>().expect("made contiguous");
        let (count, inner) = (self.shape[self.axis], self.shape[self.axis + 1..].iter().product());
        match (array(&g), output(&mut value)) {
            (Array::F32(g), Output::F32(out)) => extremum::place(g, at, count, inner, out),
            (Array::F64(g), Output::F64(out)) => extremum::place(g, at, count, inner, out),
            _ => unreachable!("a gradient is a float"),
        }
        Ok(value.into())
    }
}

impl Op for Pick {
    fn name(&self) -> &'static str {
        "pick"
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
        let place = Place { axis: self.axis, shape: self.shape };
        Ok(smallvec![Some(apply(place, &[cotangent, &at.input(1)])?), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(*self, &[tangents[0].as_ref().expect("the only tangent"), &at.input(1)])
    }
}

impl WholeKernel for Pick {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, index) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let mut value = Value::uninit(self.name(), out)?;
        let at = index.slice::<i64>().expect("made contiguous");
        let (count, inner) = (self.shape[self.axis], self.shape[self.axis + 1..].iter().product());
        match (array(&x), output(&mut value)) {
            (Array::F32(x), Output::F32(out)) => extremum::pick(x, at, count, inner, out),
            (Array::F64(x), Output::F64(out)) => extremum::pick(x, at, count, inner, out),
            _ => unreachable!("a gradient is a float"),
        }
        Ok(value.into())
    }
}

methods! {
    /// The largest element over `axes` (a number, a list, or `..` for all). With `keepdim` the axes stay, with size 1. Not for bools.
    ///
    /// NaN counts as the largest. The largest of nothing is an error. Gradient: shared equally by all elements that are the largest.
    /// For one axis with the positions, see [`Tensor::max_axis`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 3.0, 3.0]).parameter();
    /// x.max(.., false).backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.5, 0.5]);
    /// ```
    pub fn max / try_max<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("max", &self.shape())?;
        apply(Max { axes, keepdim }, &[self])
    }

    /// The largest element along one axis and where it first stands (i64). With `keepdim` the axis stays, with size 1. Not for bools.
    ///
    /// NaN counts as the largest. The largest of nothing is an error. Gradient: all to the element that the index names, also at a tie.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, indices) = Tensor::from([[1.0f32, 3.0, 3.0]]).max_axis(1, false);
    /// assert_eq!((values.item(), indices.item()), (3.0, 1.0));
    /// ```
    pub fn max_axis / try_max_axis(&self, axis: i64, keepdim: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("max_axis", axis)?;
        let (values, extra) = apply_extra(MaxAxis { axis, keepdim }, &[self])?;
        Ok((values, Tensor::from_parts(extra[0].clone(), Source::None)))
    }

    /// Where the largest element first stands along `axis`, i64. With `keepdim` the axis stays, with size 1. NaN counts as the largest. No
    /// gradient flows through it.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[1.0f32, 5.0], [7.0, 2.0]]).argmax(1, false).to_vec::<i64>(), [1, 0]);
    /// ```
    pub fn argmax / try_argmax(&self, axis: i64, keepdim: bool) -> Tensor {
        let axis = self.shape().axis("argmax", axis)?;
        apply(ArgMax { axis, keepdim }, &[self])
    }

    /// Where the largest of all elements first stands in row-major order: a 0-d i64.
    pub fn argmax_all / try_argmax_all(&self) -> Tensor {
        self.try_reshape(-1)?.try_argmax(0, false)
    }
}

#[derive(Debug)]
struct ArgMax {
    axis: usize,
    keepdim: bool,
}

impl Op for ArgMax {
    fn name(&self) -> &'static str {
        "argmax"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let m = infer_max(self.name(), inputs, Axes::one(self.axis), self.keepdim)?;
        Ok(Meta::new(m.shape, DType::I64))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, _: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![None])
    }

    fn jvp(&self, _: &Saved<'_>, _: &[Option<Tensor>]) -> Result<Tensor> {
        Err(Error::gradient(self.name(), "an index has no derivative"))
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for ArgMax {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let largest = MaxAxis { axis: self.axis, keepdim: self.keepdim };
        let found = largest.run(inputs, Meta::new(out.shape, inputs[0].dtype()))?;
        let index = found.extra.into_iter().next().and_then(Arc::into_inner);
        Ok(index.expect("the only handle of a fresh index").into())
    }
}

pub(super) const MAX: Entry = Entry {
    name: "max",
    family: Family::Reduce,
    signature: "x.max(axes, keepdim)",
    formula: "the largest x over the axes",
    gradient: "dx = g / k at each of the k elements that are the largest, else 0",
    at_kinks: "equal elements share the gradient; NaN counts as the largest",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_max(axes, keepdim));
        let tied = Tensor::from([[1.0f64, 3.0, 3.0], [3.0, 0.0, 1.0]]);
        out.push(Sample::new("ties", vec![tied], |x| x[0].try_max(.., false)).at_kink());
        out
    },
    mistakes: &[Mistake {
        name: "mask forgotten",
        what: "every element gets the gradient, not only the largest",
        rule: |op, at, g, _| {
            let op = (op as &dyn std::any::Any).downcast_ref::<Max>().expect("the rule of max");
            let shape = at.input_shape(0);
            Ok(smallvec![Some(g.try_reshape(op.axes.reduce(&shape, true))?.try_expand(shape)?)])
        },
    }],
};

pub(super) const MAX_AXIS: Entry = Entry {
    name: "max_axis",
    family: Family::Reduce,
    signature: "x.max_axis(axis, keepdim)",
    formula: "the largest x along the axis, and its index",
    gradient: "dx = g at the index, else 0",
    at_kinks: "of equal elements the first gets the gradient; NaN counts as the largest",
    samples: |g| {
        let cases: [(&str, &[usize], i64, bool); 5] = [
            ("last axis", &[3, 17], -1, false),
            ("first axis, kept", &[5, 4], 0, true),
            ("middle axis", &[2, 3, 4], 1, false),
            ("an axis of size 1", &[3, 1], 1, false),
            ("no rows", &[0, 3], 1, false),
        ];
        let mut out: Vec<Sample> = cases
            .map(|(note, shape, axis, keepdim)| {
                Sample::new(note, vec![normal(g, shape)], move |x| Ok(x[0].try_max_axis(axis, keepdim)?.0))
            })
            .into();
        out.push(Sample::new("of a transposed view", vec![normal(g, [4, 3])], |x| {
            Ok(x[0].try_t()?.try_max_axis(1, false)?.0)
        }));
        let tied = Tensor::from([[1.0f64, 3.0, 3.0], [3.0, 0.0, 1.0]]);
        out.push(Sample::new("ties", vec![tied], |x| Ok(x[0].try_max_axis(1, false)?.0)).at_kink());
        out
    },
    mistakes: &[Mistake {
        name: "gradient at the wrong index",
        what: "the gradient is put at the first position instead of that of the largest element",
        rule: |op, at, g, _| {
            let op = (op as &dyn std::any::Any).downcast_ref::<MaxAxis>().expect("the rule of max_axis");
            let place = Place { axis: op.axis, shape: at.input_shape(0) };
            Ok(smallvec![Some(apply(place, &[g, &at.extra(0).zeros_like()])?)])
        },
    }],
};

pub(super) const ARGMAX: Entry = Entry {
    name: "argmax",
    family: Family::Reduce,
    signature: "x.argmax(axis, keepdim)",
    formula: "the index of the largest x along the axis",
    gradient: "",
    at_kinks: "no gradient flows through an index; of equal elements the first counts",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Gradients and indices that PyTorch gives for these ties and NaNs.
    #[test]
    fn ties_and_nan_are_those_of_pytorch() {
        let x = Tensor::from([[1.0f32, 3.0, 3.0], [3.0, 0.0, 1.0]]).parameter();
        x.max(.., false).backward();
        let third = 1.0f32 / 3.0;
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, third, third, third, 0.0, 0.0]);
        x.zero_grad();
        x.max([1], false).sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.5, 0.5, 1.0, 0.0, 0.0]);
        x.zero_grad();
        let (values, index) = x.max_axis(1, false);
        assert_eq!(index.to_vec::<i64>(), [1, 0]);
        values.sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);

        let x = Tensor::from([1.0f32, f32::NAN, 3.0, f32::NAN]).parameter();
        let y = x.max(.., false);
        assert!(y.item().is_nan());
        y.backward();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.5, 0.0, 0.5]);
        assert_eq!(x.argmax_all().item(), 1.0);
    }

    #[test]
    fn the_largest_of_nothing_is_an_error() {
        let text = Tensor::zeros([2, 0]).try_max(1, false).unwrap_err().to_string();
        assert!(text.starts_with("max: shape [2, 0]: there is no largest element among none"), "{text}");
        assert_eq!(Tensor::zeros([0, 3]).max(1, false).numel(), 0);
        assert!(Tensor::zeros([0]).try_argmax_all().is_err());
    }
}
