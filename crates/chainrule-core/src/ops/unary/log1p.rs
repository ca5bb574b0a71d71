//! `log1p`: the natural logarithm of 1 more than each element.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Log1p;

impl Op for Log1p {
    elementwise!(log1p, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.log1p({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Log1p
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(Log1pSlope, &at.input(0), cotangent)?)])
    }

    /// By way of the reciprocal: `dx * (1 / (1 + x))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(at.input(0).try_add(1)?.try_reciprocal()?)
    }
}

impl MapKernel for Log1p {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::log1p_slice;
            F64 => F64: math::log1p_slice;
        )
    }
}

/// `1 / (1 + x)`, from the input `x`.
#[derive(Debug, Clone, Copy, Parameters)]
struct Log1pSlope;

impl Slope for Log1pSlope {
    fn grad_name(&self) -> &'static str {
        "log1p_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} / ({0} + 1)"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Log1p)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        g / (x + T::ONE)
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_div(x.try_add(1)?).map(Some)
    }
}

methods! {
    /// `log(1 + x)`, with full accuracy also where `x` is near 0; within 3e-7 relative in f32.
    /// Minus infinity at -1, NaN below. For f32 and f64.
    ///
    /// Gradient: `dx = g / (1 + x)`: infinite at -1, and the same formula also below it, as in
    /// PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1e-10f32, -1.0]);
    /// assert_eq!(x.log1p().to_vec::<f32>(), [1e-10, f32::NEG_INFINITY]);
    /// ```
    pub fn log1p / try_log1p(&self) -> Tensor {
        apply(Log1p, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log1p",
    family: Family::Unary,
    signature: "x.log1p()",
    python: &[Binding::floats("log1p", Tensor::try_log1p)],
    formula: "ln(1 + x)",
    gradient: "dx = g / (1 + x)",
    at_kinks: "at -1 it is minus infinity and its gradient infinite; below -1 it is NaN, its gradient still g / (1 + x)",
    samples: |g| unary_samples(g, |g, s| between(g, -0.5, 2.0, s), |x| x.try_log1p()),
    mistakes: &[
        Mistake {
            name: "1 forgotten",
            what: "the gradient is g / x, that of the logarithm",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.input(0))?)]),
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "the gradient is divided by 1 + log(1 + x): the derivative was taken at the result instead of the input",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_div(&at.input(0).try_log1p()?.try_add(1)?)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.log1p(),
            &[0.0, -0.0, nan, inf, -inf, -1.0, -2.0, 1.0, 1e-10],
            &[0.0, -0.0, nan, inf, nan, -inf, nan, LN_2, 9.999999999500001e-11],
            &[3.0, 3.0, nan, 0.0, -0.0, inf, -3.0, 1.5, 2.9999999997],
        );
    }
}
