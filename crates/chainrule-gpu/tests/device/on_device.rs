//! Programs run by a device, beside the processor: WebGPU where there is an adapter, such as Mesa's
//! lavapipe, or the device that `CHAINRULE_DEVICE` names.

use chainrule::nn::{Layer, Linear, Module, Sequential, Tanh};
use chainrule::optim::{AdamW, Clipped, Optimizer};
use chainrule::program::{Program, Simplify, compile};
use chainrule::{DType, Generator, Tensor};
use chainrule_core::ops::table;
use chainrule_core::tensor::node::Source;
use chainrule_gpu::{Device, DeviceName, DeviceSession, Dialect};
use chainrule_lab::formulas::formula;

use crate::common::{Case, apart, cells};

/// Random programs on the device; `CHAINRULE_FUZZ` sets another number.
const PROGRAMS: u64 = 100;

/// A session on the device; a word where there is none.
pub fn session() -> Option<DeviceSession> {
    opened().map(DeviceSession::new)
}

/// The device.
pub fn opened() -> Option<Box<dyn Device>> {
    let name = std::env::var("CHAINRULE_DEVICE").unwrap_or_else(|_| "wgpu:0".to_string());
    match name.parse::<DeviceName>().unwrap().open() {
        Ok(device) => {
            println!("on {}", device.describe());
            Some(device)
        }
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// A new step of a model, with parameters of its own.
pub fn step(name: &str) -> Program {
    let traced = formula(name).unwrap().trace().unwrap();
    traced.explain_with(name, &Simplify::new()).unwrap().simplified.program
}

pub fn batch(program: &Program, g: &mut Generator) -> Vec<Tensor> {
    let one = |id: &chainrule_program::Id| {
        let meta = program.infos()[id.index()].meta;
        match meta.dtype {
            DType::I64 => Tensor::randint(0, 5, meta.shape, g),
            dtype => Tensor::randn(meta.shape, dtype, g),
        }
    };
    program.arguments().iter().map(one).collect()
}

/// A sample of each op that the language admits, with its backward pass.
fn samples(dialect: Dialect) -> Vec<Case> {
    let mut out = Vec::new();
    for entry in table() {
        let samples = (entry.samples)(&mut Generator::manual_seed(5));
        let fits = |s: &&chainrule_core::ops::Sample| s.inputs.iter().all(|x| x.numel() > 0);
        for sample in samples.iter().filter(fits).take(1) {
            let inputs: Vec<_> =
                sample.inputs.iter().map(|x| crate::samples::in_dtype(x, DType::F32)).collect();
            let call = &*sample.call;
            let f = |x: &[Tensor]| crate::samples::with_gradients(&|x| call(x), x);
            if let Ok(Some(mut case)) = crate::samples::case(&f, &inputs, DType::F32, dialect) {
                case.name = format!("{}, {}", entry.name, sample.note);
                out.push(case);
            }
        }
    }
    out
}

/// Runs all cases, and says which are wrong and by how much.
fn wrong(session: &mut DeviceSession, cases: &[Case]) -> Vec<String> {
    let mut out = Vec::new();
    for case in cases {
        let given: Vec<&Tensor> = case.inputs.iter().collect();
        let ran = session.load(&case.program).and_then(|at| {
            let got = session.run(at, &given)?;
            session.unload(at).map(|()| got)
        });
        let got = match ran {
            Ok(got) => got,
            Err(e) => {
                out.push(format!("{}: {e}", case.name));
                continue;
            }
        };
        for (i, (got, want)) in got.iter().zip(&case.want).enumerate() {
            let got = got.to_f64_vec();
            // Functions of WebGPU are off by some last bits: 2^-13 of the largest value, as the
            // language promises of exp and log near their hardest points.
            let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()).min(1e30));
            let allowed = case.within[i] + size / 8192.0;
            let worst = got.iter().zip(want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
            if got.len() != want.len() || worst > allowed {
                out.push(format!("{}: result {i} is off by {worst:e}, {allowed:e}", case.name));
            }
        }
    }
    out
}

#[test]
fn a_device_gives_the_same_values_of_ops() {
    let Some(mut session) = session() else { return };
    let dialect = session.device().dialect();
    let mut cases = samples(dialect);
    cases.extend(crate::long::cases(DType::F32, dialect));
    println!("{} cases", cases.len());
    assert!(cases.len() > 120, "{} cases", cases.len());
    let wrong = wrong(&mut session, &cases);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_device_gives_the_same_values_of_random_programs() {
    let Some(mut session) = session() else { return };
    let count = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok());
    let all = (0..count.unwrap_or(PROGRAMS)).map(|n| 2 * n + 1);
    let dialect = session.device().dialect();
    let cases: Vec<Case> = all.filter_map(|seed| crate::random::made(seed, dialect)).collect();
    println!("{} cases", cases.len());
    assert!(cases.len() > 80, "{} cases", cases.len());
    let wrong = wrong(&mut session, &cases);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A model trained for 200 steps, beside the processor.
fn trains(name: &str, session: &mut DeviceSession) {
    let (here, there) = (step(name), step(name));
    let at = session.load(&there).unwrap();
    let before = cells(&there);
    let mut g = Generator::manual_seed(3);
    let batches: Vec<Vec<Tensor>> = (0..4).map(|_| batch(&here, &mut g)).collect();
    let mut losses = Vec::new();
    for n in 0..200 {
        let given: Vec<&Tensor> = batches[n % 4].iter().collect();
        let want = here.run(&given).unwrap()[0].item();
        let got = session.run(at, &given).unwrap()[0].item();
        assert!((got - want).abs() <= 1e-3 * want.abs(), "{name}, {n}: {got} for {want}");
        losses.push(got);
    }
    println!("{name}: losses {} to {}", losses[0], losses[199]);
    assert!(losses[199] < 0.8 * losses[0], "{} after {}", losses[199], losses[0]);
    // Nothing was fetched but the losses.
    let same = |a: &Tensor, b: &Tensor| a.to_f64_vec() == b.to_f64_vec();
    let here_now = |i| Tensor::from_parts(there.leaf(i).value.here().clone(), Source::None);
    assert!(before.iter().enumerate().all(|(i, a)| same(a, &here_now(i))));
    let mut changed = 0;
    for ((a, b), old) in cells(&there).iter().zip(&cells(&here)).zip(&before) {
        let (a, b, old) = (a.to_f64_vec(), b.to_f64_vec(), old.to_f64_vec());
        let size = b.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
        let worst = a.iter().zip(&b).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
        assert!(worst <= 1e-2 * size, "{worst} of {size}");
        changed += usize::from(a != old);
    }
    assert!(changed >= 4, "{changed} cells changed");
    session.unload(at).unwrap();
}

/// The names model, or those that `CHAINRULE_MODELS` names.
#[test]
fn a_device_trains_as_the_processor_does() {
    let Some(mut session) = session() else { return };
    let models = std::env::var("CHAINRULE_MODELS").unwrap_or_else(|_| "names".to_string());
    models.split(',').for_each(|name| trains(name, &mut session));
}

/// Losses of 40 steps of a model with other batches each, and the cells at the end, as bits; so
/// many steps at once.
fn by_steps(name: &str, session: &mut DeviceSession, at_once: usize) -> Vec<Vec<u64>> {
    let program = step(name);
    let at = session.load(&program).unwrap();
    println!("{name}: one kernel for many steps: {}", session.is_persistent(at));
    let mut g = Generator::manual_seed(9);
    let batches: Vec<Vec<Tensor>> = (0..40).map(|_| batch(&program, &mut g)).collect();
    let mut out = Vec::new();
    let bits = |t: &Tensor| t.to_f64_vec().iter().map(|x| x.to_bits()).collect();
    for some in batches.chunks(at_once) {
        let given: Vec<Vec<&Tensor>> = some.iter().map(|b| b.iter().collect()).collect();
        let results = match at_once {
            1 => vec![session.run(at, &given[0]).unwrap()],
            _ => session.run_steps(at, &given).unwrap(),
        };
        assert_eq!(results.len(), some.len());
        out.extend(results.iter().flatten().map(bits));
    }
    session.unload(at).unwrap();
    out.extend(cells(&program).iter().map(bits));
    out
}

#[test]
fn many_steps_at_once_are_those_of_single_runs() {
    let Some(mut session) = session() else { return };
    for name in ["names", "softmax-ce", "batch-norm"] {
        let single = by_steps(name, &mut session, 1);
        assert!(by_steps(name, &mut session, 40) == single, "{name}, all at once");
        assert!(by_steps(name, &mut session, 7) == single, "{name}, 7 at once");
    }
    let x = Tensor::zeros([3]);
    let program = Program::trace([("x", &x)], |a: &[Tensor]| Ok(vec![&a[0] + 1.0]));
    let at = session.load(&program.unwrap()).unwrap();
    assert!(session.run_steps(at, &[]).unwrap().is_empty());
    let other = Tensor::zeros([4]);
    let error = session.run_steps(at, &[vec![&x], vec![&other]]).unwrap_err().to_string();
    assert!(error.contains("[4]") && error.contains("[3]"), "{error}");
}

/// Losses and outputs of a net whose steps are no single kernel, for other batches each, and the
/// cells at the end, as bits; so many steps at once, with or without copies beside the work.
fn copied(session: &mut DeviceSession, overlaps: bool, at_once: usize) -> Vec<Vec<u64>> {
    let mut g = Generator::manual_seed(4);
    let net = Sequential::new().with(Linear::new(256, 256, &mut g)).with(Tanh);
    let mut adamw = AdamW::new(net.parameters(), 0.01);
    adamw.zero_grad();
    let mut draw = |rows: usize| Tensor::randn([rows, 256], DType::F32, &mut g);
    let batches: Vec<[Tensor; 2]> = (0..40).map(|_| [draw(192), draw(192)]).collect();
    let [x, y] = &batches[0];
    let program = Program::trace([("x", x), ("y", y)], |b| {
        let out = net.try_forward(&b[0])?;
        let loss = out.try_mse(&b[1])?;
        loss.try_backward()?;
        adamw.step()?;
        Ok(vec![loss, out])
    });
    let program = program.unwrap();
    session.set_overlap(overlaps);
    let at = session.load(&program).unwrap();
    assert!(!session.is_persistent(at));
    let bits = |t: &Tensor| t.to_f64_vec().iter().map(|x| x.to_bits()).collect();
    let mut out: Vec<Vec<u64>> = Vec::new();
    for some in batches.chunks(at_once) {
        let given: Vec<Vec<&Tensor>> = some.iter().map(|b| b.iter().collect()).collect();
        let results = session.run_steps(at, &given).unwrap();
        assert_eq!(results.len(), some.len());
        out.extend(results.iter().flatten().map(bits));
    }
    session.unload(at).unwrap();
    out.extend(cells(&program).iter().map(bits));
    out
}

#[test]
fn copies_beside_the_work_change_no_bit() {
    let Some(mut session) = session() else { return };
    let plain = copied(&mut session, false, 1);
    assert!(plain.len() > 80 && plain[0] != plain[2]);
    // 16 steps are one graph, and the rest single ones.
    for at_once in [1, 5, 16, 40] {
        assert!(copied(&mut session, true, at_once) == plain, "{at_once} at once");
    }
}

/// Rows that registers hold and longer ones, of sizes that are multiples and others, and columns.
#[test]
fn large_values_are_those_of_the_processor() {
    let Some(mut session) = session() else { return };
    let mut g = Generator::manual_seed(6);
    for (height, width) in [(300, 768), (301, 501), (40, 9001), (16, 16384), (4100, 37)] {
        let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
        let inputs = [draw(&[height, width]), draw(&[width]), draw(&[width])];
        let f =
            |x: &[Tensor]| crate::samples::with_gradients(&|x: &[Tensor]| crate::wide::rows(x), x);
        let names = ["x", "w", "b"].into_iter().zip(&inputs);
        let program = Program::trace(names, f).unwrap();
        let at = session.load(&program).unwrap();
        let given: Vec<&Tensor> = inputs.iter().collect();
        let (got, want) = (session.run(at, &given).unwrap(), program.run(&given).unwrap());
        for (got, want) in got.iter().zip(&want) {
            let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
            let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let worst = got.iter().zip(&want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
            assert!(worst <= 2e-4 * size, "[{height}, {width}]: {worst} of {size}");
        }
        session.unload(at).unwrap();
    }
}

/// Losses of a small net by AdamW, with gradients that are clipped; between the runs `outside` may
/// change things. On a device, if there is one.
fn trained(
    session: &mut Option<DeviceSession>,
    clip: f64,
    outside: impl Fn(usize, &Sequential, &mut dyn Optimizer),
) -> Vec<f64> {
    let mut g = Generator::manual_seed(1);
    let first = Linear::new(3, 8, &mut g);
    let net = Sequential::new().with(first).with(Tanh).with(Linear::new(8, 1, &mut g));
    let adamw = AdamW::new(net.parameters(), 0.01);
    let mut clipped = Clipped::try_new(Box::new(adamw), clip).unwrap();
    let (x, y) = (Tensor::randn([16, 3], DType::F32, &mut g), Tensor::ones([16, 1]));
    let mut step =
        compile(&net, &mut clipped, ["x", "y"], |b| net.try_forward(&b[0])?.try_mse(&b[1]));
    let program = step.trace(&[&x, &y]).unwrap();
    let at = session.as_mut().map(|s| s.load(&program).unwrap());
    let mut losses = Vec::new();
    for n in 0..12 {
        let loss = match session {
            Some(session) => {
                let loss = session.run(at.unwrap(), &[&x, &y]).unwrap()[0].item();
                if n % 3 == 0 {
                    session.fetch().unwrap();
                }
                loss
            }
            None => program.run(&[&x, &y]).unwrap()[0].item(),
        };
        losses.push(loss);
        outside(n, &net, step.optimizer());
    }
    losses
}

#[test]
fn what_is_written_outside_is_seen_by_the_next_run() {
    let Some(session) = session() else { return };
    let outside = |n: usize, net: &Sequential, optimizer: &mut dyn Optimizer| {
        if n == 3 {
            optimizer.set_lr(0.1).unwrap();
        }
        if n == 6 {
            let weight = &net.parameters()[0];
            weight.try_set(&(weight.detach() * 0.5)).unwrap();
        }
    };
    let got = trained(&mut Some(session), 1e9, outside);
    let (want, plain) = (trained(&mut None, 1e9, outside), trained(&mut None, 1e9, |_, _, _| ()));
    // Losses are means of squares of the size of the first.
    let size = want[0];
    for (n, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!((got - want).abs() <= 1e-4 * size, "run {n}: {got} for {want}");
    }
    assert!((want[5] - plain[5]).abs() > 1e-3 && (want[7] - plain[7]).abs() > 1e-3);
}

#[test]
fn clipped_gradients_are_those_of_the_processor() {
    let Some(session) = session() else { return };
    let got = trained(&mut Some(session), 0.02, |_, _, _| ());
    let want = trained(&mut None, 0.02, |_, _, _| ());
    let free = trained(&mut None, 1e9, |_, _, _| ());
    for (n, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!((got - want).abs() <= 1e-4 * want.abs(), "run {n}: {got} for {want}");
    }
    assert!((want[11] - free[11]).abs() > 1e-3 * want[11], "{} {}", want[11], free[11]);
}

#[test]
fn the_first_run_is_compared_with_the_processor() {
    for name in ["names", "softmax-ce"] {
        let Some(mut session) = session() else { return };
        session.compare_first(true);
        let program = step(name);
        let batch = batch(&program, &mut Generator::manual_seed(3));
        let given: Vec<&Tensor> = batch.iter().collect();
        let at = session.load(&program).unwrap();
        let first = session.run(at, &given).unwrap()[0].item();
        // The step was done once.
        let (there, here) = (session.run(at, &given).unwrap()[0].item(), step(name));
        assert!((here.run(&given).unwrap()[0].item() - first).abs() <= 1e-4 * first.abs());
        let second = here.run(&given).unwrap()[0].item();
        assert!((there - second).abs() <= 1e-3 * second.abs(), "{name}: {there} for {second}");
    }
}

#[test]
fn two_runs_have_the_same_bits() {
    let losses = || Some(trained(&mut Some(session()?), 1.0, |_, _, _| ()));
    assert!(losses() == losses());
}

#[test]
fn errors_of_a_device_are_one_line() {
    let Some(mut session) = session() else { return };
    let said = |e: chainrule::Error| {
        let text = e.to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    let [cuda, wgpu] = ["cuda:99", "wgpu:99"].map(|n| n.parse::<DeviceName>().unwrap());
    let none = [cuda, wgpu].map(|name| name.open().err().map(said).unwrap());
    match session.device().dialect() {
        Dialect::Cuda => assert!(none[0].contains("no GPU of this number"), "{}", none[0]),
        Dialect::Wgsl => assert!(none[1].contains("there is no wgpu:99"), "{}", none[1]),
    }
    let traced =
        |x: &Tensor| Program::trace([("x", x)], |a: &[Tensor]| Ok(vec![&a[0] + 1.0])).unwrap();
    if session.device().dialect() == Dialect::Cuda {
        return;
    }
    let wide = said(session.load(&traced(&Tensor::zeros([2]).to_dtype(DType::F64))).unwrap_err());
    assert!(wide.contains("f64"), "{wide}");
    let whole = Tensor::from([1i64 << 40]);
    let program = Program::trace([("x", &whole)], |a: &[Tensor]| Ok(vec![a[0].try_abs()?]));
    let at = session.load(&program.unwrap()).unwrap();
    let beyond = said(session.run(at, &[&whole]).unwrap_err());
    assert!(beyond.contains("beyond the 32 bits"), "{beyond}");
    let x = Tensor::zeros([2]);
    let at = session.load(&traced(&x)).unwrap();
    let other = said(session.run(at, &[&Tensor::zeros([3])]).unwrap_err());
    assert!(other.contains("[3]") && other.contains("[2]"), "{other}");
    assert_eq!(session.run(at, &[&x]).unwrap()[0].to_vec::<f32>(), [1.0, 1.0]);
    session.unload(at).unwrap();
    assert!(said(session.run(at, &[&x]).unwrap_err()).contains("no program"));
}

#[test]
fn draws_go_on_from_run_to_run() {
    let Some(session) = session() else { return };
    let program = Program::trace([], |_: &[Tensor]| {
        Ok(vec![Tensor::try_rand([1000], DType::F32, &mut Generator::manual_seed(1))?])
    });
    let mut session = session.with_seed(5);
    let at = session.load(&program.unwrap()).unwrap();
    let mut draw = || session.run(at, &[]).unwrap()[0].to_vec::<f32>();
    let (a, b) = (draw(), draw());
    session.set_runs(0);
    let single: Vec<Vec<f32>> =
        (0..18).map(|_| session.run(at, &[]).unwrap()[0].to_vec()).collect();
    session.set_runs(0);
    let all = session.run_steps(at, &vec![vec![]; 18]).unwrap();
    let all: Vec<Vec<f32>> = all.iter().map(|r| r[0].to_vec()).collect();
    assert!(all == single && [&a, &b] == [&all[0], &all[1]]);
    assert!(a != b && a.iter().all(|x| (0.0..1.0).contains(x)));
    let mean = a.iter().sum::<f32>() / 1000.0;
    assert!((mean - 0.5).abs() < 0.05, "{mean}");
}
