//! The checks themselves: that they agree with calculus, and that they can fail.

use super::*;
use crate::autograd::{grad, value_and_grad};

/// `x^2`, whose reverse pass is spoilt by a hook on the way.
fn spoilt(x: &Tensor, spoil: fn(&Tensor) -> Tensor) -> Tensor {
    let inner = x * 1.0;
    if inner.requires_grad() {
        inner.register_hook(move |g| Some(spoil(g))).unwrap();
    }
    &inner * &inner
}

fn points() -> Tensor {
    Tensor::from([[0.5f64, -1.25, 2.0], [3.0, 0.125, -0.75]])
}

#[test]
fn differences_agree_with_calculus() {
    let (x, u) = (Tensor::from([0.7f64, -2.0, 11.0]), Tensor::from([1.0f64, 0.5, -0.25]));
    let found = richardson(|x| x[0].tanh() + (&x[0] * 0.5).exp(), &[x], &[u]).unwrap();
    let slope = |x: f64| 1.0 / x.cosh().powi(2) + 0.5 * (0.5 * x).exp();
    let want = [slope(0.7), slope(-2.0) * 0.5, slope(11.0) * -0.25];
    for (i, want) in want.iter().enumerate() {
        let (got, error) = (found.value.at::<f64>(&[i]), found.error.at::<f64>(&[i]));
        assert!((got - want).abs() <= 1e-10 * want.abs(), "{got} for {want}");
        assert!((got - want).abs() <= error && error < 1e-8 * want.abs(), "{error}");
    }
    assert_eq!(found.kinks, [] as [usize; 0]);
}

#[test]
fn differences_see_kinks_at_the_point_and_beside_it() {
    // |x| as a function that no tape knows.
    let f = |x: &[Tensor]| {
        Tensor::from(x[0].to_f64_vec().into_iter().map(f64::abs).collect::<Vec<_>>())
    };
    let x = Tensor::from([0.0f64, 1.0, -1.0, 1e-4]);
    let u = Tensor::from([1.0f64, 1.0, 1.0, 1.0]);
    let found = richardson(f, &[x], &[u]).unwrap();
    assert_eq!(found.kinks, [0, 3]);
    assert!((found.value.at::<f64>(&[1]) - 1.0).abs() < 1e-11);
    assert!((found.value.at::<f64>(&[2]) + 1.0).abs() < 1e-11);
    // A jump, and the edge of a domain.
    let step = |x: &[Tensor]| Tensor::scalar(x[0].item().floor());
    let root = |x: &[Tensor]| Tensor::scalar(x[0].item().sqrt());
    let one = [Tensor::scalar(1.0f64)];
    assert_eq!(richardson(step, &[Tensor::scalar(2.0f64)], &one).unwrap().kinks, [0]);
    assert_eq!(richardson(root, &[Tensor::scalar(0.0f64)], &one).unwrap().kinks, [0]);
}

#[test]
fn right_gradients_pass() {
    let report = gradcheck(|x| spoilt(&x[0], Tensor::clone), &[points()]).run().unwrap();
    assert!(report.passed(), "{report}");
    let mut generator = Generator::manual_seed(5);
    let test = dot_product(|x| spoilt(&x[0], Tensor::clone), &[points()], &mut generator).unwrap();
    assert!(test.error() < 1e-14, "{test:?}");
}

