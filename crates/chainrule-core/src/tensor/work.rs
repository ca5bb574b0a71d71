//! Operations on numbers that ops take, by the rules of
//! `Program::cost`.

use crate::shape::Shape;

/// A fixed number of operations for each element of the first operand or of the result, whichever
/// has more.
pub fn each(steps: u64, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
    let first = inputs.first().map_or(0, Shape::numel);
    Some(steps * first.max(outputs[0].numel()) as u64)
}

/// The size of the last axis.
pub(crate) fn last(shape: &Shape) -> u64 {
    shape.last().map_or(1, |d| *d as u64)
}

/// The elements of a shape.
pub(crate) fn numel(shape: &Shape) -> u64 {
    shape.numel() as u64
}

/// For each of a stack of square matrices `n^3`.
#[cfg(feature = "linalg")]
pub(crate) fn cubes(matrices: &Shape) -> u64 {
    let n = last(matrices);
    numel(matrices) / (n * n).max(1) * n * n * n
}

/// A comparison for each bit of the number of elements.
pub(crate) fn sorting(shape: &Shape) -> u64 {
    numel(shape) * u64::from(64 - numel(shape).leading_zeros())
}
