//! `--device`: trainings on a device beside those of the processor, and errors in one line.

mod common;

use common::{Place, one_error, text};
use serde_json::Value;

/// The training on the first device of WebGPU; a word where this build or machine has none.
fn on_device(place: &Place, words: &str) -> Option<Value> {
    let output = place.command(words).env("XDG_RUNTIME_DIR", place.path(".")).output().unwrap();
    let error = text(&output.stderr);
    if error.contains("there is no GPU") || error.contains("build it with the feature") {
        eprintln!("skipped: {error}");
        return None;
    }
    assert!(output.status.success(), "{words}: {error}");
    Some(common::last_json(&output))
}

#[track_caller]
fn near(a: &Value, b: &Value, name: &str) {
    let number = |v: &Value| v[name].as_f64().unwrap_or_else(|| panic!("{name} of {v}"));
    let (a, b) = (number(a), number(b));
    assert!((a - b).abs() < 2e-3 * b.abs(), "{name}: {a} and {b}");
}

#[test]
fn a_training_on_a_device_has_the_measures_of_the_processor() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 40 --hidden 20 --ema 0.9 --json --out";
    let Some(got) = on_device(&place, &format!("{words} gpu --device wgpu")) else { return };
    let want = place.json(&format!("{words} cpu"));
    for name in ["train_loss", "val_loss"] {
        near(&got, &want, name);
    }
    // A run goes on from its checkpoint, on either.
    let more = "--steps 60 --json";
    let on = on_device(&place, &format!("train names --resume gpu --device wgpu {more}")).unwrap();
    let off = place.json(&format!("train names --resume cpu {more}"));
    near(&on, &off, "val_loss");
    assert_eq!(on["steps"], 60);
}

#[test]
fn a_text_model_trains_on_a_device_with_clipped_gradients() {
    let place = Place::new();
    let words = "train text --steps 8 --layers 1 --width 16 --heads 2 --context 16 --batch 4 \
                 --clip 0.5 --json --out";
    let Some(got) = on_device(&place, &format!("{words} gpu --device wgpu")) else { return };
    near(&got, &place.json(&format!("{words} cpu")), "val_loss");
}

/// The words of the error with which a diverging training ends, without the numbers that roundings
/// change.
fn diverged(place: &Place, more: &str) -> Option<String> {
    let words = format!("train regression --steps 300 --lr 3 --quiet {more}");
    let output = place.command(&words).env("XDG_RUNTIME_DIR", place.path(".")).output().unwrap();
    let error = text(&output.stderr);
    if error.contains("there is no GPU") || error.contains("build it with the feature") {
        eprintln!("skipped: {error}");
        return None;
    }
    assert_eq!(output.status.code(), Some(1), "{error}");
    let last = error.lines().last().unwrap();
    let (what, _) = last.split_once(", where its input").unwrap_or_else(|| panic!("{last}"));
    Some(what.to_string())
}

#[test]
fn a_training_that_diverges_on_a_device_names_its_step_and_op() {
    let place = Place::new();
    let Some(got) = diverged(&place, "--device wgpu --out gpu") else { return };
    let want = diverged(&place, "--out cpu").unwrap();
    assert!(want.contains("the loss of step") && want.contains("the first op that gave inf"));
    assert_eq!(got, want);
}

#[test]
fn what_a_device_cannot_do_is_told_before_anything_is_written() {
    let place = Place::new();
    let refused = |words: &str, status: i32| {
        let words = format!("train names --data names.txt --steps 3 --out run {words}");
        let output = place.command(&words).env("XDG_RUNTIME_DIR", place.path(".")).output();
        let error = one_error(&output.unwrap(), status);
        assert!(!place.path("run").exists(), "{words}");
        error
    };
    assert!(refused("--device tpu", 2).contains("cpu, cuda[:N] or wgpu[:N]"));
    assert!(refused("--device wgpu --eager", 2).contains("--eager"));
    assert!(refused("--or-cpu", 2).contains("--device"));
    assert!(refused("--device wgpu --accumulate 2", 1).contains("--accumulate"));
    assert!(refused("--device wgpu --autocast bf16", 1).contains("--autocast"));
    assert!(refused("--device wgpu:99", 1).contains("wgpu"));
    assert!(refused("--device cuda:99", 1).contains("cuda"));
    // The processor goes on where that is asked for.
    let output =
        place.run("train names --data names.txt --steps 3 --quiet --device wgpu:99 --or-cpu");
    assert!(output.status.success() && text(&output.stderr).contains("run on the processor"));
    let near = place.refused("bench names --mode compiled --device wgpu --autocast bf16", 1);
    assert!(near.contains("--autocast"), "{near}");
    let eager = place.refused("bench names --device wgpu", 1);
    assert!(eager.contains("--mode compiled"), "{eager}");
}
