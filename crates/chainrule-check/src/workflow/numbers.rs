//! Numbers of values: sums along axes, comparisons.

use std::collections::HashSet;
use std::sync::Arc;

use crate::tensor::Tensor;
use crate::tensor::node::Source;
use crate::tensor::value::Value;

/// The elements as f64, row-major.
pub(super) fn all(value: &Arc<Value>) -> Vec<f64> {
    Tensor::from_parts(value.clone(), Source::None).to_f64_vec()
}

/// Tolerance of sums and shares for rounding.
pub(super) const CLOSE: f64 = 1e-3;

/// The sums along an axis, row-major over the others.
pub(super) fn sums(value: &Arc<Value>, axis: usize) -> Vec<f64> {
    let shape = *value.shape();
    let (count, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let outer: usize = shape[..axis].iter().product();
    let x = all(value);
    let mut out = vec![0.0; outer * inner];
    for o in 0..outer {
        for k in 0..count {
            for i in 0..inner {
                out[o * inner + i] += x[(o * count + k) * inner + i];
            }
        }
    }
    out
}

/// The sum along an axis that is farthest from 1. Rows that are not finite do not count.
pub(super) fn farthest_from_one(value: &Arc<Value>, axis: usize) -> f64 {
    let sums = sums(value, axis).into_iter().filter(|s| s.is_finite());
    sums.fold(1.0, |worst: f64, s| if (s - 1.0).abs() > (worst - 1.0).abs() { s } else { worst })
}

/// Whether the elements are probabilities along an axis: from 0 to 1, with sums of 1.
pub(super) fn are_probabilities(value: &Arc<Value>, axis: usize) -> bool {
    if value.numel() == 0 || value.shape()[axis] < 2 {
        return false;
    }
    let x = all(value);
    x.iter().all(|&p| (-1e-6..=1.0 + 1e-6).contains(&p))
        && sums(value, axis).iter().all(|s| (s - 1.0).abs() < 1e-5)
}

/// Whether two values of one dtype have the same elements in the same order, be their shapes what
/// they may.
pub(super) fn same_numbers(a: &Arc<Value>, b: &Arc<Value>) -> bool {
    Arc::ptr_eq(a, b)
        || (a.numel() == b.numel() && a.dtype() == b.dtype() && a.numel() > 1 && all(a) == all(b))
}

/// Whether a value has more than two different elements: fewer are a mask or a start.
pub(super) fn varied(value: &Arc<Value>) -> bool {
    let different: HashSet<u64> = all(value).into_iter().map(f64::to_bits).collect();
    different.len() > 2
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub(super) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The size of `a - b` in terms of that of `b`.
pub(super) fn apart(a: &[f64], b: &[f64]) -> f64 {
    let off = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
    off / norm(b).max(f64::MIN_POSITIVE)
}
