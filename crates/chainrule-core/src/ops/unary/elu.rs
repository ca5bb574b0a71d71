//! `elu`: the exponential linear unit.

use super::slope::{Slope, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// `scale x` above 0, `scale alpha (e^(x / width) - 1)` below, under one of its names: `selu` and
/// `celu` are of this form too.
#[derive(Debug, Clone, Copy, Parameters)]
pub(super) struct Elu {
    #[parameters(skip)]
    pub id: OpId,
    #[parameters(skip)]
    pub grad_name: &'static str,
    pub alpha: f64,
    pub scale: f64,
    pub width: f64,
}

impl Op for Elu {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_elu({0}, {alpha}, {scale}, {width})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(*self, &at.input(0), cotangent)?)])
    }

    /// The slope at `x <= 0` by way of its root: `scale alpha / width (e^(x / (2 width)))^2`. The
    /// result has none of it left far below 0.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let root = at.input(0).try_minimum(0.0)?.try_mul(0.5 / self.width)?.try_exp()?;
        let below = root.try_square()?.try_mul(self.scale * self.alpha / self.width)?;
        let slope = at.input(0).try_gt(0)?.try_where(&below.like(self.scale), below)?;
        tangents[0].as_ref().expect("the only tangent").try_mul(slope)
    }
}

impl Function for Elu {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        let below = T::from_f64(self.scale * self.alpha)
            * (x * T::from_f64(1.0 / self.width)).expm1::<FMA>();
        if x > T::ZERO { T::from_f64(self.scale) * x } else { below }
    }
}

/// `scale` above 0, else `scale alpha / width e^(x / width)`; from the input.
impl Slope for Elu {
    fn grad_name(&self) -> &'static str {
        self.grad_name
    }

    fn numpy(&self) -> &'static str {
        "_elu_grad({0}, {1}, {alpha}, {scale}, {width})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let power = (x * T::from_f64(1.0 / self.width)).exp::<FMA>();
        let below = T::from_f64(self.scale * self.alpha / self.width) * power;
        g * if x > T::ZERO { T::from_f64(self.scale) } else { below }
    }

    /// The exponent is cut at 0: an overflow above it would make the gradient there NaN.
    fn in_steps(&self, x: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let above = x.try_gt(0)?;
        let power = above.try_where(&x.like(0.0), x)?.try_div(self.width)?.try_exp()?;
        let below = power * (self.scale * self.alpha / self.width);
        g.try_mul(above.try_where(&below.like(self.scale), &below)?).map(Some)
    }
}

methods! {
    /// The exponential linear unit: `x` above 0, `alpha * (e^x - 1)` below (PyTorch's default alpha
    /// is 1). For f32 and f64.
    ///
    /// Gradient: `dx = g` where `x > 0`, else `g * alpha * e^x`; at 0 it is `g * alpha`, as in
    /// PyTorch.
    ///
    /// Clevert, Unterthiner, Hochreiter: *Fast and accurate deep network learning by exponential
    /// linear units* (2015).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-100.0f32, 3.0]).elu(1.0).to_vec::<f32>(), [-1.0, 3.0]);
    /// ```
    pub fn elu / try_elu(&self, alpha: f64) -> Tensor {
        let (id, grad_name) = (OpId::elu, "elu_grad");
        apply(Elu { id, grad_name, alpha, scale: 1.0, width: 1.0 }, &[self])
    }
}

/// The slope above 0 was taken everywhere.
pub(super) const POWER_FORGOTTEN: Mistake = Mistake {
    name: "power forgotten",
    what: "the gradient is passed on below 0 as it is above",
    rule: |op, at, g, wanted| {
        let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only input");
        Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(&dx, g)?)])
    },
};

/// Nothing below 0, as in relu.
pub(super) const LOWER_HALF_FORGOTTEN: Mistake = Mistake {
    name: "derivative of relu",
    what: "nothing is passed on below 0, as in relu",
    rule: |op, at, g, wanted| {
        let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only input");
        Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(&dx, 0.0)?)])
    },
};

pub(super) const ENTRY: Entry = Entry {
    name: "elu",
    family: Family::Unary,
    signature: "x.elu(alpha)",
    python: &[Binding::with("elu", &[Parameter::float("alpha", 1.0)], |x, a| {
        x.try_elu(a.float(0))
    })
    .of_floats()
    .no_function()
    .activation()],
    formula: "x where x > 0, else alpha * (e^x - 1)",
    gradient: "dx = g where x > 0, else g * alpha * e^x",
    at_kinks: "the gradient at 0 is g * alpha",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_elu(0.7));
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_elu(0.7)).at_kink());
        samples
    },
    mistakes: &[
        POWER_FORGOTTEN,
        LOWER_HALF_FORGOTTEN,
        Mistake {
            name: "result for the slope",
            what: "below 0 the result y was taken for the slope, which is y + alpha",
            rule: |_, at, g, _| {
                let x = at.input(0);
                let y = x.try_elu(0.7)?;
                Ok(smallvec![Some(x.try_gt(0)?.try_where(g, g * y)?)])
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
        let (low, slope) = (-0.6052653017343711, 0.28420409479688663);
        check_edges(
            |x| x.elu(0.7),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0, -1e-10],
            &[0.0, -0.0, nan, inf, -0.7, low, 2.0, -0.7, -6.99999999965e-11],
            &[2.1, 2.1, nan, 3.0, 0.0, slope, 3.0, 0.0, 2.0999999997899996],
        );
        check_edges(
            |x| x.elu(-1.0),
            &[0.0, -0.0, -inf, -2.0, 2.0],
            &[0.0, 0.0, 1.0, 0.8646647167633873, 2.0],
            &[-3.0, -3.0, 0.0, -0.4060058497098381, 3.0],
        );
    }
}
