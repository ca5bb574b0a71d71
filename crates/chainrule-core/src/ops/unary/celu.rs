//! `celu`: the exponential linear unit with a continuous slope.

use super::elu::{Elu, LOWER_HALF_FORGOTTEN, POWER_FORGOTTEN};
use crate::ops::prelude::*;

methods! {
    /// The exponential linear unit stretched so that its slope is continuous: `x` above 0,
    /// `alpha * (e^(x / alpha) - 1)` below. For f32 and f64; an alpha of 0 is an error (PyTorch's
    /// default is 1).
    ///
    /// Gradient: `dx = g` where `x > 0`, else `g * e^(x / alpha)`; 1 at 0.
    ///
    /// Barron: *Continuously differentiable exponential linear units* (2017).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-100.0f32, 3.0]).celu(0.5).to_vec::<f32>(), [-0.5, 3.0]);
    /// ```
    pub fn celu / try_celu(&self, alpha: f64) -> Tensor {
        if alpha == 0.0 {
            return Err(Error::argument("celu", "alpha = 0 divides by 0; for its limit use relu"));
        }
        let (id, grad_name) = (OpId::celu, "celu_grad");
        apply(Elu { id, grad_name, alpha, scale: 1.0, width: alpha }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "celu",
    family: Family::Unary,
    signature: "x.celu(alpha)",
    python: &[Binding::with("celu", &[Parameter::float("alpha", 1.0)], |x, a| {
        x.try_celu(a.float(0))
    })
    .of_floats()
    .no_function()
    .activation()],
    formula: "x where x > 0, else alpha * (e^(x / alpha) - 1)",
    gradient: "dx = g where x > 0, else g * e^(x / alpha)",
    at_kinks: "smooth at 0, but the second derivative jumps there",
    samples: |g| unary_samples(g, super::away_from_zero, |x| x.try_celu(0.5)),
    mistakes: &[
        POWER_FORGOTTEN,
        LOWER_HALF_FORGOTTEN,
        Mistake {
            name: "factor alpha",
            what: "the division by alpha inside was forgotten: g * alpha * e^(x / alpha)",
            rule: |op, at, g, wanted| {
                let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only input");
                Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(&dx, &dx * 0.5)?)])
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
            |x| x.celu(0.5),
            &[0.0, -0.0, nan, inf, -inf, 2.0, -1000.0],
            &[0.0, -0.0, nan, inf, -0.5, 2.0, -0.5],
            &[3.0, 3.0, nan, 3.0, 0.0, 3.0, 0.0],
        );
        // Apart, since the forward rule takes the slope from the result, where some digits cancel.
        let x = Tensor::from([-2.0f64]).parameter();
        let y = x.celu(0.5);
        y.backward_with().gradient(&Tensor::from([3.0f64])).run().unwrap();
        assert!((y.item() + 0.4908421805556329).abs() < 1e-15);
        assert!((x.grad().unwrap().item() - 0.054946916666202536).abs() < 1e-16);
    }

    #[test]
    fn an_alpha_of_0_is_an_error() {
        let error = Tensor::from([1.0f32]).try_celu(0.0).unwrap_err().to_string();
        assert!(error.contains("celu") && error.contains("alpha"), "{error}");
    }
}
