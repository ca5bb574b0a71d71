//! `acosh`: the inverse hyperbolic cosine.

use crate::kernels::math::inverse;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Acosh;

impl Op for Acosh {
    elementwise!(acosh, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arccosh({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let square = x.try_add(1)?.try_mul(&x.try_sub(1)?)?;
        Ok(smallvec![Some(cotangent.try_mul(&square.try_rsqrt()?)?)])
    }

    /// By way of the root: `dx / sqrt(x^2 - 1)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_div(&(&x * &x - 1.0).try_sqrt()?)
    }
}

impl MapKernel for Acosh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, inverse::acosh);
    }
}

methods! {
    /// The inverse hyperbolic cosine `log(x + sqrt(x^2 - 1))`; NaN below 1. For f32 and f64.
    ///
    /// Gradient: `dx = g / sqrt(x^2 - 1)`: infinite at 1, NaN from there to -1, and below -1 the
    /// same formula, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([1.0f64, 0.5]).acosh().to_vec::<f64>();
    /// assert!(y[0] == 0.0 && y[1].is_nan());
    /// ```
    pub fn acosh / try_acosh(&self) -> Tensor {
        apply(Acosh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "acosh",
    family: Family::Unary,
    signature: "x.acosh()",
    python: &[Binding::floats("acosh", Tensor::try_acosh).also(&["arccosh"])],
    formula: "ln(x + sqrt(x^2 - 1))",
    gradient: "dx = g / sqrt(x^2 - 1)",
    at_kinks: "at 1 the gradient is infinite; between -1 and 1 it is NaN, below still g / sqrt(x^2 - 1)",
    samples: |g| unary_samples(g, |g, s| between(g, 1.5, 2.0, s), |x| x.try_acosh()),
    mistakes: &[
        Mistake {
            name: "root forgotten",
            what: "g / (x^2 - 1) was taken for g / sqrt(x^2 - 1)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_div(&at.input(0).try_square()?.try_sub(1)?)?)])
            },
        },
        Mistake {
            name: "sign under the root",
            what: "x^2 + 1 was taken for x^2 - 1",
            rule: |_, at, g, _| {
                let root = at.input(0).try_square()?.try_add(1)?.try_sqrt()?;
                Ok(smallvec![Some(g.try_div(&root)?)])
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
            |x| x.acosh(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, 2.0, 0.5, -2.0, 10000000000.0],
            &[nan, nan, nan, inf, nan, 0.0, 1.3169578969248166, nan, nan, 23.7189981105004],
            &[nan, nan, nan, 0.0, 0.0, inf, 1.7320508075688776, nan, 1.7320508075688776, 3e-10],
        );
    }
}
