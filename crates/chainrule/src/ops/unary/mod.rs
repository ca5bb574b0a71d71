//! Ops on one tensor, element by element.
//!
//! Where the backward is the gradient times a simple slope, `slope` makes one kernel of it.

mod abs;
mod cos;
mod exp;
mod log;
mod neg;
mod reciprocal;
mod relu;
mod rsqrt;
mod sigmoid;
mod sin;
mod slope;
mod sqrt;
mod square;
mod tanh;
mod to_dtype;

use super::Entry;

pub(super) const TABLE: &[&Entry] = &[
    &abs::ENTRY,
    &cos::ENTRY,
    &exp::ENTRY,
    &log::ENTRY,
    &neg::ENTRY,
    &reciprocal::ENTRY,
    &relu::ENTRY,
    &rsqrt::ENTRY,
    &sigmoid::ENTRY,
    &sin::ENTRY,
    &sqrt::ENTRY,
    &square::ENTRY,
    &tanh::ENTRY,
    &to_dtype::ENTRY,
];

/// Random f64 elements of size 0.5 to 2 and either sign, for samples that keep away from 0.
fn away_from_zero(g: &mut super::Generator, shape: &[usize]) -> crate::Tensor {
    let size = super::prelude::between(g, 0.5, 2.0, shape);
    let negative = super::prelude::between(g, 0.0, 1.0, shape).lt(0.5);
    negative.where_(&-&size, &size)
}

#[cfg(test)]
mod testing;
