//! `fmod`: what division with rounding towards 0 leaves, with the sign of the dividend.

use super::floor_divide::{divisible, unsigned_rest};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Fmod;

impl Op for Fmod {
    fn name(&self) -> &'static str {
        "fmod"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::fmod)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.fmod({0}, {1})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_binary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::INPUTS.when(wanted.get(1))
    }

    /// `a - b * trunc(a / b)`, whose last factor is constant between its jumps.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let db = wanted.get(1).then(|| {
            let quotient = at.input(0).detach().try_div(at.input(1).detach())?;
            cotangent.try_mul(quotient.try_trunc()?.try_neg()?)
        });
        Ok(smallvec![Some(cotangent.clone()), db.transpose()?])
    }

    /// The quotient rounded down where it is positive and up where it is negative.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let Meta { shape, .. } = at.output_meta();
        let by_b = tangents[1].as_ref().map(|db| {
            let quotient = at.input(0).detach().try_div(at.input(1).detach())?;
            let above = quotient.try_gt(0)?;
            let whole = above.try_where(&quotient.try_floor()?, quotient.try_ceil()?)?;
            db.try_mul(whole)
        });
        match (&tangents[0], by_b.transpose()?) {
            (Some(da), Some(db)) => da.try_sub(db),
            (Some(da), None) => da.try_expand(shape),
            (None, Some(db)) => db.try_neg(),
            (None, None) => unreachable!("at least one tangent is given"),
        }
    }
}

impl MapKernel for Fmod {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        // An integer modulo 0, which `divisible` does not let through, is 0 without a panic.
        tile!(inputs, n, out;
            F32, F32 => F32: |a, b| a % b;
            F64, F64 => F64: |a, b| a % b;
            I64, I64 => I64: |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) };
        )
    }
}

methods! {
    /// The remainder of division with rounding towards 0: `a - b * trunc(a / b)`, C's `fmod` and
    /// Rust's `%`, with the sign of `a`. Broadcasts; for f32, f64 and i64.
    ///
    /// An integer modulo 0 is an error, a float NaN. The remainder with the sign of `b` is
    /// [`Tensor::remainder`]. Gradient: `da = g`, `db = -g * trunc(a / b)` with the quotient as it
    /// rounds, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([7i64, -7]).fmod(3).to_vec::<i64>(), [1, -1]);
    /// assert_eq!(Tensor::from([7.5f32, -7.5]).fmod(-2.0).to_vec::<f32>(), [1.5, -1.5]);
    /// ```
    pub fn fmod / try_fmod<T: IntoTensor>(&self, other: T) -> Tensor {
        let (a, b) = divisible("fmod", self, other)?;
        if a.dtype() == DType::U64 {
            return unsigned_rest(&a, &b);
        }
        apply(Fmod, &[&a, &b])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "fmod",
    family: Family::Binary,
    signature: "a.fmod(&b)",
    python: &[Binding::two("fmod", |a, b| a.try_fmod(b))],
    formula: "a - b * trunc(a / b)",
    gradient: "da = g; db = -g * trunc(a / b)",
    at_kinks: "at a jump the gradients are those of either side; an integer modulo 0 is an error, a float NaN",
    samples: |g| {
        // Quotients from 3.2 to 3.9, away from the jumps.
        let draw = |g: &mut Generator, s: &[usize]| between(g, 1.0, 1.1, s);
        let mut samples = binary_samples(g, draw, |a, b| (a * 3.5).try_fmod(b));
        let signs = vec![
            Tensor::from([7.5f64, -7.5, 7.5, -7.5, 0.5]),
            Tensor::from([2.0f64, 2.0, -2.0, -2.0, -3.0]),
        ];
        samples.push(Sample::new("all signs", signs, |x| x[0].try_fmod(&x[1])));
        let jump = vec![Tensor::from([6.0f64]), Tensor::from([3.0f64])];
        samples.push(Sample::new("a jump", jump, |x| x[0].try_fmod(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "divisor taken for a constant",
            what: "the divisor gets no gradient",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), None]),
        },
        Mistake {
            name: "rounded down",
            what: "the quotient was rounded down, as in remainder",
            rule: |_, at, g, _| {
                let quotient = at.input(0).try_div(at.input(1))?.try_floor()?;
                Ok(smallvec![Some(g.clone()), Some(-(g * quotient))])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::{QUOTIENTS, check_edges};
    use crate::{DType, Tensor};

    /// PyTorch's values for [`QUOTIENTS`] that are the same in f32: without the dividends next to a
    /// multiple of 0.1.
    #[test]
    #[rustfmt::skip]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let [a, b] = QUOTIENTS.map(|q| q[..22].to_vec());
        check_edges(
            |a, b| a.fmod(b),
            [&a, &b],
            &[
                2.0, -2.0, 2.0, -2.0, 0.0, -0.0, 0.0, 0.0, -0.0, 0.0, nan, nan, nan, 1.0, -1.0, 1.0, -1.0, nan, nan,
                nan, nan, nan,
            ],
            [
                &[3.0; 22],
                &[
                    -3.0, 3.0, 3.0, -3.0, -6.0, 6.0, 6.0, -0.0, 0.0, 0.0, -inf, inf, nan, -0.0, 0.0, 0.0, -0.0, -inf,
                    inf, nan, nan, nan,
                ],
            ],
        );
    }

    #[test]
    fn integers_have_the_sign_of_the_dividend_and_0_is_an_error() {
        let a = Tensor::from([7i64, -7, 7, -7, 6, -6, 0, i64::MIN]);
        let b = Tensor::from([3i64, 3, -3, -3, 3, -3, 5, -1]);
        assert_eq!(a.fmod(&b).to_vec::<i64>(), [1, -1, 1, -1, 0, 0, 0, 0]);
        let error = a.try_fmod(0).unwrap_err().to_string();
        assert!(error.contains("fmod") && error.contains("by 0"), "{error}");
        let mixed = Tensor::from([5i64]).fmod(2.5);
        assert_eq!((mixed.dtype(), mixed.item()), (DType::F32, 0.0));
        let t = Tensor::from([true]);
        assert!(t.try_fmod(&t).is_err());
    }
}
