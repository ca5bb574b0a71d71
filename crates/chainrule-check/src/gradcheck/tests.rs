//! Kinks by name and place, noise, custom ops.

use super::*;
use crate::autograd::{CustomContext, CustomOp, apply_custom, custom};
use crate::rng::Generator;
use crate::{Difference, richardson};
use chainrule_core::PadMode;

/// The kinks that a check of `f` reports, as op and index; the check must pass.
#[track_caller]
fn kinks(f: impl Fn(&[Tensor]) -> Tensor, inputs: &[Tensor]) -> Vec<(&'static str, Vec<usize>)> {
    let report = gradcheck(f, inputs).run().unwrap();
    assert!(report.passed(), "{report}");
    let all = report.kinks().flat_map(|pair| &pair.kinks);
    all.map(|kink| (kink.op, kink.index.clone())).collect()
}

fn vector(x: &[f64]) -> Tensor {
    Tensor::from_slice(x, [x.len()])
}

#[test]
fn kinks_are_told_with_op_and_index() {
    let x = || [vector(&[1.5, -2.0, 0.0])];
    assert_eq!(kinks(|x| x[0].relu(), &x()), [("relu", vec![2])]);
    assert_eq!(kinks(|x| x[0].abs().tanh(), &x()), [("abs", vec![2])]);
    assert_eq!(kinks(|x| x[0].clamp(-2.0, 1.0), &x()), [("clamp", vec![1])]);
    assert_eq!(kinks(|x| &x[0] * x[0].floor(), &x())[0], ("floor", vec![1]));
    let ties = || [Tensor::from([[1.0f64, 3.0, 3.0], [0.5, -1.0, 2.0]])];
    assert_eq!(kinks(|x| x[0].amax(1, false), &ties()), [("amax", vec![0])]);
    assert_eq!(kinks(|x| x[0].sort(1, false).0, &ties())[0].1, [0, 1]);
    assert_eq!(kinks(|x| x[0].median(1, false).0, &ties()), [("median", vec![0])]);
    let two = [vector(&[1.0, 2.0]), vector(&[1.0, 3.0])];
    assert_eq!(kinks(|x| x[0].maximum(&x[1]), &two), [("maximum", vec![0]), ("maximum", vec![0])]);
}

#[test]
fn a_condition_computed_from_the_inputs_is_a_kink_where_it_turns() {
    let x = || [vector(&[1.0, 0.0, -2.0])];
    let found = kinks(|x| Tensor::where_(&x[0].ge(0.0), &x[0], &(&x[0] * 3.0)), &x());
    assert_eq!(found, [("where", vec![1])]);
    let masked = |x: &[Tensor]| &x[0] * x[0].gt(0.0).to_dtype(DType::F64);
    assert_eq!(kinks(masked, &x()), [("mul", vec![1])]);
    // A branch of the program.
    let branch = |x: &[Tensor]| if x[0].item() > 0.0 { x[0].sin() } else { &x[0] * 2.0 };
    let report = gradcheck(branch, &[Tensor::scalar(0.0f64)]).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Kink, "{report}");
    assert_eq!(report.pairs[0].kinks[0].what, Break::Path, "{report}");
}

#[test]
fn kinks_that_cancel_in_the_result_are_still_told() {
    // This is x; but with a slope of 0 for relu at 0 the gradient there is 0.
    let found = kinks(|x| x[0].relu() - (-&x[0]).relu(), &[vector(&[0.0, 1.0])]);
    assert_eq!(found.len(), 2, "{found:?}");
    // One kink among many smooth elements.
    let x = Tensor::randn([20_000], DType::F64, &mut Generator::manual_seed(8));
    let mut all = x.to_f64_vec();
    all[12_345] = 0.0;
    let f = |x: &[Tensor]| x[0].relu().exp().mean(.., false);
    assert_eq!(kinks(f, &[vector(&all)]), [("relu", vec![12_345])]);
}

