//! Ops on two or three tensors, element by element, with broadcasting. The operators `+ - * / -`
//! are here too.
//!
//! The rules give gradients of the output's shape; the walker sums them over broadcast axes.

family! { Binary:
    add
    atan2
    bitwise
    clamp_tensors
    compare
    copysign
    div
    floor_divide
    fmod
    hypot
    isclose
    lerp
    logaddexp
    logical
    maximum
    minimum
    mul
    pow
    remainder
    sub
    where_
}

mod operators;
#[cfg(test)]
mod testing;

#[doc(hidden)]
pub use add::add_values;
pub(in crate::ops) use clamp_tensors::clamp_tensors;
