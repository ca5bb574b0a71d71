//! `abs`: the absolute value.

use super::slope::{Slope, scaled};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Abs;

impl Op for Abs {
    elementwise!(abs, infer_number_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.abs({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::NotNegative
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(AbsSlope, &at.input(0), cotangent)?)])
    }

    /// By way of two comparisons: `dx` where x > 0, less `dx` where x < 0.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let above = x.try_gt(0)?.try_to_dtype(dx.dtype())?;
        let below = x.try_lt(0)?.try_to_dtype(dx.dtype())?;
        (dx * above).try_sub(dx * below)
    }
}

impl MapKernel for Abs {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: f32::abs;
            F64 => F64: f64::abs;
            I64 => I64: i64::wrapping_abs;
        )
    }
}

/// The sign of the input: 0 at 0 and at NaN.
#[derive(Debug, Clone, Copy, Parameters)]
struct AbsSlope;

impl Slope for AbsSlope {
    fn grad_name(&self) -> &'static str {
        "abs_grad"
    }

    fn numpy(&self) -> &'static str {
        "{1} * np.sign({0})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let above = if T::ZERO < x { T::ONE } else { T::ZERO };
        let below = if x < T::ZERO { T::ONE } else { T::ZERO };
        g * (above - below)
    }
}

methods! {
    /// The absolute value `|x|`. For f32, f64 and i64 (whose smallest number wraps around to
    /// itself).
    ///
    /// Gradient: `dx = g * sign(x)`. At the kink 0 it is 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -2.0]).abs().to_vec::<f32>(), [1.5, 2.0]);
    /// ```
    pub fn abs / try_abs(&self) -> Tensor {
        match self.dtype() {
            d if d.is_integer() && !d.is_signed() => Ok(self.clone()),
            _ => apply(Abs, &[self]),
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "abs",
    family: Family::Unary,
    signature: "x.abs()",
    python: &[Binding::any("abs", Tensor::try_abs).also(&["absolute"])],
    formula: "|x|",
    gradient: "dx = g * sign(x)",
    at_kinks: "the gradient at 0 is 0, and so it is at NaN",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_abs());
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_abs()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "sign forgotten",
            what: "the gradient is passed on as if every x were positive",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "value for the slope",
            what: "the gradient is multiplied by |x| instead of the sign of x",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_abs()?)?)]),
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
            |x| x.abs(),
            &[0.0, -0.0, nan, -inf, -2.0, 2.0],
            &[0.0, 0.0, nan, inf, 2.0, 2.0],
            &[0.0, 0.0, 0.0, -3.0, -3.0, 3.0],
        );
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        let x = Tensor::from([-3i64, i64::MIN]).abs();
        assert_eq!(x.to_vec::<i64>(), [3, i64::MIN]);
        let error = Tensor::from([true]).try_abs().unwrap_err().to_string();
        assert!(error.contains("abs") && error.contains("bool"), "{error}");
    }
}
