//! Whether two runs agree up to the rounding that the plain one shows.

use std::sync::Arc;

use super::twin::{Twin, numbers};
use crate::dtype::DType;
use crate::tensor::value::Value;

/// Bound of a difference relative to the measured rounding error of an array: other orders of
/// summation, and luck in what was measured.
///
/// In f32 the error itself is known, in f64 how far roundings move it, which is rather more than it
/// is.
const SLACK_F32: f64 = 16.0;
const SLACK_F64: f64 = 4.0;

/// Bound of the steps' share in f64, in roundings of the largest element of the array: a result of
/// rounding alone runs plain.
const STEPS: f64 = 12.0;

/// Roundings that count in any case, relative to the largest element of the array.
const ROUNDINGS: f64 = 16.0;

/// The same for the largest of all arrays of a kind: a difference that no array of a size would
/// notice is not one.
const SLACK_OF_ALL: f64 = 8.0;
const ROUNDINGS_OF_ALL: f64 = 16.0;

/// A root that parts.
pub(super) struct Apart {
    /// Number of the root.
    pub root: usize,
    pub by: f64,
    pub size: f64,
    pub allowed: f64,
}

/// An array of the plain program: its size, and how far rounding moves it.
#[derive(Clone, Copy, Default)]
struct Reference {
    size: f64,
    rounding: f64,
    unit: f64,
    slack: f64,
}

/// The root that parts the most, if any does.
pub(super) fn apart(new: &[Arc<Value>], twin: &Twin) -> Option<Apart> {
    let of = |runs: &'_ [Vec<Arc<Value>>], i: usize| runs.iter().map(|r| r[i].clone()).collect();
    let known: Vec<Reference> = (0..new.len())
        .map(|i| known(&twin.plain[i], of(&twin.others, i), of(&twin.stepped, i)))
        .collect();
    let most = |f: fn(&Reference) -> f64| known.iter().map(f).fold(0.0, f64::max);
    let largest = most(|k| k.size);
    let of_all = most(|k| SLACK_OF_ALL * k.rounding + k.unit * ROUNDINGS_OF_ALL * k.size);
    let all = known.iter().enumerate().filter_map(|(root, k)| {
        // An array of zeros has no size of its own; one that is zero in every run is zero for a
        // reason.
        let own = match () {
            _ if k.size > 0.0 => ROUNDINGS * k.size,
            _ if k.rounding > 0.0 => largest,
            _ => 0.0,
        };
        let allowed = (k.slack * k.rounding + k.unit * own).min(of_all);
        let by = distance(&new[root], &twin.plain[root]);
        (by > allowed).then_some(Apart { root, by, size: k.size, allowed })
    });
    all.max_by(|a, b| (a.by / a.allowed).total_cmp(&(b.by / b.allowed)))
}

/// The least of the differences from the other runs: in f64 one of them may be far off by bad luck,
/// and that is no leave to be. If the steps of the program round more than its inputs do, the
/// larger difference from the runs that tell counts, within bounds.
fn known(plain: &Value, others: Vec<Arc<Value>>, stepped: Vec<Arc<Value>>) -> Reference {
    if !plain.dtype().is_float() {
        return Reference::default();
    }
    let (unit, slack) = match plain.dtype() {
        DType::F32 => (f64::from(f32::EPSILON), SLACK_F32),
        _ => (f64::EPSILON, SLACK_F64),
    };
    let (own, size) = (numbers(plain), size(plain));
    let apart = |other: Arc<Value>| largest_difference(&numbers(&other), &own);
    let inputs = others.into_iter().map(apart).reduce(f64::min).unwrap_or(0.0);
    let steps = stepped.into_iter().map(apart).fold(0.0, f64::max);
    let rounding = inputs.max(steps.min(STEPS * unit * size));
    Reference { size, rounding, unit, slack }
}

/// The largest difference of elements that are finite in both.
fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Distance of the values at elements where the plain one is finite: an overflow is no reference.
fn distance(new: &Value, plain: &Value) -> f64 {
    if !plain.dtype().is_float() {
        return if bytes(new) == bytes(plain) { 0.0 } else { f64::INFINITY };
    }
    let (new, plain) = (numbers(new), numbers(plain));
    let lost = |(new, plain): (&f64, &f64)| plain.is_finite() && !new.is_finite();
    match new.iter().zip(&plain).any(lost) {
        true => f64::INFINITY,
        false => largest_difference(&new, &plain),
    }
}

/// The largest finite element.
fn size(value: &Value) -> f64 {
    if !value.dtype().is_float() {
        return 0.0;
    }
    numbers(value).into_iter().map(f64::abs).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

fn bytes(value: &Value) -> Vec<i64> {
    match value.dtype() {
        DType::I64 => {
            let mut out = vec![0i64; value.numel()];
            value.copy_to(&mut out);
            out
        }
        DType::Bool => {
            let mut out = vec![0u8; value.numel()];
            value.copy_to(&mut out);
            out.into_iter().map(i64::from).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::Tensor;

    /// Whether a number that is off by this many roundings parts, where the steps of the plain
    /// program move it by this many.
    fn parts(off: f64, stepped: &[f64]) -> bool {
        let one = |by: f64| vec![Tensor::from([1.0 + by * f64::EPSILON, 0.5]).value()];
        let stepped = stepped.iter().map(|by| one(*by)).collect();
        let twin = Twin { plain: one(0.0), others: vec![one(0.0); 2], stepped };
        apart(&one(off), &twin).is_some()
    }

    /// A gradient that is exactly zero stays so: an optimizer may divide by its size.
    #[test]
    fn zeros_in_every_run_stay_zeros() {
        let values = |x: f64| vec![Tensor::from([1.0, 2.0]).value(), Tensor::from([x]).value()];
        let twin = |x| Twin { plain: values(0.0), others: vec![values(x); 2], stepped: vec![] };
        assert_eq!(apart(&values(1e-18), &twin(0.0)).map(|apart| apart.root), Some(1));
        assert!(apart(&values(0.0), &twin(0.0)).is_none());
        assert!(apart(&values(1e-18), &twin(1e-18)).is_none());
    }

    #[test]
    fn the_rounding_of_steps_counts_within_bounds() {
        assert!(!parts(15.0, &[]) && parts(17.0, &[]));
        assert!(!parts(30.0, &[1.0, 5.0]) && parts(40.0, &[1.0, 5.0]));
        assert!(!parts(60.0, &[1e6, 1e9]) && parts(70.0, &[1e6, 1e9]));
        assert!(parts(f64::NAN, &[1e6, 1e9]));
    }
}
