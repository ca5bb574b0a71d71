//! Sequences and evaluations: states carried over, targets that equal inputs on purpose, lengths
//! read as numbers, noise at evaluation.

use super::*;
use crate::nn::{BatchNorm1d, Embedding, Layer, Linear, Module, Sequential};
use crate::optim::{AdamW, Sgd};
use chainrule_core::{CrossEntropy, no_grad};

#[test]
fn a_state_is_carried_and_cut() {
    silent(|g| {
        let (n, t, v, h) = (between(g, 2, 6), between(g, 3, 6), between(g, 5, 9), 8);
        let (table, inner, out) =
            (normal(g, &[v, h]).parameter(), weight(g, h, h), weight(g, h, v));
        let mut adam = AdamW::new(vec![table.clone(), inner.clone(), out.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        let mut state = Tensor::zeros([n, h]);
        let text = symbols(g, &[n, 8 * t + 1], v);
        for i in 0..8 {
            let (x, y) = (text.narrow(1, i * t, t), text.narrow(1, i * t + 1, t));
            state = state.detach();
            let mut losses = Vec::new();
            for j in 0..t {
                let seen = table.embedding(&x.narrow(1, j, 1).reshape([n]));
                state = (seen + state.matmul(&inner)).tanh();
                losses.push(state.matmul(&out).cross_entropy(&y.narrow(1, j, 1).reshape([n])));
            }
            let loss = losses.into_iter().reduce(|a, b| a + b).expect("t is not 0");
            step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
        }
        Ok(watch.report())
    });
}

/// Trains a bag of neighbours to predict some targets.
fn tagged(
    g: &mut Generator,
    targets: impl Fn(&mut Generator, &Tensor) -> (Tensor, Vec<Tensor>),
) -> Result<WorkflowReport> {
    let (n, t, v, d) = (between(g, 2, 6), between(g, 4, 8), between(g, 5, 9), 6);
    let table = normal(g, &[v + 1, d]).parameter();
    let mix = weight(g, t, t);
    let heads: Vec<Tensor> = (0..3).map(|_| weight(g, d, v)).collect();
    let mut all = vec![table.clone(), mix.clone()];
    all.extend(heads.iter().cloned());
    let mut adam = AdamW::new(all, 0.01);
    let mut watch = Workflow::tensors(&[]).and(&adam);
    for _ in 0..6 {
        let text = symbols(g, &[n, t + 3], v);
        let (x, ys) = targets(g, &text);
        let hidden = table.embedding(&x).transpose(1, 2).matmul(&mix).transpose(1, 2);
        let each = ys.iter().zip(&heads).map(|(y, head)| {
            let options = CrossEntropy { ignore_index: Some(-100), ..CrossEntropy::default() };
            hidden
                .matmul(head)
                .reshape([n * t, v])
                .cross_entropy_with(&y.reshape([n * t]), &options)
        });
        let loss = each.reduce(|a, b| a + b).expect("there is a target");
        let ys: Vec<&Tensor> = ys.iter().collect();
        step(&mut watch, &[&x], &ys, &loss, &mut adam)?;
    }
    Ok(watch.report())
}

#[test]
fn a_sequence_is_copied_echoed_or_read_ahead() {
    silent(|g| {
        let kind = between(g, 0, 4);
        tagged(g, move |g, text| {
            let t = text.shape()[1] - 3;
            let at = |start| text.narrow(1, start, t);
            match kind {
                0 => (at(0), vec![at(0)]),
                1 => (at(2), vec![at(0)]),
                2 => (at(0), vec![at(1), at(2), at(3)]),
                _ => {
                    let hidden = Tensor::rand(at(0).shape(), DType::F32, g).lt(0.3);
                    let ignored = at(0).masked_fill(&hidden.logical_not(), -100);
                    (at(0).masked_fill(&hidden, 0), vec![ignored])
                }
            }
        })
    });
}

#[test]
fn lengths_and_symbols_are_read_as_numbers() {
    silent(|g| {
        let (n, t, d) = (between(g, 2, 6), 5, 4);
        let w = weight(g, d, 3);
        let mut sgd = Sgd::new(vec![w.clone()], 0.1);
        let mut watch = Workflow::tensors(&[]).and(&sgd);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, t, d]), symbols(g, &[n], 3));
            let lengths = symbols(g, &[n], t - 1) + 1;
            let rows = lengths
                .to_vec::<i64>()
                .into_iter()
                .enumerate()
                .map(|(i, l)| x.narrow(0, i, 1).narrow(1, 0, l as usize).mean(1, false));
            let rows: Vec<Tensor> = rows.collect();
            let pooled = Tensor::try_cat(&rows.iter().collect::<Vec<_>>(), 0)?;
            step(
                &mut watch,
                &[&x, &lengths],
                &[&y],
                &pooled.matmul(&w).cross_entropy(&y),
                &mut sgd,
            )?;
        }
        Ok(watch.report())
    });
}

