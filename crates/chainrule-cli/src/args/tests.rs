//! Tests of command lines, read and refused.

use super::names::FAMILY_WORD;
use super::train::{Autocast, Common};
use super::*;

fn read(words: &str) -> Result<Cli, clap::Error> {
    Cli::read_from(std::iter::once("chainrule").chain(words.split_whitespace()))
}

fn train(words: &str) -> TrainNames {
    let Command::Train(train) = read(&format!("train names {words}")).unwrap().command else {
        panic!("not train")
    };
    match *train {
        Train::Names(train) => train,
        other => panic!("{other:?}"),
    }
}

/// The message of a command line that must be refused with status 2.
fn refused(words: &str) -> String {
    let error = read(words).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string().lines().next().unwrap().to_owned()
}

#[test]
fn clap_finds_no_mistake_in_the_definitions() {
    Cli::command().debug_assert();
}

#[test]
fn the_defaults_are_those_of_the_help() {
    let expected = TrainNames {
        data: None,
        model: "bn-mlp".into(),
        hidden: 200,
        context: 3,
        embedding: 10,
        lr_decay_at: None,
        fused: false,
        common: Common::default(),
    };
    assert_eq!(train(""), expected);
}

#[test]
fn every_option_arrives_where_it_belongs() {
    let all = "--data n.txt --steps 9 --batch 8 --hidden 7 --context 6 --embedding 5 --lr 1e-3 \
               --lr-decay-at 4 --seed 3 --out o --force --json --quiet --threads 2 --fused --eager \
               --autocast bf16";
    let expected = TrainNames {
        data: Some("n.txt".into()),
        model: "bn-mlp".into(),
        hidden: 7,
        context: 6,
        embedding: 5,
        lr_decay_at: Some(4),
        fused: true,
        common: Common {
            steps: Some(9),
            batch: Some(8),
            lr: Some(0.001),
            seed: Some(3),
            out: Some("o".into()),
            force: true,
            json: true,
            quiet: true,
            threads: Some(2),
            eager: true,
            autocast: Some(Autocast::Bf16),
            ..Common::default()
        },
    };
    assert_eq!(train(all), expected);
}

#[test]
fn the_other_commands_are_read() {
    let Command::Sample(sample) = read("sample runs/a --count 3 --seed 9 --json").unwrap().command
    else {
        panic!("not sample")
    };
    let (start, length, temperature, top_k) = (String::new(), 500, 0.8, None);
    let run = "runs/a".into();
    let text = Sample { run, count: 3, seed: 9, start, length, temperature, top_k, json: true };
    assert_eq!(sample, text);
    let Command::Eval(eval) = read("eval runs/a --data f").unwrap().command else {
        panic!("not eval")
    };
    assert_eq!(
        eval,
        Eval { run: "runs/a".into(), data: Some("f".into()), split: None, json: false }
    );
    let words = "bench mnist --mode eager --threads 2 --rounds 9 --fused";
    let Command::Bench(bench) = read(words).unwrap().command else { panic!("not bench") };
    assert_eq!((bench.workload, bench.mode), (Workload::Mnist, Mode::Eager));
    assert_eq!((bench.threads, bench.rounds), (Some(2), Some(9)));
    assert_eq!((bench.fused, bench.json), (true, false));
}

/// Each limit itself is accepted, and the number beyond it is not.
#[test]
fn limits_are_exact() {
    for (option, least, most) in [
        ("steps", 1, MAX_STEPS),
        ("batch", 1, 1_000_000),
        ("hidden", 1, 65_536),
        ("context", 1, 64),
        ("embedding", 1, 4_096),
        ("lr-decay-at", 0, MAX_STEPS),
        ("threads", 1, 256),
    ] {
        // A narrow model, so that no combination is too large.
        let words = |value: String| {
            let narrow = [("hidden", 1), ("context", 1), ("embedding", 1)];
            let narrow: Vec<String> = narrow
                .iter()
                .filter(|(name, _)| *name != option)
                .map(|(name, n)| format!("--{name} {n}"))
                .collect();
            format!("train names --{option} {value} {}", narrow.join(" "))
        };
        for accepted in [least.max(if option == "batch" { 2 } else { 0 }), most] {
            assert!(read(&words(accepted.to_string())).is_ok(), "{option} {accepted}");
        }
        let beyond = [least.checked_sub(1), Some(most + 1)].into_iter().flatten();
        let senseless = ["-1", "-5", "1.5", "nan", "1e3", "abc", "99999999999999999999999"];
        for value in beyond.map(|n| n.to_string()).chain(senseless.map(String::from)) {
            let text = refused(&words(value.clone()));
            let start = format!("error: invalid value '{value}' for '--{option} <");
            let end = format!("a whole number from {least} to {most}, in plain digits");
            assert!(text.starts_with(&start) && text.ends_with(&end), "{text}");
        }
    }
}

