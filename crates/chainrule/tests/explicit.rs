//! The layers with a hand-written backward against autograd, and a network trained by each.

use chainrule::nn::explicit::{self, Explicit};
use chainrule::nn::{self, Layer, Module, Sequential};
use chainrule::optim::{Optimizer, Sgd};
use chainrule::{DType, Generator, Tensor};

fn normal(shape: &[usize], g: &mut Generator) -> Tensor {
    Tensor::randn(shape, DType::F64, g)
}

#[track_caller]
fn close(what: &str, got: &Tensor, want: &Tensor, tolerance: f64) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    let pairs = got.to_f64_vec().into_iter().zip(want.to_f64_vec());
    let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart <= tolerance, "{what}: {apart:.1e} apart");
}

/// Value, gradient of the input and gradients of the parameters, on random input.
fn check(what: &str, layer: &mut impl Explicit, f: impl Fn(&Tensor) -> Tensor) {
    let g = &mut Generator::manual_seed(7);
    let (x, dout) = (normal(&[6, 5], g), normal(&[6, 5], g));
    let y = layer.forward(&x);
    let dx = layer.backward(&dout);
    let by_hand: Vec<Tensor> = layer.parameters().iter().map(|p| p.grad().unwrap()).collect();
    layer.parameters().iter().for_each(Tensor::zero_grad);
    let x = x.parameter();
    let want = f(&x);
    want.backward_with().gradient(&dout).run().unwrap();
    close(what, &y, &want, 1e-13);
    close(&format!("{what}, dx"), &dx, &x.grad().unwrap(), 1e-13);
    for (i, (p, got)) in layer.parameters().iter().zip(&by_hand).enumerate() {
        close(&format!("{what}, parameter {i}"), got, &p.grad().unwrap(), 1e-13);
    }
}

#[test]
fn each_layer_equals_autograd() {
    let g = &mut Generator::manual_seed(3);
    check("Relu", &mut explicit::ExplicitRelu::default(), |x| x.relu());
    check("Tanh", &mut explicit::ExplicitTanh::default(), |x| x.tanh());
    check("Sigmoid", &mut explicit::ExplicitSigmoid::default(), |x| x.sigmoid());
    check("Softmax", &mut explicit::ExplicitSoftmax::default(), |x| x.softmax(-1));
    check("LogSoftmax", &mut explicit::ExplicitLogSoftmax::default(), |x| x.log_softmax(-1));
    let (w, b) = (normal(&[5, 5], g).parameter(), normal(&[5], g).parameter());
    let layer = nn::Linear { weight: w.clone(), bias: Some(b.clone()) };
    check("Linear", &mut explicit::ExplicitLinear::from(layer), |x| x.matmul(&w.t()) + &b);
    for training in [true, false] {
        let mut norm = nn::BatchNorm1d::new(5);
        norm.gain = normal(&[5], g).parameter();
        norm.bias = normal(&[5], g).parameter();
        norm.running_mean = normal(&[5], g).buffer();
        norm.running_var = (normal(&[5], g).abs() + 0.5).buffer();
        let (gain, bias) = (norm.gain.clone(), norm.bias.clone());
        let (mean, var) = (norm.running_mean.clone(), norm.running_var.clone());
        let mut layer = explicit::ExplicitBatchNorm1d::from(norm);
        layer.set_training(training);
        let f = |x: &Tensor| match training {
            true => x.batch_norm(Some(&gain), Some(&bias), 1e-5, 0),
            false => x.batch_norm_eval(&mean, &var, Some(&gain), Some(&bias), 1e-5),
        };
        check(&format!("BatchNorm1d, training {training}"), &mut layer, f);
    }
}

#[test]
fn batch_norm_moves_its_running_statistics_as_the_layer_does() {
    let (layer, mut by_hand) = (nn::BatchNorm1d::new(5), explicit::ExplicitBatchNorm1d::new(5));
    let x = normal(&[8, 5], &mut Generator::manual_seed(1)).to_dtype(DType::F32);
    layer.forward(&x);
    by_hand.forward(&x);
    close("mean", &by_hand.running_mean, &layer.running_mean, 1e-7);
    close("variance", &by_hand.running_var, &layer.running_var, 1e-7);
}

#[test]
fn backward_before_forward_is_an_error() {
    let dout = Tensor::zeros([2, 2]);
    let e = explicit::ExplicitTanh::default().try_backward(&dout).unwrap_err().to_string();
    assert!(e.contains("Tanh") && e.contains("call forward first"), "{e}");
    assert!(explicit::ExplicitCrossEntropy::default().try_backward().is_err());
}