#[test]
fn smooth_points_beside_kinks_pass() {
    for x in [1e-3, 1e-5, -1e-6, 3.0] {
        assert_eq!(kinks(|x| x[0].relu() * &x[0], &[vector(&[x, 1.0])]), [], "{x}");
    }
    // Equal slopes make no kink, nor does a constant.
    assert_eq!(kinks(|x| (&x[0] * &x[0]).relu(), &[vector(&[0.0, 1.0])]), []);
    assert_eq!(
        kinks(|x| x[0].pad(&[(0, [0, 2])], PadMode::Constant(0.0)).relu(), &[vector(&[0.5, 1.0])]),
        []
    );
}

#[test]
fn second_derivatives_have_kinks_of_their_own() {
    let f = |x: &[Tensor]| &x[0] * x[0].relu();
    let report = gradcheck(f, &[vector(&[0.0, 1.0])]).order(2).run().unwrap();
    assert!(report.passed(), "{report}");
    assert!(report.kinks().any(|pair| pair.order == 2), "{report}");
}

#[test]
fn a_kink_does_not_hide_a_wrong_gradient() {
    let half = custom(
        "half_relu",
        |x| x[0].try_relu(),
        |ctx, g| Ok(vec![Some(g * ctx.inputs()[0].gt(0.0).to_dtype(DType::F64) * 0.5)]),
    );
    let report = gradcheck(|x| half.apply(&[&x[0]]), &[vector(&[0.0, 1.0])]).run().unwrap();
    let pair = &report.pairs[0];
    assert!(pair.outcome == Outcome::Wrong(Blame::Reverse) && pair.beside, "{report}");
    assert_eq!(pair.kinks[0].op, "half_relu", "{report}");
}

#[test]
fn gradients_that_are_nothing_but_rounding_pass() {
    let g = &mut Generator::manual_seed(11);
    let x = || [Tensor::randn([4, 6], DType::F64, &mut Generator::manual_seed(12)) * 3.0];
    type Formula = fn(&[Tensor]) -> Tensor;
    let functions: [(&str, Formula); 6] = [
        ("x / x", |x| &x[0] / &x[0]),
        ("deviations", |x| (&x[0] - x[0].mean(1, true)).sum(1, false)),
        ("probabilities", |x| x[0].softmax(1).sum(1, false)),
        ("one class", |x| x[0].narrow(1, 0, 1).log_softmax(1)),
        ("squares", |x| x[0].sin() * x[0].sin() + x[0].cos() * x[0].cos()),
        ("there and back", |x| x[0].exp().log() - &x[0]),
    ];
    for (name, f) in functions {
        for seed in 0..20 {
            let report =
                gradcheck(f, &x()).order(2).first_seed(g.random_u64() ^ seed).run().unwrap();
            assert!(report.passed() && report.kinks().count() == 0, "{name}: {report}");
        }
    }
}

/// The gradient of a bias before batch norm is a sum that cancels; the ops behind it are given
/// nothing but its rounding.
#[test]
fn rounding_that_later_ops_are_given_is_no_jump() {
    let f = |x: &[Tensor]| {
        let hidden = (&x[0] + &x[1]).tanh() + &x[1];
        let apart = &hidden - hidden.mean(0, true) + &x[1] - &x[1];
        (&apart / (apart.square().mean(0, true) + 1e-5).sqrt()).tanh().mean(.., false)
    };
    let g = &mut Generator::manual_seed(3);
    for seed in 0..5 {
        let inputs = [Tensor::randn([8, 5], DType::F64, g), Tensor::randn([5], DType::F64, g)];
        let report = gradcheck(f, &inputs).order(2).seeds(1).first_seed(seed).run().unwrap();
        assert!(report.passed() && report.kinks().count() == 0, "{report}");
    }
}

#[test]
fn values_far_from_zero_do_not_loosen_the_check() {
    let wrong = custom("shift", |x| x[0].try_add(1e6), |_, g| Ok(vec![Some(g * (1.0 + 1e-4))]));
    let x = [vector(&[0.5, -1.0, 2.0])];
    let report = gradcheck(|x| wrong.apply(&[&x[0]]), &x).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
}

/// The tangent with its slope taken at the input, as a type.
struct WrongTanh;

impl CustomOp for WrongTanh {
    fn name(&self) -> &str {
        "wrong_tanh"
    }
    fn forward(&self, x: &[Tensor]) -> Result<Tensor> {
        x[0].try_tanh()
    }
    fn backward(&self, ctx: &CustomContext, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let x = &ctx.inputs()[0];
        Ok(vec![Some(g * (1.0 - x * x))])
    }
}