#[test]
fn wrong_gradients_fail() {
    type Spoil = (&'static str, fn(&Tensor) -> Tensor);
    let spoils: [Spoil; 5] = [
        ("sign", |g| g * -1.0),
        ("factor", |g| g * (1.0 + 1e-6)),
        ("all zeros", |g| g * 0.0),
        ("NaN", |g| g * f64::NAN),
        ("one element", |g| {
            let mut all = g.to_f64_vec();
            all[4] *= 1.0 + 1e-6;
            Tensor::from_slice(&all, g.shape())
        }),
    ];
    for (name, spoil) in spoils {
        let f = move |x: &[Tensor]| spoilt(&x[0], spoil);
        let report = gradcheck(f, &[points()]).run().unwrap();
        assert!(!report.passed(), "{name}: {report}");
        let test = dot_product(f, &[points()], &mut Generator::manual_seed(5)).unwrap();
        let passes = test.error() < 1e-9;
        assert!(!passes, "{name}: {test:?}");
    }
    let f = |x: &[Tensor]| spoilt(&x[0], |g| &g.ones_like() * 3.0 + g);
    let report = gradcheck(f, &[points()]).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
}

#[test]
fn the_worst_element_is_named() {
    let f = |x: &[Tensor]| {
        spoilt(&x[0], |g| {
            let mut all = g.to_f64_vec();
            all[5] *= 2.0;
            Tensor::from_slice(&all, g.shape())
        })
    };
    let report = gradcheck(f, &[points()]).run().unwrap();
    let worst = report.pairs[0].worst.as_ref().unwrap();
    let forward = worst.forward.unwrap();
    assert_eq!(
        (report.pairs[0].input, worst.index.as_slice()),
        (Slot::Input(0), [1, 2].as_slice())
    );
    assert!((worst.error - 0.5).abs() < 1e-12 && (worst.reverse - 2.0 * forward).abs() < 1e-12);
    assert!((worst.difference - forward).abs() < 1e-8, "{report}");
}

#[test]
fn a_kink_is_told_apart_from_a_failure() {
    // |x| by its own sign: smooth for the tape, not for the differences.
    let f = |x: &[Tensor]| {
        let sign = x[0].ge(0.0).to_dtype(DType::F64) * 2.0 - 1.0;
        &x[0] * sign
    };
    let report = gradcheck(f, &[Tensor::from([0.0f64, 1.0])]).run().unwrap();
    assert!(report.passed() && report.pairs[0].outcome == Outcome::Kink, "{report}");
}

#[test]
fn second_derivatives_can_be_checked_too() {
    let slope = |x: &[Tensor]| {
        let (_, grads) = value_and_grad(|x| (&x[0] * &x[0]).tanh().sum_all(), x).unwrap();
        grads[0].clone()
    };
    let report = gradcheck(slope, &[points()]).run().unwrap();
    assert!(report.passed(), "{report}");
    // And it is the second derivative: d/dx 2x sech(x^2)^2 at 0 is 2.
    let x = Tensor::from([0.0f64]).parameter();
    let d = grad(&slope(std::slice::from_ref(&x)).sum_all(), &[&x]).unwrap();
    assert_eq!(d[0].as_ref().unwrap().item(), 2.0);
}

#[test]
fn empty_and_0d_inputs_pass() {
    let inputs = [Tensor::full([0, 3], 0.0, DType::F64), Tensor::scalar(0.5f64)];
    let report = gradcheck(|x| &x[0] * &x[1] + x[1].tanh(), &inputs).run().unwrap();
    assert!(report.passed(), "{report}");
    let scalar = gradcheck(|x| x[0].tanh(), &[Tensor::scalar(0.5f64)]).run().unwrap();
    assert!(scalar.passed(), "{scalar}");
}

#[test]
fn other_dtypes_and_shapes_are_errors() {
    let x = Tensor::from([1.0f32]);
    assert!(dot_product(|x| x[0].clone(), &[x], &mut Generator::manual_seed(0)).is_err());
    let (x, u) = (Tensor::from([1.0f64]), Tensor::from([1.0f64, 2.0]));
    assert!(richardson(|x| x[0].clone(), &[x], &[u]).is_err());
}

#[test]
fn what_is_wrong_with_the_function_is_reported_as_that() {
    let calls = std::cell::Cell::new(0.0);
    let random = |x: &[Tensor]| {
        calls.set(calls.get() + 1.0);
        &x[0] * calls.get()
    };
    let report = gradcheck(random, &[points()]).run().unwrap();
    assert!(matches!(report.problems[0], Problem::NotDeterministic { .. }) && !report.passed());
    let meddling = |x: &[Tensor]| {
        if x[0].requires_grad() {
            x[0].set(&x[0].zeros_like());
        }
        &x[0] * 2.0
    };
    let report = gradcheck(meddling, &[points()]).run().unwrap();
    assert_eq!(report.problems[0], Problem::InputChanged { input: 0 }, "{report}");
    let report = gradcheck(|x| x[0].log() * 2.0, &[points()]).run().unwrap();
    let Problem::NotFinite { op: Some((op, _)), .. } = &report.problems[0] else {
        panic!("{report}")
    };
    assert_eq!(*op, "log");
    let report = gradcheck(|x| &x[0].detach() * &x[0].detach(), &[points()]).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::CutOff, "{report}");
    let report = gradcheck(|x| x[0].tanh(), &[points(), points()]).run().unwrap();
    assert!(report.passed() && report.pairs[1].outcome == Outcome::Independent, "{report}");
}

/// `x` in another order, whose backward puts the gradients in a wrong one.
#[test]
fn a_wrong_permutation_of_eight_thousand_is_caught() {
    let n = 8000;
    let order = Tensor::from(Generator::manual_seed(3).randperm(n));
    let (forward, backward) = (order.clone(), order);
    let op = crate::autograd::custom(
        "permuted",
        move |x| x[0].try_index_select(0, &forward),
        move |_, g| Ok(vec![Some(g.try_index_select(0, &backward)?)]),
    );
    let x = Tensor::randn([n], DType::F64, &mut Generator::manual_seed(4));
    let report = gradcheck(|x| op.apply(&[&x[0]]), &[x]).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
}

#[test]
fn a_jacobian_of_zeros_with_ten_thousand_outputs_is_caught() {
    let x = Tensor::randn([10_000], DType::F64, &mut Generator::manual_seed(4));
    let report = gradcheck(|x| spoilt(&x[0], |g| g * 0.0), &[x]).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
}

#[test]
fn one_wrong_element_of_a_million_is_caught_and_named() {
    let f = |x: &[Tensor]| {
        spoilt(&x[0], |g| {
            let mut all = g.to_f64_vec();
            all[765_432] *= 1.5;
            Tensor::from_slice(&all, g.shape())
        })
    };
    let x = Tensor::randn([1000, 1000], DType::F64, &mut Generator::manual_seed(4));
    let report = gradcheck(f, &[x]).seeds(1).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
    assert_eq!(report.pairs[0].worst.as_ref().unwrap().index, [765, 432]);
}