#[test]
fn learning_rates_must_be_positive_and_not_overflow() {
    for value in ["-1", "-0.5", "0", "-0", "nan", "inf", "1.1e30", "1e400", "fast", "0,1"] {
        assert_eq!(
            refused(&format!("train names --lr {value}")),
            format!(
                "error: invalid value '{value}' for '--lr <RATE>': the learning rate must be a \
                 number above 0 and at most 1e30, such as 0.1"
            )
        );
    }
    for value in ["1e30", "1e-300", "0.1", ".5"] {
        assert_eq!(train(&format!("--lr {value}")).common.lr, value.parse::<f64>().ok());
    }
}

#[test]
fn usage_mistakes_are_told_in_one_line() {
    for (words, part) in [
        ("train names --stepz 3", "unexpected argument '--stepz' found tip: a similar"),
        ("sample", "not provided: <DIR>"),
        ("train names --lr x", "the learning rate must be a number above 0"),
        (
            "bench gpt",
            "invalid value 'gpt' for '<WORKLOAD>' [possible values: names, mnist, gpt-small, gpt-medium, gpt2]",
        ),
    ] {
        let text = one_line(&read(words).unwrap_err().to_string());
        assert!(text.contains(part) && text.ends_with(" (see --help)"), "{text}");
        assert!(!text.contains('\n') && !text.contains("Usage"), "{text}");
    }
}

#[test]
fn a_batch_of_one_is_told_why() {
    let text = refused("train names --batch 1");
    assert!(text.contains("batch normalisation needs at least 2 examples"), "{text}");
}

#[test]
fn a_model_or_batch_that_fills_the_memory_is_refused() {
    let text = refused("train names --hidden 65536 --context 64 --embedding 4096");
    assert!(text.contains("weights, more than 100000000; make one of them smaller"), "{text}");
    let text = refused("train names --batch 1000000 --hidden 65536");
    assert!(text.contains("--batch 1000000 makes a layer of 65536000000 values"), "{text}");
}

#[test]
fn usage_mistakes_end_with_status_2_and_help_with_0() {
    for words in [
        "train",
        "train mnist",
        "train names --step 3",
        "train names --lr",
        "train names --seed -1",
        "sample",
        "sample runs/a --count 0",
        "eval",
        "bench",
        "bench gpt",
        "bench names --mode lazy",
        "bench names --rounds 0",
        "frobnicate",
    ] {
        refused(words);
    }
    for words in ["--help", "train names --help", "sample -h", "--version"] {
        assert_eq!(read(words).unwrap_err().exit_code(), 0, "{words}");
    }
}

#[test]
fn the_help_names_every_option_and_default() {
    let help = read("train names --help").unwrap_err().to_string();
    for part in [
        "--model <MODEL>",
        "bn-mlp:",
        "20,000 steps",
        "rate 0.1",
        "[default: half of the steps]",
        "--fused",
        "--resume",
    ] {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 110, "too long: {line}");
    }
    for words in ["train names --model gru --help", "train names --model gru --stepz 3"] {
        let text = read(words).unwrap_err().to_string();
        assert!(text.contains("Usage: chainrule train names --model <MODEL> [OPTIONS]"), "{text}");
        assert!(!text.contains("famil") && !text.contains(FAMILY_WORD), "{text}");
    }
    let refused = read("train names-family").unwrap_err().to_string();
    assert!(
        refused.contains("'names'") && !refused.contains(&format!("'{FAMILY_WORD}")),
        "{refused}"
    );
    let refused = read("train names --model gpt").unwrap_err().to_string();
    assert!(refused.contains("bn-mlp") && refused.contains("transformer"), "{refused}");
}
