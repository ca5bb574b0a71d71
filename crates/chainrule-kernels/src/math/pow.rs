//! Powers over slices.
//!
//! The special cases are C99's: 0^0 and NaN^0 are 1, a negative base takes an integer exponent and
//! is NaN with any other, and a root of -0 or minus infinity is positive. (PyTorch's root of minus
//! infinity, `x ** 0.5`, is NaN.)

use super::{Real, map, map2, vectorized};

/// The exponents that have a loop of their own; the choice is made once for a whole slice.
#[derive(Clone, Copy)]
enum Exponent<T> {
    Zero,
    One,
    Two,
    Three,
    Half,
    MinusOne,
    MinusTwo,
    MinusHalf,
    Other(T),
}

impl<T: Real> Exponent<T> {
    fn of(e: T) -> Self {
        match e.to_f64() {
            0.0 => Self::Zero,
            1.0 => Self::One,
            2.0 => Self::Two,
            3.0 => Self::Three,
            0.5 => Self::Half,
            -1.0 => Self::MinusOne,
            -2.0 => Self::MinusTwo,
            -0.5 => Self::MinusHalf,
            _ => Self::Other(e),
        }
    }
}

/// The square root as C99's `pow` has it: `sqrt` differs at -0 and at minus infinity.
#[inline(always)]
fn root<T: Real>(x: T) -> T {
    let y = (x + T::ZERO).sqrt();
    if x == -T::INFINITY { T::INFINITY } else { y }
}

#[inline(always)]
fn pow_splat_body<const FMA: bool, T: Real>(x: &[T], e: T, out: &mut [T]) {
    match Exponent::of(e) {
        Exponent::Zero => out.fill(T::ONE),
        Exponent::One => out.copy_from_slice(x),
        Exponent::Two => map(x, out, |x| x * x),
        Exponent::Three => map(x, out, |x| x * x * x),
        Exponent::Half => map(x, out, root),
        Exponent::MinusOne => map(x, out, |x| T::ONE / x),
        // Not 1 / (x * x), whose square leaves the range long before the result does.
        Exponent::MinusTwo => map(x, out, |x| {
            let inverse = T::ONE / x;
            inverse * inverse
        }),
        Exponent::MinusHalf => map(x, out, |x| T::ONE / root(x)),
        Exponent::Other(e) => map(x, out, |x| x.powf(e)),
    }
}

#[inline(always)]
fn pow_body<const FMA: bool, T: Real>(x: &[T], e: &[T], out: &mut [T]) {
    map2(x, e, out, |x, e| x.powf(e));
}

vectorized! {
    /// `out = x ^ e` with one exponent: 0, 1, 2, 3, -1, -2, 0.5 and -0.5 without a call of the
    /// power function.
    pub fn pow_splat[T](x: &[T], e: T, out: &mut [T]) where [T: Real] = pow_splat_body
}
vectorized! {
    /// `out = x ^ e`, element by element.
    pub fn pow[T](x: &[T], e: &[T], out: &mut [T]) where [T: Real] = pow_body
}
