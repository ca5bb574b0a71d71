//! Each rule on data far from zero and badly scaled: the program that runs is as accurate as the
//! plain one. A rule may lean on what later steps of the plain program correct, as the rule of sums
//! does with the rounding of a mean: then the first run has to see it.

use super::*;
use crate::algebra::rules;

type RuleLoss = fn(&[Tensor]) -> Tensor;

fn positive(x: &Tensor) -> Tensor {
    x.square() + 1.0
}

/// One class for each row.
fn classes(x: &Tensor) -> Tensor {
    (Tensor::arange(0, x.shape()[0] as i64) * 2).remainder(x.shape()[1] as i64).unsqueeze(1)
}

fn softmax(x: &Tensor) -> Tensor {
    let e = (x - x.amax(1, true)).exp();
    &e / e.sum(1, true)
}

fn log_softmax(x: &Tensor) -> Tensor {
    let z = x - x.amax(1, true);
    &z - z.exp().sum(1, true).log()
}

fn standardised(x: &Tensor) -> Tensor {
    let d = x - x.mean(0, true);
    &d * (d.square().mean(0, true) + 1e-5).pow(-0.5)
}

fn picked(logs: &Tensor) -> Tensor {
    -logs.gather(1, &classes(logs)).mean_all()
}

/// Cross-entropy of two classes.
fn binary(p: &Tensor, y: &Tensor) -> Tensor {
    let y = y.detach().sigmoid();
    -(&y * p.log() + (1.0 - &y) * (1.0 - p).log()).mean_all()
}

/// Losses of a matrix and two rows, whose gradients are simplified by these rules.
const LOSSES: &[(&str, RuleLoss)] = &[
    ("like terms", |x| (x[0].square() * 0.3 + &x[0] * &x[0] * &x[1]).sum_all()),
    ("merge powers", |x| (positive(&x[0]).sqrt().log() * &x[1]).sum_all()),
    ("power of a power", |x| (&x[1] / positive(&x[0]).sqrt()).sum_all()),
    ("power of a product", |x| (&x[1] / (positive(&x[0]) * positive(&x[2])).sqrt()).sum_all()),
    ("exp and log", |x| (x[0].log_softmax(1) * &x[1]).mean_all()),
    ("log of a product", |x| (softmax(&x[0]).log() * &x[1]).exp().mean_all()),
    ("log of a product", |x| {
        let product = positive(&x[0]) * positive(&x[1]).sqrt();
        (product.log() * &x[2].tanh()).exp().mean_all()
    }),
    // The gradient of an exponent has the logarithm of the base, whose parts are there.
    ("log of a product", |x| {
        let (u, v) = (positive(&x[0].tanh()), positive(&x[1].tanh()));
        let logs = (u.log() * 0.3 + v.log() * 0.7).sum_all();
        logs + (&u * &v).pow(x[2].tanh()).sum_all()
    }),
    ("constant factor", |x| (standardised(&x[0]) * &x[1]).tanh().sum_all()),
    ("sum of a constant", |x| ((&x[0] - x[0].mean(0, true)).square() * &x[1] + &x[2]).mean_all()),
    ("sum of a sum", |x| (standardised(&x[0]) * &x[1] + &x[2]).square().mean_all()),
    ("one-hot sum", |x| picked(&softmax(&x[0]).log())),
    ("one-hot power", |x| {
        let mask = x[1].gt(0.0).to_dtype(x[0].dtype());
        (&x[0] * &mask).square().sum_all()
    }),
    ("one-hot pick", |x| -softmax(&x[0]).gather(1, &classes(&x[0])).log().mean_all()),
    ("softmax sum", |x| picked(&(&x[0] - x[0].mean(1, true)).log_softmax(1))),
    ("softmax sum", |x| ((&x[0] - x[0].mean(1, true)).softmax(1) * &x[1]).sum_all()),
    ("distribute", |x| (standardised(&x[0]) * &x[1]).square().mean_all()),
    ("partial fractions", |x| {
        let p = (&x[0] * x[1].tanh()).sigmoid();
        let y = x[2].sigmoid();
        -(&y * p.log() + (1.0 - &y) * (1.0 - &p).log()).mean_all()
    }),
    ("partial fractions", |x| {
        let e = x[0].exp();
        binary(&(&e / (&e + 1.0)), &x[1])
    }),
    ("partial fractions", |x| binary(&((&x[0] * 0.5).tanh() * 0.5 + 0.5), &x[1])),
    ("common denominator", |x| {
        let e = positive(&x[0].tanh());
        ((&e / (&e + 1.0)).log() * &x[1]).mean_all()
    }),
    ("common denominator", |x| {
        let p = (&x[0] * x[1].tanh()).sigmoid();
        (p.log() + (1.0 - &p).log() * &x[2]).mean_all()
    }),
    ("zero", |x| {
        let e = (&x[0] - x[0].max_axis(1, true).0).exp();
        picked(&(&e / e.sum(1, true)).log())
    }),
    ("slope", |x| (x[0].tanh() * &x[1]).sum_all()),
    ("common factor", |x| (&x[0] * &x[1] + &x[0] * &x[2]).tanh().square().sum_all()),
    ("common factor", |x| (standardised(&x[0]) * &x[1] + &x[2]).square().mean_all()),
    ("reuse", |x| (standardised(&x[0]) * &x[1] + &x[2]).tanh().sum_all()),
    // The slope of a logarithm of softmax, from logarithms that are there.
    ("reuse", |x| picked(&log_softmax(&x[0]))),
    ("reuse", |x| picked(&log_softmax(&(&x[0] * x[1].tanh()))) + x[2].square().mean_all()),
    ("reuse", |x| {
        let weights = log_softmax(&x[1].unsqueeze(0)).squeeze(0);
        let logs = weights - (&x[0].tanh() - &x[2].tanh()).square();
        -logs.logsumexp(1, false).mean_all()
    }),
];

