//! `clamp_tensors`: elements limited to a range between those of two other tensors. The method is
//! [`Tensor::clamp`], as with scalar bounds.

use crate::kernels::map::ternary;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
struct ClampTensors;

/// `min(max(x, min), max)` with a gradient for all three.
#[track_caller]
pub(in crate::ops) fn clamp_tensors(x: &Tensor, min: &Tensor, max: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype().promote(min.dtype()).promote(max.dtype());
    let [x, min, max] = [x, min, max].map(|t| t.try_to_dtype(dtype));
    apply(ClampTensors, &[&x?, &min?, &max?])
}

impl Op for ClampTensors {
    elementwise!(clamp_tensors, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.minimum(np.maximum({0}, {1}), {2})".into())
    }

    fn orders(&self) -> bool {
        true
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (x, min, max) = (at.input(0), at.input(1), at.input(2));
        let zero = cotangent.like(0.0);
        let half = cotangent.try_mul(0.5)?;
        // The upper bound applies to elements above it, and to all elements where the bounds are
        // crossed.
        let by_max = x.try_gt(&max)?.try_logical_or(min.try_gt(&max)?)?;
        let by_min = x.try_lt(&min)?.try_logical_and(min.try_le(&max)?)?;
        // Equal bounds are no tie: all of the gradient stays with `x`.
        let apart = min.try_lt(&max)?;
        let tie = |bound: &Tensor| x.try_eq(bound)?.try_logical_and(&apart);
        let (at_min, at_max) = (tie(&min)?, tie(&max)?);
        let dmin = by_min.try_where(cotangent, at_min.try_where(&half, &zero)?)?;
        let dmax = by_max.try_where(cotangent, at_max.try_where(&half, &zero)?)?;
        let free = at_min.try_logical_or(at_max)?.try_where(&half, cotangent)?;
        let dx = by_min.try_logical_or(by_max)?.try_where(&zero, free)?;
        Ok(smallvec![Some(dx), Some(dmin), Some(dmax)])
    }

    /// By weights: those of the bounds come from comparisons, and that of `x` is the rest of 1.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, min, max) = (at.input(0), at.input(1), at.input(2));
        let Meta { shape, dtype } = at.output_meta();
        let one_if = |t: Result<Tensor>| t?.try_to_dtype(dtype);
        let (apart, crossed) = (one_if(min.try_lt(&max))?, one_if(min.try_gt(&max))?);
        let at_min = one_if(x.try_eq(&min))? * &apart * 0.5;
        let at_max = one_if(x.try_eq(&max))? * &apart * 0.5;
        let low = one_if(x.try_lt(&min))? * (1.0 - &crossed) + at_min;
        let high = one_if(x.try_gt(&max))?.try_maximum(crossed)? + at_max;
        let weights = [1.0 - &low - &high, low, high];
        let mut dy = Tensor::try_full(shape, 0.0, dtype)?;
        for (weight, tangent) in weights.iter().zip(tangents) {
            if let Some(tangent) = tangent {
                dy = dy.try_add(tangent * weight)?;
            }
        }
        Ok(dy)
    }
}

