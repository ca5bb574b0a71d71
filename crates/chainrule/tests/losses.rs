//! Losses with all their options, group norms and dropout in f64 against PyTorch: values and
//! gradients, at edges too.

mod common;

use chainrule::{
    Bce, BceWithLogits, CosineEmbedding, CrossEntropy, Generator, HingeEmbedding, Huber, KlDiv,
    NllLoss, Reduction, SmoothL1, Tensor,
};
use common::Reference;

/// Within the rounding of a dozen operations.
const TOLERANCE: f64 = 1e-12;

const REDUCTIONS: [(&str, Reduction); 3] =
    [("mean", Reduction::Mean), ("sum", Reduction::Sum), ("none", Reduction::None)];

fn reference() -> Reference {
    Reference::read("losses")
}

/// Fails unless the two have one shape and agree, relative to the larger of 1 and the value;
/// infinities and NaN are equal to themselves.
#[track_caller]
fn close(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (i, (got, want)) in got.to_f64_vec().into_iter().zip(want.to_f64_vec()).enumerate() {
        let near = (got - want).abs() <= TOLERANCE * want.abs().max(1.0);
        let same = got == want || (got.is_nan() && want.is_nan()) || near;
        assert!(same, "{what}, element {i}: {got}, not {want}");
    }
}

/// Compares value and gradients of the case `name`, whose inputs (and upstream gradient, if it has
/// one of its own) are those of `inputs`.
#[track_caller]
fn check_shared(
    r: &Reference,
    inputs: &str,
    name: &str,
    count: usize,
    f: impl Fn(&[Tensor]) -> Tensor,
) {
    let grad = |i: usize| r.find(&format!("{name}.grad.x{i}"));
    let leaf = |i: usize| {
        let x = r.get(&format!("{inputs}.x{i}"));
        if grad(i).is_some() { x.parameter() } else { x }
    };
    let leaves: Vec<Tensor> = (0..count).map(leaf).collect();
    let y = f(&leaves);
    close(name, &y, &r.get(&format!("{name}.y")));
    let upstream = r.find(&format!("{name}.dout")).unwrap_or_else(|| upstream(&y));
    y.backward_with().gradient(&upstream).run().unwrap_or_else(|e| panic!("{name}: {e}"));
    for (i, leaf) in leaves.iter().enumerate() {
        if let Some(want) = grad(i) {
            close(&format!("{name}, gradient {i}"), &leaf.grad().expect("a gradient"), &want);
        }
    }
}

/// The gradients that the script uses: 1.5 for a single element, else evenly from -1.5 to 2.
fn upstream(y: &Tensor) -> Tensor {
    if y.rank() == 0 {
        return Tensor::scalar(1.5);
    }
    let step = 3.5 / (y.numel() as f64 - 1.0);
    let all: Vec<f64> = (0..y.numel()).map(|i| -1.5 + step * i as f64).collect();
    Tensor::from_slice(&all, y.shape())
}

#[track_caller]
fn check(r: &Reference, name: &str, count: usize, f: impl Fn(&[Tensor]) -> Tensor) {
    check_shared(r, name, name, count, f);
}

#[test]
fn losses_of_differences() {
    let r = &reference();
    for (key, reduction) in REDUCTIONS {
        check(r, &format!("mse.{key}"), 2, |x| x[0].mse_with(&x[1], reduction));
        check(r, &format!("l1.{key}"), 2, |x| x[0].l1_loss_with(&x[1], reduction));
        let options = SmoothL1 { reduction, beta: 0.7 };
        check(r, &format!("smooth_l1.{key}"), 2, |x| x[0].smooth_l1_with(&x[1], &options));
        let options = Huber { reduction, delta: 0.7 };
        check(r, &format!("huber.{key}"), 2, |x| x[0].huber_with(&x[1], &options));
    }
    check(r, "mse.mean", 2, |x| x[0].mse(&x[1]));
    check(r, "l1.mean", 2, |x| x[0].l1_loss(&x[1]));
    check(r, "edge.mse", 2, |x| x[0].mse_with(&x[1], Reduction::None));
    check(r, "edge.l1", 2, |x| x[0].l1_loss_with(&x[1], Reduction::None));
    let smooth = |beta| SmoothL1 { reduction: Reduction::None, beta };
    check(r, "edge.smooth_l1", 2, |x| x[0].smooth_l1_with(&x[1], &smooth(0.5)));
    check(r, "edge.smooth_l1_0", 2, |x| x[0].smooth_l1_with(&x[1], &smooth(0.0)));
    let huber = Huber { reduction: Reduction::None, delta: 0.5 };
    check(r, "edge.huber", 2, |x| x[0].huber_with(&x[1], &huber));
}

#[test]
fn binary_cross_entropies() {
    let r = &reference();
    let (w, p) = (Some(r.get("weight")), Some(r.get("pos_weight")));
    for (key, reduction) in REDUCTIONS {
        for (name, weight) in [("bce", None), ("bce_weight", w.clone())] {
            let options = Bce { reduction, weight };
            check(r, &format!("{name}.{key}"), 2, |x| x[0].bce_with(&x[1], &options));
        }
        for (name, weight, pos_weight) in [
            ("logits", None, None),
            ("logits_weight", w.clone(), None),
            ("logits_pos", None, p.clone()),
            ("logits_both", w.clone(), p.clone()),
        ] {
            let options = BceWithLogits { reduction, weight, pos_weight };
            check(r, &format!("{name}.{key}"), 2, |x| x[0].bce_with_logits_with(&x[1], &options));
        }
    }
    let each = Bce { reduction: Reduction::None, weight: None };
    check(r, "edge.bce", 2, |x| x[0].bce_with(&x[1], &each));
    let each = BceWithLogits { reduction: Reduction::None, ..BceWithLogits::default() };
    check(r, "edge.logits", 2, |x| x[0].bce_with_logits_with(&x[1], &each));
}

