//! `remainder`: the remainder of a division that rounds down, with the sign of the divisor.

use std::ops::Rem;

use super::floor_divide::{divisible, unsigned_rest};
use crate::kernels::math::Real;
use crate::ops::prelude::*;

/// The remainder of a division whose quotient rounds down, or towards 0.
#[derive(Clone, Copy, Debug, Parameters)]
pub(super) struct Modulo {
    pub down: bool,
}

impl Modulo {
    /// The quotient as it rounds.
    fn whole(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        if self.down { a.try_floor_divide(b) } else { a.try_div(b)?.try_trunc() }
    }

    /// The same in another way. Rounding down: the number of times `b` fits into `a` follows from
    /// the result, `(a - y) / b`; where that is not finite, beside an infinity or a division by 0,
    /// the quotient decides. Rounding towards 0: down where the quotient is positive, up where it
    /// is negative.
    fn whole_again(self, a: &Tensor, b: &Tensor, y: &Tensor) -> Result<Tensor> {
        if self.down {
            let read = (a - y).try_div(b)?;
            let readable = read.try_abs()?.try_lt(f64::INFINITY)?;
            return readable.try_where(&read, a.try_floor_divide(b)?);
        }
        let quotient = a.try_div(b)?;
        quotient.try_gt(0)?.try_where(&quotient.try_floor()?, quotient.try_ceil()?)
    }
}

impl Op for Modulo {
    fn name(&self) -> &'static str {
        if self.down { "remainder" } else { "fmod" }
    }

    fn id(&self) -> Option<OpId> {
        Some(if self.down { OpId::remainder } else { OpId::fmod })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(if self.down { "np.remainder({0}, {1})" } else { "np.fmod({0}, {1})" }.into())
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

    /// `a - b * whole`, whose last factor is constant between its jumps.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let db = wanted.get(1).then(|| {
            let whole = self.whole(&at.input(0).detach(), &at.input(1).detach())?;
            cotangent.try_mul(whole.try_neg()?)
        });
        Ok(smallvec![Some(cotangent.clone()), db.transpose()?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let by_b = tangents[1].as_ref().map(|db| {
            let (a, b, y) = (at.input(0).detach(), at.input(1).detach(), at.output().detach());
            db.try_mul(self.whole_again(&a, &b, &y)?)
        });
        match (&tangents[0], by_b.transpose()?) {
            (Some(da), Some(by_b)) => da.try_sub(by_b),
            (Some(da), None) => da.try_expand(at.output_meta().shape),
            (None, Some(by_b)) => by_b.try_neg(),
            (None, None) => unreachable!("at least one tangent is given"),
        }
    }
}

/// `%` has the sign of the dividend; where that is not the divisor's, one divisor is added.
fn rest<T: Real + Rem<Output = T>>(a: T, b: T) -> T {
    let rest = a % b;
    if rest != T::ZERO && (b < T::ZERO) != (rest < T::ZERO) { rest + b } else { rest }
}

/// The result of `%`; 0 for 0 modulo 0, which [`divisible`] rejects, so that it does not panic.
fn integer_rest(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

impl MapKernel for Modulo {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        if !self.down {
            return tile!(inputs, n, out;
                F32, F32 => F32: |a, b| a % b;
                F64, F64 => F64: |a, b| a % b;
                I64, I64 => I64: integer_rest;
            );
        }
        tile!(inputs, n, out;
            F32, F32 => F32: rest;
            F64, F64 => F64: rest;
            I64, I64 => I64: |a, b| {
                let rest = integer_rest(a, b);
                if rest != 0 && (b < 0) != (rest < 0) { rest + b } else { rest }
            };
        )
    }
}

methods! {
    /// The remainder of division with rounding down: `a - b * floor(a / b)`, Python's `a % b`, with
    /// the sign of `b`. Broadcasts; for f32, f64 and i64.
    ///
    /// An integer modulo 0 is an error, a float NaN. The remainder with the sign of `a` is
    /// [`Tensor::fmod`]. Gradient: `da = g`, `db = -g * floor(a / b)`, as between the jumps.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([7i64, -7]).remainder(3).to_vec::<i64>(), [1, 2]);
    /// assert_eq!(Tensor::from([7.5f32, -7.5]).remainder(-2.0).to_vec::<f32>(), [-0.5, -1.5]);
    /// ```
    pub fn remainder / try_remainder<T: IntoTensor>(&self, other: T) -> Tensor {
        let (a, b) = divisible("remainder", self, other)?;
        if a.dtype() == DType::U64 {
            return unsigned_rest(&a, &b);
        }
        apply(Modulo { down: true }, &[&a, &b])
    }
}

