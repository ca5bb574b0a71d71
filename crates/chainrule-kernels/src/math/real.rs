//! The two float types behind one trait, so that a kernel is written once.

use super::{erf, normal, pow, scalar, trig};
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// f32 or f64, with the functions that kernels fuse into their loops.
///
/// For f32 the functions are the vectorising ones of this module; for f64 those of the standard
/// library, and for the error function, which it lacks, those of [`erf`].
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + std::fmt::Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Below this size [`Real::sin`] and [`Real::cos`] are accurate.
    const TRIG_LIMIT: Self;

    /// The nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// The same value as an f64.
    fn to_f64(self) -> f64;
    /// The size without the sign.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The power, with the special cases of C99's `pow`.
    fn pow<const FMA: bool>(self, exponent: Self) -> Self;
    /// `self * b + c`, fused where that is one instruction.
    fn mul_add<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// e to this power.
    fn exp<const FMA: bool>(self) -> Self;
    /// 2 to this power.
    fn exp2<const FMA: bool>(self) -> Self;
    /// e to this power, less 1: accurate near 0.
    fn expm1<const FMA: bool>(self) -> Self;
    /// The natural logarithm.
    fn log<const FMA: bool>(self) -> Self;
    /// The logarithm to base 2.
    fn log2<const FMA: bool>(self) -> Self;
    /// The logarithm to base 10.
    fn log10<const FMA: bool>(self) -> Self;
    /// The natural logarithm of 1 more than this: accurate near 0.
    fn log1p<const FMA: bool>(self) -> Self;
    /// The error function.
    fn erf<const FMA: bool>(self) -> Self;
    /// 1 less the error function, accurate also where that is near 1.
    fn erfc<const FMA: bool>(self) -> Self;
    /// The normal distribution function, and `e^(-x^2 / 2)`, to which the density is proportional.
    fn normal<const FMA: bool>(self) -> (Self, Self);
    /// The hyperbolic tangent.
    fn tanh<const FMA: bool>(self) -> Self;
    /// The logistic function.
    fn sigmoid<const FMA: bool>(self) -> Self;
    /// The sine, if the size is below the limit.
    fn sin<const FMA: bool>(self) -> Self;
    /// The cosine, if the size is below the limit.
    fn cos<const FMA: bool>(self) -> Self;
}

macro_rules! real {
    ($t:ty, $limit:expr, $normal:expr, $pow:expr; $($name:ident => $function:expr;)*) => {
        impl Real for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const INFINITY: $t = <$t>::INFINITY;
            const TRIG_LIMIT: $t = $limit;

            #[inline(always)]
            fn from_f64(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn pow<const FMA: bool>(self, exponent: $t) -> $t {
                $pow(self, exponent)
            }
            #[inline(always)]
            fn mul_add<const FMA: bool>(self, b: $t, c: $t) -> $t {
                if FMA { <$t>::mul_add(self, b, c) } else { self * b + c }
            }
            #[inline(always)]
            fn normal<const FMA: bool>(self) -> ($t, $t) {
                $normal(self)
            }
            $(
                #[inline(always)]
                fn $name<const FMA: bool>(self) -> $t {
                    $function(self)
                }
            )*
        }
    };
}

real! { f32, trig::TRIG_LIMIT, normal::normal_f32::<FMA>, pow::pow_f32::<FMA>;
    exp => scalar::exp_f32::<FMA>;
    exp2 => scalar::exp2_f32::<FMA>;
    expm1 => scalar::expm1_f32::<FMA>;
    log => scalar::log_f32::<FMA>;
    log2 => scalar::log2_f32::<FMA>;
    log10 => scalar::log10_f32::<FMA>;
    log1p => scalar::log1p_f32::<FMA>;
    erf => erf::erf_f32::<FMA>;
    erfc => erf::erfc_f32::<FMA>;
    tanh => scalar::tanh_f32::<FMA>;
    sigmoid => scalar::sigmoid_f32::<FMA>;
    sin => trig::sin_f32::<FMA>;
    cos => trig::cos_f32::<FMA>;
}

real! { f64, f64::INFINITY, normal::normal_f64, f64::powf;
    exp => f64::exp;
    exp2 => f64::exp2;
    expm1 => f64::exp_m1;
    log => f64::ln;
    log2 => f64::log2;
    log10 => f64::log10;
    log1p => f64::ln_1p;
    erf => erf::erf_f64;
    erfc => erf::erfc_f64;
    tanh => f64::tanh;
    sigmoid => sigmoid_f64;
    sin => f64::sin;
    cos => f64::cos;
}

/// 1 / (1 + e^-x), by way of e^-|x|.
#[inline(always)]
fn sigmoid_f64(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}