#[test]
fn divergences() {
    let r = &reference();
    for (key, reduction) in REDUCTIONS.into_iter().chain([("batchmean", Reduction::BatchMean)]) {
        for (name, log_target) in [("kl", false), ("kl_log", true)] {
            let options = KlDiv { reduction, log_target };
            check(r, &format!("{name}.{key}"), 2, |x| x[0].kl_div_with(&x[1], &options));
        }
    }
    let each = |log_target| KlDiv { reduction: Reduction::None, log_target };
    check(r, "edge.kl", 2, |x| x[0].kl_div_with(&x[1], &each(false)));
    check(r, "edge.kl_log", 2, |x| x[0].kl_div_with(&x[1], &each(true)));
}

#[test]
fn hinges() {
    let r = &reference();
    for (key, reduction) in REDUCTIONS {
        let options = HingeEmbedding { reduction, margin: 0.8 };
        check(r, &format!("hinge.{key}"), 2, |x| x[0].hinge_embedding_with(&x[1], &options));
    }
    let each = HingeEmbedding { reduction: Reduction::None, margin: 1.0 };
    check(r, "edge.hinge", 2, |x| x[0].hinge_embedding_with(&x[1], &each));
    check(r, "edge.margin", 2, |x| x[0].hinge_with(&x[1], Reduction::None));
}

/// Every combination of target, shape, reduction, smoothing, weights and a class that is left out.
#[test]
fn losses_of_classes() {
    let r = &reference();
    let mut count = 0;
    for kind in ["ce.index", "ce.probs", "nll.index"] {
        for shape in ["c", "nc", "ncd"] {
            for (key, reduction) in REDUCTIONS {
                for label_smoothing in [0.0, 0.3] {
                    for weighted in [false, true] {
                        for ignore_index in [None, Some(1)] {
                            let inputs = format!("{kind}.{shape}");
                            let weight = weighted.then(|| r.get(&format!("{inputs}.weight")));
                            let name = format!(
                                "{inputs}.{key}.{}.{}.{}",
                                if label_smoothing == 0.0 { "plain" } else { "smooth" },
                                if weighted { "weight" } else { "even" },
                                if ignore_index.is_some() { "ignore" } else { "all" },
                            );
                            if r.find(&format!("{name}.y")).is_none() {
                                continue;
                            }
                            count += 1;
                            let nll = NllLoss { reduction, ignore_index, weight: weight.clone() };
                            let full =
                                CrossEntropy { reduction, ignore_index, label_smoothing, weight };
                            check_shared(r, &inputs, &name, 2, |x| match kind {
                                "nll.index" => x[0].nll_loss_with(&x[1], &nll),
                                _ => x[0].cross_entropy_with(&x[1], &full),
                            });
                        }
                    }
                }
            }
        }
    }
    assert_eq!(count, 3 * 3 * (8 + 4 + 4), "cases in the file");
    let each = CrossEntropy { reduction: Reduction::None, ..CrossEntropy::default() };
    check(r, "edge.ce_probs", 2, |x| x[0].cross_entropy_with(&x[1], &each));
    let each =
        NllLoss { reduction: Reduction::None, ignore_index: Some(-100), ..NllLoss::default() };
    check(r, "edge.nll", 2, |x| x[0].nll_loss_with(&x[1], &each));
}

/// The masks of PyTorch, element for element, and the generator where PyTorch leaves it.
#[test]
fn dropout() {
    let r = &reference();
    for name in ["f32", "f64"] {
        let get = |key: &str| r.get(&format!("dropout.{name}.{key}"));
        let (x, mut g) = (get("x0"), Generator::manual_seed(42));
        let bits = |t: &Tensor| t.to_f64_vec();
        assert_eq!(bits(&x.dropout(0.3, true, &mut g)), bits(&get("y")));
        assert_eq!(bits(&x.dropout(0.9, true, &mut g)), bits(&get("again")));
        assert_eq!(bits(&Tensor::rand([3], x.dtype(), &mut g)), bits(&get("after")));
    }
}

#[test]
fn group_norms() {
    let r = &reference();
    for (name, groups) in [("gn", 3), ("gn_one", 1), ("gn_flat", 2), ("gn_each", 3)] {
        check(r, name, 3, |x| x[0].group_norm(groups, Some(&x[1]), Some(&x[2]), 1e-4));
        check(r, &format!("{name}_plain"), 1, |x| x[0].group_norm(groups, None, None, 1e-5));
    }
    check(r, "in", 3, |x| x[0].instance_norm(Some(&x[1]), Some(&x[2]), 1e-4));
    check(r, "in_plain", 1, |x| x[0].instance_norm(None, None, 1e-5));
}

#[test]
fn cosines() {
    let r = &reference();
    check(r, "cos", 2, |x| x[0].cosine_similarity(&x[1], 1, 1e-8));
    check(r, "cos_last", 2, |x| x[0].cosine_similarity(&x[1], -1, 1e-8));
    check(r, "cos_row", 2, |x| x[0].cosine_similarity(&x[1], 1, 1e-8));
    check(r, "edge.cos", 2, |x| x[0].cosine_similarity(&x[1], 1, 1e-8));
    check(r, "edge.cos_eps", 2, |x| x[0].cosine_similarity(&x[1], 0, 0.5));
    let target = r.get("cosemb.target");
    for (key, reduction) in REDUCTIONS {
        let options = CosineEmbedding { reduction, margin: -0.4 };
        check(r, &format!("cosemb.{key}"), 2, |x| {
            x[0].cosine_embedding_with(&x[1], &target, &options)
        });
    }
}
