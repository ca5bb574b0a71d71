//! `sin`: the sine.

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sin;

impl Op for Sin {
    elementwise!(sin, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.sin({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_mul(at.input(0).try_cos()?)?)])
    }

    /// By way of the half angle: `cos x = 1 - 2 sin(x/2)^2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let half = at.input(0).try_mul(0.5)?.try_sin()?;
        dx.try_mul(1.0 - half.try_square()? * 2.0)
    }
}

impl MapKernel for Sin {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::sin_slice;
            F64 => F64: math::sin_slice;
        )
    }
}

methods! {
    /// The sine of an angle in radians, within a unit in the last place; NaN at infinity. For
    /// f32 and f64. Gradient: `dx = g * cos(x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).sin().to_vec::<f32>(), [0.0]);
    /// ```
    pub fn sin / try_sin(&self) -> Tensor {
        apply(Sin, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sin",
    family: Family::Unary,
    signature: "x.sin()",
    python: &[Binding::floats("sin", Tensor::try_sin)],
    formula: "sin x",
    gradient: "dx = g * cos(x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_sin()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the gradient is -g cos(x), as if the cosine came first",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "value for the slope",
            what: "sin(x) was taken for cos(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_sin()?)?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.sin(),
            &[0.0, -0.0, nan, inf],
            &[0.0, -0.0, nan, nan],
            &[3.0, 3.0, nan, nan],
        );
    }
}
