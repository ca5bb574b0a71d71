//! `acos`: the inverse cosine.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Acos;

impl Op for Acos {
    elementwise!(acos, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arccos({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let square = x.try_add(1)?.try_mul(1.0 - &x)?;
        Ok(smallvec![Some(cotangent.try_mul(&square.try_rsqrt()?)?.try_neg()?)])
    }

    /// By way of the root: `-dx / sqrt(1 - x^2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_neg()?.try_div(&(1.0 - &x * &x).try_sqrt()?)
    }
}

impl MapKernel for Acos {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::acos);
    }
}

methods! {
    /// The inverse cosine, an angle from 0 to pi; NaN beyond 1 and -1. For f32 and f64.
    ///
    /// Gradient: `dx = -g / sqrt(1 - x^2)`: minus infinity at 1 and -1, NaN beyond.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([1.0f64, -1.0]).acos();
    /// assert_eq!(y.to_vec::<f64>(), [0.0, std::f64::consts::PI]);
    /// ```
    pub fn acos / try_acos(&self) -> Tensor {
        apply(Acos, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "acos",
    family: Family::Unary,
    signature: "x.acos()",
    python: &[Binding::floats("acos", Tensor::try_acos).also(&["arccos"])],
    formula: "the angle from 0 to pi whose cosine is x",
    gradient: "dx = -g / sqrt(1 - x^2)",
    at_kinks: "at 1 and -1 the gradient is infinite, beyond it is NaN",
    samples: |g| unary_samples(g, |g, s| between(g, -0.8, 0.8, s), |x| x.try_acos()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus was forgotten: the gradient of asin",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "root forgotten",
            what: "-g / (1 - x^2) was taken for -g / sqrt(1 - x^2)",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_neg()?.try_div(1.0 - at.input(0).try_square()?)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.acos(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 1.5, -2.0, 0.5],
            &[FRAC_PI_2, FRAC_PI_2, nan, nan, nan, 0.0, PI, nan, nan, 1.0471975511965976],
            &[-3.0, -3.0, nan, nan, nan, -inf, -inf, nan, nan, -3.4641016151377553],
        );
    }
}
