//! Training, sampling and evaluating, as a user does.

mod common;

use std::fs;

use chainrule::data::text::NameList;
use chainrule::io;
use chainrule::rng::PythonRandom;
use common::{Place, last_json, text};
use serde_json::Value;

#[test]
fn help_and_version() {
    let place = Place::new();
    for words in [
        "--help",
        "train --help",
        "train names --help",
        "sample -h",
        "eval -h",
        "bench -h",
        "check names -h",
    ] {
        let output = place.run(words);
        assert!(output.status.success(), "{words}");
        assert!(text(&output.stdout).contains("Usage: chainrule"), "{words}");
    }
    let output = place.run("--version");
    assert_eq!(text(&output.stdout), format!("chainrule {}\n", env!("CARGO_PKG_VERSION")));
}

/// The loss of the training beside a measurement is the mean of the steps that it tells.
#[test]
fn a_measurement_tells_the_mean_of_the_steps_before_it() {
    let place = Place::new();
    place.json("train moons --steps 60 --eval-every 30 --out run --json");
    let rows = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let mut losses = Vec::new();
    let mut measured = 0;
    for row in rows.iter().filter(|row| row.get("step").is_some()) {
        if row.get("evaluation").is_none() {
            losses.extend(row["loss"].as_f64());
            continue;
        }
        let steps = row["train_loss_steps"].as_u64().unwrap() as usize;
        assert!((1..=30).contains(&steps), "{row}");
        let mean = losses[losses.len() - steps..].iter().sum::<f64>() / steps as f64;
        assert!((row["train_loss"].as_f64().unwrap() - mean).abs() < 1e-6, "{row}: {mean}");
        measured += 1;
    }
    assert_eq!(measured, 2);
    // It is no measure of its own.
    let shown = text(&place.run("watch run --once").stdout);
    assert!(shown.contains("train_loss") && !shown.contains("train_loss_steps"), "{shown}");
}

/// The built-in list, a numbered folder, and what a run leaves in it.
#[test]
fn a_first_run_needs_no_file_and_fills_a_folder() {
    let place = Place::new();
    let got = place.json("train names --steps 40 --json");
    assert_eq!((&got["steps"], &got["parameters"]), (&40.into(), &12_297.into()));
    assert_eq!((&got["interrupted"], &got["error"]), (&false.into(), &Value::Null));
    assert_eq!(got["samples"].as_array().unwrap().len(), 20);
    // A model that knows nothing has a loss of ln 27 = 3.296; forty steps make a little of that
    // good.
    for part in ["train_loss", "val_loss", "test_loss"] {
        let loss = got[part].as_f64().unwrap();
        assert!((1.5..3.3).contains(&loss), "{part} {loss}");
    }
    let [seconds, each] = ["seconds", "us_per_step"].map(|key| got[key].as_f64().unwrap());
    assert!(seconds > 0.0 && (each - seconds * 1e6 / 40.0).abs() < 1.0);
    assert_eq!(got["folder"], "runs/names-0001");
    let files = [
        "config.toml",
        "last.ckpt",
        "loss.png",
        "loss.svg",
        "metrics.csv",
        "metrics.jsonl",
        "model.safetensors",
        "monitor.jsonl",
        "report.html",
    ];
    assert_eq!(place.files("runs/names-0001"), files);
    let file = |name: &str| fs::read(place.path("runs/names-0001").join(name)).unwrap();

    let rows: Vec<Value> =
        text(&file("metrics.jsonl")).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 41);
    for (i, row) in rows[..40].iter().enumerate() {
        assert_eq!(row["step"], i + 1);
        assert!(row["loss"].as_f64().unwrap() > 0.0);
        assert_eq!(row["lr"], if i < 20 { 0.1 } else { 0.01 });
    }
    assert_eq!((&rows[40]["final"], &rows[40]["val_loss"]), (&true.into(), &got["val_loss"]));

    let config: toml::Table = text(&file("config.toml")).parse().unwrap();
    assert_eq!(config["model"]["hidden"].as_integer(), Some(200));
    assert_eq!(config["training"]["seed"].as_integer(), Some(2_147_483_647));
    assert_eq!(config["model"]["vocabulary"].as_str().map(str::len), Some(27));
    assert!(config["model"]["list"].as_str().unwrap().contains("built-in"));
    assert_eq!(config["versions"]["chainrule"].as_str(), Some(env!("CARGO_PKG_VERSION")));

    let png = png::Decoder::new(std::io::Cursor::new(file("loss.png"))).read_info().unwrap();
    assert!(png.info().width >= 800 && png.info().height >= 400);
    let svg = text(&file("loss.svg"));
    assert!(svg.trim_start().starts_with("<svg") || svg.contains("<?xml"), "{}", &svg[..80]);
    assert!(svg.trim_end().ends_with("</svg>"));

    let state = io::parse(&file("model.safetensors")).unwrap();
    let names: Vec<&str> = state.keys().map(String::as_str).collect();
    assert_eq!(names, ["C", "W1", "W2", "b1", "b2", "bnbias", "bngain", "bnmean", "bnvar"]);
    // The statistics are those of the training set, not the 0 and 1 that they begin with.
    assert!(state["bnmean"].to_f64_vec().iter().any(|&x| x != 0.0));
    assert!(state["bnvar"].to_f64_vec().iter().any(|&x| x != 1.0));

    let again = place.json("train names --steps 2 --json");
    assert_eq!(again["folder"], "runs/names-0002");
}