impl MapKernel for ClampTensors {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        /// NaN fails every comparison: one in `x` stays anyway, one in a bound must be tested for.
        macro_rules! hold {
            ($x:expr, $min:expr, $max:expr, $out:expr) => {
                ternary([$x, $min, $max], n, $out, |x, min, max| {
                    let y = if x < min || min.is_nan() { min } else { x };
                    let y = if max < y || max.is_nan() { max } else { y };
                    if x.is_nan() { x } else { y }
                })
            };
        }
        match (inputs, out) {
            ([Input::F32(x), Input::F32(min), Input::F32(max)], Output::F32(out)) => {
                hold!(x, min, max, out)
            }
            ([Input::F64(x), Input::F64(min), Input::F64(max)], Output::F64(out)) => {
                hold!(x, min, max, out)
            }
            ([Input::I64(x), Input::I64(min), Input::I64(max)], Output::I64(out)) => {
                ternary([x, min, max], n, out, |x, min, max| x.max(min).min(max))
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "clamp_tensors",
    family: Family::Binary,
    signature: "x.clamp(&min, &max)",
    python: &[Binding::by_hand("clamp", "the bounds say which of both ops it is")
        .no_method()
        .no_function()],
    formula: "min(max(x, min), max)",
    gradient: "g to the one of x, min and max that is the result",
    at_kinks: "where x is equal to one bound, each gets half; where it is equal to both, or any is NaN, all goes to x; where the bounds are crossed, to max",
    samples: |g| {
        let mut samples =
            binary_samples(g, |g, s| normal(g, s), |a, b| a.try_clamp(b, &b.try_add(0.7)?));
        let three = vec![normal(g, [3, 4]), normal(g, [4]), normal(g, [3, 1])];
        let call = |x: &[Tensor]| x[0].try_clamp(&x[1], &x[2]);
        samples.push(Sample::new("all three stretched, bounds crossed", three, call));
        let ties = vec![Tensor::from([1.0f64, 2.0]), Tensor::from([1.0f64, 0.0])];
        let call = |x: &[Tensor]| x[0].try_clamp(&x[1], &Tensor::scalar(2.0));
        samples.push(Sample::new("ties", ties, call).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "bounds taken for constants",
            what: "the bounds get no gradient where they hold the element",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                (grads[1], grads[2]) = (None, None);
                Ok(grads)
            },
        },
        Mistake {
            name: "mask forgotten",
            what: "x gets the whole gradient also where a bound holds it",
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

    /// x, min, max, the result, and dx, dmin, dmax for an upstream gradient of 4, as PyTorch's
    /// `clamp` gives them.
    #[test]
    #[rustfmt::skip]
    fn edges_are_those_of_pytorch() {
        let nan = f64::NAN;
        let table = [
            [0.5, 0.0, 1.0, 0.5, 4.0, 0.0, 0.0],
            [0.0, 1.0, 1.0, 1.0, 0.0, 4.0, 0.0],
            [0.0, 1.0, 2.0, 1.0, 0.0, 4.0, 0.0],
            [0.0, 2.0, 1.0, 1.0, 0.0, 0.0, 4.0],
            [1.0, 1.0, 1.0, 1.0, 4.0, 0.0, 0.0],
            [1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 0.0],
            [1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 4.0],
            [2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 4.0],
            [2.0, 1.0, 2.0, 2.0, 2.0, 0.0, 2.0],
            [2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 4.0],
            [3.0, 1.0, 2.0, 2.0, 0.0, 0.0, 4.0],
            [1.5, 2.0, 1.0, 1.0, 0.0, 0.0, 4.0],
            [nan, 0.0, 1.0, nan, 4.0, 0.0, 0.0],
            [0.5, nan, 1.0, nan, 4.0, 0.0, 0.0],
            [0.5, 0.0, nan, nan, 4.0, 0.0, 0.0],
        ];
        for row in table {
            let [x, min, max] = [0, 1, 2].map(|i| Tensor::from([row[i]]).parameter());
            let y = x.clamp(&min, &max);
            y.backward_with().gradient(&Tensor::from([4.0f64])).run().unwrap();
            let got = [y.detach()].into_iter().chain([&x, &min, &max].map(|t| t.grad().unwrap()));
            for (got, want) in got.zip(&row[3..]) {
                let got = got.item();
                assert!(got == *want || (got.is_nan() && want.is_nan()), "{row:?}: {got}");
            }
        }
    }

    #[test]
    fn dtypes_are_promoted() {
        let x = Tensor::from([-2i64, 3]);
        assert_eq!(
            x.clamp(&Tensor::from([0i64]), &Tensor::from([1i64, 2])).to_vec::<i64>(),
            [0, 2]
        );
        let low = Tensor::scalar(0.5f32);
        assert_eq!(x.clamp(&low, &low).to_vec::<f32>(), [0.5, 0.5]);
        assert_eq!(x.clamp_min(&low).to_vec::<f32>(), [0.5, 3.0]);
        let t = Tensor::from([true]);
        assert!(t.try_clamp(&t, &t).is_err());
    }
}
