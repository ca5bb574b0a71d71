//! `atan2`: the angle of the point `(b, a)`, element by element.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Atan2;

impl Op for Atan2 {
    row!(atan2);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.arctan2({0}, {1})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let length = length(&a, &b)?;
        let part = |x: &Tensor| cotangent.try_mul(x.try_div(&length)?)?.try_div(&length);
        let da = wanted.get(0).then(|| part(&b)).transpose()?;
        let db = wanted.get(1).then(|| part(&a)?.try_neg()).transpose()?;
        Ok(smallvec![da, db])
    }

    /// Only the part of the step across the ray turns it: `(b da - a db) / |(a, b)|`, less for a
    /// longer ray.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let inverse = length(&a, &b)?.try_reciprocal()?;
        let across = match tangents {
            [Some(da), Some(db)] => (da * &b).try_sub(db * &a)?,
            [Some(da), None] => da.try_mul(&b)?,
            [None, Some(db)] => db.try_mul(&a)?.try_neg()?,
            _ => unreachable!("at least one tangent is given"),
        };
        across.try_mul(&inverse)?.try_mul(&inverse)
    }
}

/// The length of the ray, but 1 at the origin, so that the gradient there is 0.
fn length(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let length = a.try_hypot(b)?;
    length.try_eq(0)?.try_where(&length.ones_like(), &length)
}

impl MapKernel for Atan2 {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: f32::atan2;
            F64, F64 => F64: f64::atan2;
        )
    }
}

methods! {
    /// The angle of the point with ordinate `a` (this tensor) and abscissa `b`, from -pi to pi,
    /// element by element with broadcasting. Integers become f32.
    ///
    /// The signs of both pick the quadrant, those of zeros too. Gradient:
    /// `da = g * b / (a^2 + b^2)`, `db = -g * a / (a^2 + b^2)`; both are 0 at the origin, as in
    /// PyTorch. The square of the length does not overflow, as it does in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let angle = Tensor::from([1.0f64, 0.0]).atan2(Tensor::from([0.0f64, -1.0]));
    /// assert_eq!(angle.to_vec::<f64>(), [std::f64::consts::FRAC_PI_2, std::f64::consts::PI]);
    /// ```
    pub fn atan2 / try_atan2<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted_float(Atan2, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "atan2",
    family: Family::Binary,
    signature: "a.atan2(&b)",
    python: &[Binding::two("atan2", |a, b| a.try_atan2(b)).also(&["arctan2"])],
    formula: "the angle of the point (b, a): atan(a / b) in the right quadrant",
    gradient: "da = g * b / (a^2 + b^2); db = -g * a / (a^2 + b^2)",
    at_kinks: "at the origin the gradients are 0; across the cut a = 0, b < 0 the value jumps by 2 pi and the gradients do not",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| between(g, 0.5, 2.0, s), |a, b| a.try_atan2(b));
        let corners =
            vec![Tensor::from([1.0f64, -1.0, -0.5, 2.0]), Tensor::from([-2.0f64, -0.7, 1.5, 0.0])];
        samples.push(Sample::new("all quadrants", corners, |x| x[0].try_atan2(&x[1])));
        let origin = vec![Tensor::from([0.0f64]), Tensor::from([0.0f64])];
        samples.push(Sample::new("the origin", origin, |x| x[0].try_atan2(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the gradient of b lacks its minus",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = grads[1].take().map(|db| -db);
                Ok(grads)
            },
        },
        Mistake {
            name: "operands swapped",
            what: "the arguments were taken in the order x, y: each gets the gradient of the other",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads.swap(0, 1);
                Ok(grads)
            },
        },
        Mistake {
            name: "missing square",
            what: "the gradient is divided by the length instead of by its square",
            rule: |op, at, g, wanted| {
                let length = length(&at.input(0), &at.input(1))?;
                let grads = op.vjp(at, g, wanted)?;
                Ok(grads.into_iter().map(|d| d.map(|d| d * &length)).collect())
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::{DType, Tensor};
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |a, b| a.atan2(b),
            [
                &[0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 0.0, -0.0, 0.0, inf, inf, 1.0, 1.0, inf, nan],
                &[0.0, 0.0, -0.0, -0.0, 0.0, 0.0, -1.0, -1.0, 1.0, inf, -inf, inf, -inf, 1.0, 1.0],
            ],
            &[
                0.0,
                -0.0,
                PI,
                -PI,
                FRAC_PI_2,
                -FRAC_PI_2,
                PI,
                -PI,
                0.0,
                FRAC_PI_4,
                3.0 * FRAC_PI_4,
                0.0,
                PI,
                FRAC_PI_2,
                nan,
            ],
            [
                &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.0, -3.0, 3.0, nan, nan, nan, nan, 0.0, nan],
                &[0.0, 0.0, 0.0, 0.0, -3.0, 3.0, 0.0, 0.0, 0.0, nan, nan, 0.0, 0.0, nan, nan],
            ],
        );
    }

    #[test]
    fn the_square_of_the_length_does_not_overflow() {
        let a = Tensor::from([1e200f64, 1e-200]).parameter();
        a.atan2(a.detach()).sum_all().backward();
        let got = a.grad().unwrap().to_vec::<f64>();
        for (got, want) in got.iter().zip([0.5e-200, 0.5e200]) {
            assert!((got / want - 1.0).abs() < 1e-14, "{got}");
        }
    }

    #[test]
    fn integers_and_bools_become_floats() {
        let x = Tensor::from([1i64]).atan2(Tensor::from([true]));
        assert_eq!((x.dtype(), x.item() as f32), (DType::F32, std::f32::consts::FRAC_PI_4));
    }
}
