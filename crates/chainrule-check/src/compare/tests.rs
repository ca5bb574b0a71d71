//! Tests: a right backward pass passes, each planted mistake is found at its place, and nothing a
//! user gives panics.

use super::*;
use chainrule_core::{Generator, no_grad};

/// `loss = sum(tanh(x W + b)^2 c)`, with all its gradients right.
struct Small {
    x: Tensor,
    w: Tensor,
    b: Tensor,
    z: Tensor,
    h: Tensor,
    s: Tensor,
    loss: Tensor,
}

impl Small {
    fn new(dtype: DType, seed: u64) -> Small {
        let g = &mut Generator::manual_seed(seed);
        let mut normal = |shape: &[usize]| Tensor::randn(shape, DType::F64, g).to_dtype(dtype);
        let x = normal(&[4, 3]).parameter().named("x");
        let w = normal(&[3, 5]).parameter().named("w");
        let b = normal(&[5]).parameter().named("b");
        let z = (x.matmul(&w) + &b).named("z");
        let h = z.tanh().named("h");
        let s = h.square().named("s");
        let loss = s.sum_all();
        Small { x, w, b, z, h, s, loss }
    }

    /// By hand, in the order of the backward pass.
    fn gradients(&self) -> Vec<(&'static str, Tensor)> {
        no_grad(|| {
            let ds = self.s.ones_like();
            let dh = 2.0 * &self.h * &ds;
            self.below(ds, dh.clone(), &dh * (1.0 - self.h.square()))
        })
    }

    fn below(&self, ds: Tensor, dh: Tensor, dz: Tensor) -> Vec<(&'static str, Tensor)> {
        let (dw, dx) = (self.x.t().matmul(&dz), dz.matmul(&self.w.t()));
        vec![("s", ds), ("h", dh), ("z", dz.clone()), ("b", dz.sum(0, false)), ("w", dw), ("x", dx)]
            .into_iter()
            .map(|(name, g)| (name, g.detach()))
            .collect()
    }
}

fn standings(report: &Comparison) -> Vec<(&str, &Standing)> {
    report.rows.iter().map(|row| (row.name.as_str(), &row.standing)).collect()
}

fn from(names: &[&str]) -> Standing {
    Standing::Consequence(names.iter().map(|n| n.to_string()).collect())
}

#[test]
fn right_gradients_pass_in_any_order_and_come_in_that_of_the_backward_pass() {
    for (seed, dtype) in (0..20).flat_map(|seed| [(seed, DType::F32), (seed, DType::F64)]) {
        let small = Small::new(dtype, seed);
        let mut claims = small.gradients();
        claims.rotate_left(seed as usize % 6);
        let report = compare(&small.loss, &claims).unwrap();
        assert!(report.passed(), "{report}");
        assert!(report.first_wrong().is_none() && report.mistakes().count() == 0);
        let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["s", "h", "z", "b", "w", "x"]);
        assert!(report.rows[0].outcome.as_ref().unwrap().exact);
    }
    // Neither gradients nor the graph were touched.
    let small = Small::new(DType::F64, 1);
    compare(&small.loss, small.gradients()).unwrap();
    assert!(small.w.grad().is_none() && small.h.grad().is_none());
    small.loss.backward();
    let dw = small.gradients().remove(4).1;
    assert!(
        Discrepancy::between(&small.w.grad().unwrap(), &dw, Tolerance::default())
            .unwrap()
            .approximate
    );
}

