//! `log_sigmoid`: the logarithm of the logistic function.

use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct LogSigmoid;

impl Op for LogSigmoid {
    elementwise!(log_sigmoid, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.minimum({0}, 0) - np.log1p(np.exp(-np.abs({0})))".into())
    }

    fn reading(&self) -> Reading {
        Reading::LogSigmoid
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let rest = at.input(0).try_neg()?.try_sigmoid()?;
        Ok(smallvec![Some(cotangent.try_mul(rest)?)])
    }

    /// `dx / (1 + e^x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_div(at.input(0).try_exp()? + 1.0)
    }
}

/// `min(x, 0) - log(1 + e^-|x|)`: nothing overflows, and the digits stay at either end.
impl Function for LogSigmoid {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let low = if x < T::ZERO { x } else { T::ZERO };
        low - (-x.abs()).exp::<FMA>().log1p::<FMA>()
    }
}

methods! {
    /// The logarithm of the logistic function, `log(1 / (1 + e^-x))`, without overflow at either
    /// end. For f32 and f64.
    ///
    /// Gradient: `dx = g * sigmoid(-x)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([-1000.0f32, 1000.0]).log_sigmoid().to_vec::<f32>(),
    ///     [-1000.0, 0.0]
    /// );
    /// ```
    pub fn log_sigmoid / try_log_sigmoid(&self) -> Tensor {
        apply(LogSigmoid, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log_sigmoid",
    family: Family::Unary,
    signature: "x.log_sigmoid()",
    python: &[Binding::floats("logsigmoid", Tensor::try_log_sigmoid).no_function().functional()],
    formula: "log(1 / (1 + e^-x))",
    gradient: "dx = g * sigmoid(-x)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s) * 3.0, |x| x.try_log_sigmoid()),
    mistakes: &[
        Mistake {
            name: "sign inside",
            what: "sigmoid(x) was taken for sigmoid(-x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_sigmoid()?)?)]),
        },
        Mistake {
            name: "logarithm forgotten",
            what: "the slope of the sigmoid, s (1 - s), was taken, without the division by s",
            rule: |_, at, g, _| {
                let s = at.input(0).try_sigmoid()?;
                Ok(smallvec![Some(g * (&s * (1.0 - &s)))])
            },
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
            |x| x.log_sigmoid(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0, 1000.0, 40.0],
            &[
                -ln2,
                -ln2,
                nan,
                0.0,
                -inf,
                -2.1269280110429727,
                -0.1269280110429725,
                -1000.0,
                0.0,
                -4.248354255291589e-18,
            ],
            &[
                1.5,
                1.5,
                nan,
                0.0,
                3.0,
                2.6423912339336475,
                0.3576087660663526,
                3.0,
                0.0,
                1.2745062765874767e-17,
            ],
        );
    }
}
