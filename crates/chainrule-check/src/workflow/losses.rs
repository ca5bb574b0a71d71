//! The loss: whether it is a sum over the batch that is never divided.

use std::collections::HashSet;
use std::sync::Arc;

use super::Forward;
use super::finding::{Findings, Mistake};
use super::flow::{Address, Flow, Passage, is_sum, moves, passage, scaling};
use super::numbers::all;
use crate::param::Parameters;
use crate::tensor::reading::{Fold, Reading};
use crate::tensor::role::{NormRole, Role};
use crate::tensor::value::Value;
use crate::tensor::watch::{Given, Ran};
use chainrule_core::ops::Reduction;

/// A way from the loss back towards the examples, along which it is linear.
#[derive(Clone)]
struct Way {
    value: Arc<Value>,
    /// Factors of the value, number after number.
    factors: Vec<f64>,
}

pub(super) fn look(at: &Forward<'_>, axis: usize, findings: &mut Findings) {
    let flow = &at.flow;
    let Some(&n) = at.inputs.first().and_then(|x| x.shape().get(axis).copied()).as_ref() else {
        return;
    };
    let data: HashSet<Address> =
        at.inputs.iter().chain(at.targets).flat_map(|x| flow.places_of(x)).collect();
    let from_data = flow.computed_from(&data);
    let mut open = vec![Way { value: flow.loss.clone(), factors: Vec::new() }];
    let mut visited = 0;
    while let Some(way) = open.pop() {
        visited += 1;
        let Some(i) = flow.maker(&way.value).filter(|&i| from_data[i] && visited < 10_000) else {
            continue;
        };
        let op = &flow.ran[i];
        let counts = Counts::of(op, n, at);
        match passage(op) {
            Passage::Shifted => open.extend(op.inputs.iter().map(|g| way.to(&g.value))),
            Passage::Negated | Passage::Moved => open.push(way.to(&op.inputs[0].value)),
            // Division by a computed number may be division by a count.
            Passage::Scaled if !computed(flow, op) => open.extend(way.through(op)),
            Passage::Scaled
            | Passage::Masked
            | Passage::Bounded
            | Passage::Dropped
            | Passage::Joined
            | Passage::Opaque => {
                let dot = op.role == Role::Product && op.outputs[0].numel() == 1;
                if !counts.batch && (is_sum(op) || is_mean(op)) {
                    open.push(way.to(&op.inputs[0].value));
                } else if is_sum(op) || dot && counts.batch || sums(op) {
                    judge(flow, way, op, &counts, findings);
                }
            }
        }
    }
}

/// Whether an op takes a mean along axes.
fn is_mean(op: &Ran) -> bool {
    matches!(op.reading, Reading::Fold { fold: Fold::Mean, .. })
}

/// Whether it is a loss that is summed over the rows.
fn sums(op: &Ran) -> bool {
    op.parameters.field("reduction") == Some(&Reduction::Sum.parameters())
}

/// Whether an op multiplies or divides by a single number that another op has computed.
fn computed(flow: &Flow<'_>, op: &Ran) -> bool {
    let number = |g: &Given| g.value.numel() == 1 && flow.maker(&g.value).is_some();
    op.reading == Reading::Div && op.inputs.get(1).is_some_and(number)
        || op.reading == Reading::Mul && op.inputs.iter().any(|g| g.number == 0 && number(g))
}

impl Way {
    fn to(&self, value: &Arc<Value>) -> Way {
        Way { value: value.clone(), factors: self.factors.clone() }
    }

    /// On through a product with a number. Any other factor is computed, and may itself normalise
    /// the loss.
    fn through(&self, op: &Ran) -> Option<Way> {
        let (k, by) = scaling(op)?;
        let mut next = self.to(&op.inputs[k].value);
        next.factors.push(by);
        Some(next)
    }
}

/// Counts of the things that an op sums over.
struct Counts {
    /// Whether the examples are among them.
    batch: bool,
    examples: usize,
    /// Numbers by which a sum may be divided to make a mean.
    divisors: Vec<usize>,
}

