//! Explaining, as a user does.

mod common;

use std::fs;
use std::process::Command;

use common::{Place, text};

#[test]
fn a_formula_is_explained_from_the_trace_to_the_result() {
    let place = Place::new();
    let output = place.run("explain softmax-ce");
    let page = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let order = ["as traced", "The traced program", "d_logits", "The steps", "The result"];
    let places: Vec<_> = order.iter().map(|part| page.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert_eq!(page.lines().last(), Some("d_logits = 1/32 * (probs - onehot(labels))"), "{page}");
    assert!(!page.contains('\x1b'), "colours are for terminals");
}

#[test]
fn long_models_are_told_in_short() {
    let place = Place::new();
    let page = text(&place.run("explain gpt-small").stdout);
    // One layer of four, in both directions.
    assert!(page.contains(" lines 3 times more, up to "), "{page}");
    assert!(page.lines().count() < 320, "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

#[test]
fn the_data_is_there_as_json() {
    let place = Place::new();
    let got = place.json("explain batch-norm --json");
    let count = |which: &str| got[which]["lines"].as_array().unwrap().len();
    for which in ["traced", "optimized", "simplified"] {
        let cost = &got[which]["cost"];
        assert_eq!(cost["instructions"].as_u64().unwrap() as usize, count(which));
        assert!(cost["flops"].as_u64().unwrap() > 0 && cost["bytes"].as_u64().unwrap() > 0);
    }
    assert!(count("simplified") <= count("optimized") && count("optimized") <= count("traced"));
    let lines = got["traced"]["lines"].as_array().unwrap();
    let bnraw = lines.iter().find(|l| l["name"] == "bnraw").unwrap();
    assert_eq!((&bnraw["op"], &bnraw["phase"]), (&"mul".into(), &"forward".into()));
    assert_eq!(bnraw["shape"], serde_json::json!([32, 200]));
    assert!(lines.iter().any(|l| l["rule"] == "rule of pow"));
    assert!(got["steps"].is_array());
    let memory = |which: &str| got["memory"][which].as_u64().unwrap();
    assert!(0 < memory("lower_bound") && memory("lower_bound") <= memory("planned"));
}

#[test]
fn everything_that_can_be_explained_is_listed() {
    let place = Place::new();
    let list = text(&place.run("explain --list").stdout);
    for name in ["names", "mnist", "gpt-small", "softmax-ce", "batch-norm", "layer-norm"] {
        assert!(list.lines().any(|line| line.split(' ').next() == Some(name)), "{list}");
    }
}

#[test]
fn names_that_are_not_known_are_refused_with_the_nearest() {
    let place = Place::new();
    let error = place.refused("explain softmx-ce", 2);
    assert!(error.contains("softmax-ce") && error.contains("softmx-ce"), "{error}");
    assert!(place.refused("explain", 2).contains("NAME"));
    assert!(place.refused("explain names --python tensorflow", 2).contains("torch or jax"));
    assert!(place.refused("explain names --python --json", 2).contains("--json"));
    assert!(place.refused("explain names --without magic", 2).contains("merge powers"));
    assert!(place.refused("explain l2-norm --out no/such/file", 1).contains("no/such/file"));
}

#[test]
fn scripts_are_written_for_other_libraries() {
    let place = Place::new();
    for (word, import) in [("torch", "import torch\n"), ("jax", "import jax.numpy as jnp\n")] {
        let script = place.run(&format!("explain batch-norm --python {word}"));
        let script = text(&script.stdout);
        assert!(script.contains(import) && !script.contains("numpy as np"), "{script}");
    }
}

#[test]
fn the_script_runs_on_its_own() {
    let place = Place::new();
    let output = place.run("explain batch-norm --python --out step.py");
    assert!(output.status.success() && text(&output.stdout).is_empty());
    let script = fs::read_to_string(place.path("step.py")).unwrap();
    assert!(script.contains("def step(g, x, gain, bias):"), "{script}");
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let numpy = "import numpy; assert int(numpy.__version__.split('.')[0]) >= 2";
    let there = Command::new(&python).args(["-c", numpy]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("{python} with NumPy 2 is not there: the script is not run");
        return;
    }
    let output = Command::new(python).arg(place.path("step.py")).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("d_x: float32 [32, 200], norm "), "{said}");
}
