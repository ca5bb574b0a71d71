//! Tests of all fused ops and the index ops: kernel against definition, forward against reverse
//! mode, second derivatives against differences, and the mistakes.

use std::sync::Arc;

use crate::autograd::{self, GradOptions, grad_with};
use crate::ops::{Entry, Family, Sample, table};
use crate::tensor::node::{Node, Source};
use crate::tensor::op::Saved;
use crate::{DType, Generator, Tensor, record_all};

/// Fails unless the two have the same shape and dtype and agree to `tolerance`, relative to the
/// larger of 1 and the value.
#[track_caller]
pub(super) fn close(what: &str, got: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()), "{what}");
    for (i, (g, e)) in got.to_f64_vec().into_iter().zip(expected.to_f64_vec()).enumerate() {
        let same =
            g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(same, "{what}, element {i}: {g}, not {e}");
    }
}

fn samples(family: Family) -> Vec<(String, Sample, u64)> {
    let mut all = Vec::new();
    for (k, entry) in table().filter(|e| e.family == family).enumerate() {
        let seed = 100 + k as u64;
        for sample in (entry.samples)(&mut Generator::manual_seed(seed)) {
            all.push((format!("{}, {}", entry.name, sample.note), sample, seed));
        }
    }
    all
}

/// The gradients of a sample's inputs from `g`; with `recorded` by way of the definition of a fused
/// op.
fn gradients(y: &Tensor, g: &Tensor, x: &[Tensor], recorded: bool) -> Vec<Tensor> {
    let refs: Vec<&Tensor> = x.iter().collect();
    let options = GradOptions { gradient: Some(g.clone()), create_graph: recorded };
    let grads = grad_with(y, &refs, &options).unwrap();
    grads.into_iter().map(|g| g.unwrap()).collect()
}

/// The value and the gradients of every kernel against those of the definition, on all samples, in
/// f64 and in f32.
#[test]
fn kernels_agree_with_their_definitions() {
    for (note, sample, seed) in samples(Family::Fused) {
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-5)] {
            // Far from zero an f32 has few digits left for the differences of logits: not the
            // kernel's doing.
            if dtype == DType::F32 && sample.note == "far from zero" {
                continue;
            }
            let x: Vec<Tensor> =
                sample.inputs.iter().map(|x| x.to_dtype(dtype).parameter()).collect();
            let y = (sample.call)(&x).unwrap();
            let g = Tensor::randn(y.shape(), DType::F64, &mut Generator::manual_seed(seed));
            let g = g.to_dtype(dtype);
            let fused = gradients(&y, &g, &x, false);
            let defined = gradients(&y, &g, &x, true);
            for (fused, defined) in fused.iter().zip(&defined) {
                close(&format!("{note}, gradient"), fused, defined, tolerance);
            }
            by_definition(&note, &y, tolerance);
        }
    }
}

/// Finds the fused op below `y` (a view may lie above it) and compares its value with the
/// definition's.
fn by_definition(note: &str, y: &Tensor, tolerance: f64) {
    let mut source = y.source().clone();
    loop {
        let Source::Node(node) = source else {
            panic!("{note}: no fused op");
        };
        let saved = node.saved.lock().unwrap().clone();
        let at = Saved::new(&node, &saved, false);
        if let Some(definition) = node.op.definition() {
            let defined = definition(&at.inputs()).unwrap();
            let kernel = crate::tensor::run::compute(
                node.op.as_ref(),
                &at.inputs().iter().map(Tensor::value).collect::<Vec<_>>(),
            );
            let kernel = Tensor::from_parts(kernel.unwrap().value, Source::None);
            close(&format!("{note}, value"), &kernel, &defined, tolerance);
            return;
        }
        source = node.inputs[0].clone();
    }
}

