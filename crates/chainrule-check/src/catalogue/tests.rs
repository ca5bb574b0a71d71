//! The wrong rules of the op files can be replayed wherever the op is used.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Fault;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::verdict::tape::{RecordedPass, with_saved};
use chainrule_core::DType;
use chainrule_core::ops::table;

/// An op with one differentiable input saves only its needs, and a wrong rule must make do with it.
#[test]
fn wrong_rules_do_not_panic_where_one_input_is_wanted() {
    let mut failures = Vec::new();
    for row in table().filter(|e| !e.mistakes.is_empty()) {
        for sample in (row.samples)(&mut Generator::manual_seed(1)) {
            for (i, wanted) in sample.inputs.iter().enumerate() {
                if wanted.dtype() != DType::F64 || wanted.numel() > 100 {
                    continue;
                }
                let mut inputs = sample.inputs.clone();
                inputs[i] = wanted.parameter();
                let output = (sample.call)(&inputs).unwrap();
                if !output.requires_grad() {
                    continue;
                }
                let leaves = [inputs[i].clone()];
                let tape = RecordedPass::record(&[(&output, output.ones_like())], &leaves).unwrap();
                for node in tape.nodes.values() {
                    let g = Tensor::ones(node.meta.shape).to_dtype(node.meta.dtype);
                    let wanted = tape.wanted(node);
                    for mistake in node.op.entry().map_or(&[][..], |e| e.mistakes) {
                        let parts = || {
                            let fault = Fault::Rule(mistake);
                            with_saved(node, |at| fault.parts(node, at, &g, wanted)).map(|_| ())
                        };
                        if catch_unwind(AssertUnwindSafe(parts)).is_err() {
                            let (op, name, note) = (node.op.name(), mistake.name, sample.note);
                            failures.push(format!("{op}: {name}, input {i} of {note:?}"));
                        }
                    }
                }
            }
        }
    }
    failures.dedup();
    assert!(failures.is_empty(), "{failures:#?}");
}
