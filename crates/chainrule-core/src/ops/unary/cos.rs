//! `cos`: the cosine.

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Cos;

impl Op for Cos {
    elementwise!(cos, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.cos({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_mul(at.input(0).try_sin()?)?.try_neg()?)])
    }

    /// By way of the half angle: `sin x = 2 sin(x/2) cos(x/2)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let half = at.input(0).try_mul(0.5)?;
        (dx * -2.0).try_mul(half.try_sin()? * half.try_cos()?)
    }
}

impl MapKernel for Cos {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::cos_slice;
            F64 => F64: math::cos_slice;
        )
    }
}

methods! {
    /// The cosine of an angle in radians, within a unit in the last place; NaN at infinity. For
    /// f32 and f64. Gradient: `dx = -g * sin(x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).cos().to_vec::<f32>(), [1.0]);
    /// ```
    pub fn cos / try_cos(&self) -> Tensor {
        apply(Cos, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cos",
    family: Family::Unary,
    signature: "x.cos()",
    python: &[Binding::floats("cos", Tensor::try_cos)],
    formula: "cos x",
    gradient: "dx = -g * sin(x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_cos()),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus of -sin(x) was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "value for the slope",
            what: "cos(x) was taken for -sin(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_cos()?)?)]),
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
            |x| x.cos(),
            &[0.0, -0.0, nan, inf],
            &[1.0, 1.0, nan, nan],
            &[-0.0, 0.0, nan, nan],
        );
    }
}
