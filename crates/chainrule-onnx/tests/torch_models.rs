//! Models that PyTorch exported, by both of its exporters: results and gradients are PyTorch's. The
//! folder `data` has some; where Python (`CHAINRULE_PYTHON`, or else `python3`) has PyTorch, others
//! of random weights are made, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainrule::nn::Module;
use chainrule::optim::{Optimizer, Sgd};
use chainrule::program::Program;
use chainrule::{DType, Result, Tensor, io};
use chainrule_onnx::{ImportedModel, import};

/// The script that makes the models.
const SCRIPT: &str = include_str!("torch_models.py");

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The names of the models of a folder.
fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap();
    let names = all.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".onnx").map(str::to_owned)).collect();
    names.sort();
    names
}

/// The largest distance from what PyTorch has, which is NaN for what is none of its parameters.
fn furthest(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let pairs = a.to_f64_vec().into_iter().zip(b.to_f64_vec()).filter(|(_, b)| !b.is_nan());
    let apart = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
    apart.fold(0.0, |most, x| if x.is_nan() { f64::INFINITY } else { most.max(x) })
}

/// Runs a model forward and backward; the number of gradients and the largest difference.
fn compare(folder: &Path, name: &str) -> Result<(usize, f64)> {
    let model = import(folder.join(format!("{name}.onnx")))?;
    let all = io::load(folder.join(format!("{name}.safetensors")))?;
    let x = &all["x"];
    let x = if x.dtype().is_float() { x.parameter() } else { x.clone() };
    let y = &model.run(&[("x", &x)])?[0];
    let mut worst = furthest(y, &all["y"]);
    (y * &all["upstream"]).sum_all().try_backward()?;
    let mut count = 0;
    for (key, wanted) in &all {
        let Some(of) = key.strip_prefix("gradient ") else { continue };
        let leaf = if of == "x" { x.clone() } else { model.get(of)? };
        let got = leaf.grad().unwrap_or_else(|| panic!("{name}: {of} has no gradient"));
        worst = worst.max(furthest(&got, wanted));
        count += 1;
    }
    // Nothing that has a gradient in the file is left out of the comparison.
    let compared = all.keys().filter(|key| key.starts_with("gradient ")).count();
    assert_eq!(count, compared);
    Ok((count, worst))
}

fn check(folder: &Path) {
    for name in names(folder) {
        let (count, worst) = compare(folder, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {count} gradients, furthest {worst:.1e}");
        assert!(count >= 3 && worst < 2e-5, "{name}: {count} gradients, furthest {worst:e}");
    }
}

#[test]
fn stored_models_have_pytorchs_results_and_gradients() {
    assert!(names(&data()).len() >= 9);
    check(&data());
}

#[test]
fn new_models_have_pytorchs_results_and_gradients() {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut there = Command::new(&python);
    there.args(["-c", "import torch, onnx, safetensors"]).stderr(Stdio::null());
    if !there.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: {python} has no torch, onnx and safetensors");
        return;
    }
    let folder = std::env::temp_dir().join(format!("chainrule-torch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let out = Command::new(&python).args(["-c", SCRIPT]).arg(&folder).arg("7").output().unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(!names(&folder).is_empty());
    check(&folder);
    let _ = std::fs::remove_dir_all(&folder);
}

fn loss(model: &ImportedModel, args: &[Tensor]) -> Result<Tensor> {
    model.forward(&[&args[0]])?[0].try_mse(&args[1])
}

/// A model of others trains, eagerly and as a program, with the same numbers.
#[test]
fn a_model_trains_at_once() -> Result<()> {
    for name in ["mlp-script", "cnn-script", "lstm-script", "encoder-dynamo"] {
        let read = || import(data().join(format!("{name}.onnx")));
        let all = io::load(data().join(format!("{name}.safetensors")))?;
        let args = [all["x"].clone(), all["upstream"].clone()];
        let (eager, traced) = (read()?, read()?);
        let mut sgd = Sgd::new(eager.parameters(), 0.05);
        let mut other = Sgd::new(traced.parameters(), 0.05);
        let program = Program::trace([("x", &args[0]), ("t", &args[1])], |args| {
            let loss = loss(&traced, args)?;
            loss.try_backward()?;
            other.step()?;
            Ok(vec![loss])
        })?;
        let mut losses = Vec::new();
        for _ in 0..5 {
            let here = loss(&eager, &args)?;
            here.try_backward()?;
            sgd.step()?;
            sgd.zero_grad();
            let there = program.run(&[&args[0], &args[1]])?[0].item();
            assert!((there - here.item()).abs() < 1e-5, "{name}: {there} and {here}");
            losses.push(here.item());
        }
        assert!(losses[4] < losses[0], "{name}: {losses:?}");
    }
    Ok(())
}

#[test]
fn wrong_inputs_are_told() -> Result<()> {
    let model = import(data().join("mlp-script.onnx"))?;
    assert_eq!(model.inputs()[0].dtype, Some(DType::F32));
    let x = Tensor::ones([5, 4]);
    let why = |inputs: &[(&str, &Tensor)]| model.run(inputs).err().unwrap().to_string();
    assert!(why(&[]).contains("`x` is missing"), "{}", why(&[]));
    let other = why(&[("z", &x)]);
    assert!(other.contains("no input `z`; it has x"), "{other}");
    let wide = why(&[("x", &x.to_dtype(DType::F64))]);
    assert!(wide.contains("`x` is f32 in the file, not f64"), "{wide}");
    let narrow = why(&[("x", &Tensor::ones([5, 3]))]);
    assert!(narrow.contains("Gemm"), "{narrow}");
    Ok(())
}
