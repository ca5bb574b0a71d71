//! The library's layers, and ways of training that go beyond one loss and one step.

use super::*;
use crate::autograd::{GradOptions, grad_with};
use crate::nn::{
    AvgPool2d, BatchNorm2d, Conv2d, Dropout, Embedding, Flatten, GroupNorm, Gru, Layer, Linear,
    Lstm, MaxPool2d, Module, Relu, Sequential,
};
use crate::optim::{AdamW, Muon, RmsProp, Sgd};
use chainrule_core::no_grad;
use chainrule_core::{CrossEntropy, Reduction};
use chainrule_lab::models::{Gpt, GptConfig};

#[test]
fn pictures_through_convolutions() {
    silent(|g| {
        let (n, size, c) = (between(g, 2, 6), 8, 3);
        let model = Sequential::new()
            .with(Conv2d::new(1, 4, [3, 3], g))
            .with(BatchNorm2d::new(4))
            .with(Relu)
            .with(MaxPool2d::new([2, 2]))
            .with(GroupNorm::new(2, 4))
            .with(AvgPool2d::new([3, 3]))
            .with(Flatten)
            .with(Dropout::new(0.2, g))
            .with(Linear::new(4, c, g));
        let mut sgd = Sgd::new(model.parameters(), 0.05);
        let mut watch = Workflow::watch(&model, &sgd).with_invariants();
        for _ in 0..5 {
            model.train();
            let (x, y) = (normal(g, &[n, 1, size, size]), symbols(g, &[n], c));
            let loss = model.forward(&x).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut sgd)?;
            model.eval();
            watch.evaluate(&x, |x| no_grad(|| model.forward(x)));
        }
        Ok(watch.report())
    });
}

