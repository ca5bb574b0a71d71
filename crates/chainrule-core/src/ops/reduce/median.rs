//! `median`: the middle element, along an axis or of all.

use super::max::{are_extreme, nothing_to_pick};
use super::max_axis::{PlaceAlong, picked_tangent};
use super::recurrence::along;
use crate::kernels::sort::{self, Part, Sorted};
use crate::ops::prelude::*;
use crate::tensor::node::Source;

/// The middle of an axis. The median of all elements, which the caller has brought to one axis,
/// shares the gradient among ties.
#[derive(Debug, Parameters)]
pub(crate) struct Median {
    axis: usize,
    keepdim: bool,
    shared: bool,
}

impl Op for Median {
    row!(median);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_median({0}, {axis}, {keepdim})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(work::sorting(&inputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = inputs[0];
        let axes = Axes::one(self.axis);
        nothing_to_pick(self.name(), &x.shape, axes, "median")?;
        Ok(Meta::new(axes.reduce(&x.shape, self.keepdim), x.dtype))
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        let all = Saves::INPUTS.and(Saves::OUTPUT).when(self.shared);
        all.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        if self.shared {
            let x = at.input(0);
            let there = are_extreme(&x, &at.output(), true)?;
            let share = cotangent.try_div(&there.try_sum_all()?)?;
            return Ok(smallvec![Some(there.try_mul(&share)?)]);
        }
        let positions = at.extra(0);
        let g = cotangent.try_reshape(positions.shape())?;
        let place = PlaceAlong { axis: self.axis, count: at.input_shape(0)[self.axis] };
        Ok(smallvec![Some(apply(place, &[&g, &positions])?)])
    }

    /// The tangent of the median of all elements is the mean over those that equal it.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        if !self.shared {
            return picked_tangent(dx, &at.extra(0), self.axis, self.keepdim);
        }
        let (x, dx) = (at.input(0).to_f64_vec(), dx.try_reshape([-1])?);
        let y = at.output().item();
        let same = |i: &usize| x[*i] == y || (x[*i].is_nan() && y.is_nan());
        let ties: Vec<i64> = (0..x.len()).filter(same).map(|i| i as i64).collect();
        dx.try_index_select(0, &Tensor::from(ties))?.try_mean(.., false)
    }
}

impl WholeKernel for Median {
    /// The extra value is the positions, with the axis kept.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(x.shape(), self.axis);
        let kept = Axes::one(self.axis).reduce(x.shape(), true);
        let mut value = Value::uninit(self.name(), out)?;
        let mut at = Value::uninit(self.name(), Meta::new(kept, DType::I64))?;
        let index = at.elements_mut::<i64>();
        match (array(&x), output(&mut value)) {
            (Array::F32(x), Output::F32(o)) => middle(x, count, inner, index, o, |x| x.is_nan()),
            (Array::F64(x), Output::F64(o)) => middle(x, count, inner, index, o, |x| x.is_nan()),
            (Array::I64(x), Output::I64(o)) => middle(x, count, inner, index, o, |_| false),
            (Array::Bool(x), Output::Bool(o)) => middle(x, count, inner, index, o, |_| false),
            _ => unreachable!("the dtypes are the same"),
        }
        Ok(Outcome { value: value.share(), extra: smallvec![at.share()] })
    }
}

/// The lower of the middle elements, or the first NaN.
fn middle<T: Sorted>(
    x: &[T],
    count: usize,
    inner: usize,
    index: &mut [i64],
    out: &mut [T],
    is_nan: impl Fn(T) -> bool,
) {
    let part = Part::At(count.saturating_sub(1) / 2);
    sort::order(x, count, inner, false, part, index);
    // A pass without branches decides whether NaN is to be looked for.
    if x.iter().fold(false, |any, &x| any | is_nan(x)) {
        for (k, index) in index.iter_mut().enumerate() {
            let of = |i: usize| x[(k / inner * count + i) * inner + k % inner];
            let first = (0..count).find(|&i| is_nan(of(i)));
            *index = first.map_or(*index, |i| i as i64);
        }
    }
    sort::take(x, index, count, inner, out);
}

