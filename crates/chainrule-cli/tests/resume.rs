//! Nothing is lost: runs that are stopped, killed or cannot write.

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chainrule::io::{CheckpointFolder, Kept};
use chainrule::rng::CounterRng;
use common::{Place, one_error, text};

const DIGITS: &str =
    "train digits --examples 300 --hidden 12 --batch 32 --schedule constant --json";

/// Every kind of training, stopped in the middle of an epoch and taken up, ends with the same bytes
/// as one never stopped.
#[test]
fn resumed_runs_give_the_same_bits() {
    let place = Place::new();
    for (kind, words, stop, all) in [
        ("digits", DIGITS, 13, 31),
        (
            "digits",
            "train digits --examples 300 --model cnn --batch 64 --schedule constant --ema 0.9 --json",
            3,
            7,
        ),
        ("moons", "train moons --points 60 --batch 8 --eval-every 7 --json", 11, 40),
        (
            "text",
            "train text --layers 1 --heads 2 --width 16 --digits 1 --batch 4 --schedule constant --dropout 0.1 --eval-every 100 --json",
            5,
            12,
        ),
        ("names", "train names --data names.txt --hidden 20 --lr-decay-at 9 --json", 7, 25),
        (
            "names",
            "train names --data names.txt --hidden 20 --lr-decay-at 9 --optimizer adamw --lr 0.01 --clip 1 --eval-every 5 --json",
            7,
            25,
        ),
        // Two rules side by side, with states of their own.
        (
            "names",
            "train names --data names.txt --hidden 20 --lr-decay-at 9 --optimizer muon --lr 0.02 --json",
            7,
            25,
        ),
        ("names", "train names --model gru --data names.txt --json", 2, 4),
        (
            "names",
            "train names --data names.txt --hidden 20 --lr-decay-at 9 --autocast bf16 --json",
            7,
            25,
        ),
        ("regression", "train regression --optimizer adam --lr 0.1 --accumulate 2 --json", 9, 30),
    ] {
        for folder in ["whole", "parts"] {
            let _ = fs::remove_dir_all(place.path(folder));
        }
        place.json(&format!("{words} --steps {all} --out whole"));
        place.json(&format!("{words} --steps {stop} --out parts"));
        let go_on = words.split_whitespace().nth(1).unwrap();
        let got = place.json(&format!("train {go_on} --resume parts --steps {all} --json"));
        assert_eq!(got["steps"], all, "{kind}");
        let model = |folder: &str| fs::read(place.path(folder).join("model.safetensors")).unwrap();
        assert_eq!(model("whole"), model("parts"), "{kind}");
        let steps = |folder: &str| -> Vec<String> {
            let metrics = text(&fs::read(place.path(folder).join("metrics.jsonl")).unwrap());
            let plain = |line: &&str| line.contains("\"lr\"") && !line.contains("final");
            metrics.lines().filter(plain).map(str::to_owned).collect()
        };
        assert_eq!(steps("whole"), steps("parts"), "{kind}");
        assert_eq!(steps("whole").len(), all, "{kind}");
    }
}

#[test]
fn a_damaged_checkpoint_is_told_and_the_earlier_one_offered() {
    let place = Place::new();
    place.json(&format!("{DIGITS} --steps 6 --save-every 2 --out run"));
    let last = place.path("run/last.ckpt");
    let mut bytes = fs::read(&last).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&last, bytes).unwrap();
    let error = place.refused("train digits --resume run --steps 9 --json", 1);
    assert!(
        error.contains("last.ckpt: damaged") && error.contains("--checkpoint earlier"),
        "{error}"
    );
    let got = place.json("train digits --resume run --checkpoint earlier --steps 9 --json");
    assert_eq!(got["steps"], 9);
    // One of another model.
    place.json("train digits --examples 300 --hidden 13 --batch 32 --steps 2 --json --out other");
    fs::copy(place.path("other/last.ckpt"), &last).unwrap();
    let error = place.refused("train digits --resume run --steps 12", 1);
    assert!(error.contains("another model"), "{error}");
    let error = place.refused("train moons --resume run", 1);
    assert!(error.contains("of kind `digits`, not `moons`"), "{error}");
    assert!(place.refused("train digits --resume nowhere", 1).contains("no such folder"));
}

/// kill -9 at 200 random moments of runs that save after every step, in four folders side by side.
#[cfg(unix)]
#[test]
fn kill_leaves_a_whole_checkpoint_every_time() {
    std::thread::scope(|scope| {
        let four: Vec<_> =
            (0..4).map(|seed| scope.spawn(move || kill_and_resume(50, seed))).collect();
        // A panic of one of them is a panic of the test.
        four.into_iter().for_each(|one| one.join().unwrap());
    });
}

