//! `relu`: the rectifier.

use super::slope::{Slope, scaled};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Relu;

impl Op for Relu {
    elementwise!(relu, infer_number_unary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.maximum({0}, 0)".into())
    }

    fn reading(&self) -> Reading {
        Reading::NotNegative
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(ReluSlope, &at.output(), cotangent)?)])
    }

    /// By way of the input: nothing where x <= 0.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        at.input(0).try_le(0)?.try_where(&dx.zeros_like(), dx)
    }
}

impl MapKernel for Relu {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => F32: |x| if x < 0.0 { 0.0 } else { x };
            F64 => F64: |x| if x < 0.0 { 0.0 } else { x };
            I64 => I64: |x| x.max(0);
        )
    }
}

/// 1 where the result is above 0 or NaN, else 0; the gradient is picked, not multiplied.
#[derive(Debug, Clone, Copy, Parameters)]
struct ReluSlope;

impl Slope for ReluSlope {
    fn grad_name(&self) -> &'static str {
        "relu_grad"
    }

    fn numpy(&self) -> &'static str {
        "np.where({0} <= 0, 0, {1})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, y: T, g: T) -> T {
        if y <= T::ZERO { T::ZERO } else { g }
    }
}

methods! {
    /// The rectifier `max(x, 0)`; NaN stays NaN. For f32, f64 and i64.
    ///
    /// Gradient: `dx = g where x > 0, else 0`. At the kink 0 it is 0, as in PyTorch. Only the
    /// result is kept for backward.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -2.0]).relu().to_vec::<f32>(), [1.5, 0.0]);
    /// ```
    pub fn relu / try_relu(&self) -> Tensor {
        apply(Relu, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "relu",
    family: Family::Unary,
    signature: "x.relu()",
    python: &[Binding::any("relu", Tensor::try_relu).activation()],
    formula: "max(x, 0)",
    gradient: "dx = g where x > 0, else 0",
    at_kinks: "the gradient at 0 is 0; NaN stays NaN and passes the gradient on",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_relu());
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_relu()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "mask forgotten",
            what: "the gradient is passed on also where the input was negative",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "mask inverted",
            what: "the gradient is passed on where the input was negative instead of where it was positive",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(at.output().try_gt(0)?.try_where(&g.zeros_like(), g)?)])
            },
        },
        Mistake {
            name: "mask from the gradient",
            what: "the gradient is passed on where it is itself positive, wherever the input was",
            rule: |_, _, g, _| Ok(smallvec![Some(g.try_relu()?)]),
        },
        Mistake {
            name: "value for the slope",
            what: "the gradient is multiplied by the result instead of by 1 or 0",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.output())?)]),
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
            |x| x.relu(),
            &[0.0, -0.0, nan, -inf, inf, -2.0, 2.0],
            &[0.0, -0.0, nan, 0.0, inf, 0.0, 2.0],
            &[0.0, 0.0, 3.0, 0.0, 3.0, 0.0, 3.0],
        );
    }

    #[test]
    fn a_masked_gradient_stays_out_even_if_it_is_not_finite() {
        let x = Tensor::from([-1.0f32, 1.0]).parameter();
        let g = Tensor::from([f32::NAN, 2.0]);
        x.relu().backward_with().gradient(&g).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 2.0]);
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        assert_eq!(Tensor::from([-2i64, 3]).relu().to_vec::<i64>(), [0, 3]);
        assert!(Tensor::from([true]).try_relu().is_err());
    }
}
