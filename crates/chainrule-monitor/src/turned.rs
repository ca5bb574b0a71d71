//! Gradients that something changed between the backward pass and the update.

use chainrule_core::kernels::moments::dot;
use chainrule_core::tensor::Tensor;

use crate::monitor::Monitor;
use crate::numbers::{Numbers, with};

/// The cosine below which a gradient points the other way.
const AGAINST: f64 = -0.5;

impl Monitor {
    /// Compares the gradients after the backward pass with those of the update, if they differ:
    /// they were clipped, scaled or reversed. Both lists have the parameters in one order.
    pub fn changed_gradients(&mut self, before: &[Tensor], after: &[Tensor]) {
        let (was, is) = (Monitor::norm(before), Monitor::norm(after));
        self.clipped(was, is);
        let along: f64 = before.iter().zip(after).map(|(a, b)| product(a, b)).sum();
        self.told.turned.1 += 1;
        self.told.turned.0 += u64::from(is > 0.0 && along < AGAINST * was * is);
    }
}

/// The sum of products of the elements; 0 for tensors without counterparts.
fn product(a: &Tensor, b: &Tensor) -> f64 {
    with(a, |a| {
        with(b, |b| match (a, b) {
            (Numbers::F32(a), Numbers::F32(b)) if a.len() == b.len() => dot(a, b),
            (Numbers::F64(a), Numbers::F64(b)) if a.len() == b.len() => dot(a, b),
            _ => 0.0,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::symptom::SymptomKind;

    #[test]
    fn a_gradient_that_is_turned_round_is_named() {
        let g = Tensor::from([3.0f32, -4.0]);
        let of = |factor: f32| {
            let mut monitor = Monitor::new();
            let changed = Tensor::from([3.0 * factor, -4.0 * factor]);
            for _ in 0..4 {
                monitor.changed_gradients(from_ref(&g), from_ref(&changed));
                monitor.step(Some(1.0), None);
            }
            monitor.findings().iter().any(|seen| seen.kind == SymptomKind::WrongSign)
        };
        assert!(of(-1.0) && of(-0.01) && !of(0.5) && !of(0.0));
    }
}