methods! {
    /// The median along one axis, and its position (i64). With `keepdim` the axis stays, with
    /// size 1. For all dtypes.
    ///
    /// The median of an even number is the lower of the two in the middle; NaN, if there is one.
    /// The position among equal elements is one that a stable sort would bring there; among NaNs it
    /// is the first. An axis without elements is an error. Gradient: `g` at that position.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([1.0f32, 3.0, 2.0, 4.0]).median(0, false);
    /// assert_eq!((values.item(), positions.item()), (2.0, 2.0));
    /// ```
    pub fn median / try_median(&self, axis: i64, keepdim: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("median", axis)?;
        let (values, extra) = apply_extra(Median { axis, keepdim, shared: false }, &[self])?;
        let positions = Tensor::from_parts(extra[0].clone(), Source::None);
        let positions = positions.try_reshape(values.shape())?;
        Ok((values, positions))
    }

    /// The median of all elements, a 0-d tensor. Unlike [`Tensor::median`], equal elements share
    /// the gradient, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[1.0f32, 3.0], [2.0, 4.0]]).median_all().item(), 2.0);
    /// ```
    pub fn median_all / try_median_all(&self) -> Tensor {
        apply(Median { axis: 0, keepdim: false, shared: true }, &[&self.try_reshape([-1])?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "median",
    family: Family::Reduce,
    signature: "x.median(axis, keepdim), x.median_all()",
    python: &[Binding::by_hand("median", "one result, or two with an axis")],
    formula: "the lower of the middle elements of the sorted order, and its position",
    gradient: "dx = g at that position",
    at_kinks: "ties: along an axis one gets the gradient, of all elements the equal ones share it; NaN is the median if there is one",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_median(axis, axis == 0)?.0));
        for (note, shape) in [("all", &[3, 4][..]), ("0-d", &[]), ("all of a vector", &[9])] {
            out.push(Sample::new(note, vec![normal(g, shape)], |x| x[0].try_median_all()));
        }
        let ties = Tensor::from([2.0, 2.0, 1.0, 3.0]);
        let tied = |note, call: fn(&[Tensor]) -> Result<Tensor>| {
            Sample::new(note, vec![ties.clone()], call).at_kink()
        };
        out.push(tied("ties in all", |x| x[0].try_median_all()));
        out.push(tied("ties along an axis", |x| Ok(x[0].try_median(0, false)?.0)));
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient to all",
            what: "every element gets the gradient, not only the median",
            rule: |_, at, g, _| {
                let kept = g.try_reshape(at.extra(0).shape())?;
                Ok(smallvec![Some(kept.try_expand(at.input_shape(0))?)])
            },
        },
        Mistake {
            name: "the middle of the unsorted",
            what: "the gradient goes to the element in the middle of the axis as it stands",
            rule: |op, at, g, _| {
                let axis = op.downcast::<Median>()?.axis;
                let (positions, count) = (at.extra(0), at.input_shape(0)[axis]);
                let g = g.try_reshape(positions.shape())?;
                let at = Tensor::try_full(positions.shape(), (count / 2) as f64, DType::I64)?;
                Ok(smallvec![Some(apply(PlaceAlong { axis, count }, &[&g, &at])?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    fn gradient(x: Vec<f64>, median: impl Fn(&Tensor) -> Tensor) -> (f64, Vec<f64>) {
        let x = Tensor::from(x).parameter();
        let y = median(&x);
        y.backward();
        (y.item(), x.grad().unwrap().to_vec())
    }

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn of_all_elements_ties_and_nans_share_the_gradient() {
        let (y, dx) = gradient(vec![1.0, 3.0, 2.0, 4.0], Tensor::median_all);
        assert_eq!((y, dx), (2.0, vec![0.0, 0.0, 1.0, 0.0]));
        let (y, dx) = gradient(vec![2.0, 2.0, 1.0, 3.0], Tensor::median_all);
        assert_eq!((y, dx), (2.0, vec![0.5, 0.5, 0.0, 0.0]));
        let (y, dx) = gradient(vec![f64::NAN, 1.0, f64::NAN], Tensor::median_all);
        assert_eq!((y.is_nan(), dx), (true, vec![0.5, 0.0, 0.5]));
    }

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn along_an_axis_one_gets_it() {
        let median = |x: &Tensor| x.median(0, false).0;
        let (y, dx) = gradient(vec![2.0, 2.0, 1.0, 3.0], median);
        assert_eq!((y, dx), (2.0, vec![1.0, 0.0, 0.0, 0.0]));
        let (y, dx) = gradient(vec![1.0, f64::NAN, f64::NAN], median);
        assert_eq!((y.is_nan(), dx), (true, vec![0.0, 1.0, 0.0]));
    }

    #[test]
    fn integers_columns_and_errors() {
        let x = Tensor::from([[5i64, 1, 3], [2, 9, 8]]);
        assert_eq!(x.median_all().to_vec::<i64>(), [3]);
        let (values, positions) = x.median(0, true);
        assert_eq!((values.to_vec::<i64>(), values.shape().dims()), (vec![2, 1, 3], &[1, 3][..]));
        assert_eq!(positions.to_vec::<i64>(), [1, 0, 0]);
        let error = Tensor::zeros([2, 0]).try_median(1, false).unwrap_err();
        let want = "median: shape [2, 0]: axis 1 has no elements, so there is no median; check the shape before";
        assert_eq!(error.kind().to_string(), want);
        assert!(Tensor::zeros([2, 0]).try_median_all().is_err());
    }
}
