//! Worked numbers of well-known tutorials.

mod common;

use chainrule::{Tensor, no_grad};

fn worked() -> serde_json::Value {
    let text =
        std::fs::read_to_string(common::data_path("worked.json")).expect("the file is there");
    serde_json::from_str(&text).expect("JSON")
}

/// Celsius to Fahrenheit from a guess: two points, mean squared error.
#[test]
fn temperature() {
    let w = Tensor::from([[0.5f32]]).parameter();
    let b = Tensor::from([10.0f32]).parameter();
    let x = Tensor::from([[0.0f32], [100.0]]);
    let y = Tensor::from([[32.0f32], [212.0]]);
    let error = x.matmul(&w.t()) + &b - &y;
    let loss = (&error * &error).sum_all() / 2.0;
    loss.backward();
    let want = &worked()["temperature"];
    assert_eq!(loss.item(), 11794.0);
    assert_eq!(w.grad().unwrap().item(), -15200.0);
    assert_eq!(b.grad().unwrap().item(), -174.0);
    assert_eq!(want["loss"].as_f64(), Some(11794.0));
    assert_eq!(want["w.grad"].as_f64(), Some(-15200.0));
    assert_eq!(want["b.grad"].as_f64(), Some(-174.0));
}

/// The gradient of cross-entropy in the logits is the softmax minus the one-hot target.
#[test]
fn softmax_minus_one_hot() {
    let want: Vec<f64> = worked()["softmax_minus_onehot"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|x| x.as_f64().expect("a number"))
        .collect();
    let logits = Tensor::from([[2.0f32, 1.0, 0.1]]).parameter();
    let target = Tensor::from([0i64]);
    logits.cross_entropy(&target).backward();
    let by_loss = logits.grad().unwrap().to_f64_vec();
    let by_hand = no_grad(|| logits.softmax(1) - Tensor::from([1.0f32, 0.0, 0.0])).to_f64_vec();
    // The lectures print four digits; the file has all that f32 gives.
    for (i, printed) in [-0.3410, 0.2424, 0.0986].into_iter().enumerate() {
        for got in [by_loss[i], by_hand[i]] {
            assert!((got - want[i]).abs() < 1e-7, "element {i}: {got} for {}", want[i]);
            assert!((got - printed).abs() < 5e-5, "element {i}: {got} for {printed}");
        }
    }
}

/// The expression of the micrograd README.
#[test]
fn micrograd_expression() {
    let a = Tensor::scalar(-4.0f64).parameter();
    let b = Tensor::scalar(2.0f64).parameter();
    let mut c = &a + &b;
    let mut d = &a * &b + b.pow(3.0);
    c = &c + (&c + 1.0);
    c = &c + (1.0 + &c - &a);
    d = &d + (&d * 2.0 + (&b + &a).relu());
    d = &d + (3.0 * &d + (&b - &a).relu());
    let e = c - d;
    let f = e.pow(2.0);
    let mut g = &f / 2.0;
    g = g + 10.0 / &f;
    g.backward();
    let close = |got: f64, want: f64| assert!((got - want).abs() < 5e-5, "{got} for {want}");
    close(g.item(), 24.7041);
    close(a.grad().unwrap().item(), 138.8338);
    close(b.grad().unwrap().item(), 645.5773);
}

#[test]
fn powers_and_sums() {
    let x = Tensor::scalar(2.0f64).parameter();
    (x.pow(2.0) * 3.0).backward();
    assert_eq!(x.grad().unwrap().item(), 12.0);
    let x = Tensor::scalar(5.0f64).parameter();
    (&x + &x).backward();
    assert_eq!(x.grad().unwrap().item(), 2.0);
}
