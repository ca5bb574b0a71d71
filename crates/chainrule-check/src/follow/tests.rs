//! Backward passes with a mistake: the line and its correction must come out; and right ones, of
//! which none may be called wrong.

use super::*;
use crate::autograd::{CustomContext, custom};
use crate::{explain, verdict};

type ForwardFn = fn(&[Tensor]) -> Result<Tensor>;
type Backward = fn(&CustomContext, &Tensor) -> Result<Vec<Option<Tensor>>>;

fn random(shape: &[usize], seed: u64) -> Tensor {
    Tensor::randn(shape, DType::F64, &mut Generator::manual_seed(seed))
}

fn followed(forward: ForwardFn, backward: Backward, shapes: &[&[usize]]) -> Followed {
    let inputs: Vec<Tensor> =
        shapes.iter().enumerate().map(|(i, s)| random(s, 40 + i as u64)).collect();
    super::backward(&custom("mine", forward, backward), &inputs).unwrap()
}

/// The one correction has `line` in its source and `right` in what it should be.
#[track_caller]
fn assert_corrected(found: &Followed, line: &str, right: &str) {
    let text = found.to_string();
    let [only] = found.corrections() else { panic!("{text}") };
    assert!(found.is_whole(), "{text}");
    assert!(only.source().contains(line), "{text}");
    assert!(only.corrected().contains(right), "{text}");
}

fn layer(x: &[Tensor]) -> Result<Tensor> {
    Ok((x[0].matmul(&x[1]) + &x[2]).tanh())
}

#[test]
fn another_gradient_in_a_product() {
    let found = followed(
        layer,
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dz = dy * (1.0 - ctx.output().square());
            let dx = dz.matmul(&w.t());
            let dw = x.t().matmul(dy);
            let db = dz.sum(0, false);
            Ok(vec![Some(dx), Some(dw), Some(db)])
        },
        &[&[5, 3], &[3, 4], &[4]],
    );
    assert_eq!(found.wrong(), ["input 1"]);
    assert_corrected(&found, "let dw = x.t().matmul(dy);", "let dw = x.t().matmul(dz);");
}

#[test]
fn the_argument_for_the_result() {
    let found = followed(
        layer,
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let z = x.matmul(w) + &ctx.inputs()[2];
            let h = z.tanh();
            let slope = 1.0 - &z * &h;
            let dz = dy * slope;
            Ok(vec![Some(dz.matmul(&w.t())), Some(x.t().matmul(&dz)), Some(dz.sum(0, false))])
        },
        &[&[5, 3], &[3, 4], &[4]],
    );
    assert_corrected(&found, "1.0 - &z * &h", "1.0 - &h * &h");
}

#[test]
fn transposition_axis_and_number() {
    let product: ForwardFn = |x| Ok(x[0].matmul(&x[1]));
    let found = followed(
        product,
        |ctx, g| {
            let (a, b) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let da = g.matmul(b);
            Ok(vec![Some(da), Some(a.t().matmul(g))])
        },
        &[&[4, 4], &[4, 4]],
    );
    assert_corrected(&found, "g.matmul(b)", "b.t()");
    let found = followed(
        |x| Ok(&x[0] + &x[1]),
        |_, g| {
            let db = g.sum(1, false);
            Ok(vec![Some(g.clone()), Some(db)])
        },
        &[&[4, 4], &[4]],
    );
    assert_corrected(&found, "g.sum(1, false)", "g.sum(0, false)");
    let found = followed(
        |x| Ok(x[0].square().sum(1, false)),
        |ctx, g| {
            let dx = ctx.inputs()[0].clone() * g.unsqueeze(1) * 3.0;
            Ok(vec![Some(dx)])
        },
        &[&[4, 3]],
    );
    assert_corrected(&found, "* 3.0", "2");
}