#[test]
fn the_first_wrong_one_is_told_from_its_consequences() {
    for (seed, dtype) in (0..10).flat_map(|seed| [(seed, DType::F32), (seed, DType::F64)]) {
        let small = Small::new(dtype, seed);
        // The derivative of tanh taken with h for h^2, and all below computed from that.
        let claims = no_grad(|| {
            let (ds, dh) = (small.s.ones_like(), 2.0 * &small.h);
            small.below(ds, dh.clone(), &dh * (1.0 - &small.h))
        });
        let report = compare(&small.loss, &claims).unwrap();
        let (right, first, of) = (Standing::Right, Standing::First, from(&["z"]));
        let want =
            [("s", &right), ("h", &right), ("z", &first), ("b", &of), ("w", &of), ("x", &of)];
        assert_eq!(standings(&report), want, "{report}");
        let row = report.first_wrong().unwrap();
        assert_eq!((row.name.as_str(), row.made_from.as_slice()), ("z", &["h".to_string()][..]));
        assert_eq!(row.uses[0].op, "tanh");
        assert!(row.uses[0].location.file().ends_with("tests.rs"));
        let found = row.outcome.as_ref().unwrap();
        assert!((found.by_hand - found.autograd).abs() == found.largest && found.largest > 1e-3);
        assert_eq!(found.by_hand, claims[2].1.to_dtype(DType::F64).at::<f64>(&found.at));
    }
}

#[test]
fn a_second_mistake_below_the_first_is_not_hidden_by_it() {
    let small = Small::new(DType::F64, 3);
    let mut claims = no_grad(|| {
        let (ds, dh) = (small.s.ones_like(), 3.0 * &small.h);
        small.below(ds, dh.clone(), &dh * (1.0 - small.h.square()))
    });
    claims[4].1 = 0.5 * &claims[4].1;
    let report = compare(&small.loss, &claims).unwrap();
    let of = from(&["h"]);
    let want = [
        ("s", &Standing::Right),
        ("h", &Standing::First),
        ("z", &of),
        ("b", &of),
        ("w", &Standing::AlsoWrong),
        ("x", &of),
    ];
    assert_eq!(standings(&report), want, "{report}");
}

#[test]
fn wrong_ones_on_separate_branches_are_both_first() {
    let a = Tensor::from([1.0f64, 2.0]).parameter();
    let b = Tensor::from([3.0f64, -1.0]).parameter();
    let (left, right) = (a.exp(), b.square());
    let loss = (&left + &right).sum_all();
    let claims = [
        ("left", &left, Tensor::from([2.0, 2.0])),
        ("right", &right, Tensor::from([1.0, 0.0])),
        ("a", &a, 2.0 * left.detach()),
        ("b", &b, 2.0 * b.detach() * Tensor::from([1.0, 0.0])),
    ];
    let report = compare(&loss, &claims).unwrap();
    let want = [
        ("right", &Standing::First),
        ("b", &from(&["right"])),
        ("left", &Standing::First),
        ("a", &from(&["left"])),
    ];
    assert_eq!(standings(&report), want, "{report}");
    assert_eq!(report.mistakes().count(), 2);
}

#[test]
fn only_what_is_named_is_compared_and_gaps_are_bridged() {
    let small = Small::new(DType::F64, 5);
    let claims = small.gradients();
    let wrong = 1.5 * &claims[1].1;
    let half = claims[5].1.clone() * 1.5;
    let report = compare(&small.loss, [("x", &half), ("h", &wrong)]).unwrap();
    assert_eq!(standings(&report), [("h", &Standing::First), ("x", &from(&["h"]))]);
    assert_eq!(report.rows[1].made_from, ["h"]);
}