#[test]
fn a_custom_op_goes_through_the_check_in_one_line() {
    let x = || [vector(&[0.5, -1.0, 2.0])];
    let report = gradcheck(|x| apply_custom(WrongTanh, &[&x[0]]), &x()).run().unwrap();
    assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse), "{report}");
    let cube = custom(
        "cube",
        |x| x[0].try_pow(3.0),
        |ctx, g| Ok(vec![Some(g * ctx.inputs()[0].try_square()? * 3.0)]),
    );
    let report = gradcheck(|x| cube.apply(&[&x[0]]), &x()).order(2).run().unwrap();
    assert!(report.passed(), "{report}");
    // A backward that leaves the tape has no forward mode and no second order; the first is checked
    // all the same.
    let slope = |x: f64| 3.0 * x * x;
    let off = custom(
        "off_tape",
        |x| x[0].try_pow(3.0),
        move |ctx, g| {
            let (x, g) = (ctx.inputs()[0].to_f64_vec(), g.to_f64_vec());
            Ok(vec![Some(Tensor::from(
                x.iter().zip(g).map(|(x, g)| slope(*x) * g).collect::<Vec<_>>(),
            ))])
        },
    );
    let report = gradcheck(|x| off.apply(&[&x[0]]), &x()).run().unwrap();
    assert!(report.passed() && report.pairs[0].forward.is_none(), "{report}");
    let error = gradcheck(|x| off.apply(&[&x[0]]), &x()).order(2).run().unwrap_err().to_string();
    assert!(error.starts_with("off_tape: "), "{error}");
    // Its kinks are found by its backward.
    let relu = custom(
        "off_relu",
        |x| x[0].try_relu(),
        |ctx, g| {
            let (x, g) = (ctx.inputs()[0].to_f64_vec(), g.to_f64_vec());
            Ok(vec![Some(Tensor::from(
                x.iter().zip(g).map(|(x, g)| if *x > 0.0 { g } else { 0.0 }).collect::<Vec<_>>(),
            ))])
        },
    );
    assert_eq!(
        kinks(|x| relu.apply(&[&x[0]]).unwrap(), &[vector(&[1.0, 0.0])]),
        [("off_relu", vec![1])]
    );
}

type CustomRule = fn(&CustomContext, &Tensor) -> Result<Vec<Option<Tensor>>>;

fn checked(rule: CustomRule) -> Result<GradCheck> {
    let op = custom("mine", |x| x[0].try_mul(&x[1]), rule);
    let inputs = [vector(&[0.5, -1.0, 2.0]), vector(&[1.0, 3.0, -2.0])];
    gradcheck(|x| op.apply(&[&x[0], &x[1]]), &inputs).run()
}

#[test]
fn what_a_custom_backward_lacks_is_told_by_the_name_of_the_op() {
    let shape = checked(|ctx, g| Ok(vec![Some(g.sum_all()), Some(g * &ctx.inputs()[0])]));
    let shape = shape.unwrap_err().to_string();
    assert!(
        shape.starts_with("mine: its backward gave a gradient of f64 [] for input 0"),
        "{shape}"
    );
    let missing =
        checked(|ctx, g| Ok(vec![Some(g * &ctx.inputs()[1]), None])).unwrap_err().to_string();
    assert!(missing.starts_with("mine: its backward gave no gradient for input 1"), "{missing}");
    let wild = checked(|ctx, g| {
        let (a, b) = (&ctx.inputs()[0], &ctx.inputs()[1]);
        Ok(vec![Some(g * b / (a - 2.0)), Some(g * a)])
    });
    let report = wild.unwrap();
    let pair = &report.pairs[0];
    let found = pair.not_finite.as_ref().unwrap();
    assert_eq!(
        (pair.outcome, found.op.as_ref().unwrap().0),
        (Outcome::NotFinite, "mine"),
        "{report}"
    );
    assert_eq!(found.index, [2]);
    assert!(report.to_string().contains("which arose in the backward of mine ("), "{report}");
    let value = custom("pole", |x| x[0].try_reciprocal(), |_, g| Ok(vec![Some(g.clone())]));
    let report = gradcheck(|x| value.apply(&[&x[0]]), &[vector(&[0.0])]).run().unwrap();
    assert!(report.to_string().contains("it arose in pole ("), "{report}");
}

