//! `y[i] = b[i] + a[i] y[i - 1]` along an axis: what the gradients of running products and running
//! log-sum-exps come down to.
//!
//! Its own gradients are recurrences in the other direction, so it can be differentiated as often
//! as one likes.

use crate::kernels::scan;
use crate::ops::prelude::*;

/// The recurrence. The inputs: `a` and `b`, of one shape.
#[derive(Clone, Copy, Debug, Parameters)]
#[doc(hidden)]
pub struct Recurrence {
    pub axis: usize,
    /// From the last element to the first.
    pub reverse: bool,
    /// Whether the factor is that of the element before instead of the element's own.
    pub lagged: bool,
}

impl Op for Recurrence {
    fn name(&self) -> &'static str {
        "recurrence"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_recurrence({0}, {1}, {axis}, {reverse}, {lagged})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(2, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[1].shape, float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(0).and(Saves::OUTPUT.when(wanted.get(0)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let back = Recurrence { reverse: !self.reverse, lagged: !self.lagged, ..*self };
        let db = apply(back, &[&at.input(0), cotangent])?;
        let da = wanted.get(0).then(|| match self.lagged {
            false => db.try_mul(&shifted(&at.output(), self.axis, self.reverse)?),
            true => at.output().try_mul(&shifted(&db, self.axis, !self.reverse)?),
        });
        Ok(smallvec![da.transpose()?, Some(db)])
    }

    /// The tangent obeys the same recurrence, with what the factor's tangent adds.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, y) = (at.input(0), at.output());
        let db = tangents[1].clone().unwrap_or_else(|| y.zeros_like());
        let Some(da) = &tangents[0] else {
            return apply(*self, &[&a, &db]);
        };
        let da = if self.lagged { shifted(da, self.axis, self.reverse)? } else { da.clone() };
        let added = da.try_mul(&shifted(&y, self.axis, self.reverse)?)?;
        apply(*self, &[&a, &added.try_add(&db)?])
    }
}

impl WholeKernel for Recurrence {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (a, b) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let (count, inner) = along(&out.shape, self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        let Recurrence { reverse, lagged, .. } = *self;
        by_dtype!(a.dtype(), [F32, F64], |T| scan::recurrence(
            (a.elements::<T>(), b.elements()),
            count,
            inner,
            reverse,
            lagged,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The size of an axis, and how many elements lie between its neighbours; of an empty array 0,
/// whose other sizes may be huge.
pub(super) fn along(shape: &Shape, axis: usize) -> (usize, usize) {
    let inner = || shape[axis + 1..].iter().product();
    (shape[axis], if shape.numel() == 0 { 0 } else { inner() })
}

/// At each place the element before it along the axis (after it, if `reverse`); 0 at the first.
pub(super) fn shifted(x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
    let mut shape = x.shape();
    let count = shape[axis];
    if count == 0 {
        return Ok(x.clone());
    }
    shape.dims_mut()[axis] = 1;
    let zeros = Tensor::try_full(shape, 0.0, x.dtype())?;
    let rest = x.try_narrow(axis as i64, usize::from(reverse), count - 1)?;
    let parts = if reverse { [&rest, &zeros] } else { [&zeros, &rest] };
    Tensor::try_cat(&parts, axis as i64)
}
