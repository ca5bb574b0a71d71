//! Forms of losses against the gradients of autograd.

use super::*;
use chainrule_core::tensor::Tensor;

/// The loss of outputs and the gradient that autograd gives them.
fn told(o: &[f64], width: usize, loss: impl Fn(&Tensor) -> Tensor) -> (f64, Vec<f64>) {
    let o = Tensor::from(o.to_vec()).reshape([o.len() / width, width]).parameter();
    let loss = loss(&o);
    loss.backward();
    (loss.item(), o.grad().unwrap().to_f64_vec())
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 101) as f64 / 40.0 - 1.2).collect()
}

#[test]
fn a_softmax_over_the_examples_is_seen() {
    let o = numbers(36);
    let over = |axis: i64, classes: Vec<i64>| {
        let rows = classes.len();
        let y = Tensor::from(classes).reshape([rows, 1]);
        let width = 36 / rows;
        let (loss, g) = told(&o, width, |o| -o.log_softmax(axis).gather(1, &y).mean_all());
        recognised(loss, width, &o, &g)
    };
    let classes = vec![0, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2];
    let answer = over(0, classes.clone()).unwrap();
    assert_eq!(answer.form, LossForm::CrossEntropyOverExamples);
    assert!(near(answer.scale, 1.0 / 12.0));
    assert_eq!(over(1, classes).unwrap().form, LossForm::CrossEntropy);
    // Each example is a class of its own, as in a comparison of pairs.
    assert!(over(0, (0..6).collect()).is_none());
}

