//! Verdicts on mistakes that a line makes in each of its runs, and on softmaxes of something else.

use crate::autograd::grad;
use crate::tensor::Tensor;
use crate::verdict::verdict;

/// A sequence of inputs and the two weights of a recurrence of tanh.
fn recurrence() -> (Vec<Tensor>, Tensor, Tensor) {
    let draw = |n: usize, by: f64| (0..n).map(move |i| (i as f64 * by + 0.3).sin()).collect();
    let tensor = |n: usize, m: usize, by: f64| {
        let all: Vec<f64> = draw(n * m, by);
        Tensor::from_slice(&all, [n, m])
    };
    let steps = (0..4).map(|t| tensor(2, 3, 1.7 + f64::from(t))).collect();
    let (wx, wh) = (tensor(3, 4, 2.3).parameter(), tensor(4, 4, 3.1).parameter());
    (steps, wx.named("wx"), wh.named("wh"))
}

/// The verdict on a backward pass by hand: of each step it is given the gradient of the state, the
/// state before and after, and the weight, and gives the parts of the gradients of the weight and
/// of the state before.
fn judged(step: impl Fn(&Tensor, [&Tensor; 2], &Tensor) -> [Tensor; 2], each: f64) -> String {
    let (steps, wx, wh) = recurrence();
    let zeros = Tensor::zeros([2, 4]).to_dtype(chainrule_core::DType::F64);
    let mut states = vec![zeros];
    for x in &steps {
        let h = states.last().unwrap();
        states.push((x.matmul(&wx) + h.matmul(&wh)).tanh());
    }
    let loss = states.last().unwrap().sum_all();
    let plain: Vec<Tensor> = states.iter().map(Tensor::detach).collect();
    let mut dh = plain[0].ones_like();
    let (mut dwx, mut dwh) = (wx.detach().zeros_like(), wh.detach().zeros_like());
    for t in (0..4).rev() {
        let da = &dh * (1.0 - plain[t + 1].square());
        let [part, before] = step(&da, [&plain[t], &plain[t + 1]], &wh.detach());
        dwx = dwx + steps[t].t().matmul(&da);
        dwh = dwh + part;
        dh = before + each;
    }
    let right = grad(&loss, &[&wx]).unwrap();
    assert!(right[0].is_some());
    verdict(&loss, &[(&wx, &dwx), (&wh, &dwh)]).unwrap().to_string()
}

#[track_caller]
fn says(text: &str, words: &str) {
    assert!(text.contains(words) && !text.contains("unidentified"), "{text}");
}

#[test]
fn a_recurrence_that_is_right() {
    let found = judged(|da, [before, _], wh| [before.t().matmul(da), da.matmul(&wh.t())], 0.0);
    says(&found, "gradients are right");
}

#[test]
fn a_weight_that_is_not_transposed_at_any_step() {
    let found = judged(|da, [before, _], wh| [before.t().matmul(da), da.matmul(wh)], 0.0);
    says(&found, "in each of the 4 runs of this line");
    says(&found, "transposed");
}

#[test]
fn the_state_after_each_step_for_the_one_before() {
    let found = judged(|da, [_, after], wh| [after.t().matmul(da), da.matmul(&wh.t())], 0.0);
    says(&found, "tanh");
    says(&found, "in each of the 4 runs of this line");
}

#[test]
fn the_gradient_of_the_last_step_at_each_step() {
    let found = judged(|da, [before, _], wh| [before.t().matmul(da), da.matmul(&wh.t())], 1.0);
    says(&found, "comes into each of the 3 runs before it, too");
}

/// A linear classifier: the loss, its weight, the inputs, the scores and the labels as rows.
fn classifier() -> (Tensor, Tensor, Tensor, Tensor, Tensor) {
    let all = |n: usize, by: f64| (0..n).map(|i| (i as f64 * by + 0.7).sin() * 2.0).collect();
    let (x, w): (Vec<f64>, Vec<f64>) = (all(15, 1.3), all(12, 2.9));
    let (x, w) = (Tensor::from_slice(&x, [5, 3]), Tensor::from_slice(&w, [3, 4]).parameter());
    let scores = x.matmul(&w);
    let loss = scores.cross_entropy(&Tensor::from([0i64, 2, 1, 3, 2]));
    let mut hot = vec![0.0; 20];
    [0, 2, 1, 3, 2].iter().enumerate().for_each(|(row, class)| hot[row * 4 + class] = 1.0);
    (loss, w, x, scores.detach(), Tensor::from_slice(&hot, [5, 4]))
}

#[test]
fn a_softmax_along_the_wrong_axis() {
    let (loss, w, x, scores, hot) = classifier();
    let wrong = x.t().matmul(&((scores.softmax(0) - hot) / 5.0));
    let found = verdict(&loss, &[(&w, &wrong)]).unwrap().to_string();
    says(&found, "the softmax along axis 0 stands where");
}

#[test]
fn a_softmax_with_a_temperature() {
    let (loss, w, x, scores, hot) = classifier();
    let wrong = x.t().matmul(&(((scores / 2.0).softmax(1) - hot) / 5.0));
    let found = verdict(&loss, &[(&w, &wrong)]).unwrap().to_string();
    says(&found, "the softmax of 1/2 times its operand stands where");
}

/// A leaf that no rule saves stands where the normalised one is due.
#[test]
fn an_input_for_its_normalised_form() {
    let x: Vec<f64> = (0..20).map(|i| (f64::from(i) * 1.9).sin()).collect();
    let x = Tensor::from_slice(&x, [5, 4]).parameter().named("x");
    let gain = Tensor::from([0.5f64, 1.5, -1.0, 0.8]).parameter().named("gain");
    let diff = &x - x.mean(1, true);
    let normal = &diff / (diff.square().mean(1, true) + 1e-5).sqrt();
    let loss = (normal * &gain).tanh().sum_all();
    let right = grad(&loss, &[&x, &gain]).unwrap();
    let plain = x.detach();
    let diff = &plain - plain.mean(1, true);
    let normal = &diff / (diff.square().mean(1, true) + 1e-5).sqrt();
    let dy = 1.0 - (normal * gain.detach()).tanh().square();
    let wrong = (dy * &plain).sum(0, false);
    let dx = right[0].clone().unwrap();
    let found = verdict(&loss, &[(&x, &dx), (&gain, &wrong)]).unwrap().to_string();
    says(&found, "`x` stands where");
}
