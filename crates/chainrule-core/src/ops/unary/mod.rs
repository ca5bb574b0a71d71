//! Ops on one tensor, element by element.
//!
//! A backward that is the gradient times a simple slope becomes one kernel in `slope`.

pub(super) mod abs;
pub(super) mod acos;
pub(super) mod acosh;
pub(super) mod asin;
pub(super) mod asinh;
pub(super) mod atan;
pub(super) mod atanh;
pub(super) mod bitwise_not;
pub(super) mod celu;
pub(super) mod clamp;
pub(super) mod cos;
pub(super) mod cosh;
pub(super) mod dropout;
pub(super) mod elu;
pub(super) mod erf;
pub(super) mod erfc;
pub(super) mod erfinv;
pub(super) mod exp;
pub(super) mod exp2;
pub(super) mod expm1;
pub(super) mod frac;
pub(super) mod gelu;
pub(super) mod gelu_tanh;
pub(super) mod hardsigmoid;
pub(super) mod hardswish;
pub(super) mod hardtanh;
pub(super) mod isnan;
pub(super) mod leaky_relu;
pub(super) mod log;
pub(super) mod log10;
pub(super) mod log1p;
pub(super) mod log2;
pub(super) mod log_sigmoid;
pub(super) mod logical_not;
pub(super) mod mish;
pub(super) mod nan_to_num;
pub(super) mod neg;
pub(super) mod reciprocal;
pub(super) mod relu;
pub(super) mod relu6;
pub(super) mod round;
pub(super) mod rsqrt;
pub(super) mod selu;
pub(super) mod sigmoid;
pub(super) mod sign;
pub(super) mod silu;
pub(super) mod sin;
pub(super) mod sinh;
pub(super) mod softplus;
pub(super) mod softsign;
pub(super) mod sqrt;
pub(super) mod square;
pub(super) mod tan;
pub(super) mod tanh;
pub(super) mod to_dtype;

include!(concat!(env!("OUT_DIR"), "/unary.rs"));

mod slope;

/// Runs a function that is rarely hot element by element, for f32 by way of f64: one loop for all
/// of them.
fn each(inputs: &[super::prelude::Input<'_>], out: super::prelude::Output<'_>, f: fn(f64) -> f64) {
    use super::prelude::{Input, Output};
    match (inputs, out) {
        ([Input::F32(x)], Output::F32(out)) => {
            x.data.iter().zip(out).for_each(|(&x, out)| *out = f(x.into()) as f32);
        }
        ([Input::F64(x)], Output::F64(out)) => {
            x.data.iter().zip(out).for_each(|(&x, out)| *out = f(x));
        }
        _ => unreachable!("infer admits no other dtypes"),
    }
}

/// Random f64 elements from -1 to 1 that keep away from whole and half numbers, for samples of ops
/// with steps.
fn between_steps(g: &mut super::Generator, shape: &[usize]) -> crate::Tensor {
    let step = super::prelude::between(g, -2.0, 2.0, shape).floor() * 0.5;
    step + super::prelude::between(g, 0.15, 0.35, shape)
}

/// Random f64 elements of size 0.5 to 2 and either sign, for samples that keep away from 0.
pub(in crate::ops) fn away_from_zero(g: &mut super::Generator, shape: &[usize]) -> crate::Tensor {
    let size = super::prelude::between(g, 0.5, 2.0, shape);
    let negative = super::prelude::between(g, 0.0, 1.0, shape).lt(0.5);
    negative.where_(&-&size, &size)
}

#[cfg(test)]
mod testing;
