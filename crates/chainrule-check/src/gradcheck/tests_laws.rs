//! Gradients that are right at the point alone, backward rules that are random or not linear,
//! arithmetic narrower than f64, and scales at which nothing can be said.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::autograd::{CustomContext, CustomFn, custom};
use crate::rng::Generator;

type Grads = Result<Vec<Option<Tensor>>>;

fn randn(shape: &[usize], seed: u64) -> Tensor {
    Tensor::randn(shape, DType::F64, &mut Generator::manual_seed(seed))
}

fn unary(
    forward: fn(&Tensor) -> Tensor,
    backward: impl Fn(&Tensor, &Tensor) -> Tensor + Send + Sync + 'static,
) -> CustomFn {
    custom(
        "mine",
        move |x| Ok(forward(&x[0])),
        move |ctx, g| Ok(vec![Some(backward(g, &ctx.inputs()[0]).detach())]),
    )
}

fn check(op: &CustomFn, inputs: &[Tensor]) -> GradCheck {
    let all = |x: &[Tensor]| op.apply(&x.iter().collect::<Vec<_>>());
    gradcheck(all, inputs).run().unwrap()
}

#[track_caller]
fn wrong(op: &CustomFn, inputs: &[Tensor]) -> PairCheck {
    let report = check(op, inputs);
    assert_eq!(report.judgement(), Judgement::Wrong, "{report}");
    report.failures().next().unwrap().clone()
}

#[track_caller]
fn right(op: &CustomFn, inputs: &[Tensor]) {
    let report = check(op, inputs);
    assert_eq!(report.judgement(), Judgement::Right, "{report}");
}

#[track_caller]
fn not_right(op: &CustomFn, inputs: &[Tensor]) {
    let report = check(op, inputs);
    assert_ne!(report.judgement(), Judgement::Right, "{report}");
}

fn norm(x: &Tensor) -> Tensor {
    let apart = x - x.mean(0, true);
    &apart / (apart.square().mean(0, true) + 1e-5).sqrt()
}

/// Batch norm of `x + b`, whose bias has no gradient; `db` is what the backward says.
fn normed(db: fn(&Tensor) -> Tensor) -> CustomFn {
    let backward = move |ctx: &CustomContext, g: &Tensor| -> Grads {
        let z = &ctx.inputs()[0] + &ctx.inputs()[1];
        let (dz, _) = crate::autograd::vjp(|z| norm(&z[0]), &[z], g).map(|(y, d)| (d, y))?;
        Ok(vec![Some(dz[0].clone()), Some(db(g))])
    };
    custom("batch_norm", |x| Ok(norm(&(&x[0] + &x[1]))), backward)
}

#[test]
fn a_bias_before_batch_norm_has_no_gradient_at_zero_either() {
    for b in [Tensor::zeros([3]).to_dtype(DType::F64), randn(&[3], 2), Tensor::from([1e-9; 3])] {
        let inputs = [randn(&[8, 3], 1), b];
        wrong(&normed(|g| g.sum(0, false)), &inputs);
        wrong(&normed(|g| g.sum(0, false) * 1e-3), &inputs);
        right(&normed(|g| g.sum(0, false) * 0.0), &inputs);
    }
}

#[test]
fn a_gradient_that_is_right_at_a_special_point_alone_is_wrong() {
    let (zeros, ones) = (randn(&[2, 3], 1) * 0.0, randn(&[2, 3], 1) * 0.0 + 1.0);
    // The factor cos(x) is 1 at 0, x is 1 at 1, and 3 x^2 is 3 x there.
    assert!(wrong(&unary(Tensor::sin, |g, _| g.clone()), std::slice::from_ref(&zeros)).beside);
    assert!(wrong(&unary(Tensor::square, |g, _| g * 2.0), std::slice::from_ref(&ones)).beside);
    assert!(wrong(&unary(|x| x.pow(3.0), |g, x| g * x * 3.0), &[ones]).beside);
    assert!(wrong(&unary(|x| x.cos(), |g, _| g * 0.0), std::slice::from_ref(&zeros)).beside);
    right(&unary(Tensor::sin, |g, x| g * x.cos()), std::slice::from_ref(&zeros));
    right(&unary(|x| x.cos(), |g, x| -(g * x.sin())), &[zeros]);
}

