//! Verdicts on gradients of a small network of names: embedding, layer, batch normalisation, tanh,
//! layer, cross-entropy by hand.

use chainrule_core::{DType, Shape};

use crate::autograd::{grad, vjp};
use crate::check_names::{Names, SIZES};
use crate::tensor::Tensor;
use crate::verdict::verdict;

/// The verdict on gradients of all parameters, of which those from `stage` on come of `wrong` as
/// the gradient of its tensor.
fn judged(stage: usize, wrong: impl Fn(&Tensor, &[Tensor]) -> Tensor) -> String {
    let net = Names::new();
    let all: Vec<&Tensor> = net.parameters.iter().collect();
    let right = grad(&net.loss(), &all).unwrap();
    let right: Vec<Tensor> = right.into_iter().map(Option::unwrap).collect();
    let g = gradient(&net, stage);
    let below = |p: &[Tensor]| net.stages(p)[stage].clone();
    let plain: Vec<Tensor> = net.parameters.iter().map(Tensor::detach).collect();
    let (_, from) = vjp(below, &plain, &wrong(&g, &right)).unwrap();
    let later = |i: usize| net.first_stage(i) > stage;
    let given: Vec<Tensor> =
        (0..right.len()).map(|i| if later(i) { &right[i] } else { &from[i] }.clone()).collect();
    let pairs: Vec<(&Tensor, &Tensor)> = net.parameters.iter().zip(&given).collect();
    verdict(&net.loss(), &pairs).unwrap().to_string()
}

/// The right gradient of a stage.
fn gradient(net: &Names, stage: usize) -> Tensor {
    let stages = net.stages(&net.parameters);
    let found = grad(stages.last().unwrap(), &[&stages[stage]]).unwrap();
    found[0].as_ref().unwrap().detach()
}

/// The tensor with its slices along an axis multiplied by these.
fn weighted(g: &Tensor, axis: usize, by: &[f64]) -> Tensor {
    let mut shape = vec![1; g.rank()];
    shape[axis] = by.len();
    g * Tensor::from_slice(by, Shape::new(&shape))
}

const EMB: usize = 0;
const PREACT: usize = 2;
const HIDDEN: usize = 3;
const LOGITS: usize = 4;
const LOGPROBS: usize = 5;

#[track_caller]
fn says(text: &str, words: &str) {
    assert!(text.contains(words) && !text.contains("unidentified"), "{text}");
}

#[test]
fn a_row_that_is_dropped() {
    let found = judged(LOGITS, |g, _| weighted(g, 0, &[1.0, 1.0, 1.0, 1.0, 0.0]));
    says(&found, "of its rows those whose index in `gather` is 5 (4) of 5 are 0");
}

#[test]
fn a_weight_for_each_row() {
    let found = judged(LOGITS, |g, _| weighted(g, 0, &[0.2, 0.4, 0.6, 0.8, 1.0]));
    says(&found, "1/5, 2/5");
}

#[test]
fn a_gradient_rounded_on_its_way() {
    let found = judged(LOGITS, |g, _| g.to_dtype(DType::F16).to_dtype(DType::F64));
    says(&found, "it was rounded to f16");
}

#[test]
fn a_place_further() {
    says(&judged(EMB, |g, _| g.roll(&[1], &[1])), "moved by one place further along axis 1");
}

#[test]
fn read_in_another_order() {
    let [rows, context, width] = SIZES;
    let read = |g: &Tensor, _: &[Tensor]| g.reshape([rows, width, context]).transpose(1, 2);
    says(&judged(EMB, read), "read in another order");
}

#[test]
fn a_place_that_is_forgotten() {
    let found = judged(EMB, |g, _| weighted(g, 1, &[1.0, 1.0, 0.0]));
    says(&found, "2 of 3 are 0");
}

#[test]
fn whole_columns_for_single_elements() {
    let net = Names::new();
    let found = judged(LOGPROBS, |g, _| {
        let picked = net.labels.one_hot(g.shape()[1]).to_dtype(DType::F64).amax(0, true);
        (g.zeros_like() - 1.0 / SIZES[0] as f64) * picked
    });
    says(&found, "rows of the columns that are picked");
}

#[test]
fn an_operand_that_was_updated_already() {
    let net = Names::new();
    let d_logits = gradient(&net, LOGITS);
    let found = judged(HIDDEN, |_, right| {
        let w2 = net.parameters[5].detach() - &right[5] * 0.1;
        d_logits.matmul(&w2.t())
    });
    says(&found, "after an update");
    says(&found, "0.1 times its gradient");
}

#[test]
fn the_slope_by_a_gradient() {
    let net = Names::new();
    let d_h = gradient(&net, HIDDEN);
    says(&judged(PREACT, |_, _| &d_h * (1.0 - &d_h * &d_h)), "stands where");
}

#[test]
fn the_slope_of_another_function() {
    let x = Tensor::from([[0.3, -1.2, 2.0], [0.7, -0.4, 1.5]]).parameter().named("x");
    let y = &x * x.softplus(1.0, f64::INFINITY).tanh();
    let g = Tensor::from([[1.0, 0.5, -2.0], [0.3, 1.7, -0.6]]);
    let (_, silu) = vjp(|x| x[0].silu(), &[x.detach()], &g).unwrap();
    let found = crate::verdict::verdict_with(&y, &g, &[(&x, &silu[0])]).unwrap().to_string();
    says(&found, "times the slope of `silu`");
}
