//! `div`: the quotient of two tensors, element by element.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Div;

impl Op for Div {
    row!(div);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} / {1}".into())
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn reading(&self) -> Reading {
        Reading::Div
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        float_inputs(self.name(), inputs)?;
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).and(Saves::OUTPUT.when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let da = cotangent.try_div(at.input(1))?;
        // -g / b * y, with y = a / b.
        let db = wanted.get(1).then(|| da.try_mul(at.output())?.try_neg()).transpose()?;
        Ok(smallvec![Some(da), db])
    }

    /// `d(a/b) = (da * b - a * db) / b^2`, the rule of the quotient.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let b = at.input(1);
        match tangents {
            [Some(da), None] => da.try_div(&b),
            [Some(da), Some(db)] => (da * &b - at.input(0) * db).try_div(&b * &b),
            [None, Some(db)] => (at.input(0) * db).try_neg()?.try_div(&b * &b),
            _ => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Div {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| a / b;
            F64, F64 => F64: |a, b| a / b;
        )
    }
}

methods! {
    /// The quotient `a / b`, element by element with broadcasting; also the operator `/`. Integers
    /// become f32.
    ///
    /// Division by zero gives an infinity or NaN. Gradient: `da = g / b`, `db = -g * a / b^2`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!((Tensor::from([1i64, 3]) / 2).to_vec::<f32>(), [0.5, 1.5]);
    /// ```
    pub fn div / try_div<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted_float(Div, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "div",
    family: Family::Binary,
    signature: "a.div(&b), &a / &b",
    python: &[
        Binding::with(
            "div",
            &[
                Parameter::operand("other"),
                Parameter::maybe_choice("rounding_mode", &["trunc", "floor"]).by_name(),
            ],
            |x, a| {
                let (x, y) = a.meet(x, 0)?;
                match a.maybe_choice(1) {
                    Some("floor") => x.try_floor_divide(&y),
                    Some(_) => match x.dtype().promote(y.dtype()) {
                        // Exact for integers, which a float quotient is not.
                        d if d.is_integer() => x.try_sub(&x.try_fmod(&y)?)?.try_floor_divide(&y),
                        dtype => x.try_div(&y)?.try_trunc()?.try_to_dtype(dtype),
                    },
                    None => x.try_div(&y),
                }
            },
        )
        .also(&["divide", "true_divide"])
        .in_place(),
        Binding::by_hand("addcdiv", "a sum with a quotient")
            .formula("x + value * tensor1 / tensor2")
            .in_place(),
    ],
    formula: "a / b",
    gradient: "da = g / b; db = -g * a / b^2",
    at_kinks: "b = 0 gives an infinity or NaN, and so do the gradients",
    samples: |g| binary_samples(g, |g, s| between(g, 0.5, 2.0, s), |a, b| a.try_div(b)),
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the gradient of the divisor lacks its minus",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = grads[1].take().map(|db| -db);
                Ok(grads)
            },
        },
        Mistake {
            name: "missing square",
            what: "the gradient of the divisor is divided by b instead of b^2",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = grads[1].take().map(|db| db * at.input(1));
                Ok(grads)
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
            |a, b| a.div(b),
            [&[1.0, -1.0, 0.0, 1.0, 6.0], &[0.0, 0.0, 0.0, inf, -2.0]],
            &[inf, -inf, nan, 0.0, -3.0],
            [&[inf, inf, inf, 0.0, -1.5], &[-inf, inf, nan, -0.0, -4.5]],
        );
    }

    #[test]
    fn integers_and_bools_become_floats() {
        let x = Tensor::from([3i64]).div(Tensor::from([2i64]));
        assert_eq!((x.dtype(), x.item()), (DType::F32, 1.5));
        let x = Tensor::from([true]).div(2);
        assert_eq!((x.dtype(), x.item()), (DType::F32, 0.5));
    }
}
