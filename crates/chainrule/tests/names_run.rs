//! A thousand steps of training the names model follow PyTorch's, loss by loss.

mod common;

use chainrule::{DType, Tensor, no_grad};
use common::{Reference, distance, names_data, names_parameters};

/// The parameters, each by its own name.
struct Model {
    c: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    gain: Tensor,
    bias: Tensor,
}

/// Form of batch normalisation.
#[derive(Clone, Copy, Debug)]
enum BatchNorm {
    Primitive,
    Fused,
}

impl Model {
    fn new(parameters: &[(&'static str, Tensor)]) -> Model {
        let p = |name: &str| {
            parameters.iter().find(|(n, _)| *n == name).expect("a parameter").1.clone()
        };
        Model {
            c: p("C"),
            w1: p("W1"),
            b1: p("b1"),
            w2: p("W2"),
            b2: p("b2"),
            gain: p("bngain"),
            bias: p("bnbias"),
        }
    }

    fn hidden(&self, contexts: &Tensor) -> Tensor {
        let rows = contexts.shape()[0] as i64;
        self.c.embedding(contexts).reshape([rows, 30]).matmul(&self.w1) + &self.b1
    }

    fn head(&self, normalised: &Tensor, targets: &Tensor) -> Tensor {
        (normalised.tanh().matmul(&self.w2) + &self.b2).cross_entropy(targets)
    }

    fn normalise(&self, h: &Tensor, mean: &Tensor, var: &Tensor) -> Tensor {
        &self.gain * (h - mean) * (var + 1e-5).pow(-0.5) + &self.bias
    }

    fn loss(&self, contexts: &Tensor, targets: &Tensor, how: BatchNorm) -> Tensor {
        let h = self.hidden(contexts);
        let normalised = match how {
            BatchNorm::Primitive => {
                let (mean, var) = statistics(&h);
                self.normalise(&h, &mean, &var)
            }
            BatchNorm::Fused => {
                let (gain, bias) = (self.gain.reshape([200]), self.bias.reshape([200]));
                h.batch_norm(Some(&gain), Some(&bias), 1e-5, 1)
            }
        };
        self.head(&normalised, targets)
    }
}

/// Mean and unbiased variance of each column.
fn statistics(h: &Tensor) -> (Tensor, Tensor) {
    let n = h.shape()[0] as f64;
    let mean = h.sum(0, true) / n;
    let apart = h - &mean;
    let var = (&apart * &apart).sum(0, true) / (n - 1.0);
    (mean, var)
}

/// A thousand steps from the seed; gives the losses, the model and its parameters by name.
fn train(train: &common::Pairs, how: BatchNorm) -> (Vec<f64>, Model, Vec<(&'static str, Tensor)>) {
    let (parameters, mut g) = names_parameters(200, DType::F32);
    let model = Model::new(&parameters);
    let mut losses = Vec::new();
    for _ in 0..1000 {
        let rows = Tensor::randint(0, train.len() as i64, [32], &mut g);
        let (contexts, targets) = train.batch(&rows.to_vec::<i64>());
        let loss = model.loss(&contexts, &targets, how);
        parameters.iter().for_each(|(_, p)| p.zero_grad());
        loss.backward();
        for (_, p) in &parameters {
            let step = p.grad().expect("every parameter is used") * 0.1;
            p.set(&no_grad(|| p - step));
        }
        losses.push(loss.item());
    }
    (losses, model, parameters)
}

fn follows_pytorch(how: BatchNorm) {
    let Some((training, validation)) = names_data("names_run") else {
        return;
    };
    assert_eq!((training.len(), validation.len()), (182_625, 22_655));
    let reference = Reference::read("names_run");
    let (losses, model, parameters) = train(&training, how);
    let mut failures = Vec::new();
    let want = reference.get("losses").to_f64_vec();
    let worst = losses.iter().zip(&want).map(|(a, b)| (a - b).abs()).enumerate();
    let (step, apart) = worst.max_by(|a, b| a.1.total_cmp(&b.1)).expect("a thousand losses");
    println!("{how:?}: losses within {apart:.1e} (step {step})");
    if apart > 1e-5 || apart.is_nan() {
        failures.push(format!("loss of step {step}: {} for {}", losses[step], want[step]));
    }
    for (name, p) in &parameters {
        let apart = distance(p, &reference.get(&format!("end.{name}")));
        println!("{how:?}: {name} within {apart:.1e}");
        if apart > 1e-4 {
            failures.push(format!("{name}: {apart:.1e} apart after 1,000 steps"));
        }
    }
    let losses = no_grad(|| {
        let (contexts, targets) = training.all();
        let h = model.hidden(&contexts);
        let (mean, var) = statistics(&h);
        let train = model.head(&model.normalise(&h, &mean, &var), &targets).item();
        let (contexts, targets) = validation.all();
        let h = model.hidden(&contexts);
        [("train", train), ("val", model.head(&model.normalise(&h, &mean, &var), &targets).item())]
    });
    for (name, loss) in losses {
        let want = reference.get(name).item();
        println!("{how:?}: {name} {loss} for {want}");
        let close = (loss - want).abs() <= 1e-5;
        if !close {
            failures.push(format!("{name} loss: {loss} for {want}"));
        }
    }
    assert!(failures.is_empty(), "{how:?}:\n  {}", failures.join("\n  "));
}

#[test]
fn with_batch_norm_in_primitives() {
    follows_pytorch(BatchNorm::Primitive);
}

#[test]
fn with_batch_norm_fused() {
    follows_pytorch(BatchNorm::Fused);
}
