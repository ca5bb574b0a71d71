//! `tanh`: the hyperbolic tangent, and its backward as one kernel.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Tanh;

impl Op for Tanh {
    elementwise!(tanh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.tanh({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Tanh
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(TanhSlope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `dx / cosh(x)^2`, where `1 / cosh(x) = 2 / (e^x + e^-x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let sech = 2.0 / (x.try_exp()? + x.try_neg()?.try_exp()?);
        tangents[0].as_ref().expect("the only tangent").try_mul(&sech * &sech)
    }
}

impl MapKernel for Tanh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::tanh_slice;
            F64 => F64: math::tanh_slice;
        )
    }
}

/// `1 - y^2`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct TanhSlope;

impl Slope for TanhSlope {
    fn grad_name(&self) -> &'static str {
        "tanh_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * ((1 - {0}) * (1 + {0}))"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Tanh)
    }

    /// As a product, which keeps its digits where `y` is near 1.
    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g * ((T::ONE - y) * (T::ONE + y))
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_mul((1.0 - y) * (1.0 + y)).map(Some)
    }
}

methods! {
    /// The hyperbolic tangent. For f32 and f64.
    ///
    /// `tanh(x) = (e^x - e^-x) / (e^x + e^-x)`, within 3e-7 relative in f32. Gradient:
    /// `dx = g * (1 - tanh(x)^2)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, f32::INFINITY]).tanh().to_vec::<f32>(), [0.0, 1.0]);
    /// ```
    pub fn tanh / try_tanh(&self) -> Tensor {
        apply(Tanh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "tanh",
    family: Family::Unary,
    signature: "x.tanh()",
    python: &[Binding::floats("tanh", Tensor::try_tanh).functional()],
    formula: "(e^x - e^-x) / (e^x + e^-x)",
    gradient: "dx = g * (1 - tanh(x)^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_tanh()),
    mistakes: &[
        Mistake {
            name: "square forgotten",
            what: "1 - tanh(x) was taken for 1 - tanh(x)^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&(1.0 - at.output()))?)]),
        },
        Mistake {
            name: "derivative of the sigmoid",
            what: "y * (1 - y) was taken for 1 - y^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g * (at.output() * (1.0 - at.output())))]),
        },
        Mistake {
            name: "input for the output",
            what: "1 - x^2 was taken for 1 - y^2: the input stands where the result is due",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(&(1.0 - at.output().try_atanh()?.try_square()?))?)])
            },
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "1 - tanh(tanh(x))^2: the derivative was taken at the result instead of the input",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g * (1.0 - at.output().tanh() * at.output().tanh()))])
            },
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
            |x| x.tanh(),
            &[0.0, -0.0, nan, inf, -inf, -1000.0],
            &[0.0, -0.0, nan, 1.0, -1.0, -1.0],
            &[3.0, 3.0, nan, 0.0, 0.0, 0.0],
        );
    }
}
