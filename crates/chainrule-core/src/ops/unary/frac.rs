//! `frac`: the fractional part.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Frac;

impl Op for Frac {
    elementwise!(frac, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} - np.trunc({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.clone())])
    }

    /// The whole part stays where it is.
    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        Ok(tangents[0].clone().expect("the only tangent"))
    }
}

impl MapKernel for Frac {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| x - x.trunc();
            F64 => F64: |x| x - x.trunc();
        )
    }
}

methods! {
    /// The fraction `x - trunc(x)`, which has the sign of `x`; NaN at infinities. For f32 and f64.
    ///
    /// Gradient: `dx = g`, at whole numbers too, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -2.25]).frac().to_vec::<f32>(), [0.5, -0.25]);
    /// ```
    pub fn frac / try_frac(&self) -> Tensor {
        apply(Frac, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "frac",
    family: Family::Unary,
    signature: "x.frac()",
    python: &[Binding::any("frac", Tensor::try_frac)],
    formula: "x - trunc(x)",
    gradient: "dx = g",
    at_kinks: "the gradient is passed on at the jumps too",
    samples: |g| {
        let mut samples = unary_samples(g, super::between_steps, |x| x.try_frac());
        let x = Tensor::from([2.0f64, -1.0, 0.0]);
        samples.push(Sample::new("at whole numbers", vec![x], |x| x[0].try_frac()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "taken for a step",
            what: "the gradient is 0, as that of trunc",
            rule: |_, _, g, _| Ok(smallvec![Some(g.zeros_like())]),
        },
        Mistake {
            name: "sign",
            what: "the gradient was subtracted, as if x were the part cut off",
            rule: |_, _, g, _| Ok(smallvec![Some(g.try_neg()?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.frac(),
            &[0.0, -0.0, nan, inf, -inf, 1.5, -1.5, 2.0, -0.5],
            &[0.0, 0.0, nan, nan, nan, 0.5, -0.5, 0.0, -0.5],
            &[3.0; 9],
        );
    }

    #[test]
    fn integers_are_an_error() {
        let error = Tensor::from([1i64]).try_frac().unwrap_err().to_string();
        assert!(error.contains("frac") && error.contains("i64"), "{error}");
    }
}
