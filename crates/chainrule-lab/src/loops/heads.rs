//! A block of attention in several heads over padded sequences, with a binary answer for each
//! sequence.

use super::runs::{STEPS, WatchedLoop, between, normal, weight};
use crate::dtype::DType;
use crate::error::Result;
use crate::nn::{Layer, LayerNorm, Module};
use crate::optim::{Adam, Optimizer};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_check::workflow::Mistake::{self, *};
use chainrule_check::workflow::{Workflow, WorkflowReport};
use chainrule_core::{Attention, BceWithLogits, Reduction};

pub(super) const RUN: WatchedLoop = WatchedLoop {
    name: "heads over padding",
    mistakes: &[
        MissingZeroGrad,
        StaleGradient,
        DetachedBranch,
        ParameterNotHeld,
        DoubleSoftmax,
        AttentionScale,
        MaskAfterSoftmax,
        SoftmaxAxis,
        SummedLoss,
        UnusedInput,
        DropoutInEvaluation,
    ],
    run,
};

/// The sizes of the block.
struct Sizes {
    batch: usize,
    time: usize,
    heads: usize,
    width: usize,
}

struct Block {
    norm: LayerNorm,
    /// For queries, keys, values and what comes out.
    weights: [Tensor; 4],
    /// The weights for the second input, which is the same for a whole sequence.
    side: Tensor,
    answer: Tensor,
}

fn run(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let sizes = Sizes {
        batch: between(g, 3, 8),
        time: between(g, 4, 9),
        heads: between(g, 1, 4),
        width: between(g, 4, 9),
    };
    let whole = sizes.heads * sizes.width;
    let block = Block {
        norm: LayerNorm::new(whole),
        weights: ["query", "key", "value", "out"].map(|name| weight(g, whole, whole).named(name)),
        side: weight(g, 3, whole).named("side"),
        answer: weight(g, whole, 1).named("answer"),
    };
    let mut held = block.norm.parameters();
    held.extend([&block.side, &block.answer].map(Tensor::clone));
    held.extend_from_slice(&block.weights[usize::from(is(ParameterNotHeld))..]);
    let mut adam = Adam::new(held, 0.01);
    let mut watch = Workflow::tensors(&[]).and(&adam);
    // The op hides keys by itself, so a mask after softmax has to be written out.
    let fused = between(g, 0, 2) == 0 && !(is(MaskAfterSoftmax) || is(SoftmaxAxis));
    for _ in 0..STEPS {
        let x = normal(g, &[sizes.batch, sizes.time, whole]);
        let side = normal(g, &[sizes.batch, 3]);
        let lengths: Vec<i64> =
            (0..sizes.batch).map(|_| between(g, 2, sizes.time as u64 + 1) as i64).collect();
        let there = Tensor::arange(0, sizes.time as i64).lt(Tensor::from(lengths).reshape([-1, 1]));
        let y = x.narrow(1, 0, 1).sum(-1, false).gt(0.0).to_dtype(DType::F32);
        let other = if is(UnusedInput) { normal(g, &[sizes.batch, 3]) } else { side.clone() };
        let mut hidden = block.run(&x, &other, &there, (&sizes, fused), wrong)?;
        if is(StaleGradient) {
            hidden = hidden.retain_grad().named("hidden");
        }
        let mut out = hidden.mean(1, false).matmul(&block.answer);
        if is(DoubleSoftmax) {
            out = out.sigmoid();
        }
        let reduction = if is(SummedLoss) { Reduction::Sum } else { Reduction::Mean };
        let options = BceWithLogits { reduction, ..BceWithLogits::default() };
        let loss = out.bce_with_logits_with(&y, &options);
        watch.forward([&x, &side], &y, &loss)?;
        if !is(MissingZeroGrad) {
            adam.zero_grad();
        }
        if is(StaleGradient) {
            loss.backward_with().keep_graph().run()?;
            adam.zero_grad();
        }
        loss.try_backward()?;
        adam.step()?;
        watch.step()?;
    }
    let (x, side) = (normal(g, &[sizes.batch, sizes.time, whole]), normal(g, &[sizes.batch, 3]));
    let there = Tensor::ones([sizes.batch, sizes.time]).to_dtype(DType::Bool);
    let masks = &mut Generator::manual_seed(g.random_u64());
    watch.evaluate(&x, |x| {
        let hidden = block.run(x, &side, &there, (&sizes, fused), wrong).expect("it ran before");
        if is(DropoutInEvaluation) { hidden.dropout(0.2, true, masks) } else { hidden }
    });
    Ok(watch.report())
}

impl Block {
    fn run(
        &self,
        x: &Tensor,
        side: &Tensor,
        there: &Tensor,
        (sizes, fused): (&Sizes, bool),
        wrong: Option<Mistake>,
    ) -> Result<Tensor> {
        let is = |m| wrong == Some(m);
        let Sizes { batch, time, heads, width } = *sizes;
        let whole = heads * width;
        let normed = self.norm.forward(x);
        let split = |w: &Tensor| {
            normed.matmul(w).reshape([batch, time, heads, width]).permute(&[0, 2, 1, 3])
        };
        let [wq, wk, wv, wo] = &self.weights;
        let (q, mut k, v) = (split(wq), split(wk), split(wv));
        if is(DetachedBranch) {
            k = k.detach();
        }
        let keys = there.reshape([batch, 1, 1, time]);
        let scale = is(AttentionScale).then_some(1.0);
        let mixed = if fused {
            let options = Attention { mask: Some(keys), scale, ..Attention::default() };
            q.try_attention(&k, &v, &options)?
        } else {
            let factor = scale.unwrap_or(1.0 / (width as f64).sqrt());
            let mut scores = q.matmul(&k.transpose(2, 3)) * factor;
            if !is(MaskAfterSoftmax) {
                scores = scores.masked_fill(&keys.logical_not(), -1e9);
            }
            let mut weights = scores.softmax(if is(SoftmaxAxis) { 2 } else { -1 });
            if is(MaskAfterSoftmax) {
                weights = weights * keys.to_dtype(DType::F32);
            }
            weights.matmul(&v)
        };
        let joined = mixed.permute(&[0, 2, 1, 3]).reshape([batch, time, whole]);
        Ok(x + joined.matmul(wo) + side.matmul(&self.side).reshape([batch, 1, whole]))
    }
}
