//! Behaviour of the tape. Expected values are worked out by hand, or are those of micrograd's
//! README.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::{enable_grad, is_grad_enabled, no_grad, record_all};

fn scalar(x: f64) -> Tensor {
    Tensor::scalar(x).parameter()
}

fn gradient(t: &Tensor) -> Vec<f64> {
    t.grad().expect("a gradient").to_f64_vec()
}

fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
    }
}

fn error_of(result: Result<()>) -> String {
    result.expect_err("an error").to_string()
}

// Accumulation

#[test]
fn the_first_examples_of_the_tutorials() {
    let x = scalar(2.0);
    (&x * &x * 3.0).backward();
    assert_eq!(gradient(&x), [12.0]);
    let x = scalar(3.0);
    (&x + &x).backward();
    assert_eq!(gradient(&x), [2.0]);
}

#[test]
fn the_expression_of_micrograds_readme() {
    let (a, b) = (scalar(-4.0), scalar(2.0));
    let mut c = &a + &b;
    let mut d = &a * &b + b.pow(3);
    c = &c + (&c + 1.0);
    c = &c + (1.0 + &c + (-&a));
    d = &d + (&d * 2.0 + (&b + &a).relu());
    d = &d + (3.0 * &d + (&b - &a).relu());
    let e = c - d;
    let f = e.pow(2);
    let g = &f / 2.0 + 10.0 / &f;
    g.backward();
    let four = |x: f64| format!("{x:.4}");
    assert_eq!(four(g.item()), "24.7041");
    assert_eq!(four(gradient(&a)[0]), "138.8338");
    assert_eq!(four(gradient(&b)[0]), "645.5773");
}

#[test]
fn gradients_accumulate_until_zeroed() {
    let x = scalar(3.0);
    (&x * &x).backward();
    (&x * &x).backward();
    assert_eq!(gradient(&x), [12.0]);
    x.zero_grad();
    assert!(x.grad().is_none());
    (&x * &x).backward();
    assert_eq!(gradient(&x), [6.0]);
    // A gradient taken out before is not changed by later additions.
    let before = x.grad().unwrap();
    (&x * 1.0).backward();
    assert_eq!((before.item(), gradient(&x)[0]), (6.0, 7.0));
}

#[test]
fn one_operand_twice_and_several_paths() {
    let x = scalar(3.0);
    (&x * &x * &x).backward();
    assert_eq!(gradient(&x), [27.0]);
    // y = (x + 2x) * tanh(x) + x at 0: dy = 3 tanh(0) + 3x (1 - tanh(0)^2) + 1 = 1.
    let x = scalar(0.0);
    ((&x + &x * 2.0) * x.tanh() + &x).backward();
    assert_eq!(gradient(&x), [1.0]);
    let m = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]).parameter();
    m.matmul(&m).sum_all().backward();
    // d sum(M M) / dM_ij = sum of row j + sum of column i.
    assert_eq!(gradient(&m), [3.0 + 4.0, 7.0 + 4.0, 3.0 + 6.0, 7.0 + 6.0]);
}

#[test]
fn no_gradient_is_not_zero() {
    let (x, y) = (scalar(1.0), scalar(2.0));
    (&x * 0.0).backward();
    assert_eq!(gradient(&x), [0.0]);
    assert!(y.grad().is_none());
    let why = y.try_grad().unwrap_err().to_string();
    assert!(why.contains("backward has not reached this leaf"), "{why}");
    let why = (&x * 2.0).try_grad().unwrap_err().to_string();
    assert!(why.contains("retain_grad()"), "{why}");
    let why = x.detach().try_grad().unwrap_err().to_string();
    assert!(why.contains("detached"), "{why}");
    // Forward mode and `grad` agree: None where nothing flows.
    let grads = grad(&(&x * 3.0), &[&x, &y]).unwrap();
    assert_eq!(grads[0].as_ref().unwrap().item(), 3.0);
    assert!(grads[1].is_none());
}

// Kept gradients

#[test]
fn intermediates_keep_a_gradient_if_asked() {
    let x = scalar(2.0);
    let a = (&x * 3.0).retain_grad();
    let b = &a * &a;
    b.backward();
    assert_eq!(gradient(&a), [12.0]);
    assert!(b.grad().is_none());
    assert_eq!(gradient(&x), [36.0]);
}

#[test]
fn record_all_keeps_everything() {
    let x = scalar(2.0);
    let (a, b) = record_all(|| {
        let a = &x * 3.0;
        let b = &a * &a;
        (a, b)
    });
    let c = &b * 2.0;
    c.backward();
    assert_eq!((gradient(&a), gradient(&b)), (vec![24.0], vec![2.0]));
    assert!(c.grad().is_none());
}

