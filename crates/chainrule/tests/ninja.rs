//! The names model in 24 small steps, against PyTorch: every intermediate and every parameter,
//! value and gradient.

mod common;

use chainrule::{DType, Tensor, record_all};
use common::{Reference, distance, names_data, names_parameters};

/// The intermediates in their order, by the names of the reference.
const STEPS: [&str; 19] = [
    "emb",
    "embcat",
    "hprebn",
    "bnmeani",
    "bndiff",
    "bndiff2",
    "bnvar",
    "bnvar_inv",
    "bnraw",
    "hpreact",
    "h",
    "logits",
    "logit_maxes",
    "norm_logits",
    "counts",
    "counts_sum",
    "counts_sum_inv",
    "probs",
    "logprobs",
];

/// Everything that the model computes for a batch, with its gradient.
struct Pass {
    /// Parameters and intermediates.
    tensors: Vec<(&'static str, Tensor)>,
    loss: Tensor,
}

fn run(
    dtype: DType,
    parameters: Vec<(&'static str, Tensor)>,
    contexts: &Tensor,
    targets: &Tensor,
) -> Pass {
    let p =
        |name: &str| parameters.iter().find(|(n, _)| *n == name).expect("a parameter").1.clone();
    let n = 32.0;
    let (steps, loss) = record_all(|| {
        let emb = p("C").embedding(contexts);
        let embcat = emb.reshape([32, 30]);
        let hprebn = embcat.matmul(&p("W1")) + p("b1");
        let bnmeani: Tensor = 1.0 / n * hprebn.sum(0, true);
        let bndiff = &hprebn - &bnmeani;
        let bndiff2 = bndiff.pow(2.0);
        let bnvar: Tensor = 1.0 / (n - 1.0) * bndiff2.sum(0, true);
        let bnvar_inv = (&bnvar + 1e-5).pow(-0.5);
        let bnraw = &bndiff * &bnvar_inv;
        let hpreact = p("bngain") * &bnraw + p("bnbias");
        let h = hpreact.tanh();
        let logits = h.matmul(&p("W2")) + p("b2");
        let logit_maxes = logits.max_axis(1, true).0;
        let norm_logits = &logits - &logit_maxes;
        let counts = norm_logits.exp();
        let counts_sum = counts.sum(1, true);
        let counts_sum_inv = counts_sum.pow(-1.0);
        let probs = &counts * &counts_sum_inv;
        let logprobs = probs.log();
        let loss = -(logprobs.gather(1, &targets.reshape([32, 1])).sum_all() / n);
        let steps = [
            emb,
            embcat,
            hprebn,
            bnmeani,
            bndiff,
            bndiff2,
            bnvar,
            bnvar_inv,
            bnraw,
            hpreact,
            h,
            logits,
            logit_maxes,
            norm_logits,
            counts,
            counts_sum,
            counts_sum_inv,
            probs,
            logprobs,
        ];
        (steps, loss)
    });
    loss.backward();
    assert_eq!(loss.dtype(), dtype);
    let tensors = parameters.into_iter().chain(STEPS.into_iter().zip(steps)).collect();
    Pass { tensors, loss }
}

/// Parameters drawn anew, and the batch: from the list of names where it is at hand, else from the
/// reference.
fn pass(dtype: DType, reference: &Reference) -> Pass {
    let (parameters, mut g) = names_parameters(64, dtype);
    let (mut contexts, mut targets) = (reference.get("Xb"), reference.get("Yb"));
    let rows = Tensor::randint(0, 182_625, [32], &mut g);
    assert_eq!(
        rows.to_vec::<i64>(),
        reference.get("ix").to_vec::<i64>(),
        "the rows drawn for the batch"
    );
    if let Some((train, _)) = names_data("ninja: the batch from names.txt") {
        assert_eq!(train.len(), 182_625);
        let drawn = train.batch(&rows.to_vec::<i64>());
        assert_eq!(drawn.0.to_vec::<i64>(), contexts.to_vec::<i64>(), "contexts");
        assert_eq!(drawn.1.to_vec::<i64>(), targets.to_vec::<i64>(), "targets");
        (contexts, targets) = drawn;
    }
    run(dtype, parameters, &contexts, &targets)
}

/// Each value and gradient with its name.
fn named(pass: &Pass) -> Vec<(String, Tensor)> {
    let mut out = vec![("loss".to_string(), pass.loss.clone())];
    for (name, t) in &pass.tensors {
        out.push((name.to_string(), t.clone()));
        let grad = t.try_grad().unwrap_or_else(|e| panic!("{name}: {e}"));
        out.push((format!("grad.{name}"), grad));
    }
    assert_eq!(out.len(), 1 + 2 * (19 + 7));
    out
}

#[track_caller]
fn report(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} differ\n  {}", failures.len(), failures.join("\n  "));
}

#[test]
fn parameters_are_drawn_as_in_pytorch() {
    let reference = Reference::read("ninja_f32");
    for (name, t) in names_parameters(64, DType::F32).0 {
        assert_eq!(t.to_vec::<f32>(), reference.get(name).to_vec::<f32>(), "{name}");
    }
}

#[test]
fn every_intermediate_in_f64() {
    let reference = Reference::read("ninja_f64");
    let mut failures = Vec::new();
    for (name, got) in named(&pass(DType::F64, &reference)) {
        let apart = distance(&got, &reference.get(&name));
        println!("{name:22} {apart:.1e}");
        if apart > 1e-12 {
            failures.push(format!("{name}: {apart:.1e} apart"));
        }
    }
    report(failures);
}

#[test]
fn every_intermediate_in_f32() {
    let (narrow, wide) = (Reference::read("ninja_f32"), Reference::read("ninja_f64"));
    let mut failures = Vec::new();
    for (name, got) in named(&pass(DType::F32, &narrow)) {
        let (theirs, exact) = (narrow.get(&name), wide.get(&name));
        let apart = distance(&got, &theirs);
        let (ours_off, theirs_off) = (distance(&got, &exact), distance(&theirs, &exact));
        println!(
            "{name:22} {apart:.1e} from PyTorch; from f64: {ours_off:.1e}, PyTorch {theirs_off:.1e}"
        );
        if apart > 2e-5 {
            failures.push(format!("{name}: {apart:.1e} from PyTorch's f32"));
        }
        if ours_off > 2.0 * theirs_off {
            failures.push(format!("{name}: {ours_off:.1e} from f64, PyTorch {theirs_off:.1e}"));
        }
    }
    report(failures);
}
