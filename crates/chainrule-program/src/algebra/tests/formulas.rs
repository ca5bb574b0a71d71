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

/// Random targets between 0 and 1.
fn targets(shape: &[usize], g: &mut Generator) -> Tensor {
    Tensor::rand(shape, DType::F64, g)
}

fn names_program() -> (Program, Tensor, Tensor) {
    let (raw, _, x, y) = crate::tests::names::chunked_program(DType::F64);
    (raw.optimized(), x, y)
}

#[test]
fn the_names_model() {
    let (raw, x, y) = names_program();
    let simple = raw.simplify_with(&Simplify::new().checked(1)).unwrap();
    let program = &simple.program;
    let apart = difference(&program.run(&[&x, &y]).unwrap(), &raw.run(&[&x, &y]).unwrap());
    assert!(apart < 1e-12, "{apart}");
    if std::env::var("SHOW").is_ok() {
        println!("{raw}\n{program}");
        for s in &simple.steps {
            println!("{:<22} {:<14} {}  ->  {}  [{}]", s.rule, s.at, s.before, s.after, s.saved);
        }
    }
    let backward: Vec<_> =
        program.lines().filter(|l| l.phase() == crate::Phase::Backward).collect();
    let of = |shape: &[usize]| {
        let big = backward.iter().filter(|l| l.shape()[..] == *shape && l.op() != "gather_grad");
        big.map(|l| l.op()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[4, 7]).len(), 2, "{program}");
    // The product with W2, tanh, z * d_bngain, two differences, the scale, and the product for
    // d_bngain.
    assert!(of(&[4, 5]).len() <= 7, "{:?}\n{program}", of(&[4, 5]));
    let zero = program.run_with(&[&x, &y], &[]).unwrap()[3].to_f64_vec();
    assert!(zero.iter().all(|x| *x == 0.0), "d_b1 is exactly zero: {zero:?}");
    assert!(
        !backward.iter().any(|l| l.op() == "place"),
        "nothing goes through the maximum\n{program}"
    );
}

#[test]
fn without_a_rule_it_does_not_come_out() {
    let (raw, ..) = names_program();
    // The slope of a logarithm of softmax, which is reused, sums up one-hot rows by itself.
    let all = raw.simplify_with(&Simplify::new().without("reuse")).unwrap().program.len();
    for rule in ["one-hot sum", "merge powers", "distribute"] {
        let how = Simplify::new().without("reuse").without(rule);
        let less = raw.simplify_with(&how).unwrap();
        assert!(less.program.len() > all, "{rule}: {} for {all}", less.program.len());
        assert!(less.steps.iter().all(|s| s.rule != rule));
    }
    let none = raw.simplify_with(&Simplify::new().only([])).unwrap();
    assert!(none.program.len() + 2 > raw.len(), "{}", none.program);
}

#[test]
fn sigmoid_with_binary_cross_entropy() {
    let g = &mut Generator::manual_seed(2);
    let (x, y) = (normal(&[6, 5], g), targets(&[6, 5], g));
    let bce =
        |p: &Tensor, y: &Tensor| -((y * p.log() + (1.0 - y) * (1.0 - p).log()).sum_all() / 30.0);
    let y = &y;
    let case = Case::new(&["x"], std::slice::from_ref(&x), |x| bce(&x[0].sigmoid(), y));
    case.at_most(30, 2);
    let case =
        Case::new(&["x"], std::slice::from_ref(&x), |x| bce(&(1.0 / (1.0 + (-&x[0]).exp())), y));
    case.at_most(30, 2);
    let case = Case::new(&["x"], std::slice::from_ref(&x), |x| {
        bce(&((&x[0] * 0.5).tanh() * 0.5 + 0.5), y)
    });
    case.at_most(30, 3);
    // The logistic function the other way round, and with the exponential as the numerator.
    let case = Case::new(&["x"], &[x], |x| {
        let e = x[0].exp();
        bce(&(&e / (&e + 1.0)), y)
    });
    case.at_most(30, 3);
}

#[test]
fn log_softmax_with_temperature() {
    let g = &mut Generator::manual_seed(3);
    let y = Tensor::randint(0, 7, [5], g);
    let x = normal(&[5, 7], g);
    let case =
        Case::new(&["x", "y"], &[x.clone(), y.clone()], |x| cross_entropy(&(&x[0] / 0.7), &x[1]));
    case.at_most(35, 2);
    let case = Case::new(&["x", "y"], &[x, y], |x| {
        let z = &x[0] * 3.0;
        let z = &z - z.amax(1, true);
        let logp = &z - z.exp().sum(1, true).log();
        -logp.gather(1, &x[1].reshape([-1, 1])).mean_all()
    });
    case.at_most(35, 3);
}

