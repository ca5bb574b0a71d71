//! `atanh`: the inverse hyperbolic tangent.

use crate::kernels::math::inverse;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Atanh;

impl Op for Atanh {
    elementwise!(atanh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arctanh({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let square = x.try_add(1)?.try_mul(1.0 - &x)?;
        Ok(smallvec![Some(cotangent.try_div(&square)?)])
    }

    /// By way of the reciprocal: `dx * (1 / (1 - x^2))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_mul(&(1.0 - &x * &x).try_reciprocal()?)
    }
}

impl MapKernel for Atanh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, inverse::atanh);
    }
}

methods! {
    /// The inverse hyperbolic tangent `log((1 + x) / (1 - x)) / 2`; infinite at 1 and -1, NaN
    /// beyond. For f32 and f64.
    ///
    /// Gradient: `dx = g / (1 - x^2)`: infinite at 1 and -1, and the same formula also beyond, as
    /// in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f32, 1.0]).atanh();
    /// assert_eq!(y.to_vec::<f32>(), [0.0, f32::INFINITY]);
    /// ```
    pub fn atanh / try_atanh(&self) -> Tensor {
        apply(Atanh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "atanh",
    family: Family::Unary,
    signature: "x.atanh()",
    python: &[Binding::floats("atanh", Tensor::try_atanh).also(&["arctanh"])],
    formula: "ln((1 + x) / (1 - x)) / 2",
    gradient: "dx = g / (1 - x^2)",
    at_kinks: "at 1 and -1 it is infinite and so is its gradient; beyond it is NaN, its gradient still g / (1 - x^2)",
    samples: |g| unary_samples(g, |g, s| between(g, -0.8, 0.8, s), |x| x.try_atanh()),
    mistakes: &[
        Mistake {
            name: "sign in the slope",
            what: "1 + x^2 was taken for 1 - x^2, as the inverse tangent has it",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_div(&at.input(0).try_square()?.try_add(1)?)?)])
            },
        },
        Mistake {
            name: "slope of the tangent",
            what: "g * (1 - x^2): multiplied instead of divided",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(1.0 - at.input(0).try_square()?)?)]),
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
            |x| x.atanh(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 0.5, -0.5, 2.0],
            &[0.0, -0.0, nan, nan, nan, inf, -inf, 0.5493061443340549, -0.5493061443340548, nan],
            &[3.0, 3.0, nan, -0.0, -0.0, inf, inf, 4.0, 4.0, -1.0],
        );
    }
}
