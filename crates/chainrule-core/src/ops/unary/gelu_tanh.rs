//! `gelu_tanh`: the Gaussian error linear unit by way of tanh, as in GPT.

use super::slope::{Slope, logistic, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// sqrt(2 / pi), and the weight of the cube beside `x`.
const SCALE: f64 = 0.797_884_560_802_865_4;
const CUBE: f64 = 0.044715;

/// Computed as `x sigmoid(2 u)`, since `(1 + tanh u) / 2` is that: the same, and no digits cancel
/// where x is negative.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct GeluTanh;

impl Op for GeluTanh {
    elementwise!(gelu_tanh, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * (1 + np.tanh(_gelu_tanh_inner({0}))) / 2".into())
    }

    /// By way of the result: `s + y sigmoid(-2 u) 2 u'`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let (u, du) = inner(&x)?;
        let rest = u.try_mul(-2.0)?.try_sigmoid()?;
        let slope = u.try_mul(2.0)?.try_sigmoid()? + at.output() * rest * du * 2.0;
        tangents[0].as_ref().expect("the only tangent").try_mul(slope)
    }
}

/// `u = sqrt(2 / pi) (x + 0.044715 x^3)` and its derivative.
fn inner(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let square = x.try_square()?;
    let u = x.try_mul((&square * CUBE + 1.0) * SCALE)?;
    Ok((u, square * (3.0 * CUBE * SCALE) + SCALE))
}

impl Function for GeluTanh {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let cube = T::from_f64(2.0 * SCALE * CUBE);
        let twice = x * (x * x).mul_add::<FMA>(cube, T::from_f64(2.0 * SCALE));
        x * twice.sigmoid::<FMA>()
    }
}

/// `s + x s (1 - s) 2 u'`, from the input, with `s = sigmoid(2 u)`.
impl Slope for GeluTanh {
    fn grad_name(&self) -> &'static str {
        "gelu_tanh_grad"
    }

    fn numpy(&self) -> &'static str {
        "_gelu_tanh_grad({0}, {1})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let (one, cube) = (T::from_f64(2.0 * SCALE), T::from_f64(2.0 * SCALE * CUBE));
        let square = x * x;
        let twice = x * square.mul_add::<FMA>(cube, one);
        let turn = x * square.mul_add::<FMA>(cube * T::from_f64(3.0), one);
        let (s, slope) = logistic::<FMA, T>(twice);
        g * turn.mul_add::<FMA>(slope, s)
    }

    /// By way of tanh: `(1 + t) / 2 + x t' / 2`.
    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let (u, du) = inner(x)?;
        let t = u.try_tanh()?;
        let dt = (1.0 - t.try_square()?) * du;
        g.try_mul((t + 1.0 + x * dt).try_mul(0.5)?).map(Some)
    }
}

methods! {
    /// The Gaussian error linear unit in the form with tanh:
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`. For f32 and f64; one pass forward,
    /// one backward.
    ///
    /// PyTorch's `gelu(x, approximate="tanh")`, which GPT-2 uses; within 5e-4 of [`Tensor::gelu`].
    /// Gradient: `dx = g * (s + x s (1 - s) 2 u')` with `u` the argument of tanh,
    /// `u' = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)` and `s = (1 + tanh u) / 2`. As in PyTorch, minus
    /// infinity gives NaN (and not the limit 0), and the gradient at both infinities is NaN.
    ///
    /// Hendrycks, Gimpel: *Gaussian error linear units* (2016).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([0.0f32, 100.0, -100.0]).gelu_tanh().to_vec::<f32>(),
    ///     [0.0, 100.0, 0.0]
    /// );
    /// ```
    pub fn gelu_tanh / try_gelu_tanh(&self) -> Tensor {
        apply(GeluTanh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "gelu_tanh",
    family: Family::Unary,
    signature: "x.gelu_tanh()",
    python: &[Binding::by_hand("gelu", "`approximate` says which formula")
        .no_method()
        .no_function()],
    formula: "x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)",
    gradient: "dx = g * ((1 + t) / 2 + x / 2 (1 - t^2) u'), t = tanh(u), u' = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)",
    at_kinks: "NaN at minus infinity; the gradient is NaN at both infinities",
    samples: |g| unary_samples(g, |g, s| normal(g, s) * 1.5, |x| x.try_gelu_tanh()),
    mistakes: &[
        Mistake {
            name: "rule of the product forgotten",
            what: "(1 + tanh u) / 2 was taken for a constant",
            rule: |_, at, g, _| {
                let (u, _) = inner(&at.input(0))?;
                Ok(smallvec![Some(g * (u.try_tanh()? * 0.5 + 0.5))])
            },
        },
        Mistake {
            name: "inner derivative forgotten",
            what: "the factor u' of the chain rule was left out",
            rule: |_, at, g, _| {
                let x = at.input(0);
                let t = inner(&x)?.0.try_tanh()?;
                Ok(smallvec![Some(g * (&t + 1.0 + x * (1.0 - t.try_square()?)) * 0.5)])
            },
        },
        Mistake {
            name: "derivative of the exact gelu",
            what: "Phi(x) + x phi(x) was taken: the derivative of what this approximates",
            rule: |_, at, g, _| {
                let x = at.input(0);
                let phi = (x.try_square()? * -0.5).try_exp()? * (SCALE / 2.0);
                let upper = (&x * -std::f64::consts::FRAC_1_SQRT_2).try_erfc()? * 0.5;
                Ok(smallvec![Some(g * (upper + x * phi))])
            },
        },
        Mistake {
            name: "derivative of the erf form",
            what: "Phi(x) + x phi(x) was taken, with tanh in the place of erf",
            rule: |_, at, g, _| {
                let x = at.input(0);
                let phi = (x.try_square()? * -0.5).try_exp()? * (SCALE / 2.0);
                let t = inner(&x)?.0.try_tanh()?;
                Ok(smallvec![Some(g * ((t + 1.0) * 0.5 + x * phi))])
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
        check_edges(
            |x| x.gelu_tanh(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0, 1000.0, 5.0],
            &[
                0.0,
                -0.0,
                nan,
                inf,
                nan,
                -0.04540230591222494,
                1.954597694087775,
                -0.0,
                1000.0,
                4.999999770820381,
            ],
            &[
                1.5,
                1.5,
                nan,
                nan,
                nan,
                -0.2582977698708549,
                3.258297769870855,
                0.0,
                3.0,
                3.0000046390859643,
            ],
        );
    }
}
