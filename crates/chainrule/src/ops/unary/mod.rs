//! Ops on one tensor, element by element.
//!
//! Where the backward is the gradient times a simple slope, `slope` makes one kernel of it.

family! {
    abs
    celu
    clamp
    cos
    elu
    exp
    gelu_tanh
    hardtanh
    leaky_relu
    log_sigmoid
    log
    mish
    neg
    reciprocal
    relu
    relu6
    rsqrt
    selu
    sigmoid
    silu
    sin
    softplus
    softsign
    sqrt
    square
    tanh
    to_dtype
}

mod slope;

/// Random f64 elements of size 0.5 to 2 and either sign, for samples that keep away from 0.
pub(in crate::ops) fn away_from_zero(g: &mut super::Generator, shape: &[usize]) -> crate::Tensor {
    let size = super::prelude::between(g, 0.5, 2.0, shape);
    let negative = super::prelude::between(g, 0.0, 1.0, shape).lt(0.5);
    negative.where_(&-&size, &size)
}

#[cfg(test)]
mod testing;
