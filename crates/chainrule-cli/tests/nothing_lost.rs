//! Files of runs: nothing is overwritten, shortened or read damaged without a word.

mod common;

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Place, one_error, text};

const LINE: &str = "train regression --save-every 1 --json";

fn lines(place: &Place, file: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(place.path(file)).unwrap();
    bytes.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
}

/// A training that does not end by itself, once this file is there.
fn endless(place: &Place, words: &str, file: &str) -> Child {
    let mut command = place.command(words);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !place.path(file).exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no {file}");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// One bad byte costs one line, which is told, and the file as it was is kept.
#[test]
fn damaged_metrics_are_told_and_kept() {
    for (file, damage) in [
        ("metrics.jsonl", 0xff),
        ("metrics.jsonl", b'}'),
        ("metrics.csv", 0xff),
        ("metrics.csv", b','),
    ] {
        let place = Place::new();
        place.json(&format!("{LINE} --steps 20 --out run"));
        let path = place.path("run").join(file);
        let good = lines(&place, &format!("run/{file}"));
        let mut bytes = fs::read(&path).unwrap();
        let at = good[..7].iter().map(|line| line.len() + 1).sum::<usize>() + 2;
        bytes[at] = damage;
        fs::write(&path, &bytes).unwrap();
        let output = place.run("train regression --resume run --steps 25 --json");
        let warning = text(&output.stderr);
        assert!(output.status.success(), "{warning}");
        let copy = format!("{file}.damaged-1");
        assert!(
            warning.contains("line 8 is damaged (1 in all)") && warning.contains(&copy),
            "{warning}"
        );
        assert_eq!(fs::read(place.path("run").join(copy)).unwrap(), bytes);
        let now = lines(&place, &format!("run/{file}"));
        assert_eq!(now[..7], good[..7]);
        // The last line is that of the end, which was taken out in the JSON file.
        let ends = if file.ends_with("jsonl") { 2 } else { 1 };
        let kept = good.len() - ends;
        assert_eq!(now[7..kept - 1], good[8..kept], "{file}");
        assert!(now.len() > good.len(), "{file}");
    }
}

/// A line that was cut out or changed by hand is told, and nothing where all is as it was.
#[test]
fn metrics_that_were_cut_or_changed_are_told() {
    for file in ["metrics.jsonl", "metrics.csv"] {
        let place = Place::new();
        place.json(&format!("{LINE} --steps 20 --out run"));
        let path = place.path("run").join(file);
        let resume = |steps: u32| {
            let words = format!("train regression --resume run --steps {steps} --json");
            let output = place.run(&words);
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stderr)
        };
        let told = resume(22);
        assert!(!told.contains("warning"), "{told}");
        let good = fs::read_to_string(&path).unwrap();
        let rows: Vec<&str> = good.lines().collect();
        fs::write(&path, [&rows[..5], &rows[6..]].concat().join("\n") + "\n").unwrap();
        let told = resume(24);
        assert!(told.contains(file) && told.contains("is missing"), "{told}");
        // It goes on with what is there, and that is what the next checkpoint knows.
        assert!(!resume(26).contains("warning"));
        let now = fs::read_to_string(&path).unwrap();
        fs::write(&path, now.replacen(rows[7], &rows[7].replacen('.', ".9", 1), 1)).unwrap();
        let told = resume(28);
        assert!(told.contains(file) && told.contains("were changed"), "{told}");
    }
}

#[test]
fn metrics_that_cannot_be_read_end_the_resume() {
    let place = Place::new();
    place.json(&format!("{LINE} --steps 5 --out run"));
    for file in ["metrics.jsonl", "metrics.csv"] {
        let (path, away) = (place.path("run").join(file), place.path("away"));
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        let error = place.refused("train regression --resume run --steps 9 --json", 1);
        assert!(error.contains(file) && error.contains("move the file away"), "{error}");
        fs::remove_dir(&path).unwrap();
        // Missing ones are told.
        let output = place.run("train regression --resume run --steps 5 --json");
        let warning = text(&output.stderr);
        assert!(output.status.success() && warning.contains("is missing"), "{warning}");
        fs::rename(&away, &path).unwrap();
    }
}