#[test]
fn what_cannot_be_compared_is_a_row_that_says_why() {
    let small = Small::new(DType::F64, 5);
    let g = small.gradients();
    let ones = Tensor::ones([4, 5]);
    let elsewhere = Tensor::scalar(1.0).parameter();
    let claims: Vec<ByHand> = vec![
        ("nobody", &ones).into(),
        ("cut", &small.h.detach(), &ones).into(),
        ("elsewhere", &elsewhere, Tensor::scalar(1.0)).into(),
        ("b", &small.b, &g[2].1).into(),
        ("w", &small.w, g[4].1.t()).into(),
        ("x", &small.x, Tensor::from([1i64])).into(),
        ("z", &small.z, &g[2].1).into(),
    ];
    let report = compare(&small.loss, claims).unwrap();
    let row = |name: &str| report.row(name).unwrap();
    let why = |name: &str| row(name).outcome.as_ref().unwrap_err().to_string();
    assert!(why("nobody").ends_with("there are x, w, b, z, h, s"), "{}", why("nobody"));
    assert!(why("cut").contains("was not recorded"));
    assert!(why("elsewhere").contains("does not depend"));
    assert_eq!(
        why("b"),
        "the gradient has shape [4, 5], the tensor [5]: a sum over axis 0 is missing"
    );
    assert_eq!(why("w"), "the gradient has shape [5, 3], the tensor [3, 5]");
    assert!(why("x").contains("i64"));
    assert_eq!((&row("z").standing, &row("b").standing), (&Standing::Right, &Standing::First));
    assert_eq!(row("nobody").standing, Standing::NotCompared);
    assert!(!report.passed() && report.rows.last().unwrap().shape.is_none());
    assert!(report.to_string().contains("WRONG: the gradient has shape"), "{report}");
    let twice = (small.h.named("t") + small.s.named("t")).sum_all();
    let report = compare(&twice, [("t", &ones)]).unwrap();
    assert_eq!(report.rows[0].outcome, Err(Incomparable::Ambiguous(2)));
}

#[test]
fn losses_that_have_no_backward_pass_are_errors() {
    let small = Small::new(DType::F32, 1);
    let text = |loss: &Tensor| compare(loss, small.gradients()).unwrap_err().to_string();
    assert!(text(&Tensor::scalar(1.0)).starts_with("compare: the tensor does not depend"));
    assert!(text(&small.h).contains("single element"));
    small.loss.backward();
    assert!(text(&small.loss).contains("freed by an earlier backward"));
}

#[test]
fn nan_and_infinities_are_seen() {
    let within = Tolerance::default();
    let between = |a: &[f64], b: &[f64]| {
        let tensor = |x: &[f64]| Tensor::from_slice(x, [x.len()]);
        Discrepancy::between(&tensor(a), &tensor(b), within).unwrap()
    };
    let inf = f64::INFINITY;
    let same = between(&[inf, -0.0, 1.0], &[inf, 0.0, 1.0]);
    assert!(same.exact && same.approximate && same.largest == 0.0 && same.mean_relative == 0.0);
    let nan = between(&[1.0, f64::NAN, 9.0], &[1.0, f64::NAN, 2.0]);
    assert!(!nan.exact && !nan.approximate && nan.largest.is_nan() && nan.at == [1]);
    let one = between(&[1.0, inf], &[5.0, 1.0]);
    assert!(!one.approximate && one.largest == inf && one.at == [1] && one.by_hand == inf);
    assert!(!between(&[1.0], &[inf]).approximate && !between(&[inf], &[-inf]).approximate);
    let none = between(&[], &[]);
    assert!(none.exact && none.approximate && none.mean_relative == 0.0);
    // The limits of allclose, which count from autograd's side.
    assert!(between(&[1.0 + 0.99e-5], &[1.0]).approximate);
    assert!(!between(&[1.0 + 1.01e-5], &[1.0]).approximate);
    assert!(!between(&[1e-300], &[0.0]).approximate && between(&[0.0], &[0.0]).approximate);
    let floor = Tolerance { rtol: 0.0, atol: 1e-8 };
    let small = |a: f64| Discrepancy::between(&Tensor::from([a]), &Tensor::from([0.0]), floor);
    assert!(small(0.99e-8).unwrap().approximate && !small(1.01e-8).unwrap().approximate);
    // |1 - 3| / (1 + 3) and 0, halved.
    assert!((between(&[1.0, 2.0], &[3.0, 2.0]).mean_relative - 0.25).abs() < 1e-11);

    let small = Small::new(DType::F64, 2);
    let mut claims = small.gradients();
    claims[2].1 = &claims[2].1 / 0.0 * 0.0;
    let nan = claims[2].1.clone();
    claims = small.below(claims[0].1.clone(), claims[1].1.clone(), nan);
    let report = compare(&small.loss, &claims).unwrap();
    assert_eq!(report.first_wrong().unwrap().name, "z");
    assert_eq!(report.row("w").unwrap().standing, from(&["z"]), "{report}");
}