#[test]
fn soft_targets_and_label_smoothing() {
    let g = &mut Generator::manual_seed(4);
    let y = Tensor::randint(0, 7, [5], g);
    let x = normal(&[5, 7], g);
    let logp = |x: &Tensor| {
        let z = x - x.amax(1, true);
        let e = z.exp();
        (&e / e.sum(1, true)).log()
    };
    let case = Case::new(&["x", "y"], &[x.clone(), y.clone()], |x| {
        let hot = x[1].one_hot(7).to_dtype(DType::F64);
        let soft = hot * 0.9 + 0.1 / 7.0;
        -(soft * logp(&x[0])).sum_all() / 5.0
    });
    case.at_most(35, 3);
    let case = Case::new(&["x", "y"], &[x.clone(), y], |x| {
        let logp = logp(&x[0]);
        let picked = logp.gather(1, &x[1].reshape([-1, 1])).mean_all();
        -(picked * 0.9 + logp.mean_all() * 0.1)
    });
    case.at_most(35, 3);
    let t = targets(&[5, 7], g);
    let case = Case::new(&["x"], &[x], |x| -(&t * logp(&x[0])).sum_all() / 5.0);
    case.at_most(35, 4);
}

#[test]
fn batch_norm_with_either_denominator() {
    let g = &mut Generator::manual_seed(5);
    for below in [7.0, 8.0] {
        let inputs = [normal(&[8, 5], g), normal(&[1, 5], g), normal(&[1, 5], g)];
        let d = normal(&[8, 5], g);
        let case = Case::new(&["x", "gain", "bias"], &inputs, |x| {
            let mean = x[0].sum(0, true) / 8.0;
            let diff = &x[0] - &mean;
            let var = diff.pow(2.0).sum(0, true) / below;
            let raw = &diff * (var + 1e-5).pow(-0.5);
            ((&x[1] * raw + &x[2]) * &d).sum_all()
        });
        case.at_most(40, 5);
    }
}

/// As the peers write it: by `mean` and `var`, the gain before the division, and a bias that the
/// mean takes away again.
#[test]
fn batch_norm_by_mean_and_variance() {
    let g = &mut Generator::manual_seed(11);
    let row = |g: &mut Generator| normal(&[1, 5], g);
    let inputs = [normal(&[8, 5], g), row(g), row(g), row(g)];
    // Small, since what the eager mode finds for the lost bias is rounding, where zero is right.
    let d = normal(&[8, 5], g) * 0.1;
    for correction in [0, 1] {
        let case = Case::new(&["x", "lost", "gain", "bias"], &inputs, |x| {
            let h = &x[0] + &x[1];
            let (mean, var) = (h.mean(0, true), h.var(0, correction, true));
            let normed = &x[2] * (h - mean) * (var + 1e-5).pow(-0.5) + &x[3];
            (normed.tanh() * &d).sum_all()
        });
        // The slope of tanh, times the difference for the gain, and two differences and two
        // products.
        let ops = case.at_most(40, 6);
        assert_eq!(ops.iter().filter(|op| op.contains("sum(")).count(), 2, "{ops:?}");
        let lost = case.simple.program.run(&[]).unwrap()[2].to_f64_vec();
        assert!(lost.iter().all(|x| *x == 0.0), "{lost:?}");
    }
}

#[test]
fn layer_rms_and_group_norm() {
    let g = &mut Generator::manual_seed(6);
    let d = normal(&[4, 6], g);
    let inputs = [normal(&[4, 6], g), normal(&[6], g), normal(&[6], g)];
    let case = Case::new(&["x", "gain", "bias"], &inputs, |x| {
        let diff = &x[0] - x[0].mean(1, true);
        let var = diff.square().mean(1, true);
        ((diff * (var + 1e-5).rsqrt() * &x[1] + &x[2]) * &d).sum_all()
    });
    // g d, z g d, z sum, two differences, the scale, and d z for the gain.
    case.at_most(24, 7);
    let case = Case::new(&["x", "gain"], &inputs[..2], |x| {
        let r = (x[0].square().mean(1, true) + 1e-5).rsqrt();
        (&x[0] * r * &x[1] * &d).sum_all()
    });
    case.at_most(24, 6);
    let x = normal(&[2, 6, 3], g);
    let d = normal(&[2, 6, 3], g);
    let case = Case::new(&["x"], &[x], |x| {
        let groups = x[0].reshape([2, 2, 9]);
        let diff = &groups - groups.mean(2, true);
        let var = diff.square().mean(2, true);
        ((diff / (var + 1e-5).sqrt()).reshape([2, 6, 3]) * &d).sum_all()
    });
    case.at_most(36, 5);
}

