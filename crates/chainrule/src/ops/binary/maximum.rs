//! `maximum`: the larger of two tensors, element by element.

use crate::kernels::map::ternary;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct Maximum;

impl Op for Maximum {
    fn name(&self) -> &'static str {
        "maximum"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let da = wanted.get(0).then(|| share(&a, &b, cotangent)).transpose()?;
        let db = wanted.get(1).then(|| share(&b, &a, cotangent)).transpose()?;
        Ok(smallvec![da, db])
    }

    /// By way of comparisons: each tangent weighs 1, less 1 where its operand is smaller, less 1/2 at a tie.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let part = |x: &Tensor, other: &Tensor, dx: &Tensor| {
            let smaller = x.try_lt(other)?.try_to_dtype(dx.dtype())?;
            let tie = x.try_eq(other)?.try_to_dtype(dx.dtype())?;
            dx.try_mul(1.0 - smaller - tie * 0.5)
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

impl MapKernel for Maximum {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        // NaN fails every comparison, so of `b` it is taken as it is, of `a` it must be asked for.
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| if b < a || a.is_nan() { a } else { b };
            F64, F64 => F64: |a, b| if b < a || a.is_nan() { a } else { b };
            I64, I64 => I64: |a, b| a.max(b);
        )
    }
}

/// What the larger operand gets of `g`, for `x` beside `other`. The smaller operand, which `minimum` takes, gets it with the two exchanged.
#[track_caller]
pub(super) fn share(x: &Tensor, other: &Tensor, g: &Tensor) -> Result<Tensor> {
    apply(MaximumGrad, &[x, other, g])
}

/// From `x`, `other` and `g`: `g` where `x` is the larger (or either is NaN), half of it at a tie, else 0. One pass.
#[derive(Debug)]
struct MaximumGrad;

impl Op for MaximumGrad {
    fn name(&self) -> &'static str {
        "maximum_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0).and(Saves::input(1))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, other) = (at.input(0), at.input(1));
        let dg = wanted.get(2).then(|| share(&x, &other, cotangent)).transpose()?;
        let zeros = |t: &Tensor, i: usize| wanted.get(i).then(|| t.zeros_like());
        let zeros = (zeros(cotangent, 0), zeros(cotangent, 1));
        Ok(smallvec![zeros.0, zeros.1, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let Meta { shape, dtype } = at.output_meta();
        let Some(dg) = &tangents[2] else {
            return Tensor::try_full(shape, 0.0, dtype);
        };
        let (x, other) = (at.input(0), at.input(1));
        let smaller = x.try_lt(&other)?.try_to_dtype(dtype)?;
        let tie = x.try_eq(&other)?.try_to_dtype(dtype)?;
        dg.try_mul(1.0 - smaller - tie * 0.5)
    }
}

impl MapKernel for MaximumGrad {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        fn share<T: Real>(x: T, other: T, g: T) -> T {
            if x < other {
                T::ZERO
            } else if x == other {
                g * T::from_f64(0.5)
            } else {
                g
            }
        }
        match (inputs, out) {
            ([Input::F32(x), Input::F32(other), Input::F32(g)], Output::F32(out)) => {
                ternary([*x, *other, *g], n, out, share)
            }
            ([Input::F64(x), Input::F64(other), Input::F64(g)], Output::F64(out)) => {
                ternary([*x, *other, *g], n, out, share)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The larger of `a` and `b`, element by element with broadcasting; NaN if either is. For f32, f64 and i64.
    ///
    /// Gradient: `g` to the larger operand; at a tie half of it to each, and all of it to each where either is NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 2.0]));
    /// assert_eq!(a.maximum(&b).to_vec::<f32>(), [3.0, 5.0]);
    /// ```
    pub fn maximum / try_maximum<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Maximum, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "maximum",
    family: Family::Binary,
    signature: "a.maximum(&b)",
    formula: "max(a, b)",
    gradient: "da = g where a > b, g/2 where a = b, else 0; db the other way round",
    at_kinks: "at a tie each operand gets half the gradient; NaN in either gives NaN, and the whole gradient to both",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| normal(g, s), |a, b| a.try_maximum(b));
        let ties = vec![Tensor::from([1.0f64, 0.0]), Tensor::from([1.0f64, -0.0])];
        samples.push(Sample::new("ties", ties, |x| x[0].try_maximum(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "operands swapped",
            what: "the smaller operand gets the gradient",
            rule: |_, at, g, _| {
                let (a, b) = (at.input(0), at.input(1));
                Ok(smallvec![Some(share(&b, &a, g)?), Some(share(&a, &b, g)?)])
            },
        },
        Mistake {
            name: "tie counted twice",
            what: "at a tie both operands get the whole gradient instead of half of it",
            rule: |_, at, g, _| {
                let (a, b) = (at.input(0), at.input(1));
                let da = a.try_ge(&b)?.try_where(g, 0.0)?;
                let db = b.try_ge(&a)?.try_where(g, 0.0)?;
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
        let nan = f64::NAN;
        check_edges(
            |a, b| a.maximum(b),
            [
                &[1.0, 1.0, 2.0, nan, nan, 1.0, 0.0, -0.0],
                &[1.0, 2.0, 1.0, nan, 1.0, nan, -0.0, 0.0],
            ],
            &[1.0, 2.0, 2.0, nan, nan, nan, -0.0, 0.0],
            [&[1.5, 0.0, 3.0, 3.0, 3.0, 3.0, 1.5, 1.5], &[1.5, 3.0, 0.0, 3.0, 3.0, 3.0, 1.5, 1.5]],
        );
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        let a = Tensor::from([3i64, -4]).maximum(0);
        assert_eq!(a.to_vec::<i64>(), [3, 0]);
        let t = Tensor::from([true]);
        assert!(t.try_maximum(&t).is_err());
    }
}
