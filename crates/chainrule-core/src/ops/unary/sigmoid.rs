//! `sigmoid`: the logistic function.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sigmoid;

impl Op for Sigmoid {
    elementwise!(sigmoid, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_sigmoid({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Sigmoid
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(SigmoidSlope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `dx / (e^(x/2) + e^(-x/2))^2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let half = at.input(0).try_mul(0.5)?;
        let sum = half.try_exp()? + half.try_neg()?.try_exp()?;
        dx.try_div(&sum)?.try_div(&sum)
    }
}

impl MapKernel for Sigmoid {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::sigmoid_slice;
            F64 => F64: math::sigmoid_slice;
        )
    }
}

/// `y (1 - y)`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct SigmoidSlope;

impl Slope for SigmoidSlope {
    fn grad_name(&self) -> &'static str {
        "sigmoid_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * ({0} * (1 - {0}))"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Sigmoid)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g * (y * (T::ONE - y))
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_mul(y * (1.0 - y)).map(Some)
    }
}

methods! {
    /// The logistic function `1 / (1 + e^-x)`, within 3e-7 relative in f32. For f32 and f64.
    ///
    /// Gradient: `dx = g * y * (1 - y)` with `y = sigmoid(x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, f32::INFINITY]).sigmoid().to_vec::<f32>(), [0.5, 1.0]);
    /// ```
    pub fn sigmoid / try_sigmoid(&self) -> Tensor {
        apply(Sigmoid, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sigmoid",
    family: Family::Unary,
    signature: "x.sigmoid()",
    python: &[Binding::floats("sigmoid", Tensor::try_sigmoid).functional()],
    formula: "1 / (1 + e^-x)",
    gradient: "dx = g * y * (1 - y), y = sigmoid(x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_sigmoid()),
    mistakes: &[
        Mistake {
            name: "derivative of tanh",
            what: "1 - y^2 was taken for y (1 - y)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(1.0 - at.output().try_square()?)?)]),
        },
        Mistake {
            name: "factor forgotten",
            what: "the factor 1 - y was forgotten",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?)]),
        },
        Mistake {
            name: "input for the output",
            what: "x (1 - x) was taken for y (1 - y): the input stands where the result is due",
            rule: |_, at, g, _| {
                let y = at.output();
                let x = y.try_log()?.try_sub(&(1.0 - &y).try_log()?)?;
                Ok(smallvec![Some(g.try_mul(&(&x * &(1.0 - &x)))?)])
            },
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "sigmoid was applied to its own result: the derivative was taken there instead of at the input",
            rule: |_, at, g, _| {
                scaled(SigmoidSlope, &at.output().try_sigmoid()?, g).map(|dx| smallvec![Some(dx)])
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
            |x| x.sigmoid(),
            &[0.0, -0.0, nan, -1000.0, inf, -inf],
            &[0.5, 0.5, nan, 0.0, 1.0, 0.0],
            &[0.75, 0.75, nan, 0.0, 0.0, 0.0],
        );
    }
}
