//! `reciprocal`: one over x.

use super::slope::{Slope, scaled};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Reciprocal;

impl Op for Reciprocal {
    elementwise!(reciprocal, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("1 / {0}".into())
    }

    fn reading(&self) -> Reading {
        Reading::Power(-1.0)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(ReciprocalSlope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `-dx / x^2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_neg()?.try_div(&x * &x)
    }
}

impl MapKernel for Reciprocal {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| 1.0 / x;
            F64 => F64: |x| 1.0 / x;
        )
    }
}

/// `-y^2`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct ReciprocalSlope;

impl Slope for ReciprocalSlope {
    fn grad_name(&self) -> &'static str {
        "reciprocal_grad"
    }

    fn numpy(&self) -> &'static str {
        "-({1} * ({0} * {0}))"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Reciprocal)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        -(g * (y * y))
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        (y * y).try_mul(g)?.try_neg().map(Some)
    }
}

methods! {
    /// One over x: infinite at 0, with the sign of the zero. For f32 and f64. Gradient:
    /// `dx = -g / x^2`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([4.0f32, -0.5]).reciprocal().to_vec::<f32>(), [0.25, -2.0]);
    /// ```
    pub fn reciprocal / try_reciprocal(&self) -> Tensor {
        apply(Reciprocal, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "reciprocal",
    family: Family::Unary,
    signature: "x.reciprocal()",
    python: &[Binding::floats("reciprocal", Tensor::try_reciprocal)],
    formula: "1 / x",
    gradient: "dx = -g / x^2",
    at_kinks: "at 0 it is infinite, with the sign of the zero, and the gradient is minus infinity",
    samples: |g| unary_samples(g, super::away_from_zero, |x| x.try_reciprocal()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus of -1 / x^2 was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "missing square",
            what: "the gradient is -g / x instead of -g / x^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?.try_neg()?)]),
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
            |x| x.reciprocal(),
            &[0.0, -0.0, nan, -1.0, inf, 4.0],
            &[inf, -inf, nan, -1.0, 0.0, 0.25],
            &[-inf, -inf, nan, -3.0, -0.0, -0.1875],
        );
    }
}
