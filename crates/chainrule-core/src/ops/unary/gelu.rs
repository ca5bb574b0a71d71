//! `gelu`: the Gaussian error linear unit.

use std::f64::consts::FRAC_1_SQRT_2;

use super::slope::{Slope, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// The height of the normal density at 0: 1 / sqrt(2 pi).
const HEIGHT: f64 = 0.398_942_280_401_432_7;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Gelu;

impl Op for Gelu {
    elementwise!(gelu, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * _normal({0})".into())
    }

    /// By way of the complement: `Phi(x) = erfc(-x / sqrt 2) / 2`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let slope = x.try_mul(-FRAC_1_SQRT_2)?.try_erfc()? * 0.5 + &x * density(&x)?;
        tangents[0].as_ref().expect("the only tangent").try_mul(slope)
    }
}

/// The normal density.
fn density(x: &Tensor) -> Result<Tensor> {
    (x.try_square()? * -0.5).try_exp()?.try_mul(HEIGHT)
}

impl Function for Gelu {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        x * x.normal::<FMA>().0
    }
}

/// `Phi(x) + x phi(x)`, from the input.
impl Slope for Gelu {
    fn grad_name(&self) -> &'static str {
        "gelu_grad"
    }

    fn numpy(&self) -> &'static str {
        "_gelu_grad({0}, {1})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let (below, power) = x.normal::<FMA>();
        g * (power * T::from_f64(HEIGHT)).mul_add::<FMA>(x, below)
    }

    /// By way of the complement: `Phi(x) = erfc(-x / sqrt 2) / 2`.
    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let below = x.try_mul(-FRAC_1_SQRT_2)?.try_erfc()? * 0.5;
        g.try_mul(below + x * density(x)?).map(Some)
    }
}

methods! {
    /// The Gaussian error linear unit `x * Phi(x)`, with `Phi(x) = (1 + erf(x / sqrt 2)) / 2` the
    /// normal distribution function. For f32 and f64; one pass forward, one backward. The form with
    /// tanh is [`Tensor::gelu_tanh`].
    ///
    /// Gradient: `dx = g * (Phi(x) + x phi(x))` with the normal density
    /// `phi(x) = e^(-x^2 / 2) / sqrt(2 pi)`. As in PyTorch, minus infinity gives NaN (and not the
    /// limit 0), and the gradient at both infinities is NaN.
    ///
    /// Hendrycks, Gimpel: *Gaussian error linear units* (2016).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 100.0, -100.0]).gelu().to_vec::<f32>(), [0.0, 100.0, 0.0]);
    /// ```
    pub fn gelu / try_gelu(&self) -> Tensor {
        apply(Gelu, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "gelu",
    family: Family::Unary,
    signature: "x.gelu()",
    python: &[Binding::with(
        "gelu",
        &[Parameter::choice("approximate", &["none", "tanh"], "none")],
        |x, a| match a.choice(0) {
            "tanh" => x.try_gelu_tanh(),
            _ => x.try_gelu(),
        },
    )
    .of_floats()
    .no_function()
    .functional()],
    formula: "x * Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2",
    gradient: "dx = g * (Phi(x) + x phi(x)), phi(x) = e^(-x^2 / 2) / sqrt(2 pi)",
    at_kinks: "NaN at minus infinity; the gradient is NaN at both infinities",
    samples: |g| unary_samples(g, |g, s| normal(g, s) * 1.5, |x| x.try_gelu()),
    mistakes: &[
        Mistake {
            name: "rule of the product forgotten",
            what: "Phi(x) was taken for a constant",
            rule: |_, at, g, _| {
                let phi = (at.input(0) * FRAC_1_SQRT_2).try_erf()? * 0.5 + 0.5;
                Ok(smallvec![Some(g.try_mul(phi)?)])
            },
        },
        Mistake {
            name: "factor x forgotten",
            what: "Phi(x) + phi(x): the factor x of the second term was left out",
            rule: |op, at, g, wanted| {
                let x = at.input(0);
                let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only input");
                Ok(smallvec![Some(dx + g * ((1.0 - &x) * density(&x)?))])
            },
        },
        Mistake {
            name: "height of the density",
            what: "the density was taken without its factor 1 / sqrt(2 pi)",
            rule: |op, at, g, wanted| {
                let x = at.input(0);
                let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only input");
                Ok(smallvec![Some(dx + g * (&x * density(&x)? * (1.0 / HEIGHT - 1.0)))])
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
            |x| x.gelu(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0, 1000.0, 10.0],
            &[
                0.0,
                -0.0,
                nan,
                inf,
                nan,
                -0.04550026389635842,
                1.9544997361036416,
                -0.0,
                1000.0,
                10.0,
            ],
            &[1.5, 1.5, nan, nan, nan, -0.2556954032345907, 3.255695403234591, 0.0, 3.0, 3.0],
        );
    }
}
