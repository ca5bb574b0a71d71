//! The op behind averages over windows and interpolation: a linear map of the rows and one of the
//! columns. Its gradient is the transposed maps, the same op again.

use crate::kernels::resample::{Taps, resample};
use crate::ops::prelude::*;

#[derive(Debug, Clone, Parameters)]
pub(super) struct Resample {
    /// The name of the op, and that of its transpose.
    #[parameters(skip)]
    pub names: [Name; 2],
    pub rows: Arc<Taps>,
    pub cols: Arc<Taps>,
}

impl Resample {
    fn transposed(&self) -> Resample {
        let [name, transposed] = self.names;
        Resample {
            names: [transposed, name],
            rows: Arc::new(self.rows.transposed()),
            cols: Arc::new(self.cols.transposed()),
        }
    }

    /// For mistakes: the wrong transpose in which weights are changed by `f`, as
    /// [`Taps::reweighted`] has it.
    pub fn wrong_gradient(
        op: &dyn Op,
        g: &Tensor,
        f: impl Fn(f64, f64, usize) -> f64,
    ) -> Result<Grads> {
        let mut wrong = op.downcast::<Resample>()?.transposed();
        wrong.rows = Arc::new(wrong.rows.reweighted(&f));
        wrong.cols = Arc::new(wrong.cols.reweighted(&f));
        Ok(smallvec![Some(apply(wrong, &[g])?)])
    }
}

impl Op for Resample {
    fn name(&self) -> &'static str {
        self.names[0].text
    }

    fn id(&self) -> Option<OpId> {
        self.names[0].id
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_resample({0}, {row_taps}, {col_taps})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let mut shape = inputs[0].shape;
        let rank = shape.rank();
        shape.dims_mut()[rank - 2..].copy_from_slice(&[self.rows.output(), self.cols.output()]);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(self.transposed(), &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Resample {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| resample(
            x.elements::<T>(),
            &self.rows,
            &self.cols,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}
