//! `erfc`: 1 less the error function.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::erf::ErfSlope;
use super::slope::scaled;
use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Erfc;

impl Op for Erfc {
    elementwise!(erfc, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_each(math.erfc, {0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(ErfSlope, &at.input(0), cotangent)?.try_neg()?)])
    }

    /// By way of the inverse of the bell: `-dx * 2 / sqrt(pi) / e^(x^2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(-FRAC_2_SQRT_PI)?.try_div(&at.input(0).try_square()?.try_exp()?)
    }
}

impl MapKernel for Erfc {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::erfc_slice;
            F64 => F64: math::erfc_slice;
        )
    }
}

methods! {
    /// The complementary error function `1 - erf(x)`, with full relative accuracy also where that
    /// is tiny: within 3e-7 in f32, 1e-15 in f64. For f32 and f64.
    ///
    /// Gradient: `dx = -g * 2 / sqrt(pi) * e^(-x^2)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f32, f32::INFINITY, f32::NEG_INFINITY]).erfc();
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 0.0, 2.0]);
    /// ```
    pub fn erfc / try_erfc(&self) -> Tensor {
        apply(Erfc, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "erfc",
    family: Family::Unary,
    signature: "x.erfc()",
    python: &[Binding::floats("erfc", Tensor::try_erfc)],
    formula: "1 - erf(x)",
    gradient: "dx = -g * 2 / sqrt(pi) * e^(-x^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_erfc()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus was forgotten: the gradient of erf",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "factor 2 / sqrt(pi) forgotten",
            what: "the gradient is -g * e^(-x^2)",
            rule: |_, at, g, _| {
                let bell = at.input(0).try_square()?.try_neg()?.try_exp()?;
                Ok(smallvec![Some(g.try_mul(&bell)?.try_neg()?)])
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
            |x| x.erfc(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 5.0, 30.0],
            &[
                1.0,
                1.0,
                nan,
                0.0,
                2.0,
                0.15729920705028513,
                1.8427007929497148,
                1.537459794428035e-12,
                0.0,
            ],
            &[
                -3.385137501286538,
                -3.385137501286538,
                nan,
                -0.0,
                -0.0,
                -1.245322492261784,
                -1.245322492261784,
                -4.701259959305201e-11,
                -0.0,
            ],
        );
    }
}
