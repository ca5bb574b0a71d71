//! The training loops. Shapes and numbers are random; the session is not told which mistake a loop
//! has.

use crate::dtype::DType;
use crate::error::Result;
use crate::models::{Gpt, GptConfig, NamesMlp, NamesMlpConfig};
use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Relu, Sequential};
use crate::optim::{AdamW, Optimizer, Sgd};
use crate::rng::Generator;
use crate::tensor::{Tensor, no_grad};
use chainrule_check::workflow::Mistake::{self, *};
use chainrule_check::workflow::{Workflow, WorkflowReport};
use chainrule_core::{CrossEntropy, Reduction};

/// A loop, and the mistakes that can be written into it.
pub(super) struct WatchedLoop {
    pub name: &'static str,
    pub mistakes: &'static [Mistake],
    pub run: fn(&mut Generator, Option<Mistake>) -> Result<WorkflowReport>,
}

/// Steps of each loop: more than the detectors should need.
pub(super) const STEPS: usize = 8;

pub(super) const RUNS: &[WatchedLoop] = &[
    WatchedLoop {
        name: "classifier by hand",
        mistakes: &[
            MissingZeroGrad,
            StaleGradient,
            DetachedBranch,
            ParameterNotHeld,
            DoubleSoftmax,
            SoftmaxAxis,
            RunningStatistics,
            BatchStatistics,
            DropoutInEvaluation,
            SummedLoss,
            UnusedInput,
        ],
        run: by_hand,
    },
    WatchedLoop {
        name: "classifier of layers",
        mistakes: &[
            MissingZeroGrad,
            DetachedBranch,
            ParameterNotHeld,
            DoubleSoftmax,
            RunningStatistics,
            BatchStatistics,
            DropoutInEvaluation,
            SummedLoss,
        ],
        run: layers,
    },
    WatchedLoop {
        name: "names model",
        mistakes: &[
            MissingZeroGrad,
            BatchStatistics,
            RunningStatistics,
            DoubleSoftmax,
            UnusedInput,
            ShiftedLabels,
        ],
        run: names,
    },
    WatchedLoop {
        name: "attention by hand",
        mistakes: &[
            MissingZeroGrad,
            DetachedBranch,
            AttentionScale,
            MaskAfterSoftmax,
            SoftmaxAxis,
            ShiftedLabels,
            DoubleSoftmax,
        ],
        run: attention,
    },
    WatchedLoop {
        name: "gpt",
        mistakes: &[
            MissingZeroGrad,
            ParameterNotHeld,
            ShiftedLabels,
            DoubleSoftmax,
            SummedLoss,
            DropoutInEvaluation,
        ],
        run: gpt,
    },
    WatchedLoop {
        name: "regression",
        mistakes: &[MissingZeroGrad, SummedLoss, UnusedInput, DetachedBranch, ParameterNotHeld],
        run: regression,
    },
    super::heads::RUN,
];

pub(super) fn between(g: &mut Generator, low: u64, high: u64) -> usize {
    (low + g.random_u64() % (high - low)) as usize
}

pub(super) fn normal(g: &mut Generator, shape: &[usize]) -> Tensor {
    Tensor::randn(shape, DType::F32, g)
}

pub(super) fn weight(g: &mut Generator, rows: usize, columns: usize) -> Tensor {
    (normal(g, &[rows, columns]) * (1.0 / (rows as f64).sqrt())).parameter()
}

/// Random symbols.
fn symbols(g: &mut Generator, shape: &[usize], count: usize) -> Tensor {
    let mut all = vec![0i64; shape.iter().product()];
    g.fill_randint(0, count as i64, &mut all).expect("the range is not empty");
    Tensor::from_slice(&all, shape)
}