#[test]
fn what_is_printed_for_people_fits_100_columns() {
    let place = Place::new();
    let output = place.run("train names --data names.txt --steps 60 --out run");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for line in out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for name in
        ["C", "W1", "b1", "W2", "b2", "bngain", "bnbias", "emb", "hprebn", "hpreact", "h", "logits"]
    {
        assert!(out.lines().any(|l| l.split_whitespace().next() == Some(name)), "{name} in\n{out}");
    }
    assert!(out.contains("12,297 parameters") && out.contains("loss: train "), "{out}");
    assert!(out.ends_with("the model is in run\nnext: chainrule sample run\n"), "{out}");
    // Standard error is no terminal here: a line about every tenth, and no bar.
    let err = text(&output.stderr);
    assert!(err.lines().count() == 10 && err.contains(" a step  "), "{err}");
    let quiet = place.run("train names --data names.txt --steps 5 --out quiet --quiet");
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let place = Place::new();
    let seeds = ["--seed 1", "--seed 1", "--seed 2"];
    let got: Vec<Value> =
        seeds.iter().enumerate().map(|(i, seed)| place.train(&format!("r{i}"), seed)).collect();
    for key in ["train_loss", "val_loss", "test_loss", "samples"] {
        assert_eq!(got[0][key], got[1][key], "{key}");
    }
    assert_ne!(got[0]["train_loss"], got[2]["train_loss"]);
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert_eq!(model("r0"), model("r1"), "the weights");
}

/// 500 small steps, and a few that are large enough for several threads.
#[test]
fn the_number_of_threads_changes_no_bit() {
    let place = Place::new();
    for (kind, sizes) in [
        ("small", "--steps 500"),
        ("large", "--steps 4 --batch 600 --hidden 700"),
        ("fused", "--steps 4 --batch 600 --hidden 700 --fused"),
    ] {
        let mut models = Vec::new();
        for threads in [1, 2, 4] {
            let out = format!("{kind}{threads}");
            place.json(&format!(
                "train names --data names.txt {sizes} --threads {threads} --json --out {out}"
            ));
            models.push(fs::read(place.path(&out).join("model.safetensors")).unwrap());
        }
        assert!(models.iter().all(|model| *model == models[0]), "{kind}");
    }
}

