//! `exp2`: 2 to the power of each element.

use std::f64::consts::LN_2;

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Exp2;

impl Op for Exp2 {
    elementwise!(exp2, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.exp2({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(Exp2Slope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `2^x = e^(x ln 2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let power = at.input(0).try_mul(LN_2)?.try_exp()?;
        dx.try_mul(LN_2)?.try_mul(&power)
    }
}

impl MapKernel for Exp2 {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::exp2_slice;
            F64 => F64: math::exp2_slice;
        )
    }
}

/// `y ln 2`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct Exp2Slope;

impl Slope for Exp2Slope {
    fn grad_name(&self) -> &'static str {
        "exp2_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * ({0} * math.log(2))"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g * (y * T::from_f64(LN_2))
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_mul(y.try_mul(LN_2)?).map(Some)
    }
}

methods! {
    /// The power `2^x`, within 3e-7 relative in f32 and exact for integers. For f32 and f64.
    ///
    /// Gradient: `dx = g * 2^x * ln 2`. Only the result is kept for backward.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 3.0, -1.0]).exp2().to_vec::<f32>(), [1.0, 8.0, 0.5]);
    /// ```
    pub fn exp2 / try_exp2(&self) -> Tensor {
        apply(Exp2, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "exp2",
    family: Family::Unary,
    signature: "x.exp2()",
    python: &[Binding::floats("exp2", Tensor::try_exp2)],
    formula: "2^x",
    gradient: "dx = g * 2^x * ln 2",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_exp2()),
    mistakes: &[
        Mistake {
            name: "ln 2 forgotten",
            what: "2^x was differentiated as if it were e^x",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?)]),
        },
        Mistake {
            name: "rule of the power x^2",
            what: "2 x was taken for 2^x ln 2",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(2)?.try_mul(&at.output().try_log2()?)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::SQRT_2;

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.exp2(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, 1100.0, -1100.0, 0.5],
            &[1.0, 1.0, nan, inf, 0.0, 2.0, inf, 0.0, SQRT_2],
            &[
                2.0794415416798357,
                2.0794415416798357,
                nan,
                inf,
                0.0,
                4.1588830833596715,
                inf,
                0.0,
                2.940774430405642,
            ],
        );
    }
}