impl Counts {
    fn of(op: &Ran, n: usize, at: &Forward<'_>) -> Counts {
        let shape = *op.inputs.first().map_or(op.outputs[0].shape(), |g| g.value.shape());
        let summed: Vec<usize> = match (op.role, op.axes) {
            (Role::Product, _) => shape.last().copied().into_iter().collect(),
            (_, Some(axes)) => axes.iter().map(|a| shape[a]).collect(),
            _ => shape.to_vec(),
        };
        let of_targets = at.targets.iter().map(|t| t.numel());
        let rows: Vec<usize> = of_targets.chain([n]).filter(|&rows| rows >= n && n > 0).collect();
        let all: usize = summed.iter().product();
        // Examples and their time steps may share one axis: `[batch * time, classes]`.
        let counts_examples = |&size: &usize| {
            size == n || rows.contains(&size) || (size > n && size % n == 0 && shape.rank() <= 2)
        };
        let batch = n > 1
            && (summed.iter().any(counts_examples)
                || all == shape.numel() && all >= n && all.is_multiple_of(n));
        let mut divisors = rows;
        divisors.extend([all, all / n.max(1) * n, n]);
        Counts { batch, examples: n, divisors }
    }
}

/// Reports it, unless a mean was made of the sum: before it, after it, or in the weights that it
/// sums with.
fn judge(flow: &Flow<'_>, way: Way, op: &Ran, counts: &Counts, findings: &mut Findings) {
    let mut factors = way.factors;
    let mut inside = op.inputs[0].value.clone();
    let mut weights = None;
    for _ in 0..8 {
        let Some(before) = flow.maker(&inside).map(|i| &flow.ran[i]) else { break };
        if moves(before) || before.reading == Reading::Neg {
            inside = before.inputs[0].value.clone();
        } else if let Some(next) =
            (Way { value: inside.clone(), factors: Vec::new() }).through(before)
        {
            factors.extend(&next.factors);
            inside = next.value;
        } else {
            weights = product(before);
            break;
        }
    }
    let each = factors.iter().product::<f64>().abs();
    let n = counts.examples as f64;
    let normalises =
        |by: &f64| counts.divisors.iter().any(|&d| (by.abs() * d as f64 - 1.0).abs() < 1e-3);
    // Weights of the examples that sum to 1, or to the divisor: a weighted mean.
    let total = |value: &Arc<Value>| {
        let x = all(value);
        x.iter().all(|&w| w >= 0.0).then(|| x.iter().sum::<f64>())
    };
    let weighs =
        |value: &Arc<Value>| total(value).is_some_and(|sum| sum <= 2.0 || sum * each < 1.6);
    if weights.is_some_and(|pair| pair.iter().any(weighs)) || averaged(flow, &inside, counts) {
        return;
    }
    let any = factors.iter().any(normalises) || (factors.len() > 1 && normalises(&each));
    if any || each < 0.49 || each * n < 1.6 {
        return;
    }
    findings.add(
        Mistake::SummedLoss,
        format!("`{}` sums over the batch", op.op),
        Some(op.location),
        format!(
            "each of the {n} examples enters the loss with weight {each:.4}; in a mean it is 1/{n} = {:.4}: the gradient is {:.1} times as large, and grows with the batch",
            1.0 / n,
            each * n
        ),
        vec![("weight of an example", each), ("weight in a mean", 1.0 / n), ("ratio", each * n)],
    );
}

/// The two different values that an op multiplies.
fn product(op: &Ran) -> Option<[Arc<Value>; 2]> {
    let (x, y) = (&op.inputs.first()?.value, &op.inputs.get(1)?.value);
    (op.reading == Reading::Mul && !Arc::ptr_eq(x, y)).then(|| [x.clone(), y.clone()])
}

/// Whether a mean over as many things as there are examples was taken a few elementwise steps
/// before: where examples and features are equally many, the sum may be over the features.
fn averaged(flow: &Flow<'_>, value: &Arc<Value>, counts: &Counts) -> bool {
    let mut open = vec![(value.clone(), 0)];
    while let Some((value, depth)) = open.pop() {
        let Some(op) = flow.maker(&value).map(|i| &flow.ran[i]) else { continue };
        let given = op.inputs.first().map(|given| *given.value.shape());
        if let (Some(axes), Some(shape)) = (op.axes, given) {
            let over = axes.iter().any(|a| counts.divisors.contains(&shape[a]));
            if is_mean(op) && over {
                return true;
            }
            continue;
        }
        let ends =
            matches!(op.role, Role::Product | Role::LinearLayer | Role::Norm(NormRole::Batch));
        if depth < 8 && !ends {
            open.extend(op.inputs.iter().map(|given| (given.value.clone(), depth + 1)));
        }
    }
    false
}
