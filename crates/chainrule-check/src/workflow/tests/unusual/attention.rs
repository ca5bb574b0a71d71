//! Attention and gates: masks of all kinds, scores that need no scale, weights that are normalised
//! another way.

use super::*;
use crate::optim::AdamW;

/// A loop's mix of queries, keys and values `[b, t, d]`.
type Mix = fn(&mut Generator, &Tensor, &Tensor, &Tensor) -> Tensor;

/// Trains a classifier of positions round an attention of its own.
fn with_attention(g: &mut Generator, size: f64, mix: Mix) -> Result<WorkflowReport> {
    let (b, t, d, c) = (between(g, 2, 5), between(g, 3, 8), between(g, 8, 17), 4);
    let [wq, wk] = [0; 2].map(|_| (weight(g, d, d).detach() * size).parameter());
    let (wv, head) = (weight(g, d, d), weight(g, d, c));
    let all = [&wq, &wk, &wv, &head];
    let mut adam = AdamW::new(all.map(Tensor::clone).to_vec(), 0.01);
    let mut watch = Workflow::tensors(&[]).and(&adam);
    for _ in 0..6 {
        let (x, y) = (normal(g, &[b, t, d]), symbols(g, &[b, t], c));
        let out = mix(g, &x.matmul(&wq), &x.matmul(&wk), &x.matmul(&wv));
        let loss = (&x + out).matmul(&head).reshape([b * t, c]).cross_entropy(&y.reshape([b * t]));
        step(&mut watch, &[&x], &[&y], &loss, &mut adam)?;
    }
    Ok(watch.report())
}

fn scores(q: &Tensor, k: &Tensor) -> Tensor {
    let d = q.shape()[2] as f64;
    q.matmul(&k.transpose(1, 2)) / d.sqrt()
}

fn causal(q: &Tensor) -> Tensor {
    let t = q.shape()[1];
    Tensor::ones([t, t]).tril(0)
}

#[test]
fn masks_before_softmax() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let hidden = (1.0 - causal(q)) * -1e9;
            (scores(q, k) + hidden).softmax(-1).matmul(v)
        })
    });
}

#[test]
fn rows_of_padding_are_set_to_zero_after_softmax() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let t = q.shape()[1];
            let there = Tensor::arange(0, t as i64).lt((t - 1) as f64);
            let scores = scores(q, k).masked_fill(&there.logical_not().reshape([1, 1, t]), -1e9);
            let queries = there.to_dtype(DType::F32).reshape([1, t, 1]);
            (scores.softmax(-1) * queries).matmul(v)
        })
    });
}

#[test]
fn masked_weights_are_normalised_again() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let w = scores(q, k).softmax(-1) * causal(q);
            (&w / w.sum(-1, true)).matmul(v)
        })
    });
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let w = scores(q, k).softmax(-1) * causal(q);
            w.matmul(v) / w.sum(-1, true)
        })
    });
}

#[test]
fn weights_are_dropped() {
    silent(|g| {
        with_attention(g, 1.0, |g, q, k, v| {
            let w = scores(q, k).softmax(-1);
            let kept = Tensor::rand(w.shape(), DType::F32, g).lt(0.7).to_dtype(DType::F32);
            (w * kept / 0.7).matmul(v)
        })
    });
}

#[test]
fn only_the_largest_weights_count() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let w = scores(q, k).softmax(-1);
            let kept = w.detach().ge(w.detach().amax(-1, true)).to_dtype(DType::F32);
            (w * kept).matmul(v)
        })
    });
}

#[test]
fn the_scale_is_in_the_starting_weights() {
    // Each side by d^-1/4, for the middle of the widths.
    silent(|g| {
        with_attention(g, 1.0 / 12f64.powf(0.25), |_, q, k, v| {
            q.matmul(&k.transpose(1, 2)).softmax(-1).matmul(v)
        })
    });
}

#[test]
fn queries_and_keys_have_unit_length() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let unit = |x: &Tensor| x / x.square().sum(-1, true).sqrt();
            (unit(q).matmul(&unit(k).transpose(1, 2)) * 1.0).softmax(-1).matmul(v)
        })
    });
}

#[test]
fn hidden_states_are_compared_as_they_are() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            q.tanh().matmul(&k.tanh().transpose(1, 2)).softmax(-1).matmul(v)
        })
    });
}

#[test]
fn slots_compete_for_inputs() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let w = scores(q, k).softmax(1) + 1e-8;
            (&w / w.sum(-1, true)).matmul(v)
        })
    });
}

#[test]
fn attention_without_softmax_of_queries_and_keys_together() {
    silent(|g| {
        with_attention(g, 1.0, |_, q, k, v| {
            let memory = k.softmax(1).transpose(1, 2).matmul(v);
            q.softmax(-1).matmul(&memory)
        })
    });
}

#[test]
fn experts_are_gated() {
    silent(|g| {
        let (n, d, c, e) = (between(g, 2, 12), 5, 3, between(g, 2, 4));
        let gate = weight(g, d, e).named("gate");
        let experts: Vec<Tensor> = (0..e).map(|_| weight(g, d, c)).collect();
        let mut all = experts.clone();
        all.push(gate.clone());
        let mut adam = AdamW::new(all, 0.01);
        let mut watch = Workflow::tensors(&[]).and(&adam);
        let hard = between(g, 0, 2) == 0;
        for _ in 0..6 {
            let (x, y) = (normal(g, &[n, d]), symbols(g, &[n], c));
            let mut share = x.matmul(&gate).softmax(1);
            if hard {
                let best = share.detach().argmax(1, false).one_hot(e).to_dtype(DType::F32);
                share = share * best;
            }
            let outs: Vec<Tensor> =
                experts.iter().map(|w| x.matmul(w).reshape([n, 1, c])).collect();
            let outs = Tensor::try_cat(&outs.iter().collect::<Vec<_>>(), 1)?;
            let out = share.reshape([n, 1, e]).matmul(&outs).reshape([n, c]);
            step(&mut watch, &[&x], &[&y], &out.cross_entropy(&y), &mut adam)?;
        }
        Ok(watch.report())
    });
}