/// Two hidden layers in tensor operations, batch norm and dropout written out, cross-entropy in one
/// op or in steps.
fn by_hand(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let (n, d, h, c) = (between(g, 8, 40), between(g, 4, 12), between(g, 8, 24), between(g, 3, 9));
    let (in_steps, second) = (between(g, 0, 2) == 0, between(g, 0, 2) == 0);
    let (w1, w2, w3) =
        (weight(g, d, h).named("w1"), weight(g, h, h).named("w2"), weight(g, h, c).named("w3"));
    let (gain, bias) =
        (Tensor::ones([h]).parameter().named("gain"), Tensor::zeros([h]).parameter().named("bias"));
    let extra = weight(g, d, h).named("w_extra");
    let (mean, var) = (Tensor::zeros([h]).buffer(), Tensor::ones([h]).buffer());
    let truth = normal(g, &[d, c]);
    let mut held = vec![w1.clone(), w2.clone(), gain.clone(), bias.clone(), extra.clone()];
    if !is(ParameterNotHeld) {
        held.push(w3.clone());
    }
    let mut sgd = Sgd::new(held, 0.05);
    let mut watch = Workflow::tensors(&[]).and(&sgd);
    let keep = 0.8;
    let logits = |x: &Tensor, z: &Tensor, training: bool, g: &mut Generator| {
        let mut a = x.matmul(&w1);
        if !is(UnusedInput) {
            a = &a + z.matmul(&extra);
        } else {
            a = &a + x.matmul(&extra);
        }
        let batch = (training && !is(RunningStatistics)) || (!training && is(BatchStatistics));
        let (m, v) =
            if batch { (a.mean(0, true), a.var(0, 1, true)) } else { (mean.clone(), var.clone()) };
        if training {
            no_grad(|| {
                mean.set(&(&mean * 0.9 + a.mean(0, false) * 0.1).detach());
                var.set(&(&var * 0.9 + a.var(0, 1, false) * 0.1).detach());
            });
        }
        let hat = (&a - &m) / (&v + 1e-5).sqrt();
        let mut b = (&hat * &gain + &bias).tanh();
        if is(StaleGradient) && training {
            b = b.retain_grad().named("hidden");
        }
        if is(DetachedBranch) {
            b = b.detach();
        }
        if training || is(DropoutInEvaluation) {
            let mask = Tensor::rand(b.shape(), DType::F32, g).lt(keep).to_dtype(DType::F32);
            b = &b * &mask / keep;
        }
        let last = (b.matmul(&w2)).relu().matmul(&w3);
        (last, b)
    };
    for _ in 0..STEPS {
        let (x, z) = (normal(g, &[n, d]), normal(g, &[n, d]));
        let y = (x.matmul(&truth)).argmax(1, false);
        let (mut out, _) = logits(&x, &z, true, g);
        if is(DoubleSoftmax) {
            out = out.softmax(1);
        }
        let axis = if is(SoftmaxAxis) { 0 } else { 1 };
        let each = if in_steps || is(SoftmaxAxis) {
            out.log_softmax(axis).gather(1, &y.reshape([n, 1])).neg()
        } else {
            out.cross_entropy_with(
                &y,
                &CrossEntropy { reduction: Reduction::None, ..CrossEntropy::default() },
            )
        };
        let loss = match is(SummedLoss) {
            true => each.sum_all(),
            false if second => each.sum_all() / n as f64,
            false => each.mean_all(),
        };
        watch.forward([&x, &z], &y, &loss)?;
        if !is(MissingZeroGrad) {
            sgd.zero_grad();
        }
        if is(StaleGradient) {
            loss.backward_with().keep_graph().run()?;
            sgd.zero_grad();
        }
        loss.try_backward()?;
        sgd.step()?;
        watch.step()?;
    }
    let (x, z) = (normal(g, &[n, d]), normal(g, &[n, d]));
    let joined = Tensor::try_cat(&[&x, &z], 1)?;
    let mut masks = Generator::manual_seed(g.random_u64());
    watch.evaluate(&joined, |both| {
        let (x, z) = (both.narrow(1, 0, d), both.narrow(1, d, d));
        no_grad(|| logits(&x, &z, false, &mut masks).0)
    });
    Ok(watch.report())
}

#[derive(Module)]
struct Classifier {
    body: Sequential,
    head: Linear,
}

/// Layers with batch norm and dropout, AdamW with and without decay.
fn layers(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let (n, d, h, c) = (between(g, 8, 40), between(g, 4, 12), between(g, 8, 24), between(g, 3, 9));
    let mut body = Sequential::new().with(Linear::new(d, h, g));
    if !is(DropoutInEvaluation) {
        body = body.with(BatchNorm1d::new(h));
    }
    body = body.with(Relu);
    if !is(BatchStatistics) {
        body = body.with(Dropout::new(0.3, g));
    }
    let model = Classifier { body, head: Linear::new(h, c, g) };
    let held = if is(ParameterNotHeld) { model.body.parameters() } else { model.parameters() };
    let mut adam = AdamW::new(held, 0.01);
    let truth = normal(g, &[d, c]);
    let mut watch = Workflow::watch(&model, &adam);
    for _ in 0..STEPS {
        if !is(RunningStatistics) {
            model.train();
        }
        let x = normal(g, &[n, d]);
        let y = x.matmul(&truth).argmax(1, false);
        let mut features = model.body.forward(&x);
        if is(DetachedBranch) {
            features = features.detach();
        }
        let mut out = model.head.forward(&features);
        if is(DoubleSoftmax) {
            out = out.softmax(-1);
        }
        let reduction = if is(SummedLoss) { Reduction::Sum } else { Reduction::Mean };
        let loss =
            out.cross_entropy_with(&y, &CrossEntropy { reduction, ..CrossEntropy::default() });
        watch.forward(&x, &y, &loss)?;
        loss.try_backward()?;
        adam.step()?;
        watch.step()?;
        if !is(MissingZeroGrad) {
            adam.zero_grad();
        }
        if !(is(BatchStatistics) || is(DropoutInEvaluation)) {
            model.eval();
        }
        let x = normal(g, &[n, d]);
        watch.evaluate(&x, |x| no_grad(|| model.head.forward(&model.body.forward(x))));
    }
    Ok(watch.report())
}

