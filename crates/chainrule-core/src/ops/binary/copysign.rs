//! `copysign`: the size of one tensor with the sign of another, element by element.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Copysign;

impl Op for Copysign {
    row!(copysign);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.copysign({0}, {1})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(0).and(Saves::OUTPUT).when(wanted.get(0))
    }

    /// `y / a` is 1 or -1, and constant wherever it has a derivative.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let da = wanted.get(0).then(|| {
            let a = at.input(0).detach();
            let turned = at.output().detach().try_div(&a)?;
            cotangent.try_mul(a.try_eq(0)?.try_where(&a.like(0.0), turned)?)
        });
        Ok(smallvec![da.transpose()?, wanted.get(1).then(|| cotangent.zeros_like())])
    }

    /// The tangent as it is where `a` kept its sign, negated where it did not; `a / a` excludes
    /// elements that are not finite.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, y) = (at.input(0).detach(), at.output().detach());
        let Some(da) = &tangents[0] else { return Ok(y.zeros_like()) };
        let turned = y.try_eq(&a)?.try_where(da, da.try_neg()?)?.try_mul(a.try_div(&a)?)?;
        a.try_eq(0)?.try_where(&da.like(0.0), turned)
    }
}

impl MapKernel for Copysign {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: f32::copysign;
            F64, F64 => F64: f64::copysign;
        )
    }
}

methods! {
    /// The size of `a` with the sign of `b`, element by element with broadcasting; a zero and NaN
    /// have a sign too. Integers become f32.
    ///
    /// Gradient: `da = g` where the sign stayed, `-g` where it turned, 0 where `a = 0`, NaN where
    /// `a` is not finite; `db = 0`; as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([1.0f32, -2.0, 3.0]);
    /// assert_eq!(
    ///     a.copysign(Tensor::from([-1.0f32, 1.0, -0.0])).to_vec::<f32>(),
    ///     [-1.0, 2.0, -3.0]
    /// );
    /// ```
    pub fn copysign / try_copysign<T: IntoTensor>(&self, sign: T) -> Tensor {
        apply_promoted_float(Copysign, self, sign)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "copysign",
    family: Family::Binary,
    signature: "a.copysign(&b)",
    python: &[Binding::two("copysign", |a, b| a.try_copysign(b))],
    formula: "|a| * sign(b)",
    gradient: "da = g where the sign stayed, -g where it turned; db = 0",
    at_kinks: "da = 0 where a = 0, and NaN where a is not finite; the sign of a zero in b counts",
    samples: |g| {
        let draw = super::super::unary::away_from_zero;
        let mut samples = binary_samples(g, draw, |a, b| a.try_copysign(b));
        let zeros = vec![Tensor::from([0.0f64, -0.0]), Tensor::from([-1.0f64, 1.0])];
        samples.push(Sample::new("a = 0", zeros, |x| x[0].try_copysign(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the gradient is passed on as it is, also where the sign turned",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.zeros_like())]),
        },
        Mistake {
            name: "sign of the wrong operand",
            what: "the gradient is turned where b is negative, whatever the sign of a was",
            rule: |_, at, g, _| {
                let turned = at.output().try_lt(0)?.try_where(&-g, g)?;
                Ok(smallvec![Some(turned), Some(g.zeros_like())])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::{DType, Tensor};

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |a, b| a.copysign(b),
            [
                &[1.0, -1.0, 0.0, -0.0, 1.0, 1.0, inf, nan, 1.0, 1.0, 2.0],
                &[-1.0, -1.0, -1.0, 1.0, 0.0, -0.0, -1.0, -1.0, nan, -nan, -inf],
            ],
            &[-1.0, -1.0, -0.0, 0.0, 1.0, -1.0, -inf, nan, 1.0, -1.0, -2.0],
            [&[-3.0, 3.0, 0.0, 0.0, 3.0, -3.0, nan, nan, 3.0, -3.0, -3.0], &[0.0; 11]],
        );
        let signs = Tensor::from([0.0f32, 1.0]).copysign(-1.0).to_vec::<f32>();
        assert!(signs[0] == 0.0 && signs[0].is_sign_negative() && signs[1] == -1.0);
    }

    #[test]
    fn integers_become_floats() {
        let x = Tensor::from([3i64, -3]).copysign(-1);
        assert_eq!((x.dtype(), x.to_f64_vec()), (DType::F32, vec![-3.0, -3.0]));
    }
}
