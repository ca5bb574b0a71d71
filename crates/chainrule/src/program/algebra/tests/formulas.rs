//! The formulas of the textbooks come out.

use super::*;

/// The cross-entropy of its rows, step by step.
fn cross_entropy(logits: &Tensor, y: &Tensor) -> Tensor {
    let n = logits.shape()[0] as f64;
    let maxes = logits.max_axis(1, true).0;
    let norm = logits - &maxes;
    let counts = norm.exp();
    let sum = counts.sum(1, true);
    let probs = &counts * &sum.pow(-1.0);
    let logprobs = probs.log();
    -(logprobs.gather(1, &y.reshape([-1, 1])).sum_all() / n)
}

#[test]
fn softmax_cross_entropy() {
    let g = &mut Generator::manual_seed(1);
    let y = Tensor::randint(0, 7, [5], g);
    let case =
        Case::new(&["logits", "y"], &[normal(&[5, 7], g), y], |x| cross_entropy(&x[0], &x[1]));
    let ops = case.at_most(35, 2);
    assert!(ops.len() <= 3, "{}", case.simple.program);
}

#[test]
fn the_names_model() {
    use crate::program::tests::names::chunked_program;
    let (raw, _, x, y) = chunked_program(DType::F64);
    let raw = raw.optimized();
    let simple = raw.simplified().unwrap();
    let apart = difference(&simple.program.run(&[&x, &y]).unwrap(), &raw.run(&[&x, &y]).unwrap());
    println!("{raw}\n{}", simple.program);
    for step in &simple.steps {
        println!("{:?}", step);
    }
    assert!(apart < 1e-12, "{apart}");
}
