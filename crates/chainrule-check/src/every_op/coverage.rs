//! Completeness of each entry of the table.

use std::collections::HashSet;

use super::{On, SEED, report, table};
use crate::rng::Generator;
use chainrule_core::ops::{Entry, Sample};

/// Ops without an empty sample, and why.
const NO_EMPTY: &[(&str, &str)] = &[];

/// Ops without a 0-d sample, and why.
const NO_0D: &[(&str, &str)] = &[
    ("matmul", "a 0-d operand is an error: it is no matrix"),
    #[cfg(feature = "linalg")]
    ("solve", "a matrix has two axes"),
    #[cfg(feature = "linalg")]
    ("inverse", "a matrix has two axes"),
    #[cfg(feature = "linalg")]
    ("cholesky", "a matrix has two axes"),
    #[cfg(feature = "linalg")]
    ("qr", "a matrix has two axes"),
    #[cfg(feature = "linalg")]
    ("det, slogdet", "a matrix has two axes"),
    ("index_select", "a 0-d tensor has no axis"),
    ("embedding", "a table has two axes"),
    ("gather", "a 0-d tensor has no axis"),
    ("attention", "queries have two axes"),
    ("layer_norm", "a 0-d tensor has no axis to normalise"),
    ("rms_norm", "a 0-d tensor has no axis to normalise"),
    ("linear", "a 0-d input is an error: it has no inputs to weigh"),
    ("softmax", "a 0-d tensor has no axis"),
    ("log_softmax", "a 0-d tensor has no axis"),
    ("cross_entropy", "logits have an axis of classes"),
    ("cross_entropy_probabilities", "logits have an axis of classes"),
    ("nll_loss", "log-probabilities have an axis of classes"),
    ("batch_norm", "features lie on axis 1"),
    ("cross", "a 0-d tensor has no axis"),
    ("diag_embed", "a 0-d tensor has no axis"),
    ("diagonal", "a diagonal crosses two axes"),
    ("dot", "takes vectors and matrices"),
    ("index_add", "a 0-d tensor has no axis"),
    ("repeat_interleave", "a 0-d tensor has no axis"),
    ("split", "a 0-d tensor has no axis"),
    ("tril, triu", "a matrix has two axes"),
    ("unflatten", "a 0-d tensor has no axis"),
    ("unfold", "a 0-d tensor has no axis"),
    ("cdist", "rows and columns are two axes"),
    ("cosine_similarity", "a 0-d tensor has no axis"),
    ("cosine_embedding", "a 0-d tensor is no vector"),
    ("lstm_cell", "a 0-d tensor has no gates"),
    ("group_norm", "channels lie on axis 1"),
    ("instance_norm", "channels lie on axis 1"),
    ("adaptive_avg_pool1d, adaptive_avg_pool2d", "a signal has channels and a length"),
    ("adaptive_max_pool1d, adaptive_max_pool2d", "a signal has channels and a length"),
    ("avg_pool1d, avg_pool2d", "a signal has channels and a length"),
    ("conv_transpose1d, conv_transpose2d", "a signal has channels and a length"),
    ("conv1d, conv2d", "a signal has channels and a length"),
    ("interpolate", "a signal has channels and a length"),
    ("max_pool1d, max_pool2d", "a signal has channels and a length"),
];

/// Ops with a gradient and no classic mistake, and why.
const NO_MISTAKES: &[(&str, &str)] = &[
    ("to_dtype", "the rule is the identity"),
    ("reshape", "the rule is the identity in another shape"),
    ("squeeze", "the rule is the identity in another shape"),
    ("expand", "the rule is the identity: the walker sums over the stretched axes"),
    ("cross", "composed of other ops"),
    ("dot", "composed of other ops"),
    ("einsum", "composed of other ops"),
    ("flip", "composed of other ops"),
    ("index", "composed of other ops"),
    ("index_put", "composed of other ops"),
    ("kron", "composed of other ops"),
    ("masked_fill", "composed of other ops"),
    ("masked_select", "composed of other ops"),
    ("meshgrid", "composed of other ops"),
    ("movedim", "composed of other ops"),
    ("repeat_interleave", "composed of other ops"),
    ("split", "composed of other ops"),
    ("take", "composed of other ops"),
    ("unflatten", "composed of other ops"),
];