#[test]
fn a_factor_is_told_with_its_origin() {
    let found = followed(
        |x| Ok(x[0].var(0, 1, false)),
        |ctx, g| {
            let x = &ctx.inputs()[0];
            let centred = x - x.mean(0, true);
            let dx = g * centred * (2.0 / 8.0);
            Ok(vec![Some(dx)])
        },
        &[&[8, 3]],
    );
    let text = found.to_string();
    assert!(text.contains("7/8") || text.contains("2/7"), "{text}");
}

#[test]
fn a_term_and_a_factor_that_are_missing() {
    let softmax: ForwardFn = |x| Ok(x[0].softmax(1));
    let found = followed(
        softmax,
        |ctx, g| {
            let y = ctx.output();
            let inner = g.sum(1, true);
            let dx = y * (g - inner);
            Ok(vec![Some(dx)])
        },
        &[&[4, 3]],
    );
    let text = found.to_string();
    assert!(found.is_whole() && text.contains("inner"), "{text}");
    let found = followed(
        |x| Ok(&x[0] * x[0].sigmoid()),
        |ctx, g| {
            let x = &ctx.inputs()[0];
            let s = x.sigmoid();
            let slope = &s * (1.0 - &s);
            let dx = g * (s + slope);
            Ok(vec![Some(dx)])
        },
        &[&[4, 3]],
    );
    let text = found.to_string();
    assert!(found.is_whole() && text.contains("x"), "{text}");
}

#[test]
fn two_mistakes_on_two_paths_and_on_one() {
    let found = followed(
        layer,
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dz = dy * (1.0 - ctx.output().square());
            let dx = dz.matmul(&w.t());
            let dw = x.t().matmul(dy);
            let db = dz.mean(0, false);
            Ok(vec![Some(dx), Some(dw), Some(db)])
        },
        &[&[5, 3], &[3, 4], &[4]],
    );
    let text = found.to_string();
    assert!(found.is_whole() && found.corrections().len() == 2, "{text}");
    assert!(
        text.contains("let dw = x.t().matmul(dz);") && text.contains("dz.sum(0, false)"),
        "{text}"
    );
    let found = followed(
        |x| Ok(x[0].matmul(&x[1]).tanh().sin()),
        |ctx, g| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let h = x.matmul(w).tanh();
            let dh = g * h.sin();
            let dz = dh * (1.0 - &h);
            Ok(vec![Some(dz.matmul(&w.t())), Some(x.t().matmul(&dz))])
        },
        &[&[5, 3], &[3, 4]],
    );
    let text = found.to_string();
    assert!(found.is_whole() && found.corrections().len() == 2, "{text}");
    assert!(text.contains("h.cos()"), "{text}");
}

#[test]
fn right_ones_are_right_however_they_are_written() {
    let found = followed(
        layer,
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let z = x.matmul(w) + &ctx.inputs()[2];
            let dz = dy * z.cosh().square().reciprocal();
            Ok(vec![Some(dz.matmul(&w.t())), Some(x.t().matmul(&dz)), Some(dz.sum(0, false))])
        },
        &[&[5, 3], &[3, 4], &[4]],
    );
    assert!(found.is_right(), "{found}");
    let found = followed(
        |x| Ok(x[0].softmax(1)),
        |ctx, g| {
            let y = ctx.output();
            Ok(vec![Some(y * g - y * (y * g).sum(1, true))])
        },
        &[&[4, 3]],
    );
    assert!(found.is_right(), "{found}");
}