/// Distances from zero and sizes of data, and whether each column has a size of its own.
const DATA: [(f64, f64, bool); 8] = [
    (0.0, 1.0, false),
    (100.0, 1.0, false),
    (1000.0, 1.0, false),
    (-1e4, 1.0, false),
    (0.0, 1e-3, false),
    (0.0, 1e3, false),
    (0.0, 1.0, true),
    (20.0, 1.0, true),
];

/// Data of a matrix and two rows: distance from zero, size, and whether each column has a size of
/// its own.
fn data((far, scale, is_uneven): (f64, f64, bool), seed: u64) -> [Tensor; 3] {
    let g = &mut Generator::manual_seed(seed);
    [&[9, 5][..], &[5], &[5]].map(|shape| {
        let x = Tensor::randn(shape, DType::F64, g) * scale + far;
        let sizes = Tensor::from([1e-3, 30.0, 1.0, 1e3, 0.1]);
        if is_uneven { (x * sizes).to_dtype(DType::F32) } else { x.to_dtype(DType::F32) }
    })
}

/// The largest error of each gradient in roundings of its largest element. Elements
/// at which the plain program overflows are skipped; another result that is no number is wrong.
fn errors(got: &[Tensor], plain: &[Tensor], truth: &[Tensor]) -> Vec<f64> {
    let error = |((got, plain), want): ((&Tensor, &Tensor), &Tensor)| {
        let [got, plain, want] = [got, plain, want].map(Tensor::to_f64_vec);
        let sound: Vec<usize> = (0..want.len()).filter(|i| plain[*i].is_finite()).collect();
        let size = sound.iter().map(|i| want[*i].abs()).fold(1e-30, f64::max);
        let apart = |i: &usize| {
            if got[*i].is_finite() { (got[*i] - want[*i]).abs() } else { f64::INFINITY }
        };
        sound.iter().map(apart).fold(0.0, f64::max) / size / f64::from(f32::EPSILON)
    };
    got.iter().zip(plain).zip(truth).map(error).collect()
}

/// Whether the simplified program is one by this rule.
fn is_applied(case: &Case, rule: &'static str) -> bool {
    let without = case.raw.simplify_with(&Simplify::new().without(rule)).unwrap().program;
    case.simple.steps.iter().any(|step| step.rule == rule)
        || without.to_string() != case.simple.program.to_string()
}

#[test]
fn each_rule_is_as_accurate_as_what_it_replaces() {
    let mut failures = Vec::new();
    for rule in rules() {
        let mut kept = 0;
        let losses = LOSSES.iter().filter(|(name, _)| *name == rule.name);
        for (loss, (seed, how)) in
            losses.flat_map(|(_, l)| DATA.iter().enumerate().map(move |d| (l, d)))
        {
            let narrow = data(*how, seed as u64);
            let names = ["x", "a", "b"];
            let wide = narrow.each_ref().map(|x| x.to_dtype(DType::F64).parameter());
            loss(&wide).backward();
            let truth: Vec<Tensor> =
                wide.iter().map(|x| x.grad().unwrap_or_else(|| x.zeros_like())).collect();
            let (case, _) = Case::unchecked(&names, &narrow, loss, &Simplify::new());
            let mut runs =
                case.raw.validated(crate::Passes { simplification: true, fusion: false });
            let (plain, simple) = (case.raw.run(&[]).unwrap(), runs.run(&[]).unwrap());
            if runs.warnings().is_empty() && is_applied(&case, rule.name) {
                kept += 1;
            }
            let errors = [&plain, &simple].map(|out| errors(&out[1..], &plain[1..], &truth));
            for (k, (plain, simple)) in errors[0].iter().zip(&errors[1]).enumerate() {
                if *simple > 8.0 * plain.max(3.0) {
                    failures.push(format!(
                        "{}, {how:?}: d_{} is off by {simple:.1} roundings, plain {plain:.1}\n{}",
                        rule.name, names[k], case.simple.program
                    ));
                }
            }
        }
        if kept < 3 {
            failures.push(format!("`{}` is in {kept} programs here", rule.name));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
