//! `sort`: the elements along an axis in their order, and where they stood.

use super::recurrence::along;
use crate::kernels::sort::{self, Part};
use crate::ops::index::{GatherGrad, gathered_jvp, gathered_vjp};
use crate::ops::prelude::*;
use crate::tensor::node::Source;

/// The whole of a sorted order along an axis, or its first elements.
#[derive(Debug, Parameters)]
pub(super) struct Sort {
    pub axis: usize,
    pub descending: bool,
    pub part: Part,
}

impl Op for Sort {
    fn name(&self) -> &'static str {
        match self.part {
            Part::All => "sort",
            _ => "topk",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(match self.part {
            Part::All => OpId::sort,
            _ => OpId::topk,
        })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self.part {
            Part::All => "_sort({0}, {axis}, {descending}, None)",
            _ => "_sort({0}, {axis}, {descending}, {first})",
        }))
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(work::sorting(&inputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let mut shape = inputs[0].shape;
        shape.dims_mut()[self.axis] = self.part.len(shape[self.axis]);
        Ok(Meta::new(shape, inputs[0].dtype))
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
        gathered_vjp(at, self.axis, cotangent)
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        gathered_jvp(at, self.axis, tangents)
    }
}

impl WholeKernel for Sort {
    /// The extra value is the positions.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(x.shape(), self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        let mut at = Value::uninit(self.name(), Meta::new(out.shape, DType::I64))?;
        let index = at.elements_mut::<i64>();
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| {
            let x = x.elements::<T>();
            sort::order(x, count, inner, self.descending, self.part, index);
            sort::take(x, index, count, inner, value.elements_mut())
        });
        Ok(Outcome { value: value.share(), extra: smallvec![at.share()] })
    }
}

/// The sorted elements, and the positions.
#[track_caller]
pub(super) fn sorted(x: &Tensor, sort: Sort) -> Result<(Tensor, Tensor)> {
    let (values, extra) = apply_extra(sort, &[x])?;
    Ok((values, Tensor::from_parts(extra[0].clone(), Source::None)))
}

methods! {
    /// The elements along `axis` in rising order (falling, if `descending`), and the positions at
    /// which they stood (i64). For all dtypes.
    ///
    /// The sort is stable: equal elements keep their order, whichever way it goes. NaN is larger
    /// than everything, -0 and 0 are equal. Gradient: each `g` is put at the position that its
    /// element came from.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([3.0f32, 1.0, 2.0]).sort(0, false);
    /// assert_eq!(values.to_vec::<f32>(), [1.0, 2.0, 3.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [1, 2, 0]);
    /// ```
    pub fn sort / try_sort(&self, axis: i64, descending: bool) -> (Tensor, Tensor) {
        let axis = self.shape().axis("sort", axis)?;
        sorted(self, Sort { axis, descending, part: Part::All })
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sort",
    family: Family::Reduce,
    signature: "x.sort(axis, descending)",
    python: &[Binding::pair("sort", SORTED, |x, a| {
        along_axis_pair(x, a.int(0), |x| x.try_sort(a.int(0), a.flag(1)))
    })],
    formula: "y[i] = x[p[i]], rising or falling, and the positions p",
    gradient: "dx[p[i]] = g[i]",
    at_kinks: "equal elements keep their order; NaN is the largest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_sort(axis, axis == 1)?.0));
        let ties = Tensor::from([[1.0, 3.0, 3.0, 2.0]]);
        out.push(Sample::new("ties", vec![ties], |x| Ok(x[0].try_sort(1, true)?.0)).at_kink());
        out
    },
    mistakes: MISTAKES,
};

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "left in sorted order",
        what: "the gradients are put at the first positions in their order, not where the elements came from",
        rule: |op, at, g, _| {
            let axis = of(op)?.axis;
            let shape = at.input_shape(0);
            let mut along = vec![1; shape.rank()];
            along[axis] = g.shape()[axis];
            let order = Tensor::arange(0, g.shape()[axis] as i64).try_reshape(along)?;
            let order = order.try_expand(g.shape())?;
            Ok(smallvec![Some(apply(GatherGrad { axis, shape }, &[g, &order])?)])
        },
    },
    Mistake {
        name: "the order turned round",
        what: "the elements get the gradients of their mirror images in the order",
        rule: |op, at, g, wanted| {
            let axis = of(op)?.axis;
            let count = g.shape()[axis] as i64;
            let back = Tensor::from((0..count).rev().collect::<Vec<_>>());
            op.vjp(at, &g.try_index_select(axis as i64, &back)?, wanted)
        },
    },
];

fn of(op: &dyn Op) -> Result<&Sort> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The positions that PyTorch 2.15 gives.
    #[test]
    fn nan_is_the_largest_and_equal_elements_keep_their_order() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = Tensor::from([3.0, nan, -0.0, 0.0, -inf, nan, inf, 3.0]);
        let (values, positions) = x.sort(0, false);
        assert_eq!(positions.to_vec::<i64>(), [4, 2, 3, 0, 7, 6, 1, 5]);
        let values = values.to_vec::<f32>();
        assert!(values[1].is_sign_negative() && values[6].is_nan());
        assert_eq!(x.sort(0, true).1.to_vec::<i64>(), [1, 5, 6, 0, 7, 2, 3, 4]);
    }

    #[test]
    fn gradients_follow_the_positions() {
        let x = Tensor::from([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]).parameter();
        let g = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        (x.sort(1, false).0 * g).sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [3.0, 1.0, 2.0, 5.0, 6.0, 4.0]);
    }

    #[test]
    fn other_dtypes_axes_and_errors() {
        let x = Tensor::from([[3i64, 1], [2, 5]]);
        assert_eq!(x.sort(0, false).0.to_vec::<i64>(), [2, 1, 3, 5]);
        assert_eq!(Tensor::from([true, false]).sort(0, false).0.to_vec::<bool>(), [false, true]);
        assert_eq!(Tensor::zeros([2, 0]).sort(1, true).1.shape(), [2, 0]);
        assert_eq!(Tensor::zeros([0, 2]).sort(1, true).1.shape(), [0, 2]);
        assert!(x.try_sort(2, false).is_err());
    }
}