#[test]
fn the_last_step_of_each_sequence_is_picked() {
    silent(|g| {
        let (n, t, d, c) = (between(g, 2, 6), 5, 4, 3);
        let w = weight(g, d, c);
        let mut sgd = Sgd::new(vec![w.clone()], 0.1);
        let mut watch = Workflow::tensors(&[]).and(&sgd);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, t, d]), symbols(g, &[n], c));
            let last = symbols(g, &[n], t);
            let log_p = x.matmul(&w).log_softmax(-1);
            let at = log_p.gather(1, &last.reshape([n, 1, 1]).expand([n, 1, c])).reshape([n, c]);
            let loss = -at.gather(1, &y.reshape([n, 1])).mean_all();
            step(&mut watch, &[&x, &last], &[&y], &loss, &mut sgd)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn pictures_are_cropped() {
    silent(|g| {
        let (n, size) = (between(g, 2, 6), 8);
        let w = weight(g, 36, 3);
        let mut sgd = Sgd::new(vec![w.clone()], 0.1);
        let mut watch = Workflow::tensors(&[]).and(&sgd);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, 1, size, size]), symbols(g, &[n], 3));
            let inner = x.narrow(2, 1, 6).narrow(3, 1, 6).reshape([n, 36]);
            step(&mut watch, &[&x], &[&y], &inner.matmul(&w).cross_entropy(&y), &mut sgd)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn an_output_is_not_used_by_this_loss() {
    silent(|g| {
        let (n, d) = (between(g, 2, 12), 5);
        let (body, one, two) = (weight(g, d, 8), weight(g, 8, 3), weight(g, 8, 1).named("two"));
        let mut adam = AdamW::new(vec![body.clone(), one.clone(), two.clone()], 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], 3));
            let hidden = x.matmul(&body).tanh();
            let (out, _value) = (hidden.matmul(&one), hidden.matmul(&two));
            step(&mut watch, &[&x], &[&y], &out.cross_entropy(&y), &mut adam)?;
        }
        Ok(watch.report())
    });
}

#[test]
fn evaluations_with_noise_holes_and_neighbours() {
    silent(|g| {
        let (n, d) = (between(g, 4, 12), 5);
        let model = Sequential::new()
            .with(Linear::new(d, 8, g))
            .with(BatchNorm1d::new(8))
            .with(Linear::new(8, 3, g));
        let mut sgd = Sgd::new(model.parameters(), 0.1);
        let mut watch = Workflow::watch(&model, &sgd);
        let near = Tensor::rand([n, n], DType::F32, g);
        let near = &near / near.sum(1, true);
        for _ in 0..6 {
            model.train();
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], 3));
            step(&mut watch, &[&x], &[&y], &model.forward(&x).cross_entropy(&y), &mut sgd)?;
            model.eval();
            let inner = &mut Generator::manual_seed(g.random_u64());
            watch.evaluate(&x, |x| no_grad(|| model.forward(&(x + normal(inner, &[n, d])))));
            watch.evaluate(&x, |x| {
                let holes = Tensor::rand([n, d], DType::F32, inner).lt(0.5).to_dtype(DType::F32);
                no_grad(|| model.forward(&(x * holes)))
            });
            watch.evaluate(&x, |x| no_grad(|| near.matmul(&model.forward(x))));
            watch.evaluate(&x, |x| no_grad(|| model.forward(x).cross_entropy(&y)));
        }
        Ok(watch.report())
    });
}

#[test]
fn symbols_at_evaluation_are_masked_at_random() {
    silent(|g| {
        let (n, t, v) = (between(g, 2, 6), 5, 7);
        let model = Sequential::new().with(Embedding::new(v, 6, g)).with(Linear::new(6, v, g));
        let mut sgd = Sgd::new(model.parameters(), 0.1);
        let mut watch = Workflow::watch(&model, &sgd);
        for _ in 0..6 {
            let x = symbols(g, &[n, t], v);
            let loss = model.forward(&x).reshape([n * t, v]).cross_entropy(&x.reshape([n * t]));
            step(&mut watch, &[&x], &[&x], &loss, &mut sgd)?;
            let inner = &mut Generator::manual_seed(g.random_u64());
            watch.evaluate(&x, |x| {
                let holes = Tensor::rand([n, t], DType::F32, inner).lt(0.5);
                no_grad(|| model.forward(&x.masked_fill(&holes, 0)))
            });
        }
        Ok(watch.report())
    });
}
