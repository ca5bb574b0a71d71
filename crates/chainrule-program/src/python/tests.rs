//! Scripts against the eager mode: all of them run in one Python.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::nn::{Layer, Module};
use crate::ops::table;
use crate::optim::{Muon, Sgd};
use crate::tensor::node::Source;
use crate::tests::names::chunked_program;
use crate::tests::training::{noisy, optimizers};
use crate::tests::with_gradients;
use crate::{Library, Program, compile};
use chainrule_core::{DType, Generator, Tensor, try_autocast};
use chainrule_lab::models::DigitsMlp;

/// A script, what it is called with, and what it must give.
struct ScriptCase {
    name: String,
    script: String,
    arguments: Vec<(String, Tensor)>,
    draws: Vec<(String, Tensor)>,
    outputs: Vec<Tensor>,
    new: Vec<(String, Tensor)>,
    library: Library,
    /// Tolerance of a result, relative to the norm.
    tolerance: f64,
}

/// A tensor as JSON.
fn json(t: &Tensor) -> String {
    let number = |x: f64| match x {
        x if x.is_nan() => "NaN".to_string(),
        x if x.is_infinite() && x > 0.0 => "Infinity".to_string(),
        x if x.is_infinite() => "-Infinity".to_string(),
        x => format!("{x:?}"),
    };
    let numbers: Vec<String> = match t.dtype() {
        DType::I64 => t.to_vec::<i64>().iter().map(i64::to_string).collect(),
        _ => t.to_f64_vec().into_iter().map(number).collect(),
    };
    let dtype = super::values::dtype(t.dtype()).trim_start_matches("np.");
    format!(
        "{{\"dtype\": \"{dtype}\", \"shape\": {:?}, \"data\": [{}]}}",
        t.shape().to_vec(),
        numbers.join(", ")
    )
}

