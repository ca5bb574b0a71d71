//! The shift of a row before its exponentials are taken, so that none overflows: its largest
//! element, as a constant.

use crate::kernels::softmax::Row;
use crate::ops::prelude::*;

/// The largest element of each row (the last axis), which stays with size 1.
#[derive(Debug, Parameters)]
struct RowMax;

impl Op for RowMax {
    fn name(&self) -> &'static str {
        "row_max"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.max({0}, axis=-1, keepdims=True, initial=-np.inf)".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let last = Axes::one(inputs[0].shape.rank() - 1);
        Ok(Meta::new(last.reduce(&inputs[0].shape, true), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for RowMax {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        fn rows<T: Row>(x: &[T], n: usize, out: &mut [T]) {
            for (row, out) in out.iter_mut().enumerate() {
                *out = T::row_max(&x[row * n..][..n]);
            }
        }
        let x = inputs[0].contiguous()?;
        let n = x.shape()[x.shape().rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| rows(x.elements::<T>(), n, value.elements_mut()));
        Ok(value.into())
    }
}

/// `x` less the largest element of each row. A constant added to a row changes none of the
/// functions that use this, so the largest element may be taken for a constant in their
/// derivatives. (A NaN anywhere in the row still makes its sum NaN.)
#[track_caller]
pub(super) fn shifted(x: &Tensor) -> Result<Tensor> {
    x.try_sub(&apply(RowMax, &[x])?)
}
