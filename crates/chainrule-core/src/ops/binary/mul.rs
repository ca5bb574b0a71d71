//! `mul`: the product of two tensors, element by element.

use crate::kernels::map::{Rows, scale_rows};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Mul;

impl Op for Mul {
    elementwise!(mul, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * {1}".into())
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn reading(&self) -> Reading {
        Reading::Mul
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).when(wanted.get(0)).and(Saves::input(0).when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let da = wanted.get(0).then(|| cotangent.try_mul(at.input(1))).transpose()?;
        let db = wanted.get(1).then(|| cotangent.try_mul(at.input(0))).transpose()?;
        Ok(smallvec![da, db])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        match tangents {
            [Some(da), Some(db)] => at.input(0).try_mul(db)?.try_add(&at.input(1).try_mul(da)?),
            [Some(da), None] => at.input(1).try_mul(da),
            [None, Some(db)] => at.input(0).try_mul(db),
            _ => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Mul {
    fn tile(&self, inputs: &[Input<'_>], n: usize, mut out: Output<'_>) {
        let is_done = match (inputs, &mut out) {
            ([Input::F32(a), Input::F32(b)], Output::F32(out)) => scaled(a, b, n, out),
            ([Input::F64(a), Input::F64(b)], Output::F64(out)) => scaled(a, b, n, out),
            _ => false,
        };
        if is_done {
            return;
        }
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| a * b;
            F64, F64 => F64: |a, b| a * b;
            I64, I64 => I64: i64::wrapping_mul;
        )
    }

    fn arithmetic(&self) -> Option<Arithmetic> {
        Some(Arithmetic::Mul)
    }
}

/// Rows of which each is scaled by a number, without copies of it.
fn scaled<T: Copy + std::ops::Mul<Output = T>>(
    a: &Rows<'_, T>,
    b: &Rows<'_, T>,
    n: usize,
    out: &mut [T],
) -> bool {
    match (a.splat, b.splat) {
        (true, false) => scale_rows(a, b, n, out),
        (false, true) => scale_rows(b, a, n, out),
        _ => return false,
    }
    true
}

methods! {
    /// The product `a * b`, element by element with broadcasting; also the operator `*`. Integers
    /// wrap around.
    ///
    /// Shapes must broadcast; different dtypes are promoted, and bools are an error. Gradient:
    /// `da = g * b`, `db = g * a`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(a.mul(3.0).to_vec::<f32>(), [3.0, 6.0]);
    /// ```
    pub fn mul / try_mul<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Mul, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "mul",
    family: Family::Binary,
    signature: "a.mul(&b), &a * &b",
    python: &[
        Binding::two("mul", |a, b| {
            or_of_bools(a, b, |a, b| a.try_mul(b), |a, b| a.try_logical_and(b))
        })
        .also(&["multiply"]),
        Binding::by_hand("addcmul", "a sum with a product")
            .formula("x + value * tensor1 * tensor2")
            .in_place(),
    ],
    formula: "a * b",
    gradient: "da = g * b; db = g * a",
    at_kinks: "",
    samples: |g| binary_samples(g, |g, s| normal(g, s), |a, b| a.try_mul(b)),
    mistakes: &[
        Mistake {
            name: "operands swapped",
            what: "each operand is given its own value as factor instead of the other's",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(g.try_mul(at.input(0))?), Some(g.try_mul(at.input(1))?)])
            },
        },
        Mistake {
            name: "factor forgotten",
            what: "the gradient is passed on without the other factor",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.clone())]),
        },
    ],
};
