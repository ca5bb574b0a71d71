//! `erfinv`: the inverse error function.

use std::f64::consts::FRAC_2_SQRT_PI;

use crate::kernels::math::inverse;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Erfinv;

impl Op for Erfinv {
    elementwise!(erfinv, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_erfinv({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let slope = at.output().try_square()?.try_exp()?.try_mul(1.0 / FRAC_2_SQRT_PI)?;
        Ok(smallvec![Some(cotangent.try_mul(&slope)?)])
    }

    /// The inverse of the slope of erf at the result: `dx / (2 / sqrt(pi) e^(-y^2))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let bell = at.output().try_square()?.try_neg()?.try_exp()?;
        dx.try_div(&bell.try_mul(FRAC_2_SQRT_PI)?)
    }
}

impl MapKernel for Erfinv {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, inverse::erfinv);
    }
}

methods! {
    /// The inverse of [`Tensor::erf`], within 1e-14 relative in f64; infinite at 1 and -1, NaN
    /// beyond. For f32 and f64.
    ///
    /// Gradient: `dx = g * sqrt(pi) / 2 * e^(y^2)` with the result `y`: infinite at 1 and -1, NaN
    /// beyond. Only the result is kept for backward.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f32, 1.0, -1.0]).erfinv();
    /// assert_eq!(y.to_vec::<f32>(), [0.0, f32::INFINITY, f32::NEG_INFINITY]);
    /// ```
    pub fn erfinv / try_erfinv(&self) -> Tensor {
        apply(Erfinv, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "erfinv",
    family: Family::Unary,
    signature: "x.erfinv()",
    python: &[Binding::floats("erfinv", Tensor::try_erfinv)],
    formula: "the y with erf(y) = x",
    gradient: "dx = g * sqrt(pi) / 2 * e^(y^2), y = erfinv(x)",
    at_kinks: "at 1 and -1 it is infinite and so is its gradient; beyond both are NaN",
    samples: |g| unary_samples(g, |g, s| between(g, -0.8, 0.8, s), |x| x.try_erfinv()),
    mistakes: &[
        Mistake {
            name: "derivative taken at the wrong point",
            what: "e^(x^2) was taken for e^(y^2): the derivative was taken at the input instead of the result",
            rule: |_, at, g, _| {
                let x = at.output().try_erf()?;
                let slope = x.try_square()?.try_exp()?.try_mul(1.0 / FRAC_2_SQRT_PI)?;
                Ok(smallvec![Some(g.try_mul(&slope)?)])
            },
        },
        Mistake {
            name: "slope not inverted",
            what: "2 / sqrt(pi) e^(-y^2) was taken, the slope of erf",
            rule: |_, at, g, _| {
                let slope = at.output().try_square()?.try_neg()?.try_exp()?;
                Ok(smallvec![Some(g.try_mul(FRAC_2_SQRT_PI)?.try_mul(&slope)?)])
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
            |x| x.erfinv(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 0.5, -0.9, 2.0],
            &[0.0, -0.0, nan, nan, nan, inf, -inf, 0.4769362762044699, -1.1630871536766743, nan],
            &[
                2.658680776358274,
                2.658680776358274,
                nan,
                nan,
                nan,
                inf,
                inf,
                3.3377544569158486,
                10.284128434355525,
                nan,
            ],
        );
    }
}
