//! Three composed models, in f64 and of random sizes: the names MLP with batch norm, a two-layer
//! classifier, one transformer block. Each is written once in primitive ops and once with fused
//! ones.

use super::Subject;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::DType;
use chainrule_core::ops::{Attention, CrossEntropy};

/// A whole number from `low` to `high`.
pub(super) fn between(low: usize, high: usize, g: &mut Generator) -> usize {
    low + (g.random_u64() % (high - low + 1) as u64) as usize
}

/// `count` different sizes, so that no two axes can be mistaken for each other.
fn sizes<const N: usize>(from: usize, to: usize, g: &mut Generator) -> [usize; N] {
    let mut all: Vec<usize> = (from..=to).collect();
    std::array::from_fn(|_| all.swap_remove(between(0, all.len() - 1, g)))
}

fn randn(shape: &[usize], scale: f64, g: &mut Generator) -> Result<Tensor> {
    Tensor::try_randn(shape, DType::F64, g)?.try_mul(scale)
}

fn indices(count: usize, below: usize, g: &mut Generator) -> Vec<i64> {
    (0..count).map(|_| between(0, below - 1, g) as i64).collect()
}

/// All of them, with the sizes of one draw.
pub(super) fn all(g: &mut Generator) -> Result<Vec<Subject>> {
    Ok(vec![
        names(false, g)?,
        names(true, g)?,
        classifier(false, g)?,
        classifier(true, g)?,
        block(false, g)?,
        block(true, g)?,
    ])
}

/// The names MLP: in the lecture's steps, or with `embedding`, `batch_norm` and `cross_entropy`.
fn names(fused: bool, g: &mut Generator) -> Result<Subject> {
    let [n, symbols, width, hidden] = sizes(4, 13, g);
    let context = 3;
    let parameters = vec![
        randn(&[symbols, width], 1.0, g)?,
        randn(&[context * width, hidden], 0.3, g)?,
        randn(&[hidden], 0.1, g)?,
        randn(&[1, hidden], 0.1, g)?.try_add(1.0)?,
        randn(&[1, hidden], 0.1, g)?,
        randn(&[hidden, symbols], 0.3, g)?,
        randn(&[symbols], 0.1, g)?,
    ];
    let x = Tensor::try_from_slice(&indices(n * context, symbols, g), [n, context])?;
    let y = Tensor::from(indices(n, symbols, g));
    let rows = n as f64;
    let forward = move |p: &[Tensor]| {
        let [c, w1, b1, gain, bias, w2, b2] = p else { unreachable!("seven parameters") };
        let emb = c.try_embedding(&x)?.named("emb");
        let embcat = emb.try_reshape([n as i64, -1])?.named("embcat");
        let hprebn = embcat.try_matmul(w1)?.try_add(b1)?.named("hprebn");
        let hpreact = if fused {
            hprebn.try_batch_norm(
                Some(&gain.try_squeeze(0)?),
                Some(&bias.try_squeeze(0)?),
                1e-5,
                1,
            )?
        } else {
            let bnmeani = hprebn.try_sum(0, true)?.try_mul(1.0 / rows)?.named("bnmeani");
            let bndiff = hprebn.try_sub(&bnmeani)?.named("bndiff");
            let bndiff2 = bndiff.try_square()?.named("bndiff2");
            let bnvar = bndiff2.try_sum(0, true)?.try_mul(1.0 / (rows - 1.0))?.named("bnvar");
            let bnvar_inv = bnvar.try_add(1e-5)?.try_pow(-0.5)?.named("bnvar_inv");
            let bnraw = bndiff.try_mul(&bnvar_inv)?.named("bnraw");
            gain.try_mul(&bnraw)?.try_add(bias)?
        };
        let h = hpreact.named("hpreact").try_tanh()?.named("h");
        let logits = h.try_matmul(w2)?.try_add(b2)?.named("logits");
        if fused {
            return logits.try_cross_entropy(&y);
        }
        let maxes = logits.try_max_axis(1, true)?.0.named("logit_maxes");
        let norm_logits = logits.try_sub(&maxes)?.named("norm_logits");
        let counts = norm_logits.try_exp()?.named("counts");
        let counts_sum_inv = counts.try_sum(1, true)?.try_pow(-1.0)?.named("counts_sum_inv");
        let logprobs = counts.try_mul(&counts_sum_inv)?.named("probs").try_log()?.named("logprobs");
        let picked = logprobs.try_gather(1, &y.try_unsqueeze(1)?)?;
        picked.try_mean_all()?.try_neg()
    };
    let name = if fused { "names MLP, fused ops" } else { "names MLP, in steps" };
    Ok(Subject::model(name, parameters, forward))
}

