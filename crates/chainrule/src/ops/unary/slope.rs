//! `g * slope(s)` in one pass: the backward of an op on one tensor, from the input or the result that it saved.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// The slope of a unary op, as a function of what the op saved.
pub(super) trait Slope: Debug + Send + Sync + 'static {
    /// The name of the backward in listings: `tanh_grad`.
    const NAME: &'static str;

    /// `g` times the slope at `s`: the kernel.
    fn scale<T: Real>(s: T, g: T) -> T;

    /// The derivative of the slope with respect to `s`, for the reverse rule of the backward.
    fn bend(s: &Tensor) -> Result<Tensor>;

    /// The slope, and its tangent for the tangent `ds`: for the forward rule of the backward, written independently.
    fn forward(s: &Tensor, ds: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)>;
}

/// The op `g * slope(s)`, linear in `g`.
#[derive(Debug)]
struct Scaled<S>(PhantomData<S>);

/// `g * slope(s)`, recorded if a gradient can flow.
#[track_caller]
pub(super) fn scaled<S: Slope>(s: &Tensor, g: &Tensor) -> Result<Tensor> {
    apply(Scaled::<S>(PhantomData), &[s, g])
}

impl<S: Slope> Op for Scaled<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        float_inputs(self.name(), inputs)?;
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(0).and(Saves::input(1).when(wanted.get(0)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let s = at.input(0);
        let ds = wanted
            .get(0)
            .then(|| cotangent.try_mul(at.input(1))?.try_mul(&S::bend(&s)?))
            .transpose()?;
        let dg = wanted.get(1).then(|| scaled::<S>(&s, cotangent)).transpose()?;
        Ok(smallvec![ds, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (slope, bent) = S::forward(&at.input(0), tangents[0].as_ref())?;
        let by_s = bent.map(|ds| at.input(1).try_mul(&ds)).transpose()?;
        let by_g = tangents[1].as_ref().map(|dg| slope.try_mul(dg)).transpose()?;
        match (by_s, by_g) {
            (Some(a), Some(b)) => a.try_add(&b),
            (Some(d), None) | (None, Some(d)) => Ok(d),
            (None, None) => unreachable!("at least one tangent is given"),
        }
    }
}

impl<S: Slope> MapKernel for Scaled<S> {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: S::scale::<f32>;
            F64, F64 => F64: S::scale::<f64>;
        )
    }
}