#[test]
fn detach_and_no_grad_cut_the_tape() {
    let x = scalar(3.0);
    (&x * x.detach()).backward();
    assert_eq!(gradient(&x), [3.0]);
    let constant = no_grad(|| {
        assert!(!is_grad_enabled());
        let inside = enable_grad(|| &x * 2.0);
        assert!(inside.requires_grad());
        &x * 2.0
    });
    assert!(is_grad_enabled() && !constant.requires_grad());
    let why = error_of(constant.try_backward());
    assert!(why.contains("parameter()") && why.contains("no_grad"), "{why}");
    // A panic inside leaves the mode as it was.
    let caught = std::panic::catch_unwind(|| no_grad(|| panic!("on purpose")));
    assert!(caught.is_err() && is_grad_enabled());
}

#[test]
fn a_frozen_leaf_gets_no_gradient() {
    let (x, y) = (scalar(3.0), scalar(4.0));
    x.set_requires_grad(false).unwrap();
    (&x * &y).backward();
    assert!(x.grad().is_none());
    assert_eq!(gradient(&y), [3.0]);
}

// Starting a walk

#[test]
fn more_than_one_element_needs_an_upstream_gradient() {
    let x = Tensor::from([1.0f64, 2.0, 3.0]).parameter();
    let y = &x * &x;
    let why = error_of(y.try_backward());
    assert!(why.starts_with("backward: shape [3]: without an upstream gradient"), "{why}");
    assert!(why.contains("backward_with().gradient(&g).run()"), "{why}");
    let wrong = Tensor::from([1.0f64, 2.0]);
    let why = error_of(y.backward_with().gradient(&wrong).run());
    assert!(why.contains("shapes [3] and [2]"), "{why}");
    let other = Tensor::from([1.0f32, 2.0, 3.0]);
    let why = error_of(y.backward_with().gradient(&other).run());
    assert!(why.contains("f64") && why.contains("f32"), "{why}");
    let g = Tensor::from([1.0f64, 10.0, 0.0]);
    y.backward_with().gradient(&g).run().unwrap();
    assert_eq!(gradient(&x), [2.0, 40.0, 0.0]);
}

#[test]
fn the_graph_is_freed_unless_kept() {
    let x = scalar(3.0);
    let y = &x * &x;
    y.backward_with().keep_graph().run().unwrap();
    y.backward();
    assert_eq!(gradient(&x), [12.0]);
    let why = error_of(y.try_backward());
    assert!(why.starts_with("mul: its saved values were freed by an earlier backward"), "{why}");
    assert!(why.contains("keep_graph") && why.contains("tests.rs:"), "{why}");
    assert_eq!(gradient(&x), [12.0]);
}

#[test]
fn a_leaf_is_its_own_gradient() {
    let x = scalar(3.0);
    x.backward();
    assert_eq!(gradient(&x), [1.0]);
}

// Hooks

#[test]
fn a_hook_sees_the_whole_gradient_once() {
    let x = scalar(3.0);
    let y = &x * 2.0;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let hook = y.register_hook(move |g| {
        count.fetch_add(1, Ordering::Relaxed);
        // Two uses, of which each sends a part: 1 + 1.
        assert_eq!(g.item(), 2.0);
        Some(g * 10.0)
    });
    let z = &y + &y;
    z.backward_with().keep_graph().run().unwrap();
    assert_eq!(gradient(&x), [40.0]);
    hook.unwrap().remove();
    x.zero_grad();
    z.backward();
    assert_eq!((gradient(&x), calls.load(Ordering::Relaxed)), (vec![4.0], 1));
}

#[test]
fn what_hooks_hold_is_seen_by_the_sole_owner() {
    fn count(t: &Tensor) -> usize {
        let mut seen = 0;
        t.visit_held(&mut |_| seen += 1);
        seen
    }
    let x = Tensor::scalar(1.0f64).parameter();
    let handle = x.register_hook_holding(|_| None, Arc::new(1u8)).unwrap();
    // The handle that removes the hook has the leaf, too.
    assert_eq!(count(&x), 0);
    drop(handle);
    assert_eq!(count(&x), 1);
    let y = (&x * 2.0).exp();
    y.register_hook_holding(|_| None, Arc::new(2u8)).unwrap();
    assert_eq!((count(&x), count(&y)), (0, 1));
    drop(x);
    assert_eq!(count(&y), 2);
    let other = y.clone();
    assert_eq!(count(&y), 0);
    drop(other);
    assert_eq!(count(&y), 2);
}

