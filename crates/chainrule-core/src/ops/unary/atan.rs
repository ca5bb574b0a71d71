//! `atan`: the inverse tangent.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Atan;

impl Op for Atan {
    elementwise!(atan, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arctan({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_div(&at.input(0).try_square()?.try_add(1)?)?)])
    }

    /// By way of the cosine of the result, `1 / sqrt(1 + x^2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let secant = (&x * &x + 1.0).try_rsqrt()?;
        dx.try_mul(&secant)?.try_mul(&secant)
    }
}

impl MapKernel for Atan {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::atan);
    }
}

methods! {
    /// The inverse tangent, an angle from -pi/2 to pi/2. For f32 and f64.
    ///
    /// Gradient: `dx = g / (1 + x^2)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f64, f64::INFINITY]).atan();
    /// assert_eq!(y.to_vec::<f64>(), [0.0, std::f64::consts::FRAC_PI_2]);
    /// ```
    pub fn atan / try_atan(&self) -> Tensor {
        apply(Atan, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "atan",
    family: Family::Unary,
    signature: "x.atan()",
    python: &[Binding::floats("atan", Tensor::try_atan).also(&["arctan"])],
    formula: "the angle from -pi/2 to pi/2 whose tangent is x",
    gradient: "dx = g / (1 + x^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_atan()),
    mistakes: &[
        Mistake {
            name: "sign in the slope",
            what: "1 - x^2 was taken for 1 + x^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(1.0 - at.input(0).try_square()?)?)]),
        },
        Mistake {
            name: "multiplied instead of divided",
            what: "the gradient is g * (1 + x^2)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(&at.input(0).try_square()?.try_add(1)?)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.atan(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 1e200],
            &[0.0, -0.0, nan, FRAC_PI_2, -FRAC_PI_2, FRAC_PI_4, -FRAC_PI_4, FRAC_PI_2],
            &[3.0, 3.0, nan, 0.0, 0.0, 1.5, 1.5, 0.0],
        );
    }
}
