//! `sqrt`: the square root.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sqrt;

impl Op for Sqrt {
    elementwise!(sqrt, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.sqrt({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Power(0.5)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(SqrtSlope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `dx / 2 * x^(-1/2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        (dx * 0.5).try_mul(at.input(0).try_rsqrt()?)
    }
}

impl MapKernel for Sqrt {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::sqrt_slice;
            F64 => F64: math::sqrt_slice;
        )
    }
}

/// `1 / (2 y)`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct SqrtSlope;

impl Slope for SqrtSlope {
    fn grad_name(&self) -> &'static str {
        "sqrt_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} / ({0} + {0})"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Sqrt)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g / (y + y)
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_div(y + y).map(Some)
    }
}

methods! {
    /// The square root, correctly rounded; NaN below 0. For f32 and f64.
    ///
    /// Gradient: `dx = g / (2 sqrt(x))`: infinite at 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([4.0f32, 0.25]).sqrt().to_vec::<f32>(), [2.0, 0.5]);
    /// ```
    pub fn sqrt / try_sqrt(&self) -> Tensor {
        apply(Sqrt, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sqrt",
    family: Family::Unary,
    signature: "x.sqrt()",
    python: &[Binding::floats("sqrt", Tensor::try_sqrt)],
    formula: "x^(1/2)",
    gradient: "dx = g / (2 sqrt(x))",
    at_kinks: "the gradient at 0 is infinite, with the sign of the zero; below 0 the root is NaN",
    samples: |g| unary_samples(g, |g, s| between(g, 0.5, 3.0, s), |x| x.try_sqrt()),
    mistakes: &[
        Mistake {
            name: "missing factor",
            what: "the 2 of g / (2 sqrt(x)) was forgotten",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.output())?)]),
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "g / (2 sqrt(sqrt(x))): the root was taken of the result instead of the input",
            rule: |_, at, g, _| Ok(smallvec![Some((g * 0.5).try_div(at.output().try_sqrt()?)?)]),
        },
        Mistake {
            name: "input for the output",
            what: "the gradient is g / (2 x) instead of g / (2 y): the root was forgotten",
            rule: |_, at, g, _| Ok(smallvec![Some((g * 0.5).try_div(at.output().try_square()?)?)]),
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
            |x| x.sqrt(),
            &[0.0, -0.0, nan, -1.0, inf, 4.0],
            &[0.0, -0.0, nan, nan, inf, 2.0],
            &[inf, -inf, nan, nan, 0.0, 0.75],
        );
    }
}
