//! `--diagnose` of the `train` commands: short runs of the same training with one thing changed.

mod common;

use std::fs;

use common::{Place, text};
use serde_json::Value;

/// Trainings with a setting that cannot work, and the causes that are right for it. The first few
/// are tried by every test run, all of them by `cargo test -- --ignored`.
const PLANTED: [(&[&str], &str); 30] = [
    (&["lr_high", "optimizer"], "moons --lr 50 --steps 300"),
    (&["lr_low", "epochs_few"], "moons --lr 1e-8 --steps 300"),
    (&["clipping"], "regression --clip 1e-6"),
    (&["regularisation"], "moons --optimizer adamw --weight-decay 60 --steps 300"),
    (&["lr_high", "optimizer"], "regression --lr 1.5"),
    (&["lr_low", "epochs_few"], "regression --lr 1e-8"),
    (&["lr_high", "optimizer"], "regression --lr 1e6"),
    (&["lr_low", "epochs_few"], "regression --optimizer adam --lr 1e-8"),
    (&["regularisation"], "regression --weight-decay 100 --lr 0.005"),
    (&["lr_high", "optimizer"], "names --steps 300 --lr 100"),
    (&["lr_low", "epochs_few"], "names --steps 300 --lr 1e-9"),
    (&["clipping"], "names --steps 300 --clip 1e-6"),
    (&["regularisation"], "names --steps 300 --weight-decay 5"),
    (&["lr_high", "optimizer"], "names --steps 300 --optimizer adam --lr 5"),
    (&["lr_high", "optimizer"], "names --steps 300 --momentum 0.999 --lr 1"),
    (&["lr_high", "optimizer"], "names --model gru --steps 60 --lr 3"),
    (&["lr_low", "epochs_few"], "names --model mlp --steps 60 --lr 1e-9"),
    (&["lr_low", "epochs_few"], "names --model bigram --steps 300 --lr 1e-10"),
    (&["lr_high", "optimizer"], "names --model bow --steps 100 --lr 10"),
    (&["clipping"], "names --model bigram --optimizer sgd --lr 10 --steps 200 --clip 1e-7"),
    (&["lr_high", "optimizer"], "digits --lr 10 DIGITS"),
    (&["lr_low", "epochs_few"], "digits --lr 1e-9 DIGITS"),
    (&["lr_low", "epochs_few"], "digits --optimizer sgd --lr 1e-8 DIGITS"),
    (&["clipping"], "digits --optimizer sgd --lr 0.1 --clip 1e-8 DIGITS"),
    (&["regularisation"], "digits --weight-decay 900 --schedule constant DIGITS"),
    (&["lr_high", "optimizer"], "digits --optimizer sgd --momentum 0.99 --lr 20 DIGITS"),
    (&["lr_high", "optimizer"], "text --lr 3 --schedule constant TEXT"),
    (&["lr_low", "epochs_few"], "text --lr 1e-9 TEXT"),
    (&["clipping"], "text --optimizer sgd --lr 0.5 --clip 1e-8 TEXT"),
    (&["lr_high", "optimizer"], "text --optimizer sgd --lr 300 --clip 100000 TEXT"),
];

/// Each kind of training as it is by default, on less data or with smaller models, for long enough.
const DEFAULTS: [&str; 8] = [
    "moons",
    "regression",
    "names --steps 1500",
    "names --model bigram --steps 20000",
    "names --model gru --steps 600",
    "digits --examples 1000 --epochs 20 --hidden 64 --batch 50",
    "digits --model cnn --examples 500 --epochs 10",
    "text --layers 1 --width 32 --digits 1 --steps 600",
];

const QUICK: usize = 4;

/// The diagnosis of a training, which may end with an error.
fn diagnosis(place: &Place, short: &str, out: usize) -> Value {
    let digits = "--epochs 20 --examples 500 --hidden 64 --batch 100";
    let sums = "--layers 1 --heads 2 --width 32 --digits 1 --batch 16 --steps 150";
    let long = short.replace("DIGITS", digits).replace("TEXT", sums);
    let words = format!("train {long} --diagnose=8 --no-monitor --out run{out} --json");
    let output = place.run(&words);
    let last = text(&output.stdout);
    let last = last.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let last = last.unwrap_or_else(|| panic!("{words}: {}", text(&output.stderr)));
    last["diagnosis"].clone()
}