#[test]
fn what_cannot_be_followed_is_judged_and_named_nothing() {
    let found = followed(
        |x| Ok(x[0].tanh()),
        |ctx, g| {
            let y: Vec<f64> = ctx.output().to_vec();
            Ok(vec![Some(g * Tensor::from(y[0]))])
        },
        &[&[4, 3]],
    );
    assert!(!found.is_right() && found.corrections().is_empty(), "{found}");
    assert!(found.to_string().contains("unidentified"), "{found}");
    // A forward that leaves the engine has no right gradients.
    let op =
        custom("off", |x| Ok(Tensor::from(x[0].to_vec::<f64>())), |_, g| Ok(vec![Some(g.clone())]));
    let error = super::backward(&op, &[random(&[3], 1)]).unwrap_err().to_string();
    assert!(error.contains("does not go through the engine's ops"), "{error}");
    // Nothing at all, and a single number.
    for shape in [&[0usize, 3][..], &[]] {
        let found = followed(
            |x| Ok(x[0].tanh()),
            |ctx, g| Ok(vec![Some(g * (1.0 - ctx.output().square()))]),
            &[shape],
        );
        assert!(found.is_right(), "{found}");
    }
}

#[test]
fn explain_follows_the_custom_op() {
    let op = custom(
        "layer",
        |x| Ok(x[0].matmul(&x[1]).tanh()),
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dz = dy * (1.0 - ctx.output().square());
            let dw = x.t().matmul(dy);
            Ok(vec![Some(dz.matmul(&w.t())), Some(dw)])
        },
    );
    let (x, w) = (random(&[5, 3], 1), random(&[3, 4], 2));
    let found = explain(
        |x| op.apply(&[&x[0], &x[1]]).unwrap().sin(),
        |x| x[0].matmul(&x[1]).tanh().sin(),
        &[x, w],
    )
    .unwrap();
    let [only] = found.corrections() else { panic!("{found}") };
    assert!(only.corrected().contains("x.t().matmul(dz)"), "{found}");
}

/// A hidden layer with a loss, all named.
struct Model {
    x: Tensor,
    w: Tensor,
    h: Tensor,
    v: Tensor,
    y: Tensor,
    loss: Tensor,
}

impl Model {
    fn new() -> Model {
        let x = random(&[8, 3], 1);
        let w = random(&[3, 4], 2).parameter().named("w");
        let v = random(&[4, 5], 3).parameter().named("v");
        let h = x.matmul(&w).named("z").tanh().named("h");
        let y = h.matmul(&v).named("y");
        let target = Tensor::from([0i64, 1, 4, 2, 1, 3, 0, 2]);
        let loss = y.cross_entropy(&target);
        Model { x, w, h, v, y, loss }
    }

    fn right(&self) -> Vec<Tensor> {
        let found = crate::autograd::grad(&self.loss, &[&self.y, &self.w, &self.v]).unwrap();
        found.into_iter().map(|g| g.unwrap().detach()).collect()
    }

    /// The gradients of `w` and `v` by hand, from that of `y`.
    fn below(&self, dy: &Tensor) -> (Tensor, Tensor) {
        no_grad(|| {
            let dv = self.h.detach().t().matmul(dy);
            let dh = dy.matmul(&self.v.detach().t());
            let dz = dh * (1.0 - self.h.detach().square());
            (self.x.t().matmul(&dz), dv)
        })
    }

    fn verdict(&self, dw: &Tensor, dv: &Tensor) -> String {
        verdict(&self.loss, &[(&self.w, dw), (&self.v, dv)]).unwrap().to_string()
    }
}

#[test]
fn rows_of_a_gradient_on_the_way() {
    let model = Model::new();
    let dy = model.right().remove(0);
    let mut factors = [1.0; 8];
    factors[7] = 0.0;
    let (dw, dv) = model.below(&(&dy * Tensor::from(factors).unsqueeze(1)));
    let text = model.verdict(&dw, &dv);
    assert!(
        text.contains("the gradient of `y` is right but for this: of its rows 7 of 8 are 0"),
        "{text}"
    );
    // The rows of class 2 are 3 and 7.
    let mut factors = [1.0; 8];
    (factors[3], factors[7]) = (-1.0, -1.0);
    let (dw, dv) = model.below(&(&dy * Tensor::from(factors).unsqueeze(1)));
    let text = model.verdict(&dw, &dv);
    assert!(text.contains("is 2 (3, 7) of 8 are -1 times the right ones"), "{text}");
    let each: Vec<f64> = (1..=8).map(|i| f64::from(i) / 8.0).collect();
    let (dw, dv) = model.below(&(&dy * Tensor::from(each).unsqueeze(1)));
    let text = model.verdict(&dw, &dv);
    assert!(text.contains("(i + 1) / n"), "{text}");
}

