//! `sinh`: the hyperbolic sine.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sinh;

impl Op for Sinh {
    elementwise!(sinh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.sinh({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_mul(&at.input(0).try_cosh()?)?)])
    }

    /// By way of the exponentials: `dx * (e^x + e^-x) / 2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let twice = x.try_exp()? + x.try_neg()?.try_exp()?;
        dx.try_mul(&twice)?.try_mul(0.5)
    }
}

impl MapKernel for Sinh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::sinh);
    }
}

methods! {
    /// The hyperbolic sine `(e^x - e^-x) / 2`. For f32 and f64.
    ///
    /// Gradient: `dx = g * cosh(x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f64, 1.0]).sinh();
    /// assert!((y - Tensor::from([0.0, 1.1752011936438014])).abs().max_all().item() < 1e-15);
    /// ```
    pub fn sinh / try_sinh(&self) -> Tensor {
        apply(Sinh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sinh",
    family: Family::Unary,
    signature: "x.sinh()",
    python: &[Binding::floats("sinh", Tensor::try_sinh)],
    formula: "(e^x - e^-x) / 2",
    gradient: "dx = g * cosh(x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_sinh()),
    mistakes: &[
        Mistake {
            name: "sine for the cosine",
            what: "the gradient is g * sinh(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.input(0).try_sinh()?)?)]),
        },
        Mistake {
            name: "circular for hyperbolic",
            what: "cos(x) was taken for cosh(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.input(0).try_cos()?)?)]),
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
            |x| x.sinh(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 1000.0, -1000.0],
            &[0.0, -0.0, nan, inf, -inf, 1.1752011936438014, -1.1752011936438014, inf, -inf],
            &[3.0, 3.0, nan, inf, inf, 4.629241904445731, 4.629241904445731, inf, inf],
        );
    }
}
