//! The monitor of the `train` commands: silent on settings that work, and naming those that do not.

mod common;

use std::fs;

use common::{Place, text};
use serde_json::Value;

/// Short trainings with a setting that cannot work, and the name that the monitor must give it.
const PLANTED: [(&str, &str); 37] = [
    ("rate_too_high", "names --steps 500 --lr 10"),
    ("rate_too_low", "names --steps 500 --lr 1e-9"),
    ("rate_too_high", "names --steps 500 --optimizer adam --lr 5"),
    ("rate_too_low", "names --steps 500 --optimizer sgd --lr 1e-6"),
    ("weights_vanish", "names --steps 500 --weight-decay 5"),
    ("clipping", "names --steps 500 --clip 1e-6"),
    ("rate_too_high", "names --steps 500 --momentum 0.999 --lr 1"),
    ("rate_too_high", "names --steps 500 --optimizer lion --lr 1"),
    ("rate_too_high", "names --model gru --steps 60 --lr 3"),
    ("rate_too_low", "names --model mlp --steps 60 --lr 1e-9"),
    ("rate_too_low", "names --model bigram --steps 300 --lr 1e-10"),
    ("rate_too_low", "names --model rnn --steps 200 --optimizer sgd --lr 1e-8"),
    ("clipping", "names --model lstm --steps 60 --clip 1e-7"),
    ("rate_too_high", "names --model bow --steps 100 --lr 10"),
    ("rate_too_high", "digits --lr 10 DIGITS"),
    ("rate_too_low", "digits --lr 1e-9 DIGITS"),
    ("rate_too_low", "digits --optimizer sgd --lr 1e-8 DIGITS"),
    ("weights_vanish", "digits --weight-decay 900 --schedule constant DIGITS"),
    ("clipping", "digits --optimizer sgd --lr 0.1 --clip 1e-8 DIGITS"),
    ("rate_too_high", "digits --optimizer sgd --momentum 0.99 --lr 20 DIGITS"),
    ("no_progress", "digits --optimizer adam --weight-decay 10 --accumulate 1 --steps 300 DIGITS"),
    ("rate_too_high", "digits --model cnn --lr 1 --steps 30 --examples 500 --batch 20"),
    ("vanishing_gradient", "digits --examples 500 --batch 100 --epochs 30 --hidden DEEP"),
    ("rate_too_high", "moons --lr 50"),
    ("rate_too_low", "moons --lr 1e-8"),
    ("overfitting", "moons --points 20 --batch 20 --noise 0.6 --steps 3000"),
    ("rate_too_low", "moons --optimizer adagrad --lr 1e-7"),
    ("saturated_units", "moons --noise 50"),
    ("rate_too_high", "regression --lr 1.5"),
    ("rate_too_low", "regression --lr 1e-8"),
    ("clipping", "regression --clip 1e-6"),
    ("rate_too_high", "regression --weight-decay 100"),
    ("rate_too_low", "regression --optimizer adam --lr 1e-8"),
    ("rate_too_high", "text --lr 3 --schedule constant TEXT"),
    ("rate_too_low", "text --lr 1e-9 TEXT"),
    ("clipping", "text --clip 1e-8 TEXT"),
    ("rate_too_high", "text --optimizer sgd --lr 300 --clip 100000 TEXT"),
];

/// Each kind of training with its defaults, for a short time.
const DEFAULTS: [&str; 14] = [
    "names --steps 3000",
    "names --model bigram --steps 600",
    "names --model mlp --steps 60",
    "names --model wavenet --steps 60",
    "names --model rnn --steps 100",
    "names --model gru --steps 60",
    "names --model lstm --steps 60",
    "names --model bow --steps 100",
    "names --model transformer --steps 25",
    "digits --examples 1000 --epochs 1",
    "digits --model cnn --examples 500 --epochs 1",
    "text --layers 2 --width 32 --digits 1 --steps 150",
    "regression",
    "moons",
];

