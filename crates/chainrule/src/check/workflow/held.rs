//! Parameters that get gradients and are never updated.

use std::collections::HashMap;

use super::Pending;
use super::finding::{Findings, Mistake};
use super::numbers::norm;
use super::parameters::Parameters;

/// Steps that a parameter must have stood still.
const STEPS: usize = 3;

/// Counts the steps of each parameter.
#[derive(Default)]
pub(super) struct Held {
    /// Steps with a gradient that was not 0, by the parameters' numbers; none any more once the value has changed.
    still: HashMap<u64, Option<usize>>,
}

impl Held {
    pub fn step(
        &mut self,
        pending: &Pending,
        changed: &[u64],
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        for number in changed {
            self.still.insert(*number, None);
        }
        for p in parameters.all.iter().filter(|p| p.requires_grad() && !p.held) {
            let size = pending.own.get(&p.leaf.number).map_or(0.0, |own| norm(own));
            let Some(steps) = self.still.entry(p.leaf.number).or_insert(Some(0)) else { continue };
            if changed.is_empty() || size.is_nan() || size == 0.0 {
                continue;
            }
            *steps += 1;
            if *steps < STEPS {
                continue;
            }
            findings.add(
                Mistake::ParameterNotHeld,
                format!("`{}`", p.name),
                None,
                format!(
                    "its gradient had norm {size:.3e} at this step and was not 0 at any of {steps}, but its value has not changed by a bit, and the optimizer does not list it",
                ),
                vec![("steps with a gradient", *steps as f64), ("norm of the gradient", size), ("change of the value", 0.0)],
            );
        }
    }
}
