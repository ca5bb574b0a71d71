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
fn ops_are_checked_by_name() {
    let place = Place::new();
    let got = place.json("check ops --op tanh --json");
    assert_eq!((&got["passed"], &got["ops"], &got["failed"]), (&true.into(), &1.into(), &0.into()));
    let tanh = &got["results"][0];
    assert_eq!((&tanh["name"], &tanh["family"]), (&"tanh".into(), &"unary".into()));
    for property in ["order 1", "order 2", "jvp = vjp", "views", "broadcast", "kinks"] {
        let tally = &tanh["counts"][property];
        assert!(
            tally["checked"].as_u64().unwrap() > 0 && tally["failed"] == 0,
            "{property}: {got}"
        );
    }
    assert!(got["largest_error"].as_f64().unwrap() < 1e-9);
    let output = place.run("check ops --op triu --seed 5");
    let table = text(&output.stdout);
    assert!(output.status.success());
    assert!(table.contains("tril, triu") && table.trim_end().ends_with("all right"), "{table}");
}

#[test]
fn an_unknown_op_is_told_the_nearest_names() {
    let error = Place::new().refused("check ops --op sofmax", 2);
    assert!(error.contains("no op is called \"sofmax\"; the nearest names are softmax"), "{error}");
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
    let error = place.refused("check mistakes --op sofmax", 2);
    assert!(error.contains("the nearest names are softmax"), "{error}");
}

#[test]
fn backward_passes_of_a_file_need_a_file_and_a_python() {
    let place = Place::new();
    std::fs::write(place.path("layers.py"), "inputs = []\n").unwrap();
    for (words, part) in [
        ("check backward nothing.py", "nothing.py: no such file"),
        ("check backward layers.py --python no-such-python", "install Python 3.11"),
    ] {
        let output = place.run(words);
        let error = text(&output.stderr);
        assert!(!output.status.success() && error.contains(part), "{words}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}
