//! `g * slope(s)` in one pass: the backward of an op on one tensor, from the input or the result
//! that it saved.

use std::fmt::Debug;

use crate::kernels::map::{self, Function2};
use crate::kernels::math::Real;
use crate::ops::prelude::*;
use crate::tensor::is_grad_enabled;

/// The slope of a unary op, as a function of the value that the op saved.
pub(super) trait Slope: Parameters + Debug + Copy + Send + Sync + 'static {
    /// The name of the backward in listings: `tanh_grad`.
    fn grad_name(&self) -> &'static str;

    /// As [`Op::numpy`], of the saved value and the gradient.
    fn numpy(&self) -> &'static str;

    /// The slope as the algebra of programs reads it.
    fn reading(&self) -> Option<reading::SlopeReading> {
        None
    }

    /// `g` times the slope at `s`: the kernel, always inlined and without branches, with the fused
    /// multiply-add where there is one.
    fn scale<const FMA: bool, T: Real>(self, s: T, g: T) -> T;

    /// The same in primitive ops, from which the derivatives of the backward come; none for a slope
    /// that is constant between its jumps.
    fn in_steps(&self, s: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let _ = (s, g);
        Ok(None)
    }
}

/// The op `g * slope(s)`, linear in `g`.
#[derive(Debug, Clone, Copy)]
struct Scaled<S>(S);

/// Parameters of the slope; a slope without any is identified by the type of the op.
impl<S: Slope> Parameters for Scaled<S> {
    fn parameters(&self) -> Param {
        match self.0.parameters() {
            Param::Word(_) => Param::Unit,
            own => Param::Struct("Scaled", vec![("0", own)]),
        }
    }
}

/// `g * slope(s)`: by the kernel, or in primitive ops where it will be differentiated.
#[track_caller]
pub(super) fn scaled(slope: impl Slope, s: &Tensor, g: &Tensor) -> Result<Tensor> {
    let recorded = is_grad_enabled() && (s.requires_grad() || g.requires_grad());
    if recorded && let Some(steps) = slope.in_steps(s, g)? {
        return Ok(steps);
    }
    apply(Scaled(slope), &[s, g])
}

impl<S: Slope> Op for Scaled<S> {
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

    /// In the gradient, if the slope itself is opaque to the algebra.
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

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let s = at.input(0);
        self.expect_flat(wanted.get(0), &s)?;
        let ds = wanted.get(0).then(|| s.zeros_like());
        let dg = wanted.get(1).then(|| scaled(self.0, &s, cotangent)).transpose()?;
        Ok(smallvec![ds, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let s = at.input(0);
        self.expect_flat(tangents[0].is_some(), &s)?;
        tangents[1].as_ref().map_or_else(|| Ok(s.zeros_like()), |dg| scaled(self.0, &s, dg))
    }
}

impl<S: Slope> Scaled<S> {
    /// The error if the slope changes with `s` and `s` is asked for: [`scaled`] records that case
    /// in primitive ops.
    fn expect_flat(&self, asked: bool, s: &Tensor) -> Result<()> {
        if asked && self.0.in_steps(&s.detach(), &s.detach())?.is_some() {
            let why = "this kernel is differentiated in primitive ops, which were not recorded";
            return Err(Error::gradient(self.name(), why));
        }
        Ok(())
    }
}

impl<S: Slope> Function2 for Scaled<S> {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, s: T, g: T) -> T {
        self.0.scale::<FMA, T>(s, g)
    }
}

impl<S: Slope> MapKernel for Scaled<S> {
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
