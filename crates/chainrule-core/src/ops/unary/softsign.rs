//! `softsign`: x divided by 1 plus its magnitude.

use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Softsign;

impl Op for Softsign {
    elementwise!(softsign, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} / (1 + np.abs({0}))".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let size = at.input(0).try_abs()? + 1.0;
        Ok(smallvec![Some(cotangent.try_div(size.try_square()?)?)])
    }

    /// By way of the result: `1 / (1 + |x|)` is `1 - |y|`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let rest = 1.0 - at.output().try_abs()?;
        tangents[0].as_ref().expect("the only tangent").try_mul(rest.try_square()?)
    }
}

impl MapKernel for Softsign {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        fn softsign<T: Real>(x: T) -> T {
            x / (T::ONE + x.abs())
        }
        tile!(inputs, out;
            F32 => F32: softsign;
            F64 => F64: softsign;
        )
    }
}

methods! {
    /// `x / (1 + |x|)`, between -1 and 1. For f32 and f64.
    ///
    /// Gradient: `dx = g / (1 + |x|)^2`. At the infinities the value is NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, -3.0]).softsign().to_vec::<f32>(), [0.5, -0.75]);
    /// ```
    pub fn softsign / try_softsign(&self) -> Tensor {
        apply(Softsign, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "softsign",
    family: Family::Unary,
    signature: "x.softsign()",
    python: &[Binding::floats("softsign", Tensor::try_softsign).no_function().functional()],
    formula: "x / (1 + |x|)",
    gradient: "dx = g / (1 + |x|)^2",
    at_kinks: "smooth at 0, but the second derivative jumps there; NaN at the infinities",
    samples: |g| unary_samples(g, super::away_from_zero, |x| x.try_softsign()),
    mistakes: &[
        Mistake {
            name: "square forgotten",
            what: "g / (1 + |x|) was taken for g / (1 + |x|)^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.input(0).try_abs()? + 1.0)?)]),
        },
        Mistake {
            name: "size forgotten",
            what: "x was taken for |x|: right only where x is positive",
            rule: |_, at, g, _| Ok(smallvec![Some(g / (at.input(0) + 1.0).try_square()?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        check_edges(
            |x| x.softsign(),
            &[0.0, -0.0, f64::NAN, -2.0, 2.0],
            &[0.0, -0.0, f64::NAN, -2.0 / 3.0, 2.0 / 3.0],
            &[3.0, 3.0, f64::NAN, 1.0 / 3.0, 1.0 / 3.0],
        );
    }

    #[test]
    fn infinities_give_nan_as_in_pytorch() {
        let x = crate::Tensor::from([f32::INFINITY, f32::NEG_INFINITY]);
        assert!(x.softsign().to_vec::<f32>().iter().all(|y| y.is_nan()));
    }
}
