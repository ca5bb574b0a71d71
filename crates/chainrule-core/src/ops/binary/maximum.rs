//! `maximum`: the larger of two tensors, element by element.

use crate::kernels::map::ternary;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// The larger or the smaller of two.
#[derive(Debug, Parameters)]
pub(super) struct Extremum {
    pub least: bool,
}

impl Op for Extremum {
    fn name(&self) -> &'static str {
        if self.least { "minimum" } else { "maximum" }
    }

    fn id(&self) -> Option<OpId> {
        Some(if self.least { OpId::minimum } else { OpId::maximum })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.least {
            "np.minimum({0}, {1})"
        } else {
            "np.maximum({0}, {1})"
        }))
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_binary(self.name(), inputs)
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let da = wanted.get(0).then(|| self.share(&a, &b, cotangent)).transpose()?;
        let db = wanted.get(1).then(|| self.share(&b, &a, cotangent)).transpose()?;
        Ok(smallvec![da, db])
    }

    /// By way of comparisons: each tangent weighs 1, less 1 where the other operand is taken, less
    /// 1/2 at a tie.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let part = |x: &Tensor, other: &Tensor, dx: &Tensor| {
            let loses = if self.least { x.try_gt(other)? } else { x.try_lt(other)? };
            let tie = x.try_eq(other)?.try_to_dtype(dx.dtype())?;
            dx.try_mul(1.0 - loses.try_to_dtype(dx.dtype())? - tie * 0.5)
        };
        let by_a = tangents[0].as_ref().map(|da| part(&a, &b, da));
        sum_of_parts([by_a, tangents[1].as_ref().map(|db| part(&b, &a, db))])
    }
}

impl MapKernel for Extremum {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        // NaN fails every comparison: one in `b` is taken as it is, one in `a` must be tested for.
        match self.least {
            false => tile!(inputs, n, out;
                F32, F32 => F32: |a, b| if b < a || a.is_nan() { a } else { b };
                F64, F64 => F64: |a, b| if b < a || a.is_nan() { a } else { b };
                I64, I64 => I64: |a, b| a.max(b);
            ),
            true => tile!(inputs, n, out;
                F32, F32 => F32: |a, b| if a < b || a.is_nan() { a } else { b };
                F64, F64 => F64: |a, b| if a < b || a.is_nan() { a } else { b };
                I64, I64 => I64: |a, b| a.min(b);
            ),
        }
    }
}

impl Extremum {
    /// The share of `g` that operand `x` gets beside `other`. For the minimum the two are
    /// exchanged.
    #[track_caller]
    fn share(&self, x: &Tensor, other: &Tensor, g: &Tensor) -> Result<Tensor> {
        match self.least {
            true => share(other, x, g),
            false => share(x, other, g),
        }
    }
}

/// The share of `g` that goes to the larger operand, for `x` beside `other`.
#[track_caller]
fn share(x: &Tensor, other: &Tensor, g: &Tensor) -> Result<Tensor> {
    apply(MaximumGrad, &[x, other, g])
}

/// From `x`, `other` and `g`: `g` where `x` is the larger (or either is NaN), half of it at a tie,
/// else 0. One pass.
#[derive(Debug, Parameters)]
struct MaximumGrad;

impl Op for MaximumGrad {
    fn name(&self) -> &'static str {
        "maximum_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_maximum_grad({0}, {1}, {2})".into())
    }

    /// The slope, and the product with the gradient.
    fn flops(&self, _: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]))
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
                ternary([x, other, g], n, out, share)
            }
            ([Input::F64(x), Input::F64(other), Input::F64(g)], Output::F64(out)) => {
                ternary([x, other, g], n, out, share)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The larger of `a` and `b`, element by element with broadcasting; NaN if either is. For f32,
    /// f64 and i64.
    ///
    /// Gradient: `g` to the larger operand; at a tie half of it to each, and all of it to each
    /// where either is NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 2.0]));
    /// assert_eq!(a.maximum(&b).to_vec::<f32>(), [3.0, 5.0]);
    /// ```
    pub fn maximum / try_maximum<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Extremum { least: false }, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "maximum",
    family: Family::Binary,
    signature: "a.maximum(&b)",
    python: &[Binding::two("maximum", |a, b| {
        or_of_bools(a, b, |a, b| a.try_maximum(b), |a, b| a.try_logical_or(b))
    })
    .out_of_place()],
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
            rule: swapped,
        },
        TIE_TWICE,
        NO_MASK,
    ],
};

/// The mistake of giving a minimum's gradient to the larger operand, or a maximum's to the smaller.
pub(super) fn swapped(op: &dyn Op, at: &Saved<'_>, g: &Tensor, _: Wanted) -> Result<Grads> {
    let (a, b, op) = (at.input(0), at.input(1), of(op)?);
    Ok(smallvec![Some(op.share(&b, &a, g)?), Some(op.share(&a, &b, g)?)])
}

pub(super) const TIE_TWICE: Mistake = Mistake {
    name: "tie counted twice",
    what: "at a tie both operands get the whole gradient instead of half of it",
    rule: |op, at, g, _| {
        let (mut a, mut b) = (at.input(0), at.input(1));
        if of(op)?.least {
            (a, b) = (-a, -b);
        }
        let da = a.try_ge(&b)?.try_where(g, 0.0)?;
        let db = b.try_ge(&a)?.try_where(g, 0.0)?;
        Ok(smallvec![Some(da), Some(db)])
    },
};

pub(super) const NO_MASK: Mistake = Mistake {
    name: "mask forgotten",
    what: "both operands get the whole gradient",
    rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), Some(g.clone())]),
};

fn of(op: &dyn Op) -> Result<&Extremum> {
    op.downcast()
}

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