fn missed(planted: &[(&[&str], &str)]) -> Vec<String> {
    let place = Place::new();
    let wrong = |(i, (right, short)): (usize, &(&[&str], &str))| {
        let found = diagnosis(&place, short, i);
        let first = found["causes"][0]["kind"].as_str().unwrap_or("nothing").to_owned();
        (!right.contains(&&*first)).then(|| format!("{short}: {first}, not {right:?}: {found}"))
    };
    planted.iter().enumerate().filter_map(wrong).collect()
}

#[test]
fn planted_settings_are_named_and_mended() {
    let missed = missed(&PLANTED[..QUICK]);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
#[ignore = "some minutes"]
fn all_planted_settings_are_named() {
    let missed = missed(&PLANTED);
    assert!(missed.is_empty(), "{} of {}\n{}", missed.len(), PLANTED.len(), missed.join("\n"));
}

fn loud(defaults: &[&str]) -> Vec<String> {
    let place = Place::new();
    let said = |(i, short): (usize, &&str)| {
        let found = diagnosis(&place, short, i);
        let causes = found["causes"].as_array().unwrap();
        (!causes.is_empty()).then(|| format!("{short}: {found}"))
    };
    defaults.iter().enumerate().filter_map(said).collect()
}

#[test]
fn defaults_are_left_alone() {
    let loud = loud(&DEFAULTS[..2]);
    assert!(loud.is_empty(), "{}", loud.join("\n"));
}

#[test]
#[ignore = "some minutes"]
fn all_defaults_are_left_alone() {
    let loud = loud(&DEFAULTS);
    assert!(loud.is_empty(), "{}", loud.join("\n"));
}

/// The edit of a diagnosis is an option of the command, and repairs the training.
#[test]
fn the_edit_repairs_the_training() {
    let place = Place::new();
    let bad = place.json("train moons --lr 1e-7 --steps 300 --diagnose=8 --json --out bad");
    let cause = &bad["diagnosis"]["causes"][0];
    let edit = cause["edit"][0].as_str().unwrap();
    assert!(edit.starts_with("--"), "{edit}");
    assert!(cause["skill_after"].as_f64() > Some(0.5), "{cause}");
    assert!(cause["end"].as_str().unwrap().contains("the loss goes from"), "{cause}");
    assert!(cause["numbers"]["loss_at_the_end"].is_number(), "{cause}");
    let good = place.json(&format!("train moons --steps 300 --json --out good {edit}"));
    assert!(good["test_accuracy"].as_f64() > Some(0.85), "{good}");
    let page = fs::read_to_string(place.path("bad/diagnosis.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("as it is"), "{page}");
}

/// A diagnosed training has the same model and metrics as one that is not.
#[test]
fn a_diagnosis_changes_nothing() {
    let place = Place::new();
    let run = |out: &str, how: &str| {
        place.json(&format!("train moons --steps 40 --json --out {out} {how}"));
        ["model.safetensors", "last.ckpt", "metrics.csv"]
            .map(|name| fs::read(place.path(out).join(name)).unwrap())
    };
    assert!(run("with", "--diagnose=1") == run("without", ""));
}

#[test]
fn what_is_certain_is_told_before_the_first_step() {
    let place = Place::new();
    let rows: String = (0..40).map(|i| format!("{i},7\n")).collect();
    fs::write(place.path("flat.csv"), format!("x,y\n{rows}")).unwrap();
    let output = place.run("train regression --data flat.csv --steps 5 --out flat");
    let told = text(&output.stderr);
    assert!(told.contains("before the first step: data: all targets are equal"), "{told}");
    let json = place.json("train regression --data flat.csv --steps 5 --out flat2 --json");
    assert_eq!(json["before"][0]["kind"], "labels", "{json}");
    let bigram = "names --model bigram --steps 5";
    for quiet in ["regression --steps 5", "moons --steps 5", "names --steps 5", bigram] {
        let json = place.json(&format!("train {quiet} --json"));
        assert_eq!(json["before"], Value::Array(Vec::new()), "{quiet}: {json}");
    }
}

#[test]
fn options_that_make_no_sense_together_are_refused() {
    let place = Place::new();
    for words in ["--diagnose --dry-run", "--diagnose --find-lr", "--diagnose=x", "--diagnose=-1"] {
        place.refused(&format!("train moons {words}"), 2);
    }
}
