//! Losses: sums that are divided, targets of any size, weights, parts of the batch, logits of all
//! kinds.

use super::*;
use crate::optim::{AdamW, Sgd};
use chainrule_core::no_grad;

/// Trains a linear model with a loss of its outputs and targets.
fn with_loss(
    g: &mut Generator,
    (n, d, c): (usize, usize, usize),
    target: impl Fn(&mut Generator, &Tensor) -> Tensor,
    loss: impl Fn(&mut Generator, &Tensor, &Tensor) -> Tensor,
) -> Result<WorkflowReport> {
    let (w1, w2) = (weight(g, d, 8), weight(g, 8, c));
    let mut adam = AdamW::new(vec![w1.clone(), w2.clone()], 0.01);
    let mut watch = Workflow::tensors(&[]).and(&adam);
    for _ in 0..8 {
        let x = normal(g, &[n, d]);
        let y = target(g, &x);
        let loss = loss(g, &x.matmul(&w1).tanh().matmul(&w2), &y);
        step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
    }
    Ok(watch.report())
}

#[test]
fn sums_are_divided() {
    silent(|g| {
        let (n, c) = (between(g, 2, 20), between(g, 2, 6));
        let kind = between(g, 0, 7);
        with_loss(
            g,
            (n, 5, c),
            |g, _| normal(g, &[n, c]),
            |_, out, y| {
                let square = (out - y).square();
                match kind {
                    0 => square.sum_all() / n as f64,
                    1 => square.sum_all() / (n * c) as f64,
                    2 => square.sum(1, false).mean_all(),
                    3 => square.sum_all() * (0.5 / n as f64),
                    4 => square.mean(0, false).sum_all(),
                    5 => (square / n as f64).sum_all(),
                    _ => square.sum(0, false).sum_all() / Tensor::from(n as f32) / 2.0,
                }
            },
        )
    });
}

#[test]
fn as_many_features_as_examples_are_summed() {
    silent(|g| {
        let n = between(g, 2, 12);
        let inner = between(g, 0, 2) == 0;
        with_loss(
            g,
            (n, n, n),
            |g, _| normal(g, &[n, n]),
            |_, out, y| {
                let square = (out - y).square();
                if inner {
                    square.mean(0, false).sum_all()
                } else {
                    square.sum(1, false).mean_all()
                }
            },
        )
    });
}

#[test]
fn a_mean_of_some_of_the_examples() {
    silent(|g| {
        let n = between(g, 3, 20);
        let kind = between(g, 0, 5);
        with_loss(
            g,
            (n, 4, 1),
            |g, _| normal(g, &[n, 1]),
            |g, out, y| {
                let square = (out - y).square();
                let mask = Tensor::rand([n, 1], DType::F32, g).lt(0.2).to_dtype(DType::F32);
                let mask = mask.maximum(
                    Tensor::arange(0, n as i64).reshape([n, 1]).eq(0.0).to_dtype(DType::F32),
                );
                match kind {
                    0 => (&square * &mask).sum_all() / mask.sum_all(),
                    1 => (&square * &mask).sum_all() / mask.sum_all().item(),
                    2 => square.reshape([n]).topk(2, 0, true, true).0.sum_all() / 2.0,
                    3 => {
                        let w = no_grad(|| square.reshape([n]).softmax(0)).reshape([n, 1]);
                        (w * square).sum_all()
                    }
                    _ => square.amax(0, false).sum_all(),
                }
            },
        )
    });
}

#[test]
fn targets_are_huge_or_tiny_and_batches_are_small() {
    silent(|g| {
        let n = between(g, 1, 4);
        let size = [1e6, 1e-6, 1e12][between(g, 0, 3)];
        with_loss(g, (n, 3, 1), |g, _| normal(g, &[n, 1]) * size + size, |_, out, y| out.mse(y))
    });
}