/// The losses told at the end are those that `eval` finds on the three parts, made here by hand.
#[test]
fn eval_gives_the_losses_of_the_run() {
    let place = Place::new();
    let got = place.train("run", "");
    let list = NameList::read(place.path("names.txt")).unwrap();
    let mut names = list.names().to_vec();
    PythonRandom::seed(42).shuffle(&mut names);
    let parts = [
        ("train_loss", &names[..240]),
        ("val_loss", &names[240..270]),
        ("test_loss", &names[270..]),
    ];
    for (key, part) in parts {
        fs::write(place.path("part.txt"), part.join("\n")).unwrap();
        let found = place.json("eval run --data part.txt --json");
        assert_eq!(found["loss"], got[key], "{key}");
        let examples: usize = part.iter().map(|name| name.len() + 1).sum();
        assert_eq!((&found["examples"], &found["names"]), (&examples.into(), &part.len().into()));
    }
    // Without --data: the list that it was trained on, from any folder.
    let whole = place.json("eval run --data names.txt --json");
    fs::create_dir(place.path("sub")).unwrap();
    let elsewhere = place.path("sub");
    let output = place.command("eval ../run --json").current_dir(elsewhere).output().unwrap();
    assert_eq!(last_json(&output)["loss"], whole["loss"]);
    let output = place.run("eval run");
    assert!(text(&output.stdout).starts_with("loss "), "{}", text(&output.stdout));
}

#[test]
fn sample_gives_as_many_names_as_asked_for_and_repeats_itself() {
    let place = Place::new();
    let trained = place.train("run", "");
    let got = place.json("sample run --count 5 --seed 3 --json");
    let names = got["samples"].as_array().unwrap();
    assert_eq!(names.len(), 5);
    for name in names {
        assert!(name.as_str().unwrap().bytes().all(|b| b.is_ascii_lowercase()), "{name}");
    }
    let lines = text(&place.run("sample run --count 5 --seed 3").stdout);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(Value::from(lines), got["samples"]);
    assert_ne!(place.json("sample run --count 5 --seed 4 --json")["samples"], got["samples"]);
    // The defaults are those of the names at the end of the training.
    assert_eq!(place.json("sample run --json")["samples"], trained["samples"]);
}

#[test]
fn settings_do_what_they_say() {
    let place = Place::new();
    let got = place.json(
        "train names --data names.txt --steps 6 --batch 4 --hidden 7 --context 5 --embedding 3 --lr 0.5 \
         --lr-decay-at 2 --out run --json",
    );
    // 27 x 3, 15 x 7 and 7, 7 x 27 and 27, twice 7.
    assert_eq!(got["parameters"], 27 * 3 + 15 * 7 + 7 + 7 * 27 + 27 + 14);
    let rows = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    let rates: Vec<f64> = rows
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["lr"].as_f64())
        .collect();
    assert_eq!(rates, [0.5, 0.5, 0.05, 0.05, 0.05, 0.05]);
    assert!(place.json("sample run --count 1 --json")["samples"].is_array());
}

#[test]
fn every_optimizer_trains_every_model() {
    let place = Place::new();
    for (optimizer, lr) in [
        ("sgd", 0.02),
        ("adam", 0.005),
        ("adamw", 0.005),
        ("rmsprop", 0.005),
        ("adagrad", 0.02),
        ("lion", 0.001),
        ("muon", 0.02),
    ] {
        for (kind, words) in [
            ("names", "names --steps 60 --hidden 30"),
            ("digits", "digits --examples 200 --batch 20 --hidden 16 --epochs 3"),
            ("cnn", "digits --examples 120 --batch 10 --model cnn --epochs 2"),
            ("text", "text --layers 1 --heads 2 --width 16 --digits 1 --steps 30"),
        ] {
            let words =
                format!("train {words} --optimizer {optimizer} --lr {lr} --no-monitor --json");
            let got = place.json(&format!("{words} --out {optimizer}-{kind}"));
            let lines =
                fs::read_to_string(place.path(&format!("{optimizer}-{kind}/metrics.jsonl")));
            let lines = lines.unwrap();
            let losses = lines.lines().filter_map(|line| {
                serde_json::from_str::<Value>(line).unwrap().get("loss").and_then(Value::as_f64)
            });
            let losses: Vec<f64> = losses.collect();
            let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
            let third = losses.len() / 3;
            let [early, late] = [mean(&losses[..third]), mean(&losses[losses.len() - third..])];
            assert!(late < early, "{words}: {early} to {late}, {got}");
        }
    }
}

