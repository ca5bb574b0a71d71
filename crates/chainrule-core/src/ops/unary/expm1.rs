//! `expm1`: the exponential less 1.

use super::slope::{Slope, scaled};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Expm1;

impl Op for Expm1 {
    elementwise!(expm1, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.expm1({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Expm1
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(Expm1Slope, &at.output(), cotangent)?)])
    }

    /// By way of the input: `e^x dx`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(&at.input(0).try_exp()?)
    }
}

impl MapKernel for Expm1 {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::expm1_slice;
            F64 => F64: math::expm1_slice;
        )
    }
}

/// `y + 1`, from the result `y`.
#[derive(Debug, Clone, Copy, Parameters)]
struct Expm1Slope;

impl Slope for Expm1Slope {
    fn grad_name(&self) -> &'static str {
        "expm1_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * ({0} + 1)"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        g * (y + T::ONE)
    }

    fn in_steps(&self, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        g.try_mul(y.try_add(1)?).map(Some)
    }
}

methods! {
    /// `e^x - 1`, with full accuracy also where `x` is near 0; within 3e-7 relative in f32. For f32
    /// and f64.
    ///
    /// Gradient: `dx = g * e^x`, computed as `g * (y + 1)` from the result `y`, which is what is
    /// kept for backward.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1e-10f32, f32::NEG_INFINITY]);
    /// assert_eq!(x.expm1().to_vec::<f32>(), [1e-10, -1.0]);
    /// ```
    pub fn expm1 / try_expm1(&self) -> Tensor {
        apply(Expm1, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "expm1",
    family: Family::Unary,
    signature: "x.expm1()",
    python: &[Binding::floats("expm1", Tensor::try_expm1)],
    formula: "e^x - 1",
    gradient: "dx = g * e^x",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_expm1()),
    mistakes: &[
        Mistake {
            name: "result for the slope",
            what: "the gradient is multiplied by e^x - 1 instead of e^x",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?)]),
        },
        Mistake {
            name: "factor forgotten",
            what: "the gradient is passed on unchanged",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
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
            |x| x.expm1(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, 1000.0, -1000.0, 1e-10],
            &[0.0, -0.0, nan, inf, -1.0, 1.7182818284590453, inf, -1.0, 1.00000000005e-10],
            &[3.0, 3.0, nan, inf, 0.0, 8.154845485377137, inf, 0.0, 3.0000000003],
        );
    }
}
