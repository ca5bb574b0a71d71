//! Losses of steps whose products are TF32 and bf16, beside those of f32 on the processor: on a
//! device with a library of products, which `CHAINRULE_DEVICE` names.

use chainrule::nn::{Layer, Module};
use chainrule::optim::{AdamW, Optimizer};
use chainrule::program::{Program, Simplify};
use chainrule::{Generator, Tensor};
use chainrule_gpu::{DeviceSession, Epilogues, Precision};
use chainrule_lab::models::{Gpt, GptConfig};

/// Precisions and how far losses may be from those of f32, in parts of the first one.
const PRECISIONS: [(Precision, f64); 2] = [(Precision::Tf32, 0.005), (Precision::Bf16, 0.02)];

fn session(precision: Precision) -> Option<DeviceSession> {
    let mut session = crate::on_device::session()?;
    match session.set_precision(precision) {
        Ok(()) => Some(session),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// Losses of some steps, on a device or on the processor.
fn losses(
    program: &Program,
    session: Option<&mut DeviceSession>,
    batches: &[Vec<Tensor>],
    steps: usize,
) -> Vec<f64> {
    let given = |n: usize| batches[n % batches.len()].iter().collect::<Vec<_>>();
    match session {
        None => (0..steps).map(|n| program.run(&given(n)).unwrap()[0].item()).collect(),
        Some(session) => {
            let at = session.load(program).unwrap();
            (0..steps).map(|n| session.run(at, &given(n)).unwrap()[0].item()).collect()
        }
    }
}

/// Rows of symbols, and those that follow.
fn gpt2_batch(rows: usize) -> Vec<Tensor> {
    let mut g = Generator::manual_seed(5);
    let mut draw = || Tensor::try_randint(0, 50_257, [rows, 1024], &mut g).unwrap();
    vec![draw(), draw()]
}

/// A step of GPT-2 of 124M parameters.
fn gpt2(batch: &[Tensor]) -> Program {
    let (symbols, context) = (50_257, 1024);
    let config = GptConfig { symbols, context, layers: 12, heads: 12, width: 768, dropout: 0.0 };
    let model = Gpt::try_new(config, &mut Generator::manual_seed(0)).unwrap();
    let mut adamw = AdamW::new(model.parameters(), 5e-4);
    adamw.zero_grad();
    let program = Program::trace([("x", &batch[0]), ("y", &batch[1])], |b| {
        let logits = model.try_forward(&b[0])?.try_reshape([-1, symbols as i64])?;
        let loss = logits.try_cross_entropy(&b[1].try_flatten(0, -1)?)?;
        loss.try_backward()?;
        adamw.step()?;
        Ok(vec![loss])
    });
    program.unwrap().explain_with("gpt2", &Simplify::new()).unwrap().simplified.program
}

fn compare(name: &str, make: &dyn Fn() -> Program, batches: &[Vec<Tensor>], steps: usize) {
    let Some(first) = session(Precision::Tf32) else { return };
    drop(first);
    let want = losses(&make(), None, batches, steps);
    for (precision, part) in PRECISIONS {
        let Some(mut session) = session(precision) else { return };
        let got = losses(&make(), Some(&mut session), batches, steps);
        let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let (last, first) = (steps - 1, want[0]);
        println!("{name}, {precision}: {first} to {} for {}, worst {worst}", got[last], want[last]);
        let wrong = format!("{name} in {precision}: {got:?} for {want:?}");
        assert!(got.iter().all(|x| x.is_finite()) && worst <= part * first, "{wrong}");
    }
}

#[test]
fn losses_of_a_small_gpt_are_those_of_f32() {
    let make = || crate::on_device::step("gpt-small");
    let mut g = Generator::manual_seed(3);
    let program = make();
    let batches: Vec<_> = (0..4).map(|_| crate::on_device::batch(&program, &mut g)).collect();
    compare("gpt-small", &make, &batches, 200);
}

/// GPT-2 of 124M parameters on a batch of one: asked for by `CHAINRULE_GPT2`, as the processor
/// takes seconds for a step.
#[test]
fn losses_of_gpt2_are_those_of_f32() {
    if std::env::var_os("CHAINRULE_GPT2").is_none() {
        return;
    }
    let batch = gpt2_batch(1);
    let make = || gpt2(&batch);
    compare("gpt2", &make, std::slice::from_ref(&batch), 5);
}

/// Epilogues of the library that a test looks at, with their names.
fn kinds() -> [(&'static str, Epilogues); 5] {
    let only = |bias, added, gelu| Epilogues { bias, added, gelu };
    [
        ("none", Epilogues::NONE),
        ("bias", only(true, false, false)),
        ("bias and sum", only(true, true, false)),
        ("bias and gelu", only(true, false, true)),
        ("all", Epilogues::ALL),
    ]
}

#[test]
fn losses_with_epilogues_are_those_without() {
    // A device without a library has none of them.
    if session(Precision::Tf32).is_none() {
        return;
    }
    let mut g = Generator::manual_seed(3);
    let program = crate::on_device::step("gpt-small");
    let batches: Vec<_> = (0..4).map(|_| crate::on_device::batch(&program, &mut g)).collect();
    let bounds = [(Precision::F32, 0.001), PRECISIONS[0], PRECISIONS[1]];
    for (precision, part) in bounds {
        let of = |epilogues: Epilogues| {
            let mut session = session(precision)?;
            session.set_epilogues(epilogues);
            let program = crate::on_device::step("gpt-small");
            Some(losses(&program, Some(&mut session), &batches, 100))
        };
        let Some(want) = of(Epilogues::NONE) else { return };
        for (name, epilogues) in kinds() {
            let got = of(epilogues).unwrap();
            let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            println!("gpt-small, {precision}, {name}: {} for {}, worst {worst}", got[99], want[99]);
            assert!(worst <= part * want[0], "{name} in {precision}: {got:?} for {want:?}");
            assert!(of(epilogues).unwrap() == got, "{name} in {precision} twice");
        }
    }
}

/// The names of the products that a library ends with more than the product.
fn finished(session: &mut DeviceSession, at: usize) -> Vec<String> {
    let all = session.measure(at).unwrap().into_iter().map(|(name, _)| name);
    all.filter(|name| name.contains(" with ")).collect()
}

/// Milliseconds of a step of GPT-2 with each of the epilogues, printed: asked for by
/// `CHAINRULE_GPT2`.
#[test]
fn times_of_epilogues_are_told() {
    if std::env::var_os("CHAINRULE_GPT2").is_none() {
        return;
    }
    let batch = gpt2_batch(4);
    let given: Vec<&Tensor> = batch.iter().collect();
    for precision in [Precision::Bf16, Precision::Tf32] {
        for (name, epilogues) in kinds() {
            let Some(mut session) = session(precision) else { return };
            session.set_epilogues(epilogues);
            let at = session.load(&gpt2(&batch)).unwrap();
            let mut times = Vec::new();
            for group in 0..6 {
                let began = std::time::Instant::now();
                (0..10).for_each(|_| session.start(at, &given).unwrap());
                session.wait().unwrap();
                if group > 0 {
                    times.push(began.elapsed().as_secs_f64() * 100.0);
                }
            }
            times.sort_by(f64::total_cmp);
            let (count, best) = (finished(&mut session, at).len(), times[0]);
            println!("gpt2, {precision}, {name}: {best:.2} ms, {count} products with epilogues");
        }
    }
}