#[test]
fn hooks_on_leaves_and_their_errors() {
    let x = Tensor::from([1.0f64, 2.0]).parameter();
    let _first = x.register_hook(|g| Some(g * 3.0)).unwrap();
    let _second = x.register_hook(|g| Some(g + 1.0)).unwrap();
    let _third = x.register_hook(|_| None).unwrap();
    (&x * 2.0).sum_all().backward();
    assert_eq!(gradient(&x), [7.0, 7.0]);
    let bad = x.register_hook(|g| Some(g.sum_all())).unwrap();
    let why = error_of((&x * 2.0).sum_all().try_backward());
    assert!(why.contains("a hook must return a gradient of the same shape"), "{why}");
    bad.remove();
    assert!(Tensor::scalar(1.0f64).register_hook(|_| None).is_err());
}

// Higher orders

#[test]
fn create_graph_gives_second_and_third_derivatives() {
    let x = scalar(2.0);
    let y = &x * &x * &x * &x;
    y.backward_with().create_graph().run().unwrap();
    let first = x.grad().unwrap();
    assert_eq!(first.item(), 32.0);
    x.zero_grad();
    first.backward_with().create_graph().run().unwrap();
    let second = x.grad().unwrap();
    assert_eq!(second.item(), 48.0);
    x.zero_grad();
    second.backward();
    assert_eq!(gradient(&x), [48.0]);
    x.zero_grad();
}

#[test]
fn gradients_of_gradients_of_tanh() {
    let x = scalar(0.7);
    let t = 0.7f64.tanh();
    let s = 1.0 - t * t;
    let mut y = x.tanh();
    let expected = [s, -2.0 * t * s, -2.0 * s * s + 4.0 * t * t * s];
    for derivative in expected {
        y = grad_with(&y, &[&x], &GradOptions::create_graph()).unwrap().remove(0).unwrap();
        assert_close(&[y.item()], &[derivative], 1e-14);
    }
    assert!(x.grad().is_none());
}

#[test]
fn derivatives_as_functions() {
    // f(x, y) = x^2 y at (3, 4).
    let (x, y) = (Tensor::scalar(3.0f64), Tensor::scalar(4.0f64));
    let f = |p: &[Tensor]| &p[0] * &p[0] * &p[1];
    let (value, grads) = value_and_grad(f, &[x.clone(), y.clone()]).unwrap();
    assert_eq!((value.item(), grads[0].item(), grads[1].item()), (36.0, 24.0, 9.0));
    let (value, back) = vjp(f, &[x.clone(), y.clone()], &Tensor::scalar(2.0f64)).unwrap();
    assert_eq!((value.item(), back[0].item(), back[1].item()), (36.0, 48.0, 18.0));
    let (value, slope) =
        jvp(f, &[x.clone(), y], &[Tensor::scalar(1.0f64), Tensor::scalar(10.0f64)]).unwrap();
    assert_eq!((value.item(), slope.item()), (36.0, 24.0 + 90.0));
    // An input that is not used gets zeros.
    let (_, grads) = value_and_grad(|p| &p[0] * 2.0, &[x.clone(), x]).unwrap();
    assert_eq!((grads[0].item(), grads[1].item()), (2.0, 0.0));
}

#[test]
fn jacobians_and_hessians() {
    // f(x) = (x0 x1, x1^2): J = [[x1, x0], [0, 2 x1]].
    let m = Tensor::from([[0.0f64, 1.0], [0.0, 0.0]]);
    let x = Tensor::from([3.0f64, 5.0]);
    let one = Tensor::from([0.0f64, 1.0]);
    let f = |x: &Tensor| {
        let x0 = m.t().matmul(&x.reshape([2, 1])).reshape([2]).sum_all();
        let x1 = (x * &one).sum_all();
        Tensor::try_stack(&[&(&x0 * &x1), &(&x1 * &x1)], 0).unwrap()
    };
    let j = jacobian(f, &x).unwrap();
    assert_eq!(j.shape(), [2, 2]);
    assert_eq!(j.to_vec::<f64>(), [5.0, 3.0, 0.0, 10.0]);
    // sum(x)^3: every second derivative is 6 sum(x).
    let cube = |x: &Tensor| {
        let s = x.sum_all();
        &s * &s * &s
    };
    let h = hessian(cube, &x).unwrap();
    assert_eq!(h.to_vec::<f64>(), [48.0; 4]);
    let v = Tensor::from([1.0f64, -3.0]);
    assert_eq!(hvp(cube, &x, &v).unwrap().to_vec::<f64>(), [-96.0; 2]);
}

#[test]
fn a_hessian_times_a_vector_is_the_same_by_both_ways() {
    let x = Tensor::from([[0.5f64, -1.0, 0.25], [0.75, 2.0, -0.125]]);
    let v = Tensor::from([[1.0f64, 0.5, -2.0], [3.0, -1.0, 0.25]]);
    let f = |x: &Tensor| (x.matmul(&x.t()).tanh() * 2.0).exp().sum_all();
    let h = hessian(f, &x).unwrap().reshape([6, 6]);
    let expected = h.matmul(&v.reshape([6, 1])).to_vec::<f64>();
    assert_close(&hvp(f, &x, &v).unwrap().to_vec::<f64>(), &expected, 1e-12);
    // A Hessian is symmetric.
    assert_close(&h.t().to_vec::<f64>(), &h.to_vec::<f64>(), 1e-12);
}

