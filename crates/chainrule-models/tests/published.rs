//! Models and tokenizers that `transformers` wrote (`data/make.py`), held against what it says of
//! them.

use std::path::{Path, PathBuf};

use chainrule::models::{Decoder, FineTuning, Generation, KvCache, TextModel};
use chainrule::nn::StateDict;
use chainrule::{DType, Generator, Tensor, io};
use serde_json::Value;

const ALL: [&str; 3] = ["gpt2", "llama3", "llama2"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(folder(name).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
}

/// The tokens that logits are expected of, `[2, time]`.
fn batch(want: &Value) -> Tensor {
    let rows: Vec<Vec<i64>> = want["tokens"].as_array().unwrap().iter().map(numbers).collect();
    Tensor::from_slice(&rows.concat(), [rows.len(), rows[0].len()])
}

/// The logits of the last three positions against those of the other library.
fn assert_logits(model: &dyn Decoder, want: &Value) {
    let logits = model.logits(&batch(want)).unwrap();
    let shape: Vec<i64> = logits.shape().iter().map(|&d| d as i64).collect();
    assert_eq!(shape, numbers(&want["shape"]));
    let got = logits.narrow(1, logits.size(1) - 3, 3).to_vec::<f32>();
    let want = want["logits"].as_array().unwrap();
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let want = want.as_f64().unwrap();
        let error = (f64::from(*got) - want).abs();
        assert!(error <= 1e-5 * want.abs().max(1.0), "logit {i}: {got} and {want}");
    }
}

fn greedy(length: usize, cache: bool) -> Generation {
    Generation { length, cache, ends: false, ..Generation::default() }
}

#[test]
fn logits_are_those_of_transformers() {
    for name in ALL {
        assert_logits(TextModel::open(folder(name)).unwrap().model(), &expected(name));
    }
}

#[test]
fn texts_are_the_same_tokens_and_come_back() {
    for name in ALL {
        let model = TextModel::open(folder(name)).unwrap();
        let tokenizer = model.tokenizer();
        for case in expected(name)["texts"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let tokens = tokenizer.encode(text, true).unwrap();
            assert_eq!(tokens, numbers(&case["tokens"]), "{name}: {text:?}");
            let back = tokenizer.decode(&tokens).unwrap();
            assert_eq!(back, case["decoded"].as_str().unwrap(), "{name}: {text:?}");
        }
    }
}

#[test]
fn the_likeliest_tokens_are_the_same_with_and_without_a_cache() {
    for name in ALL {
        let (model, want) = (TextModel::open(folder(name)).unwrap(), expected(name));
        let prompt = model.prompt(want["prompt"].as_str().unwrap()).unwrap();
        let tokens = numbers(&want["greedy"]);
        for cache in [true, false] {
            let options = greedy(tokens.len(), cache);
            let got = model.generate_tokens(&prompt, &options, |_| Ok(())).unwrap();
            assert_eq!(got, tokens, "{name}, cache: {cache}");
            let sampled = Generation { temperature: 1.0, top_k: Some(5), ..options };
            let other = Generation { cache: !cache, ..sampled.clone() };
            assert_eq!(
                model.generate_tokens(&prompt, &sampled, |_| Ok(())).unwrap(),
                model.generate_tokens(&prompt, &other, |_| Ok(())).unwrap()
            );
        }
    }
}

#[test]
fn a_text_that_is_read_in_pieces_gives_the_same_logits() {
    for name in ALL {
        let model = TextModel::open(folder(name)).unwrap();
        let tokens = batch(&expected(name));
        let whole = model.model().logits(&tokens).unwrap();
        let mut cache = KvCache::new();
        for (first, size) in [(0, 5), (5, 1), (6, 4), (10, 2)] {
            let piece = tokens.narrow(1, first, size);
            let hidden = model.model().hidden(&piece, Some(&mut cache)).unwrap();
            let got = model.model().head(&hidden).unwrap().to_vec::<f32>();
            let want = whole.narrow(1, first, size).to_vec::<f32>();
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(got.iter().zip(&want).all(near), "{name} from {first}");
        }
        assert_eq!(cache.len(), 12);
    }
}