/// The names model on windows of random words.
fn names(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let config = NamesMlpConfig {
        symbols: between(g, 8, 27),
        context: between(g, 2, 5),
        embedding: 4,
        hidden: between(g, 8, 24),
    };
    let (n, k) = (between(g, 12, 40), config.context);
    let model = NamesMlp::new(config, g);
    let model = if between(g, 0, 2) == 0 { model.with_primitive_batch_norm() } else { model };
    let mut sgd = Sgd::new(model.parameters(), 0.1);
    let mut watch = Workflow::watch(&model, &sgd);
    for _ in 0..STEPS {
        if !is(RunningStatistics) {
            model.train();
        }
        let text = symbols(g, &[n + k + 1], config.symbols).to_vec::<i64>();
        let windows: Vec<i64> = (0..n).flat_map(|i| text[i..i + k].to_vec()).collect();
        let ahead = if is(ShiftedLabels) { k - 1 } else { k };
        let next: Vec<i64> = (0..n).map(|i| text[i + ahead]).collect();
        let (x, y) = (Tensor::from_slice(&windows, [n, k]), Tensor::from(next));
        let seen = match is(UnusedInput) {
            // The last symbol, repeated: the others are never looked at.
            true => x.narrow(1, k as i64 as usize - 1, 1).expand([n, k]),
            false => x.clone(),
        };
        let mut logits = model.forward(&seen);
        if is(DoubleSoftmax) {
            logits = logits.softmax(1);
        }
        let loss = logits.cross_entropy(&y);
        watch.forward(&x, &y, &loss)?;
        if !is(MissingZeroGrad) {
            sgd.zero_grad();
        }
        loss.try_backward()?;
        sgd.step()?;
        watch.step()?;
        if !is(BatchStatistics) {
            model.eval();
        }
        watch.evaluate(&x, |x| no_grad(|| model.forward(x)));
    }
    Ok(watch.report())
}

/// One head of causal attention in primitive ops, on random symbols.
fn attention(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let (b, t, v, d) = (between(g, 2, 6), between(g, 4, 10), between(g, 5, 20), between(g, 4, 17));
    let table = normal(g, &[v, d]).parameter().named("table");
    let positions = normal(g, &[t, d]).parameter().named("positions");
    let names = ["q", "k", "v", "out"];
    let [wq, wk, wv, wo] = names.map(|name| weight(g, d, d).named(name));
    let head = weight(g, d, v).named("head");
    let all = vec![&table, &positions, &wq, &wk, &wv, &wo, &head];
    let mut adam = AdamW::new(all.into_iter().cloned().collect(), 0.01);
    let mut watch = Workflow::tensors(&[]).and(&adam);
    let early = between(g, 0, 2) == 0;
    for _ in 0..STEPS {
        let text = symbols(g, &[b, t + 2], v);
        let x = text.narrow(1, 0, t);
        let y = text.narrow(1, if is(ShiftedLabels) { [0, 2][usize::from(early)] } else { 1 }, t);
        let hidden = x_embedded(&table, &x) + &positions;
        let (mut q, k, values) = (hidden.matmul(&wq), hidden.matmul(&wk), hidden.matmul(&wv));
        if is(DetachedBranch) {
            q = q.detach();
        }
        let scale = if is(AttentionScale) { 1.0 } else { 1.0 / (d as f64).sqrt() };
        let mut scores = if early {
            (&q * scale).matmul(&k.transpose(1, 2))
        } else {
            q.matmul(&k.transpose(1, 2)) * scale
        };
        let seen = Tensor::ones([t, t]).tril(0);
        let axis = if is(SoftmaxAxis) { 1 } else { -1 };
        if !is(MaskAfterSoftmax) {
            scores = scores.masked_fill(&seen.eq(0.0), f64::NEG_INFINITY);
        }
        let mut weights = scores.softmax(axis);
        if is(MaskAfterSoftmax) {
            weights =
                if early { &weights * &seen } else { weights.masked_fill(&seen.eq(0.0), 0.0) };
        }
        let out = (&hidden + weights.matmul(&values).matmul(&wo)).matmul(&head);
        let mut logits = out.reshape([b * t, v]);
        if is(DoubleSoftmax) {
            let e = (&logits - logits.amax(1, true)).exp();
            logits = &e / e.sum(1, true);
        }
        let loss = logits.cross_entropy(&y.reshape([b * t]));
        watch.forward(&x, &y, &loss)?;
        if !is(MissingZeroGrad) {
            adam.zero_grad();
        }
        loss.try_backward()?;
        adam.step()?;
        watch.step()?;
    }
    Ok(watch.report())
}

