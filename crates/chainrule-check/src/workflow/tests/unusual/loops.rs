//! Ways to step: accumulation, freezing, tying, two optimizers, clipping, wild rates.

use super::*;
use crate::autograd::{GradOptions, checkpoint, grad_with};
use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Relu, Sequential};
use crate::optim::{Adam, AdamW, Sgd, clip_grad_norm, clip_grad_value};
use chainrule_core::no_grad;
use chainrule_monitor::SymptomKind;

fn mlp(g: &mut Generator, d: usize, h: usize, c: usize) -> Sequential {
    Sequential::new().with(Linear::new(d, h, g)).with(Relu).with(Linear::new(h, c, g))
}

#[test]
fn gradients_of_micro_batches_are_accumulated() {
    silent(|g| {
        let (n, d, c, parts) = (between(g, 2, 9), 5, 3, between(g, 2, 5));
        let model = mlp(g, d, 8, c);
        let mut adam = AdamW::new(model.parameters(), 0.01);
        let mut watch = Workflow::watch(&model, &adam);
        for i in 0..4 * parts {
            let x = normal(g, &[n, d]);
            let y = symbols(g, &[n], c);
            let loss = model.forward(&x).cross_entropy(&y) / parts as f64;
            watch.forward(&x, &y, &loss)?;
            loss.try_backward()?;
            if (i + 1) % parts == 0 {
                adam.step()?;
            }
            // Called at each part, also where nothing was updated.
            watch.step()?;
            if (i + 1) % parts == 0 {
                adam.zero_grad();
            }
        }
        Ok(watch.report())
    });
}

#[test]
fn layers_are_frozen_and_unfrozen() {
    silent(|g| {
        let (n, d) = (between(g, 4, 20), 6);
        let model = mlp(g, d, 10, 4);
        model.layers()[0].freeze();
        let mut sgd = Sgd::new(model.parameters(), 0.1);
        let mut watch = Workflow::watch(&model, &sgd);
        for i in 0..10 {
            if i == 5 {
                model.layers()[0].unfreeze();
            }
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], 4));
            let loss = model.forward(&x).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut sgd)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn a_weight_is_tied() {
    silent(|g| {
        let (n, t, v, d) = (between(g, 2, 6), 5, between(g, 5, 12), 6);
        let table = normal(g, &[v, d]).parameter();
        let mix = weight(g, t * d, d);
        let mut adam = Adam::new(vec![table.clone(), mix.clone()], 0.1);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let text = symbols(g, &[n, t + 1], v);
            let (x, y) = (text.narrow(1, 0, t), text.narrow(1, t, 1).reshape([n]));
            let hidden = table.embedding(&x).reshape([n, t * d]).matmul(&mix).tanh();
            let loss = hidden.matmul(&table.t()).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn rates_are_wild_and_values_overflow() {
    for lr in [10.0, 1e4, 1e30] {
        for seed in 0..3 {
            let g = &mut Generator::manual_seed(seed);
            let model = mlp(g, 4, 8, 3);
            let mut sgd = Sgd::new(model.parameters(), lr);
            let mut watch = Workflow::watch(&model, &sgd);
            for _ in 0..8 {
                let (x, y) = (normal(g, &[9, 4]), symbols(g, &[9], 3));
                let loss = model.forward(&x).cross_entropy(&y);
                step(&mut watch, &[&x], &[&y], &loss, &mut sgd).unwrap();
            }
            // The code is right, and the rate is not, which alone may be told.
            let report = watch.report();
            let is_of_rate =
                |kind| matches!(kind, SymptomKind::RateTooHigh | SymptomKind::NotFinite);
            assert!(report.findings.is_empty(), "{lr} {report}");
            assert!(report.symptoms.iter().all(|seen| is_of_rate(seen.kind)), "{lr} {report}");
        }
    }
}

#[test]
fn gradients_are_clipped_and_scaled() {
    silent(|g| {
        let (n, d) = (between(g, 3, 20), 5);
        let model = mlp(g, d, 8, 3);
        let mut adam = AdamW::new(model.parameters(), 0.02);
        let mut watch = Workflow::watch(&model, &adam);
        for i in 0..10 {
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], 3));
            let loss = model.forward(&x).cross_entropy(&y);
            watch.forward(&x, &y, &loss)?;
            adam.zero_grad();
            (&loss * 1024.0).try_backward()?;
            for p in model.parameters() {
                let unscaled = p.try_grad()? / 1024.0;
                p.set_grad(Some(unscaled))?;
            }
            if i % 2 == 0 {
                clip_grad_norm(&model.parameters(), 0.1, 2.0)?;
            } else {
                clip_grad_value(&model.parameters(), 0.01)?;
            }
            adam.step()?;
            watch.step()?;
        }
        Ok(watch.report())
    });
}

#[test]
fn two_networks_play_against_each_other() {
    silent(|g| {
        let (n, z, d, critic) = (between(g, 4, 12), 3, 4, between(g, 1, 6));
        let (maker, judge) = (mlp(g, z, 8, d), mlp(g, d, 8, 1));
        let mut of_maker = AdamW::new(maker.parameters(), 0.01);
        let mut of_judge = AdamW::new(judge.parameters(), 0.01);
        let mut watch = Workflow::watch(&judge, &of_judge).and(&of_maker);
        for i in 0..4 * critic {
            let (real, noise) = (normal(g, &[n, d]), normal(g, &[n, z]));
            let fake = maker.forward(&noise).detach();
            let loss = judge.forward(&fake).mean_all() - judge.forward(&real).mean_all();
            step(&mut watch, &[&real, &noise], &[], &loss, &mut of_judge)?;
            if (i + 1) % critic == 0 {
                let noise = normal(g, &[n, z]);
                let loss = -judge.forward(&maker.forward(&noise)).mean_all();
                // Gradients of the judge are left lying about until its next step.
                step(&mut watch, &[&noise], &[], &loss, &mut of_maker)?;
            }
        }
        Ok(watch.report())
    });
}