/// A run that was killed between two checkpoints takes the later steps again, and says so.
#[test]
fn steps_after_the_checkpoint_are_taken_again() {
    let place = Place::new();
    place.json("train regression --steps 12 --save-every 5 --json --out run");
    let output = place.run("train regression --resume run --checkpoint earlier --steps 12 --json");
    let note = text(&output.stderr);
    assert!(
        output.status.success() && note.contains("lines of steps after the checkpoint"),
        "{note}"
    );
    let rows = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    for step in 1..=12 {
        let row = format!("{{\"step\":{step},\"epoch\"");
        let times =
            rows.lines().filter(|line| line.starts_with(&row) && line.contains("\"lr\"")).count();
        assert_eq!(times, 1, "{step}: {rows}");
    }
}

#[test]
fn force_leaves_the_earlier_run_whole_until_there_is_a_checkpoint() {
    let place = Place::new();
    let first =
        "train names --data names.txt --hidden 20 --eval-every 2 --steps 6 --json --out run";
    place.json(first);
    fs::write(place.path("run/notes.txt"), "mine").unwrap();
    let before = place.contents("run");
    assert!(before.iter().any(|(name, _)| name == "best.ckpt"));
    // A loss that is not finite.
    let words =
        "train names --data names.txt --hidden 20 --steps 9 --lr 1e30 --force --json --out run";
    let error = place.refused(words, 1);
    assert!(error.contains("the earlier run in run is as it was"), "{error}");
    assert_eq!(place.contents("run"), before);
    // Killed before the first checkpoint.
    let words =
        "train names --data names.txt --hidden 30 --steps 1000000000 --force --quiet --out run";
    kill(endless(&place, words, "run/.new-run/metrics.jsonl"));
    let left: Vec<_> = before
        .iter()
        .filter(|(name, _)| fs::read(place.path("run").join(name)).is_ok())
        .cloned()
        .collect();
    assert_eq!(left, before);
    for (name, bytes) in &before {
        assert_eq!(&fs::read(place.path("run").join(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(place.json("train names --resume run --steps 7 --json")["steps"], 7);
    assert!(!place.path("run/.new-run").exists());
    // One that comes to a checkpoint takes the place, and the best of the other is gone.
    place.json("train names --data names.txt --hidden 30 --steps 4 --force --json --out run");
    let files = place.files("run");
    assert!(
        !files.contains(&"best.ckpt".to_owned()) && !files.contains(&".new-run".to_owned()),
        "{files:?}"
    );
    assert_eq!(fs::read_to_string(place.path("run/notes.txt")).unwrap(), "mine");
    assert!(fs::read_to_string(place.path("run/config.toml")).unwrap().contains("hidden = 30"));
    assert_eq!(place.json("train names --resume run --steps 6 --json")["steps"], 6);
    // Stopped between the checkpoints of a longer one, it is the new run too.
    let words = "train names --data names.txt --hidden 40 --steps 1000000000 --save-every 50 --force --quiet --out run";
    let child = endless(&place, words, "run/.new-run");
    let began = Instant::now();
    while !fs::read_to_string(place.path("run/config.toml"))
        .is_ok_and(|text| text.contains("hidden = 40"))
    {
        assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    let got = place.json("train names --resume run --checkpoint last --steps 60 --json");
    assert!(got["steps"].as_u64().unwrap() >= 50, "{got}");
    assert!(!place.path("run/.new-run").exists());
}

/// Checkpoints behind the first one go to the run's folder, too, which it has by then.
#[test]
fn a_run_that_replaces_another_saves_more_than_once() {
    let place = Place::new();
    let words = "train names --data names.txt --hidden 20 --eval-every 3 --save-every 3 --json";
    place.json(&format!("{words} --steps 3 --out run"));
    let got = place.json(&format!("{words} --steps 12 --force --out run"));
    assert_eq!(got["steps"], 12);
    let files = place.files("run");
    for name in ["last.ckpt", "earlier.ckpt", "best.ckpt", "model.safetensors"] {
        assert!(files.contains(&name.to_owned()), "{files:?}");
    }
    assert!(!files.contains(&".new-run".to_owned()), "{files:?}");
    assert_eq!(place.json("train names --resume run --steps 14 --json")["steps"], 14);
}

#[test]
fn of_twenty_starts_at_once_one_gets_the_folder() {
    let place = Place::new();
    let start = || {
        let mut command = place.command("train regression --steps 300 --json --out run");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..20).map(|_| start()).collect();
    let outputs: Vec<_> =
        children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let good = outputs.iter().filter(|output| output.status.success()).count();
    assert_eq!(good, 1);
    for output in outputs.iter().filter(|output| !output.status.success()) {
        let error = one_error(output, 1);
        assert!(
            error.contains("another training writes in run") || error.contains("not empty"),
            "{error}"
        );
    }
}

#[test]
fn a_folder_in_which_a_training_writes_is_refused() {
    let place = Place::new();
    let child = endless(
        &place,
        "train regression --steps 1000000000 --save-every 100 --quiet --out run",
        "run/last.ckpt",
    );
    for words in [
        "train regression --resume run --steps 1000000000 --json",
        "train regression --steps 3 --out run --json",
        "train regression --steps 3 --out run --force --json",
        "train moons --find-lr --out run --force --json",
    ] {
        let error = place.refused(words, 1);
        assert!(error.contains("another training writes in run"), "{words}: {error}");
    }
    kill(child);
    let steps = chainrule::io::CheckpointFolder::new(place.path("run"))
        .load(chainrule::io::Kept::Last)
        .unwrap()
        .state["trainer.step"]
        .to_vec::<i64>()[0];
    let two = [0, 1].map(|_| {
        let mut command = place
            .command(&format!("train regression --resume run --steps {} --json", steps + 2_000));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let done = two.map(|child| child.wait_with_output().unwrap());
    assert!(done.iter().any(|output| output.status.success()));
    // The files belong together whichever came second, after the first or not at all.
    let config = fs::read_to_string(place.path("run/config.toml")).unwrap();
    assert!(config.contains(&format!("steps = {}", steps + 2_000)), "{config}");
    let rows = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    let finals = rows.lines().filter(|line| line.contains("\"final\":true")).count();
    assert_eq!(finals, 1);
}

#[test]
fn unfinished_files_of_killed_runs_are_swept() {
    let place = Place::new();
    place.json(&format!("{LINE} --steps 3 --out run"));
    for i in 0..130 {
        fs::write(place.path(&format!("run/.last.ckpt.1-{i}.tmp")), "half").unwrap();
    }
    fs::write(place.path("run/.earlier.1.tmp"), "half").unwrap();
    fs::write(place.path("run/.notes.tmp"), "mine").unwrap();
    place.json("train regression --resume run --steps 5 --json");
    let hidden: Vec<String> =
        place.files("run").into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(hidden, [".notes.tmp"]);
}

#[test]
fn every_damaged_byte_of_a_model_is_told() {
    let place = Place::new();
    place.train("run", "");
    let path = place.path("run/model.safetensors");
    let good = fs::read(&path).unwrap();
    for i in 0..100 {
        let mut bytes = good.clone();
        let at = i * (good.len() - 1) / 99;
        bytes[at] ^= 1 << (i % 8);
        fs::write(&path, bytes).unwrap();
        let words = if i % 2 == 0 { "sample run --count 1" } else { "eval run" };
        let error = place.refused(words, 1);
        assert!(error.contains("model.safetensors"), "byte {at}: {error}");
    }
    let output = place.run("train names --resume run --steps 31 --json");
    let warning = text(&output.stderr);
    assert!(output.status.success() && warning.contains("model.safetensors"), "{warning}");
    place.json("eval run --json");
    // Without a checksum, as earlier versions and other programs write them.
    let state = chainrule::io::load(&path).unwrap();
    fs::write(&path, chainrule::io::serialize(&state, &Default::default()).unwrap()).unwrap();
    place.json("eval run --json");
}

/// Weights that are numbers and give losses and predictions that are none.
#[test]
fn results_that_are_not_numbers_are_errors() {
    let place = Place::new();
    place.json("train text --digits 1 --layers 1 --heads 1 --width 8 --steps 2 --schedule constant --json --out text");
    place.json("train names --model gru --data names.txt --steps 2 --json --out gru");
    place.json("train digits --examples 100 --hidden 8 --steps 2 --json --out digits");
    place.json("train regression --steps 2 --json --out line");
    place.train("names", "");
    for run in ["text", "gru", "digits", "line", "names"] {
        let path = place.path(run).join("model.safetensors");
        let mut state = chainrule::io::load(&path).unwrap();
        for (name, t) in &mut state {
            if t.dtype() == chainrule::DType::F32
                && !["var", "mean", "deviation"].iter().any(|s| name.contains(s))
            {
                *t = chainrule::Tensor::full(t.shape(), 3e38, t.dtype());
            }
        }
        chainrule::io::save(&path, &state, &Default::default()).unwrap();
    }
    let idx = [&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28][..], &[200; 784]].concat();
    fs::write(place.path("picture"), idx).unwrap();
    for words in [
        "eval text",
        "eval gru",
        "eval digits",
        "eval names",
        "sample text",
        "predict digits picture",
        "predict line 1e38",
    ] {
        let error = place.refused(words, 1);
        assert!(error.contains("not a number"), "{words}: {error}");
    }
    for number in ["nan", "inf", "1e39"] {
        assert!(place.refused(&format!("predict line {number}"), 1).contains("not a number"));
    }
    fs::write(place.path("big.csv"), "x,y\n1,2\n2,4e38\n").unwrap();
    let error = place.refused("train regression --data big.csv --json --out big", 1);
    assert!(error.contains("big.csv: line 3: \"4e38\" in column `y` is too large"), "{error}");
    let error = one_error(&place.run("train regression --steps 200 --lr 3 --json --out far"), 1);
    assert!(error.contains("is inf") || error.contains("is NaN"), "{error}");
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_refused() {
    let place = Place::new();
    place.train("run", "");
    let made = std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", place.path("link")).unwrap();
    for file in ["pipe", "link", "/dev/zero"] {
        for words in
            ["train names", "train names --model gru", "train regression", "train text", "eval run"]
        {
            let error = place.refused(&format!("{words} --data {file}"), 1);
            assert!(error.contains("a pipe or a device"), "{words} {file}: {error}");
        }
        for words in ["weights", "diagnose", "studio --no-open"] {
            let error = place.refused(&format!("{words} {file}"), 1);
            assert!(error.contains("a pipe or a device"), "{words} {file}: {error}");
        }
        // A description that is a file may name data that are none.
        let data = format!(r#"{{"file": "{file}"}}"#);
        let program = DESCRIPTION.replace("ACTIVATION", "sigmoid").replace("DATA", &data);
        fs::write(place.path("p.json"), program).unwrap();
        let error = place.refused("diagnose p.json", 1);
        assert!(error.contains("a pipe or a device"), "data {file}: {error}");
    }
    for file in ["config.toml", "last.ckpt", "metrics.jsonl", "model.safetensors"] {
        let path = place.path("run").join(file);
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let words = if file.starts_with("model") {
            "sample run"
        } else {
            "train names --resume run --steps 31 --json"
        };
        let error = place.refused(words, 1);
        assert!(error.contains(file) && error.contains("a pipe or a device"), "{file}: {error}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, good).unwrap();
    }
}

/// A program for `diagnose`, whose data are to be put in.
const DESCRIPTION: &str = r#"{"id": "ID", "task": "binary", "data": DATA, "input": [2],
    "layers": [{"type": "dense", "units": 1, "activation": "ACTIVATION", "init": "he_normal"}],
    "loss": {"name": "bce_probs"}, "optimizer": {"name": "adam", "lr": 0.01}, "batch": 2, "epochs": 1}"#;

#[test]
fn control_characters_in_data_are_written_out() {
    let place = Place::new();
    // JSON writes them as escapes, and its reader makes characters of them.
    let red = "\\u001b[31m\\u009b2J\\u0007";
    let header = format!(
        r#"{{"__metadata__":{{"{red}":"{red}\nsecond"}},"{red}\nw":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#
    );
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.as_bytes());
    weights.extend([0; 4]);
    fs::write(place.path("w.safetensors"), &weights).unwrap();
    fs::write(place.path("cut.safetensors"), &weights[..weights.len() - 2]).unwrap();
    let unknown = DESCRIPTION.replace("ACTIVATION", red).replace("ID", red);
    fs::write(place.path("p.json"), unknown.replace("DATA", "{}")).unwrap();
    let lost = DESCRIPTION.replace("ACTIVATION", "sigmoid").replace("ID", red);
    fs::write(place.path("q.json"), lost.replace("DATA", &format!(r#"{{"file": "{red}"}}"#)))
        .unwrap();
    fs::write(place.path("r.json"), "{\"id\": \"\u{9b}2J").unwrap();
    let listing = text(&place.run("weights w.safetensors").stdout);
    assert_eq!(listing.lines().count(), 4, "{}", listing.escape_debug());
    fs::write(place.path("table.csv"), "a\x1b[31m,b\u{9b}2J\n1,2\n2,4\n3,6\n").unwrap();
    fs::write(place.path("text.txt"), "\x1b[2J\x07ab".repeat(60)).unwrap();
    let gpt = "train text --data text.txt --layers 1 --heads 1 --width 8 --context 8 --steps 4 --eval-every 2 --schedule constant";
    for words in [
        "train regression --data table.csv --steps 3 --out line",
        "train regression --data table.csv --steps 3 --out line-json --json",
        &format!("{gpt} --out text"),
        &format!("{gpt} --json --out text-json"),
        "sample text --length 40",
        "eval text",
        "train regression --data \x1b[31mred.csv",
        "weights w.safetensors",
        "weights w.safetensors --json",
        "weights cut.safetensors",
        "weights \x1b[31mred.safetensors",
        "diagnose p.json",
        "diagnose q.json",
        "diagnose q.json --python",
        "diagnose r.json --json",
        "diagnose \x1b[31mred.json",
    ] {
        let output = place.run(words);
        for stream in [&output.stdout, &output.stderr] {
            let bad = text(stream).chars().find(|c| c.is_control() && !"\n\t".contains(*c));
            assert_eq!(bad, None, "{words}: {}", text(stream).escape_debug());
        }
    }
}

#[test]
fn explain_does_not_overwrite_unasked() {
    let place = Place::new();
    fs::write(place.path("notes.txt"), "mine").unwrap();
    let error = place.refused("explain softmax-ce --out notes.txt", 1);
    assert!(error.contains("notes.txt exists") && error.contains("--force"), "{error}");
    assert_eq!(fs::read_to_string(place.path("notes.txt")).unwrap(), "mine");
    assert!(place.run("explain softmax-ce --out notes.txt --force").status.success());
    assert!(fs::read_to_string(place.path("notes.txt")).unwrap().contains("softmax"));
    assert!(place.run("explain softmax-ce --out fresh.txt").status.success());
    assert_eq!(place.files("."), ["fresh.txt", "names.txt", "notes.txt"]);
    if cfg!(unix) {
        let output = place.run("explain softmax-ce --out /dev/stdout");
        assert!(output.status.success() && text(&output.stdout).contains("softmax"));
    }
}