fn x_embedded(table: &Tensor, x: &Tensor) -> Tensor {
    table.embedding(x)
}

/// A small GPT, two micro-batches to a step.
fn gpt(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let heads = between(g, 1, 3);
    let (b, t) = (between(g, 2, 5), between(g, 4, 9));
    let config = GptConfig {
        symbols: between(g, 6, 20),
        context: t,
        layers: between(g, 1, 3),
        heads,
        width: heads * between(g, 3, 7),
        dropout: 0.1,
    };
    let model = Gpt::new(config, g);
    let held = if is(ParameterNotHeld) { model.blocks.parameters() } else { model.parameters() };
    let mut adam = AdamW::new(held, 1e-3);
    let mut watch = Workflow::watch(&model, &adam);
    for _ in 0..STEPS {
        model.train();
        if !is(MissingZeroGrad) {
            adam.zero_grad();
        }
        for _ in 0..2 {
            let text = symbols(g, &[b, t + 1], config.symbols);
            let x = text.narrow(1, 0, t);
            let y = text.narrow(1, usize::from(!is(ShiftedLabels)), t);
            let mut logits = model.forward(&x).reshape([b * t, config.symbols]);
            if is(DoubleSoftmax) {
                logits = logits.softmax(1);
            }
            let reduction = if is(SummedLoss) { Reduction::Sum } else { Reduction::Mean };
            let loss = logits.cross_entropy_with(
                &y.reshape([b * t]),
                &CrossEntropy { reduction, ..CrossEntropy::default() },
            );
            watch.forward(&x, &y, &loss)?;
            loss.try_backward()?;
        }
        adam.step()?;
        watch.step()?;
        if !is(DropoutInEvaluation) {
            model.eval();
        }
        let x = symbols(g, &[b, t], config.symbols);
        watch.evaluate(&x, |x| no_grad(|| model.forward(x)));
    }
    Ok(watch.report())
}

/// A regression with a skip, one layer frozen.
fn regression(g: &mut Generator, wrong: Option<Mistake>) -> Result<WorkflowReport> {
    let is = |m| wrong == Some(m);
    let (n, d, h) = (between(g, 6, 40), between(g, 3, 10), between(g, 4, 16));
    let (w1, w2, frozen) =
        (weight(g, d, h).named("w1"), weight(g, h, 1).named("w2"), weight(g, d, h).named("frozen"));
    frozen.set_requires_grad(false)?;
    let all = [&w1, &w2];
    let held: Vec<Tensor> =
        if is(ParameterNotHeld) { vec![w1.clone()] } else { all.map(Tensor::clone).to_vec() };
    let mut sgd = Sgd::new(held, 0.01);
    let mut watch = Workflow::tensors(&[]).and(&sgd);
    let truth = normal(g, &[d, 1]);
    for _ in 0..STEPS {
        let x = normal(g, &[n, d]);
        let y = x.matmul(&truth);
        let read = if is(UnusedInput) { Tensor::zeros_like(&x) } else { x.clone() };
        let mut hidden = read.matmul(&w1).tanh() + read.matmul(&frozen);
        if is(DetachedBranch) {
            hidden = Tensor::from_slice(&hidden.to_vec::<f32>(), hidden.shape());
        }
        let off = hidden.matmul(&w2) - &y;
        let square = &off * &off;
        let loss = if is(SummedLoss) { square.sum_all() } else { square.mean_all() };
        watch.forward(&x, &y, &loss)?;
        if !is(MissingZeroGrad) {
            sgd.zero_grad();
        }
        loss.try_backward()?;
        sgd.step()?;
        watch.step()?;
    }
    Ok(watch.report())
}