/// Fused operations compute the same but for rounding.
#[test]
fn fused_operations_give_the_same_losses_but_for_rounding() {
    let place = Place::new();
    let losses = |out: &str, more: &str| -> Vec<f64> {
        place.train(out, more);
        let rows = text(&fs::read(place.path(out).join("metrics.jsonl")).unwrap());
        rows.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["loss"].as_f64())
            .collect()
    };
    let (plain, fused) = (losses("plain", ""), losses("fused", "--fused"));
    assert_eq!((plain.len(), fused.len()), (30, 30));
    for (a, b) in plain.iter().zip(&fused) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

/// PyTorch's losses for the same seed, data and settings (`crates/chainrule/tests/data/README.md`).
#[test]
fn the_first_thousand_losses_are_those_of_pytorch() {
    let Some(folder) = std::env::var_os("CHAINRULE_DATA") else {
        eprintln!("skipped: CHAINRULE_DATA does not name a folder with names.txt");
        return;
    };
    let reference =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../chainrule/tests/data/names_run.safetensors");
    let expected = io::load(reference).unwrap()["losses"].to_f64_vec();
    let place = Place::new();
    let names = std::path::Path::new(&folder).join("names.txt");
    let words = format!("train names --data {} --steps 2000 --out run --json", names.display());
    assert_eq!(place.json(&words)["parameters"], 12_297);
    let rows = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    let mut worst: f64 = 0.0;
    for (line, expected) in rows.lines().zip(&expected) {
        let row: Value = serde_json::from_str(line).unwrap();
        worst = worst.max((row["loss"].as_f64().unwrap() - expected).abs());
    }
    assert_eq!(expected.len(), 1_000);
    eprintln!("largest difference {worst:.1e}");
    assert!(worst < 1e-5, "{worst}");
}

/// Every kind of training takes products on bf16, writes that down, and has losses near those of
/// f32.
#[test]
fn autocast_is_recorded_and_rounds_the_steps() {
    let place = Place::new();
    for (kind, words) in [
        ("names", "names --data names.txt --hidden 20"),
        ("family", "names --model transformer --data names.txt"),
        ("digits", "digits --examples 100 --batch 50 --model cnn"),
        ("explicit", "digits --examples 100 --batch 50 --hidden 9 --backprop explicit"),
        ("text", "text --layers 1 --heads 2 --width 16 --digits 1 --batch 4"),
        ("moons", "moons --points 60 --batch 8"),
        ("regression", "regression"),
    ] {
        let words = format!("train {words} --steps 4 --json --out {kind}");
        let whole = place.json(&words);
        let near = place.json(&format!("{words}-near --autocast bf16"));
        let losses = [&whole, &near].map(|run| run["train_loss"].as_f64().unwrap());
        let off = (losses[0] - losses[1]).abs() / losses[0];
        assert!(off > 0.0 && off < 0.05, "{kind}: {losses:?}");
        let config =
            |folder: &str| text(&fs::read(place.path(folder).join("config.toml")).unwrap());
        assert!(config(&format!("{kind}-near")).contains("autocast = \"bf16\""));
        assert!(!config(kind).contains("autocast"));
    }
    let error = place.refused("train moons --autocast f16", 2);
    assert!(error.contains("bf16"), "{error}");
    let error = place.refused("train moons --resume moons --autocast bf16", 2);
    assert!(error.contains("--resume"), "{error}");
    let got = place.json("bench names --autocast bf16 --threads 1 --rounds 1 --json");
    assert_eq!(got["autocast"], "bf16");
}

#[test]
fn bench_prints_its_figures_last() {
    let place = Place::new();
    let got = place.json("bench names --mode eager --threads 1 --rounds 1 --json");
    assert_eq!((&got["workload"], &got["mode"]), (&"names".into(), &"eager".into()));
    assert_eq!(got["threads"], 1);
    let [least, middle] = ["us_min", "us_median"].map(|key| got[key].as_f64().unwrap());
    assert!(least > 0.0 && least <= middle);
}
