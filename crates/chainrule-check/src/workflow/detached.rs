//! Parameters that take part in the forward pass and get no gradient.

use std::collections::{HashMap, HashSet};
use std::panic::Location;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{Flow, place};
use super::numbers::{same_numbers, varied};
use super::parameters::{Parameter, Parameters, few};

/// Steps without a gradient before it is reported.
const STEPS: usize = 3;

/// Counts the steps of each parameter without a gradient.
#[derive(Default)]
pub(super) struct Detached {
    /// Steps at which the optimizer updated other parameters of its own and had no gradient for
    /// this one; none any more once it got one.
    without: HashMap<u64, Option<usize>>,
    /// Cuts of the forward passes since the last step.
    cuts: HashMap<u64, Cut>,
}

/// Cut of a path to the loss.
#[derive(Clone, Debug, PartialEq)]
struct Cut {
    how: String,
    location: &'static Location<'static>,
}

impl Detached {
    pub fn look(&mut self, at: &Forward<'_>) {
        for p in at.parameters.all.iter().filter(|p| p.requires_grad() && p.held.is_some()) {
            let number = p.leaf.number;
            if at.own.contains_key(&number) {
                self.without.insert(number, None);
            } else if self.without.get(&number) != Some(&None)
                && let Some(cut) = cut(&at.flow, p)
            {
                self.cuts.insert(number, cut);
            }
        }
    }

    /// A parameter of an optimizer that has not stepped may get its gradient from that optimizer's
    /// loss.
    pub fn step(&mut self, changed: &[u64], parameters: &Parameters, findings: &mut Findings) {
        let all = &parameters.all;
        let stepped: HashSet<_> =
            all.iter().filter(|p| changed.contains(&p.leaf.number)).map(|p| p.held).collect();
        let mut told: Vec<(Cut, Vec<&Parameter>)> = Vec::new();
        for p in all {
            let Some(cut) = self.cuts.remove(&p.leaf.number) else { continue };
            let steps = self.without.entry(p.leaf.number).or_insert(Some(0));
            let Some(steps) = steps.as_mut().filter(|_| stepped.contains(&p.held)) else {
                continue;
            };
            *steps += 1;
            if *steps < STEPS {
                continue;
            }
            match told.iter_mut().find(|(known, _)| *known == cut) {
                Some((_, all)) => all.push(p),
                None => told.push((cut, vec![p])),
            }
        }
        for (cut, parameters) in told {
            let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
            findings.add(
                Mistake::DetachedBranch,
                format!("{} {}", few(&names), cut.how),
                Some(cut.location),
                format!(
                    "{} of {} parameters that the optimizers hold got no gradient (None) at any of {STEPS} steps, though the forward pass uses them",
                    names.len(),
                    all.iter().filter(|p| p.held.is_some()).count()
                ),
                vec![("parameters without a gradient", names.len() as f64), ("steps", STEPS as f64)],
            );
        }
    }
}

/// Why no gradient comes back to a parameter, if the forward pass uses it at all.
fn cut(flow: &Flow<'_>, parameter: &Parameter) -> Option<Cut> {
    let own = parameter.leaf.value();
    flow.uses(&own).first()?;
    let from = flow.computed_from(&HashSet::from([place(&own)]));
    // The first op on the way to the loss that takes the value without its history, or loses it.
    for (_, op) in flow.ops().filter(|&(i, _)| from[i]) {
        for given in &op.inputs {
            let maker = flow.maker(&given.value).filter(|&m| from[m]);
            let parameter_itself = place(&given.value) == place(&own);
            if !(parameter_itself || maker.is_some()) {
                continue;
            }
            let recorded = maker.is_some_and(|m| flow.ran[m].recorded);
            if given.requires_grad && !op.recorded {
                let how = match op.differentiable {
                    true => format!("are used by `{}` under no_grad", op.op),
                    false => format!("are used by `{}`, which has no gradient", op.op),
                };
                return Some(Cut { how, location: op.location });
            }
            if !given.requires_grad && (recorded || parameter_itself) {
                let how = match maker {
                    Some(m) => format!(
                        "lie behind the result of `{}` (line {} of {}), which was detached before `{}` took it",
                        flow.ran[m].op,
                        flow.ran[m].location.line(),
                        flow.ran[m].location.file(),
                        op.op
                    ),
                    None => format!("were detached before `{}` took them", op.op),
                };
                return Some(Cut { how, location: op.location });
            }
        }
    }
    // A result that plays no part in the loss is no mistake: the output was not needed this time.
    copied(flow, &from)
}

/// A constant on the way to the loss whose numbers are those of a value that was computed from the
/// parameter.
fn copied(flow: &Flow<'_>, from: &[bool]) -> Option<Cut> {
    let computed: Vec<_> = flow.ran.iter().enumerate().filter(|&(i, _)| from[i]).collect();
    for (_, op) in flow.ops() {
        for given in op.inputs.iter().filter(|g| g.number == 0 && flow.maker(&g.value).is_none()) {
            let same = |op: &&(usize, &crate::tensor::watch::Ran)| {
                same_numbers(&op.1.outputs[0], &given.value) && varied(&given.value)
            };
            if let Some((_, source)) = computed.iter().rev().find(same) {
                let how = format!(
                    "lie behind the result of `{}`, whose numbers came to `{}` as a new constant",
                    source.op, op.op
                );
                return Some(Cut { how, location: op.location });
            }
        }
    }
    None
}
