//! An optimiser that errs, and random programs.

mod passes;
mod programs;

use super::validate::Pending;
use super::*;
use crate::optim::{Optimizer, Sgd};
use chainrule_core::{DType, Generator};

fn step(w: &Tensor, sgd: &mut Sgd, x: &Tensor, by: f64) -> Result<Vec<Tensor>> {
    sgd.zero_grad();
    // The forward pass is right, the gradient is not.
    let loss = ((w * x).try_square()?.try_sum_all()? * 0.5).named("loss");
    loss.try_backward()?;
    if by != 1.0 {
        let wrong = w.grad().expect("the loss depends on it") * by;
        w.set_grad(Some(wrong))?;
    }
    sgd.step()?;
    Ok(vec![loss])
}

fn traced(w: &Tensor, x: &Tensor, by: f64) -> Program {
    let mut sgd = Sgd::new(vec![w.clone()], 1e-9);
    Program::trace([("x", x)], |args| step(w, &mut sgd, &args[0], by)).unwrap().optimized()
}

fn with_gradient(program: &Program) -> Program {
    let mut probe = program.clone();
    probe.give_gradients();
    probe
}

/// A learning rate at which the update moves no digit of the parameter: only the gradient tells.
#[test]
fn a_wrong_gradient_is_seen_before_it_is_used() {
    for dtype in [DType::F32, DType::F64] {
        let g = &mut Generator::manual_seed(1);
        let w = Tensor::randn([3], dtype, g).parameter().named("w");
        let x = Tensor::randn([3], dtype, g);
        let before = w.to_f64_vec();
        for by in [0.0, -1.0, 1.01, f64::NAN] {
            let (plain, wrong) = (traced(&w, &x, 1.0), traced(&w, &x, by));
            let pending = Pending {
                probe: with_gradient(&plain),
                simple: with_gradient(&wrong),
                plain: plain.clone(),
                rules: vec!["zero"],
                simplified: true,
            };
            let mut validated = Validated {
                program: wrong,
                pending: Some(Box::new(pending)),
                warnings: Vec::new(),
                told: 0,
                is_plain: false,
            };
            let loss = validated.run(&[&x]).unwrap()[0].item();
            let want = plain.run(&[&x]).unwrap()[0].item();
            assert!((loss - want).abs() <= 1e-6 * want, "{loss} for {want}");
            let warning = validated.warnings()[0].to_string();
            assert!(warning.contains("`d_w`") && warning.contains("plain program"), "{warning}");
            assert!(validated.is_plain());
            assert_eq!(validated.program().to_string(), plain.to_string());
        }
        assert_ne!(w.to_f64_vec(), vec![0.0; 3]);
        let moved = w.to_f64_vec().iter().zip(&before).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(moved < 1e-6, "{moved}");
    }
}

/// The random draws of both programs are the same, and the generator moves on once.
#[test]
fn draws_are_compared_as_they_were_drawn() {
    let g = &mut Generator::manual_seed(5);
    let w = Tensor::randn([40], DType::F32, g).parameter().named("w");
    let one = Generator::manual_seed(9);
    let mut drawn = one.share();
    let program = Program::trace([], |_| {
        let kept = w.try_dropout(0.5, true, &mut drawn)?;
        kept.try_sum_all()?.try_backward()?;
        Ok(vec![w.grad().expect("the loss depends on it")])
    })
    .unwrap();
    let mut validated = program.validated(Passes::default());
    let plain = Generator::manual_seed(9);
    let mut other = plain.share();
    for _ in 0..3 {
        let got = validated.run(&[]).unwrap()[0].to_f64_vec();
        let want = Tensor::ones([40]).try_dropout(0.5, true, &mut other).unwrap().to_f64_vec();
        assert_eq!(got, want);
    }
    assert!(validated.warnings().is_empty(), "{:?}", validated.warnings());
}

#[test]
fn a_pass_that_fails_is_left_out() {
    let failed: std::result::Result<(), String> =
        guarded(|| Err(chainrule_core::Error::argument("simplify", "no")));
    assert!(failed.unwrap_err().contains("no"));
    let warning = left_out("fused", "a panic").to_string();
    assert_eq!(warning, "the program is not fused, since that failed: a panic");
}

/// An error of the arguments is an error, and the next run is compared as the first.
#[test]
fn errors_stay_errors() {
    let x = Tensor::from([1.0f64, 2.0]);
    let i = Tensor::from([0i64, 1]);
    let program =
        Program::trace([("x", &x), ("i", &i)], |a| Ok(vec![a[0].try_index_select(0, &a[1])?]))
            .unwrap();
    let mut validated = program.validated(Passes::default());
    assert!(validated.run(&[&x]).is_err());
    assert!(validated.run(&[&x, &Tensor::from([0i64, 7])]).is_err());
    assert!(validated.is_pending());
    assert_eq!(validated.run(&[&x, &i]).unwrap()[0].to_vec::<f64>(), [1.0, 2.0]);
    assert!(!validated.is_pending() && validated.warnings().is_empty());
}

/// Few runs are enough where they part nothing and no difference is put down to the inputs alone:
/// for the names model, whose bias before a normalisation has a gradient of rounding alone.
#[test]
fn a_usual_step_is_validated_by_few_runs() {
    use super::compare::{agree_by_size, apart, surely_agree};
    use super::twin::{Runs, run_beside};
    for dtype in [DType::F32, DType::F64] {
        let (program, _, x, y) = crate::tests::names::chunked_program(dtype);
        let plain = program.without_dead_code();
        let simple = plain.optimized().simplified().unwrap().program;
        let new = twin::run(&simple, &plain.cells, &[&x, &y]).unwrap();
        let of = |runs| run_beside(&plain, &[&x, &y], runs).unwrap();
        assert!(!surely_agree(&new, &of(Runs::Plain).plain), "{dtype:?}");
        for runs in [Runs::Few, Runs::All] {
            let twin = of(runs);
            let agree = agree_by_size(&new, &twin) && apart(&new, &twin).is_none();
            assert!(agree, "{dtype:?}, {runs:?}");
            let wide = usize::from(twin.wide.is_some());
            let count = wide + twin.moved.len() + twin.stepped.len();
            let most = if runs == Runs::All { 10 } else { 2 };
            assert!(count <= most, "{dtype:?}, {runs:?}: {count}");
        }
        let (rest, noise): (Vec<_>, Vec<_>) = new
            .iter()
            .zip(of(Runs::Plain).plain)
            .partition(|(new, _)| twin::numbers(new).iter().any(|x| *x != 0.0));
        let agree = |(new, plain): (&std::sync::Arc<_>, _)| {
            surely_agree(std::slice::from_ref(new), &[plain])
        };
        assert!(noise.len() == 1 && rest.into_iter().all(agree), "{dtype:?}");
    }
}
