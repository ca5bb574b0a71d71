//! Formulas and models with a name, traced with their gradients: what `chainrule explain` knows.

mod models;
mod page;
#[cfg(test)]
mod tests;

pub use page::explain_page;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_program::Program;

/// A formula or a model that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Formula {
    /// `softmax-ce`
    pub name: &'static str,
    /// Its description, in a few words.
    pub what: &'static str,
    trace: fn() -> Result<Program>,
}

impl Formula {
    /// The program of the formula, its gradients and, for models, the update of the weights, as it
    /// is traced.
    pub fn trace(&self) -> Result<Program> {
        (self.trace)()
    }
}

impl std::fmt::Debug for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Formula").field("name", &self.name).field("what", &self.what).finish()
    }
}

/// All of them: models first.
pub fn formulas() -> &'static [Formula] {
    FORMULAS
}

/// The formula of this name. The error for a name that is not known lists those nearest to it.
pub fn formula(name: &str) -> Result<&'static Formula> {
    FORMULAS.iter().find(|f| f.name == name).ok_or_else(|| {
        let mut near: Vec<&str> = FORMULAS.iter().map(|f| f.name).collect();
        near.sort_by_key(|known| distance(name, known));
        near.truncate(3);
        let why =
            format!("there is no formula `{name}`; the nearest names are {}", near.join(", "));
        Error::argument("explain", why)
    })
}