#[test]
fn the_table_is_aligned() {
    let h = Tensor::from([0.5f64, -1.0]).parameter().named("weights");
    let y = h.square().named("y");
    let loss = y.sum_all();
    let dh = h.detach();
    let text = compare(&loss, [("weights", dh), ("y", Tensor::ones(2))]).unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "           shape  exact  approx  max diff  at   mean rel");
    assert_eq!(lines[1], "  y        [2]    yes    yes     0              0");
    assert_eq!(
        lines[2],
        "> weights  [2]    no     no      1.0e0     [1]  3.3e-1    WRONG, nothing above it is"
    );
    assert_eq!(lines[4], "weights: the mistake is in this step, from the gradient of y");
    assert_eq!(lines[5], "  at [1]: -1.000000e0 by hand, -2.000000e0 by autograd");
    assert!(lines[6].starts_with("  y = square at ") && lines[6].contains("tests.rs:"), "{text}");
}

#[test]
fn a_gradient_that_no_rule_passes_on_is_zero() {
    let x = Tensor::from([1.5f64, -2.5]).parameter();
    let loss = (x.floor() + 1.0).sum_all();
    let report = compare(&loss, [("x", &x, Tensor::zeros(2).to_dtype(DType::F64))]).unwrap();
    assert!(report.passed(), "{report}");
}

#[test]
fn rounding_in_f32_is_told_from_a_mistake() {
    // 1 and -0.999 are the parts of the second gradient, which therefore rounds as 1 does.
    let gradient = |dtype: DType, by: f64| {
        let x = Tensor::from([1.0, 1e-3]).to_dtype(dtype).parameter();
        let c = |c: [f64; 2]| Tensor::from(c).to_dtype(dtype);
        let loss = (&x * c([0.5, 1.0])).sum_all() + (&x * c([0.5, -0.999])).sum_all();
        let g = Tensor::from([1.0, 1e-3 + by]).to_dtype(dtype);
        compare(&loss, [("x", &x, g)]).unwrap().rows.remove(0).standing
    };
    assert_eq!(gradient(DType::F32, 1e-7), Standing::Rounding);
    assert_eq!(gradient(DType::F32, 2e-5), Standing::First);
    // f64 has no such rounding.
    assert_eq!(gradient(DType::F64, 1e-7), Standing::First);
}

/// The gradient of `sum(c x^3)` with one element times a factor, where `c` has this size at each
/// element of a matrix.
fn scaled(dtype: DType, size: impl Fn(usize, usize) -> f64, factor: f64) -> Comparison {
    let g = &mut Generator::manual_seed(5);
    let x = Tensor::randn([4, 6], DType::F64, g).to_dtype(dtype).parameter().named("x");
    let all: Vec<f64> = (0..24).map(|k| size(k / 6, k % 6)).collect();
    let c = Tensor::from_slice(&all, [4, 6]).to_dtype(dtype);
    let loss = (&c * &x * &x * &x).sum_all();
    let least = (0..24).min_by(|&a, &b| all[a].total_cmp(&all[b])).unwrap();
    let by: Vec<f64> = (0..24).map(|k| if k == least { factor } else { 1.0 }).collect();
    let by = Tensor::from_slice(&by, [4, 6]).to_dtype(dtype);
    let by_hand = no_grad(|| 3.0 * &x.square() * &c * &by);
    compare(&loss, [("x", &x, by_hand)]).unwrap()
}

