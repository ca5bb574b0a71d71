//! Programs run by a device, beside the processor: WebGPU where there is an adapter, such as Mesa's
//! lavapipe.

use chainrule::program::{Program, Simplify};
use chainrule::{DType, Generator, Tensor};
use chainrule_gpu::{DeviceName, DeviceSession};
use chainrule_lab::formulas::formula;

use crate::common::{apart, cells};

/// A session on the first device of WebGPU; a word where there is none.
fn session() -> Option<DeviceSession> {
    match DeviceName::Wgpu(0).open() {
        Ok(device) => {
            println!("on {}", device.describe());
            Some(DeviceSession::new(device))
        }
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// A new step of a model, with parameters of its own.
fn step(name: &str) -> Program {
    let traced = formula(name).unwrap().trace().unwrap();
    traced.explain_with(name, &Simplify::new()).unwrap().simplified.program
}

/// A batch for a program: random numbers, and classes that follow from the first.
fn batch(program: &Program, g: &mut Generator) -> Vec<Tensor> {
    let one = |id: &chainrule_program::Id| {
        let meta = program.infos()[id.index()].meta;
        match meta.dtype {
            DType::I64 => Tensor::randint(0, 5, meta.shape, g),
            dtype => Tensor::randn(meta.shape, dtype, g),
        }
    };
    program.arguments().iter().map(one).collect()
}

#[test]
fn two_hundred_steps_have_the_losses_of_the_processor() {
    let Some(mut session) = session() else { return };
    let (here, there) = (step("names"), step("names"));
    let at = session.load(&there).unwrap();
    let before = cells(&there);
    let mut g = Generator::manual_seed(3);
    let batches: Vec<Vec<Tensor>> = (0..4).map(|_| batch(&here, &mut g)).collect();
    let mut losses = Vec::new();
    for n in 0..200 {
        let given: Vec<&Tensor> = batches[n % 4].iter().collect();
        let want = here.run(&given).unwrap()[0].item();
        let got = session.run(at, &given).unwrap()[0].item();
        assert!((got - want).abs() <= 1e-3 * want.abs(), "step {n}: {got} for {want}");
        losses.push(got);
    }
    println!("losses {} to {}", losses[0], losses[199]);
    assert!(losses[199] < 0.8 * losses[0], "{} after {}", losses[199], losses[0]);
    // Nothing was fetched but the losses.
    let same = |a: &Tensor, b: &Tensor| a.to_f64_vec() == b.to_f64_vec();
    assert!(before.iter().zip(&cells(&there)).all(|(a, b)| same(a, b)));
    session.fetch().unwrap();
    let mut changed = 0;
    for ((a, b), old) in cells(&there).iter().zip(&cells(&here)).zip(&before) {
        let (a, b, old) = (a.to_f64_vec(), b.to_f64_vec(), old.to_f64_vec());
        let size = b.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
        let worst = a.iter().zip(&b).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
        assert!(worst <= 1e-2 * size, "{worst} of {size}");
        changed += usize::from(a != old);
    }
    assert!(changed >= 4, "{changed} cells changed");
}
