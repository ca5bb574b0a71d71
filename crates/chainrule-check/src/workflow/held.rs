//! Parameters that get gradients and are never updated.

use std::collections::HashMap;

use super::Pending;
use super::finding::{Findings, Mistake};
use super::numbers::norm;
use super::parameters::{Parameter, Parameters};

/// Steps that a parameter must have stood still.
const STEPS: usize = 3;

/// Counts the steps of each parameter.
#[derive(Default)]
pub(super) struct Held {
    /// The values at first sight, by the parameters' numbers.
    first: HashMap<u64, Vec<f64>>,
    /// Steps with a gradient that was not 0; none any more once the value has changed.
    still: HashMap<u64, Option<usize>>,
}

impl Held {
    pub fn forward(&mut self, values: &HashMap<u64, Vec<f64>>) {
        for (number, value) in values {
            self.first.entry(*number).or_insert_with(|| value.clone());
        }
    }

    pub fn step(
        &mut self,
        pending: &Pending,
        values: &HashMap<u64, Vec<f64>>,
        changed: &[u64],
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        let all = &parameters.all;
        let trained = |p: &&Parameter| p.held.is_some() && pending.own.contains_key(&p.leaf.number);
        // Either something was updated, or no parameter of the optimizers has a part in this loss
        // at all.
        let stepped = !changed.is_empty()
            || (all.iter().any(|p| p.held.is_some()) && !all.iter().any(|p| trained(&p)));
        if !stepped {
            return;
        }
        // A model of which nothing is trained stays as it is on purpose, when something else is
        // trained through it.
        let module_trained = all.iter().any(|p| p.of_module && p.held.is_some());
        let meant =
            |p: &Parameter| p.of_module && !module_trained && all.iter().any(|q| trained(&q));
        for p in all.iter().filter(|p| p.requires_grad() && p.held.is_none() && !meant(p)) {
            let number = p.leaf.number;
            let size = pending.own.get(&number).map_or(0.0, |own| norm(own));
            let Some(steps) = self.still.entry(number).or_insert(Some(0)) else { continue };
            if values.get(&number) != self.first.get(&number) {
                self.still.insert(number, None);
                continue;
            }
            if size.is_nan() || size == 0.0 {
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
                    "at this step its gradient has norm {size:.3e}; at none of {steps} steps was it 0, yet no optimizer of the session lists the parameter and its value has not changed by a bit",
                ),
                vec![("steps with a gradient", *steps as f64), ("norm of the gradient", size), ("change of the value", 0.0)],
            );
        }
    }
}
