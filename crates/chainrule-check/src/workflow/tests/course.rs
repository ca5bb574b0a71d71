//! Symptoms in the numbers of a loop whose code is right.

use chainrule_monitor::SymptomKind;

use super::super::Workflow;
use crate::nn::{Layer, Linear, Module, Relu, Sequential, Sigmoid};
use crate::optim::{Optimizer, Sgd};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::DType;

/// The kinds that a session tells of so many steps of a regression.
fn told(model: &Sequential, lr: f64, steps: usize) -> Vec<SymptomKind> {
    let g = &mut Generator::manual_seed(3);
    let mut sgd = Sgd::new(model.parameters(), lr);
    let mut watch = Workflow::watch(model, &sgd);
    let x = Tensor::randn([64, 8], DType::F32, g);
    let y = x.sum(1, true).tanh();
    for _ in 0..steps {
        let loss = model.forward(&x).mse(&y);
        watch.forward(&x, &y, &loss).unwrap();
        sgd.zero_grad();
        loss.backward();
        sgd.step().unwrap();
        watch.step().unwrap();
    }
    let report = watch.report();
    assert!(report.findings.is_empty(), "{report}");
    report.symptoms.iter().map(|seen| seen.kind).collect()
}

fn layers(widths: &[usize], activation: impl Fn(Sequential) -> Sequential) -> Sequential {
    let g = &mut Generator::manual_seed(1);
    let mut model = Sequential::new();
    for pair in widths.windows(2) {
        model = activation(model.with(Linear::new(pair[0], pair[1], g)));
    }
    let last = Linear::new(widths[widths.len() - 1], 1, g);
    model.with(last)
}

#[test]
fn twenty_sigmoids_are_named() {
    let model = layers(&[8; 21], |m| m.with(Sigmoid));
    assert_eq!(told(&model, 0.1, 10)[0], SymptomKind::Vanishing);
}

#[test]
fn dead_units_are_named() {
    let model = layers(&[8, 16], |m| m.with(Relu));
    let bias = &model.parameters()[1];
    bias.set(&(bias.detach() - 100.0));
    assert_eq!(told(&model, 0.01, 10)[0], SymptomKind::DeadUnits);
}

#[test]
fn weights_of_zero_are_named() {
    let model = layers(&[8, 16], |m| m.with(Relu));
    model.parameters().iter().for_each(|p| p.set(&p.detach().zeros_like()));
    assert_eq!(told(&model, 0.1, 10)[0], SymptomKind::Symmetric);
}

#[test]
fn a_loss_that_runs_away_is_named_also_after_the_steps_that_are_looked_at() {
    let model = layers(&[8, 16], |m| m.with(Relu));
    let found = told(&model, 20.0, 12);
    assert!(found.contains(&SymptomKind::RateTooHigh), "{found:?}");
    // A rate at which it rises slowly passes the twenty steps first.
    let model = layers(&[8], |m| m);
    let found = told(&model, 0.7, 60);
    assert_eq!(found.first(), Some(&SymptomKind::RateTooHigh), "{found:?}");
}

#[test]
fn what_learns_is_silent() {
    for lr in [0.01, 0.1] {
        assert_eq!(told(&layers(&[8, 16, 16], |m| m.with(Relu)), lr, 60), []);
    }
}
