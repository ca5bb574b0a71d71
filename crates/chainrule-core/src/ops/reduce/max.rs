//! `max`: the largest element over axes, whose gradient ties share.

use crate::kernels::reduce::least::extreme;
use crate::ops::prelude::*;

/// The largest or the smallest element.
#[derive(Debug, Parameters)]
pub(crate) struct Extreme {
    pub(super) axes: Axes,
    pub(super) keepdim: bool,
    pub(super) least: bool,
    /// Whether it was called as `amax` or `amin`, which tells what becomes of NaN.
    pub(super) strict: bool,
}

impl Op for Extreme {
    fn name(&self) -> &'static str {
        match (self.least, self.strict) {
            (false, false) => "max",
            (false, true) => "amax",
            (true, false) => "min",
            (true, true) => "amin",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(match (self.least, self.strict) {
            (false, false) => OpId::max,
            (false, true) => OpId::amax,
            (true, false) => OpId::min,
            (true, true) => OpId::amin,
        })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match (self.least, self.strict) {
            (false, false) => "np.max({0}, axis={axes}, keepdims={keepdim})",
            (false, true) => "np.max({0}, axis={axes}, keepdims={keepdim})",
            (true, false) => "np.min({0}, axis={axes}, keepdims={keepdim})",
            (true, true) => "np.min({0}, axis={axes}, keepdims={keepdim})",
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = inputs[0];
        no_extreme_of_nothing(self.name(), &x.shape, self.axes, self.least)?;
        Ok(Meta::new(self.axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn orders(&self) -> bool {
        true
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
        let there = self.are_extreme(&x, &at.output().try_reshape(kept)?)?;
        let share = cotangent.try_reshape(kept)?.try_div(&there.try_sum(self.axes, true)?)?;
        Ok(smallvec![Some(there.try_mul(&share)?)])
    }

    /// The mean of the tangents of what nothing exceeds (or falls short of), which is found among
    /// the negatives.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let opposite = self.opposite(&x.detach().try_neg()?)?;
        let there = self.are_extreme(&x, &opposite.try_neg()?)?;
        let sum = dx.try_mul(&there)?.try_sum(self.axes, self.keepdim)?;
        sum.try_div(&there.try_sum(self.axes, self.keepdim)?)
    }
}

impl Extreme {
    /// 1 where `x` is the largest (or smallest), `y`, else 0.
    fn are_extreme(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        are_extreme(x, y, !self.strict && self.axes == Axes::all(&x.shape()))
    }

    /// The element at the other end, with the axes kept.
    fn opposite(&self, x: &Tensor) -> Result<Tensor> {
        apply(Extreme { keepdim: true, least: !self.least, ..*self }, &[x])
    }
}

/// 1 where `x` is the element `y` that was picked, else 0. NaN is one if `nan_too`: so in `max`,
/// `min` and `median` over all axes. Over some, and in `amax` and `amin`, nothing is where the
/// result is NaN, and sharing among none gives NaN: so does PyTorch.
pub(super) fn are_extreme(x: &Tensor, y: &Tensor, nan_too: bool) -> Result<Tensor> {
    let equal = x.try_eq(y)?.try_to_dtype(x.dtype())?;
    if !nan_too {
        return Ok(equal);
    }
    equal.try_add(&x.try_ne(x)?.try_to_dtype(x.dtype())?)
}

/// Nothing has no largest element, and no smallest.
pub(super) fn no_extreme_of_nothing(
    op: &'static str,
    shape: &Shape,
    axes: Axes,
    least: bool,
) -> Result<()> {
    nothing_to_pick(op, shape, axes, if least { "smallest" } else { "largest" })
}

/// Nothing has no `what`.
pub(super) fn nothing_to_pick(
    op: &'static str,
    shape: &Shape,
    axes: Axes,
    what: &str,
) -> Result<()> {
    match axes.iter().find(|&a| shape[a] == 0) {
        Some(axis) => {
            let why = format!(
                "axis {axis} has no elements, so there is no {what}; check the shape before"
            );
            Err(Error::shape(op, &[shape], why))
        }
        None => Ok(()),
    }
}

impl ReduceKernel for Extreme {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => extreme(self.least, x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => extreme(self.least, x, count, inner, out),
            (Array::I64(x), Output::I64(out)) => extreme(self.least, x, count, inner, out),
            (Array::Bool(x), Output::Bool(out)) => extreme(self.least, x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The largest element over `axes` (a number, a list, or `..` for all). With `keepdim` the axes
    /// stay, with size 1. For all dtypes.
    ///
    /// NaN is larger than everything. An axis without elements is an error. Gradient: `g` at the
    /// largest element, shared equally by ties. If the largest is NaN, the NaNs share it if all
    /// axes go, as in PyTorch's `max`; if some do, the gradient is NaN, as in its `amax`. For the
    /// position too, and a gradient that goes to the first of several, see [`Tensor::max_axis`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0, 3.0], [3.0, 2.0, 0.0]]).parameter();
    /// x.max(1, false).sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.5, 0.5, 1.0, 0.0, 0.0]);
    /// ```
    pub fn max / try_max<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("max", &self.shape())?;
        apply(Extreme { axes, keepdim, least: false, strict: false }, &[self])
    }

    /// The largest of all elements, a 0-d tensor: [`Tensor::max`] over all axes.
    pub fn max_all / try_max_all(&self) -> Tensor {
        self.try_max(.., false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "max",
    family: Family::Reduce,
    signature: "x.max(axes, keepdim)",
    python: &[Binding::by_hand(
        "max",
        "a second tensor may stand for the axis, and an axis gives two results",
    )],
    formula: "the largest element over the axes",
    gradient: "dx = g where x is the largest, shared equally by ties",
    at_kinks: "ties share the gradient equally; where the largest is NaN, the NaNs do if all axes go, else the gradient is NaN",
    samples: |g| {
        let mut out = reduce_samples(g, |x, axes, keepdim| x.try_max(axes, keepdim));
        let ties = Tensor::from([[1.0, 3.0, 3.0], [3.0, 2.0, 0.0]]);
        let tied = Sample::new("ties", vec![ties], |x| x[0].try_max(.., false));
        out.push(tied.at_kink());
        out
    },
    mistakes: MISTAKES,
};

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "gradient to all",
        what: "every element gets the gradient, not only the largest",
        rule: to_all,
    },
    Mistake {
        name: "smallest for largest",
        what: "the gradient goes to the smallest element",
        rule: to_the_other_end,
    },
    TIES,
];

/// The mistake that shows at ties only.
pub(super) const TIES: Mistake = Mistake {
    name: "ties counted several times",
    what: "each of several equal ones gets the whole gradient instead of its share",
    rule: |op, at, g, _| {
        let x = at.input(0);
        let y = apply(Extreme { keepdim: true, ..*of(op)? }, &[&x])?;
        let there = of(op)?.are_extreme(&x, &y)?;
        Ok(smallvec![Some(there.try_mul(&g.try_reshape(y.shape())?)?)])
    },
};

pub(super) fn to_all(op: &dyn Op, at: &Saved<'_>, g: &Tensor, _: Wanted) -> Result<Grads> {
    let shape = at.input_shape(0);
    let kept = g.try_reshape(of(op)?.axes.reduce(&shape, true))?;
    Ok(smallvec![Some(kept.try_expand(shape)?)])
}

pub(super) fn to_the_other_end(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    _: Wanted,
) -> Result<Grads> {
    let x = at.input(0);
    let opposite = of(op)?.opposite(&x)?;
    let there = x.try_eq(&opposite)?.try_to_dtype(x.dtype())?;
    Ok(smallvec![Some(there.try_mul(&g.try_reshape(opposite.shape())?)?)])
}

fn of(op: &dyn Op) -> Result<&Extreme> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::autograd::jvp;
    use crate::{DType, Tensor};

    fn gradient(x: &Tensor, max: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
        let x = x.parameter();
        max(&x).sum_all().backward();
        x.grad().unwrap().to_vec()
    }

    /// The values that PyTorch 2.15 gives for `amax`.
    #[test]
    fn ties_share_the_gradient() {
        let x = Tensor::from([[1.0, 3.0, 3.0], [3.0, 2.0, 0.0]]);
        let third = 1.0 / 3.0;
        assert_eq!(gradient(&x, Tensor::max_all), [0.0, third, third, third, 0.0, 0.0]);
        assert_eq!(gradient(&x, |x| x.max(1, true)), [0.0, 0.5, 0.5, 1.0, 0.0, 0.0]);
        let dx = Tensor::from([[9.0, 1.0, 3.0], [5.0, 9.0, 9.0]]);
        let (_, dy) = jvp(|x| x[0].max(1, false), &[x], &[dx]).unwrap();
        assert_eq!(dy.to_vec::<f64>(), [2.0, 5.0]);
    }

    /// The values that PyTorch 2.15 gives for `amax`.
    #[test]
    fn over_some_axes_nan_makes_the_gradient_nan() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 0.0], [-inf; 4]]);
        let y = x.max(1, false).to_vec::<f64>();
        assert!(y[0].is_nan() && y[1..] == [inf, -inf]);
        let dx = gradient(&x, |x| x.max(1, false));
        assert!(dx[..4].iter().all(|d| d.is_nan()));
        assert_eq!(dx[4..], [0.5, 0.5, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25]);
    }

    /// The values that PyTorch 2.15 gives for `max` over all.
    #[test]
    fn over_all_axes_nans_share_the_gradient() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from([[1.0, nan, 3.0, nan], [inf, inf, 1.0, 0.0]]);
        assert!(x.max_all().item().is_nan());
        let dx = gradient(&x, Tensor::max_all);
        assert_eq!(dx, [0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn integers_and_bools_have_a_largest_too() {
        let x = Tensor::from([[1i64, i64::MIN], [i64::MIN, i64::MIN]]);
        assert_eq!(x.max(1, false).to_vec::<i64>(), [1, i64::MIN]);
        let any = x.eq(1).max(0, false);
        assert_eq!((any.dtype(), any.to_vec::<bool>()), (DType::Bool, vec![true, false]));
    }

    #[test]
    fn nothing_has_no_largest() {
        let x = Tensor::zeros([0, 3]);
        let error = x.try_max(0, false).unwrap_err();
        let want = "max: shape [0, 3]: axis 0 has no elements, so there is no largest; check the shape before";
        assert_eq!(error.kind().to_string(), want);
        assert!(x.try_max_all().is_err());
        assert_eq!(x.max(1, false).shape(), [0]);
    }
}