#[test]
fn a_cross_entropy_gives_its_classes() {
    let (o, classes) = (numbers(36), [0i64, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
    let y = Tensor::from(classes);
    let mean = |o: &Tensor| -o.log_softmax(1).gather(1, &y.reshape([12, 1])).mean_all();
    for sign in [1.0, -1.0] {
        let (loss, g) = told(&o, 3, |o| mean(o) * sign);
        let answer = recognised(loss, 3, &o, &g).unwrap();
        assert_eq!(answer.form, LossForm::CrossEntropy);
        assert!(near(answer.scale, sign / 12.0));
        assert_eq!(answer.targets, classes.map(|k| k as f64));
    }
    let (loss, g) = told(&o, 3, |o| mean(&o.softmax(1)));
    let answer = recognised(loss, 3, &o, &g).unwrap();
    assert_eq!(answer.form, LossForm::CrossEntropyOfSoftmax);
    assert_eq!(answer.targets, classes.map(|k| k as f64));
    let likelihood = |o: &Tensor| -o.gather(1, &y.reshape([12, 1])).mean_all();
    let (loss, g) = told(&o, 3, likelihood);
    assert_eq!(recognised(loss, 3, &o, &g).unwrap().form, LossForm::NegativeLikelihood);
    let (loss, g) = told(&o, 3, |o| likelihood(&o.softmax(1)));
    assert_eq!(recognised(loss, 3, &o, &g).unwrap().form, LossForm::NegativeProbability);
}

#[test]
fn a_divergence_of_probabilities_gives_its_shares() {
    let (o, classes) = (numbers(36), [0usize, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
    let share = |i: usize| if classes[i / 3] == i % 3 { 0.8 } else { 0.1 };
    let t = Tensor::from((0..36).map(share).collect::<Vec<f64>>()).reshape([12, 3]);
    let of = |q: &Tensor| (&t * (t.log() - q)).sum_all() * (1.0 / 12.0);
    let (loss, g) = told(&o, 3, |o| of(&o.softmax(1)));
    let answer = recognised(loss, 3, &o, &g).unwrap();
    assert_eq!(answer.form, LossForm::NegativeProbability);
    assert_eq!(answer.targets, classes.map(|k| k as f64));
    // The right form is none of it.
    let (loss, g) = told(&o, 3, |o| of(&o.log_softmax(1)));
    assert!(recognised(loss, 3, &o, &g).is_none());
}

#[test]
fn squares_give_their_targets() {
    let (o, y) = (numbers(10), numbers(30)[20..].to_vec());
    let t = Tensor::from(y.clone());
    let (loss, g) = told(&o, 1, |o| (o - &t.reshape([10, 1])).square().mean_all());
    let answer = recognised(loss, 1, &o, &g).unwrap();
    assert_eq!(answer.form, LossForm::Squares);
    assert!(answer.targets.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-9));
    let (loss, g) = told(&o, 1, |o| (o - &t).square().mean_all());
    assert_eq!(recognised(loss, 1, &o, &g).unwrap().form, LossForm::SquaresOfAllPairs);
}

#[test]
fn binary_forms_are_told_apart() {
    let o = numbers(12);
    let ones: Vec<f64> = (0..12).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
    let t = Tensor::from(ones.clone()).reshape([12, 1]);
    let of = |p: &Tensor| {
        let one = Tensor::scalar(1.0f64);
        -(&t * &p.log() + (&one - &t) * (&one - p).log()).mean_all()
    };
    let logits = told(&o, 1, |o| of(&o.sigmoid()));
    let twice = told(&o, 1, |o| of(&o.sigmoid().sigmoid()));
    let p: Vec<f64> = o.iter().map(|x| sigmoid(*x)).collect();
    let plain = told(&p, 1, of);
    for (o, (loss, g), form) in [
        (&o, logits, LossForm::BinaryLogits),
        (&o, twice, LossForm::BinaryOfSigmoid),
        (&p, plain, LossForm::BinaryProbabilities),
    ] {
        let answer = recognised(loss, 1, o, &g).unwrap();
        assert_eq!((answer.form, &answer.targets), (form, &ones));
    }
}

#[test]
fn a_cross_entropy_of_probabilities_gives_its_classes() {
    let (o, classes) = (numbers(36), [0i64, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
    let p: Vec<f64> = o.chunks(3).flat_map(softmax).collect();
    let y = Tensor::from(classes).reshape([12, 1]);
    let mean = |p: &Tensor| -p.log().gather(1, &y).mean_all();
    let parts = |p: &Tensor| mean(&(p / p.sum(1, true)));
    // Numbers that do not sum to one are divided by their sum, or taken as they are.
    let double: Vec<f64> = p.iter().map(|p| 2.0 * p).collect();
    for (o, (loss, g), form) in [
        (&p, told(&p, 3, mean), LossForm::CrossEntropyOfProbabilities),
        (&double, told(&double, 3, mean), LossForm::CrossEntropyOfProbabilities),
        (&p, told(&p, 3, parts), LossForm::CrossEntropyOfParts),
        (&double, told(&double, 3, parts), LossForm::CrossEntropyOfParts),
    ] {
        let answer = recognised(loss, 3, o, &g).unwrap();
        assert_eq!(answer.form, form);
        assert!(near(answer.scale, 1.0 / 12.0));
        assert_eq!(answer.targets, classes.map(|k| k as f64));
    }
}

#[test]
fn squares_of_a_softmax_give_its_classes() {
    let (o, classes) = (numbers(36), [0usize, 2, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2]);
    let one = |i: usize| f64::from(u8::from(classes[i / 3] == i % 3));
    let t = Tensor::from((0..36).map(one).collect::<Vec<f64>>()).reshape([12, 3]);
    let (loss, g) = told(&o, 3, |o| (o.softmax(1) - &t).square().mean_all());
    let answer = recognised(loss, 3, &o, &g).unwrap();
    assert_eq!(answer.form, LossForm::SquaresOfSoftmax);
    assert_eq!(answer.targets, classes.map(|k| k as f64));
}

#[test]
fn targets_of_a_binary_loss_may_be_any_numbers() {
    let p: Vec<f64> = numbers(12).into_iter().map(sigmoid).collect();
    let y: Vec<f64> = (0..12).map(|i| f64::from(i % 4)).collect();
    let t = Tensor::from(y.clone()).reshape([12, 1]);
    let one = Tensor::scalar(1.0f64);
    let entropy = |p: &Tensor| -(&t * &p.log() + (&one - &t) * (&one - p).log()).mean_all();
    let (loss, g) = told(&p, 1, entropy);
    let answer = recognised(loss, 1, &p, &g).unwrap();
    assert_eq!(answer.form, LossForm::BinaryProbabilities);
    assert!(answer.targets.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-6));
    let single = |p: &Tensor| -(&t * &p.log()).sum_all();
    let (loss, g) = told(&p, 1, single);
    assert_eq!(recognised(loss, 1, &p, &g).unwrap().form, LossForm::CrossEntropyOfOne);
    let (loss, g) = told(&p, 1, |p| (p - &t).abs().mean_all());
    assert_eq!(recognised(loss, 1, &p, &g).unwrap().form, LossForm::Absolute);
}

#[test]
fn other_losses_are_unknown() {
    let o = numbers(24);
    for (loss, g) in [
        told(&o, 3, |o| o.exp().mean_all()),
        told(&o, 3, |o| (o.square() * o).sum_all()),
        (1.0, vec![0.0; 24]),
        (f64::NAN, numbers(24)),
    ] {
        assert!(recognised(loss, 3, &o, &g).is_none(), "{loss}");
    }
}
