//! Common layers and losses in f64 against PyTorch: values, gradients of inputs and parameters,
//! running statistics.

mod common;

use chainrule::{Attention, Conv, CrossEntropy, Reduction, Tensor};
use common::{Reference, distance};

/// One layer of the reference.
struct Case {
    name: &'static str,
    reference: Reference,
    /// The leaves made so far, with their names in the reference.
    leaves: Vec<(String, Tensor)>,
}

impl Case {
    fn new(name: &'static str) -> Case {
        Case { name, reference: Reference::read("layers"), leaves: Vec::new() }
    }

    fn get(&self, key: &str) -> Tensor {
        self.reference.get(&format!("{}.{key}", self.name))
    }

    /// An input (`x0`, `x1`, ...) as a leaf.
    fn input(&mut self, key: &str) -> Tensor {
        let leaf = self.get(key).parameter();
        self.leaves.push((key.into(), leaf.clone()));
        leaf
    }

    /// A parameter (`weight`, `bias`) as a leaf.
    fn parameter(&mut self, key: &str) -> Tensor {
        let leaf = self.get(&format!("before.{key}")).parameter();
        self.leaves.push((key.into(), leaf.clone()));
        leaf
    }

    #[track_caller]
    fn equal(&self, key: &str, got: &Tensor) {
        let apart = distance(got, &self.get(key));
        assert!(apart <= 1e-9, "{}: {key} is {apart:.1e} apart", self.name);
    }

    /// Compares the value and the gradient of every leaf.
    #[track_caller]
    fn check(&self, y: &Tensor) {
        self.equal("y", y);
        (y * self.get("dout")).sum_all().backward();
        for (key, leaf) in &self.leaves {
            let grad = leaf.try_grad().unwrap_or_else(|e| panic!("{}: {key}: {e}", self.name));
            self.equal(&format!("grad.{key}"), &grad);
        }
    }
}

#[test]
fn linear() {
    let mut case = Case::new("linear");
    let (x, w, b) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    case.check(&(x.matmul(&w.t()) + &b));
}

#[test]
fn linear_as_one_op() {
    let mut case = Case::new("linear");
    let (x, w, b) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    case.check(&x.linear(&w, Some(&b)));
}

#[test]
fn linear_3d_as_one_op() {
    let mut case = Case::new("linear_3d");
    let (x, w) = (case.input("x0"), case.parameter("weight"));
    case.check(&x.linear(&w, None));
}

#[test]
fn layer_norm() {
    let mut case = Case::new("layer_norm");
    let (x, w, b) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    case.check(&x.layer_norm(6, Some(&w), Some(&b), 1e-5));
}

#[test]
fn linear_3d() {
    let mut case = Case::new("linear_3d");
    let (x, w) = (case.input("x0"), case.parameter("weight"));
    case.check(&x.matmul(&w.t()));
}

#[test]
fn attention_causal() {
    let mut case = Case::new("attention_causal");
    let (q, k, v) = (case.input("x0"), case.input("x1"), case.input("x2"));
    case.check(&q.attention(&k, &v, &Attention::causal()));
}

#[test]
fn embedding_with_padding() {
    let mut case = Case::new("embedding");
    let table = case.parameter("weight");
    case.check(&table.embedding_padded(&case.get("x0"), 0));
}

/// Training mode: normalised by the biased variance; the running statistics move a tenth of the way
/// to the mean and the unbiased one.
fn batch_norm_train(name: &'static str) {
    let mut case = Case::new(name);
    let (x, gain, bias) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    let (y, mean, var) = x.batch_norm_train(Some(&gain), Some(&bias), 1e-5, 0);
    case.check(&y);
    let n = (x.numel() / x.shape()[1]) as f64;
    let moved = |before: &str, now: Tensor| case.get(before) * 0.9 + now * 0.1;
    case.equal("after.running_mean", &moved("before.running_mean", mean));
    case.equal("after.running_var", &moved("before.running_var", var * (n / (n - 1.0))));
}

#[test]
fn batch_norm_in_training() {
    batch_norm_train("batch_norm_train");
}

#[test]
fn batch_norm_in_training_3d() {
    batch_norm_train("batch_norm_train_3d");
}

#[test]
fn batch_norm_in_evaluation() {
    let mut case = Case::new("batch_norm_eval");
    let (x, gain, bias) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    let (mean, var) = (case.get("before.running_mean"), case.get("before.running_var"));
    case.check(&x.batch_norm_eval(&mean, &var, Some(&gain), Some(&bias), 1e-5));
}

#[test]
fn softmax() {
    let mut case = Case::new("softmax");
    let x = case.input("x0");
    case.check(&x.softmax(-1));
}

#[test]
fn log_softmax() {
    let mut case = Case::new("log_softmax");
    let x = case.input("x0");
    case.check(&x.log_softmax(1));
}

#[test]
fn cross_entropy_with_an_ignored_row() {
    let mut case = Case::new("cross_entropy");
    let x = case.input("x0");
    let options = CrossEntropy { ignore_index: Some(-1), ..CrossEntropy::default() };
    case.check(&x.cross_entropy_with(&case.get("x1"), &options));
}

#[test]
fn cross_entropy_summed_and_smoothed() {
    let mut case = Case::new("cross_entropy_sum_smooth");
    let x = case.input("x0");
    let options =
        CrossEntropy { reduction: Reduction::Sum, label_smoothing: 0.1, ..CrossEntropy::default() };
    case.check(&x.cross_entropy_with(&case.get("x1"), &options));
}

#[test]
fn mean_squared_error() {
    let mut case = Case::new("mse");
    let (x, target) = (case.input("x0"), case.input("x1"));
    case.check(&x.mse(&target));
}

#[test]
fn binary_cross_entropy_of_logits() {
    let mut case = Case::new("bce_logits");
    let (x, target) = (case.input("x0"), case.input("x1"));
    case.check(&x.bce_with_logits(&target));
}

#[test]
fn conv2d() {
    let mut case = Case::new("conv2d");
    let (x, weight, bias) = (case.input("x0"), case.parameter("weight"), case.parameter("bias"));
    let options = Conv { stride: [2, 2], padding: [1, 1].into(), ..Conv::default() };
    case.check(&x.conv2d_with(&weight, Some(&bias), &options));
}

#[test]
fn max_pool2d() {
    let mut case = Case::new("max_pool2d");
    let x = case.input("x0");
    case.check(&x.max_pool2d([2, 2]));
}
