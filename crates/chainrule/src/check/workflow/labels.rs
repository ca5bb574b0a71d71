//! Targets that lie beside the inputs that they belong to.

use std::collections::HashSet;
use std::panic::Location;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::numbers::all;

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
            let Some(shift) =
                SHIFTS.filter(|&s| s != 1).find(|&s| agreement(s).is_some_and(|a| a > 0.999))
            else {
                continue;
            };
            if right < 0.95 && varied(&targets) {
                self.tell(shift, right, op.location, findings);
            }
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

fn varied(x: &[f64]) -> bool {
    x.iter().map(|x| x.to_bits()).collect::<HashSet<_>>().len() > 2
}
