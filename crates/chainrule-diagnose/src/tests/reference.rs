//! Losses of runs and of loss functions beside those of PyTorch, with Keras' formulas.

use chainrule_core::tensor::Tensor;
use serde_json::{Value, json};

use crate::data::{Array, prepare};
use crate::description::{Loss, Named, Program};
use crate::model;
use crate::run::{Limits, Rows, train};

fn losses(program: Value, x: Array, y: Array, seed: u64) -> (Vec<f32>, f64) {
    let program = Program::of(program).unwrap();
    let data = prepare(&program, &x, &y).unwrap();
    let planned = program.steps(data.rows);
    let rows = Rows { train: &data, held: None, own: None, planned };
    let limits = Limits { steps: 1000, deadline: None };
    let run = train(&program, &rows, seed, limits, None).unwrap();
    (run.losses, run.fit)
}

fn near(ours: &[f32], theirs: &[f32], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (k, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{what}, step {k}: {a} and {b}");
    }
}

/// Dropout, batch normalisation, weight decay, a short last batch and all optimizers.
#[test]
fn runs_are_those_of_pytorch() {
    let x = Array::new(
        &[6, 2],
        vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, -1.0, 0.5, 3.0],
        false,
    );
    let y = Array::new(&[6, 1], vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0], false);
    let program = |optimizer: Value| {
        json!({"id": "xor", "task": "binary", "data": {}, "preprocessing": ["standardize_x"], "input": [2],
            "layers": [
                {"type": "dense", "units": 4, "activation": "tanh", "init": "glorot_uniform"},
                {"type": "batchnorm", "momentum": 0.9, "eps": 0.001},
                {"type": "dropout", "rate": 0.25},
                {"type": "dense", "units": 20, "activation": "relu", "init": "he_normal", "l2": 0.01},
                {"type": "dense", "units": 1, "activation": "sigmoid",
                 "init": {"name": "normal", "std": 0.5, "mean": 0.0}}],
            "loss": {"name": "bce_probs"}, "optimizer": optimizer,
            "batch": 4, "epochs": 4, "shuffle": true})
    };
    let cases: [(Value, [f32; 8]); 4] = [
        (
            json!({"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": true, "decay": 0.1}),
            [0.66919, 0.693365, 1.885336, 0.281404, 0.608092, 1.531708, 0.787198, 1.576433],
        ),
        (
            json!({"name": "adam", "lr": 0.01}),
            [0.66919, 0.693242, 0.561114, 0.588088, 0.578718, 1.226299, 0.7274, 0.707361],
        ),
        (
            json!({"name": "nadam", "lr": 0.01}),
            [0.66919, 0.693501, 0.619671, 0.568568, 0.581849, 1.314457, 0.714435, 0.71527],
        ),
        (
            json!({"name": "rmsprop", "lr": 0.01, "rho": 0.9}),
            [0.66919, 0.694172, 0.672923, 0.67527, 0.544865, 1.010813, 0.60889, 0.665047],
        ),
    ];
    for (optimizer, theirs) in cases {
        let what = optimizer.to_string();
        let (ours, fit) = losses(program(optimizer), x.clone(), y.clone(), 3);
        near(&ours, &theirs, &what);
        assert!((fit - 2.0 / 3.0).abs() < 1e-6, "{what}: {fit}");
    }
}

#[test]
fn images_and_sequences_are_those_of_pytorch() {
    let image =
        Array::new(&[6, 5, 5, 1], (0..150).map(|i| f64::from(i % 7) / 7.0).collect(), false);
    let classes = Array::new(&[6], vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0], true);
    let adam = json!({"name": "adam", "lr": 0.01});
    let program = json!({"id": "img", "task": "multiclass", "data": {}, "input": [5, 5, 1],
        "layers": [
            {"type": "conv2d", "filters": 3, "kernel": 3, "padding": "same", "activation": "relu"},
            {"type": "maxpool2d", "size": 2, "stride": 2, "padding": "valid"},
            {"type": "conv2d", "filters": 2, "kernel": 2, "padding": "same"},
            {"type": "flatten"},
            {"type": "dense", "units": 3, "activation": "softmax"}],
        "loss": {"name": "scce_probs"}, "optimizer": adam, "batch": 4, "epochs": 3});
    let (ours, fit) = losses(program, image, classes, 2);
    near(&ours, &[1.11523, 1.080531, 1.063754, 1.138389, 1.077468, 1.064512], "images");
    assert!((fit - 0.5).abs() < 1e-6);

    let series = Array::new(&[6, 7, 2], (0..84).map(|i| f64::from(i % 5) / 5.0).collect(), false);
    let rows = [0, 1, 2, 0, 1, 2].map(|c| (0..3).map(move |k| f64::from(u8::from(k == c))));
    let hot = Array::new(&[6, 3], rows.into_iter().flatten().collect(), false);
    let program = json!({"id": "seq", "task": "multiclass", "data": {}, "input": [7, 2],
        "layers": [
            {"type": "conv1d", "filters": 3, "kernel": 4, "padding": "same", "activation": "leaky_relu"},
            {"type": "maxpool1d", "size": 2, "stride": 2},
            {"type": "global_avg_pool1d"},
            {"type": "dense", "units": 3}],
        "loss": {"name": "cce_logits"}, "optimizer": adam, "batch": 4, "epochs": 3});
    let (ours, fit) = losses(program, series, hot, 2);
    near(&ours, &[1.099804, 1.193397, 1.158178, 1.068902, 1.129246, 1.098491], "sequences");
    assert!(fit.abs() < 1e-6);
}

#[test]
fn losses_are_those_of_pytorch() {
    let o = Tensor::from([[0.2f32, 0.7, 0.4], [0.9, 0.05, 0.3]]);
    let y = Tensor::from([[0.0f32, 1.0, 0.0], [1.0, 0.0, 0.0]]);
    let theirs = [
        ("mse", 0.065417),
        ("mae", 0.225),
        ("sse", 0.3925),
        ("mse_half", 0.098125),
        ("poisson", 0.502006),
        ("bce_probs", 0.267329),
        ("bce_logits", 0.671385),
        ("bce_raw_sum", 0.801986),
        ("cce_probs", 0.473772),
        ("ce_clip32", 0.231018),
        ("ce_sum_clip", 0.462036),
        ("cce_logits", 0.767238),
        ("cce_sum_over10", 0.153448),
        ("cce_sum_naive", 1.534476),
        ("cce_softmax_axis0", 0.411621),
        ("mse_softmax", 0.143958),
    ];
    for (word, value) in theirs {
        let loss = Loss::ALL.iter().find(|(w, _)| *w == word).unwrap().1;
        let ours = model::loss(loss, &o, &y).unwrap().item();
        assert!((ours - value).abs() < 2e-6, "{word}: {ours} and {value}");
    }
    let classes = Tensor::from([1i64, 0]);
    for (loss, value) in [(Loss::ScceLogits, 0.767238), (Loss::ScceProbs, 0.473772)] {
        assert!((model::loss(loss, &o, &classes).unwrap().item() - value).abs() < 2e-6);
    }
    let (o, y) = (Tensor::from([[0.2f32], [0.9]]), Tensor::from([[1.0f32], [0.0]]));
    assert!((model::loss(Loss::MseBroadcast, &o, &y).unwrap().item() - 0.375).abs() < 1e-6);
}
