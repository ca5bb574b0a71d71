//! Weights of classes that are an argument of a program: each run takes its own, and gives what the
//! ops that hold the weights as numbers give.

use chainrule::program::{Passes, Program};
use chainrule::{CrossEntropy, DType, Generator, NllLoss, Reduction, Tensor};

/// All options of a loss but its weights.
fn options() -> Vec<CrossEntropy> {
    let mut all = Vec::new();
    for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
        for ignore_index in [None, Some(1)] {
            for label_smoothing in [0.0, 0.3] {
                all.push(CrossEntropy { reduction, ignore_index, label_smoothing, weight: None });
            }
        }
    }
    all
}

/// The losses of logits by class numbers, by probabilities and by logarithms, and their gradients.
fn step(x: &Tensor, targets: &Tensor, weight: &Tensor, options: &CrossEntropy) -> Vec<Tensor> {
    x.zero_grad();
    let weight = Some(weight * 2.0);
    let CrossEntropy { reduction, ignore_index, .. } = *options;
    let own = CrossEntropy { weight: weight.clone(), ..options.clone() };
    let soft = CrossEntropy { ignore_index: None, ..own.clone() };
    let nll = NllLoss { reduction, ignore_index, weight };
    let axis = if x.rank() == 1 { 0 } else { 1 };
    let losses = [
        x.cross_entropy_with(targets, &own),
        x.cross_entropy_with(&x.detach().softmax(axis), &soft),
        x.log_softmax(axis).nll_loss_with(targets, &nll),
    ];
    let sum = losses.iter().fold(Tensor::scalar(0.0f64), |sum, loss| sum + loss.sum_all());
    sum.backward();
    losses.into_iter().chain([x.grad().expect("the losses depend on x")]).collect()
}

#[test]
fn each_run_takes_its_own_weights() {
    let g = &mut Generator::manual_seed(3);
    for shape in [&[5, 4][..], &[3, 4, 2], &[4]] {
        let x = Tensor::randn(shape, DType::F64, g).parameter().named("x");
        let rows: Vec<usize> = match shape {
            [_] => vec![],
            [n, _, rest @ ..] => [&[*n][..], rest].concat(),
            [] => unreachable!("each has classes"),
        };
        let n = rows.iter().product::<usize>() as i64;
        let targets: Vec<i64> = (0..n).map(|i| i * 3 % 4).collect();
        let targets = Tensor::from(targets).reshape(&rows[..]);
        for options in options() {
            let first = Tensor::from([1.0f64, 0.5, 2.0, 3.0]);
            let program =
                Program::trace([("weight", &first)], |w| Ok(step(&x, &targets, &w[0], &options)))
                    .expect("a program");
            let mut fast = program.validated(Passes::default());
            for weight in [[1.0f64, 0.5, 2.0, 3.0], [3.0, 1.0, 0.25, 0.0], [0.1, 7.0, 1.0, 1.0]] {
                let weight = Tensor::from(weight);
                let want = step(&x, &targets, &weight, &options);
                let plain = program.run(&[&weight]).expect("a run");
                let quick = fast.run(&[&weight]).expect("a run");
                for (a, b) in plain.iter().chain(&quick).zip(want.iter().chain(&want)) {
                    assert!(
                        a.allclose(b, 1e-12, 1e-13, true),
                        "{shape:?} {options:?}: {a} for {b}"
                    );
                }
            }
            assert!(fast.warnings().is_empty(), "{shape:?} {options:?}: {:?}", fast.warnings());
        }
    }
}

#[test]
fn a_weight_that_needs_a_gradient_is_refused() {
    let (x, targets) = (Tensor::ones([2, 3]), Tensor::from([0i64, 2]));
    let weight = Some(Tensor::ones([3]).parameter());
    let options = CrossEntropy { weight, ..CrossEntropy::default() };
    let error = x.try_cross_entropy_with(&targets, &options).expect_err("no gradient").to_string();
    assert!(error.contains("detach()"), "{error}");
    chainrule::no_grad(|| x.cross_entropy_with(&targets, &options));
}