fn samples(entry: &Entry) -> Vec<Sample> {
    (entry.samples)(&mut Generator::manual_seed(SEED))
}

/// Fails for each op of `found` that has no exception, and for each exception that no op needs.
fn report_with(property: &str, found: Vec<String>, exceptions: &[(&str, &str)]) {
    let excepted = |name: &String| exceptions.iter().any(|(e, _)| e == name);
    let stale = exceptions.iter().filter(|(e, _)| !found.iter().any(|f| f == e));
    let stale = stale.map(|(e, _)| format!("{e} is excepted without need"));
    let missing = found.iter().filter(|f| !excepted(f)).cloned();
    report(property, missing.chain(stale).collect());
}

#[test]
fn every_op_with_a_gradient_has_samples() {
    let mut failures = Vec::new();
    for entry in table().filter(|e| !e.gradient.is_empty()) {
        let samples = samples(entry);
        if !samples.iter().any(|s| !s.kink && !s.floats().is_empty()) {
            failures.push(format!("{}: no smooth sample", entry.name));
        }
        let mut notes = HashSet::new();
        for s in &samples {
            if s.note.is_empty() || !notes.insert(s.note) {
                failures
                    .push(format!("{}: the note {:?} is empty or used twice", entry.name, s.note));
            }
        }
    }
    report("samples", failures);
}

#[test]
fn every_op_has_an_empty_sample() {
    let empty = |s: &Sample| {
        let result = || s.on(&s.floats()).numel();
        s.inputs.iter().any(|x| x.numel() == 0) || result() == 0
    };
    let with = |e: &&Entry| samples(e).iter().any(empty);
    let found = table().filter(|e| !e.gradient.is_empty() && !with(e));
    report_with("ops without an empty sample", found.map(|e| e.name.into()).collect(), NO_EMPTY);
}

#[test]
fn every_op_has_a_0d_sample() {
    let with = |e: &&Entry| samples(e).iter().any(|s| s.inputs.iter().any(|x| x.rank() == 0));
    let found = table().filter(|e| !e.gradient.is_empty() && !with(e));
    report_with("ops without a 0-d sample", found.map(|e| e.name.into()).collect(), NO_0D);
}

#[test]
fn every_op_with_a_gradient_has_a_classic_mistake() {
    let found = table().filter(|e| !e.gradient.is_empty() && e.mistakes.is_empty());
    report_with("ops without a mistake", found.map(|e| e.name.into()).collect(), NO_MISTAKES);
}

#[test]
fn every_op_is_documented_and_has_a_name_of_its_own() {
    let (mut failures, mut names) = (Vec::new(), HashSet::new());
    for entry in table() {
        for (field, text) in
            [("name", entry.name), ("signature", entry.signature), ("formula", entry.formula)]
        {
            if text.trim().is_empty() {
                failures.push(format!("{}: no {field}", entry.name));
            }
        }
        for name in entry.name.split(", ") {
            if !names.insert(name) {
                failures.push(format!("{name}: the name is used twice"));
            }
        }
        if samples(entry).iter().any(|s| s.kink) && entry.at_kinks.is_empty() {
            failures.push(format!("{}: a sample at a kink, and at_kinks says nothing", entry.name));
        }
        let mut mistakes = HashSet::new();
        for mistake in entry.mistakes {
            let described = !mistake.name.is_empty() && !mistake.what.is_empty();
            if !described || !mistakes.insert(mistake.name) {
                failures.push(format!(
                    "{}: mistake {:?} lacks a text or has its name twice",
                    entry.name, mistake.name
                ));
            }
        }
        if entry.gradient.is_empty() && !entry.mistakes.is_empty() {
            failures.push(format!("{}: mistakes, but no gradient", entry.name));
        }
    }
    report("documentation", failures);
}