#[test]
fn rows_columns_and_blocks_are_judged_by_their_own_size() {
    type Size = fn(usize, usize) -> f64;
    let sizes: [(&str, Size); 3] = [
        ("rows", |i, _| if i < 2 { 3e12 } else { 3e-12 }),
        ("columns", |_, j| if j < 3 { 1e-15 } else { 1e15 }),
        ("blocks", |i, j| if (i < 2) == (j < 3) { 1e10 } else { 1e-10 }),
    ];
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        for (name, size) in sizes {
            let right = scaled(dtype, size, 1.0);
            assert!(right.passed(), "{name} {dtype}: {right}");
            for factor in [-7.0, 0.0, 1.5] {
                let wrong = scaled(dtype, size, factor);
                assert!(!wrong.passed(), "{name} {dtype} times {factor}: {wrong}");
                assert!(wrong.verdict().is_none(), "{name} {dtype}: {wrong}");
            }
        }
    }
}

/// The gradients of a deep chain of sigmoids, at its start by hand times a factor.
fn vanished(dtype: DType, factor: f64) -> Comparison {
    let g = &mut Generator::manual_seed(7);
    let x = Tensor::randn([5], DType::F64, g).to_dtype(dtype).parameter().named("x");
    let mut layers = vec![x.clone()];
    for _ in 0..20 {
        layers.push((layers.last().unwrap() * 0.5).sigmoid());
    }
    let mut d = layers[20].ones_like();
    let loss = layers[20].sum_all();
    for y in layers[1..].iter().rev() {
        d = no_grad(|| &d * y * (1.0 - y) * 0.5);
    }
    compare(&loss, [("x", &x, d * factor)]).unwrap()
}

#[test]
fn a_vanished_gradient_is_judged_by_its_own_size() {
    for dtype in [DType::F32, DType::F64] {
        let right = vanished(dtype, 1.0);
        let size = right.rows[0].outcome.as_ref().unwrap().autograd.abs();
        assert!(right.passed() && size < 1e-17, "{right}");
        for factor in [-7.0, 0.0, 1.001, 2.0] {
            let wrong = vanished(dtype, factor);
            assert_eq!(wrong.rows[0].standing, Standing::First, "{wrong}");
        }
    }
}

/// A layer norm whose gradient by hand is the closed formula, in f32 on data far from zero: what
/// the mean takes away is lost to rounding.
fn normed(shift: f64, factor: f32) -> Comparison {
    let g = &mut Generator::manual_seed(9);
    let x = (Tensor::randn([8, 6], DType::F32, g) + shift).parameter().named("x");
    let w = Tensor::randn([8, 6], DType::F32, g);
    let apart = &x - x.mean(1, true);
    let deviation = (apart.square().mean(1, true) + 1e-5).sqrt();
    let y = &apart / &deviation;
    let loss = (&y * &w).sum_all();
    let by_hand = no_grad(|| {
        let along = (&w * &y).mean(1, true);
        (&w - w.mean(1, true) - &y * along) / &deviation * f64::from(factor)
    });
    compare(&loss, [("x", &x, by_hand)]).unwrap()
}

#[test]
fn a_right_gradient_in_f32_is_right_however_badly_conditioned() {
    for shift in [0.0, 10.0, 1e3] {
        let report = normed(shift, 1.0);
        assert!(report.passed(), "{shift}: {report}");
        assert!(!normed(shift, 1.01).passed(), "{shift}");
    }
}

#[test]
fn an_atol_takes_small_gradients_for_zero() {
    let x = Tensor::from([1e-12f64, 2.0]).parameter();
    let loss = (&x * Tensor::from([1e-12, 1.0])).sum_all();
    let by_hand = || [("x", &x, Tensor::from([0.0, 1.0]))];
    assert!(!compare(&loss, by_hand()).unwrap().passed());
    let within = Tolerance { atol: 1e-9, ..Tolerance::default() };
    assert!(compare_within(&loss, by_hand(), within).unwrap().passed());
    let strict = Tolerance { rtol: 1e-12, atol: 0.0 };
    let nearly = [("x", &x, Tensor::from([1e-12, 1.0 + 1e-7]))];
    assert!(!compare_within(&loss, nearly, strict).unwrap().passed());
}