#[cfg(unix)]
fn kill_and_resume(kills: u32, seed: u64) {
    let place = Place::new();
    let rng = &mut CounterRng::new(9, seed);
    let folder = CheckpointFolder::new(place.path("run"));
    let begin = |words: &str| {
        let mut command = place.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // When the newest checkpoint was made; a run that is not yet so far has the one before.
    let newest = || fs::metadata(folder.file(Kept::Last)).and_then(|file| file.modified()).ok();
    let await_newer = |than| {
        let began = Instant::now();
        while newest() == than {
            assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint");
            std::thread::sleep(Duration::from_millis(1));
        }
        began.elapsed().as_secs_f64()
    };
    let mut first = begin("train regression --steps 1000000000 --save-every 1 --quiet --out run");
    let start = await_newer(None);
    first.kill().unwrap();
    first.wait().unwrap();
    let mut last_step = 0;
    for kill in 1..=kills {
        let before = newest();
        let mut child = begin("train regression --resume run --steps 1000000000 --quiet");
        // Every fourth at any moment of the start, the others amid steps and saves.
        let most = if kill % 4 == 0 {
            start
        } else {
            await_newer(before);
            0.03
        };
        std::thread::sleep(Duration::from_secs_f64(most * rng.uniform_f64()));
        child.kill().unwrap();
        child.wait().unwrap();
        let checkpoint = folder.load(Kept::Last).unwrap_or_else(|e| panic!("kill {kill}: {e}"));
        let step = checkpoint.state["trainer.step"].to_vec::<i64>()[0];
        assert!(step >= last_step, "kill {kill}: step {step} after {last_step}");
        last_step = step;
    }
    // The rest goes on.
    let steps = last_step + 5;
    let got = place.json(&format!("train regression --resume run --steps {steps} --json"));
    assert_eq!(got["steps"], steps);
}

#[cfg(unix)]
#[test]
fn a_disk_without_room_ends_the_run_and_keeps_the_checkpoints() {
    let place = Place::new();
    place.json(&format!("{DIGITS} --steps 4 --save-every 2 --out run"));
    let script = format!(
        "trap '' XFSZ; ulimit -f 40; exec {} train digits --resume run --steps 9 --no-monitor --json",
        env!("CARGO_BIN_EXE_chainrule")
    );
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
    let error = one_error(&output, 1);
    assert!(error.contains(".ckpt") && error.contains("unchanged"), "{error}");
    assert_eq!(place.json("train digits --resume run --steps 9 --json")["steps"], 9);
}

#[test]
fn a_folder_that_vanishes_ends_the_run_with_a_message() {
    let place = Place::new();
    let words = "train regression --steps 1000000000 --save-every 1 --quiet --out run";
    let mut command = place.command(words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !place.path("run/last.ckpt").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(10));
    }
    // A file may be made in it while it is taken away.
    while place.path("run").exists() {
        let _ = fs::remove_dir_all(place.path("run"));
    }
    let output = child.wait_with_output().unwrap();
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("run"), "{error}");
}

/// A folder that may not be written: neither a new run nor a resumed one starts, and what is there
/// stays.
#[cfg(unix)]
#[test]
fn a_folder_without_permission_ends_the_run_and_keeps_the_checkpoints() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    /// The user `nobody`: permissions do not hold the superuser back.
    const NOBODY: u32 = 65534;
    let place = Place::new();
    place.json("train regression --steps 4 --save-every 2 --json --out run");
    let mode = |name: &str, mode| {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(".", 0o555);
    mode("run", 0o555);
    let may_write_all = fs::write(place.path("run/probe"), "").is_ok();
    if may_write_all {
        fs::remove_file(place.path("run/probe")).unwrap();
        chown(place.path("run"), Some(NOBODY), None).unwrap();
    }
    let run = |words: &str| {
        let mut command = place.command(words);
        if may_write_all {
            command.uid(NOBODY);
        }
        command.output()
    };
    // A program in the superuser's own folder cannot be started by another user.
    if may_write_all && run("--version").is_err() {
        println!("not tested: another user may not start {}", env!("CARGO_BIN_EXE_chainrule"));
        return;
    }
    let before = place.contents("run");
    for words in ["train regression --resume run --steps 9", "train regression --steps 3 --out new"]
    {
        let error = one_error(&run(words).unwrap(), 1);
        assert!(error.to_lowercase().contains("permission"), "{words}: {error}");
    }
    assert_eq!(place.contents("run"), before);
    mode(".", 0o755);
    mode("run", 0o755);
    assert_eq!(place.json("train regression --resume run --steps 9 --json")["steps"], 9);
}
