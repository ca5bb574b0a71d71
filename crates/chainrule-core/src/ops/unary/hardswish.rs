//! `hardswish`: x times its hardsigmoid.

use super::slope::{Slope, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Hardswish;

impl Op for Hardswish {
    elementwise!(hardswish, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * np.clip({0} + 3, 0, 6) / 6".into())
    }

    /// Piece by piece: all of the tangent from 3 on, nothing up to -3, `(2 x + 3) / 6` of it
    /// between.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let between = dx.try_mul((&x * 2.0 + 3.0) / 6.0)?;
        let rising = x.try_ge(3)?.try_where(dx, between)?;
        x.try_le(-3)?.try_where(&dx.zeros_like(), rising)
    }
}

impl Function for Hardswish {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let (three, six) = (T::from_f64(3.0), T::from_f64(6.0));
        let gate = x + three;
        let gate = if gate < T::ZERO { T::ZERO } else { gate };
        let gate = if six < gate { six } else { gate };
        x * gate / six
    }
}

/// 0, `x / 3 + 1/2`, 1; from the input.
impl Slope for Hardswish {
    fn grad_name(&self) -> &'static str {
        "hardswish_grad"
    }

    fn numpy(&self) -> &'static str {
        "_hardswish_grad({0}, {1})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let three = T::from_f64(3.0);
        let between = g * (x / three + T::from_f64(0.5));
        let below = if x <= -three { T::ZERO } else { between };
        if x >= three { g } else { below }
    }

    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let between = g.try_mul(x / 3.0 + 0.5)?;
        let rising = x.try_le(-3)?.try_where(&g.zeros_like(), between)?;
        x.try_ge(3)?.try_where(g, rising).map(Some)
    }
}

methods! {
    /// `x * hardsigmoid(x)`: `x` held between 0 and `x` by straight pieces, `x (x + 3) / 6` between
    /// -3 and 3. For f32 and f64.
    ///
    /// Gradient: `dx = 0` where `x <= -3`, `g` where `x >= 3`, else `g * (x / 3 + 1/2)`; so it is
    /// at the kinks, as in PyTorch. As there, minus infinity gives NaN.
    ///
    /// Howard and others: *Searching for MobileNetV3* (2019).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([-4.0f32, 1.5, 5.0]).hardswish().to_vec::<f32>(),
    ///     [0.0, 1.125, 5.0]
    /// );
    /// ```
    pub fn hardswish / try_hardswish(&self) -> Tensor {
        apply(Hardswish, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "hardswish",
    family: Family::Unary,
    signature: "x.hardswish()",
    python: &[Binding::floats("hardswish", Tensor::try_hardswish).no_function().activation()],
    formula: "x * min(max(x + 3, 0), 6) / 6",
    gradient: "dx = 0 where x <= -3, g where x >= 3, else g * (x / 3 + 1/2)",
    at_kinks: "the gradient is 0 at -3 and g at 3; NaN at minus infinity",
    samples: |g| {
        let mut samples = unary_samples(g, |g, s| normal(g, s) * 3.0, |x| x.try_hardswish());
        let x = Tensor::from([-3.0f64, 3.0]);
        samples.push(Sample::new("at the kinks", vec![x], |x| x[0].try_hardswish()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "rule of the product forgotten",
            what: "the gate was taken for a constant: g * hardsigmoid(x)",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0).try_hardsigmoid()?)?)]),
        },
        Mistake {
            name: "pieces forgotten",
            what: "x / 3 + 1/2 was taken below -3 and above 3 too",
            rule: |_, at, g, _| Ok(smallvec![Some(g * (at.input(0) / 3.0 + 0.5))]),
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
            |x| x.hardswish(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, 3.0, -3.0, 1.0, -4.0, 4.0],
            &[0.0, -0.0, nan, inf, nan, -1.0 / 3.0, 5.0 / 3.0, 3.0, 0.0, 2.0 / 3.0, 0.0, 4.0],
            &[1.5, 1.5, nan, 3.0, 0.0, -0.5, 3.5, 3.0, 0.0, 2.5, 0.0, 3.0],
        );
    }
}
