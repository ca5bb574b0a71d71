//! Numbers that a user can compute again.

use super::case::{Case, Observed};
use super::search::Suspect;
use crate::shape::Shape;

/// The position where two gradients are farthest apart.
pub(crate) fn worst(right: &[f64], given: &[f64]) -> usize {
    let apart = |(r, g): (&f64, &f64)| if r == g { 0.0 } else { (r - g).abs() };
    let mut found = (0.0, 0);
    for (i, pair) in right.iter().zip(given).enumerate() {
        let apart = apart(pair);
        if apart > found.0 || (apart.is_nan() && !f64::is_nan(found.0)) {
            found = (apart, i);
        }
    }
    found.1
}

/// Where element `position` of a row-major array is.
pub(crate) fn index_of(mut position: usize, shape: &Shape) -> Vec<usize> {
    let mut index = vec![0; shape.rank()];
    for (place, &size) in index.iter_mut().zip(shape.iter()).rev() {
        *place = position % size.max(1);
        position /= size.max(1);
    }
    index
}

/// A number with as many digits as a reader wants.
pub(crate) fn short(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) {
        let digits = (5 - x.abs().max(1e-300).log10().floor() as i32).clamp(0, 9) as usize;
        let text = format!("{x:.digits$}");
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        };
    }
    format!("{x:.4e}")
}

/// The evidence for one suspect.
pub(crate) fn of(case: &Case, _suspect: &Suspect) -> String {
    let Some(o) = case.first_wrong() else { return String::new() };
    let at = worst(&o.right, &o.given);
    let index = index_of(at, &o.tensor.shape());
    let (g, r) = (o.given[at], o.right[at]);
    format!(
        "the given d({}){index:?} = {}, the right one {}; their ratio is {}",
        o.label,
        short(g),
        short(r),
        short(g / r)
    )
}

/// What the numbers show by themselves.
pub(crate) fn readings(_o: &Observed) -> Vec<String> {
    Vec::new()
}