#[test]
fn batches_of_one_and_two_are_classified() {
    silent(|g| {
        let (n, c) = (between(g, 1, 3), between(g, 2, 4));
        with_loss(g, (n, 3, c), |g, _| symbols(g, &[n], c), |_, out, y| out.cross_entropy(y))
    });
}

#[test]
fn logits_start_as_equal_shares() {
    silent(|g| {
        let (n, d, c) = (between(g, 2, 20), 4, between(g, 2, 6));
        let w = Tensor::zeros([d, c]).parameter();
        let b = (Tensor::ones([c]) / c as f64).parameter();
        let mut sgd = Sgd::new(vec![w.clone(), b.clone()], 1e-4);
        let mut watch = Workflow::tensors(&[]).and(&sgd);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], c));
            let loss = (x.matmul(&w) + &b).cross_entropy(&y);
            step(&mut watch, &[&x], &[&y], &loss, &mut sgd)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn logarithms_of_probabilities_are_logits() {
    silent(|g| {
        let (n, c) = (between(g, 2, 20), between(g, 2, 6));
        let kind = between(g, 0, 3);
        with_loss(
            g,
            (n, 4, c),
            |g, _| symbols(g, &[n], c),
            |_, out, y| match kind {
                0 => (out.softmax(1) + 1e-9).log().cross_entropy(y),
                1 => out.log_softmax(1).nll_loss(y),
                _ => -(y.one_hot(c).to_dtype(DType::F32) * out.softmax(1).log())
                    .sum(1, false)
                    .mean_all(),
            },
        )
    });
}

#[test]
fn both_directions_of_a_contrast() {
    silent(|g| {
        let (n, d) = (between(g, 2, 12), 5);
        let (a, b) = (weight(g, d, 6), weight(g, d, 6));
        let heat = Tensor::from(1.0f32).parameter();
        let mut adam = AdamW::new(vec![a.clone(), b.clone(), heat.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let (x, z) = (normal(g, &[n, d]), normal(g, &[n, d]));
            let unit = |v: Tensor| &v / v.square().sum(1, true).sqrt();
            let scores = unit(x.matmul(&a)).matmul(&unit(z.matmul(&b)).t()) * heat.exp();
            let own = Tensor::arange(0, n as i64);
            let rows = scores.log_softmax(1).gather(1, &own.reshape([n, 1])).mean_all();
            let columns = scores.log_softmax(0).gather(1, &own.reshape([n, 1])).mean_all();
            let loss = -(rows + columns) / 2.0;
            step(&mut watch, &[&x, &z], &[], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn an_autoencoder_with_a_sampled_code() {
    silent(|g| {
        let (n, d, k) = (between(g, 3, 16), between(g, 4, 8), 3);
        let (m, s, dec) = (weight(g, d, k), weight(g, d, k), weight(g, k, d));
        let mut adam = AdamW::new(vec![m.clone(), s.clone(), dec.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let x = Tensor::rand([n, d], DType::F32, g);
            let (mean, log_var) = (x.matmul(&m), x.matmul(&s));
            let z = &mean + (&log_var * 0.5).exp() * normal(g, &[n, k]);
            let shown = z.matmul(&dec).sigmoid();
            let close = -(&x * (&shown + 1e-6).log() + (1.0 - &x) * (1.0 - &shown + 1e-6).log());
            let kl = (mean.square() + log_var.exp() - &log_var - 1.0).sum(1, false) * 0.5;
            let loss = close.sum(1, false).mean_all() + kl.mean_all();
            step(&mut watch, &[&x], &[&x], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn noise_is_taken_from_a_clean_picture() {
    silent(|g| {
        let (n, d) = (between(g, 3, 16), between(g, 4, 8));
        let w = weight(g, d, d);
        let mut adam = AdamW::new(vec![w.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let raw = normal(g, &[n, d]);
            let clean = (&raw - 0.5) / 2.0;
            let loss = (&clean + normal(g, &[n, d]) * 0.1).matmul(&w).mse(&clean);
            step(&mut watch, &[&raw], &[&clean], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}