#[test]
fn a_gradient_is_penalised() {
    silent(|g| {
        let (n, d) = (between(g, 4, 12), 3);
        let (w1, w2) = (weight(g, d, 8), weight(g, 8, 1));
        let mut adam = AdamW::new(vec![w1.clone(), w2.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let x = normal(g, &[n, d]).parameter();
            let f = x.matmul(&w1).tanh().matmul(&w2);
            let slope = grad_with(&f.sum_all(), &[&x], &GradOptions::create_graph())?
                .remove(0)
                .expect("f depends on x");
            let loss = (slope - 1.0).square().mean_all();
            step(&mut watch, &[&x], &[], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn a_block_is_checkpointed() {
    silent(|g| {
        let (n, d, c) = (between(g, 4, 12), 5, 3);
        let (w1, w2) = (weight(g, d, 8), weight(g, 8, c));
        let mut adam = AdamW::new(vec![w1.clone(), w2.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam).with_invariants();
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], c));
            let w = w1.clone();
            let hidden = checkpoint(move |x| Ok(x[0].matmul(&w).tanh()), &[&x])?;
            let loss = hidden.matmul(&w2).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn a_student_learns_from_a_teacher() {
    silent(|g| {
        let (n, d, c) = (between(g, 4, 12), 5, 4);
        let (teacher, student) = (mlp(g, d, 12, c), mlp(g, d, 6, c));
        let mut adam = AdamW::new(student.parameters(), 0.01);
        let mut watch = Workflow::watch(&student, &adam);
        for _ in 0..6 {
            let x = normal(g, &[n, d]);
            let y = no_grad(|| (teacher.forward(&x) / 2.0).softmax(-1));
            let out = student.forward(&x);
            let soft = -(&y * (&out / 2.0).log_softmax(-1)).sum(-1, false).mean_all();
            let loss = soft * 4.0 + out.cross_entropy(&y.argmax(-1, false)) * 0.1;
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn an_input_is_optimised_through_a_fixed_model() {
    silent(|g| {
        let (n, d, c) = (between(g, 2, 6), 5, 4);
        let model = mlp(g, d, 12, c);
        let picture = normal(g, &[n, d]).parameter().named("picture");
        let mut adam = AdamW::new(vec![picture.clone()], 0.1);
        let mut watch = Workflow::watch(&model, &adam);
        for _ in 0..6 {
            let y = Tensor::zeros([n]).to_dtype(DType::I64);
            let loss = model.forward(&picture).cross_entropy(&y);
            step(&mut watch, &[&picture], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn norms_are_frozen_while_the_rest_trains() {
    silent(|g| {
        let (n, d, c) = (between(g, 4, 20), 5, 3);
        let model = Sequential::new()
            .with(Linear::new(d, 8, g))
            .with(BatchNorm1d::new(8))
            .with(Relu)
            .with(Dropout::new(0.2, g))
            .with(Linear::new(8, c, g));
        let mut adam = AdamW::new(model.parameters(), 0.01);
        let mut watch = Workflow::watch(&model, &adam).with_invariants();
        for _ in 0..6 {
            model.train();
            model.layers()[1].eval();
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], c));
            let loss = model.forward(&x).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
            model.eval();
            watch.evaluate(&x, |x| no_grad(|| model.forward(x)));
        }
        Ok(watch.report())
    });
}

#[test]
fn codes_are_rounded_and_gradients_pass_straight_through() {
    silent(|g| {
        let (n, d, k) = (between(g, 4, 12), 4, 6);
        let (enc, dec) = (weight(g, d, d), weight(g, d, d));
        let book = normal(g, &[k, d]).parameter().named("book");
        let mut adam = AdamW::new(vec![enc.clone(), dec.clone(), book.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let x = normal(g, &[n, d]);
            let z = x.matmul(&enc);
            let far = (z.reshape([n, 1, d]) - book.reshape([1, k, d])).square().sum(-1, false);
            let code = book.embedding(&far.argmin(1, false));
            let straight = &z + (&code - &z).detach();
            let loss = straight.matmul(&dec).mse(&x)
                + (&code - z.detach()).square().mean_all()
                + (&z - code.detach()).square().mean_all() * 0.25;
            step(&mut watch, &[&x], &[&x], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn an_average_of_weights_and_decay_by_hand() {
    silent(|g| {
        let (n, d) = (between(g, 1, 6), 4);
        let w = weight(g, d, 2).named("w");
        let slow = w.detach().buffer();
        let (mut m, mut v) = (Tensor::zeros([d, 2]), Tensor::zeros([d, 2]));
        let mut watch = Workflow::tensors(&[&w]);
        for _ in 0..8 {
            let (x, y) = (normal(g, &[n, d]), normal(g, &[n, 2]));
            let loss = x.matmul(&w).mse(&y) + w.square().sum_all() * 0.5;
            watch.forward(&x, &y, &loss)?;
            w.zero_grad();
            loss.try_backward()?;
            let g = w.try_grad()?;
            m = m * 0.9 + &g * 0.1;
            v = v * 0.99 + g.square() * 0.01;
            w.set(&(w.detach() - &m / (v.sqrt() + 1e-8) * 0.01));
            slow.set(&(slow.detach() * 0.9 + w.detach() * 0.1));
            watch.step()?;
        }
        Ok(watch.report())
    });
}