#[test]
fn large_steps_do_not_overlook_what_changes_within_small_ones() {
    let sharp = |x: &[Tensor]| (&x[0] * 1e4).tanh();
    let x = [vector(&[1e-5, 3e-5, 1000.0])];
    let report = gradcheck(sharp, &x).run().unwrap();
    assert!(report.passed() && report.kinks().count() == 0, "{report}");
    let Difference { kinks, .. } =
        richardson(|x| x[0].tanh(), &x, &[vector(&[1.0, 1.0, 1.0])]).unwrap();
    assert_eq!(kinks, [] as [usize; 0]);
}

#[test]
fn the_cost_is_a_few_passes_whatever_the_size() {
    let calls = |n: usize| {
        let x = Tensor::randn([n], DType::F64, &mut Generator::manual_seed(2));
        let report = gradcheck(|x| x[0].tanh(), &[x]).run().unwrap();
        assert!(report.passed());
        (report.calls, report.passes)
    };
    let ((few, passes), (many, same)) = (calls(24), calls(10_000));
    assert!(
        few <= 80 && many <= 80 && passes == same && passes <= 48,
        "{few} {many} {passes} {same}"
    );
    // Ten elements are placed three times at each of two distances: twice more than others, by five
    // calls and a pass.
    let (ten, more) = calls(10);
    assert!(ten <= 80 + 2 * 2 * 5 && more == passes + 2 * 2, "{ten} {more}");
}

/// Far from the point most values are ±1, whose bits do not tell of f32.
#[test]
fn saturated_values_of_f32_raise_no_alarm() {
    let single = |x: &Tensor| x.to_dtype(DType::F32);
    let layer = |x: &[Tensor]| {
        (single(&x[0]).matmul(&single(&x[1])) + single(&x[2])).tanh().to_dtype(DType::F64)
    };
    for seed in 0..16 {
        let g = &mut Generator::manual_seed(seed);
        let mut normal = |shape: &[usize]| Tensor::randn(shape, DType::F64, g);
        let x = [normal(&[5, 3]), normal(&[3, 4]), normal(&[4])];
        let report = gradcheck(layer, &x).run().unwrap();
        assert!(report.passed(), "{seed}: {report}");
    }
}

/// Its bias before batch norm has a gradient of nothing but rounding, and so has the maximum that
/// the softmax subtracts.
#[test]
fn the_names_model_passes() {
    use chainrule_lab::names::{Batch, Parameters, forward};
    let g = &mut Generator::manual_seed(42);
    let start = Parameters::new(DType::F64, g).unwrap();
    let batch =
        Batch::new(Tensor::randint(0, 27, [32, 3], g), Tensor::randint(0, 27, [32], g)).unwrap();
    let loss = |x: &[Tensor]| -> Result<Tensor> {
        let [c, w1, b1, w2, b2, bngain, bnbias] = std::array::from_fn(|i| x[i].clone());
        Ok(forward(&Parameters { c, w1, b1, w2, b2, bngain, bnbias }, &batch)?.loss)
    };
    let inputs: Vec<Tensor> = start.list().into_iter().map(|(_, t)| t.clone()).collect();
    let report = gradcheck(loss, &inputs).run().unwrap();
    assert!(report.passed() && report.kinks().count() == 0, "{report}");
}

#[test]
fn a_slope_on_no_side_of_a_kink_is_wrong() {
    let x = [Tensor::from([1.0, 0.0, -2.0, 0.0])];
    for (slope, right) in [(0.0, true), (0.5, true), (1.0, true), (5.0, false), (-0.1, false)] {
        let op = crate::autograd::custom(
            "mine",
            |x| x[0].try_relu(),
            move |ctx, g| {
                let x = &ctx.inputs()[0];
                let at = x.eq(0.0).to_dtype(DType::F64) * slope;
                Ok(vec![Some(g * (x.gt(0.0).to_dtype(DType::F64) + at))])
            },
        );
        let report = gradcheck(|x| op.apply(&[&x[0]]).unwrap(), &x).run().unwrap();
        assert_eq!(report.passed(), right, "{slope}: {report}");
    }
}
