//! `neg`: the negative.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Neg;

impl Op for Neg {
    elementwise!(neg, infer_number_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("-{0}".into())
    }

    fn reading(&self) -> Reading {
        Reading::Neg
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_neg()?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_mul(-1)
    }
}

impl MapKernel for Neg {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| -x;
            F64 => F64: |x| -x;
            I64 => I64: i64::wrapping_neg;
        )
    }
}

methods! {
    /// The negative `-x`; also the operator `-`. Not defined for bools. Gradient: `dx = -g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!((-Tensor::from([1.0f32, -2.0])).to_vec::<f32>(), [-1.0, 2.0]);
    /// ```
    pub fn neg / try_neg(&self) -> Tensor {
        apply(Neg, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "neg",
    family: Family::Unary,
    signature: "x.neg(), -&x",
    python: &[Binding::any("neg", Tensor::try_neg).also(&["negative"])],
    formula: "-x",
    gradient: "dx = -g",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_neg()),
    mistakes: &[Mistake {
        name: "sign",
        what: "the gradient is passed on without the minus",
        rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
    }],
};
