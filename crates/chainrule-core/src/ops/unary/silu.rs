//! `silu`: x times its logistic function, also called swish.

use super::slope::{Slope, logistic, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Silu;

impl Op for Silu {
    elementwise!(silu, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * _sigmoid({0})".into())
    }

    /// By way of the result: `s + y sigmoid(-x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let slope = x.try_sigmoid()? + at.output() * x.try_neg()?.try_sigmoid()?;
        tangents[0].as_ref().expect("the only tangent").try_mul(slope)
    }
}

impl Function for Silu {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        x * x.sigmoid::<FMA>()
    }
}

/// `s + x s'`, from the input, with `s = sigmoid(x)` and `s' = s (1 - s)`.
impl Slope for Silu {
    fn grad_name(&self) -> &'static str {
        "silu_grad"
    }

    fn numpy(&self) -> &'static str {
        "_silu_grad({0}, {1})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let (s, slope) = logistic::<FMA, T>(x);
        g * x.mul_add::<FMA>(slope, s)
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let s = x.try_sigmoid()?;
        g.try_mul(&s + x * (&s * (1.0 - &s))).map(Some)
    }
}

methods! {
    /// `x * sigmoid(x)`, also called swish. For f32 and f64; one pass forward, one backward.
    ///
    /// Gradient: `dx = g * (s + x s (1 - s))` with `s = sigmoid(x)`. As in PyTorch, minus infinity
    /// gives NaN (and not the limit 0), and the gradient at both infinities is NaN.
    ///
    /// Elfwing, Uchibe, Doya: *Sigmoid-weighted linear units for neural network function
    /// approximation in reinforcement learning* (2017).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 100.0, -200.0]).silu().to_vec::<f32>(), [0.0, 100.0, 0.0]);
    /// ```
    pub fn silu / try_silu(&self) -> Tensor {
        apply(Silu, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "silu",
    family: Family::Unary,
    signature: "x.silu()",
    python: &[Binding::floats("silu", Tensor::try_silu).no_function().activation()],
    formula: "x * sigmoid(x)",
    gradient: "dx = g * (s + x s (1 - s)), s = sigmoid(x)",
    at_kinks: "NaN at minus infinity; the gradient is NaN at both infinities",
    samples: |g| unary_samples(g, |g, s| normal(g, s) * 3.0, |x| x.try_silu()),
    mistakes: &[
        Mistake {
            name: "rule of the product forgotten",
            what: "sigmoid(x) was taken for a constant: g * sigmoid(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_sigmoid()?)?)]),
        },
        Mistake {
            name: "derivative of the sigmoid",
            what: "s (1 - s) was taken for the slope, without s and the factor x",
            rule: |_, at, g, _| {
                let s = at.input(0).try_sigmoid()?;
                Ok(smallvec![Some(g * (&s * (1.0 - &s)))])
            },
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "the slope was taken at the result instead of at the input",
            rule: |_, at, g, _| {
                let y = at.input(0).try_silu()?;
                Ok(smallvec![Some(scaled(Silu, &y, g)?)])
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
            |x| x.silu(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0, 1000.0],
            &[0.0, -0.0, nan, inf, nan, -0.2384058440442351, 1.7615941559557646, -0.0, 1000.0],
            &[1.5, 1.5, nan, nan, nan, -0.27235274635468637, 3.2723527463546866, -0.0, 3.0],
        );
    }
}
