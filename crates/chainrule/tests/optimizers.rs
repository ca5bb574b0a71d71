//! Twenty updates by each optimizer against PyTorch.

mod common;

use chainrule::Tensor;
use chainrule::optim::{Optimizer, Sgd, SgdOptions};
use common::{Reference, distance};

/// The updates of `make`'s optimizer on the reference's noisy quadratic, against the trajectory `name`.
fn follows(name: &str, make: impl Fn(Vec<Tensor>) -> Box<dyn Optimizer>) {
    let reference = Reference::read("optimizers");
    let (a, noise, want) = (reference.get("A"), reference.get("noise"), reference.get(name));
    let w = reference.get("w0").parameter();
    let mut optimizer = make(vec![w.clone()]);
    for i in 0..20 {
        optimizer.zero_grad();
        let noise = noise.narrow(0, i, 1).reshape([3, 4]);
        let loss = (&a * &w * &w).sum_all() * 0.5 + (noise * &w).sum_all() * 0.1;
        loss.backward();
        optimizer.step().unwrap_or_else(|e| panic!("{name}: {e}"));
        let apart = distance(&w, &want.narrow(0, i, 1).reshape([3, 4]));
        assert!(apart <= 1e-6, "{name}, update {i}: {apart:.1e} apart");
    }
}

fn sgd(lr: f64, options: SgdOptions) -> impl Fn(Vec<Tensor>) -> Box<dyn Optimizer> {
    move |parameters| Box::new(Sgd::try_new(parameters, lr, options).expect("good options"))
}

#[test]
fn sgd_follows_pytorch() {
    follows("sgd", |parameters| Box::new(Sgd::new(parameters, 0.05)));
}

#[test]
fn sgd_with_momentum_follows_pytorch() {
    let momentum = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
    follows("sgd_momentum", sgd(0.05, momentum));
    follows("sgd_dampening", sgd(0.05, SgdOptions { dampening: 0.5, ..momentum }));
}

#[test]
fn sgd_with_nesterov_and_weight_decay_follows_pytorch() {
    let options = SgdOptions { momentum: 0.9, weight_decay: 0.01, nesterov: true, dampening: 0.0 };
    follows("sgd_nesterov", sgd(0.05, options));
}