#[test]
fn a_product_with_a_symmetric_matrix_needs_its_transposition() {
    let square = randn(&[3, 3], 4);
    let symmetric = &square + square.t();
    let product = |transposed: bool| {
        custom(
            "product",
            |x| x[0].try_matmul(&x[1]),
            move |ctx, g| {
                let (a, b) = (&ctx.inputs()[0], &ctx.inputs()[1]);
                let b = if transposed { b.t() } else { b.clone() };
                Ok(vec![Some(g.try_matmul(&b)?), Some(a.t().try_matmul(g)?)])
            },
        )
    };
    for b in [symmetric, Tensor::eye(3).to_dtype(DType::F64)] {
        let inputs = [randn(&[2, 3], 5), b];
        assert!(wrong(&product(false), &inputs).beside);
        right(&product(true), &inputs);
    }
}

#[test]
fn elements_that_are_equal_hide_a_softmax_taken_as_diagonal_no_more() {
    let uniform = Tensor::from([[0.5f64; 3]; 2]);
    let f = |x: &Tensor| x.softmax(1);
    let jacobian = |g: &Tensor, x: &Tensor| {
        let y = x.softmax(1);
        &y * (g - (g * &y).sum(1, true))
    };
    // With y = 1/3 for y: right where all are equal.
    let third = |g: &Tensor, _: &Tensor| (g - g.mean(1, true)) / 3.0;
    right(&unary(f, jacobian), std::slice::from_ref(&uniform));
    assert!(wrong(&unary(f, third), &[uniform]).beside);
}

#[test]
fn a_random_backward_is_not_repeatable() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let masked = |g: &Tensor| {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let u = Tensor::rand(g.shape(), DType::F64, &mut Generator::manual_seed(call));
        g * u.ge(0.5).to_dtype(DType::F64) * 2.0
    };
    let pair = wrong(&unary(|x| x * 2.0, move |g, _| masked(g)), &[randn(&[3, 4], 1)]);
    assert_eq!(pair.law.as_ref().unwrap().law, Law::Repeat, "{pair}");
    assert!(pair.to_string().contains("the backward is random"), "{pair}");
}

#[test]
fn a_backward_that_is_not_linear_is_wrong_however_few_elements() {
    type RuleFn = fn(&Tensor) -> Tensor;
    let rules: [(&str, RuleFn); 9] = [
        ("magnitude", |g| g.abs()),
        ("positive only", |g| g.relu()),
        ("other slope below zero", |g| g.relu() - (-g).relu() * 0.5),
        ("clipped", |g| g.clamp(-4.0, 4.0)),
        ("clipped to a norm", |g| g / (g.square().sum_all().sqrt() / 9.0).clamp(1.0, 1e9)),
        ("normalised", |g| g / (g.abs().sum_all() + 1e-30)),
        ("with a constant", |g| g + 1e-4),
        ("small ones dropped", |g| g * g.abs().gt(1e-3).to_dtype(DType::F64)),
        ("largest kept", |g| g * g.abs().ge(g.abs().max_all()).to_dtype(DType::F64)),
    ];
    for shape in [&[][..], &[1], &[2], &[2, 3]] {
        for (name, rule) in rules {
            let single = shape.iter().product::<usize>() == 1;
            // One element is its own largest, and there is nothing to drop.
            if single && name == "largest kept" {
                continue;
            }
            let report = check(&unary(|x| x * 1.0, move |g, _| rule(g)), &[randn(shape, 3)]);
            let law = &report.pairs[0].law;
            assert!(law.is_some() && !report.passed(), "{name} {shape:?}: {report}");
        }
        right(&unary(|x| x * 1.0, |g, _| g.clone()), &[randn(shape, 3)]);
    }
}

/// Rounds to f32.
fn narrow(x: &Tensor) -> Tensor {
    x.to_dtype(DType::F32).to_dtype(DType::F64)
}

#[test]
fn a_right_backward_in_f32_is_right_and_a_wrong_one_wrong() {
    let tanh = |g: &Tensor, x: &Tensor| {
        let y = narrow(x).to_dtype(DType::F32).tanh();
        (g.to_dtype(DType::F32) * (1.0 - y.square())).to_dtype(DType::F64)
    };
    let x = randn(&[4, 3], 6);
    let report = check(&unary(Tensor::tanh, tanh), std::slice::from_ref(&x));
    assert!(report.passed() && report.kinks().count() == 0, "{report}");
    assert_eq!(report.pairs[0].unit, f64::from(f32::EPSILON));
    assert!(report.to_string().contains("as far as float32 can tell"), "{report}");
    wrong(&unary(Tensor::tanh, move |g, x| tanh(g, x) * 1.0001), std::slice::from_ref(&x));
    // The whole op in f32, its values too.
    let single = |x: &Tensor| x.to_dtype(DType::F32).tanh().to_dtype(DType::F64);
    let report = check(&unary(single, tanh), std::slice::from_ref(&x));
    assert_ne!(report.judgement(), Judgement::Wrong, "{report}");
    wrong(&unary(single, move |g, x| tanh(g, x) * 1.05), &[x]);
}

