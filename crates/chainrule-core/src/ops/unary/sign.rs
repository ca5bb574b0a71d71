//! `sign`: 1, 0 or -1.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sign;

impl Op for Sign {
    elementwise!(sign, infer_number_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.sign({0})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.zeros_like())])
    }

    /// The result stays where it is.
    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        Ok(tangents[0].as_ref().expect("the only tangent").zeros_like())
    }
}

impl MapKernel for Sign {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| f32::from(0.0 < x) - f32::from(x < 0.0);
            F64 => F64: |x| f64::from(0.0 < x) - f64::from(x < 0.0);
            I64 => I64: i64::signum;
        )
    }
}

methods! {
    /// The sign: 1 above 0, -1 below, 0 at 0 and, as in PyTorch, at NaN. For f32, f64 and i64; of a
    /// bool tensor it is the tensor itself.
    ///
    /// Gradient: 0 everywhere, also at 0.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([2.5f32, 0.0, -0.1]).sign().to_vec::<f32>(), [1.0, 0.0, -1.0]);
    /// ```
    pub fn sign / try_sign(&self) -> Tensor {
        if self.dtype() == DType::Bool {
            return Ok(self.clone());
        }
        if self.dtype() == DType::U64 {
            return self.try_ne(0)?.try_to_dtype(DType::U64);
        }
        apply(Sign, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sign",
    family: Family::Unary,
    signature: "x.sign()",
    python: &[Binding::any("sign", Tensor::try_sign).also(&["sgn"])],
    formula: "1 where x > 0, -1 where x < 0, else 0",
    gradient: "dx = 0",
    at_kinks: "0 at 0 and at NaN; the gradient is 0 there too",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_sign());
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_sign()).at_kink());
        samples
    },
    mistakes: &[Mistake {
        name: "passed through",
        what: "the gradient is passed on (a straight-through estimator) where it is 0",
        rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
    }],
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
            |x| x.sign(),
            &[0.0, -0.0, nan, inf, -inf, 2.5, -0.1],
            &[0.0, 0.0, 0.0, 1.0, -1.0, 1.0, -1.0],
            &[0.0; 7],
        );
    }

    #[test]
    fn a_gradient_that_is_not_finite_gives_0_too() {
        let x = Tensor::from([1.5f32, 0.0]).parameter();
        let g = Tensor::from([f32::NAN, f32::INFINITY]);
        x.sign().backward_with().gradient(&g).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.0]);
    }

    #[test]
    fn integers_and_bools_keep_their_dtype() {
        let x = Tensor::from([-3i64, 0, i64::MIN, 5]).sign();
        assert_eq!(x.to_vec::<i64>(), [-1, 0, -1, 1]);
        assert_eq!(Tensor::from([true, false]).sign().to_vec::<bool>(), [true, false]);
    }
}