/// A classifier of two layers: `linear`, an activation, dropout, a second layer, the loss with a
/// row that is left out.
fn classifier(fused: bool, g: &mut Generator) -> Result<Subject> {
    let [n, inputs, hidden, classes] = sizes(3, 12, g);
    let parameters = vec![
        randn(&[n, inputs], 1.0, g)?,
        randn(&[hidden, inputs], 0.5, g)?,
        randn(&[hidden], 0.3, g)?,
        randn(&[classes, hidden], 0.5, g)?,
        randn(&[classes], 0.3, g)?,
    ];
    let mut targets = indices(n, classes, g);
    targets[0] = 0;
    targets[1] = 1;
    let targets = Tensor::from(targets);
    let (seed, slope) = (g.random_u64(), between(0, 3, g));
    let forward = move |p: &[Tensor]| {
        let [x, w1, b1, w2, b2] = p else { unreachable!("five parameters") };
        let pre = match fused {
            true => x.try_linear(w1, Some(b1))?,
            false => x.try_matmul(&w1.try_t()?)?.try_add(b1)?,
        };
        let pre = pre.named("pre");
        let h = match slope {
            0 => pre.try_relu()?,
            1 => pre.try_tanh()?,
            2 => pre.try_sigmoid()?,
            _ => pre.try_leaky_relu(0.1)?,
        };
        let h = h.named("h").try_dropout(0.3, true, &mut Generator::manual_seed(seed))?;
        if fused {
            let logits = h.try_linear(w2, Some(b2))?.named("logits");
            let options = CrossEntropy { ignore_index: Some(0), ..CrossEntropy::default() };
            return logits.try_cross_entropy_with(&targets, &options);
        }
        let logits = h.try_matmul(&w2.try_t()?)?.try_add(b2)?.named("logits");
        logits.try_log_softmax(1)?.named("logprobs").try_nll_loss(&targets)
    };
    let name = if fused { "classifier, fused ops" } else { "classifier, in steps" };
    Ok(Subject::model(name, parameters, forward))
}

/// One transformer block between an embedding and a loss: attention in steps, or as one op.
fn block(fused: bool, g: &mut Generator) -> Result<Subject> {
    let [batch, time, symbols, head] = sizes(2, 7, g);
    let (heads, width) = (2, 2 * head);
    let parameters = vec![
        randn(&[symbols, width], 1.0, g)?,
        randn(&[time, width], 0.5, g)?,
        randn(&[width], 0.2, g)?.try_add(1.0)?,
        randn(&[width], 0.2, g)?,
        randn(&[3 * width, width], 0.4, g)?,
        randn(&[width, width], 0.4, g)?,
        randn(&[width], 0.2, g)?.try_add(1.0)?,
        randn(&[4 * width, width], 0.4, g)?,
        randn(&[4 * width], 0.2, g)?,
        randn(&[width, 4 * width], 0.3, g)?,
    ];
    let x = Tensor::try_from_slice(&indices(batch * time, symbols, g), [batch, time])?;
    let y = Tensor::try_from_slice(&indices(batch * time, symbols, g), [batch * time])?;
    let later = Tensor::ones([time, time]).try_triu(1)?.try_gt(0.5)?;
    let forward = move |p: &[Tensor]| {
        let [tokens, positions, gain1, bias1, qkv, out, gain2, wide, bias2, narrow] = p else {
            unreachable!("ten parameters")
        };
        let x = tokens.try_embedding(&x)?.try_add(positions)?.named("x");
        let normed = x.try_layer_norm(width, Some(gain1), Some(bias1), 1e-5)?.named("normed");
        let all = normed.try_linear(qkv, None)?.named("qkv");
        let part = |i: usize| {
            let part = all.try_narrow(2, i * width, width)?;
            part.try_reshape([batch, time, heads, head])?.try_permute(&[0, 2, 1, 3])
        };
        let (q, k, v) = (part(0)?.named("q"), part(1)?.named("k"), part(2)?.named("v"));
        let mixed = if fused {
            q.try_attention(&k, &v, &Attention::causal())?
        } else {
            let scores = q.try_matmul(&k.try_transpose(-2, -1)?)?.try_div((head as f64).sqrt())?;
            let masked = scores.named("scores").try_masked_fill(&later, -1e30)?;
            masked.try_softmax(-1)?.named("attention").try_matmul(&v)?
        };
        let joined = mixed.try_permute(&[0, 2, 1, 3])?.try_reshape([batch, time, width])?;
        let x = x.try_add(&joined.try_linear(out, None)?)?.named("residual");
        let normed = x.try_rms_norm(width, Some(gain2), Some(1e-5))?.named("normed2");
        let hidden = normed.try_linear(wide, Some(bias2))?;
        let hidden = if fused { hidden.try_gelu()? } else { hidden.try_silu()? };
        let x = x.try_add(&hidden.try_linear(narrow, None)?)?.named("block");
        let logits = x.try_reshape([(batch * time) as i64, -1])?.try_matmul(&tokens.try_t()?)?;
        logits.named("logits").try_cross_entropy(&y)
    };
    let name = if fused { "transformer block, fused ops" } else { "transformer block, in steps" };
    Ok(Subject::model(name, parameters, forward))
}
