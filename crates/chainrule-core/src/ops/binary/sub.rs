//! `sub`: the difference of two tensors.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sub;

impl Op for Sub {
    elementwise!(sub, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} - {1}".into())
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn reading(&self) -> Reading {
        Reading::Sub
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let db = wanted.get(1).then(|| cotangent.try_neg()).transpose()?;
        Ok(smallvec![Some(cotangent.clone()), db])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        match tangents {
            [Some(da), Some(db)] => da.try_sub(db),
            [Some(da), None] => da.try_expand(at.output_meta().shape),
            [None, Some(db)] => db.try_mul(-1)?.try_expand(at.output_meta().shape),
            _ => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Sub {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| a - b;
            F64, F64 => F64: |a, b| a - b;
            I64, I64 => I64: i64::wrapping_sub;
        )
    }

    fn arithmetic(&self) -> Option<Arithmetic> {
        Some(Arithmetic::Sub)
    }
}

methods! {
    /// The difference `a - b`, with broadcasting; also the operator `-`. Integers wrap around.
    ///
    /// Shapes must broadcast; different dtypes are promoted, and bools are an error. Gradient:
    /// `da = g`, `db = -g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!((1.0 - Tensor::from([0.25f32])).to_vec::<f32>(), [0.75]);
    /// ```
    pub fn sub / try_sub<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Sub, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sub",
    family: Family::Binary,
    signature: "a.sub(&b), &a - &b",
    python: &[Binding::with(
        "sub",
        &[Parameter::operand("other"), Parameter::operand("alpha").or(1).by_name()],
        |x, a| {
            let (x, y) = a.meet_scaled(x, 0, 1)?;
            x.try_sub(&y)
        },
    )
    .also(&["subtract"])
    .in_place()],
    formula: "a - b",
    gradient: "da = g; db = -g",
    at_kinks: "",
    samples: |g| binary_samples(g, |g, s| normal(g, s), |a, b| a.try_sub(b)),
    mistakes: &[Mistake {
        name: "sign",
        what: "the second operand gets the gradient without the minus",
        rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.clone())]),
    }],
};
