//! Evidence: numbers that a user can compute again.

use super::case::{Case, Observed};
use super::reading::{Reading, read, sizes_of};
use super::search::Suspect;
use crate::shape::Shape;
use crate::tensor::node::Source;

/// The position where two gradients are farthest apart.
pub fn worst(right: &[f64], given: &[f64]) -> usize {
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

/// Index of element `position` of a row-major array.
pub fn index_of(mut position: usize, shape: &Shape) -> Vec<usize> {
    let mut index = vec![0; shape.rank()];
    for (place, &size) in index.iter_mut().zip(shape.iter()).rev() {
        *place = position % size.max(1);
        position /= size.max(1);
    }
    index
}

/// A number with the digits that a reader needs.
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

/// The evidence for one suspect: the first wrong gradient, in the sizes of the op.
pub(crate) fn of(case: &Case, suspect: &Suspect) -> String {
    let Some(o) = case.first_wrong() else { return String::new() };
    let mut sizes = sizes_of(&o.tensor.shape());
    if let Source::Node(node) = &suspect.place {
        for (i, input) in node.inputs.iter().enumerate() {
            let Some(meta) = input.meta() else { continue };
            let count = meta.shape.numel() as f64 / node.meta.shape.numel().max(1) as f64;
            if count > 1.0 && count.fract() == 0.0 {
                sizes.push((count, format!("how many elements of input {i} become one")));
            }
            let own = meta.shape.numel().max(1) as f64;
            let copies = node.meta.shape.numel() as f64 / own;
            if copies > 1.0 && copies.fract() == 0.0 {
                let words = format!("how often input {i} was copied when it was stretched");
                // The gradient of this input is wrong, so it comes first.
                let at = if suspect.fault.input() == Some(i) { 0 } else { sizes.len() };
                sizes.insert(at, (copies, words));
            }
            for (axis, &d) in meta.shape.iter().enumerate() {
                sizes.push((d as f64, format!("the size of axis {axis} of input {i}")));
            }
        }
    }
    let shape = o.tensor.shape();
    let found = read(&o.right, &o.given, &shape, case.closeness, &sizes);
    let at = worst(&o.right, &o.given);
    let mut texts: Vec<String> = found.iter().map(|r| r.to_string()).collect();
    if !matches!(found.first(), Some(Reading::Factor { .. })) {
        let (given, right) = (short(o.given[at]), short(o.right[at]));
        texts.insert(0, format!("at {:?} it is {given}, right is {right}", index_of(at, &shape)));
    }
    format!("the gradient of `{}`: {}", o.label, texts.join("; "))
}

/// Patterns in the numbers themselves.
pub(crate) fn readings(case: &Case, o: &Observed) -> Vec<Reading> {
    let shape = o.tensor.shape();
    read(&o.right, &o.given, &shape, case.closeness, &sizes_of(&shape))
}
