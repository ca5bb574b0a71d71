//! Targets that are shifted against the inputs they belong to.

use std::collections::HashMap;
use std::panic::Location;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::Flow;
use super::numbers::{all, varied};
use crate::param::Param;
use crate::tensor::reading::Reading;
use crate::tensor::role::{LossRole, Role};
use crate::tensor::watch::Ran;

/// Shifts that are tried; 1 is right.
const SHIFTS: std::ops::RangeInclusive<i64> = -3..=3;

/// Steps at which a shift must be seen, and pairs of symbol and target that must agree in total.
const STEPS: usize = 2;
const PAIRS: usize = 12;

#[derive(Default)]
pub(super) struct Labels {
    /// For each shift the steps at which all agreed, and the pairs that were compared.
    seen: HashMap<i64, (usize, usize)>,
}

/// Count of targets that agree with a shifted input.
#[derive(Clone, Copy, Default)]
struct Agreement {
    same: usize,
    count: usize,
}

impl Agreement {
    fn share(self) -> f64 {
        self.same as f64 / self.count.max(1) as f64
    }

    fn is_whole(self) -> bool {
        self.count >= 2 && self.share() > 0.999
    }
}

impl Labels {
    pub fn look(&mut self, at: &Forward<'_>, findings: &mut Findings) {
        let Some(x) = at.inputs.iter().find(|x| x.rank() == 2 && !x.dtype().is_float()) else {
            return;
        };
        let shape = x.shape();
        let (rows, time) = (shape[0], shape[1]);
        let symbols = x.to_f64_vec();
        let is_loss = |op: &Ran| {
            matches!(op.role, Role::Loss(LossRole::CrossEntropy | LossRole::NegativeLogLikelihood))
        };
        let losses = at.flow.ops().filter(|(_, op)| is_loss(op)).count();
        let mut suspects = Vec::new();
        for (_, op) in at.flow.ops().filter(|(_, op)| is_loss(op)) {
            let targets = all(&op.inputs[1].value);
            // A target for each position, or one for each row, which follows the last.
            let (first, length) = match targets.len() {
                // Several losses with a target for each row go from position to position.
                n if n == rows && losses > 1 && time > 1 => return,
                n if n == rows => (time as i64 - 1, 1),
                n if n % rows == 0 && n / rows <= time => (0, n / rows),
                _ => continue,
            };
            let agreement =
                |shift: i64| agreement(&symbols, &targets, (rows, time), (first, length), shift);
            let right = agreement(1).share();
            if right > 0.95 {
                // Another loss may look further ahead, as long as one predicts the next symbol.
                return;
            }
            let found = SHIFTS.filter(|&s| s != 1).find(|&s| agreement(s).is_whole());
            // Visible targets are a task of their own (copying, echoing) unless the model hides the
            // future from itself.
            let asked = |&s: &i64| s > 1 || length == 1 || is_causal(&at.flow);
            if let Some(shift) = found.filter(asked)
                && varied(&op.inputs[1].value)
            {
                suspects.push((shift, agreement(shift).count, right, op.location));
            }
        }
        // A shift by chance does not repeat.
        self.seen.retain(|shift, _| suspects.iter().any(|(found, ..)| found == shift));
        for (shift, count, right, location) in suspects {
            let (steps, pairs) = self.seen.entry(shift).or_default();
            (*steps, *pairs) = (*steps + 1, *pairs + count);
            if *steps >= STEPS && *pairs >= PAIRS {
                tell(shift, right, location, findings);
            }
        }
    }
}

fn tell(shift: i64, right: f64, location: &'static Location<'static>, findings: &mut Findings) {
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

/// Count of targets that equal the input `shift` places on.
fn agreement(
    x: &[f64],
    targets: &[f64],
    (rows, time): (usize, usize),
    (first, length): (i64, usize),
    shift: i64,
) -> Agreement {
    let Agreement { mut same, mut count } = Agreement::default();
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
    Agreement { same, count }
}

/// Whether attention on the way to the loss hides later positions from earlier ones.
fn is_causal(flow: &Flow<'_>) -> bool {
    let hides = |op: &Ran| match (&op.reading, op.role) {
        (_, Role::Attention) => op.parameters.field("causal").is_some_and(Param::is_true),
        (Reading::Softmax, _) => {
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
