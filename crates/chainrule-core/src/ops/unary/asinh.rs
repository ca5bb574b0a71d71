//! `asinh`: the inverse hyperbolic sine.

use crate::kernels::math::inverse;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Asinh;

impl Op for Asinh {
    elementwise!(asinh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arcsinh({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let root = at.input(0).try_square()?.try_add(1)?.try_rsqrt()?;
        Ok(smallvec![Some(cotangent.try_mul(&root)?)])
    }

    /// By way of the result: `dx / cosh(y)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_div(&at.output().try_cosh()?)
    }
}

impl MapKernel for Asinh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, inverse::asinh);
    }
}

methods! {
    /// The inverse hyperbolic sine `log(x + sqrt(x^2 + 1))`. For f32 and f64.
    ///
    /// Gradient: `dx = g / sqrt(x^2 + 1)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f64, 1.0]).asinh();
    /// assert!((y - Tensor::from([0.0, 0.881373587019543])).abs().max_all().item() < 1e-15);
    /// ```
    pub fn asinh / try_asinh(&self) -> Tensor {
        apply(Asinh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "asinh",
    family: Family::Unary,
    signature: "x.asinh()",
    python: &[Binding::floats("asinh", Tensor::try_asinh).also(&["arcsinh"])],
    formula: "ln(x + sqrt(x^2 + 1))",
    gradient: "dx = g / sqrt(x^2 + 1)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_asinh()),
    mistakes: &[
        Mistake {
            name: "root forgotten",
            what: "g / (x^2 + 1) was taken for g / sqrt(x^2 + 1)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_div(&at.input(0).try_square()?.try_add(1)?)?)])
            },
        },
        Mistake {
            name: "derivative not inverted",
            what: "g * cosh(x): the sine was differentiated instead of its inverse",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.input(0).try_cosh()?)?)]),
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
            |x| x.asinh(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 4.0, -0.5],
            &[
                0.0,
                -0.0,
                nan,
                inf,
                -inf,
                0.881373587019543,
                -0.881373587019543,
                2.0947125472611012,
                -0.48121182505960347,
            ],
            &[
                3.0,
                3.0,
                nan,
                0.0,
                0.0,
                2.1213203435596424,
                2.1213203435596424,
                0.7276068751089989,
                2.6832815729997477,
            ],
        );
    }
}
