//! `hypot`: the length of the hypotenuse, element by element.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Hypot;

impl Op for Hypot {
    row!(hypot);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.hypot({0}, {1})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        let input = |i: usize| Saves::input(i).when(wanted.get(i));
        Saves::OUTPUT.and(input(0)).and(input(1))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let length = at.output();
        let part = |i: usize| cotangent.try_mul(at.input(i).try_div(&length)?);
        let da = wanted.get(0).then(|| part(0)).transpose()?;
        let db = wanted.get(1).then(|| part(1)).transpose()?;
        Ok(smallvec![da, db])
    }

    /// From `y^2 = a^2 + b^2`: `y dy = a da + b db`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b) = (at.input(0), at.input(1));
        let along = match tangents {
            [Some(da), Some(db)] => (da * &a).try_add(db * &b)?,
            [Some(da), None] => da.try_mul(&a)?,
            [None, Some(db)] => db.try_mul(&b)?,
            _ => unreachable!("at least one tangent is given"),
        };
        along.try_div(at.output())
    }
}

impl MapKernel for Hypot {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: narrow;
            F64, F64 => F64: f64::hypot;
        )
    }
}

/// By way of f64, where the squares of f32 neither overflow nor vanish. An infinite operand wins
/// over NaN.
#[inline(always)]
fn narrow(a: f32, b: f32) -> f32 {
    let (x, y) = (f64::from(a), f64::from(b));
    let infinite = a.abs() == f32::INFINITY || b.abs() == f32::INFINITY;
    if infinite { f32::INFINITY } else { (x * x + y * y).sqrt() as f32 }
}

methods! {
    /// The length of the hypotenuse `sqrt(a^2 + b^2)`, element by element with broadcasting. For
    /// f32 and f64.
    ///
    /// Nothing overflows on the way. An infinite operand gives infinity, even beside NaN. Gradient:
    /// `da = g * a / y`, `db = g * b / y` with `y = hypot(a, b)`; where both are 0 it is NaN, as in
    /// PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([3.0f32, 1e30]), Tensor::from([-4.0f32, 0.0]));
    /// assert_eq!(a.hypot(&b).to_vec::<f32>(), [5.0, 1e30]);
    /// ```
    pub fn hypot / try_hypot<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Hypot, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "hypot",
    family: Family::Binary,
    signature: "a.hypot(&b)",
    python: &[Binding::two("hypot", |a, b| a.try_hypot(b))],
    formula: "sqrt(a^2 + b^2)",
    gradient: "da = g * a / y; db = g * b / y, y = hypot(a, b)",
    at_kinks: "where both are 0 the gradients are NaN",
    samples: |g| {
        let mut samples =
            binary_samples(g, super::super::unary::away_from_zero, |a, b| a.try_hypot(b));
        let zeros = vec![Tensor::from([0.0f64]), Tensor::from([1.0f64])];
        samples.push(Sample::new("a leg of 0", zeros, |x| x[0].try_hypot(&x[1])));
        samples
    },
    mistakes: &[
        Mistake {
            name: "division forgotten",
            what: "the gradient is g * a instead of g * a / y",
            rule: |op, at, g, wanted| {
                let grads = op.vjp(at, g, wanted)?;
                let times = |d: Option<Tensor>| d.map(|d| d * at.output());
                Ok(grads.into_iter().map(times).collect())
            },
        },
        Mistake {
            name: "factor 2",
            what: "the factor 1/2 of the square root was forgotten: g * 2a / y",
            rule: |op, at, g, wanted| {
                let grads = op.vjp(at, g, wanted)?;
                Ok(grads.into_iter().map(|d| d.map(|d| d * 2.0)).collect())
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
            |a, b| a.hypot(b),
            [
                &[0.0, -0.0, 3.0, -3.0, inf, 1.0, inf, nan, nan, inf],
                &[0.0, 0.0, 4.0, 4.0, 1.0, -inf, nan, -inf, 1.0, inf],
            ],
            &[0.0, 0.0, 5.0, 5.0, inf, inf, inf, inf, nan, inf],
            [
                &[nan, nan, 1.8, -1.8, nan, 0.0, nan, nan, nan, nan],
                &[nan, nan, 2.4, 2.4, 0.0, nan, nan, nan, nan, nan],
            ],
        );
    }

    #[test]
    fn nothing_overflows_on_the_way() {
        // Values of PyTorch in f64, and of its f32 in the range of f32.
        let wide = Tensor::from([1e200f64, 1e-200]);
        let got = wide.hypot(&wide).to_vec::<f64>();
        for (got, want) in got.iter().zip([1.414213562373095e200, 1.414213562373095e-200]) {
            assert!((got / want - 1.0).abs() < 1e-15, "{got}");
        }
        let narrow = Tensor::from([2e38f32, 3e-40]);
        let got = narrow.hypot(Tensor::from([1e38f32, 4e-40])).to_vec::<f32>();
        assert_eq!(got, [2.236068e38, 5e-40]);
    }

    #[test]
    fn integers_are_an_error_and_meet_floats() {
        let a = Tensor::from([3i64]);
        assert!(a.try_hypot(&a).unwrap_err().to_string().contains("hypot"));
        assert_eq!(a.hypot(4.0).to_vec::<f32>(), [5.0]);
    }
}