#[test]
fn at_enormous_scales_a_wrong_gradient_never_passes() {
    for scale in [1e-200, 1e-150, 1e-30, 1e30, 1e100] {
        let x = [randn(&[3], 7) * scale];
        not_right(&unary(Tensor::square, |g, x| g * x * 3.0), &x);
        let report = check(&unary(Tensor::square, |g, x| g * x * 2.0), &x);
        assert_ne!(report.judgement(), Judgement::Wrong, "{scale}: {report}");
    }
    // The added term drowns in the other one.
    for slope in [1.0, 3.0] {
        let op = unary(|x| x + 1e150, move |g, _| g * slope);
        let report = check(&op, &[randn(&[3], 8)]);
        assert_eq!(report.judgement(), Judgement::Uncertain, "{report}");
        assert!(!report.passed() && report.to_string().contains("UNCERTAIN"), "{report}");
    }
    right(&unary(|x| x * 1e150, |g, _| g * 1e150), &[randn(&[3], 9)]);
    wrong(&unary(|x| x * 1e150, |g, _| g * 2e150), &[randn(&[3], 9)]);
    right(&unary(|x| x * 1e-200, |g, _| g * 1e-200), &[randn(&[3], 9)]);
    wrong(&unary(|x| x * 1e-200, |g, _| g * 2e-200), &[randn(&[3], 9)]);
}

#[test]
fn a_vanished_gradient_is_not_taken_for_nothing() {
    let deep = |x: &Tensor| (0..20).fold(x.clone(), |x, _| (x * 0.1).sigmoid());
    let factor = |by: f64| {
        unary(deep, move |g, x| {
            let (_, d) = crate::autograd::vjp(|x| deep(&x[0]), &[x.detach()], g).unwrap();
            &d[0] * by
        })
    };
    not_right(&factor(-7.0), &[randn(&[4], 1)]);
    let report = check(&factor(1.0), &[randn(&[4], 1)]);
    assert_ne!(report.judgement(), Judgement::Wrong, "{report}");
    // With forward mode as a second path there is no doubt.
    let report = gradcheck(|x| deep(&x[0]), &[randn(&[4], 1)]).run().unwrap();
    assert!(report.passed(), "{report}");
}

#[test]
fn odd_shapes_and_integers_pass() {
    let tanh = || unary(Tensor::tanh, |g, x| g * (1.0 - x.tanh().square()));
    for shape in [&[][..], &[0], &[1], &[1, 1], &[2, 0, 3]] {
        right(&tanh(), &[randn(shape, 2)]);
    }
    right(&tanh(), &[randn(&[3], 2).to_dtype(DType::F32)]);
    let rows = custom(
        "rows",
        |x| x[0].try_index_select(0, &x[1]),
        |ctx, g| {
            let (w, rows) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            Ok(vec![Some(w.zeros_like().try_index_add(0, rows, g)?), None])
        },
    );
    right(&rows, &[randn(&[4, 2], 3), Tensor::from([0i64, 2, 2])]);
}

#[test]
fn bounds_that_no_input_reaches() {
    let x = randn(&[5], 11);
    let clamped = |bound: f64| {
        unary(
            |x| x.clamp(-2.5, 6.0),
            move |g, x| g * (x.gt(-2.5).to_dtype(DType::F64) * x.lt(bound).to_dtype(DType::F64)),
        )
    };
    right(&clamped(6.0), std::slice::from_ref(&x));
    let found = wrong(&clamped(1e9), &[x]);
    assert!(found.far && found.to_string().contains("several times their size"), "{found}");
}

#[test]
fn outputs_whose_gradients_meet() {
    let rule = |by: f64| {
        custom(
            "two",
            |x| Ok(x[0].sin()),
            move |ctx, g| {
                let n = g.shape()[0] / 2;
                let (a, b) = (g.narrow(0, 0, n), g.narrow(0, n, n));
                let both = Tensor::cat(&[&(&a * &b), &(&a * 0.0)], 0);
                Ok(vec![Some((g * ctx.inputs()[0].cos() + both * by).detach())])
            },
        )
    };
    let split = |op: CustomFn| {
        move |x: &[Tensor]| {
            let y = op.apply(&[&x[0]]).unwrap();
            (y.narrow(0, 0, 2), y.narrow(0, 2, 2))
        }
    };
    let x = [randn(&[4], 12)];
    let run = |by| gradcheck(split(rule(by)), &x).run().unwrap();
    assert_eq!(run(0.0).judgement(), Judgement::Right);
    let report = run(1e-3);
    assert_eq!(report.judgement(), Judgement::Wrong, "{report}");
    assert!(report.to_string().contains("of the outputs, each by itself"), "{report}");
}
