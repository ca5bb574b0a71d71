//! `logaddexp`: the logarithm of a sum of two exponentials, element by element.

use crate::kernels::map::{self, Function2};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Logaddexp;

impl Op for Logaddexp {
    row!(logaddexp);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.logaddexp({0}, {1})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    /// The softmax of the two, which is the logistic function of their difference.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let share =
            |x: &Tensor, other: &Tensor| cotangent.try_mul(x.try_sub(other)?.try_sigmoid()?);
        let da = wanted.get(0).then(|| share(&a, &b)).transpose()?;
        let db = wanted.get(1).then(|| share(&b, &a)).transpose()?;
        Ok(smallvec![da, db])
    }

    /// `da / (1 + e^(b - a)) + db / (1 + e^(a - b))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let part = |x: &Tensor, other: &Tensor, dx: &Tensor| {
            dx.try_div(other.try_sub(x)?.try_exp()? + 1.0)
        };
        let by_a = tangents[0].as_ref().map(|da| part(&a, &b, da));
        sum_of_parts([by_a, tangents[1].as_ref().map(|db| part(&b, &a, db))])
    }
}

/// `max + log(1 + e^-|a - b|)`. Two equal infinities have no difference: there the larger is the
/// result.
impl Function2 for Logaddexp {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, a: T, b: T) -> T {
        let larger = if a < b { b } else { a };
        let rest = (-(a - b).abs()).exp::<FMA>().log1p::<FMA>();
        let equal = a == b && a.abs() == T::INFINITY;
        if equal { a } else { larger + rest }
    }
}

impl MapKernel for Logaddexp {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(a), Input::F32(b)], Output::F32(out)) => {
                map::function2(a, b, n, out, *self)
            }
            ([Input::F64(a), Input::F64(b)], Output::F64(out)) => {
                map::function2(a, b, n, out, *self)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// `log(e^a + e^b)` without overflow, element by element with broadcasting: the sum of
    /// probabilities given by their logarithms. For f32 and f64.
    ///
    /// Minus infinity is the logarithm of 0: beside it the other operand is the result. Gradient:
    /// `da = g * sigmoid(a - b)`, `db = g * sigmoid(b - a)`; where both are the same infinity the
    /// gradients are NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([1000.0f32, f32::NEG_INFINITY]);
    /// assert_eq!(a.logaddexp(&a).to_vec::<f32>(), [1000.6932, f32::NEG_INFINITY]);
    /// ```
    pub fn logaddexp / try_logaddexp<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Logaddexp, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logaddexp",
    family: Family::Binary,
    signature: "a.logaddexp(&b)",
    python: &[Binding::two("logaddexp", |a, b| a.try_logaddexp(b)).out_of_place()],
    formula: "log(e^a + e^b)",
    gradient: "da = g * sigmoid(a - b); db = g * sigmoid(b - a)",
    at_kinks: "where both are the same infinity, that is the result, and the gradients are NaN",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| normal(g, s), |a, b| a.try_logaddexp(b));
        let far = vec![Tensor::from([700.0f64, -800.0]), Tensor::from([701.0f64, -799.5])];
        samples.push(Sample::new("far from 0", far, |x| x[0].try_logaddexp(&x[1])));
        samples
    },
    mistakes: &[
        Mistake {
            name: "operands swapped",
            what: "the smaller operand gets the larger share",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads.swap(0, 1);
                Ok(grads)
            },
        },
        Mistake {
            name: "division forgotten",
            what: "the gradients are g * e^a and g * e^b, not divided by their sum",
            rule: |_, at, g, _| {
                let part = |i: usize| g.try_mul(at.input(i).try_exp()?);
                Ok(smallvec![Some(part(0)?), Some(part(1)?)])
            },
        },
        Mistake {
            name: "maximum for the sum",
            what: "all of the gradient goes to the larger operand",
            rule: |_, at, g, _| {
                let above = at.input(0).try_gt(at.input(1))?;
                let zero = g.like(0.0);
                Ok(smallvec![Some(above.try_where(g, &zero)?), Some(above.try_where(&zero, g)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let ln2 = std::f64::consts::LN_2;
        check_edges(
            |a, b| a.logaddexp(b),
            [
                &[0.0, -inf, inf, inf, -inf, -inf, 1.0, inf, 1.0, nan, 1.0, nan, inf, 1000.0],
                &[0.0, -inf, inf, -inf, inf, 1.0, -inf, 1.0, inf, 1.0, nan, inf, nan, 0.0],
            ],
            &[ln2, -inf, inf, inf, inf, 1.0, 1.0, inf, inf, nan, nan, nan, nan, 1000.0],
            [
                &[1.5, nan, nan, 3.0, 0.0, 0.0, 3.0, 3.0, 0.0, nan, nan, nan, nan, 3.0],
                &[1.5, nan, nan, 0.0, 3.0, 3.0, 0.0, 0.0, 3.0, nan, nan, nan, nan, 0.0],
            ],
        );
        let tail = Tensor::from([0.0f64]).logaddexp(-40.0).item();
        assert!((tail / 4.248354255291589e-18 - 1.0).abs() < 1e-14, "{tail}");
    }

    #[test]
    fn integers_are_an_error() {
        let a = Tensor::from([1i64]);
        assert!(a.try_logaddexp(&a).unwrap_err().to_string().contains("logaddexp"));
    }
}
