//! `chainrule text`, and `chainrule weights` with a map: models that `transformers` wrote, held
//! against what it says of them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::Place;
use serde_json::{Value, json};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../chainrule-models/tests/data").join(name)
}

/// A folder for a test with the models in it, and what is expected of one.
fn place(name: &str) -> (Place, Value) {
    let place = Place::new();
    fs::create_dir(place.path(name)).unwrap();
    for file in fs::read_dir(folder(name)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), place.path(name).join(file.file_name())).unwrap();
    }
    let want = fs::read_to_string(place.path(name).join("expected.json")).unwrap();
    (place, serde_json::from_str(&want).unwrap())
}

/// Ends of a text are no part of what is expected.
fn without_end(place: &Place, name: &str) {
    let path = place.path(name).join("config.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    config["eos_token_id"] = Value::Null;
    fs::write(path, config.to_string()).unwrap();
}

#[test]
fn the_likeliest_tokens_are_those_of_transformers() {
    for name in ["gpt2", "llama3", "llama2"] {
        let (place, want) = place(name);
        without_end(&place, name);
        for more in ["", "--no-cache", "--threads 1", "--mmap"] {
            let mut command =
                place.command(&format!("text --model {name} --length 24 --json {more}"));
            let output = command.arg("--prompt").arg(want["prompt"].as_str().unwrap()).output();
            let said = common::last_json(&output.unwrap());
            assert_eq!(said["tokens"], want["greedy"], "{name} {more}");
        }
    }
}

#[test]
fn a_text_is_written_and_a_seed_repeats_it() {
    let (place, _) = place("gpt2");
    let words = "text --model gpt2 --prompt The --length 20 --temperature 1 --top-k 20 --seed";
    let run = |seed: u32| place.run(&format!("{words} {seed}")).stdout;
    let text = common::text(&run(3)).to_owned();
    assert!(text.starts_with("The") && text.ends_with('\n'));
    assert_eq!(text, common::text(&run(3)));
    assert_ne!(text, common::text(&run(4)));
}

#[test]
fn a_model_learns_a_text_and_is_written_in_the_same_form() {
    let (place, _) = place("llama2");
    fs::write(place.path("a.txt"), "a quiet harbour ".repeat(20)).unwrap();
    fs::write(place.path("b.txt"), "a quiet harbour ".repeat(20)).unwrap();
    let train =
        "text --model llama2 --train a.txt b.txt --out new --steps 40 --lr 1e-2 --context 8";
    let said = place.json(&format!("{train} --json"));
    let losses = ["first_loss", "last_loss"].map(|key| said["training"][key].as_f64().unwrap());
    assert!(losses[1] < losses[0] / 2.0, "{losses:?}");
    assert_eq!(said["tokens"], Value::Null, "nothing is written without --length");
    assert!(place.refused(train, 1).contains("--force"));
    let said = place.json("text --model new --prompt aquiet --length 5 --json");
    assert!(said["kind"] == "llama" && said["text"].is_string());
}

#[test]
fn bad_folders_and_options_are_refused() {
    let (place, _) = place("gpt2");
    assert!(place.refused("text --model none", 1).contains("is no folder"));
    assert!(place.refused("text --model gpt2 --length 100", 1).contains("48 positions"));
    assert!(place.refused("text --model gpt2 --train none.txt --out new", 1).contains("none.txt"));
    assert!(place.refused("text --model gpt2 --train names.txt", 2).contains("--out"));
    assert!(place.refused("text --model gpt2 --temperature -1", 2).contains("temperature"));
    fs::write(place.path("gpt2/model.safetensors"), "no weights").unwrap();
    assert!(place.refused("text --model gpt2", 1).contains("model.safetensors"));
}

#[test]
fn weights_are_renamed_compared_and_written() {
    let (place, _) = place("gpt2");
    let map =
        "prefix transformer.\ndrop h.1.**\nh.*.attn.c_attn.weight -> block$1.qkv transposed\n";
    fs::write(place.path("map.txt"), map).unwrap();
    let said =
        place.json("weights gpt2/model.safetensors --map map.txt --to new.safetensors --json");
    let row = |said: &Value, name: &str| {
        let rows = said["tensors"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["name"] == name)
    };
    assert_eq!(row(&said, "block0.qkv").unwrap()["shape"], json!([36, 12]));
    assert!(row(&said, "h.1.ln_1.weight").is_none() && row(&said, "wte.weight").is_some());
    let again = place.json("weights new.safetensors --json");
    assert_eq!(row(&again, "block0.qkv").unwrap()["shape"], json!([36, 12]));
    // Beside the file before it was renamed.
    let like = "weights new.safetensors --like gpt2/model.safetensors";
    let fit = place.json(&format!("{like} --json"))["fit"].clone();
    let missing = fit["missing"].as_array().unwrap();
    assert!(missing.contains(&json!("transformer.h.1.ln_1.weight")), "{fit}");
    assert!(fit["left_over"].as_array().unwrap().contains(&json!("block0.qkv")), "{fit}");
    assert_eq!(fit["fitting"], 0);
    assert!(place.refused(&format!("{like} --strict"), 1).contains("does not fit"));
    fs::write(place.path("map.txt"), "wte -> \n").unwrap();
    assert!(place.refused("weights new.safetensors --map map.txt", 1).contains("line 1"));
}
