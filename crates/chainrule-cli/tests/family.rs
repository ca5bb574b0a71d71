//! The other trainings, as a user runs them, with small sizes.

mod common;

use std::fs;

use common::{Place, text};
use serde_json::Value;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn digits_are_learned_measured_and_recognised() {
    let place = Place::new();
    let words = "train digits --examples 1200 --hidden 48 --batch 32 --epochs 3 --out run --json";
    let got = place.json(words);
    assert_eq!((&got["epochs"], &got["interrupted"]), (&3.0.into(), &false.into()));
    assert!(number(&got, "test_accuracy") > 0.5, "{got}");
    for key in ["train_loss", "test_loss", "seconds"] {
        assert!(number(&got, key) > 0.0);
    }
    let seen: u64 = got["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(seen, 200);
    for file in [
        "mistakes.svg",
        "mistakes.png",
        "loss.svg",
        "metrics.csv",
        "best.ckpt",
        "last.ckpt",
        "model.safetensors",
    ] {
        assert!(place.path("run").join(file).exists(), "{file}");
    }
    let again = place.json("eval run --json");
    assert_eq!(again["accuracy"], got["test_accuracy"]);
    let mut pictures = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
    pictures.extend(vec![0; 2 * 784]);
    fs::write(place.path("two"), pictures).unwrap();
    let output = place.run("predict run two --json");
    assert_eq!(text(&output.stdout).lines().count(), 2);
    assert!(place.refused("sample run", 1).contains("makes nothing up"));
    assert!(place.refused("predict run names.txt", 1).contains("not an IDX file"));
}

/// The losses that a training printed come back from its folder, part by part.
#[test]
fn eval_measures_one_part_of_the_data() {
    let place = Place::new();
    let part = |run: &str, part: &str, what: &str| {
        number(&place.json(&format!("eval {run} --split {part} --json")), what)
    };
    let names =
        place.json("train names --data names.txt --hidden 20 --steps 50 --json --out names");
    for (split, loss) in
        [("train", "train_loss"), ("validation", "val_loss"), ("test", "test_loss")]
    {
        assert_eq!(part("names", split, "loss"), number(&names, loss), "{split}");
    }
    let sizes = ["train", "validation", "test"].map(|split| part("names", split, "names"));
    assert_eq!(sizes.iter().sum::<f64>(), number(&place.json("eval names --json"), "names"));
    let digits =
        place.json("train digits --examples 200 --hidden 16 --steps 20 --json --out digits");
    assert_eq!(part("digits", "test", "loss"), number(&digits, "test_loss"));
    assert_eq!(part("digits", "train", "examples"), 200.0);
    let refused = place.refused("eval digits --split validation", 1);
    assert!(refused.contains("the parts train and test only"), "{refused}");
    place.json("train names --model bigram --data names.txt --steps 30 --json --out bigram");
    assert_eq!(part("bigram", "test", "loss"), number(&place.json("eval bigram --json"), "loss"));
    assert!(part("bigram", "train", "names") > part("bigram", "test", "names"));
    // Another list would be split into other parts.
    let list = fs::read_to_string(place.path("names.txt")).unwrap();
    fs::write(place.path("names.txt"), list + "zoe\n").unwrap();
    for run in ["names", "bigram"] {
        let refused = place.refused(&format!("eval {run} --split test"), 1);
        assert!(refused.contains("not the data that the run learned from"), "{refused}");
    }
}

/// The backward pass by hand gives autograd's losses to rounding; a program's are the tape's bits.
#[test]
fn explicit_layers_and_programs_give_autograds_losses() {
    let place = Place::new();
    let losses = |out: &str, more: &str| -> Vec<f64> {
        place.json(&format!("train digits --examples 200 --hidden 16,8 --batch 20 --steps 25 --optimizer sgd --lr 0.05 --json --out {out} {more}"));
        let rows = text(&fs::read(place.path(out).join("metrics.jsonl")).unwrap());
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter_map(|row| row["loss"].as_f64()).collect()
    };
    let (tape, by_hand) = (losses("tape", "--eager"), losses("hand", "--backprop explicit"));
    assert_eq!(tape.len(), 25);
    assert!(tape.iter().zip(&by_hand).all(|(a, b)| (a - b).abs() < 1e-4), "{tape:?} {by_hand:?}");
    let program = losses("program", "");
    assert!(tape.iter().zip(&program).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn a_line_is_found() {
    let place = Place::new();
    fs::write(place.path("line.csv"), "a,b\n0,1\n1,3\n2,5\n3,7.5\n").unwrap();
    // Least squares by hand: the slope is 10.75 / 5, the means are 1.5 and 4.125.
    let got = place.json("train regression --data line.csv --out run --json");
    assert!(
        (number(&got, "w") - 2.15).abs() < 1e-4 && (number(&got, "b") - 0.9).abs() < 1e-4,
        "{got}"
    );
    let y = place.json("predict run 10 --json");
    assert!((number(&y, "y") - 22.4).abs() < 1e-3);
    assert!(place.refused("predict run ten", 1).contains("not a number"));
    assert!(number(&place.json("train regression --json"), "w") > 1.7);
}

#[test]
fn moons_text_and_sums_are_learned_a_little() {
    let place = Place::new();
    let moons = place.json("train moons --steps 300 --json --out moons");
    assert!(number(&moons, "test_accuracy") > 0.85, "{moons}");
    assert!(place.path("moons/boundary.svg").exists());
    let sums = place.json(
        "train text --digits 1 --layers 1 --width 32 --steps 60 --eval-every 60 --json --out sums",
    );
    assert!(number(&sums, "val_loss") < 2.6 && sums["exact_match"].is_number(), "{sums}");
    fs::write(place.path("text"), "the cat sat on the mat. ".repeat(60)).unwrap();
    let words = "train text --data text --layers 1 --width 32 --context 16 --steps 120 --eval-every 120 --json --out text-run";
    let got = place.json(words);
    assert!(number(&got, "val_loss") < 2.0, "{got}");
    let sample = place.json("sample text-run --start the --length 20 --top-k 3 --json");
    assert_eq!(sample["text"].as_str().unwrap().chars().count(), 23);
    assert!(number(&place.json("eval text-run --json"), "val_loss") < 2.0);
    assert!(place.refused("sample text-run --start X", 1).contains("'X'"));
}

#[test]
fn every_model_of_names_takes_a_few_steps() {
    let place = Place::new();
    for (model, parameters) in [
        ("bigram", 729),
        ("mlp", 69_147),
        ("rnn", 11_803),
        ("gru", 28_315),
        ("lstm", 36_763),
        ("bow", 12_827),
        ("transformer", 204_544),
        ("wavenet", 76_579),
    ] {
        let got = place.json(&format!(
            "train names --model {model} --data names.txt --steps 3 --json --out {model}"
        ));
        assert_eq!(got["parameters"], parameters, "{model}");
        let config = fs::read_to_string(place.path(model).join("config.toml")).unwrap();
        assert!(config.contains("kind = \"names\"") && !config.contains("famil"), "{config}");
        let standings =
            got["samples"].as_array().unwrap().iter().map(|s| s["in"].as_str().unwrap());
        assert!(
            standings.clone().count() == 20
                && standings.clone().all(|s| ["train", "test", "new"].contains(&s))
        );
        assert_eq!(place.json(&format!("sample {model} --count 3 --json"))["count"], 3);
        assert!(number(&place.json(&format!("eval {model} --json")), "loss") > 0.0);
    }
    // The main model can be named too.
    assert_eq!(
        place.json("train names --model bn-mlp --data names.txt --steps 3 --json")["parameters"],
        12_297
    );
}

/// The end of a run names a command that works.
#[test]
fn the_next_command_runs() {
    let place = Place::new();
    for kind in ["moons", "regression"] {
        let output = place.run(&format!("train {kind} --steps 20 --out {kind}"));
        let out = text(&output.stdout);
        let next = out.lines().last().unwrap().strip_prefix("next: chainrule ").unwrap();
        let output = place.run(next);
        assert!(output.status.success(), "{next}: {}", text(&output.stderr));
    }
    let svg = fs::read_to_string(place.path("moons/loss.svg")).unwrap();
    assert!(svg.contains(">held-out examples</text>"), "{svg}");
}

/// A run that goes on tells of the steps that it took itself.
#[test]
fn a_run_that_goes_on_counts_its_own_steps() {
    let place = Place::new();
    place.json("train moons --steps 30 --json --out run");
    let out = text(&place.run("train moons --resume run --steps 50").stdout);
    assert!(out.contains("20 steps more (50 in all) in "), "{out}");
}

/// A run that went wrong says so in a few lines, also where its model makes up endless names.
#[test]
fn a_diverged_run_does_not_flood_the_terminal() {
    let place = Place::new();
    let output = place.run("train names --data names.txt --lr 1e6 --steps 60 --out run");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    assert!(out.len() + err.len() < 12_000, "{} bytes\n{out}{err}", out.len() + err.len());
    for line in out.lines().filter(|line| line.starts_with("  ")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn looks_before_training() {
    let place = Place::new();
    let dry = place.json("train digits --examples 100 --hidden 8 --dry-run --json");
    assert_eq!(dry["dry_run"], true);
    assert!(!place.path("runs").exists());
    let found = place.json("train moons --find-lr --json --out lr");
    assert!(number(&found, "steepest") > 1e-6);
    assert_eq!(place.files("lr"), ["lr.png", "lr.svg"]);
    let one = place.json("train moons --overfit-batch --steps 1500 --batch 8 --lr 0.05 --json");
    assert!(number(&one, "train_loss") < 0.01, "{one}");
    // The same context goes on with several letters: the loss ends above zero, at the floor.
    let letters = place.json(
        "train names --model bigram --overfit-batch --steps 2000 --lr 0.1 --batch 8 --json --out letters",
    );
    let floor = number(&letters, "overfit_floor");
    assert!(floor > 0.1, "{letters}");
    assert!(number(&letters, "train_loss") >= floor, "{letters}");
    let stopped = place
        .json("train moons --steps 5000 --lr 1e-9 --eval-every 10 --patience 2 --points 20 --json");
    assert!(number(&stopped, "steps") <= 5000.0);
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&place.run(&format!("completions {shell}")).stdout).contains("chainrule"));
    }
    for command in ["digits", "text", "regression", "moons", "names --model gru"] {
        let help = text(&place.run(&format!("train {command} --help")).stdout);
        assert!(help.contains("Examples:"), "{command}");
    }
}
