//! Every op on its samples, forward and backward, run by onnxruntime where Python has it
//! (`CHAINRULE_PYTHON`, or else `python3`); without it the test says so, and only counts forms.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use chainrule::program::Program;
use chainrule::{DType, Generator, Result, Tensor, try_autocast};
use chainrule_core::ops::table;
use chainrule_onnx::export;

/// Ops without a form, or whose backward rule has none. A new one is written here with care.
const WITHOUT: &str = include_str!("without.txt");

/// Ops whose products take rounded operands under `autocast`.
const ROUNDED: [&str; 4] =
    ["matmul", "linear", "conv1d, conv2d", "conv_transpose1d, conv_transpose2d"];

/// The script that runs the models.
const SCRIPT: &str = include_str!("samples.py");

/// The result, and the gradients that a program of it gives.
fn with_gradients(
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>> {
    let own = |x: &Tensor| if x.dtype().is_float() { x.parameter() } else { x.clone() };
    let inputs: Vec<Tensor> = inputs.iter().map(own).collect();
    let y = f(&inputs)?;
    if !y.requires_grad() {
        return Ok(vec![y]);
    }
    let n = y.numel();
    let upstream = Tensor::linspace(-0.75, 1.0, n.max(1)).to_dtype(y.dtype());
    let upstream = if n == 0 { y.zeros_like() } else { upstream.try_reshape(y.shape())? };
    (&y * upstream).sum_all().try_backward()?;
    Ok([y].into_iter().chain(inputs.iter().filter_map(Tensor::grad)).collect())
}

fn json(t: &Tensor) -> String {
    let numbers: Vec<String> = match t.dtype() {
        DType::I64 => t.to_vec::<i64>().iter().map(i64::to_string).collect(),
        _ => t.to_f64_vec().iter().map(|x| format!("\"{x:?}\"")).collect(),
    };
    let dtype = format!("{:?}", t.dtype()).to_lowercase();
    format!("[\"{dtype}\", {:?}, [{}]]", t.shape().to_vec(), numbers.join(", "))
}

fn all_json(all: &[Tensor]) -> String {
    format!("[{}]", all.iter().map(json).collect::<Vec<_>>().join(", "))
}

fn single(x: &Tensor) -> Tensor {
    if x.dtype() == DType::F64 { x.to_dtype(DType::F32) } else { x.clone() }
}

/// The rows for the script, and the ops without a form with the reason.
fn cases() -> (String, BTreeMap<String, String>) {
    let (mut rows, mut without) = (String::new(), BTreeMap::new());
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(5)) {
            let inputs: Vec<Tensor> = sample.inputs.iter().map(single).collect();
            let call = &*sample.call;
            let plain =
                [(false, entry.name.to_string()), (true, format!("{} backward", entry.name))];
            let near = ROUNDED.contains(&entry.name);
            let near = near.then(|| (true, format!("{} on bf16 backward", entry.name)));
            for (backward, name) in plain.into_iter().chain(near) {
                let call = |x: &[Tensor]| match name.contains("on bf16") {
                    true => try_autocast(DType::BF16, || call(x))?,
                    false => call(x),
                };
                let f = |x: &[Tensor]| match backward {
                    true => with_gradients(&call, x),
                    false => Ok(vec![call(x)?]),
                };
                let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
                let pairs = names.iter().map(String::as_str).zip(&inputs);
                let Ok(program) = Program::trace(pairs, f) else { continue };
                if program.list().iter().any(|i| i.op.generator().is_some()) {
                    continue;
                }
                let want = program.run(&inputs.iter().collect::<Vec<_>>()).unwrap();
                match export(&program) {
                    Ok(model) => {
                        let bytes = model.to_bytes();
                        let hex = bytes.iter().fold(String::new(), |mut hex, b| {
                            let _ = write!(hex, "{b:02x}");
                            hex
                        });
                        let note = sample.note.replace('"', "'");
                        let (inputs, want) = (all_json(&inputs), all_json(&want));
                        let _ = writeln!(
                            rows,
                            "{{\"name\": \"{name}\", \"note\": \"{note}\", \"model\": \"{hex}\", \"inputs\": {inputs}, \"want\": {want}}}"
                        );
                    }
                    Err(e) => {
                        let why = format!("{}: {e}", sample.note);
                        without.entry(name).or_insert(why);
                    }
                }
            }
        }
    }
    (rows, without)
}

#[test]
fn ops_give_the_same_values_in_onnxruntime() {
    let (rows, without) = cases();
    let found: Vec<&str> = without.keys().map(String::as_str).collect();
    let op = |name: &str| name.trim_end_matches(" backward").to_string();
    // Decompositions are in the table with a feature.
    let known = WITHOUT.lines().filter(|name| table().any(|entry| entry.name == op(name)));
    let known: Vec<&str> = known.collect();
    println!("{} ops in the table", table().count());
    if std::env::var_os("CHAINRULE_WRITE").is_some() {
        std::fs::write("tests/without.txt", found.join("\n") + "\n").unwrap();
        without.iter().for_each(|(name, why)| println!("{name}: {why}"));
    } else {
        assert_eq!(
            found, known,
            "run with CHAINRULE_WRITE=1 to write tests/without.txt: {without:?}"
        );
    }
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut there = Command::new(&python);
    there.args(["-c", "import numpy, onnx, onnxruntime"]).stderr(Stdio::null());
    if !there.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: {python} has no onnx and onnxruntime");
        return;
    }
    let path = std::env::temp_dir().join(format!("chainrule-onnx-{}.jsonl", std::process::id()));
    std::fs::write(&path, rows).unwrap();
    let out = Command::new(&python).args(["-c", SCRIPT]).arg(&path).output().unwrap();
    let _ = std::fs::remove_file(&path);
    let text = String::from_utf8_lossy(&out.stdout);
    println!("{text}");
    assert!(out.status.success(), "{text}\n{}", String::from_utf8_lossy(&out.stderr));
}