/// `<g, J v> = <J^T g, v>`, where the left side uses the forward rules and the right side the
/// reverse ones.
#[test]
fn forward_and_reverse_rules_agree() {
    for (note, sample, seed) in samples(Family::Fused).into_iter().chain(samples(Family::Index)) {
        let generator = &mut Generator::manual_seed(seed);
        let random =
            |x: &Tensor, generator: &mut Generator| Tensor::randn(x.shape(), DType::F64, generator);
        let v: Vec<Tensor> = sample.inputs.iter().map(|x| random(x, generator)).collect();
        let call = |x: &[Tensor]| (sample.call)(x).unwrap();
        // All tangents at once, then one input at a time.
        for only in std::iter::once(None).chain((0..v.len()).map(Some)) {
            let v: Vec<Tensor> = (0..v.len())
                .map(|i| if only.is_none_or(|o| o == i) { v[i].clone() } else { v[i].zeros_like() })
                .collect();
            let (y, dy) = autograd::jvp(call, &sample.inputs, &v).unwrap();
            let g = random(&y, &mut Generator::manual_seed(seed + 1));
            let (_, pulled) = autograd::vjp(call, &sample.inputs, &g).unwrap();
            let left = (&g * &dy).sum_all().item();
            let right: f64 = pulled.iter().zip(&v).map(|(p, v)| (p * v).sum_all().item()).sum();
            let size = 1.0 + left.abs();
            assert!((left - right).abs() <= 1e-11 * size, "{note}, {only:?}: {left} and {right}");
        }
    }
}

/// Every wrong rule gives a wrong gradient on one of its op's samples.
#[test]
fn mistakes_are_mistakes() {
    for entry in table().filter(|e| matches!(e.family, Family::Fused | Family::Index)) {
        for mistake in entry.mistakes {
            let mut caught = false;
            for sample in (entry.samples)(&mut Generator::manual_seed(5)) {
                let x: Vec<Tensor> = sample.inputs.iter().map(|x| x.parameter()).collect();
                let y = record_all(|| (sample.call)(&x).unwrap());
                let Some(node) = &made_by(entry, y.source()) else { continue };
                let saved = node.saved.lock().unwrap().clone();
                let at = Saved::new(node, &saved, false);
                let shape = node.meta.shape;
                let g = Tensor::randn(shape, DType::F64, &mut Generator::manual_seed(6));
                let op = node.op.as_ref();
                let right = op.vjp(&at, &g, node.wanted()).unwrap();
                let wrong = (mistake.rule)(op, &at, &g, node.wanted()).unwrap();
                for (i, (right, wrong)) in right.iter().zip(&wrong).enumerate() {
                    let (Some(right), Some(wrong)) = (right, wrong) else {
                        continue;
                    };
                    let name = format!("{}, {}, input {i}", entry.name, mistake.name);
                    assert_eq!(right.shape(), wrong.shape(), "{name}");
                    let off = (right - wrong)
                        .to_f64_vec()
                        .into_iter()
                        .fold(0.0, |m: f64, d| m.max(d.abs()));
                    caught |= off > 1e-3;
                }
            }
            assert!(caught, "{}: {} is not wrong on any sample", entry.name, mistake.name);
        }
    }
}

/// The node of an op behind a result that is a part of its own, or joined from such parts.
fn made_by(entry: &Entry, source: &Source) -> Option<Arc<Node>> {
    let Source::Node(node) = source else { return None };
    match node.op.name().starts_with(entry.name) {
        true => Some(node.clone()),
        false => made_by(entry, node.inputs.first()?),
    }
}

/// The Hessian along a direction by forward over reverse mode, against central differences of the
/// gradient.
#[test]
fn second_derivatives_agree_with_differences() {
    for (note, sample, seed) in samples(Family::Fused) {
        let x = &sample.inputs[0];
        if x.numel() == 0 || sample.kink || sample.note == "far from zero" {
            continue;
        }
        let generator = &mut Generator::manual_seed(seed);
        let v = Tensor::randn(x.shape(), DType::F64, generator);
        let f = |x: &Tensor| {
            let mut inputs = sample.inputs.clone();
            inputs[0] = x.clone();
            let y = (sample.call)(&inputs).unwrap();
            let w = Tensor::randn(y.shape(), DType::F64, &mut Generator::manual_seed(9));
            // Squared, so that the upstream gradient depends on x too.
            (&(&y * &y) * &w).sum_all()
        };
        let slope = |x: Tensor| {
            let (_, mut g) = autograd::value_and_grad(|x| f(&x[0]), &[x]).unwrap();
            g.remove(0)
        };
        let h = 1e-5;
        let difference = (slope(x + &v * h) - slope(x - &v * h)) / (2.0 * h);
        let hv = autograd::hvp(f, x, &v).unwrap();
        close(&note, &hv, &difference, 2e-7);
    }
}
