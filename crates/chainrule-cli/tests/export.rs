//! `chainrule export`: each kind of model, and what is refused.

mod common;

use std::process::{Command, Stdio};

use common::Place;
use serde_json::json;

#[test]
fn every_kind_of_model_is_written() {
    let place = Place::new();
    for (i, words) in [
        "names --steps 2 --hidden 8 --data names.txt",
        "names --model wavenet --steps 1 --data names.txt",
        "digits --steps 1 --examples 100 --hidden 8",
        "moons --steps 2",
        "regression --steps 2",
        "text --steps 1 --layers 1 --context 8",
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("run{i}");
        let trained = place.run(&format!("train {words} --out {run}"));
        assert!(trained.status.success(), "{words}: {}", common::text(&trained.stderr));
        let said = place.json(&format!("export {run} --onnx {run}.onnx --json"));
        assert_eq!((&said["inputs"], &said["outputs"]), (&json!(["x"]), &json!(["y"])), "{words}");
        let bytes = std::fs::read(place.path(&format!("{run}.onnx"))).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
        assert!(holds("batch") && holds("chainrule"), "{words}");
        for rows in [1, 3] {
            judge(&place, &format!("{run}.onnx"), rows);
        }
    }
}

/// Checks a file by the rules of ONNX, and writes a batch with the results of onnxruntime.
const JUDGE: &str = r#"
import sys
import numpy as np, onnx, onnxruntime
path, rows, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model = onnx.load(path)
onnx.checker.check_model(model, full_check=True)
onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession(path)
(given,) = session.get_inputs()
shape, rng = [rows, *given.shape[1:]], np.random.default_rng(rows)
x = rng.integers(0, 9, shape) if "int" in given.type else rng.normal(size=shape).astype("float32")
(y,) = session.run(None, {"x": x})
for name, value in (("input_0", x), ("output_0", y)):
    with open(f"{folder}/{name}.pb", "wb") as file:
        file.write(onnx.numpy_helper.from_array(value).SerializeToString())
"#;

/// Values of onnxruntime are those here, where Python (`CHAINRULE_PYTHON`, or else `python3`) has
/// it.
fn judge(place: &Place, name: &str, rows: usize) {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut there = Command::new(&python);
    there.args(["-c", "import numpy, onnx, onnxruntime"]).stderr(Stdio::null());
    if !there.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: {python} has no onnx and onnxruntime");
        return;
    }
    let folder = format!("{name}-{rows}");
    std::fs::create_dir(place.path(&folder)).unwrap();
    let mut judged = Command::new(&python);
    judged.args(["-c", JUDGE]).arg(place.path(name)).arg(rows.to_string());
    let judged = judged.arg(place.path(&folder)).output().unwrap();
    assert!(judged.status.success(), "{name}: {}", common::text(&judged.stderr));
    let same = place.run(&format!("onnx {name} --run {folder} --rtol 1e-5 --atol 1e-5"));
    assert!(same.status.success(), "{name}: {}", common::text(&same.stderr));
}

#[test]
fn a_file_is_not_overwritten_and_a_folder_without_a_run_is_refused() {
    let place = Place::new();
    place.train("run", "");
    assert!(place.run("export run --onnx model.onnx").status.success());
    assert!(place.refused("export run --onnx model.onnx", 1).contains("--force"));
    assert!(place.run("export run --onnx model.onnx --force").status.success());
    assert!(place.refused("export nowhere --onnx other.onnx", 1).contains("no such folder"));
    assert!(place.refused("export run --onnx no/such/model.onnx", 1).contains("cannot write"));
}
