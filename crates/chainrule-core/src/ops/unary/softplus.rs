//! `softplus`: the smooth rectifier.

use super::slope::{Slope, logistic, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Softplus {
    beta: f64,
    threshold: f64,
}

impl Op for Softplus {
    elementwise!(softplus, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_softplus({0}, {beta}, {threshold})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Positive
    }

    /// `dx / (1 + e^-bx)`, and `dx` itself beyond the threshold.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let bent = at.input(0).try_mul(self.beta)?;
        let within = dx.try_div(bent.try_neg()?.try_exp()? + 1.0)?;
        bent.try_gt(self.threshold)?.try_where(dx, within)
    }
}

/// `log(1 + e^z) / beta` with `z = beta x`, as `(max(z, 0) + log(1 + e^-|z|)) / beta`, which does
/// not overflow.
impl Function for Softplus {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let z = x * T::from_f64(self.beta);
        let high = if z < T::ZERO { T::ZERO } else { z };
        let y = (high + (-z.abs()).exp::<FMA>().log1p::<FMA>()) / T::from_f64(self.beta);
        if z > T::from_f64(self.threshold) { x } else { y }
    }
}

/// `sigmoid(beta x)`, and 1 beyond the threshold; from the input.
impl Slope for Softplus {
    fn grad_name(&self) -> &'static str {
        "softplus_grad"
    }

    fn numpy(&self) -> &'static str {
        "_softplus_grad({0}, {1}, {beta}, {threshold})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let z = x * T::from_f64(self.beta);
        let (s, _) = logistic::<FMA, T>(z);
        if z > T::from_f64(self.threshold) { g } else { g * s }
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let z = x.try_mul(self.beta)?;
        z.try_gt(self.threshold)?.try_where(g, g.try_mul(z.try_sigmoid()?)?).map(Some)
    }
}

methods! {
    /// The smooth rectifier `log(1 + e^(beta x)) / beta`, and `x` itself where `beta x > threshold`
    /// (PyTorch's defaults are 1 and 20). For f32 and f64.
    ///
    /// Gradient: `dx = g * sigmoid(beta x)`, and `g` beyond the threshold. With
    /// `threshold = f64::INFINITY` the formula holds throughout; it does not overflow.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([-200.0f32, 50.0]).softplus(1.0, 20.0).to_vec::<f32>(),
    ///     [0.0, 50.0]
    /// );
    /// ```
    pub fn softplus / try_softplus(&self, beta: f64, threshold: f64) -> Tensor {
        apply(Softplus { beta, threshold }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "softplus",
    family: Family::Unary,
    signature: "x.softplus(1.0, 20.0)",
    python: &[Binding::with(
        "softplus",
        &[Parameter::float("beta", 1.0), Parameter::float("threshold", 20.0)],
        |x, a| x.try_softplus(a.float(0), a.float(1)),
    )
    .of_floats()
    .no_function()
    .functional()],
    formula: "log(1 + e^(beta x)) / beta where beta x <= threshold, else x",
    gradient: "dx = g * sigmoid(beta x) where beta x <= threshold, else g",
    at_kinks: "at the threshold the value jumps by e^-threshold / beta, and the gradient is that from below",
    samples: |g| {
        let mut samples =
            unary_samples(g, |g, s| normal(g, s) * 3.0, |x| x.try_softplus(1.0, 20.0));
        let x = Tensor::from([-2.0f64, 0.5, 1.0, 3.0]);
        let call = |x: &[Tensor]| x[0].try_softplus(2.0, 4.0);
        samples.push(Sample::new("two sides of the threshold", vec![x], call));
        samples
    },
    mistakes: &[
        Mistake {
            name: "derivative of the sigmoid",
            what: "s (1 - s) was taken for s",
            rule: |_, at, g, _| {
                let s = at.input(0).try_sigmoid()?;
                Ok(smallvec![Some(g * (&s * (1.0 - &s)))])
            },
        },
        Mistake {
            name: "exponential for the slope",
            what: "the division by 1 + e^x, which the logarithm brings, was forgotten",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_exp()?)?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let ln2 = std::f64::consts::LN_2;
        check_edges(
            |x| x.softplus(1.0, 20.0),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, 20.0, 20.5, -1000.0, 1000.0],
            &[
                ln2,
                ln2,
                nan,
                inf,
                0.0,
                0.1269280110429725,
                2.1269280110429727,
                20.000000002061153,
                20.5,
                0.0,
                1000.0,
            ],
            &[
                1.5,
                1.5,
                nan,
                3.0,
                0.0,
                0.35760876606635267,
                2.642391233933647,
                2.999999993816539,
                3.0,
                0.0,
                3.0,
            ],
        );
        check_edges(
            |x| x.softplus(2.0, 4.0),
            &[0.0, inf, -inf, -2.0, 1.9, 2.1],
            &[ln2 / 2.0, inf, 0.0, 0.009074963958904869, 1.9110621082274395, 2.1],
            &[1.5, 3.0, 0.0, 0.053958629886274666, 2.9343561871916086, 3.0],
        );
        check_edges(
            |x| x.softplus(-1.0, 20.0),
            &[0.0, nan, inf, -inf, 2.0],
            &[-ln2, nan, 0.0, -inf, -0.1269280110429725],
            &[1.5, nan, 0.0, 3.0, 0.35760876606635267],
        );
    }
}