#[test]
fn sequences_through_recurrent_layers() {
    silent(|g| {
        let (n, t, v, h) = (between(g, 2, 6), between(g, 3, 7), between(g, 5, 9), 8);
        let table = Embedding::new(v, h, g);
        let (lstm, gru) = (Lstm::new(h, h, g), Gru::new(h, h, g));
        let head = Linear::new(h, v, g);
        let mut all = table.parameters();
        all.extend(lstm.parameters().into_iter().chain(gru.parameters()).chain(head.parameters()));
        let mut adam = AdamW::new(all, 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        let run = |x: &Tensor| head.forward(&gru.forward(&lstm.forward(&table.forward(x))));
        for _ in 0..5 {
            let text = symbols(g, &[n, t + 1], v);
            let (x, y) = (text.narrow(1, 0, t), text.narrow(1, 1, t));
            let loss = run(&x).reshape([n * t, v]).cross_entropy(&y.reshape([n * t]));
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
            watch.evaluate(&x, |x| no_grad(|| run(x)));
        }
        Ok(watch.report())
    });
}

#[test]
fn a_gpt_with_another_optimizer_for_its_matrices() {
    silent(|g| {
        let config = GptConfig {
            symbols: between(g, 5, 20),
            context: 6,
            layers: between(g, 1, 3),
            heads: 2,
            width: 8,
            dropout: 0.0,
        };
        let (n, v) = (between(g, 1, 5), config.symbols);
        let model = Gpt::new(config, g);
        let (matrices, rest): (Vec<Tensor>, Vec<Tensor>) =
            model.parameters().into_iter().partition(|p| p.rank() == 2);
        let (mut muon, mut adam) = (Muon::new(matrices, 0.01), AdamW::new(rest, 0.01));
        let mut watch = Workflow::watch(&model, &muon).and(&adam).with_invariants();
        for _ in 0..5 {
            let text = symbols(g, &[n, 7], v);
            let (x, y) = (text.narrow(1, 0, 6), text.narrow(1, 1, 6).reshape([n * 6]));
            let options = CrossEntropy { reduction: Reduction::Sum, ..CrossEntropy::default() };
            let sum = model.forward(&x).reshape([n * 6, v]).cross_entropy_with(&y, &options);
            let loss = sum / (n * 6) as f64;
            watch.forward(&x, &y, &loss)?;
            loss.try_backward()?;
            muon.step()?;
            adam.step()?;
            watch.step()?;
            model.zero_grad();
        }
        Ok(watch.report())
    });
}

#[test]
fn losses_that_are_weighed_by_what_is_learned() {
    silent(|g| {
        let (n, d) = (between(g, 2, 12), 5);
        let (body, one, two) = (weight(g, d, 8), weight(g, 8, 3), weight(g, 8, 1));
        let doubt = Tensor::zeros([2]).parameter().named("doubt");
        let all = vec![body.clone(), one.clone(), two.clone(), doubt.clone()];
        let mut rms = RmsProp::new(all, 0.01);
        let mut watch = Workflow::tensors(&[]).and(&rms);
        for _ in 0..6 {
            let (x, y, z) = (normal(g, &[n, d]), symbols(g, &[n], 3), normal(g, &[n, 1]));
            let hidden = x.matmul(&body).relu();
            let losses = [hidden.matmul(&one).cross_entropy(&y), hidden.matmul(&two).mse(&z)];
            let [a, b] = [0, 1].map(|i| doubt.narrow(0, i, 1).reshape([1usize; 0]));
            let loss = &losses[0] * (-&a).exp() + a + &losses[1] * (-&b).exp() * 0.5 + b;
            step(&mut watch, &[&x], &[&y, &z], &loss, &mut rms)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn actions_are_rewarded() {
    silent(|g| {
        let (n, d, c) = (between(g, 2, 12), 5, 3);
        let (w, value) = (weight(g, d, c), weight(g, d, 1));
        let mut adam = AdamW::new(vec![w.clone(), value.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let x = normal(g, &[n, d]);
            let logp = x.matmul(&w).log_softmax(1);
            let actions = symbols(g, &[n, 1], c);
            let (reward, guess) = (normal(g, &[n, 1]), x.matmul(&value));
            let gain = (&reward - &guess).detach();
            let gain = (&gain - gain.mean_all()) / (gain.std([0, 1], 0, false) + 1e-6);
            let entropy = -(logp.exp() * &logp).sum(1, false).mean_all();
            let loss = -(logp.gather(1, &actions) * gain).mean_all() + guess.mse(&reward) * 0.5
                - entropy * 0.01;
            step(&mut watch, &[&x, &actions, &reward], &[], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn learning_to_learn() {
    silent(|g| {
        let (n, d) = (between(g, 3, 10), 4);
        let w = weight(g, d, 1).named("w");
        let mut adam = AdamW::new(vec![w.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let task = normal(g, &[d, 1]);
            let (seen, new) = (normal(g, &[n, d]), normal(g, &[n, d]));
            let inner = seen.matmul(&w).mse(&seen.matmul(&task));
            let slope = grad_with(&inner, &[&w], &GradOptions::create_graph())?
                .remove(0)
                .expect("it depends on w");
            let loss = new.matmul(&(&w - slope * 0.1)).mse(&new.matmul(&task));
            step(&mut watch, &[&seen, &new], &[&task], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn weights_are_standardised_and_inputs_by_running_statistics() {
    silent(|g| {
        let (n, d, c) = (between(g, 3, 20), 6, 3);
        let (w1, w2) = (weight(g, d, 8), weight(g, 8, c));
        let (mean, var) = (Tensor::zeros([d]).buffer(), Tensor::ones([d]).buffer());
        let mut adam = AdamW::new(vec![w1.clone(), w2.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, d]) * 3.0 + 1.0, symbols(g, &[n], c));
            no_grad(|| {
                mean.set(&(&mean * 0.9 + x.mean(0, false) * 0.1));
                var.set(&(&var * 0.9 + x.var(0, 0, false) * 0.1));
            });
            let even = (&x - &mean) / (&var + 1e-5).sqrt();
            let standard = (&w1 - w1.mean(0, true)) / (w1.var(0, 0, true) + 1e-5).sqrt();
            let loss = even.matmul(&standard).relu().matmul(&w2).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}
