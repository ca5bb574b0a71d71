//! `square`: the square.

use super::slope::{Slope, scaled};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Square;

impl Op for Square {
    elementwise!(square, infer_number_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * {0}".into())
    }

    fn reading(&self) -> Reading {
        Reading::Power(2.0)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(SquareSlope, &at.input(0), cotangent)?)])
    }

    /// The rule of the product: `dx * x + x * dx`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_mul(&x)?.try_add(x.try_mul(dx)?)
    }
}

impl MapKernel for Square {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| x * x;
            F64 => F64: |x| x * x;
            I64 => I64: |x| x.wrapping_mul(x);
        )
    }
}

/// `2 x`.
#[derive(Debug, Clone, Copy, Parameters)]
struct SquareSlope;

impl Slope for SquareSlope {
    fn grad_name(&self) -> &'static str {
        "square_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * ({0} + {0})"
    }

    fn reading(&self) -> Option<reading::SlopeReading> {
        Some(reading::SlopeReading::Square)
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        g * (x + x)
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_mul(x + x).map(Some)
    }
}

methods! {
    /// The square `x^2`. For f32, f64 and i64 (which wraps around). Gradient: `dx = 2 g x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([3.0f32, -0.5]).square().to_vec::<f32>(), [9.0, 0.25]);
    /// ```
    pub fn square / try_square(&self) -> Tensor {
        apply(Square, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "square",
    family: Family::Unary,
    signature: "x.square()",
    python: &[Binding::any("square", Tensor::try_square)],
    formula: "x^2",
    gradient: "dx = 2 g x",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_square()),
    mistakes: &[
        Mistake {
            name: "missing factor",
            what: "the 2 of 2 g x was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &(g * 0.5), wanted),
        },
        Mistake {
            name: "power not lowered",
            what: "x^2 was left where x is due",
            rule: |_, at, g, _| Ok(smallvec![Some((g * 2.0).try_mul(at.input(0).try_square()?)?)]),
        },
        Mistake {
            name: "input forgotten",
            what: "the gradient is 2 g",
            rule: |_, _, g, _| Ok(smallvec![Some(g.try_mul(2.0)?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.square(),
            &[0.0, -0.0, nan, inf, -inf],
            &[0.0, 0.0, nan, inf, inf],
            &[0.0, -0.0, nan, inf, -inf],
        );
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        assert_eq!(Tensor::from([-3i64, 4]).square().to_vec::<i64>(), [9, 16]);
        assert!(Tensor::from([true]).try_square().is_err());
    }
}
