//! `add`: the sum of two tensors.

use crate::kernels::map;
use crate::ops::prelude::*;
use crate::tensor::log;

#[derive(Debug, Parameters)]
pub(crate) struct Add;

impl Op for Add {
    elementwise!(add, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} + {1}".into())
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn reading(&self) -> Reading {
        Reading::Add
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.clone()), Some(cotangent.clone())])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        match tangents {
            [Some(da), Some(db)] => da.try_add(db),
            [Some(d), None] | [None, Some(d)] => d.try_expand(at.output_meta().shape),
            _ => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Add {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| a + b;
            F64, F64 => F64: |a, b| a + b;
            I64, I64 => I64: i64::wrapping_add;
        )
    }

    fn arithmetic(&self) -> Option<Arithmetic> {
        Some(Arithmetic::Add)
    }
}

methods! {
    /// The sum `a + b`, with broadcasting; also the operator `+`. Integers wrap around.
    ///
    /// Shapes must broadcast; different dtypes are promoted, and bools are an error. Gradient:
    /// `da = g`, `db = g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[1.0f32], [2.0]]);
    /// let b = Tensor::from([10.0f32, 20.0]);
    /// assert_eq!(a.add(&b).to_vec::<f32>(), [11.0, 21.0, 12.0, 22.0]);
    /// ```
    pub fn add / try_add<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Add, self, other)
    }
}

/// The sum of two gradients: in place if nothing else holds the first and neither is recorded (a
/// sum in place would leave no record). A trace keeps no hold of a value that no op made, such as a
/// rule's zeros, so a sum into it would be lost to the program.
#[doc(hidden)]
pub fn add_values(mut a: Tensor, b: &Tensor) -> Result<Tensor> {
    fn in_place<T: Stored + std::ops::Add<Output = T>>(a: &mut Tensor, b: &Value) -> bool {
        match (a.exclusive::<T>(), b.slice::<T>()) {
            (Some(a), Some(b)) => {
                map::add_assign(a, b);
                true
            }
            _ => false,
        }
    }
    let value = b.try_value_ref()?;
    let done = !(a.requires_grad() || b.requires_grad() || log::is_on())
        && a.meta() == value.meta
        && match a.dtype() {
            DType::F32 => in_place::<f32>(&mut a, &value),
            DType::F64 => in_place::<f64>(&mut a, &value),
            _ => false,
        };
    if done { Ok(a) } else { a.try_add(b) }
}

pub(super) const ENTRY: Entry = Entry {
    name: "add",
    family: Family::Binary,
    signature: "a.add(&b), &a + &b",
    python: &[Binding::with(
        "add",
        &[Parameter::operand("other"), Parameter::operand("alpha").or(1).by_name()],
        |x, a| {
            let (x, y) = a.meet_scaled(x, 0, 1)?;
            or_of_bools(&x, &y, |a, b| a.try_add(b), |a, b| a.try_logical_or(b))
        },
    )
    .in_place()],
    formula: "a + b",
    gradient: "da = g; db = g",
    at_kinks: "",
    samples: |g| binary_samples(g, |g, s| normal(g, s), |a, b| a.try_add(b)),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the gradient of the second operand is negated, as for a difference",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.try_neg()?)]),
        },
        Mistake {
            name: "one operand forgotten",
            what: "only the first operand gets a gradient",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), None]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::{Tensor, autograd};

    #[test]
    fn a_sum_of_recorded_gradients_keeps_all_its_links() {
        // x reaches y by two ways: dy/dx = x + x + cos x, and its derivative is 2 - sin x.
        let x = Tensor::from([3.0f64]).parameter();
        let y = (&x * &x + x.sin()).sum_all();
        let dx = autograd::grad_with(&y, &[&x], &autograd::GradOptions::create_graph())
            .unwrap()
            .remove(0)
            .unwrap();
        let ddx = autograd::grad(&dx.sum_all(), &[&x]).unwrap().remove(0).unwrap();
        assert!((ddx.item() - (2.0 - 3f64.sin())).abs() < 1e-14);
    }

    #[test]
    fn integers_wrap_and_bools_are_an_error() {
        let a = Tensor::from([i64::MAX, 1]);
        assert_eq!(a.add(1).to_vec::<i64>(), [i64::MIN, 2]);
        let t = Tensor::from([true]);
        let error = t.try_add(&t).unwrap_err().to_string();
        assert!(error.contains("add") && error.contains("bool"), "{error}");
        let error = a.try_add(Tensor::zeros([3])).unwrap_err().to_string();
        assert!(error.contains("[2]") && error.contains("[3]"), "{error}");
    }
}
