//! `tanh`: the hyperbolic tangent, and its backward as one kernel.

use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct Tanh;

impl Op for Tanh {
    fn name(&self) -> &'static str {
        "tanh"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(
            TanhGrad,
            &[&at.output(), cotangent]
        )?)])
    }

    /// By way of the input: `dx / cosh(x)^2`, where `1 / cosh(x) = 2 / (e^x + e^-x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        let sech = 2.0 / (x.try_exp()? + x.try_neg()?.try_exp()?);
        tangents[0]
            .as_ref()
            .expect("the only tangent")
            .try_mul(&sech * &sech)
    }
}

impl MapKernel for Tanh {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile_slice!(inputs, out;
            F32 => F32: math::tanh_slice;
            F64 => F64: math::tanh_slice;
        )
    }
}

/// `g * (1 - y^2)` in one pass: the backward of tanh, from its result.
#[derive(Debug)]
struct TanhGrad;

impl Op for TanhGrad {
    fn name(&self) -> &'static str {
        "tanh_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        float_inputs(self.name(), inputs)?;
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (y, g) = (at.input(0), at.input(1));
        let dy = wanted
            .get(0)
            .then(|| cotangent.try_mul(&g)?.try_mul(&y)?.try_mul(-2.0))
            .transpose()?;
        let dg = wanted
            .get(1)
            .then(|| apply(TanhGrad, &[&y, cotangent]))
            .transpose()?;
        Ok(smallvec![dy, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (y, g) = (at.input(0), at.input(1));
        let slope: Tensor = 1.0 - &y * &y;
        let parts = [
            tangents[0]
                .as_ref()
                .map(|dy| (&g * (dy * -2.0)).try_mul(&y)),
            tangents[1].as_ref().map(|dg| slope.try_mul(dg)),
        ];
        let mut parts = parts.into_iter().flatten();
        let first = parts.next().expect("at least one tangent is given")?;
        parts.try_fold(first, |sum, part| sum.try_add(&part?))
    }
}

impl MapKernel for TanhGrad {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: |y, g| g * (1.0 - y * y);
            F64, F64 => F64: |y, g| g * (1.0 - y * y);
        )
    }
}

methods! {
    /// The hyperbolic tangent. For f32 and f64.
    ///
    /// `tanh(x) = (e^x - e^-x) / (e^x + e^-x)`, within 3e-7 relative in f32. Gradient: `dx = g * (1 - tanh(x)^2)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, f32::INFINITY]).tanh().to_vec::<f32>(), [0.0, 1.0]);
    /// ```
    pub fn tanh / try_tanh(&self) -> Tensor {
        apply(Tanh, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "tanh",
    family: Family::Unary,
    signature: "x.tanh()",
    formula: "(e^x - e^-x) / (e^x + e^-x)",
    gradient: "dx = g * (1 - tanh(x)^2)",
    at_kinks: "",
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_tanh()),
    mistakes: &[
        Mistake {
            name: "square forgotten",
            what: "1 - tanh(x) was taken for 1 - tanh(x)^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g.try_mul(&(1.0 - at.output()))?)]),
        },
        Mistake {
            name: "derivative of the sigmoid",
            what: "y * (1 - y) was taken for 1 - y^2",
            rule: |_, at, g, _| Ok(smallvec![Some(g * (at.output() * (1.0 - at.output())))]),
        },
        Mistake {
            name: "derivative taken at the wrong point",
            what: "1 - tanh(tanh(x))^2: the derivative was taken at the result instead of the input",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(
                    g * (1.0 - at.output().tanh() * at.output().tanh())
                )])
            },
        },
    ],
};
