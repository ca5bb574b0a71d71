//! `selu`: the scaled exponential linear unit.

use super::elu::{Elu, LOWER_HALF_FORGOTTEN, POWER_FORGOTTEN};
use crate::ops::prelude::*;

/// The constants of the paper, for which mean 0 and variance 1 are a fixed point.
const ALPHA: f64 = 1.673_263_242_354_377_2;
const SCALE: f64 = 1.050_700_987_355_480_5;

methods! {
    /// The scaled exponential linear unit: `scale * x` above 0, `scale * alpha * (e^x - 1)` below,
    /// with the constants 1.0507 and 1.6733 of the paper. For f32 and f64.
    ///
    /// Gradient: `dx = g * scale` where `x > 0`, else `g * scale * alpha * e^x`; so it is at 0, as
    /// in PyTorch.
    ///
    /// Klambauer, Unterthiner, Mayr, Hochreiter: *Self-normalizing neural networks* (2017).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-100.0f32, 2.0]).selu().to_vec::<f32>(), [-1.7580993, 2.101402]);
    /// ```
    pub fn selu / try_selu(&self) -> Tensor {
        let (id, grad_name) = (OpId::selu, "selu_grad");
        apply(Elu { id, grad_name, alpha: ALPHA, scale: SCALE, width: 1.0 }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "selu",
    family: Family::Unary,
    signature: "x.selu()",
    python: &[Binding::floats("selu", Tensor::try_selu).activation()],
    formula: "scale * x where x > 0, else scale * alpha * (e^x - 1), scale = 1.0507, alpha = 1.6733",
    gradient: "dx = g * scale where x > 0, else g * scale * alpha * e^x",
    at_kinks: "the gradient at 0 is g * scale * alpha",
    samples: |g| {
        let mut samples = unary_samples(g, super::away_from_zero, |x| x.try_selu());
        let x = Tensor::from([0.0f64, -0.0]);
        samples.push(Sample::new("at 0", vec![x], |x| x[0].try_selu()).at_kink());
        samples
    },
    mistakes: &[
        POWER_FORGOTTEN,
        LOWER_HALF_FORGOTTEN,
        Mistake {
            name: "missing factor",
            what: "the scale was forgotten, as in elu",
            rule: |op, at, g, wanted| {
                let dx = op.vjp(at, g, wanted)?.remove(0);
                Ok(smallvec![dx.map(|dx| dx / SCALE)])
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
        let floor = -1.7580993408473766;
        check_edges(
            |x| x.selu(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1000.0],
            &[0.0, -0.0, nan, inf, floor, -1.5201664685956948, 2.101401974710961, floor],
            &[
                5.27429802254213,
                5.27429802254213,
                nan,
                3.1521029620664414,
                0.0,
                0.7137986167550454,
                3.1521029620664414,
                0.0,
            ],
        );
    }
}
