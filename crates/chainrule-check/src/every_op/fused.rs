//! Fused ops against their definitions in primitive ops.

use super::{On, difference, difference_above, each_sample, largest, probe};
use crate::autograd::by_definition;
use crate::autograd::walk::reachable;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Mode, Node, lock};
use crate::tensor::op::Saved;
use chainrule_core::ops::{Family, Sample, sum_to};
use std::sync::Arc;

/// The recorded nodes of a sample, with everything saved.
fn nodes(sample: &Sample) -> Vec<Arc<Node>> {
    let _guard = Mode::get().with(Mode::SAVE_ALL).enter();
    let leaves: Vec<Tensor> = sample.floats().iter().map(Tensor::parameter).collect();
    let y = sample.on(&leaves);
    reachable([y.source()].into_iter(), 0)
}

/// Value and gradients of one node by its kernels and by its definition.
fn compare(node: &Arc<Node>, g: &mut Generator) -> Vec<String> {
    let op = node.op.as_ref();
    let Some(definition) = op.definition() else {
        return Vec::new();
    };
    let saved = lock(&node.saved).clone();
    let at = Saved::new(node, &saved, false);
    let want = definition(&at.inputs()).unwrap_or_else(|e| panic!("definition: {e}"));
    let mut failures: Vec<String> =
        difference("value", &at.output(), &want, 1e-13).into_iter().collect();
    let (wanted, v) = (node.wanted(), probe(node.meta.shape, node.meta.dtype, g));
    let fused = op.vjp(&at, &v, wanted).unwrap_or_else(|e| panic!("vjp: {e}"));
    let linked = Saved::new(node, &saved, true);
    let defined = by_definition(op, &linked, &v, wanted).expect("it has a definition");
    let defined = defined.unwrap_or_else(|e| panic!("gradient of the definition: {e}"));
    for (i, (fused, defined)) in fused.into_iter().zip(defined).enumerate() {
        if !wanted.get(i) {
            continue;
        }
        let shape = at.input_shape(i);
        let dense = |g: Option<Tensor>| match g {
            Some(g) => sum_to(&g, &shape).unwrap_or_else(|e| panic!("{e}")).detach(),
            None => at.input(i).zeros_like(),
        };
        let what = format!("gradient of input {i} of {}", op.name());
        let floor = 64.0 * f64::EPSILON * largest(&v.to_f64_vec());
        failures.extend(difference_above(&what, &dense(fused), &dense(defined), 1e-12, floor));
    }
    failures
}

#[test]
fn fused_ops_equal_their_definitions() {
    let fused = |s: &Sample| !s.kink && !s.floats().is_empty();
    each_sample(
        "fused ops against their definitions",
        |_, s| fused(s),
        |entry, s, g| {
            let nodes = nodes(s);
            let mut failures: Vec<String> =
                nodes.iter().flat_map(|node| compare(node, g)).collect();
            if entry.family == Family::Fused && nodes.iter().all(|n| n.op.definition().is_none()) {
                failures.push("no node of it has a definition".into());
            }
            failures
        },
    );
}