#[test]
fn a_text_is_told_while_it_is_written() {
    for name in ALL {
        let (model, want) = (TextModel::open(folder(name)).unwrap(), expected(name));
        let prompt = want["prompt"].as_str().unwrap();
        let mut told = String::new();
        let mut tell = |piece: &str| {
            told.push_str(piece);
            Ok(())
        };
        let text = model.generate_each(prompt, &greedy(24, true), &mut tell).unwrap();
        assert_eq!(text, told, "{name}");
        let all = [model.prompt(prompt).unwrap(), numbers(&want["greedy"])].concat();
        assert_eq!(format!("{prompt}{text}"), model.tokenizer().decode(&all).unwrap());
    }
}

#[test]
fn the_end_of_a_text_ends_the_writing() {
    let model = TextModel::open(folder("gpt2")).unwrap();
    let want = numbers(&expected("gpt2")["greedy"]);
    let prompt = model.prompt("The sea was grey").unwrap();
    let stop = want[5];
    let at = want.iter().position(|&t| t == stop).unwrap();
    let options = Generation { stops: vec![stop], ..greedy(24, true) };
    assert_eq!(model.generate_tokens(&prompt, &options, |_| Ok(())).unwrap(), want[..at]);
}

#[test]
fn a_saved_model_is_the_same_model_in_every_form() {
    for name in ALL {
        let (model, out) = (TextModel::open(folder(name)).unwrap(), tempfile::tempdir().unwrap());
        model.save(out.path()).unwrap();
        let again = TextModel::open(out.path()).unwrap();
        assert_logits(again.model(), &expected(name));
        assert_eq!(
            again.model().published().unwrap().len(),
            model.model().published().unwrap().len()
        );
        // The half dtypes lose digits, and nothing else.
        let path = out.path().join("model.safetensors");
        let half: StateDict = io::load(&path)
            .unwrap()
            .into_iter()
            .map(|(name, t)| (name, t.to_dtype(DType::BF16)))
            .collect();
        io::save(&path, &half, &Default::default()).unwrap();
        let halved = TextModel::open(out.path()).unwrap();
        let tokens = batch(&expected(name));
        let (a, b) =
            (halved.model().logits(&tokens).unwrap(), model.model().logits(&tokens).unwrap());
        let error = (&a - &b).abs().mean_all().item() / b.abs().mean_all().item();
        assert!(error > 1e-5 && error < 0.05, "{name}: {error}");
    }
}

#[test]
fn fine_tuning_learns_the_text_and_is_saved() {
    let text = "A quiet harbour. ".repeat(30);
    for name in ["gpt2", "llama3"] {
        let model = TextModel::open(folder(name)).unwrap();
        let tokens = model.tokenizer().encode(&text, false).unwrap();
        let before = model.mean_loss(&tokens, 16).unwrap();
        let options =
            FineTuning { steps: 60, batch: 4, context: 16, lr: 1e-2, ..Default::default() };
        let mut steps = 0;
        let mut count = |_| {
            steps += 1;
            Ok(())
        };
        model.fine_tune(&tokens, &options, &mut count).unwrap();
        let after = model.mean_loss(&tokens, 16).unwrap();
        assert!(steps == 60 && after < before / 3.0, "{name}: {before} to {after}");
        let out = tempfile::tempdir().unwrap();
        model.save(out.path()).unwrap();
        let again = TextModel::open(out.path()).unwrap();
        assert_eq!(again.mean_loss(&tokens, 16).unwrap(), after);
    }
}

/// A copy of a model's folder.
fn copy(name: &str) -> tempfile::TempDir {
    let out = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder(name)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), out.path().join(file.file_name())).unwrap();
    }
    out
}

