//! `asin`: the inverse sine.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Asin;

impl Op for Asin {
    elementwise!(asin, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arcsin({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let square = x.try_add(1)?.try_mul(1.0 - &x)?;
        Ok(smallvec![Some(cotangent.try_mul(&square.try_rsqrt()?)?)])
    }

    /// By way of the root: `dx / sqrt(1 - x^2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        dx.try_div(&(1.0 - &x * &x).try_sqrt()?)
    }
}

impl MapKernel for Asin {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        super::each(inputs, out, f64::asin);
    }
}

methods! {
    /// The inverse sine, an angle from -pi/2 to pi/2; NaN beyond 1 and -1. For f32 and f64.
    ///
    /// Gradient: `dx = g / sqrt(1 - x^2)`: infinite at 1 and -1, NaN beyond.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([0.0f64, 1.0]).asin();
    /// assert_eq!(y.to_vec::<f64>(), [0.0, std::f64::consts::FRAC_PI_2]);
    /// ```
    pub fn asin / try_asin(&self) -> Tensor {
        apply(Asin, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "asin",
    family: Family::Unary,
    signature: "x.asin()",
    python: &[Binding::floats("asin", Tensor::try_asin).also(&["arcsin"])],
    formula: "the angle from -pi/2 to pi/2 whose sine is x",
    gradient: "dx = g / sqrt(1 - x^2)",
    at_kinks: "at 1 and -1 the gradient is infinite, beyond it is NaN",
    samples: |g| unary_samples(g, |g, s| between(g, -0.8, 0.8, s), |x| x.try_asin()),
    mistakes: &[
        Mistake {
            name: "root forgotten",
            what: "g / (1 - x^2) was taken for g / sqrt(1 - x^2)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(1.0 - at.input(0).try_square()?)?)]),
        },
        Mistake {
            name: "slope of the inverse tangent",
            what: "1 + x^2 was taken for 1 - x^2 under the root",
            rule: |_, at, g, _| {
                let root = at.input(0).try_square()?.try_add(1)?.try_sqrt()?;
                Ok(smallvec![Some(g.try_div(&root)?)])
            },
        },
        Mistake {
            name: "derivative not inverted",
            what: "g * cos(x): the sine was differentiated instead of its inverse",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&at.input(0).try_cos()?)?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_6};

    use super::super::testing::check_edges;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.asin(),
            &[0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 1.5, -2.0, 0.5],
            &[0.0, -0.0, nan, nan, nan, FRAC_PI_2, -FRAC_PI_2, nan, nan, FRAC_PI_6],
            &[3.0, 3.0, nan, nan, nan, inf, inf, nan, nan, 3.4641016151377553],
        );
    }
}
