//! A training step of the names model, written by hand over slices with the library's kernels,
//! beside the compiled step, in turns.
//!
//! It is what a program can hope for: nothing is looked up, nothing is planned, and batch norm has
//! kernels of its own. `cargo bench -p chainrule --bench names_by_hand` prints microseconds a step,
//! the best of many groups.

use std::hint::black_box;
use std::time::Instant;

use chainrule::nn::Module;
use chainrule::optim::Sgd;
use chainrule::program::Program;
use chainrule::{Generator, Tensor};
use chainrule_kernels::gather::{add_rows_to, take_rows};
use chainrule_kernels::gemm::{Accum, Batch, Mat, affine_f32, batched_f32};
use chainrule_kernels::math::tanh_slice;
use chainrule_kernels::norm::{
    BatchNormUpstream, ColumnAffine, batch_norm_apply, batch_norm_grad, batch_norm_stats, inv_std,
};
use chainrule_kernels::optim::update0;
use chainrule_kernels::reduce::sum;
use chainrule_kernels::softmax::{cross_entropy_grad_rows, cross_entropy_rows};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};

const ROWS: usize = 32;
const WIDE: usize = 30;
const HIDDEN: usize = 200;
const SYMBOLS: usize = 27;
const LR: f32 = 0.1;
const GROUPS: usize = 40;
const STEPS: usize = 250;

/// Weights: embedding, W1, b1, W2, b2, gain, bias.
struct ByHand {
    weights: [Vec<f32>; 7],
    room: Room,
}

/// All that a step computes.
struct Room {
    emb: Vec<f32>,
    h: [Vec<f32>; 4],
    stats: [Vec<f32>; 5],
    logits: [Vec<f32>; 3],
    losses: Vec<f32>,
    small: Vec<f32>,
}

fn mat(data: &[f32], rows: usize, cols: usize) -> Mat<'_, f32> {
    Mat { data, rows, cols, row_stride: cols as isize, col_stride: 1 }
}

/// `out = alpha * a @ b`, or that added to it.
fn product(alpha: f32, a: Mat<'_, f32>, b: Mat<'_, f32>, accum: Accum, out: &mut [f32]) {
    batched_f32(alpha, a, b, Batch::ONE, accum, out);
}

/// `w -= lr * g`.
fn descend(w: &mut [f32], g: &[f32]) {
    update0(w, g, |w, g| w - LR * g);
}

impl ByHand {
    fn new(model: &NamesMlp) -> ByHand {
        let m = model;
        let all = [&m.embedding, &m.w1, &m.b1, &m.w2, &m.b2, &m.bngain, &m.bnbias];
        let zeros = |n: usize| vec![0.0f32; n];
        let room = Room {
            emb: zeros(ROWS * WIDE),
            h: [(); 4].map(|()| zeros(ROWS * HIDDEN)),
            stats: [(); 5].map(|()| zeros(HIDDEN)),
            logits: [(); 3].map(|()| zeros(ROWS * SYMBOLS)),
            losses: zeros(ROWS),
            small: zeros(HIDDEN),
        };
        ByHand { weights: all.map(|t| t.to_vec::<f32>()), room }
    }

    fn step(&mut self, x: &[i64], y: &[i64]) -> f32 {
        let [c, w1, b1, w2, b2, gain, bias] = &mut self.weights;
        let Room { emb, h: [pre, hat, h, dh], stats, logits: [logits, probs, d], losses, small } =
            &mut self.room;
        let [mean, var, inv, dgain, dbias] = stats;
        take_rows(c, SYMBOLS, WIDE / 3, x, emb);
        affine_f32(mat(emb, ROWS, WIDE), mat(w1, WIDE, HIDDEN), b1, pre);
        batch_norm_stats(pre, ROWS, HIDDEN, 1, mean, var);
        inv_std(var, 1e-5, inv);
        let by = ColumnAffine { mean, inv_std: inv, gain: Some(gain), bias: Some(bias) };
        batch_norm_apply(pre, ROWS, HIDDEN, by, dh, Some(hat));
        tanh_slice(dh, h);
        affine_f32(mat(h, ROWS, HIDDEN), mat(w2, HIDDEN, SYMBOLS), b2, logits);
        cross_entropy_rows(logits, y, SYMBOLS, losses, probs);
        cross_entropy_grad_rows(probs, y, SYMBOLS, 1.0 / ROWS as f32, d);

        let up = mat(d, ROWS, SYMBOLS);
        product(1.0, up, mat(w2, HIDDEN, SYMBOLS).transposed(), Accum::Replace, dh);
        product(-LR, mat(h, ROWS, HIDDEN).transposed(), up, Accum::Add, w2);
        sum(d, ROWS, SYMBOLS, &mut small[..SYMBOLS]);
        descend(b2, &small[..SYMBOLS]);
        update0(dh, h, |g, h| g * (1.0 - h * h));
        let up =
            BatchNormUpstream { g: dh, xhat: hat, inv_std: inv, gain: Some(gain), correction: 1 };
        batch_norm_grad(up, ROWS, HIDDEN, pre, dgain, dbias);
        descend(gain, dgain);
        descend(bias, dbias);
        sum(pre, ROWS, HIDDEN, small);
        descend(b1, small);
        let up = mat(pre, ROWS, HIDDEN);
        let demb = &mut hat[..ROWS * WIDE];
        product(-LR, up, mat(w1, WIDE, HIDDEN).transposed(), Accum::Replace, demb);
        product(-LR, mat(emb, ROWS, WIDE).transposed(), up, Accum::Add, w1);
        add_rows_to(demb, SYMBOLS, WIDE / 3, x, None, c);
        losses.iter().sum::<f32>() / ROWS as f32
    }
}

/// The best microseconds of a step so far, and of one more group.
fn group(best: f64, mut step: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..STEPS).for_each(|_| step());
    best.min(began.elapsed().as_secs_f64() * 1e6 / STEPS as f64)
}

fn main() -> chainrule::Result<()> {
    chainrule::set_num_threads(1);
    let g = &mut Generator::manual_seed(1);
    let model = NamesMlp::new(NamesMlpConfig::default(), g).with_primitive_batch_norm();
    let x = Tensor::randint(0, SYMBOLS as i64, [ROWS, 3], g);
    let y = Tensor::randint(0, SYMBOLS as i64, [ROWS], g);
    let (contexts, targets) = (x.to_vec::<i64>(), y.to_vec::<i64>());
    let mut by_hand = ByHand::new(&model);
    let mut sgd = Sgd::new(model.parameters(), f64::from(LR));
    let program = Program::trace([("x", &x), ("y", &y)], |b| {
        let loss = model.try_forward(&b[0])?.try_cross_entropy(&b[1])?;
        loss.try_backward()?;
        chainrule::optim::Optimizer::step(&mut sgd)?;
        Ok(vec![loss])
    })?;
    let program = program.simplified()?.program.fused();
    let mut results = Vec::new();
    for _ in 0..20 {
        let ours = by_hand.step(&contexts, &targets);
        program.run_into(&[&x, &y], &mut results)?;
        let apart = f64::from(ours) - results[0].item();
        assert!(apart.abs() < 1e-4, "they compute the same: {ours} and {}", results[0].item());
    }
    let (mut hand, mut compiled) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..GROUPS {
        hand = group(hand, || {
            black_box(by_hand.step(&contexts, &targets));
        });
        compiled = group(compiled, || {
            program.run_into(&[&x, &y], &mut results).expect("it ran before");
        });
    }
    let ratio = compiled / hand;
    println!("by hand {hand:.1} us, compiled {compiled:.1} us a step: {ratio:.2} times");
    Ok(())
}