/// The digits network, narrower, trained by both: the same losses and weights to rounding.
#[test]
fn the_digits_network_trains_as_with_autograd() {
    const SIZES: [usize; 5] = [784, 64, 64, 64, 10];
    let g = &mut Generator::manual_seed(11);
    let layers: Vec<nn::Linear> = SIZES
        .windows(2)
        .map(|s| nn::Linear {
            weight: (normal(&[s[1], s[0]], g) / (s[0] as f64).sqrt()).parameter(),
            bias: Some(normal(&[s[1]], g).parameter()),
        })
        .collect();
    let (mut net, mut by_hand) = (Sequential::new(), explicit::ExplicitNet::new());
    for (i, layer) in layers.into_iter().enumerate() {
        let copy = nn::Linear {
            weight: layer.weight.detach().parameter(),
            bias: layer.bias.as_ref().map(|b| b.detach().parameter()),
        };
        net = net.with(layer);
        by_hand = by_hand.with(explicit::ExplicitLinear::from(copy));
        if i < 3 {
            net = net.with(nn::Relu);
            by_hand = by_hand.with(explicit::ExplicitRelu::default());
        }
    }
    let mut criterion = explicit::ExplicitCrossEntropy::default();
    let (mut tape, mut hand) =
        (Sgd::new(net.parameters(), 0.1), Sgd::new(by_hand.parameters(), 0.1));
    for step in 0..20 {
        let (x, y) = (normal(&[32, 784], g), Tensor::randint(0, 10, [32], g));
        let loss = net.forward(&x).cross_entropy(&y);
        tape.zero_grad();
        loss.backward();
        tape.step().unwrap();
        let other = criterion.forward(&by_hand.forward(&x), &y);
        by_hand.backward(&criterion.backward());
        hand.step().unwrap();
        close(&format!("loss of step {step}"), &other, &loss, 1e-12);
    }
    for (a, b) in by_hand.parameters().iter().zip(net.parameters()) {
        close("weights", a, &b, 1e-12);
    }
}

/// Each layer passes the check of its own backward pass, and keeps its parameters and gradients.
#[test]
fn each_layer_passes_its_check() {
    use chainrule::check::gradcheck_explicit;
    let g = &mut Generator::manual_seed(11);
    let x = normal(&[6, 5], g);
    let linear = || nn::Linear {
        weight: normal(&[5, 5], &mut Generator::manual_seed(1)).parameter(),
        bias: Some(normal(&[5], &mut Generator::manual_seed(2)).parameter()),
    };
    let kept = linear();
    kept.weight.set_grad(Some(Tensor::ones([5, 5]).to_dtype(DType::F64))).unwrap();
    let (weight, before) = (kept.weight.clone(), kept.weight.to_f64_vec());
    let mut norm = nn::BatchNorm1d::new(5);
    norm.gain = normal(&[5], g).parameter();
    norm.bias = normal(&[5], g).parameter();
    norm.running_mean = normal(&[5], g).buffer();
    norm.running_var = (normal(&[5], g).abs() + 0.5).buffer();
    for (what, report) in [
        ("Relu", gradcheck_explicit(explicit::ExplicitRelu::default(), &x)),
        ("Tanh", gradcheck_explicit(explicit::ExplicitTanh::default(), &x)),
        ("Sigmoid", gradcheck_explicit(explicit::ExplicitSigmoid::default(), &x)),
        ("Softmax", gradcheck_explicit(explicit::ExplicitSoftmax::default(), &x)),
        ("LogSoftmax", gradcheck_explicit(explicit::ExplicitLogSoftmax::default(), &x)),
        ("BatchNorm1d", gradcheck_explicit(explicit::ExplicitBatchNorm1d::from(norm), &x)),
        ("Linear", gradcheck_explicit(explicit::ExplicitLinear::from(kept), &x)),
        (
            "Net",
            gradcheck_explicit(
                explicit::ExplicitNet::new()
                    .with(explicit::ExplicitLinear::from(linear()))
                    .with(explicit::ExplicitTanh::default())
                    .with(explicit::ExplicitLinear::from(linear())),
                &x,
            ),
        ),
    ] {
        let report = report.unwrap();
        assert!(report.passed(), "{what}: {report}");
    }
    assert_eq!(weight.to_f64_vec(), before);
    assert_eq!(weight.grad().unwrap().sum_all().item(), 25.0);
}