/// The settings in full.
fn words(short: &str, out: usize) -> String {
    let deep = ["16"; 16].join(",");
    let steps = if short.contains("--steps") { "" } else { "--epochs 20" };
    let digits = format!("{steps} --examples 500 --hidden 64 --batch 100");
    let text = "--layers 1 --heads 2 --width 32 --digits 1 --batch 16 --steps 150";
    let long = short.replace("DEEP", &deep).replace("DIGITS", &digits).replace("TEXT", text);
    format!("train {long} --out run{out} --json")
}

/// The kinds of all findings of a training, which may end with an error.
fn found(place: &Place, words: &str) -> Vec<String> {
    let output = place.run(words);
    let result: Value = text(&output.stdout)
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_else(|| panic!("{words}: {}", text(&output.stderr)));
    let findings = result["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn planted_settings_are_named() {
    let place = Place::new();
    let missed: Vec<String> = PLANTED
        .into_iter()
        .enumerate()
        .filter_map(|(i, (want, short))| {
            let found = found(&place, &words(short, i));
            (!found.iter().any(|kind| kind == want))
                .then(|| format!("{short}: {want}, but found {found:?}"))
        })
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn defaults_are_silent() {
    let place = Place::new();
    for (i, short) in DEFAULTS.into_iter().enumerate() {
        let found = found(&place, &words(short, i));
        assert!(found.is_empty(), "{short}: {found:?}");
    }
}

#[test]
fn a_monitored_run_has_the_same_weights_and_metrics() {
    let place = Place::new();
    for (i, more) in ["", "--eager"].into_iter().enumerate() {
        for kind in ["names", "moons"] {
            let run = |how: &str| {
                let out = format!("{kind}{i}{}", how.len());
                place.json(&format!("train {kind} --steps 40 {more} {how} --out {out} --json"));
                ["model.safetensors", "last.ckpt", "metrics.csv"]
                    .map(|name| fs::read(place.path(&out).join(name)).unwrap())
            };
            let without = run("--no-monitor");
            assert!(!place.files(&format!("{kind}{i}12")).contains(&"monitor.jsonl".to_owned()));
            assert!(run("") == without && run("--monitor-every 1") == without, "{kind} {more}");
        }
    }
}

#[test]
fn a_run_that_goes_on_keeps_what_was_seen() {
    let place = Place::new();
    place.json("train moons --steps 20 --monitor-every 5 --out run --json");
    let lines = || {
        let all = fs::read_to_string(place.path("run").join("monitor.jsonl")).unwrap();
        let steps = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        steps.map(|row| row["step"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    // After the eighth look the next step is looked at, too, for the noise of gradients.
    assert_eq!(lines(), [1, 2, 3, 4, 5, 7, 10, 14, 15, 20]);
    place.json("train moons --resume run --steps 40 --monitor-every 10 --json");
    assert_eq!(lines(), [1, 2, 3, 4, 5, 7, 10, 14, 15, 20, 21, 31]);
    let page = fs::read_to_string(place.path("run").join("report.html")).unwrap();
    let steps = page.split("\"steps\":[").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(steps, "0,1,2,3,4,6,9,13,14,19,20,30");
    // A run that is not watched leaves the file as it is.
    place.json("train moons --resume run --steps 42 --no-monitor --json");
    assert_eq!(lines().len(), 12);
}

#[test]
fn findings_are_told_live_and_at_the_end() {
    let place = Place::new();
    let output = place.run("train moons --lr 50 --steps 400 --out run");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    let live = err.lines().filter(|line| line.starts_with("finding: rate too high")).count();
    let last = out.lines().filter(|line| line.starts_with("finding: rate too high")).count();
    assert_eq!((live, last), (1, 1), "{out}\n{err}");
    assert!(out.contains("the report is run/report.html"), "{out}");
    let refused = place.refused("train moons --no-monitor --monitor-every 3", 2);
    assert!(refused.contains("--no-monitor"), "{refused}");
}

#[test]
fn the_report_of_names_has_samples() {
    let place = Place::new();
    let got = place.json("train names --steps 30 --out run --json");
    let page = fs::read_to_string(place.path("run").join("report.html")).unwrap();
    let first = got["samples"][0].as_str().unwrap();
    assert!(page.contains(&format!("\"samples\":[[30,\"{first}\\n")), "{first}");
}
