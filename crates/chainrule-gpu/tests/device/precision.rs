//! Losses of steps whose products are TF32 and bf16, beside those of f32 on the processor: on a
//! device with a library of products, which `CHAINRULE_DEVICE` names.

use chainrule::nn::{Layer, Module};
use chainrule::optim::{AdamW, Optimizer};
use chainrule::program::{Program, Simplify};
use chainrule::{Generator, Tensor};
use chainrule_gpu::{DeviceSession, Precision};
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
    let (symbols, context) = (50_257, 1024);
    let config = GptConfig { symbols, context, layers: 12, heads: 12, width: 768, dropout: 0.0 };
    let mut g = Generator::manual_seed(5);
    let mut draw = || Tensor::try_randint(0, symbols as i64, [1, context], &mut g).unwrap();
    let batch = vec![draw(), draw()];
    let make = || {
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
    };
    compare("gpt2", &make, std::slice::from_ref(&batch), 5);
}
