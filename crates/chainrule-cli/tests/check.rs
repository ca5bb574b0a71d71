//! Checking, as a user does.

mod common;

use common::{Place, text};

#[test]
fn the_names_model_by_hand_equals_autograd() {
    let place = Place::new();
    let got = place.json("check names --steps 20 --json");
    assert_eq!((&got["passed"], &got["parameters"]), (&true.into(), &4137.into()));
    for file in ["check.json", "dlogits.png", "dlogits.svg"] {
        assert!(place.path(&format!("runs/check-names-0001/{file}")).is_file(), "{file}");
    }
    let output = place.run("check names --steps 20 --seed 7");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("hpreact"), "a row for each intermediate");
}

#[test]
fn the_mistakes_of_an_op_are_detected_and_named() {
    let place = Place::new();
    let got = place.json("check mistakes --op tanh --points 20 --json");
    let count = |key: &str| got[key].as_u64().unwrap_or_else(|| panic!("{key} in {got}"));
    assert!(count("planted") > 0 && count("detected") == count("planted"), "{got}");
    assert!(count("named") * 100 >= count("planted") * 95, "{got}");
    assert_eq!((count("missed"), count("untouched_runs"), count("false_alarms")), (0, 20, 0));
    for file in ["mistakes.csv", "mistakes.md"] {
        assert!(place.path(&format!("runs/check-mistakes-0001/{file}")).is_file(), "{file}");
    }
    let output = place.run("check mistakes --op neg --points 5 --seed 7 --out here");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("wrong backward of a right forward"));
    assert!(!place.run("check mistakes --op nothing").status.success());
}
