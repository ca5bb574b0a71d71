//! Every classic mistake, planted in the backward pass, is caught: the checks can fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{On, SEED, panic_text, probe_like, report, table};
use crate::autograd::walk::Walk;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::Node;
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use chainrule_core::ops::{Entry, Mistake, Sample};

/// A gradient that is off by this much, relative to the largest, is far outside every tolerance of
/// the checks.
const CAUGHT: f64 = 1e-6;

/// Effect of a mistake planted in one sample.
enum Effect {
    /// The gradient is off by this much, relative to its largest element.
    Off(f64),
    /// The op is not in the graph.
    Unused,
    /// The wrong rule gave an error or a panic instead of a gradient.
    Broke(String),
}

/// The gradients of all float inputs, with `mistake` in place of the rule of the nodes of this op;
/// and how many nodes that were.
fn gradients(
    entry: &Entry,
    leaves: &[Tensor],
    y: &Tensor,
    v: &Tensor,
    mistake: Option<&Mistake>,
) -> Result<(Vec<Vec<f64>>, usize)> {
    let planted_in = std::cell::Cell::new(0);
    let rule = |_: &Arc<Node>,
                op: &dyn Op,
                at: &Saved<'_>,
                g: &Tensor,
                wanted: Wanted|
     -> Option<Result<Grads>> {
        let mistake = mistake?;
        entry.is_of(op).then(|| {
            planted_in.set(planted_in.get() + 1);
            (mistake.rule)(op, at, g, wanted)
        })
    };
    let walk =
        Walk { keep_graph: true, targets: Some(leaves), planted: Some(&rule), ..Walk::default() };
    let found = walk.run(&[(y, v.clone())])?;
    let dense =
        |(g, x): (Option<Tensor>, &Tensor)| g.unwrap_or_else(|| x.zeros_like()).to_f64_vec();
    Ok((found.into_iter().zip(leaves).map(dense).collect(), planted_in.get()))
}

fn effect(entry: &Entry, sample: &Sample, mistake: &Mistake) -> Effect {
    let run = || -> Result<Option<f64>> {
        let leaves: Vec<Tensor> = sample.floats().iter().map(Tensor::parameter).collect();
        let y = sample.on(&leaves);
        if !y.requires_grad() {
            return Ok(None);
        }
        let v = probe_like(&y, &mut Generator::manual_seed(SEED + 2));
        let (right, _) = gradients(entry, &leaves, &y, &v, None)?;
        let (wrong, planted) = gradients(entry, &leaves, &y, &v, Some(mistake))?;
        let off = right.iter().zip(&wrong).map(|(right, wrong)| {
            let size = right.iter().fold(0.0, |m: f64, x| m.max(x.abs())).max(f64::MIN_POSITIVE);
            let apart = |(a, b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() / size };
            // A gradient that becomes NaN is caught by any comparison.
            let worst = right.iter().zip(wrong).map(apart);
            worst.fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { f64::max(m, x) })
        });
        Ok((planted > 0).then(|| off.fold(0.0, f64::max)))
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(Some(off))) => Effect::Off(off),
        Ok(Ok(None)) => Effect::Unused,
        Ok(Err(e)) => Effect::Broke(e.to_string()),
        Err(panic) => Effect::Broke(panic_text(&*panic)),
    }
}

#[test]
fn every_classic_mistake_is_caught() {
    let mut failures = Vec::new();
    for entry in table() {
        let samples = (entry.samples)(&mut Generator::manual_seed(SEED));
        for mistake in entry.mistakes {
            let (mut worst, mut used, mut broke) = (0.0, false, None);
            for sample in samples.iter().filter(|s| !s.floats().is_empty()) {
                match effect(entry, sample, mistake) {
                    Effect::Off(off) => (worst, used) = (f64::max(worst, off), true),
                    Effect::Unused => {}
                    Effect::Broke(why) => broke = broke.or(Some((sample.note, why))),
                }
            }
            let name = format!("{}, mistake {:?}", entry.name, mistake.name);
            if worst > CAUGHT {
                continue;
            }
            failures.push(match broke {
                Some((note, why)) => format!("{name}: no gradient on {note:?}: {why}"),
                None if !used => format!("{name}: no sample records a node of this name"),
                None => format!("{name}: not caught on any sample, off by {worst:.1e} at most"),
            });
        }
    }
    report("planted mistakes", failures);
}