/// Edit distance of two words; parts of a name are near to it.
fn distance(a: &str, b: &str) -> usize {
    if !a.is_empty() && b.contains(a) {
        return 0;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

const FORMULAS: &[Formula] = &[
    Formula {
        name: "names",
        what: "a training step of the names model in small steps",
        trace: models::names,
    },
    Formula { name: "mnist", what: "a training step of the digits model", trace: models::mnist },
    Formula {
        name: "gpt-small",
        what: "a training step of a GPT of 4 layers",
        trace: models::gpt_small,
    },
    Formula {
        name: "softmax-ce",
        what: "cross-entropy of softmax, less the row maximum",
        trace: softmax_ce,
    },
    Formula {
        name: "label-smoothing",
        what: "cross-entropy of softmax with smoothed labels",
        trace: label_smoothing,
    },
    Formula {
        name: "temperature",
        what: "cross-entropy of log-softmax at a temperature",
        trace: temperature,
    },
    Formula { name: "logsumexp", what: "log-sum-exp, less the row maximum", trace: logsumexp },
    Formula {
        name: "sigmoid-bce",
        what: "binary cross-entropy of the logistic function",
        trace: sigmoid_bce,
    },
    Formula {
        name: "batch-norm",
        what: "batch normalisation with the variance over n - 1",
        trace: || batch_norm(1.0),
    },
    Formula {
        name: "batch-norm-biased",
        what: "batch normalisation with the variance over n",
        trace: || batch_norm(0.0),
    },
    Formula { name: "layer-norm", what: "layer normalisation", trace: layer_norm },
    Formula {
        name: "rms-norm",
        what: "normalisation by the root of the mean square",
        trace: rms_norm,
    },
    Formula { name: "l2-norm", what: "rows divided by their length", trace: l2_norm },
    Formula {
        name: "weight-norm",
        what: "weights as a length and a direction",
        trace: weight_norm,
    },
    Formula { name: "attention", what: "scaled dot-product attention", trace: attention },
];

/// A tensor whose gradient is wanted.
fn leaf(name: &str, shape: &[usize], g: &mut Generator) -> Result<Tensor> {
    Ok(Tensor::try_randn(shape, DType::F32, g)?.try_parameter()?.named(name))
}

/// The results, then the gradients of the leaves.
fn with_gradients(y: Tensor, leaves: &[&Tensor]) -> Result<Vec<Tensor>> {
    let mut out = vec![y];
    for leaf in leaves {
        out.push(leaf.try_grad()?);
    }
    Ok(out)
}

/// Traces a loss of leaves and of labels.
fn loss(
    labels: (&str, &Tensor),
    leaves: &[&Tensor],
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Program> {
    Program::trace([labels], |a| {
        let loss = f(&a[0])?.named("loss");
        loss.try_backward()?;
        with_gradients(loss, leaves)
    })
}

/// Traces a layer of leaves, with the gradient of its result as the input.
fn layer(
    shape: &[usize],
    leaves: &[&Tensor],
    f: impl FnOnce() -> Result<Tensor>,
) -> Result<Program> {
    let upstream = Tensor::ones(shape);
    Program::trace([("g", &upstream)], |a| {
        let y = f()?.named("y");
        y.backward_with().gradient(&a[0]).run()?;
        with_gradients(y, leaves)
    })
}

/// Logits of 32 rows and 27 classes, and labels.
fn classification() -> Result<(Tensor, Tensor)> {
    let g = &mut Generator::manual_seed(1);
    Ok((leaf("logits", &[32, 27], g)?, Tensor::try_randint(0, 27, [32], g)?))
}

/// The logarithms of softmax, step by step.
pub(super) fn log_softmax(logits: &Tensor) -> Result<Tensor> {
    let logit_maxes = logits.try_max_axis(1, true)?.0.named("logit_maxes");
    let norm_logits = logits.try_sub(&logit_maxes)?.named("norm_logits");
    let counts = norm_logits.try_exp()?.named("counts");
    let counts_sum = counts.try_sum(1, true)?.named("counts_sum");
    let counts_sum_inv = counts_sum.try_pow(-1.0)?.named("counts_sum_inv");
    let probs = counts.try_mul(&counts_sum_inv)?.named("probs");
    Ok(probs.try_log()?.named("logprobs"))
}

/// Minus the mean of the labels' elements.
pub(super) fn mean_of_picked(logprobs: &Tensor, labels: &Tensor) -> Result<Tensor> {
    let n = labels.numel();
    let picked = logprobs.try_gather(1, &labels.try_reshape([n, 1])?)?.named("picked");
    picked.try_mean(.., false)?.try_neg()
}

fn softmax_ce() -> Result<Program> {
    let (logits, labels) = classification()?;
    loss(("labels", &labels), &[&logits], |labels| mean_of_picked(&log_softmax(&logits)?, labels))
}

fn label_smoothing() -> Result<Program> {
    let (logits, labels) = classification()?;
    loss(("labels", &labels), &[&logits], |labels| {
        let logprobs = log_softmax(&logits)?;
        let own = mean_of_picked(&logprobs, labels)?.named("own");
        let even = logprobs.try_mean(.., false)?.try_neg()?.named("even");
        own.try_mul(0.9)?.try_add(&even.try_mul(0.1)?)
    })
}

fn temperature() -> Result<Program> {
    let (logits, labels) = classification()?;
    loss(("labels", &labels), &[&logits], |labels| {
        let cooled = logits.try_div(2.0)?.named("cooled");
        let top = cooled.try_max_axis(1, true)?.0.named("top");
        let shifted = cooled.try_sub(&top)?.named("shifted");
        let sum = shifted.try_exp()?.named("counts").try_sum(1, true)?.named("counts_sum");
        let logprobs = shifted.try_sub(&sum.try_log()?)?.named("logprobs");
        mean_of_picked(&logprobs, labels)
    })
}

fn logsumexp() -> Result<Program> {
    let x = leaf("x", &[32, 27], &mut Generator::manual_seed(1))?;
    layer(&[32, 1], &[&x], || {
        let top = x.try_max_axis(1, true)?.0.named("top");
        let sum = x.try_sub(&top)?.try_exp()?.named("counts").try_sum(1, true)?.named("counts_sum");
        sum.try_log()?.try_add(&top)
    })
}

fn sigmoid_bce() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let logits = leaf("logits", &[32, 10], g)?;
    let labels = Tensor::try_rand([32, 10], DType::F32, g)?;
    loss(("labels", &labels), &[&logits], |labels| {
        let p = logits.try_sigmoid()?.named("p");
        let yes = labels.try_mul(&p.try_log()?)?.named("yes");
        let rest = p.try_neg()?.try_add(1.0)?.named("q");
        let no = labels.try_neg()?.try_add(1.0)?.try_mul(&rest.try_log()?)?.named("no");
        yes.try_add(&no)?.try_mean(.., false)?.try_neg()
    })
}

/// Batch normalisation of 32 rows of 200 features, step by step.
fn batch_norm(correction: f64) -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let (x, gain) = (leaf("x", &[32, 200], g)?, leaf("gain", &[1, 200], g)?);
    let bias = leaf("bias", &[1, 200], g)?;
    layer(&[32, 200], &[&x, &gain, &bias], || normalised(&x, &gain, &bias, correction))
}

/// Batch normalisation, step by step.
pub(super) fn normalised(
    x: &Tensor,
    gain: &Tensor,
    bias: &Tensor,
    correction: f64,
) -> Result<Tensor> {
    let n = x.shape()[0] as f64;
    let bnmean = x.try_sum(0, true)?.try_mul(1.0 / n)?.named("bnmean");
    let bndiff = x.try_sub(&bnmean)?.named("bndiff");
    let bndiff2 = bndiff.try_pow(2.0)?.named("bndiff2");
    let bnvar = bndiff2.try_sum(0, true)?.try_mul(1.0 / (n - correction))?.named("bnvar");
    let bnvar_inv = bnvar.try_add(1e-5)?.try_pow(-0.5)?.named("bnvar_inv");
    let bnraw = bndiff.try_mul(&bnvar_inv)?.named("bnraw");
    gain.try_mul(&bnraw)?.try_add(bias)
}

fn layer_norm() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let (x, gain) = (leaf("x", &[32, 128], g)?, leaf("gain", &[128], g)?);
    let bias = leaf("bias", &[128], g)?;
    layer(&[32, 128], &[&x, &gain, &bias], || {
        let mean = x.try_mean(1, true)?.named("mean");
        let diff = x.try_sub(&mean)?.named("diff");
        let var = diff.try_square()?.try_mean(1, true)?.named("var");
        let std = var.try_add(1e-5)?.try_sqrt()?.named("std");
        let hat = diff.try_div(&std)?.named("hat");
        hat.try_mul(&gain)?.try_add(&bias)
    })
}

