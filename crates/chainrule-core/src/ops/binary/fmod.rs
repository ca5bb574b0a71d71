//! `fmod`: the remainder of a division that rounds towards 0, with the sign of the dividend.

use super::floor_divide::{divisible, unsigned_rest};
use super::remainder::{Modulo, modulo_samples};
use crate::ops::prelude::*;

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
        apply(Modulo { down: false }, &[&a, &b])
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
    samples: |g| modulo_samples(g, |a, b| (a * 3.5).try_fmod(b), |a, b| a.try_fmod(b)),
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
