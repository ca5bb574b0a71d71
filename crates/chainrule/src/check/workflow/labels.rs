//! Targets that lie beside the inputs that they belong to.

use std::panic::Location;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::Flow;
use super::numbers::{all, varied};
use crate::tensor::watch::Ran;

/// Shifts that are looked at; 1 is right.
const SHIFTS: std::ops::RangeInclusive<i64> = -3..=3;

/// Steps at which a shift must be seen.
const STEPS: usize = 2;

#[derive(Default)]
pub(super) struct Labels {
    seen: Vec<(i64, usize)>,
}

impl Labels {
    pub fn look(&mut self, at: &Forward<'_>, findings: &mut Findings) {
        let Some(x) = at.inputs.iter().find(|x| x.rank() == 2 && !x.dtype().is_float()) else {
            return;
        };
        let shape = x.shape();
        let (rows, time) = (shape[0], shape[1]);
        let symbols = x.to_f64_vec();
        let mut suspects = Vec::new();
        for (_, op) in at.flow.ops() {
            if !matches!(op.op, "cross_entropy" | "nll_loss") {
                continue;
            }
            let targets = all(&op.inputs[1].value);
            // A target for each position, or one for each row, which follows the last.
            let (first, length) = match targets.len() {
                n if n == rows => (time as i64 - 1, 1),
                n if n % rows == 0 && n / rows <= time => (0, n / rows),
                _ => continue,
            };
            let agreement =
                |shift: i64| agreement(&symbols, &targets, (rows, time), (first, length), shift);
            let right = agreement(1).unwrap_or(0.0);
            if right > 0.95 {
                // Another loss may look further ahead, as long as one looks at the next symbol.
                return;
            }
            let found =
                SHIFTS.filter(|&s| s != 1).find(|&s| agreement(s).is_some_and(|a| a > 0.999));
            // What lies in sight is a task of its own (to copy, to echo) unless the model hides the future from itself.
            let asked = |&s: &i64| s > 1 || length == 1 || is_causal(&at.flow);
            if let Some(shift) = found.filter(asked)
                && varied(&op.inputs[1].value)
            {
                suspects.push((shift, right, op.location));
            }
        }
        for (shift, right, location) in suspects {
            self.tell(shift, right, location, findings);
        }
    }

    fn tell(
        &mut self,
        shift: i64,
        right: f64,
        location: &'static Location<'static>,
        findings: &mut Findings,
    ) {
        let place = match self.seen.iter().position(|(s, _)| *s == shift) {
            Some(place) => place,
            None => {
                self.seen.push((shift, 0));
                self.seen.len() - 1
            }
        };
        self.seen[place].1 += 1;
        if self.seen[place].1 < STEPS {
            return;
        }
        findings.add(
            Mistake::ShiftedLabels,
            format!("target[t] is input[t{shift:+}]"),
            Some(location),
            format!(
                "every target equals the input {shift:+} places on; of the next symbols, which they should be, {:.1}% agree",
                right * 100.0
            ),
            vec![("shift found", shift as f64), ("share equal to the next symbol", right)],
        );
    }
}

/// The share of targets that equal the input `shift` places on; `None` where there is too little to compare.
fn agreement(
    x: &[f64],
    targets: &[f64],
    (rows, time): (usize, usize),
    (first, length): (i64, usize),
    shift: i64,
) -> Option<f64> {
    let (mut same, mut count) = (0, 0);
    for row in 0..rows {
        for t in 0..length {
            let target = targets[row * length + t];
            let position = first + t as i64 + shift;
            if target < 0.0 || !(0..time as i64).contains(&position) {
                continue;
            }
            count += 1;
            same += usize::from(x[row * time + position as usize] == target);
        }
    }
    (count >= 6).then(|| same as f64 / count as f64)
}

/// Whether attention on the way to the loss hides later positions from earlier ones.
fn is_causal(flow: &Flow<'_>) -> bool {
    let hides = |op: &Ran| match op.op {
        "attention" => op.text.contains("causal: true"),
        "softmax" => {
            let (shape, x) = (*op.outputs[0].shape(), all(&op.outputs[0]));
            let &[.., queries, keys] = &*shape else { return false };
            let later = |i: usize| i % keys > i / keys % queries;
            queries > 2
                && queries == keys
                && x.iter().enumerate().all(|(i, &w)| !later(i) || w == 0.0)
        }
        _ => false,
    };
    flow.ops().any(|(_, op)| hides(op))
}
