//! `chainrule diagnose` as a process: a planted mistake, bad descriptions.

mod common;

use std::fs;

use common::{Place, last_json, one_error, text};
use serde_json::{Value, json};

/// An array of f64 in the NPY format.
fn npy(shape: &str, numbers: &[f64]) -> Vec<u8> {
    let head = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((head.len() as u16).to_le_bytes());
    out.extend(head.as_bytes());
    numbers.iter().for_each(|v| out.extend(v.to_le_bytes()));
    out
}

/// An archive of files that are not compressed; checksums are left at 0.
fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let start = out.len() as u32;
        let sizes = [0, data.len() as u32, data.len() as u32].map(u32::to_le_bytes).concat();
        let names = [(name.len() as u16).to_le_bytes(), [0, 0]].concat();
        out.extend([&b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &names].concat());
        out.extend([name.as_bytes(), data].concat());
        list.extend([&b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &names].concat());
        list.extend([&[0; 10][..], &start.to_le_bytes(), name.as_bytes()].concat());
    }
    let (start, count) = (out.len() as u32, (files.len() as u16).to_le_bytes());
    let size = (list.len() as u32).to_le_bytes();
    out.extend(list);
    out.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

/// Two columns between -1 and 1, and whether their sum is above 0.
fn data() -> Vec<u8> {
    let x: Vec<f64> = (0..240).map(|i| f64::from(i * i * 7 % 101) / 50.5 - 1.0).collect();
    let y: Vec<f64> = x.chunks(2).map(|r| f64::from(u8::from(r[0] + r[1] > 0.0))).collect();
    archive(&[("X.npy", npy("120, 2", &x)), ("y.npy", npy("120, 1", &y))])
}

fn program(activation: &str) -> Value {
    json!({"id": "planted", "task": "binary", "data": {"file": "data.npz"}, "input": [2],
        "layers": [
            {"type": "dense", "units": 16, "activation": "relu", "init": "he_normal"},
            {"type": "dense", "units": 1, "activation": activation}],
        "loss": {"name": "bce_probs"}, "optimizer": {"name": "adam", "lr": 0.01},
        "batch": 16, "epochs": 20})
}

fn place(description: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("data.npz"), data()).unwrap();
    fs::write(place.path("p.json"), description).unwrap();
    place
}

fn last_line(place: &Place, words: &str) -> Value {
    let output = place.run(words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    last_json(&output)
}

#[test]
fn a_planted_mistake_is_named_and_mended() {
    let place = place(&program("softmax").to_string());
    let said = last_line(&place, "diagnose p.json --json");
    assert_eq!(said["id"], "planted");
    assert_eq!(said["learns"], false);
    let first = &said["causes"][0];
    assert_eq!(first["kind"], "output_activation", "{said}");
    assert!(first["confidence"].as_f64().unwrap() > 0.5);
    assert!(first["edit"][0]["path"].as_str().unwrap().starts_with("layers/1/"));
    assert!(first["skill_after"].as_f64() > first["skill_before"].as_f64());
    let again = last_line(&place, "diagnose p.json --json");
    assert_eq!(again["causes"], said["causes"]);
}

#[test]
fn nothing_is_said_of_a_program_that_learns() {
    let place = place(&program("sigmoid").to_string());
    let said = last_line(&place, "diagnose p.json --json --seed 5");
    assert_eq!(said["causes"], json!([]), "{said}");
    assert_eq!(said["learns"], true);
    let script = place.run("diagnose p.json --python");
    assert!(text(&script.stdout).contains("nn.Linear(2, 16)"));
}

#[test]
fn bad_descriptions_end_with_one_line() {
    let mut lacking = program("sigmoid");
    lacking.as_object_mut().unwrap().remove("loss");
    let mut lost = program("sigmoid");
    lost["data"] = json!({"file": "nowhere.npz"});
    let mut coded = program("sigmoid");
    coded["data"] = json!({"numpy": "X = 1"});
    for (description, words, part) in [
        ("{\"batch\": NaN}".to_string(), "", "not JSON"),
        (lacking.to_string(), "", "`loss` is missing"),
        (lost.to_string(), "", "nowhere.npz"),
        (coded.to_string(), "--no-data-code", "--no-data-code"),
    ] {
        let place = place(&description);
        let output = place.run(&format!("diagnose p.json {words}"));
        let error = one_error(&output, 1);
        assert!(error.contains(part), "{error}");
    }
    let output = place("{}").run("diagnose missing.json");
    assert!(one_error(&output, 1).contains("missing.json"));
    let usage = place("{}").run("diagnose p.json --seconds nan");
    assert_eq!(usage.status.code(), Some(2));
}