impl ScriptCase {
    fn json(&self) -> String {
        let map = |pairs: &[(String, Tensor)]| {
            let pairs = pairs.iter().map(|(k, t)| format!("{k:?}: {}", json(t)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        };
        let outputs: Vec<String> = self.outputs.iter().map(json).collect();
        let script = self.script.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!(
            "{{\"name\": {:?}, \"script\": \"{script}\", \"arguments\": {}, \"draws\": {}, \"outputs\": [{}], \"new\": {}, \"tolerance\": {:?}}}\n",
            self.name,
            map(&self.arguments),
            map(&self.draws),
            outputs.join(", "),
            map(&self.new),
            self.tolerance
        )
    }
}

/// Python with NumPy and the library, if there is one: `CHAINRULE_PYTHON`, or else `python3`.
fn python(library: Library) -> Option<String> {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let own = word(library);
    let version = format!("import {own}, numpy; assert int(numpy.__version__.split('.')[0]) >= 2");
    let found = Command::new(&python).args(["-c", &version]).stderr(Stdio::null()).status();
    match found.is_ok_and(|status| status.success()) {
        true => Some(python),
        false => {
            println!("{python} with {library} is not there: its scripts are not run");
            None
        }
    }
}

fn word(library: Library) -> &'static str {
    Library::ALL.iter().find(|(_, own)| *own == library).map_or("", |(word, _)| word)
}

/// Runs the cases; what is wrong.
fn failures(cases: &[ScriptCase]) -> String {
    let library = cases[0].library;
    let Some(python) = python(library) else { return String::new() };
    if let Ok(folder) = std::env::var("CHAINRULE_KEEP_SCRIPTS") {
        let all: String = cases.iter().map(ScriptCase::json).collect();
        std::fs::write(format!("{folder}/{}, {library}.json", cases[0].name), all).unwrap();
    }
    let mut child = Command::new(python)
        .args(["-c", include_str!("check.py"), word(library)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was there a moment ago");
    let mut stdin = child.stdin.take().expect("piped");
    let all: String = cases.iter().map(ScriptCase::json).collect();
    let writer = std::thread::spawn(move || stdin.write_all(all.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads everything");
    assert!(output.status.success(), "the checker failed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names of the results of random draws.
fn drawn(program: &Program) -> Vec<String> {
    let draws = ["rand", "randn", "randint", "bernoulli", "randperm", "seed"];
    let lines = program.lines().filter(|l| draws.contains(&l.op()));
    lines.map(|l| l.name().to_string()).collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("x{i}")).collect()
}

/// The sample of an op with its gradients, by a script.
fn sample_case(
    name: String,
    call: &dyn Fn(&[Tensor]) -> chainrule_core::Result<Tensor>,
    inputs: &[Tensor],
    (tolerance, library): (f64, Library),
) -> Result<ScriptCase, String> {
    let names = names(inputs.len());
    let arguments = names.iter().map(String::as_str).zip(inputs);
    let program = Program::trace(arguments, |x| with_gradients(call, x));
    let program = program.map_err(|e| e.to_string())?.optimized();
    let script = program.to_python_with(library).map_err(|e| format!("{e}\n{program}"))?;
    let drawn = drawn(&program);
    let count = program.outputs.len();
    let named: Vec<&str> = drawn.iter().map(String::as_str).collect();
    let program = program.with_outputs(&named).map_err(|e| e.to_string())?;
    let given: Vec<&Tensor> = inputs.iter().collect();
    let mut outputs = program.run(&given).map_err(|e| e.to_string())?;
    let draws = drawn.into_iter().zip(outputs.split_off(count)).collect();
    let arguments = names.into_iter().zip(inputs.iter().cloned()).collect();
    Ok(ScriptCase { name, script, arguments, draws, outputs, new: Vec::new(), library, tolerance })
}

/// Ops that cannot be traced.
const BY_ELEMENTS: [&str; 2] = ["histogram", "unique"];

fn cases(dtype: DType, library: Library) -> (Vec<ScriptCase>, Vec<String>) {
    let (mut cases, mut failures) = (Vec::new(), Vec::new());
    for entry in table().filter(|e| !BY_ELEMENTS.contains(&e.name)) {
        for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
            let cast = |x: &Tensor| match x.dtype() {
                DType::F64 => x.to_dtype(dtype),
                _ => x.clone(),
            };
            let inputs: Vec<Tensor> = sample.inputs.iter().map(cast).collect();
            let tolerance = if dtype == DType::F64 { 1e-12 } else { 2e-5 };
            let name = format!("{} ({}), {dtype}", entry.name, sample.note);
            match sample_case(name.clone(), &*sample.call, &inputs, (tolerance, library)) {
                Ok(case) => cases.push(case),
                Err(why) => failures.push(format!("{name}: {why}")),
            }
        }
    }
    (cases, failures)
}

#[test]
fn every_op_has_a_numpy_form_that_gives_the_same() {
    for dtype in [DType::F64, DType::F32] {
        let (cases, unwritten) = cases(dtype, Library::Numpy);
        assert!(unwritten.is_empty(), "{} failures\n{}", unwritten.len(), unwritten.join("\n"));
        let wrong = failures(&cases);
        assert!(wrong.is_empty(), "{} failures\n{wrong}", wrong.lines().count());
    }
}

/// Compares the first samples of each op, as many as `samples`.
fn the_forms_give_the_same(library: Library, samples: usize) {
    let (mut cases, unwritten) = cases(DType::F64, library);
    let mut seen: HashMap<String, usize> = HashMap::new();
    cases.retain(|case| {
        let op = case.name.split(" (").next().unwrap_or_default().to_string();
        let count = seen.entry(op).or_default();
        *count += 1;
        *count <= samples
    });
    assert!(unwritten.is_empty(), "{} failures\n{}", unwritten.len(), unwritten.join("\n"));
    let wrong = failures(&cases);
    assert!(wrong.is_empty(), "{} failures\n{wrong}", wrong.lines().count());
}

#[test]
fn every_op_gives_the_same_in_pytorch() {
    the_forms_give_the_same(Library::Torch, usize::MAX);
}

#[test]
fn every_op_gives_the_same_in_jax() {
    the_forms_give_the_same(Library::Jax, 1);
}

#[test]
#[ignore = "JAX compiles each function for each shape, which takes minutes"]
fn every_sample_gives_the_same_in_jax() {
    the_forms_give_the_same(Library::Jax, usize::MAX);
}

/// Ops whose products take rounded operands under `autocast`.
const ROUNDED: [&str; 5] =
    ["matmul", "linear", "conv1d, conv2d", "conv_transpose1d, conv_transpose2d", "attention"];

#[test]
fn products_on_bf16_are_the_same_in_each_library() {
    for (_, library) in Library::ALL {
        let mut cases = Vec::new();
        for entry in table().filter(|e| ROUNDED.contains(&e.name)) {
            for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
                let inputs: Vec<Tensor> =
                    sample.inputs.iter().map(|x| x.to_dtype(DType::F32)).collect();
                let call = |x: &[Tensor]| try_autocast(DType::BF16, || (sample.call)(x))?;
                let name = format!("{} ({}) on bf16", entry.name, sample.note);
                // An exponential between two numbers of bf16 may be rounded to the other one.
                let tolerance = if entry.name == "attention" { 4e-3 } else { 2e-5 };
                let case = sample_case(name.clone(), &call, &inputs, (tolerance, library)).unwrap();
                assert!(case.script.contains("_bf16("), "{name}: {}", case.script);
                cases.push(case);
            }
        }
        if library == Library::Jax {
            // Each function is compiled for each shape.
            cases = cases.into_iter().step_by(5).collect();
        }
        let wrong = failures(&cases);
        assert!(wrong.is_empty(), "{library}: {} failures\n{wrong}", wrong.lines().count());
    }
}

/// A step of training by a script: the outputs, and what has changed.
fn step_case(
    name: String,
    program: Program,
    batch: &[(&str, Tensor)],
    (tolerance, library): (f64, Library),
) -> ScriptCase {
    let script = program.to_python_with(library).unwrap();
    let cells = |changed: bool| -> Vec<(String, Tensor)> {
        let cells = program.cells.iter().filter(|c| !changed || c.write.is_some());
        let value = |c: &crate::Cell| c.leaf.now();
        let tensor = |c| Tensor::from_parts(value(c), Source::None).try_mul(1).unwrap();
        cells.map(|c| (program.name(c.read).to_string(), tensor(c))).collect()
    };
    let mut arguments = cells(false);
    arguments.extend(batch.iter().map(|(name, t)| (name.to_string(), t.clone())));
    let (drawn, count) = (drawn(&program), program.outputs.len());
    let given: Vec<&Tensor> = batch.iter().map(|(_, t)| t).collect();
    let asked: Vec<&str> = drawn.iter().map(String::as_str).collect();
    let mut outputs = program.run_with(&given, &asked).unwrap();
    let draws = drawn.into_iter().zip(outputs.split_off(count)).collect();
    ScriptCase { name, script, arguments, draws, outputs, new: cells(true), library, tolerance }
}

/// Steps of every optimizer in f64, the first and the second.
fn optimizer_cases(library: Library) -> Vec<ScriptCase> {
    let mut out = Vec::new();
    let mut all = optimizers();
    all.push(|p| Box::new(Muon::new(p, 0.02)));
    for (k, make) in all.into_iter().enumerate() {
        let g = &mut Generator::manual_seed(3);
        let mut draw = |shape: &[usize]| Tensor::randn(shape, DType::F64, g);
        let [a, b] = [draw(&[4, 3]), draw(&[3, 5])].map(|t| t.parameter());
        let x = draw(&[6, 4]);
        let mut optimizer = make(vec![a.clone(), b.clone()]);
        for step in 0..2 {
            optimizer.zero_grad();
            let program = Program::trace([("x", &x)], |args| {
                let loss = args[0].try_matmul(&a)?.try_tanh()?.try_matmul(&b)?.try_square()?;
                let loss = loss.try_mean_all()?;
                loss.try_backward()?;
                optimizer.step()?;
                Ok(vec![loss])
            });
            let program = program.unwrap().optimized();
            let name = format!("optimizer {k}, step {step}");
            out.push(step_case(name, program, &[("x", x.clone())], (1e-12, library)));
        }
    }
    out
}

/// Steps of models in f32, with statistics and random numbers.
fn model_cases(library: Library) -> Vec<ScriptCase> {
    let mut out = Vec::new();
    let g = &mut Generator::manual_seed(3);
    let noisy = noisy();
    // Not Adam, which makes large steps of the rounding in a gradient that is zero.
    let mut first = Sgd::new(noisy.parameters(), 0.1);
    let batch =
        [("x", Tensor::randn([6, 5], DType::F32, g)), ("y", Tensor::randn([6, 1], DType::F32, g))];
    let given = [&batch[0].1, &batch[1].1];
    let program =
        compile(&noisy, &mut first, ["x", "y"], |b| noisy.try_forward(&b[0])?.try_mse(&b[1]))
            .trace(&given);
    out.push(step_case(
        "dropout and statistics".to_string(),
        program.unwrap(),
        &batch,
        (1e-5, library),
    ));
    let digits = DigitsMlp::try_new(&[20, 12], g).unwrap();
    let mut sgd = Sgd::new(digits.parameters(), 0.1);
    let batch =
        [("x", Tensor::rand([16, 784], DType::F32, g)), ("y", Tensor::randint(0, 10, [16], g))];
    let given = [&batch[0].1, &batch[1].1];
    let program = compile(&digits, &mut sgd, ["x", "y"], |b| {
        digits.try_forward(&b[0])?.try_cross_entropy(&b[1])
    })
    .trace(&given);
    out.push(step_case("digits".to_string(), program.unwrap(), &batch, (1e-5, library)));
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-5)] {
        let (program, _, x, y) = chunked_program(dtype);
        let batch = [("x", x), ("y", y)];
        out.push(step_case(format!("names, {dtype}"), program, &batch, (tolerance, library)));
    }
    out
}

#[test]
fn steps_of_training_are_the_same_in_each_library() {
    for (_, library) in Library::ALL {
        let mut cases = optimizer_cases(library);
        cases.extend(model_cases(library));
        let wrong = failures(&cases);
        assert!(wrong.is_empty(), "{library}: {} failures\n{wrong}", wrong.lines().count());
    }
}

/// The part of a script that runs by itself.
#[test]
fn a_script_runs_on_its_own() {
    for (_, library) in Library::ALL {
        let Some(python) = python(library) else { continue };
        runs_on_its_own(&python, &model_cases(library));
    }
}

fn runs_on_its_own(python: &str, cases: &[ScriptCase]) {
    for case in cases {
        let output = Command::new(python).args(["-c", &case.script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.contains("float"), "{}: {errors}", case.name);
    }
}

#[test]
fn large_constants_are_written_exactly() {
    let c = Tensor::randn([30, 20], DType::F32, &mut Generator::manual_seed(1));
    let x = Tensor::ones([20]);
    for (_, library) in Library::ALL {
        let program = Program::trace([("x", &x)], |a| Ok(vec![a[0].try_mul(&c)?])).unwrap();
        let x = x.clone();
        let wrong =
            failures(&[step_case("constant".to_string(), program, &[("x", x)], (0.0, library))]);
        assert!(wrong.is_empty(), "{wrong}");
    }
}