#[test]
fn bad_folders_are_errors_of_one_line() {
    let change = |name: &str, file: &str, from: &str, to: &str| {
        let out = copy(name);
        let path = out.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        TextModel::open(out.path()).err().expect("an error").to_string()
    };
    for (name, file, from, to, part) in [
        ("gpt2", "config.json", "\"gpt2\"", "\"bert\"", "`model_type` is `bert`; there are gpt2"),
        (
            "gpt2",
            "config.json",
            "\"n_layer\": 2",
            "\"n_layer\": 3",
            "there is no `h.2.ln_1.weight`",
        ),
        ("gpt2", "config.json", "\"n_layer\": 2", "\"n_layer\": 1", "have no place in the model"),
        (
            "gpt2",
            "config.json",
            "\"n_embd\": 12",
            "\"n_embd\": -1",
            "`n_embd` must be a whole number",
        ),
        ("gpt2", "config.json", "\"n_embd\": 12", "\"n_embd\": 9", "`wte.weight` has the shape"),
        ("gpt2", "config.json", "\"n_head\": 3", "\"n_head\": 5", "5 heads cannot share"),
        ("gpt2", "config.json", "gelu_new", "tanh", "the activation `tanh` is not known"),
        ("gpt2", "vocab.json", "{", "[", "not JSON"),
        ("gpt2", "merges.txt", "Ġ t", "Ġt", "line 3 is no pair"),
        ("llama3", "config.json", "\"llama3\"", "\"yarn\"", "type `yarn` are not known"),
        (
            "llama3",
            "config.json",
            "\"num_key_value_heads\": 2",
            "\"num_key_value_heads\": 3",
            "cannot share 3",
        ),
        (
            "llama3",
            "tokenizer.json",
            "\"type\": \"BPE\"",
            "\"type\": \"Unigram\"",
            "`Unigram` is not known",
        ),
        (
            "llama3",
            "tokenizer.json",
            "TemplateProcessing",
            "Roberta",
            "`post_processor`: the type `Roberta`",
        ),
        ("llama3", "tokenizer.json", "\"Isolated\"", "\"Odd\"", "`pre_tokenizer`: the behavior"),
        (
            "llama2",
            "model.safetensors.index.json",
            "model-00001",
            "../model-00001",
            "no plain file name",
        ),
    ] {
        let error = change(name, file, from, to);
        assert!(error.contains(part) && !error.contains('\n'), "{part}: {error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = TextModel::open(empty.path()).err().unwrap().to_string();
    assert!(error.contains("config.json"), "{error}");
    let error = TextModel::open(empty.path().join("none")).err().unwrap().to_string();
    assert!(error.contains("is no folder"), "{error}");
}

/// Files with a few bytes changed: no panic, and errors of one line.
#[test]
fn damaged_files_do_no_harm() {
    let g = &mut Generator::manual_seed(5);
    let mut below = |n: usize| (g.random_u64() % n as u64) as usize;
    let (mut errors, mut count) = (0, 0);
    for name in ALL {
        let out = copy(name);
        for file in std::fs::read_dir(folder(name)).unwrap() {
            let file = file.unwrap().file_name();
            let path = out.path().join(&file);
            let good = std::fs::read(&path).unwrap();
            for _ in 0..60 {
                let mut bytes = good.clone();
                for _ in 0..1 + below(3) {
                    // Places of structure: at the front of weights, anywhere in texts.
                    let at = below(bytes.len().min(6000));
                    match below(4) {
                        0 => bytes[at] ^= 1 << below(8),
                        1 => bytes[at] = b"0123456789-.{}[]\",:*(\\"[below(22)],
                        2 => drop(bytes.remove(at)),
                        _ => bytes.truncate(bytes.len() - below(bytes.len().min(40))),
                    }
                }
                std::fs::write(&path, bytes).unwrap();
                let read = TextModel::open(out.path()).and_then(|model| {
                    let tokens = model.prompt("The sea 12 naïve")?;
                    model.tokenizer().decode(&tokens)?;
                    model.generate_tokens(&tokens, &greedy(2, true), |_| Ok(()))
                });
                count += 1;
                if let Err(e) = read {
                    errors += 1;
                    assert!(!e.to_string().contains('\n'), "{name}: {file:?}: {e}");
                }
            }
            std::fs::write(&path, good).unwrap();
        }
    }
    assert!(errors > count / 4, "{errors} errors of {count}");
}

#[test]
fn prompts_and_options_out_of_range_are_errors() {
    let model = TextModel::open(folder("gpt2")).unwrap();
    let generate = |tokens: &[i64], options: Generation| {
        model.generate_tokens(tokens, &options, |_| Ok(())).unwrap_err().to_string()
    };
    let plain = Generation::default;
    for (error, part) in [
        (generate(&[], plain()), "the prompt has no token"),
        (generate(&[1, -1], plain()), "token -1 is none of the model's"),
        (generate(&[1, 99_999], plain()), "token 99999 is none"),
        (generate(&[1; 4], Generation { length: 46, ..plain() }), "more than the model's 48"),
        (generate(&[1], Generation { temperature: -1.0, ..plain() }), "temperature"),
        (generate(&[1], Generation { top_k: Some(0), ..plain() }), "top_k"),
    ] {
        assert!(error.contains(part), "{error}");
    }
    let full = Generation { length: 45, ends: false, ..plain() };
    assert_eq!(model.generate_tokens(&[1; 4], &full, |_| Ok(())).unwrap().len(), 45);
    assert_eq!(model.prompt("").unwrap(), [0], "a text begins with the token that begins one");
}
