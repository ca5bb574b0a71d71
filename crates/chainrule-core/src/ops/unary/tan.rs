//! `tan`: the tangent.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Tan;

impl Op for Tan {
    elementwise!(tan, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.tan({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let slope = at.output().try_square()?.try_add(1)?;
        Ok(smallvec![Some(cotangent.try_mul(&slope)?)])
    }

    /// By way of the input: `dx / cos(x)^2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_div(&at.input(0).try_cos()?.try_square()?)
    }
}

impl MapKernel for Tan {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::tan);
    }
}

methods! {
    /// The tangent of an angle in radians. For f32 and f64.
    ///
    /// Gradient: `dx = g * (1 + tan(x)^2)`. NaN at infinities.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 0.25]).tan().to_vec::<f32>(), [0.0, 0.255_341_92]);
    /// ```
    pub fn tan / try_tan(&self) -> Tensor {
        apply(Tan, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "tan",
    family: Family::Unary,
    signature: "x.tan()",
    python: &[Binding::floats("tan", Tensor::try_tan)],
    formula: "sin x / cos x",
    gradient: "dx = g * (1 + tan(x)^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| between(g, -1.2, 1.2, s), |x| x.try_tan()),
    mistakes: &[
        Mistake {
            name: "sign in the slope",
            what: "1 - tan(x)^2 was taken, the slope of tanh",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(1.0 - at.output().try_square()?)?)]),
        },
        Mistake {
            name: "square forgotten",
            what: "1 + tan(x) was taken for 1 + tan(x)^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.output().try_add(1)?)?)]),
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
            |x| x.tan(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -2.0],
            &[0.0, -0.0, nan, nan, nan, 1.5574077246549023, 2.185039863261519],
            &[3.0, 3.0, nan, nan, nan, 10.27655646244428, 17.323197612125753],
        );
    }
}
