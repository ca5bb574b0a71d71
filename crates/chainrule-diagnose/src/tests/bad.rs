//! Descriptions that cannot be run end with one line that names the place.

use serde_json::{Value, json};

use super::healthy;
use crate::data::{Source, prepare};
use crate::description::{Program, apply, edit};

fn error_of(description: Value) -> String {
    Program::of(description).unwrap_err().to_string()
}

#[test]
fn fields_that_lack_or_are_wrong_are_named() {
    for field in ["task", "data", "input", "layers", "loss", "optimizer", "batch", "epochs"] {
        let mut one = healthy();
        one.as_object_mut().unwrap().remove(field);
        assert!(error_of(one).contains(&format!("`{field}")), "{field}");
        for wrong in [json!("x"), json!(-1), json!([[]]), json!(1e300)] {
            let mut one = healthy();
            one[field] = wrong.clone();
            let error = error_of(one);
            assert!(error.contains(field) && !error.contains('\n'), "{field} {wrong}: {error}");
        }
    }
    for (path, value) in [
        ("layers/0/units", json!(1u64 << 40)),
        ("layers/0/activation", json!("gelu-ish")),
        ("layers/0/init", json!({"name": "orthogonal"})),
        ("layers/0/type", json!("lstm")),
        ("optimizer/name", json!("adagrad")),
        ("optimizer/beta1", json!(1.5)),
        ("preprocessing", json!(["whiten"])),
        ("epochs", json!(0)),
    ] {
        let mut one = healthy();
        one["optimizer"]["beta1"] = json!(0.9);
        let one = apply(&one, &[edit(path, value)]).unwrap();
        let error = error_of(one);
        let last = path.split('/').next_back().unwrap();
        assert!(error.contains(last) && !error.contains('\n'), "{path}: {error}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let wide =
        apply(&healthy(), &[edit("layers/0/units", 1 << 20), edit("input", json!([1 << 20]))]);
    assert!(error_of(wide.unwrap()).contains("weights"));
    let pooled = json!({"type": "maxpool2d", "size": 2, "stride": 2});
    let pooled = apply(&healthy(), &[edit("layers/0", pooled)]).unwrap();
    assert!(error_of(pooled).contains("layers/0"));
}

#[test]
fn text_that_is_no_json_is_an_error() {
    for text in ["", "{", "[1]", "{\"batch\": NaN}", "nul"] {
        assert!(Program::parse(text).is_err(), "{text}");
    }
}

#[test]
fn data_that_do_not_fit_are_errors() {
    let program = Program::of(healthy()).unwrap();
    let table = super::table(vec![0.0; 12], 3, vec![0.0; 4]);
    let error = prepare(&program, &table.x, &table.y).unwrap_err().to_string();
    assert!(error.contains("[3]") && error.contains("[4]"), "{error}");
    let none = super::table(Vec::new(), 4, Vec::new());
    assert!(none.check().is_err());
    let source = Source::new(std::path::Path::new("/nowhere"), None, true);
    assert!(source.tables(&program, &[1]).unwrap_err().to_string().contains("nowhere"));
    let text = apply(&healthy(), &[edit("data", json!({"numpy": "X = 1"}))]).unwrap();
    let closed = Source::new(std::path::Path::new("."), None, false);
    let error = closed.tables(&Program::of(text).unwrap(), &[1]).unwrap_err().to_string();
    assert!(error.contains("--no-data-code"), "{error}");
}

/// `gen.py` in the working directory has the folder that it stands in, not an empty one.
#[test]
fn a_generator_without_a_folder_is_of_the_working_directory() {
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let source =
        |file: &str| Source::new(std::path::Path::new("."), Some(std::path::Path::new(file)), true);
    assert_eq!(source("Cargo.toml").generator(), Some(here.clone()));
    assert_eq!(source(".").generator(), Some(here));
}