#[test]
fn normalised_vectors() {
    let g = &mut Generator::manual_seed(7);
    let d = normal(&[4, 6], g);
    let (a, b) = (normal(&[4, 6], g), normal(&[4, 6], g));
    let case = Case::new(&["x"], std::slice::from_ref(&a), |x| {
        (&x[0] / x[0].square().sum(1, true).sqrt() * &d).sum_all()
    });
    case.at_most(24, 4);
    let gain = normal(&[4, 1], g);
    let case = Case::new(&["v", "gain"], &[a.clone(), gain], |x| {
        (&x[0] * (&x[1] / x[0].square().sum(1, true).sqrt()) * &d).sum_all()
    });
    case.at_most(24, 5);
    let case = Case::new(&["a", "b"], &[a, b], |x| {
        let dot = (&x[0] * &x[1]).sum(1, true);
        let sizes = x[0].square().sum(1, true).sqrt() * x[1].square().sum(1, true).sqrt();
        (dot / sizes).sum_all()
    });
    case.at_most(24, 6);
}

#[test]
fn softmax_of_scores_times_values() {
    let g = &mut Generator::manual_seed(8);
    let (q, k, v) = (normal(&[5, 3], g), normal(&[6, 3], g), normal(&[6, 4], g));
    let d = normal(&[5, 4], g);
    let case = Case::new(&["q", "k", "v"], &[q, k, v], |x| {
        let scores = x[0].matmul(&x[1].t()) / 3f64.sqrt();
        let e = (&scores - scores.amax(1, true)).exp();
        let weights = &e / e.sum(1, true);
        (weights.matmul(&x[2]) * &d).sum_all()
    });
    // The product with v, the product with the weights, the second product, the difference; and the
    // scale.
    case.at_most(30, 5);
}

#[test]
fn logsumexp_with_a_maximum() {
    let g = &mut Generator::manual_seed(9);
    let case = Case::new(&["x"], &[normal(&[4, 6], g)], |x| {
        let m = x[0].max_axis(1, true).0;
        ((&x[0] - &m).exp().sum(1, true).log() + &m).sum_all()
    });
    let ops = case.at_most(24, 1);
    assert!(ops.len() <= 2, "{}", case.simple.program);
}

/// `x / norm(x)` divides by `norm + [norm = 0]` in the gradient: the two are one only where the
/// product is divided by the norm anyway.
#[test]
fn norms_of_zeros_keep_their_gradients() {
    let g = &mut Generator::manual_seed(41);
    let rows = normal(&[4, 3], g);
    let zeros = Tensor::from([[0.0f64], [1.0], [0.0], [1.0]]);
    let x = &rows * &zeros;
    let losses: [fn(&Tensor) -> Tensor; 4] = [
        |x| (x.norm(2.0, 1, false) * Tensor::from([1.0f64, 2.0, 3.0, 4.0])).sum_all(),
        |x| (x / x.norm(2.0, 1, true)).tanh().sum_all(),
        |x| (x / (x.norm(2.0, 1, true) + 0.5)).tanh().sum_all(),
        |x| (x.norm(2.0, 1, true).square() * x).sum_all(),
    ];
    for loss in losses {
        let case = Case::new(&["x"], std::slice::from_ref(&x), |x| loss(&x[0]));
        let gradient = case.simple.program.run(&[]).unwrap()[1].to_f64_vec();
        let eager = case.raw.run(&[]).unwrap()[1].to_f64_vec();
        for (a, b) in gradient.iter().zip(&eager) {
            assert!((a - b).abs() <= 1e-12 || (a.is_nan() && b.is_nan()), "{a} for {b}");
        }
    }
}

/// A sum over several axes of rows that are divided by their own sums is a count.
#[test]
fn rows_over_their_sums_add_up_to_a_count() {
    let g = &mut Generator::manual_seed(42);
    let inputs = [normal(&[6, 4], g), normal(&[], g)];
    let how = Simplify::new().checked(3);
    let loss = |x: &[Tensor]| (&x[0] + &x[1]).exp().sum(1, true).log().sum_all();
    let case = Case::with(&["x", "b"], &inputs, loss, &how);
    // The gradient of x is one division; that of b is a number.
    let (_, ops) = case.backward(24);
    assert_eq!(ops.len(), 1, "{}", case.simple.program);
    assert_eq!(case.simple.program.run(&[]).unwrap()[2].item(), 6.0);
}

/// A number before an op that is linear in a number goes there.
#[test]
fn numbers_go_where_an_op_is_linear() {
    let g = &mut Generator::manual_seed(43);
    for scale in [10.0, -0.25, 1e-6] {
        let case = Case::with(
            &["x"],
            &[normal(&[6, 4], g)],
            |x| (&x[0] * scale).cross_entropy(&Tensor::arange(0, 6).remainder(4)),
            &Simplify::new().checked(3),
        );
        let (_, ops) = case.backward(24);
        assert_eq!(ops.len(), 1, "{}", case.simple.program);
    }
}