fn rms_norm() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let (x, gain) = (leaf("x", &[32, 128], g)?, leaf("gain", &[128], g)?);
    layer(&[32, 128], &[&x, &gain], || {
        let mean = x.try_square()?.try_mean(1, true)?.named("mean_square");
        let root = mean.try_add(1e-5)?.try_sqrt()?.named("root");
        x.try_div(&root)?.named("hat").try_mul(&gain)
    })
}

fn l2_norm() -> Result<Program> {
    let x = leaf("x", &[32, 128], &mut Generator::manual_seed(1))?;
    layer(&[32, 128], &[&x], || {
        let length = x.try_square()?.try_sum(1, true)?.try_sqrt()?.named("length");
        x.try_div(&length)
    })
}

fn weight_norm() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let (v, length) = (leaf("v", &[64, 128], g)?, leaf("length", &[64, 1], g)?);
    layer(&[64, 128], &[&v, &length], || {
        let norm = v.try_square()?.try_sum(1, true)?.try_sqrt()?.named("norm");
        v.try_div(&norm)?.named("direction").try_mul(&length)
    })
}

fn attention() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let [q, k, v] = [leaf("q", &[64, 32], g)?, leaf("k", &[64, 32], g)?, leaf("v", &[64, 32], g)?];
    layer(&[64, 32], &[&q, &k, &v], || {
        let scores = q.try_matmul(&k.try_t()?)?.try_mul(1.0 / 32f64.sqrt())?.named("scores");
        let top = scores.try_max_axis(1, true)?.0.named("top");
        let counts = scores.try_sub(&top)?.try_exp()?.named("counts");
        let weights =
            counts.try_div(counts.try_sum(1, true)?.named("counts_sum"))?.named("weights");
        weights.try_matmul(&v)
    })
}
