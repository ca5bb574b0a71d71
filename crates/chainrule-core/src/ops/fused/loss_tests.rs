//! Losses where there is little or nothing to lose, and what they say when called wrongly.

use super::{
    Bce, BceWithLogits, CrossEntropy, HingeEmbedding, Huber, NllLoss, Reduction, SmoothL1,
};
use crate::{DType, Result, Tensor};

#[test]
fn errors_of_pointwise_losses() {
    let error = |result: Result<Tensor>| result.unwrap_err().kind().to_string();
    let (x, t) = (Tensor::zeros([2, 3]), Tensor::zeros([3]));
    assert!(error(x.try_l1_loss(&t)).starts_with("l1_loss: "));
    assert!(error(t.to_dtype(DType::I64).try_huber(&Tensor::from([1i64; 3]))).contains("floats"));
    let single = Tensor::scalar(1.0);
    assert!(error(single.try_mse_with(&single, Reduction::BatchMean)).contains("0-d"));
    assert!(
        error(x.try_smooth_l1_with(&x, &SmoothL1 { beta: -1.0, ..Default::default() }))
            .contains("-1")
    );
    for delta in [0.0, f64::NAN] {
        assert!(x.try_huber_with(&x, &Huber { delta, ..Default::default() }).is_err());
    }
    for wrong in [1.5, -0.1, f64::NAN] {
        let (good, wrong) = (Tensor::from([0.5, 0.5]), Tensor::from([0.5, wrong]));
        assert!(error(wrong.try_bce(&good)).contains("element 1 of the prediction"));
        assert!(error(good.try_bce(&wrong)).contains("element 1 of the target"));
    }
    let weight = Some(Tensor::zeros([2, 3, 1]));
    assert!(error(x.try_bce_with(&x, &Bce { weight, ..Default::default() })).contains("weight"));
    let options = BceWithLogits { pos_weight: Some(Tensor::zeros([2])), ..Default::default() };
    assert!(error(x.try_bce_with_logits_with(&x, &options)).contains("pos_weight"));
    let options = HingeEmbedding { margin: f64::INFINITY, ..Default::default() };
    assert!(x.try_hinge_embedding_with(&x, &options).is_err());
}

/// A small loss keeps its digits in f32, too.
#[test]
fn a_certain_logit_costs_little() {
    let x = Tensor::from([20.0f32, -30.0, 90.0]);
    let loss = x.bce_with_logits_with(
        &Tensor::from([1.0f32, 0.0, 1.0]),
        &BceWithLogits { reduction: Reduction::None, ..Default::default() },
    );
    for (got, want) in loss.to_vec::<f32>().into_iter().zip([20f64, 30.0, 90.0]) {
        let want = (-want).exp();
        assert!((f64::from(got) - want).abs() < 1e-6 * want + 1e-45, "{got}, not {want}");
    }
}

#[test]
fn errors_of_class_targets() {
    let error = |result: Result<Tensor>| result.unwrap_err().kind().to_string();
    let (x, t) = (Tensor::zeros([2, 3, 4]), Tensor::from([1i64, 2]));
    assert!(error(x.try_cross_entropy(&t)).contains("[2, 3, 4]"));
    assert!(error(x.try_nll_loss(&t)).starts_with("nll_loss: "));
    assert!(error(x.try_nll_loss(&x)).contains("i64"));
    assert!(error(Tensor::scalar(1.0).try_cross_entropy(&t)).contains("0-d"));
    assert!(error(Tensor::scalar(1.0).try_nll_loss(&t)).contains("0-d"));
    assert!(error(x.try_cross_entropy(&Tensor::zeros([2, 4]))).contains("probabilities"));
    let options = CrossEntropy { ignore_index: Some(1), ..Default::default() };
    assert!(error(x.try_cross_entropy_with(&x, &options)).contains("ignore_index"));
    let row = Tensor::zeros([3]);
    assert!(error(row.try_nll_loss(&Tensor::scalar(3i64))).contains("target 3"));
    let weight = Some(Tensor::zeros([2]));
    let options = NllLoss { weight: weight.clone(), ..Default::default() };
    assert!(
        error(x.try_nll_loss_with(&Tensor::full([2, 4], 0.0, DType::I64), &options))
            .contains("weight")
    );
    let options = CrossEntropy { weight, ..Default::default() };
    assert!(error(x.try_cross_entropy_with(&x, &options)).contains("weight"));
}

/// Without classes or rows there is nothing to go wrong, and the mean of nothing is NaN.
#[test]
fn class_losses_of_nothing() {
    for shape in [&[0, 3][..], &[2, 3, 0], &[2, 0]] {
        let x = Tensor::zeros(shape).parameter();
        for (reduction, numel) in [(Reduction::Sum, 1), (Reduction::Mean, 1)] {
            let options = CrossEntropy { reduction, ..Default::default() };
            let loss = x.cross_entropy_with(&Tensor::zeros(shape), &options);
            assert_eq!(loss.numel(), numel);
            // Rows without classes cost nothing.
            let none = shape[1..] != [0] && reduction == Reduction::Mean;
            assert_eq!(loss.item().is_nan(), none, "{shape:?}");
            loss.backward();
            assert_eq!(x.grad().unwrap().numel(), 0);
        }
    }
    let x = Tensor::zeros([2, 3, 0]).parameter();
    let none = Tensor::full([2, 0], 0.0, DType::I64);
    for loss in [x.nll_loss(&none), x.cross_entropy(&none)] {
        assert!(loss.item().is_nan());
        loss.backward();
    }
}
