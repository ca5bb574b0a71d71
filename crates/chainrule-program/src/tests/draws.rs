//! Random numbers, and what a trace cannot follow.

use super::*;
use crate::Compiled;
use chainrule_core::autograd::{checkpoint, custom};

/// Draws of every kind.
fn drawn(g: &mut Generator) -> chainrule_core::Result<Vec<Tensor>> {
    let x = Tensor::try_randn([3, 20], DType::F32, g)?;
    let _unused = Tensor::try_rand([7], DType::F64, g)?;
    let order = Tensor::randperm(9, g);
    let picked = Tensor::try_randint(0, 20, [5], g)?;
    let kept = x.try_dropout(0.4, true, g)?;
    Ok(vec![kept.try_index_select(1, &picked)?, order, Tensor::try_randn([3], DType::F64, g)?])
}

#[test]
fn a_run_draws_what_the_eager_mode_would() {
    let (mut one, mut two) = (Generator::manual_seed(1), Generator::manual_seed(1));
    let program = Program::trace([], |_| drawn(&mut two)).unwrap();
    assert_eq!(one, two, "a trace draws nothing");
    for program in [&program, &program.optimized()] {
        for _ in 0..3 {
            let want = drawn(&mut one).unwrap();
            assert_eq!(difference(&program.run(&[]).unwrap(), &want), None);
        }
        // The two share one generator.
        assert_eq!(difference(&drawn(&mut one).unwrap(), &drawn(&mut two).unwrap()), None);
    }
}

#[test]
fn a_generator_made_inside_begins_anew_in_each_run() {
    let f = |_: &[Tensor]| drawn(&mut Generator::manual_seed(8));
    let program = Program::trace([], f).unwrap();
    for _ in 0..2 {
        assert_eq!(difference(&program.run(&[]).unwrap(), &f(&[]).unwrap()), None);
    }
}

fn panics(f: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn plain_random_numbers_in_a_trace_are_an_error() {
    let mut g = Generator::manual_seed(1);
    let text = panics(|| {
        let _ = Program::trace([], |_| Ok(vec![Tensor::scalar(g.random_u32() as i64)]));
    });
    assert!(text.contains("plain numbers inside a trace") && text.contains("randint"), "{text}");
    // The trace that failed left nothing behind.
    g.random_u32();
    assert!(!crate::tensor::log::is_on());
}

#[test]
fn decisions_by_elements_are_an_error_that_says_what_to_use() {
    let x = Tensor::from([1.0f32, -2.0]);
    let w = Tensor::from([1.0f32, 2.0]).parameter().named("w");
    let trace = |f: &dyn Fn(&Tensor) -> chainrule_core::Result<Tensor>| {
        let text = Program::trace([("x", &x)], |a| Ok(vec![f(&a[0])?])).unwrap_err().to_string();
        assert!(text.contains("inside a trace") && text.contains("where_"), "{text}");
    };
    trace(&|x| if x.sum_all().try_item()? > 0.0 { Ok(x.clone()) } else { x.try_neg() });
    trace(&|x| Ok(Tensor::from(x.try_to_vec::<f32>()?)));
    trace(&|_| Ok(Tensor::from(w.try_to_vec::<f32>()?)));
    trace(&|x| x.try_nonzero());
    trace(&|x| Tensor::from([7i64, 8]).try_floor_divide(x.try_to_dtype(DType::I64)?));
    trace(&|x| Tensor::from([0i64, 1]).try_bincount(Some(x), 0));
    trace(&|x| x.try_masked_select(&x.try_gt(0.0)?));
    let text = panics(|| {
        let _ = Program::trace([("x", &x)], |a| {
            Ok(vec![Tensor::scalar(a[0].named("score").sum_all().item())])
        });
    });
    assert!(text.contains("item: the elements of a f32 []"), "{text}");
    // A value that depends on no input can be read.
    let c = Tensor::from([2.0f32]);
    let program = Program::trace([("x", &x)], |a| Ok(vec![a[0].try_mul(c.item())?])).unwrap();
    assert_eq!(program.run(&[&x]).unwrap()[0].to_vec::<f32>(), [2.0, -4.0]);
}

#[test]
fn traces_do_not_nest_and_old_gradients_are_an_error() {
    let x = Tensor::from([1.0f32]);
    let inner = |a: &[Tensor]| Program::trace([("x", &a[0])], |b| Ok(b.to_vec())).map(|_| vec![]);
    assert!(
        Program::trace([("x", &x)], inner).unwrap_err().to_string().contains("already going on")
    );
    let identity = Program::trace([("x", &x)], |a| Ok(a.to_vec())).unwrap();
    let error = Program::trace([("x", &x)], |a| identity.run(&[&a[0]])).unwrap_err().to_string();
    assert!(error.contains("run inside a trace"), "{error}");
    let w = x.parameter();
    (&w * 2.0).sum_all().backward();
    let step = |a: &[Tensor]| {
        (&w * &a[0]).sum_all().try_backward()?;
        Ok(vec![w.grad().unwrap()])
    };
    let text = Program::trace([("x", &x)], step).unwrap_err().to_string();
    assert!(text.contains("zero_grad"), "{text}");
    assert_eq!(w.grad().unwrap().item(), 2.0, "it is as it was");
    w.zero_grad();
    assert!(Program::trace([("x", &x)], step).is_ok() && w.grad().is_none());
}

#[test]
fn custom_ops_and_checkpoints_are_seen_through() {
    let gate = custom(
        "gate",
        |x| x[0].try_mul(&x[1].try_tanh()?),
        |ctx, g| {
            let (a, t) = (&ctx.inputs()[0], ctx.inputs()[1].try_tanh()?);
            Ok(vec![Some(g * &t), Some(g * a * (1.0 - &t * &t))])
        },
    );
    let w = Tensor::from([0.5f64, 1.5, -1.0]).parameter();
    let f = |x: &[Tensor]| {
        let (w, scaled) = (w.clone(), &x[0] * 3.0);
        let y = gate.apply(&[&x[0], &w])?;
        checkpoint(move |y| Ok((&y[0] * &w + &scaled).tanh()), &[&y])
    };
    let draw = |seed| Tensor::randn([3], DType::F64, &mut Generator::manual_seed(seed));
    let (a, b) = (draw(1), draw(2));
    let g = |x: &[Tensor]| {
        w.zero_grad();
        let mut out = with_gradients(f, x)?;
        out.push(w.try_grad()?);
        Ok(out)
    };
    w.zero_grad();
    let program = Program::trace([("a", &a)], g).unwrap();
    let want = g(std::slice::from_ref(&b)).unwrap();
    assert_eq!(difference(&program.run(&[&b]).unwrap(), &want), None);
    assert!(program.lines().all(|l| l.op() != "gate" && l.op() != "checkpoint"));
}

#[test]
fn a_compiled_function_keeps_a_program_for_each_shape() {
    let mut f = Compiled::new(["x"], |a: &[Tensor]| Ok(vec![a[0].exp().sum_all()]));
    for n in [2, 3, 2, 3] {
        let x = Tensor::ones([n]);
        assert_eq!(bits(&f.run(&[&x]).unwrap()[0]), bits(&x.exp().sum_all()));
    }
    assert_eq!((f.programs().len(), f.retraces().len()), (2, 1));
}
