//! `nan_to_num`: numbers for what is not finite.

use crate::kernels::map;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// Replacements of NaN and the infinities; `None` is the largest finite number of the dtype, with
/// the sign.
#[derive(Debug, Parameters)]
pub(crate) struct NanToNum {
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
}

impl NanToNum {
    /// The loop, for a dtype whose largest finite number is `max`.
    fn replace<T: Real>(&self, x: &[T], out: &mut [T], max: T) {
        let nan = T::from_f64(self.nan);
        let above = self.posinf.map_or(max, T::from_f64);
        let below = self.neginf.map_or(-max, T::from_f64);
        map::unary(x, out, |x| {
            let y = if max < x { above } else { x };
            let y = if x < -max { below } else { y };
            // NaN is neither; and nothing else differs from itself.
            #[expect(clippy::eq_op, reason = "the test for NaN")]
            let y = if x != x { nan } else { y };
            y
        });
    }
}

impl Op for NanToNum {
    elementwise!(nan_to_num, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})".into())
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let finite = at.input(0).try_isfinite()?.try_to_dtype(cotangent.dtype())?;
        Ok(smallvec![Some(cotangent.try_mul(&finite)?)])
    }

    /// By way of a comparison: `dx` where |x| is below infinity.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        at.input(0).try_abs()?.try_lt(f64::INFINITY)?.try_where(dx, dx.zeros_like())
    }
}

impl MapKernel for NanToNum {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: |x, out| self.replace(x, out, f32::MAX);
            F64 => F64: |x, out| self.replace(x, out, f64::MAX);
        )
    }
}

methods! {
    /// `x` with `nan` in place of NaN, `posinf` of infinity, `neginf` of minus infinity. `None`
    /// means the largest finite number of the dtype, with the sign. For f32 and f64; i64 and bool
    /// tensors come back as they are.
    ///
    /// Gradient: `dx = g` where `x` is finite, else 0.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([f32::NAN, f32::INFINITY, 1.5]);
    /// assert_eq!(x.nan_to_num(0.0, Some(9.0), None).to_vec::<f32>(), [0.0, 9.0, 1.5]);
    /// ```
    pub fn nan_to_num / try_nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor {
        if !self.dtype().is_float() {
            return Ok(self.clone());
        }
        apply(NanToNum { nan, posinf, neginf }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "nan_to_num",
    family: Family::Unary,
    signature: "x.nan_to_num(nan, posinf, neginf)",
    python: &[Binding::with(
        "nan_to_num",
        &[
            Parameter::float("nan", 0.0),
            Parameter::maybe_float("posinf"),
            Parameter::maybe_float("neginf"),
        ],
        |x, a| x.try_nan_to_num(a.float(0), a.maybe_float(1), a.maybe_float(2)),
    )
    .in_place()],
    formula: "x where it is finite, else the number given",
    gradient: "dx = g where x is finite, else 0",
    at_kinks: "where x is not finite the gradient is 0",
    samples: |g| {
        let mut samples =
            unary_samples(g, |g, s| normal(g, s), |x| x.try_nan_to_num(0.0, None, None));
        let x = Tensor::from([f64::NAN, f64::INFINITY, 1.5, f64::NEG_INFINITY]);
        let call = |x: &[Tensor]| x[0].try_nan_to_num(1.0, Some(2.0), Some(-3.0));
        samples.push(Sample::new("not finite", vec![x], call).at_kink());
        samples
    },
    mistakes: &[Mistake {
        name: "taken for a constant",
        what: "the gradient is 0 also where x is finite",
        rule: |_, _, g, _| Ok(smallvec![Some(g.zeros_like())]),
    }],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.nan_to_num(1.0, Some(5.0), Some(-7.0)),
            &[0.0, -0.0, nan, inf, -inf, 1.5, 1e30],
            &[0.0, -0.0, 1.0, 5.0, -7.0, 1.5, 1e30],
            &[3.0, 3.0, 0.0, 0.0, 0.0, 3.0, 3.0],
        );
    }

    #[test]
    fn the_largest_numbers_are_those_of_the_dtype() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Tensor::from([inf, -inf, nan]);
        let y = x.nan_to_num(0.0, None, None);
        assert_eq!(y.to_vec::<f64>(), [f64::MAX, f64::MIN, 0.0]);
        let x = x.to_dtype(crate::DType::F32);
        assert_eq!(x.nan_to_num(0.0, None, None).to_vec::<f32>(), [f32::MAX, f32::MIN, 0.0]);
        // A replacement beyond the range of f32 is infinite again.
        assert_eq!(x.nan_to_num(2.0, Some(1e300), None).to_vec::<f32>()[0], f32::INFINITY);
    }

    #[test]
    fn integers_and_bools_come_back() {
        for x in [Tensor::from([-3i64, 5]), Tensor::from([true, false])] {
            assert!(x.nan_to_num(9.0, None, None).is_same(&x));
        }
    }
}