/// Samples of a remainder: those of every binary op at quotients from 3.2 to 3.9, away from the
/// jumps, where `scaled` is `call` on 3.5 times the dividend; all signs; and a jump.
pub(super) fn modulo_samples(
    g: &mut Generator,
    scaled: fn(&Tensor, &Tensor) -> Result<Tensor>,
    call: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Vec<Sample> {
    let mut samples = binary_samples(g, |g, s| between(g, 1.0, 1.1, s), scaled);
    let signs = vec![
        Tensor::from([7.5f64, -7.5, 7.5, -7.5, 0.5]),
        Tensor::from([2.0f64, 2.0, -2.0, -2.0, -3.0]),
    ];
    samples.push(Sample::new("all signs", signs, move |x| call(&x[0], &x[1])));
    let jump = vec![Tensor::from([6.0f64]), Tensor::from([3.0f64])];
    samples.push(Sample::new("a jump", jump, move |x| call(&x[0], &x[1])).at_kink());
    samples
}

pub(super) const ENTRY: Entry = Entry {
    name: "remainder",
    family: Family::Binary,
    signature: "a.remainder(&b)",
    python: &[Binding::two("remainder", |a, b| a.try_remainder(b))],
    formula: "a - b * floor(a / b)",
    gradient: "da = g; db = -g * floor(a / b)",
    at_kinks: "at a jump the gradients are those of either side; an integer modulo 0 is an error, a float NaN",
    samples: |g| modulo_samples(g, |a, b| (a * 3.5).try_remainder(b), |a, b| a.try_remainder(b)),
    mistakes: &[
        Mistake {
            name: "divisor taken for a constant",
            what: "the divisor gets no gradient",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), None]),
        },
        Mistake {
            name: "quotient not rounded",
            what: "the gradient of b is -g * a / b, without rounding down",
            rule: |_, at, g, _| {
                let quotient = at.input(0).try_div(at.input(1))?;
                Ok(smallvec![Some(g.clone()), Some(-(g * quotient))])
            },
        },
        Mistake {
            name: "rounded towards 0",
            what: "the quotient was rounded towards 0, as in fmod",
            rule: |_, at, g, _| {
                let quotient = at.input(0).try_div(at.input(1))?.try_trunc()?;
                Ok(smallvec![Some(g.clone()), Some(-(g * quotient))])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::{QUOTIENTS, check_edges};
    use crate::{DType, Tensor, autograd};

    /// PyTorch's values for [`QUOTIENTS`] that are the same in f32: without the dividends next to a
    /// multiple of 0.1.
    #[test]
    #[rustfmt::skip]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let [a, b] = QUOTIENTS.map(|q| q[..22].to_vec());
        check_edges(
            |a, b| a.remainder(b),
            [&a, &b],
            &[
                2.0, 1.0, -1.0, -2.0, 0.0, -0.0, 0.0, 0.0, -0.0, 0.0, nan, nan, nan, 1.0, inf, -inf, -1.0, nan, nan,
                nan, nan, nan,
            ],
            [
                &[3.0; 22],
                &[
                    -3.0, 6.0, 6.0, -3.0, -6.0, 6.0, 6.0, -0.0, 0.0, 0.0, -inf, inf, nan, -0.0, 3.0, 3.0, -0.0, nan,
                    nan, nan, nan, nan,
                ],
            ],
        );
    }

    #[test]
    fn next_to_a_multiple_the_quotient_is_that_of_the_remainder() {
        // Values of PyTorch, where 1 / 0.1 rounds up to 10.
        let a = Tensor::from([1.0f64, -1.0, 0.3]);
        let b = Tensor::from([0.1f64, 0.1, 0.1]).parameter();
        let y = a.remainder(&b);
        assert_eq!(
            y.to_vec::<f64>(),
            [0.09999999999999995, 5.551115123125783e-17, 0.09999999999999998]
        );
        y.sum_all().backward();
        assert_eq!(b.grad().unwrap().to_vec::<f64>(), [-9.0, 10.0, -2.0]);
        let one = [b.detach().ones_like()];
        let (_, tangent) = autograd::jvp(|b| a.remainder(&b[0]), &[b.detach()], &one).unwrap();
        let close = |(got, want): (&f64, f64)| (got - want).abs() < 1e-14;
        assert!(tangent.to_vec::<f64>().iter().zip([-9.0, 10.0, -2.0]).all(close));
    }

    #[test]
    fn integers_have_the_sign_of_the_divisor_and_0_is_an_error() {
        let a = Tensor::from([7i64, -7, 7, -7, 6, -6, 0, i64::MIN]);
        let b = Tensor::from([3i64, 3, -3, -3, 3, -3, 5, -1]);
        assert_eq!(a.remainder(&b).to_vec::<i64>(), [1, 2, -2, -1, 0, 0, 0, 0]);
        let error = a.try_remainder(0).unwrap_err().to_string();
        assert!(error.contains("remainder") && error.contains("by 0"), "{error}");
        let mixed = Tensor::from([5i64]).remainder(2.5);
        assert_eq!((mixed.dtype(), mixed.item()), (DType::F32, 0.0));
        let t = Tensor::from([true]);
        assert_eq!(t.remainder(2).to_vec::<i64>(), [1]);
        assert!(t.try_remainder(&t).is_err());
    }
}