// Large graphs

#[test]
fn a_deep_diamond_takes_linear_time() {
    let x = scalar(1.0);
    let mut y = x.clone();
    for _ in 0..60 {
        y = &y + &y;
    }
    // 2^60 paths; a walk along each of them would not end.
    let steps = y.trace().steps().len();
    assert_eq!(steps, 61);
    y.backward();
    assert_eq!(gradient(&x), [2f64.powi(60)]);
}

#[test]
fn a_million_ops_on_a_small_stack() {
    let run = || {
        let x = scalar(1.0);
        let mut y = &x * 1.0;
        for _ in 0..1_000_000 {
            y = y + &x;
        }
        y.backward();
        assert_eq!(gradient(&x), [1_000_001.0]);
        drop(y);
        // And one that is dropped without having been walked.
        let mut y = x.tanh();
        for _ in 0..1_000_000 {
            y = -y;
        }
        assert!(y.requires_grad());
    };
    let small = thread::Builder::new().stack_size(128 << 10);
    small.spawn(run).unwrap().join().unwrap();
}

#[test]
fn threads_build_graphs_side_by_side() {
    let shared = scalar(2.0);
    let work = |factor: f64| {
        let shared = shared.clone();
        move || {
            let own = scalar(factor);
            for _ in 0..1000 {
                // One thread's no_grad is not another's.
                let constant = no_grad(|| &own * 1.0);
                let y = &own * &shared * &constant;
                let g = grad(&y, &[&own, &shared]).unwrap();
                let of = |i: usize| g[i].as_ref().unwrap().item();
                assert_eq!((of(0), of(1)), (2.0 * factor, factor * factor));
            }
            (&own * &shared).backward();
            assert_eq!(gradient(&own), [2.0]);
        }
    };
    let threads = [thread::spawn(work(3.0)), thread::spawn(work(5.0))];
    threads.into_iter().for_each(|t| t.join().unwrap());
    // Both added theirs to the leaf that they share.
    assert_eq!(gradient(&shared), [8.0]);
}

// Leaves that change

#[test]
fn saved_values_outlive_a_change_of_the_leaf() {
    let x = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]).parameter();
    let view = x.t();
    let y = (&view * &view).sum_all();
    x.set(&Tensor::from([[10.0f64, 20.0], [30.0, 40.0]]));
    assert_eq!(view.to_vec::<f64>(), [1.0, 3.0, 2.0, 4.0]);
    x.hold("test").unwrap().elements::<f64>().fill(-1.0);
    y.backward();
    assert_eq!(gradient(&x), [2.0, 4.0, 6.0, 8.0]);
    // Ops from now on see the new value.
    x.zero_grad();
    (&x * &x).sum_all().backward();
    assert_eq!(gradient(&x), [-2.0; 4]);
}

#[test]
fn an_update_in_place_does_not_reach_a_view() {
    let x = Tensor::from([1.0f64, 2.0]).parameter();
    let y = x.reshape([2, 1]);
    x.hold("test").unwrap().elements::<f64>().fill(0.0);
    assert_eq!(y.to_vec::<f64>(), [1.0, 2.0]);
    assert_eq!(x.to_vec::<f64>(), [0.0, 0.0]);
}

#[test]
fn forward_mode_keeps_what_the_function_captured() {
    let (w, x, one) = (scalar(2.0), [Tensor::scalar(3.0)], [Tensor::scalar(1.0)]);
    let along = || jvp(|x| &w * &x[0] * &x[0], &x, &one).unwrap();
    let (y, dy) = along();
    dy.backward();
    // The derivative of 2 w x by w.
    assert_eq!((y.item(), gradient(&w)), (18.0, vec![6.0]));
    assert!(!no_grad(along).1.requires_grad());
    let (_, dy) = jvp(|x| &x[0] * &x[0], &x, &one).unwrap();
    assert!(!dy.requires_grad());
}

#[test]
fn a_gradient_that_is_nan_is_an_error_where_it_is_looked_for() {
    let w = scalar(0.0);
    let of = || w.sqrt() * 0.0;
    let before = crate::tensor::foreign::set_check_nan(true);
    let error = of().try_backward().unwrap_err().to_string();
    (&w * 2.0).backward();
    crate::tensor::foreign::set_check_nan(before);
    assert!(error.contains("sqrt") && error.contains("nan"), "{error}");
    assert_eq!(gradient(&w), [2.0]);
    of().backward();
    assert!(gradient(&w)[0].is_nan());
}