#[test]
fn nothing_is_named_that_does_not_give_the_numbers() {
    let model = Model::new();
    let right = model.right();
    // Noise fits nothing.
    for seed in 0..6 {
        let dw = &right[1] * (1.0 + 0.1 * random(&[3, 4], 70 + seed));
        let dv = &right[2] * (1.0 + 0.1 * random(&[4, 5], 90 + seed));
        let text = model.verdict(&dw, &dv);
        assert!(text.contains("unidentified"), "{text}");
    }
}

/// The search ends where its work is done, which is counted: on a busy machine it tries as much,
/// and says the same.
#[test]
fn a_busy_machine_comes_to_the_same_verdict() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let model = Model::new();
    let right = model.right();
    let dw = &right[1] * (1.0 + 0.1 * random(&[3, 4], 70));
    let dv = &right[2] * (1.0 + 0.1 * random(&[4, 5], 90));
    let idle = model.verdict(&dw, &dv);
    let done = AtomicBool::new(false);
    let busy = std::thread::scope(|threads| {
        for _ in 0..2 * std::thread::available_parallelism().map_or(4, usize::from) {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let text = model.verdict(&dw, &dv);
        done.store(true, Ordering::Relaxed);
        text
    });
    assert!(idle.contains("mistakes tried"), "{idle}");
    assert_eq!(idle, busy);
}

#[test]
fn gradients_of_an_edited_pass() {
    let model = Model::new();
    let dy = model.right().remove(0);
    // By hand with the slope of another function: 1 / (1 + z^2) is none of the right pass, 1 - h
    // is.
    let (dw, dv) = no_grad(|| {
        let h = model.h.detach();
        let dh = dy.matmul(&model.v.detach().t());
        let dz = dh * (1.0 - &h * &h) * (1.0 - &h * &h);
        (model.x.t().matmul(&dz), h.t().matmul(&dy))
    });
    let text = model.verdict(&dw, &dv);
    assert!(!text.contains("unidentified"), "{text}");
    // Two at once, on two paths.
    let (dw, dv) = no_grad(|| {
        let h = model.h.detach();
        let dh = dy.matmul(&model.v.detach().t());
        (model.x.t().matmul(&dh), h.square().t().matmul(&dy))
    });
    let text = model.verdict(&dw, &dv);
    assert!(!text.contains("unidentified"), "{text}");
}

#[test]
fn a_mask_of_a_value_that_no_rule_saved() {
    let model = Model::new();
    let dy = model.right().remove(0);
    let (dw, dv) = no_grad(|| {
        let (h, z) = (model.h.detach(), model.x.matmul(&model.w.detach()));
        let dh = dy.matmul(&model.v.detach().t()) * z.gt(0.0).to_dtype(DType::F64);
        (model.x.t().matmul(&(dh * (1.0 - h.square()))), h.t().matmul(&dy))
    });
    let text = model.verdict(&dw, &dv);
    assert!(text.contains("not above 0"), "{text}");
    // Another mistake beside it: two, and each on its own path.
    let (dw, dv) = no_grad(|| {
        let z = model.x.matmul(&model.w.detach());
        let dh = dy.matmul(&model.v.detach().t());
        (model.x.t().matmul(&dh), z.t().matmul(&dy))
    });
    let text = model.verdict(&dw, &dv);
    assert!(text.contains("`z` stands where `h` is due"), "{text}");
}

