//! `minimum`: the smaller of two tensors, element by element.

use super::maximum::share;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct Minimum;

impl Op for Minimum {
    fn name(&self) -> &'static str {
        "minimum"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    /// Where `a` is the smaller, `b` is the larger: the share of the one is that which `maximum` gives to the other.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let da = wanted.get(0).then(|| share(&b, &a, cotangent)).transpose()?;
        let db = wanted.get(1).then(|| share(&a, &b, cotangent)).transpose()?;
        Ok(smallvec![da, db])
    }

    /// By way of comparisons: each tangent weighs 1, less 1 where its operand is larger, less 1/2 at a tie.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let part = |x: &Tensor, other: &Tensor, dx: &Tensor| {
            let larger = x.try_gt(other)?.try_to_dtype(dx.dtype())?;
            let tie = x.try_eq(other)?.try_to_dtype(dx.dtype())?;
            dx.try_mul(1.0 - larger - tie * 0.5)
        };
        let by_a = tangents[0].as_ref().map(|da| part(&a, &b, da)).transpose()?;
        let by_b = tangents[1].as_ref().map(|db| part(&b, &a, db)).transpose()?;
        match (by_a, by_b) {
            (Some(a), Some(b)) => a.try_add(&b),
            (Some(d), None) | (None, Some(d)) => Ok(d),
            (None, None) => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Minimum {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        // NaN fails every comparison, so of `b` it is taken as it is, of `a` it must be asked for.
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| if a < b || a.is_nan() { a } else { b };
            F64, F64 => F64: |a, b| if a < b || a.is_nan() { a } else { b };
            I64, I64 => I64: |a, b| a.min(b);
        )
    }
}

methods! {
    /// The smaller of `a` and `b`, element by element with broadcasting; NaN if either is. For f32, f64 and i64.
    ///
    /// Gradient: `g` to the smaller operand; at a tie half of it to each, and all of it to each where either is NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 2.0]));
    /// assert_eq!(a.minimum(&b).to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    pub fn minimum / try_minimum<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Minimum, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "minimum",
    family: Family::Binary,
    signature: "a.minimum(&b)",
    formula: "min(a, b)",
    gradient: "da = g where a < b, g/2 where a = b, else 0; db the other way round",
    at_kinks: "at a tie each operand gets half the gradient; NaN in either gives NaN, and the whole gradient to both",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| normal(g, s), |a, b| a.try_minimum(b));
        let ties = vec![Tensor::from([1.0f64, 0.0]), Tensor::from([1.0f64, -0.0])];
        samples.push(Sample::new("ties", ties, |x| x[0].try_minimum(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "operands swapped",
            what: "the larger operand gets the gradient, as in maximum",
            rule: |_, at, g, _| {
                let (a, b) = (at.input(0), at.input(1));
                Ok(smallvec![Some(share(&a, &b, g)?), Some(share(&b, &a, g)?)])
            },
        },
        Mistake {
            name: "tie counted twice",
            what: "at a tie both operands get the whole gradient instead of half of it",
            rule: |_, at, g, _| {
                let (a, b) = (at.input(0), at.input(1));
                let da = a.try_le(&b)?.try_where(g, 0.0)?;
                let db = b.try_le(&a)?.try_where(g, 0.0)?;
                Ok(smallvec![Some(da), Some(db)])
            },
        },
        Mistake {
            name: "mask forgotten",
            what: "both operands get the whole gradient",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.clone())]),
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
        check_edges(
            |a, b| a.minimum(b),
            [
                &[1.0, 1.0, 2.0, nan, nan, 1.0, 0.0, -0.0, inf],
                &[1.0, 2.0, 1.0, nan, 1.0, nan, -0.0, 0.0, inf],
            ],
            &[1.0, 1.0, 1.0, nan, nan, nan, -0.0, 0.0, inf],
            [
                &[1.5, 3.0, 0.0, 3.0, 3.0, 3.0, 1.5, 1.5, 1.5],
                &[1.5, 0.0, 3.0, 3.0, 3.0, 3.0, 1.5, 1.5, 1.5],
            ],
        );
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        let a = Tensor::from([3i64, -4]).minimum(0);
        assert_eq!(a.to_vec::<i64>(), [0, -4]);
        let t = Tensor::from([true]);
        assert!(t.try_minimum(&t).is_err());
    }
}
