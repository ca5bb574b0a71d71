//! `erf`: the error function.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Erf;

impl Op for Erf {
    elementwise!(erf, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_each(math.erf, {0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(ErfSlope, &at.input(0), cotangent)?)])
    }

    /// By way of the inverse of the bell: `dx * 2 / sqrt(pi) / e^(x^2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(FRAC_2_SQRT_PI)?.try_div(&at.input(0).try_square()?.try_exp()?)
    }
}

impl MapKernel for Erf {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::erf_slice;
            F64 => F64: math::erf_slice;
        )
    }
}

/// The bell `2 / sqrt(pi) e^(-x^2)`, from the input `x`.
#[derive(Debug, Clone, Copy, Parameters)]
pub(super) struct ErfSlope;

impl Slope for ErfSlope {
    fn grad_name(&self) -> &'static str {
        "erf_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * (2 / math.sqrt(math.pi)) * np.exp(-{0} * {0})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        g * (T::from_f64(FRAC_2_SQRT_PI) * (-(x * x)).exp::<false>())
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        x.try_square()?.try_neg()?.try_exp()?.try_mul(FRAC_2_SQRT_PI)?.try_mul(g).map(Some)
    }
}

methods! {
    /// The error function `2 / sqrt(pi)` times the integral of `e^(-t^2)` from 0 to `x`; within
    /// 3e-7 relative in f32, 1e-15 in f64. For f32 and f64.
    ///
    /// Gradient: `dx = g * 2 / sqrt(pi) * e^(-x^2)`. For results near 1, [`Tensor::erfc`] has the
    /// digits of the rest.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f64, f64::INFINITY, 1.0]).erf().to_vec::<f64>();
    /// assert_eq!(y[..2], [0.0, 1.0]);
    /// assert!((y[2] - 0.842_700_792_949_714_9).abs() < 1e-15);
    /// ```
    pub fn erf / try_erf(&self) -> Tensor {
        apply(Erf, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "erf",
    family: Family::Unary,
    signature: "x.erf()",
    python: &[Binding::floats("erf", Tensor::try_erf)],
    formula: "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x",
    gradient: "dx = g * 2 / sqrt(pi) * e^(-x^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_erf()),
    mistakes: &[
        Mistake {
            name: "factor 2 / sqrt(pi) forgotten",
            what: "the gradient is g * e^(-x^2)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(&at.input(0).try_square()?.try_neg()?.try_exp()?)?)])
            },
        },
        Mistake {
            name: "bell of the normal distribution",
            what: "e^(-x^2 / 2) was taken for e^(-x^2)",
            rule: |_, at, g, _| {
                let bell = at.input(0).try_square()?.try_mul(-0.5)?.try_exp()?;
                Ok(smallvec![Some(g.try_mul(FRAC_2_SQRT_PI)?.try_mul(&bell)?)])
            },
        },
        Mistake {
            name: "minus in the exponent forgotten",
            what: "e^(x^2) was taken for e^(-x^2)",
            rule: |_, at, g, _| {
                let bell = at.input(0).try_square()?.try_exp()?;
                Ok(smallvec![Some(g.try_mul(FRAC_2_SQRT_PI)?.try_mul(&bell)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.erf(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 0.25, 30.0],
            &[
                0.0,
                -0.0,
                nan,
                1.0,
                -1.0,
                0.8427007929497149,
                -0.8427007929497149,
                0.27632639016823696,
                1.0,
            ],
            &[
                3.385137501286538,
                3.385137501286538,
                nan,
                0.0,
                0.0,
                1.245322492261784,
                1.245322492261784,
                3.180042388128343,
                0.0,
            ],
        );
    }
}