#[test]
fn code_beside_the_tape() {
    let model = Model::new();
    let (x, h, v) = (model.x.clone(), model.h.detach(), model.v.detach());
    let dy = model.right().remove(0);
    let report = compare_code(&model.loss, || {
        let dh = dy.matmul(&v.t());
        let dz = &dh * (1.0 - h.square());
        let dv = h.t().matmul(&dy);
        let dw = x.t().matmul(&dh);
        Ok(vec![("h", dh), ("z", dz), ("v", dv), ("w", dw)])
    })
    .unwrap();
    let [only] = report.corrections() else { panic!("{report}") };
    assert!(only.corrected().contains("let dw = x.t().matmul(&dz);"), "{report}");
    assert!(
        report.to_string().contains("that of `z`")
            || report.to_string().contains("the gradient of `z`"),
        "{report}"
    );
    let report = compare_code(&model.loss, || {
        let dh = dy.matmul(&v.t());
        let dz = &dh * (1.0 - h.square());
        Ok(vec![("h", dh), ("w", x.t().matmul(&dz)), ("z", dz)])
    })
    .unwrap();
    assert!(report.passed() && report.corrections().is_empty(), "{report}");
}

#[test]
fn an_update_too_early() {
    let found = followed(
        |x| Ok(x[0].matmul(&x[1]).tanh()),
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dz = dy * (1.0 - ctx.output().square());
            let dw = x.t().matmul(&dz);
            let stepped = w - &dw * 0.1;
            let dx = dz.matmul(&stepped.t());
            Ok(vec![Some(dx), Some(dw)])
        },
        &[&[5, 3], &[3, 4]],
    );
    assert_eq!(found.wrong(), ["input 0"]);
    let text = found.to_string();
    assert!(found.is_whole() && !text.contains("still"), "{text}");
    let places: Vec<&str> = found.corrections().iter().map(Correction::source).collect();
    assert!(places.iter().any(|s| s.contains("stepped")), "{text}");
}

#[test]
fn another_axis_and_an_expression_of_the_forward_pass() {
    let found = followed(
        |x| Ok(x[0].cumsum(1) * &x[1]),
        |ctx, g| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dx = (g * w).flip([1]).cumsum(1).flip([1]);
            let dw = (g * x.cumsum(0)).sum(0, false);
            Ok(vec![Some(dx), Some(dw)])
        },
        &[&[4, 4], &[4]],
    );
    assert_eq!(found.wrong(), ["input 1"]);
    assert_corrected(&found, "x.cumsum(0)", "cumsum");
    let found = followed(
        |x| Ok((&x[0] * &x[1] + x[0].sin()).square()),
        |ctx, g| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let inner = x * w + x.sin();
            let slope = w + x.cos();
            let dz = g * &inner * 2.0;
            let dw = (g * x * 2.0) * x;
            Ok(vec![Some(dz * slope), Some(dw)])
        },
        &[&[4, 3], &[4, 3]],
    );
    assert_eq!(found.wrong(), ["input 1"]);
    assert!(found.is_whole(), "{found}");
}

#[test]
fn carets_stand_under_the_part_that_changes() {
    let found = followed(
        layer,
        |ctx, dy| {
            let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
            let dz = dy * (1.0 - ctx.output().square());
            let dw = x.t().matmul(dy);
            Ok(vec![Some(dz.matmul(&w.t())), Some(dw), Some(dz.sum(0, false))])
        },
        &[&[5, 3], &[3, 4], &[4]],
    );
    let text = found.to_string();
    let rows: Vec<&str> = text.lines().collect();
    let at = rows.iter().position(|r| r.contains("let dw = x.t().matmul(dy);")).expect(&text);
    let column = rows[at].find("dy)").expect(&text);
    assert!(rows[at + 1][..column].trim().is_empty(), "{text}");
    assert!(rows[at + 1][column..].starts_with("^^ "), "{text}");
    assert!(rows[at + 2].contains("right to "), "{text}");
    assert!(found.error() < 1e-12, "{text}");
}
