//! Ops on one tensor, element by element.
//!
//! Where the backward is the gradient times a simple slope, `slope` makes one kernel of it.

family! { Unary:
    abs
    acos
    acosh
    asin
    asinh
    atan
    atanh
    bitwise_not
    celu
    clamp
    cos
    cosh
    dropout
    elu
    erf
    erfc
    erfinv
    exp
    exp2
    expm1
    frac
    gelu
    gelu_tanh
    hardsigmoid
    hardswish
    hardtanh
    isnan
    leaky_relu
    log
    log10
    log1p
    log2
    log_sigmoid
    logical_not
    mish
    nan_to_num
    neg
    reciprocal
    relu
    relu6
    round
    rsqrt
    selu
    sigmoid
    sign
    silu
    sin
    sinh
    softplus
    softsign
    sqrt
    square
    tan
    tanh
    to_dtype
}

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
