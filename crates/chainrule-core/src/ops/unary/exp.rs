//! `exp`: the exponential.

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Exp;

impl Op for Exp {
    elementwise!(exp, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.exp({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Exp
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_mul(at.output())?)])
    }

    /// By way of the input: `e^x dx`, computed anew as `dx / e^-x`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_div(&at.input(0).try_neg()?.try_exp()?)
    }
}

impl MapKernel for Exp {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::exp_slice;
            F64 => F64: math::exp_slice;
        )
    }
}

methods! {
    /// The exponential `e^x`. For f32 (within 3e-7 relative) and f64. Gradient: `dx = g * e^x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, f32::NEG_INFINITY]).exp().to_vec::<f32>(), [1.0, 0.0]);
    /// ```
    pub fn exp / try_exp(&self) -> Tensor {
        apply(Exp, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "exp",
    family: Family::Unary,
    signature: "x.exp()",
    python: &[Binding::floats("exp", Tensor::try_exp)],
    formula: "e^x",
    gradient: "dx = g * e^x",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_exp()),
    mistakes: &[
        Mistake {
            name: "factor forgotten",
            what: "the gradient is passed on without the factor e^x",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "input for the output",
            what: "the gradient is g * x: the input stands where the result is due",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.output().try_log()?)?)]),
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "the factor is exp(exp(x)): the derivative was taken at the result instead of the input",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.output().try_exp()?)?)]),
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
            |x| x.exp(),
            &[0.0, nan, inf, -inf, 1000.0, -1000.0],
            &[1.0, nan, inf, 0.0, inf, 0.0],
            &[3.0, nan, inf, 0.0, inf, 0.0],
        );
    }
}
