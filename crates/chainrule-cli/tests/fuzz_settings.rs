//! `config.toml` with anything in it: settings from a file pass the limits of the options, for
//! every kind of run.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chainrule::rng::CounterRng;
use common::{Place, text};

const KINDS: [(&str, &str); 8] = [
    ("names", "train names --data names.txt --hidden 8"),
    ("names", "train names --model gru --data names.txt"),
    ("digits", "train digits --examples 100 --hidden 8 --accumulate 2"),
    ("digits", "train digits --examples 100 --model cnn --batch 100"),
    ("text", "train text --digits 1 --layers 1 --heads 1 --width 8 --batch 4 --clip 1"),
    ("text", "train text --data text.txt --layers 1 --heads 2 --width 8 --context 8 --batch 4"),
    ("regression", "train regression --ema 0.9 --patience 5"),
    ("moons", "train moons --points 40 --batch 8 --eval-every 3 --save-every 2 --log-every 1"),
];

/// A number in the file becomes another one.
fn other_number(text: &str, rng: &mut CounterRng) -> Option<String> {
    const NUMBERS: [&str; 30] = [
        "0",
        "1",
        "2",
        "3",
        "-1",
        "7",
        "64",
        "100",
        "1000",
        "65536",
        "100000",
        "1000000",
        "1000001",
        "1000000000",
        "4294967296",
        "4611686018427387904",
        "4000000000000000000",
        "9223372036854775807",
        "-9223372036854775808",
        "0.0",
        "0.5",
        "1.0",
        "1.5",
        "-0.1",
        "1e-300",
        "1e30",
        "1e308",
        "nan",
        "inf",
        "-inf",
    ];
    let mut below = |n: usize| (rng.next_u64() % n as u64) as usize;
    let lines: Vec<&str> = text.lines().collect();
    let is_setting = |line: &&str| line.contains(" = ") && !line.contains('"');
    let settings: Vec<usize> = (0..lines.len()).filter(|&i| is_setting(&lines[i])).collect();
    let at = *settings.get(below(settings.len().max(1)))?;
    let (name, old) = lines[at].split_once(" = ")?;
    let new = NUMBERS[below(NUMBERS.len())];
    let new = if old.starts_with('[') { format!("[{new}, {new}]") } else { new.to_owned() };
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    lines[at] = format!("{name} = {new}");
    Some(lines.join("\n"))
}

