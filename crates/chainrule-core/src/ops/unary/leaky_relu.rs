//! `leaky_relu`: the rectifier with a small slope below 0.

use super::slope::{Slope, scaled};
use crate::kernels::map::Function;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct LeakyRelu {
    slope: f64,
}

impl Op for LeakyRelu {
    elementwise!(leaky_relu, infer_float_unary, scaled);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.where({0} > 0, {0}, {0} * {slope})".into())
    }

    /// As the sum of two parts: `slope * x + (1 - slope) * relu(x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let above = at.input(0).try_gt(0)?.try_to_dtype(dx.dtype())?;
        dx.try_mul(above * (1.0 - self.slope) + self.slope)
    }
}

impl Function for LeakyRelu {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T) -> T {
        if x > T::ZERO { x } else { x * T::from_f64(self.slope) }
    }
}

/// 1 above 0, else the slope; from the input.
impl Slope for LeakyRelu {
    fn grad_name(&self) -> &'static str {
        "leaky_relu_grad"
    }

    fn numpy(&self) -> &'static str {
        "np.where({0} > 0, {1}, {1} * {slope})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        if x > T::ZERO { g } else { g * T::from_f64(self.slope) }
    }
}

methods! {
    /// `x` above 0, `slope * x` below: the rectifier that leaks (PyTorch's default slope is 0.01).
    /// For f32 and f64.
    ///
    /// Gradient: `dx = g` where `x > 0`, else `slope * g`; at the kink 0 and at NaN it is
    /// `slope * g`, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-8.0f32, 3.0]).leaky_relu(0.25).to_vec::<f32>(), [-2.0, 3.0]);
    /// ```
    pub fn leaky_relu / try_leaky_relu(&self, slope: f64) -> Tensor {
        apply(LeakyRelu { slope }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "leaky_relu",
    family: Family::Unary,
    signature: "x.leaky_relu(slope)",
    python: &[Binding::with("leaky_relu", &[Parameter::float("negative_slope", 0.01)], |x, a| {
        x.try_leaky_relu(a.float(0))
    })
    .of_floats()
    .no_function()
    .activation()],
    formula: "x where x > 0, else slope * x",
    gradient: "dx = g where x > 0, else slope * g",
    at_kinks: "the gradient at 0 and at NaN is slope * g",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_leaky_relu(0.1));
        let x = normal(g, [3, 5]);
        samples.push(Sample::new("rising to either side", vec![x], |x| x[0].try_leaky_relu(-0.5)));
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_leaky_relu(0.1)).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "leak forgotten",
            what: "nothing is passed on below 0, as in relu",
            rule: |_, at, g, _| Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(g, 0.0)?)]),
        },
        Mistake {
            name: "mask inverted",
            what: "the slope was applied where x is positive instead of where it is negative",
            rule: |_, at, g, _| {
                Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(&(g * 0.1), g)?)])
            },
        },
        Mistake {
            name: "value for the slope",
            what: "the gradient is multiplied by the result instead of by 1 or the slope",
            rule: |_, at, g, _| Ok(smallvec![Some(g * at.input(0).try_leaky_relu(0.1)?)]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = [0.0, -0.0, nan, inf, -inf, -2.0, 2.0];
        check_edges(
            |x| x.leaky_relu(0.5),
            &x,
            &[0.0, -0.0, nan, inf, -inf, -1.0, 2.0],
            &[1.5, 1.5, 1.5, 3.0, 1.5, 1.5, 3.0],
        );
        check_edges(
            |x| x.leaky_relu(0.0),
            &x,
            &[0.0, -0.0, nan, inf, nan, -0.0, 2.0],
            &[0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 3.0],
        );
        check_edges(
            |x| x.leaky_relu(-0.5),
            &x,
            &[-0.0, 0.0, nan, inf, inf, 1.0, 2.0],
            &[-1.5, -1.5, -1.5, 3.0, -1.5, -1.5, 3.0],
        );
    }
}
