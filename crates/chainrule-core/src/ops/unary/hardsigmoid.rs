//! `hardsigmoid`: the logistic function in three straight pieces.

use super::slope::{Slope, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Hardsigmoid;

impl Op for Hardsigmoid {
    elementwise!(hardsigmoid, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.clip(({0} + 3) / 6, 0, 1)".into())
    }

    /// By way of the result: it moves where it lies strictly between 0 and 1.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let y = at.output();
        let dx = tangents[0].as_ref().expect("the only tangent");
        y.try_gt(0)?.try_logical_and(y.try_lt(1)?)?.try_where(&dx.try_div(6.0)?, 0.0)
    }
}

impl Function for Hardsigmoid {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let (three, six) = (T::from_f64(3.0), T::from_f64(6.0));
        let y = (x + three) / six;
        let y = if y < T::ZERO { T::ZERO } else { y };
        if T::ONE < y { T::ONE } else { y }
    }
}

/// 1/6 strictly between the kinks, else 0; from the input.
impl Slope for Hardsigmoid {
    fn grad_name(&self) -> &'static str {
        "hardsigmoid_grad"
    }

    fn numpy(&self) -> &'static str {
        "np.where(np.abs({0}) < 3, {1} / 6, 0)"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        if x.abs() < T::from_f64(3.0) { g / T::from_f64(6.0) } else { T::ZERO }
    }
}

methods! {
    /// The logistic function in three straight pieces: `(x + 3) / 6` held between 0 and 1. For f32
    /// and f64; NaN stays NaN.
    ///
    /// Gradient: `dx = g / 6` where `-3 < x < 3`, else 0; at the kinks and at NaN it is 0, as in
    /// PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([-4.0f32, 0.0, 3.0]).hardsigmoid().to_vec::<f32>(),
    ///     [0.0, 0.5, 1.0]
    /// );
    /// ```
    pub fn hardsigmoid / try_hardsigmoid(&self) -> Tensor {
        apply(Hardsigmoid, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "hardsigmoid",
    family: Family::Unary,
    signature: "x.hardsigmoid()",
    python: &[Binding::floats("hardsigmoid", Tensor::try_hardsigmoid).no_function().activation()],
    formula: "min(max((x + 3) / 6, 0), 1)",
    gradient: "dx = g / 6 where -3 < x < 3, else 0",
    at_kinks: "the gradient is 0 at -3, at 3 and at NaN; NaN stays NaN",
    samples: |g| {
        let mut samples = unary_samples(g, |g, s| normal(g, s) * 3.0, |x| x.try_hardsigmoid());
        let x = Tensor::from([-3.0f64, 3.0]);
        samples.push(Sample::new("at the kinks", vec![x], |x| x[0].try_hardsigmoid()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "missing factor",
            what: "the factor 1/6 was forgotten",
            rule: |op, at, g, wanted| {
                let dx = op.vjp(at, g, wanted)?.remove(0);
                Ok(smallvec![dx.map(|dx| dx * 6.0)])
            },
        },
        Mistake {
            name: "derivative of the sigmoid",
            what: "y (1 - y) was taken for the slope",
            rule: |_, at, g, _| {
                let y = at.input(0).try_hardsigmoid()?;
                Ok(smallvec![Some(g * (&y * (1.0 - &y)))])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    /// PyTorch's own gradient in f64 is 0.5000000149: it rounds 1/6 to f32.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.hardsigmoid(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, 3.0, -3.0, 1.0],
            &[0.5, 0.5, nan, 1.0, 0.0, 1.0 / 6.0, 5.0 / 6.0, 1.0, 0.0, 2.0 / 3.0],
            &[0.5, 0.5, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.5],
        );
    }
}
