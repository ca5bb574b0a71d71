//! `lerp`: the point a given part of the way from one tensor to another, element by element.

use crate::kernels::map::ternary;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Lerp;

impl Op for Lerp {
    row!(lerp);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} + {2} * ({1} - {0})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        let ends = Saves::input(0).and(Saves::input(1)).when(wanted.get(2));
        Saves::input(2).and(ends)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let weight = at.input(2);
        let dstart = wanted.get(0).then(|| cotangent.try_mul(1.0 - &weight)).transpose()?;
        let dend = wanted.get(1).then(|| cotangent.try_mul(&weight)).transpose()?;
        let dweight = wanted
            .get(2)
            .then(|| cotangent.try_mul(at.input(1).try_sub(at.input(0))?))
            .transpose()?;
        Ok(smallvec![dstart, dend, dweight])
    }

    /// The tangent of `start + weight * (end - start)`, term by term.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (start, end, weight) = (at.input(0), at.input(1), at.input(2));
        let Meta { shape, dtype } = at.output_meta();
        let mut dy = Tensor::try_full(shape, 0.0, dtype)?;
        if let Some(ds) = &tangents[0] {
            dy = dy.try_add(ds)?.try_sub(&weight * ds)?;
        }
        if let Some(de) = &tangents[1] {
            dy = dy.try_add(weight.try_mul(de)?)?;
        }
        if let Some(dw) = &tangents[2] {
            dy = dy.try_add((end - start).try_mul(dw)?)?;
        }
        Ok(dy)
    }
}

impl MapKernel for Lerp {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        /// Computed from the nearer end, so that this end is met exactly.
        fn part<T: Real>(start: T, end: T, weight: T) -> T {
            let way = end - start;
            let (from_start, from_end) = (start + weight * way, end - way * (T::ONE - weight));
            if weight.abs() < T::from_f64(0.5) { from_start } else { from_end }
        }
        match (inputs, out) {
            ([Input::F32(a), Input::F32(b), Input::F32(w)], Output::F32(out)) => {
                ternary([a, b, w], n, out, part)
            }
            ([Input::F64(a), Input::F64(b), Input::F64(w)], Output::F64(out)) => {
                ternary([a, b, w], n, out, part)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The point `weight` of the way from this tensor to `end`: `start + weight * (end - start)`,
    /// element by element with broadcasting of all three. The weight is a scalar or a tensor, and
    /// need not lie between 0 and 1. For f32 and f64.
    ///
    /// Weights of 0 and 1 give the ends exactly, if they are finite. Gradient:
    /// `dstart = g * (1 - weight)`, `dend = g * weight`, `dweight = g * (end - start)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (start, end) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 6.0]));
    /// assert_eq!(start.lerp(&end, 0.25).to_vec::<f32>(), [1.5, 3.0]);
    /// ```
    pub fn lerp / try_lerp<T: IntoTensor>(&self, end: &Tensor, weight: T) -> Tensor {
        let weight = weight.into_tensor(self)?;
        let dtype = self.dtype().promote(end.dtype()).promote(weight.dtype());
        let [start, end, weight] = [self, end, &weight].map(|t| t.try_to_dtype(dtype));
        apply(Lerp, &[&start?, &end?, &weight?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "lerp",
    family: Family::Binary,
    signature: "start.lerp(&end, weight)",
    python: &[Binding::with(
        "lerp",
        &[Parameter::tensor("end"), Parameter::operand("weight")],
        |x, a| match a.operand(1).number() {
            Some(weight) => x.try_lerp(a.tensor(0), weight),
            None => x.try_lerp(a.tensor(0), &a.operand(1).beside(x)?),
        },
    )
    .in_place()],
    formula: "start + weight * (end - start)",
    gradient: "dstart = g * (1 - weight); dend = g * weight; dweight = g * (end - start)",
    at_kinks: "between an infinite end and a finite one it is NaN or the infinite one, by the nearer end",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| normal(g, s), |a, b| a.try_lerp(b, 0.3));
        let shapes: [(&str, [&[usize]; 3]); 4] = [
            ("a tensor of weights", [&[3, 4], &[3, 4], &[3, 4]]),
            ("all three stretched", [&[2, 1, 1], &[3, 1], &[4]]),
            ("a 0-d weight", [&[3, 4], &[4], &[]]),
            ("no rows, with weights", [&[0, 3], &[3], &[1, 3]]),
        ];
        for (note, shapes) in shapes {
            let inputs = shapes.map(|s| normal(g, s)).to_vec();
            samples.push(Sample::new(note, inputs, |x| x[0].try_lerp(&x[1], &x[2])));
        }
        samples
    },
    mistakes: &[
        Mistake {
            name: "ends swapped",
            what: "the start gets g * weight and the end g * (1 - weight)",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads.swap(0, 1);
                Ok(grads)
            },
        },
        Mistake {
            name: "start taken for passed on",
            what: "the start gets the whole gradient: its part in weight * (end - start) was forgotten",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = Some(g.clone());
                Ok(grads)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// start, end, weight, the result, and the three gradients for an upstream gradient of 3, as
    /// PyTorch gives them.
    #[test]
    #[rustfmt::skip]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let table = [
            [1.0, 3.0, 0.0, 1.0, 3.0, 0.0, 6.0],
            [1.0, 3.0, 0.5, 2.0, 1.5, 1.5, 6.0],
            [1.0, 3.0, 1.0, 3.0, 0.0, 3.0, 6.0],
            [1.0, 3.0, 2.0, 5.0, -3.0, 6.0, 6.0],
            [1.0, 3.0, -1.0, -1.0, 6.0, -3.0, 6.0],
            [inf, 1.0, 0.5, inf, 1.5, 1.5, -inf],
            [inf, inf, 0.5, nan, 1.5, 1.5, nan],
            [1.0, inf, 0.0, nan, 3.0, 0.0, inf],
            [1.0, inf, 1.0, nan, 0.0, 3.0, inf],
            [nan, 1.0, 0.5, nan, 1.5, 1.5, nan],
            [1.0, 3.0, nan, nan, nan, nan, 6.0],
            [0.1, 0.7, 1.0, 0.7, 0.0, 3.0, 1.7999999999999998],
            [-inf, inf, 0.25, nan, 2.25, 0.75, inf],
            [1e308, -1e308, 0.5, inf, 1.5, 1.5, -inf],
        ];
        for row in table {
            let [start, end, weight] = [0, 1, 2].map(|i| Tensor::from([row[i]]).parameter());
            let y = start.lerp(&end, &weight);
            y.backward_with().gradient(&Tensor::from([3.0f64])).run().unwrap();
            let grads = [&start, &end, &weight].map(|t| t.grad().unwrap());
            for (got, want) in [y.detach()].into_iter().chain(grads).zip(&row[3..]) {
                let got = got.item();
                assert!(got == *want || (got.is_nan() && want.is_nan()), "{row:?}: {got}");
            }
        }
    }

    #[test]
    fn integers_are_an_error_unless_the_weight_is_a_float() {
        let a = Tensor::from([1i64]);
        assert!(a.try_lerp(&a, 1).unwrap_err().to_string().contains("lerp"));
        assert_eq!(a.lerp(&Tensor::from([3i64]), 0.5).to_vec::<f32>(), [2.0]);
    }
}