/// Bytes are changed, doubled, taken out.
fn other_bytes(text: &str, rng: &mut CounterRng) -> Vec<u8> {
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=below(3) {
        let at = below(bytes.len());
        match below(5) {
            _ if bytes.is_empty() => {}
            0 => bytes[at] = b"[]={}\"'.-+09e\n"[below(14)],
            1 => bytes[at] ^= 1 << below(8),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, b'0' + below(10) as u8),
            _ => {
                let end = (at + 1 + below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
        }
    }
    bytes
}

/// Each mutation is given to `--resume` and to a reader of the model; neither may panic, abort,
/// hang or take much memory.
fn fuzz(mutations: u64, seed: u64) {
    let place = Place::new();
    fs::write(place.path("text.txt"), "the cat sat on the mat; ".repeat(40)).unwrap();
    fs::write(
        place.path("picture"),
        [&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28][..], &[200; 784]].concat(),
    )
    .unwrap();
    for (i, (_, words)) in KINDS.iter().enumerate() {
        // The number of steps is the one asked for later, so that a run that goes on has none left.
        place.json(&format!("{words} --steps 4 --out run-{i} --json"));
    }
    let goods = KINDS
        .iter()
        .enumerate()
        .map(|(i, _)| fs::read_to_string(place.path(&format!("run-{i}/config.toml"))).unwrap());
    let goods: Vec<String> = goods.collect();
    let whole: Vec<Vec<(String, Vec<u8>)>> =
        (0..KINDS.len()).map(|i| place.contents(&format!("run-{i}"))).collect();
    let rng = &mut CounterRng::new(0xC0F1, seed);
    let (mut refused, mut accepted) = (0, 0);
    for mutation in 0..mutations {
        let which = (mutation % KINDS.len() as u64) as usize;
        let (kind, _) = KINDS[which];
        let run = format!("run-{which}");
        let changed = match rng.next_u64() % 4 {
            0 => other_bytes(&goods[which], rng),
            _ => other_number(&goods[which], rng).unwrap().into_bytes(),
        };
        let config = place.path(&format!("{run}/config.toml"));
        let reader = match kind {
            _ if mutation / KINDS.len() as u64 % 4 == 1 => {
                format!("export {run} --onnx model.onnx --force")
            }
            "regression" => format!("predict {run} 7"),
            "digits" => format!("predict {run} picture"),
            "moons" => format!("predict {run} 1"),
            _ if mutation % 3 == 0 => format!("eval {run}"),
            _ => format!("sample {run} --count 1 --length 3"),
        };
        for words in [format!("train {kind} --resume {run} --steps 4 --quiet"), reader] {
            fs::write(&config, &changed).unwrap();
            let shown = String::from_utf8_lossy(&changed).into_owned();
            let mut command = place.command(&words);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let began = Instant::now();
            let status = loop {
                match child.try_wait().unwrap() {
                    Some(status) => break status,
                    None if began.elapsed() > Duration::from_secs(180) => {
                        child.kill().unwrap();
                        panic!("{words} does not end:\n{shown}");
                    }
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
            };
            let mut error = Vec::new();
            std::io::Read::read_to_end(&mut child.stderr.take().unwrap(), &mut error).unwrap();
            let error = text(&error);
            assert!(matches!(status.code(), Some(0..=2)), "{words} ({status}): {error}\n{shown}");
            assert!(!error.contains("panicked"), "{words}: {error}\n{shown}");
            match status.success() {
                true => accepted += 1,
                false => {
                    assert!(error.lines().any(|line| line.starts_with("error: ")), "{error}");
                    refused += 1;
                }
            }
        }
        // A mutation that was accepted has written the run anew.
        for (name, bytes) in &whole[which] {
            fs::write(place.path(&run).join(name), bytes).unwrap();
        }
    }
    println!("{mutations} mutations: {refused} calls refused, {accepted} accepted");
    assert!(refused > 0 && accepted > 0);
}

#[test]
fn settings_of_a_file_have_the_limits_of_options() {
    let place = Place::new();
    for (kind, words, from, to, part) in [
        (
            "moons",
            "--points 40",
            "points = 40",
            "points = 4000000000000000000",
            "the number of points",
        ),
        ("moons", "--points 40", "batch = 64", "batch = 4000000000000000000", "the batch"),
        (
            "moons",
            "--points 40",
            "accumulate = 1",
            "accumulate = 4611686018427387904",
            "the number of batches",
        ),
        (
            "digits",
            "--examples 100 --hidden 8",
            "examples = 100",
            "examples = 0",
            "the number of examples",
        ),
        (
            "digits",
            "--examples 100 --hidden 8",
            "examples = 100",
            "examples = 4000000000000000000",
            "the number of examples",
        ),
        (
            "digits",
            "--examples 100 --hidden 8",
            "hidden = [8]",
            "hidden = [16384, 16384]",
            "weights, more than",
        ),
        (
            "text",
            "--digits 1 --layers 1 --heads 1 --width 8",
            "context = 64",
            "context = 0",
            "the context",
        ),
        (
            "text",
            "--digits 1 --layers 1 --heads 1 --width 8",
            "layers = 1",
            "layers = 4000000000000000000",
            "must be a whole number",
        ),
        (
            "text",
            "--digits 1 --layers 1 --heads 1 --width 8",
            "heads = 1",
            "heads = 3",
            "choose a multiple",
        ),
        (
            "text",
            "--digits 1 --layers 1 --heads 1 --width 8",
            "dropout = 0.0",
            "dropout = 1.0",
            "below 1",
        ),
        ("names", "--hidden 8", "context = 3", "context = 65", "the context"),
        ("names", "--hidden 8", "batch = 32", "batch = 1", "at least 2 examples"),
        ("regression", "", "batch = 1000000", "batch = 1000001", "the batch"),
        ("names", "--model bigram", "momentum = 0.0", "momentum = nan", "momentum = NaN"),
    ] {
        let _ = fs::remove_dir_all(place.path("run"));
        place.json(&format!("train {kind} {words} --steps 2 --out run --json"));
        let config = place.path("run/config.toml");
        let good = fs::read_to_string(&config).unwrap();
        let new = good.replacen(from, to, 1);
        // Long lists are written over several lines.
        let new = if new == good { good.replacen("hidden = [\n    8,\n]", to, 1) } else { new };
        assert_ne!(new, good, "{from} in {good}");
        fs::write(&config, new).unwrap();
        let error = place.refused(&format!("train {kind} --resume run --steps 3 --json"), 1);
        assert!(error.contains(part) && error.contains("config.toml"), "{to}: {error}");
    }
}

#[test]
fn damaged_settings_never_end_the_program() {
    fuzz(160, 1);
}

/// `cargo test --release -p chainrule-cli --test fuzz_settings -- --ignored --nocapture`, some
/// minutes; `CHAINRULE_FUZZ_COMMAND` sets how many.
#[test]
#[ignore = "takes minutes"]
fn damaged_settings_never_end_the_program_long() {
    let mutations = std::env::var("CHAINRULE_FUZZ_COMMAND").ok().and_then(|n| n.parse().ok());
    fuzz(mutations.unwrap_or(5_000), 2);
}
