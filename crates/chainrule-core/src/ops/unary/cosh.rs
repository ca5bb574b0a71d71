//! `cosh`: the hyperbolic cosine.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Cosh;

impl Op for Cosh {
    elementwise!(cosh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.cosh({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_mul(&at.input(0).try_sinh()?)?)])
    }

    /// By way of the exponentials less 1, which do not cancel near 0: `dx * (e^x - e^-x) / 2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let twice = x.try_expm1()? - x.try_neg()?.try_expm1()?;
        dx.try_mul(&twice)?.try_mul(0.5)
    }
}

impl MapKernel for Cosh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::cosh);
    }
}

methods! {
    /// The hyperbolic cosine `(e^x + e^-x) / 2`. For f32 and f64.
    ///
    /// Gradient: `dx = g * sinh(x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([0.0f64, f64::NEG_INFINITY]).cosh().to_vec::<f64>(),
    ///     [1.0, f64::INFINITY]
    /// );
    /// ```
    pub fn cosh / try_cosh(&self) -> Tensor {
        apply(Cosh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cosh",
    family: Family::Unary,
    signature: "x.cosh()",
    python: &[Binding::floats("cosh", Tensor::try_cosh)],
    formula: "(e^x + e^-x) / 2",
    gradient: "dx = g * sinh(x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_cosh()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "-sinh(x) was taken for sinh(x), as the cosine has it",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "circular for hyperbolic",
            what: "sin(x) was taken for sinh(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.input(0).try_sin()?)?)]),
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
            |x| x.cosh(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 1000.0, -1000.0],
            &[1.0, 1.0, nan, inf, inf, 1.5430806348152437, 1.5430806348152437, inf, inf],
            &[0.0, -0.0, nan, inf, -inf, 3.525603580931404, -3.525603580931404, inf, -inf],
        );
    }
}
