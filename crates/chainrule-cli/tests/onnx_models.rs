//! Models of others, as a user of the command meets them.

mod common;

use std::fs;
use std::path::Path;

use common::{Place, text};

/// A model that PyTorch exported.
fn model(name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../chainrule-onnx/tests/data");
    tests.join(format!("{name}.onnx")).display().to_string()
}

#[test]
fn a_model_is_listed() {
    let place = Place::new();
    let page = text(&place.run(&format!("onnx {}", model("cnn-script"))).stdout);
    assert!(page.contains("inputs      x f32 [2, 2, 8, 8]"), "{page}");
    assert!(page.contains("BatchNormalization 1, Conv 2"), "{page}");
    assert!(page.contains("0.weight f32 [4, 2, 3, 3]"), "{page}");
    let got = place.json(&format!("onnx {} --json", model("lstm-script")));
    assert_eq!(got["outputs"][0], "y");
    assert_eq!(got["ops"]["LSTM"], 1);
}

#[test]
fn the_backward_pass_of_a_model_of_others_is_explained() {
    let place = Place::new();
    let page = text(&place.run(&format!("explain {}", model("mlp-script"))).stdout);
    for part in ["as traced", "d_y", "d_0_weight", "The result"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let output = place.run(&format!("explain {} --shape z=1", model("mlp-script")));
    let why = text(&output.stderr);
    assert!(!output.status.success() && why.contains("no input `z`; it has x"), "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
}

#[test]
fn a_file_that_is_no_model_is_one_line() {
    let place = Place::new();
    fs::write(place.path("bad.onnx"), "this is no model").unwrap();
    for command in ["onnx", "explain"] {
        let output = place.run(&format!("{command} bad.onnx"));
        let why = text(&output.stderr);
        assert!(!output.status.success() && why.contains("not a whole ONNX model"), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }
}
