//! `rsqrt`: one over the square root.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Rsqrt;

impl Op for Rsqrt {
    elementwise!(rsqrt, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("1 / np.sqrt({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Power(-0.5)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(RsqrtSlope, &at.output(), cotangent)?)])
    }

    /// By way of the root of the input: `-dx / 2 / sqrt(x)^3`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let root = at.input(0).try_sqrt()?;
        (dx * -0.5).try_div(&root * &root * &root)
    }
}

impl MapKernel for Rsqrt {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::rsqrt_slice;
            F64 => F64: math::rsqrt_slice;
        )
    }
}

/// `-y^3 / 2`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct RsqrtSlope;

impl Slope for RsqrtSlope {
    fn grad_name(&self) -> &'static str {
        "rsqrt_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * (-0.5 * ({0} * {0} * {0}))"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Rsqrt)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g * (T::from_f64(-0.5) * (y * y * y))
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        (y * y * y).try_mul(-0.5)?.try_mul(g).map(Some)
    }
}

methods! {
    /// One over the square root, `1 / sqrt(x)`: infinite at 0, NaN below. For f32 and f64.
    ///
    /// A division and a root, each correctly rounded, not the processor's estimate. Gradient:
    /// `dx = -g / 2 * x^(-3/2)`, one pass from the result.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([4.0f32, 0.25]).rsqrt().to_vec::<f32>(), [0.5, 2.0]);
    /// ```
    pub fn rsqrt / try_rsqrt(&self) -> Tensor {
        apply(Rsqrt, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "rsqrt",
    family: Family::Unary,
    signature: "x.rsqrt()",
    python: &[Binding::floats("rsqrt", Tensor::try_rsqrt)],
    formula: "x^(-1/2)",
    gradient: "dx = -g / 2 * x^(-3/2)",
    at_kinks: "at 0 it is infinite, with the sign of the zero, and its gradient has the opposite sign; below 0 it is NaN",
    samples: |g| unary_samples(g, |g, s| between(g, 0.5, 3.0, s), |x| x.try_rsqrt()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus of -x^(-3/2) / 2 was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "power not lowered",
            what: "x^(-1/2) was left where x^(-3/2) is due",
            rule: |_, at, g, _| Ok(smallvec![Some((g * -0.5).try_mul(at.output())?)]),
        },
        Mistake {
            name: "missing factor",
            what: "the 1/2 of -x^(-3/2) / 2 was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &(g * 2.0), wanted),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.rsqrt(),
            &[0.0, -0.0, nan, -1.0, inf, 4.0],
            &[inf, -inf, nan, nan, 0.0, 0.5],
            &[-inf, inf, nan, nan, 0.0, -0.1875],
        );
    }
}
