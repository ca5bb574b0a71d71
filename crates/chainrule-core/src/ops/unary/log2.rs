//! `log2`: the logarithm to base 2.

use std::f64::consts::LN_2;

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Log2;

impl Op for Log2 {
    elementwise!(log2, infer_float_unary);

    fn role(&self) -> Role {
        Role::Logarithm
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.log2({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(Log2Slope, &at.input(0), cotangent)?)])
    }

    /// By way of the reciprocal: `dx * (1 / x) * log2(e)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(at.input(0).try_reciprocal()?)?.try_mul(std::f64::consts::LOG2_E)
    }
}

impl MapKernel for Log2 {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::log2_slice;
            F64 => F64: math::log2_slice;
        )
    }
}

/// `1 / (x ln 2)`, from the input `x`.
#[derive(Debug, Clone, Copy, Parameters)]
struct Log2Slope;

impl Slope for Log2Slope {
    fn grad_name(&self) -> &'static str {
        "log2_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} / ({0} * math.log(2))"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        g / (x * T::from_f64(LN_2))
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_div(x.try_mul(LN_2)?).map(Some)
    }
}

methods! {
    /// The logarithm to base 2, within 3e-7 relative in f32 and exact for powers of two: minus
    /// infinity at 0, NaN below. For f32 and f64.
    ///
    /// Gradient: `dx = g / (x ln 2)`: infinite at 0, and the same formula also below it, as in
    /// PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([8.0f32, 0.25, 0.0]).log2().to_vec::<f32>(),
    ///     [3.0, -2.0, f32::NEG_INFINITY]
    /// );
    /// ```
    pub fn log2 / try_log2(&self) -> Tensor {
        apply(Log2, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log2",
    family: Family::Unary,
    signature: "x.log2()",
    python: &[Binding::floats("log2", Tensor::try_log2)],
    formula: "ln x / ln 2",
    gradient: "dx = g / (x ln 2)",
    at_kinks: "at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / (x ln 2)",
    samples: |g| unary_samples(g, |g, s| between(g, 0.5, 3.0, s), |x| x.try_log2()),
    mistakes: &[
        Mistake {
            name: "factor 1 / ln 2 forgotten",
            what: "log2 was differentiated as if it were the natural logarithm",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.input(0))?)]),
        },
        Mistake {
            name: "multiplied instead of divided",
            what: "the gradient is g * ln 2 / x instead of g / (x ln 2)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(std::f64::consts::LN_2)?.try_div(at.input(0))?)])
            },
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
            |x| x.log2(),
            &[0.0, -0.0, nan, inf, -inf, -1.0, 8.0, 3.0],
            &[-inf, -inf, nan, inf, nan, nan, 3.0, 1.584962500721156],
            &[
                inf,
                -inf,
                nan,
                0.0,
                -0.0,
                -4.328085122666891,
                0.5410106403333613,
                1.4426950408889636,
            ],
        );
    }
}
