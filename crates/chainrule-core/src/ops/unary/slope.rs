//! `g * slope(s)` in one pass: the backward of an op on one tensor, from the input or the result that it saved.
//!
//! [`Slope`] is for the simple ones; [`Curve`] for those with parameters, or whose loop calls exp and its kin.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::kernels::map::{self, Function2};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// The slope of a unary op, as a function of what the op saved.
pub(super) trait Slope: Debug + Send + Sync + 'static {
    /// The name of the backward in listings: `tanh_grad`.
    const NAME: &'static str;

    /// As [`Op::numpy`], of the saved value and the gradient.
    const NUMPY: &'static str;

    /// The slope as the algebra of programs reads it.
    const READING: Option<reading::SlopeReading> = None;

    /// `g` times the slope at `s`: the kernel.
    fn scale<T: Real>(s: T, g: T) -> T;

    /// The derivative of the slope with respect to `s`, for the reverse rule of the backward.
    fn bend(s: &Tensor) -> Result<Tensor>;

    /// The slope, and its tangent for the tangent `ds`: for the forward rule of the backward, written independently.
    fn forward(s: &Tensor, ds: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)>;
}

/// As [`Slope`], with parameters in its fields, and with the fused multiply-add where there is one.
pub(super) trait Curve: Parameters + Debug + Copy + Send + Sync + 'static {
    /// The name of the backward in listings: `elu_grad`.
    fn grad_name(&self) -> &'static str;

    /// As [`Op::numpy`], of the saved value and the gradient.
    fn numpy(&self) -> &'static str;

    /// The slope as the algebra of programs reads it.
    fn reading(&self) -> Option<reading::SlopeReading> {
        None
    }

    /// `g` times the slope at `s`: the kernel, always inlined and without branches.
    fn scale<const FMA: bool, T: Real>(self, s: T, g: T) -> T;

    /// As [`Slope::bend`].
    fn bend(&self, s: &Tensor) -> Result<Tensor>;

    /// As [`Slope::forward`].
    fn forward(&self, s: &Tensor, ds: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)>;
}

impl<S: Slope> Curve for PhantomData<S> {
    fn grad_name(&self) -> &'static str {
        S::NAME
    }

    fn numpy(&self) -> &'static str {
        S::NUMPY
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        S::READING
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, s: T, g: T) -> T {
        S::scale(s, g)
    }

    fn bend(&self, s: &Tensor) -> Result<Tensor> {
        S::bend(s)
    }

    fn forward(&self, s: &Tensor, ds: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
        S::forward(s, ds)
    }
}

/// The op `g * slope(s)`, linear in `g`.
#[derive(Debug, Clone, Copy, Parameters)]
struct Scaled<C>(C);

/// `g * slope(s)`, recorded if a gradient can flow.
#[track_caller]
pub(super) fn scaled<S: Slope>(s: &Tensor, g: &Tensor) -> Result<Tensor> {
    scaled_by(PhantomData::<S>, s, g)
}

/// The same for a slope with parameters.
#[track_caller]
pub(super) fn scaled_by(curve: impl Curve, s: &Tensor, g: &Tensor) -> Result<Tensor> {
    apply(Scaled(curve), &[s, g])
}

impl<C: Curve> Op for Scaled<C> {
    fn name(&self) -> &'static str {
        self.0.grad_name()
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(self.0.numpy().into())
    }

    /// The slope, and the product with the gradient.
    fn flops(&self, _: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]))
    }

    /// In the gradient, where the slope itself is not read.
    fn linear(&self) -> Linear {
        self.0.reading().map_or(Linear::Last, |_| Linear::No)
    }

    fn reading(&self) -> Reading {
        self.0.reading().map_or(Reading::Opaque, Reading::Slope)
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
            .then(|| cotangent.try_mul(at.input(1))?.try_mul(&self.0.bend(&s)?))
            .transpose()?;
        let dg = wanted.get(1).then(|| scaled_by(self.0, &s, cotangent)).transpose()?;
        Ok(smallvec![ds, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (slope, bent) = self.0.forward(&at.input(0), tangents[0].as_ref())?;
        let by_s = bent.map(|ds| at.input(1).try_mul(&ds)).transpose()?;
        let by_g = tangents[1].as_ref().map(|dg| slope.try_mul(dg)).transpose()?;
        match (by_s, by_g) {
            (Some(a), Some(b)) => a.try_add(&b),
            (Some(d), None) | (None, Some(d)) => Ok(d),
            (None, None) => unreachable!("at least one tangent is given"),
        }
    }
}

impl<C: Curve> Function2 for Scaled<C> {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, s: T, g: T) -> T {
        self.0.scale::<FMA, T>(s, g)
    }
}

impl<C: Curve> MapKernel for Scaled<C> {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(s), Input::F32(g)], Output::F32(out)) => {
                map::function2(s, g, n, out, *self)
            }
            ([Input::F64(s), Input::F64(g)], Output::F64(out)) => {
                map::function2(s, g, n, out, *self)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

/// The logistic function and its slope, both with all their digits at either end.
#[inline(always)]
pub(super) fn logistic<const FMA: bool, T: Real>(x: T) -> (T, T) {
    let e = (-x.abs()).exp::<FMA>();
    let above = T::ONE / (T::ONE + e);
    let below = e * above;
    (if x < T::ZERO { below } else { above }, above * below)
}
