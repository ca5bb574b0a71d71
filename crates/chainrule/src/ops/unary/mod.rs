//! Ops on one tensor, element by element.
//!
//! Where the backward is the gradient times a simple slope, `slope` makes one kernel of it.

family! {
    abs
    cos
    dropout
    exp
    log
    neg
    reciprocal
    relu
    rsqrt
    sigmoid
    sin
    sqrt
    square
    tanh
    to_dtype
}

mod slope;

/// Random f64 elements of size 0.5 to 2 and either sign, for samples that keep away from 0.
fn away_from_zero(g: &mut super::Generator, shape: &[usize]) -> crate::Tensor {
    let size = super::prelude::between(g, 0.5, 2.0, shape);
    let negative = super::prelude::between(g, 0.0, 1.0, shape).lt(0.5);
    negative.where_(&-&size, &size)
}

#[cfg(test)]
mod testing;
