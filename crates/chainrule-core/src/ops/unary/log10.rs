//! `log10`: the logarithm to base 10.

use std::f64::consts::LN_10;

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Log10;

impl Op for Log10 {
    elementwise!(log10, infer_float_unary);

    fn role(&self) -> Role {
        Role::Logarithm
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.log10({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_div(&at.input(0).try_mul(LN_10)?)?)])
    }

    /// By way of the reciprocal: `dx * (1 / x) * log10(e)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(at.input(0).try_reciprocal()?)?.try_mul(std::f64::consts::LOG10_E)
    }
}

impl MapKernel for Log10 {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::log10_slice;
            F64 => F64: math::log10_slice;
        )
    }
}

methods! {
    /// The logarithm to base 10, within 3e-7 relative in f32: minus infinity at 0, NaN below. For
    /// f32 and f64.
    ///
    /// Gradient: `dx = g / (x ln 10)`: infinite at 0, and the same formula also below it, as in
    /// PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1000.0f32, 1.0]).log10().to_vec::<f32>(), [3.0, 0.0]);
    /// ```
    pub fn log10 / try_log10(&self) -> Tensor {
        apply(Log10, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log10",
    family: Family::Unary,
    signature: "x.log10()",
    python: &[Binding::floats("log10", Tensor::try_log10)],
    formula: "ln x / ln 10",
    gradient: "dx = g / (x ln 10)",
    at_kinks: "at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / (x ln 10)",
    samples: |g| unary_samples(g, |g, s| between(g, 0.5, 3.0, s), |x| x.try_log10()),
    mistakes: &[
        Mistake {
            name: "factor 1 / ln 10 forgotten",
            what: "log10 was differentiated as if it were the natural logarithm",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.input(0))?)]),
        },
        Mistake {
            name: "multiplied instead of divided",
            what: "the gradient is g * ln 10 / x instead of g / (x ln 10)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(std::f64::consts::LN_10)?.try_div(at.input(0))?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::LOG10_2;

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.log10(),
            &[0.0, -0.0, nan, inf, -inf, -1.0, 1000.0, 2.0],
            &[-inf, -inf, nan, inf, nan, nan, 3.0, LOG10_2],
            &[
                inf,
                -inf,
                nan,
                0.0,
                -0.0,
                -1.3028834457097553,
                0.0013028834457097555,
                0.6514417228548777,
            ],
        );
    }
}
