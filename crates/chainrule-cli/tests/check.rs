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

/// A Python that has the package: that of `CHAINRULE_PYTHON`, or the usual one.
fn python_with_the_package() -> Option<String> {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let run = std::process::Command::new(&python).args(["-c", "import chainrule.check"]).output();
    let has = run.is_ok_and(|done| done.status.success());
    if !has {
        eprintln!("skipped: {python} has no package chainrule; CHAINRULE_PYTHON names another one");
    }
    has.then_some(python)
}

const LAYER: &str = "\
import chainrule as cr

class Layer(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        y = cr.tanh(x @ w + b)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, y = ctx.saved_tensors
        dz = dy * (1 - y * y)
        return dz @ w.T, x.T @ dz, dz.sum(0)

inputs = [cr.randn(5, 3), cr.randn(3, 4), cr.randn(4)]
";

#[test]
fn the_mistake_in_a_file_is_named_and_drawn() {
    let Some(python) = python_with_the_package() else { return };
    let place = Place::new();
    std::fs::write(place.path("right.py"), LAYER).unwrap();
    let wrong = LAYER.replace("dz = dy * (1 - y * y)", "dz = dy * (1 - y)");
    std::fs::write(place.path("wrong.py"), wrong).unwrap();
    let output = place.run(&format!("check backward right.py --python {python}"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Layer: "), "{}", text(&output.stdout));
    let words = format!("check backward wrong.py --python {python} --picture wrong.svg");
    let output = place.run(&words);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said} {}", text(&output.stderr));
    assert!(said.contains("wrong.py:13  dz = dy * (1 - y)"), "{said}");
    assert!(said.contains("corrected") && said.contains("all else of the backward is right"));
    let picture = std::fs::read_to_string(place.path("wrong.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    let got = place.run(&format!("check backward wrong.py --python {python} --json"));
    assert_eq!(got.status.code(), Some(1), "{}", text(&got.stderr));
    let got: serde_json::Value = serde_json::from_slice(&got.stdout).unwrap();
    let (pass, mistake) = (&got["passes"][0], &got["passes"][0]["mistakes"][0]);
    assert_eq!((&got["passed"], &pass["name"]), (&false.into(), &"Layer".into()), "{got}");
    assert_eq!(mistake["line"], 13, "{mistake}");
    assert_eq!(mistake["source"], "dz = dy * (1 - y)");
    assert!(mistake["corrected"].as_str().unwrap().contains("y * y"), "{mistake}");
    let words = format!("check backward wrong.py --python {python} --picture no/such/wrong.svg");
    let output = place.run(&words);
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains("cannot write the picture"), "{error}");
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
