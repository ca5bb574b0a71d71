//! `chainrule export`: each kind of model, and what is refused.

mod common;

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
    }
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
