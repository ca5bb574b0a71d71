//! `floor_divide`: the quotient rounded down, element by element.

use std::ops::Rem;

use crate::kernels::math::Real;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct FloorDivide;

impl Op for FloorDivide {
    elementwise!(floor_divide, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.floor_divide({0}, {1})".into())
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

/// The operands in their common dtype. An integer divided by 0 is an error.
pub(super) fn divisible<T: IntoTensor>(
    op: &'static str,
    a: &Tensor,
    b: T,
) -> Result<(Tensor, Tensor)> {
    let b = b.into_tensor(a)?;
    let dtype = a.dtype().promote(b.dtype());
    let (a, b) = (a.try_to_dtype(dtype)?, b.try_to_dtype(dtype)?);
    if dtype.is_integer() && a.numel() != 0 {
        b.catch_up()?;
        log::check_read(op, &b.value_ref())?;
        let divisors = b.widened()?.value().contiguous()?;
        let divisors = divisors.slice::<i64>().expect("made contiguous");
        if divisors.contains(&0) {
            let why =
                "an integer divided by 0; convert with to_dtype, which gives infinities and NaN";
            return Err(Error::argument(op, why));
        }
    }
    Ok((a, b))
}

/// The quotient of floats rounded down, by way of the remainder, so that it is exact where a
/// division would round up to the next whole number.
fn floored<T: Real + Rem<Output = T>>(a: T, b: T) -> T {
    if b == T::ZERO {
        return a / b;
    }
    let rest = a % b;
    let mut whole = (a - rest) / b;
    if rest != T::ZERO && (b < T::ZERO) != (rest < T::ZERO) {
        whole -= T::ONE;
    }
    if whole == T::ZERO {
        // A zero with the sign of the quotient.
        return T::from_f64(0.0f64.copysign((a / b).to_f64()));
    }
    // `whole` is an integer up to the rounding of the division.
    let down = T::from_f64(whole.to_f64().floor());
    if whole - down > T::from_f64(0.5) { down + T::ONE } else { down }
}

/// Defines 0 divided by 0, which [`divisible`] rejects, so that it does not panic.
fn floored_integer(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let (whole, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    if rest != 0 && (rest < 0) != (b < 0) { whole - 1 } else { whole }
}

/// The quotient of u64, of which kernels know the lower half as i64: that of half the dividend,
/// doubled, and 1 more where the rest allows it. A divisor of the upper half goes once or not at
/// all.
pub(super) fn unsigned_quotient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let half = apply(FloorDivide, &[&a.try_bitwise_right_shift(1)?, b])?;
    let low = b.try_le(i64::MAX)?;
    let whole = low.try_where(&half.try_mul(2)?, 0)?;
    let rest = a.try_sub(&whole.try_mul(b)?)?;
    whole.try_add(&rest.try_ge(b)?.try_to_dtype(DType::U64)?)
}

/// The rest that [`unsigned_quotient`] leaves.
pub(super) fn unsigned_rest(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.try_sub(&unsigned_quotient(a, b)?.try_mul(b)?)
}

impl MapKernel for FloorDivide {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        tile!(inputs, n, out;
            F32, F32 => F32: floored;
            F64, F64 => F64: floored;
            I64, I64 => I64: floored_integer;
        )
    }
}

methods! {
    /// The quotient `a / b` rounded down, Python's `a // b`, element by element with broadcasting.
    /// For f32, f64 and i64.
    ///
    /// It goes with [`Tensor::remainder`]: `a = b * floor_divide(a, b) + remainder(a, b)`. An
    /// integer divided by 0 is an error, a float an infinity or NaN. No gradient flows.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([7i64, -7]).floor_divide(2).to_vec::<i64>(), [3, -4]);
    /// ```
    pub fn floor_divide / try_floor_divide<T: IntoTensor>(&self, other: T) -> Tensor {
        let (a, b) = divisible("floor_divide", self, other)?;
        if a.dtype() == DType::U64 {
            return unsigned_quotient(&a, &b);
        }
        apply(FloorDivide, &[&a, &b])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "floor_divide",
    family: Family::Binary,
    signature: "a.floor_divide(&b)",
    python: &[Binding::two("floor_divide", |a, b| a.try_floor_divide(b))],
    formula: "floor(a / b)",
    gradient: "",
    at_kinks: "an integer divided by 0 is an error, a float an infinity or NaN; no gradient flows",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::super::testing::QUOTIENTS;
    use crate::{DType, Tensor};

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        #[rustfmt::skip]
        let want = [
            1.0, -2.0, -2.0, 1.0, 2.0, -2.0, -2.0, 0.0, -0.0, -0.0, inf, -inf, nan, 0.0, -1.0, -1.0, 0.0, nan, nan,
            nan, nan, nan, 9.0, -10.0, 2.0, 0.0, -0.0, -inf,
        ];
        let [a, b] = QUOTIENTS.map(Tensor::from);
        let got = a.floor_divide(&b).to_vec::<f64>();
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{} by {}: {got}, not {want}", QUOTIENTS[0][i], QUOTIENTS[1][i]);
        }
    }

    #[test]
    fn integers_round_down_and_0_is_an_error() {
        let a = Tensor::from([7i64, -7, 7, -7, 6, -6, 0, i64::MIN]);
        let b = Tensor::from([3i64, 3, -3, -3, 3, -3, 5, -1]);
        assert_eq!(a.floor_divide(&b).to_vec::<i64>(), [2, -3, -3, 2, 2, 2, 0, i64::MIN]);
        for zero in [Tensor::from([1i64, 0]), Tensor::scalar(0i64), Tensor::scalar(false)] {
            let error = Tensor::from([1i64, 2]).try_floor_divide(&zero).unwrap_err().to_string();
            assert!(error.contains("floor_divide") && error.contains("by 0"), "{error}");
        }
        let none = Tensor::from_slice::<i64>(&[], [0]);
        assert_eq!(none.floor_divide(0).numel(), 0);
        let mixed = Tensor::from([5i64]).floor_divide(2.5);
        assert_eq!((mixed.dtype(), mixed.item()), (DType::F32, 2.0));
        let t = Tensor::from([true]);
        assert!(t.try_floor_divide(&t).is_err());
        assert!(!Tensor::from([1.0f32]).parameter().floor_divide(2.0).requires_grad());
    }
}
