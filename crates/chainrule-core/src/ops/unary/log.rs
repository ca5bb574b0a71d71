//! `log`: the natural logarithm.

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Log;

impl Op for Log {
    elementwise!(log, infer_float_unary);

    fn role(&self) -> Role {
        Role::Logarithm
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.log({0})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Log
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_div(at.input(0))?)])
    }

    /// By way of the reciprocal: `dx * (1 / x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_mul(at.input(0).try_reciprocal()?)
    }
}

impl MapKernel for Log {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::log_slice;
            F64 => F64: math::log_slice;
        )
    }
}

methods! {
    /// The natural logarithm, within 3e-7 relative in f32: minus infinity at 0, NaN below. For f32
    /// and f64.
    ///
    /// Gradient: `dx = g / x`: infinite at 0, and `g / x` also below it, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 0.0]).log().to_vec::<f32>(), [0.0, f32::NEG_INFINITY]);
    /// ```
    pub fn log / try_log(&self) -> Tensor {
        apply(Log, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "log",
    family: Family::Unary,
    signature: "x.log()",
    python: &[Binding::floats("log", Tensor::try_log)],
    formula: "ln x",
    gradient: "dx = g / x",
    at_kinks: "at 0 it is minus infinity and its gradient infinite, with the sign of the zero; below 0 it is NaN, its gradient still g / x",
    samples: |g| unary_samples(g, |g, s| between(g, 0.5, 3.0, s), |x| x.try_log()),
    mistakes: &[
        Mistake {
            name: "factor forgotten",
            what: "the gradient is passed on without the factor 1 / x",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "multiplied instead of divided",
            what: "the gradient is g * x instead of g / x",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(at.input(0))?)]),
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "the gradient is divided by log(x): the derivative was taken at the result instead of the input",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_div(at.input(0).try_log()?)?)]),
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
            |x| x.log(),
            &[0.0, -0.0, nan, -1.0, inf, 4.0],
            &[-inf, -inf, nan, nan, inf, 1.3862943611198906],
            &[inf, -inf, nan, -3.0, 0.0, 0.75],
        );
    }
}
