//! `mish`: x times the tanh of its softplus.

use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Mish;

impl Op for Mish {
    elementwise!(mish, infer_float_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_mish({0})".into())
    }

    /// `t + x (1 - t^2) s`, with `t = tanh(softplus(x))` and `s = sigmoid(x)`.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let t = x.try_softplus(1.0, f64::INFINITY)?.try_tanh()?;
        let slope = (1.0 - t.try_square()?) * x.try_sigmoid()?;
        Ok(smallvec![Some(cotangent.try_mul(t + x * slope)?)])
    }

    /// With `q = (1 + e^x)^2`, of which `tanh(log(1 + e^x))` is `(q - 1) / (q + 1)`; above 0 by way
    /// of `e^-x`, so that nothing overflows.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let below = x.try_lt(0)?;
        let e = x.try_abs()?.try_neg()?.try_exp()?;
        // q - 1, q + 1 and q' = 2 e^x (1 + e^x): above 0 all divided by e^2x.
        let (square, one) = (e.try_square()?, e.ones_like());
        let minus = below.try_where(&(&square + &e * 2.0), &e * 2.0 + 1.0)?;
        let plus = below.try_where(&(&square + &e * 2.0 + 2.0), &square * 2.0 + &e * 2.0 + 1.0)?;
        let rise = below.try_where(&(&e * 2.0 * (&e + 1.0)), (&e + 1.0) * 2.0)?;
        // (q - 1) / (q + 1) has the slope 2 q' / (q + 1)^2, of which one factor e^2x is left
        // above 0.
        let rest = below.try_where(&one, square)?;
        let slope = &minus / &plus + x * (rise * 2.0 * rest / plus.try_square()?);
        tangents[0].as_ref().expect("the only tangent").try_mul(slope)
    }
}

/// `x n / (n + 2)` with `n = (1 + e^x)^2 - 1`; above 0 by way of `e^-x`: no logarithm, no tanh, no
/// overflow, and all digits below 0.
impl Function for Mish {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let two = T::ONE + T::ONE;
        let e = (-x.abs()).exp::<FMA>();
        let n = if x < T::ZERO { e * (e + two) } else { two.mul_add::<FMA>(e, T::ONE) };
        let rest = if x < T::ZERO { two } else { two * e * e };
        x * (n / (n + rest))
    }
}

methods! {
    /// `x * tanh(log(1 + e^x))`. For f32 and f64.
    ///
    /// Gradient: `dx = g * (t + x (1 - t^2) s)` with `t = tanh(log(1 + e^x))` and `s = sigmoid(x)`.
    /// As in PyTorch, minus infinity gives NaN (and not the limit 0), and the gradient at both
    /// infinities is NaN.
    ///
    /// Misra: *Mish: a self regularized non-monotonic activation function* (2019).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 100.0, -200.0]).mish().to_vec::<f32>(), [0.0, 100.0, 0.0]);
    /// ```
    pub fn mish / try_mish(&self) -> Tensor {
        apply(Mish, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "mish",
    family: Family::Unary,
    signature: "x.mish()",
    python: &[Binding::floats("mish", Tensor::try_mish).no_function().activation()],
    formula: "x * tanh(log(1 + e^x))",
    gradient: "dx = g * (t + x (1 - t^2) s), t = tanh(log(1 + e^x)), s = sigmoid(x)",
    at_kinks: "NaN at minus infinity; the gradient is NaN at both infinities",
    samples: |g| unary_samples(g, |g, s| normal(g, s) * 2.0, |x| x.try_mish()),
    mistakes: &[
        Mistake {
            name: "rule of the product forgotten",
            what: "tanh(log(1 + e^x)) was taken for a constant",
            rule: |_, at, g, _| {
                let t = at.input(0).try_softplus(1.0, f64::INFINITY)?.try_tanh()?;
                Ok(smallvec![Some(g.try_mul(t)?)])
            },
        },
        Mistake {
            name: "inner derivative forgotten",
            what: "the factor sigmoid(x), the slope of the softplus, was left out",
            rule: |_, at, g, _| {
                let x = at.input(0);
                let t = x.try_softplus(1.0, f64::INFINITY)?.try_tanh()?;
                Ok(smallvec![Some(g * (&t + x * (1.0 - t.try_square()?)))])
            },
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
            |x| x.mish(),
            &[0.0, -0.0, nan, inf, -inf, 2.0, -1000.0, 1000.0],
            &[0.0, -0.0, nan, inf, nan, 1.9439589595339946, -0.0, 1000.0],
            &[1.8, 1.8, nan, nan, nan, 3.207953802838469, 0.0, 3.0],
        );
        // Apart, since the terms of the slope cancel where x is negative.
        let x = Tensor::from([-2.0f64, -30.0]).parameter();
        let y = x.mish();
        y.backward_with().gradient(&Tensor::from([3.0f64, 3.0])).run().unwrap();
        let close = |got: &Tensor, want: [f64; 2]| {
            let got = got.to_vec::<f64>();
            got.iter()
                .zip(want)
                .for_each(|(g, w)| assert!((g / w - 1.0).abs() < 1e-14, "{g}, {w}"));
        };
        close(&y, [-0.2525014826957089, -2.807286890651921e-12]);
        close(&x.grad().unwrap(), [-0.32506527726118173, -8.141131982890177e-12]);
    }
}
