//! Trainings that several processes share: the same bits as one, whatever their number and fate.

mod common;

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Place, text};

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn rank(place: &Place, words: &str, rank: usize, size: usize, port: u16) -> Command {
    let mut command = place.command(words);
    command
        .env("WORLD_SIZE", size.to_string())
        .env("RANK", rank.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env("CHAINRULE_TOKEN", "of the tests")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(place: &Place, words: &str, size: usize) -> Vec<Child> {
    let port = port();
    (0..size).map(|r| rank(place, words, r, size, port).spawn().unwrap()).collect()
}

fn finish(ranks: Vec<Child>) -> Vec<Output> {
    ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect()
}

/// Runs all ranks, which must succeed; only the first prints.
#[track_caller]
fn run(place: &Place, words: &str, size: usize) {
    for (rank, output) in finish(start(place, words, size)).into_iter().enumerate() {
        assert!(output.status.success(), "{words}: rank {rank}: {}", text(&output.stderr));
        assert_eq!(output.stdout.is_empty(), rank > 0, "rank {rank} of {size}");
    }
}

fn model(place: &Place, run: &str) -> Vec<u8> {
    fs::read(place.path(run).join("model.safetensors")).unwrap()
}

const TRAININGS: [&str; 4] = [
    "train names --data names.txt --steps 6 --hidden 20 --batch 8 --accumulate 6",
    "train names --model transformer --data names.txt --steps 4 --batch 4 --accumulate 6 --clip 0.5",
    "train digits --steps 3 --batch 4 --accumulate 7 --examples 200 --ema 0.9",
    "train moons --steps 5 --accumulate 12 --optimizer adamw",
];

#[test]
fn the_number_of_ranks_changes_no_bit() {
    let place = Place::new();
    for (i, words) in TRAININGS.into_iter().enumerate() {
        let alone = format!("alone{i}");
        let output = place.run(&format!("{words} --quiet --out {alone}"));
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        for size in [2, 3, 6] {
            let out = format!("of{size}_{i}");
            run(&place, &format!("{words} --quiet --out {out}"), size);
            assert!(model(&place, &out) == model(&place, &alone), "{words}: {size} ranks");
        }
    }
    // One folder a run, written by one rank.
    assert_eq!(place.files("of3_0"), place.files("alone0"));
}

/// A rank is killed in the middle; the others end with one line that names it, and fewer or more
/// ranks go on to the bits of a run that was never disturbed.
#[test]
fn a_killed_rank_loses_nothing() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 120 --hidden 20 --batch 4 --accumulate 6 \
                 --save-every 10 --quiet";
    let output = place.run(&format!("{words} --out alone"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (i, (victim, after, next)) in
        [(0, 15, 2), (1, 40, 1), (2, 70, 4), (1, 5, 3)].into_iter().enumerate()
    {
        let out = format!("run{i}");
        let words = words.replace("--steps 120", "--steps 100000000");
        let mut ranks = start(&place, &format!("{words} --log-every 1 --out {out}"), 3);
        let metrics = place.path(&out).join("metrics.jsonl");
        let began = Instant::now();
        let steps = || fs::read_to_string(&metrics).map_or(0, |text| text.lines().count());
        let checkpoint = place.path(&out).join("last.ckpt");
        while steps() < after || !checkpoint.exists() {
            assert!(began.elapsed() < Duration::from_secs(120), "no steps");
            std::thread::sleep(Duration::from_millis(10));
        }
        ranks[victim].kill().unwrap();
        for (rank, output) in finish(ranks).into_iter().enumerate() {
            assert!(!output.status.success());
            if rank != victim {
                let errors = text(&output.stderr);
                let lines: Vec<&str> = errors.lines().collect();
                assert_eq!(lines.len(), 1, "{errors}");
                assert!(
                    errors.contains(&format!("rank {victim} has ended"))
                        || errors.contains("has ended"),
                    "{errors}"
                );
            }
        }
        // It may be past the end of the undisturbed run: both go on to a step that neither reached.
        let text = fs::read_to_string(&metrics).unwrap();
        let done = text.lines().count() as u64 + 50;
        let steps = done.max(130);
        run(&place, &format!("train names --resume {out} --steps {steps} --quiet"), next);
        let whole = format!("whole{i}");
        let words =
            words.replace("--steps 100000000", &format!("--steps {steps} --lr-decay-at 50000000"));
        let output = place.run(&format!("{words} --out {whole}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(model(&place, &out) == model(&place, &whole), "killed {victim} after {after}");
    }
}

#[test]
fn wrong_input_ends_every_rank_with_one_line() {
    let place = Place::new();
    fs::write(place.path("other.txt"), "anna\nbert\nclara\n".repeat(40)).unwrap();
    let base = "train names --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet --data";
    let port_of = port();
    let data = |r: usize| if r == 1 { "other.txt" } else { "names.txt" };
    let ranks = (0..2)
        .map(|r| {
            rank(&place, &format!("{base} {} --out bad", data(r)), r, 2, port_of).spawn().unwrap()
        })
        .collect();
    for output in finish(ranks) {
        let error = common::one_error(&output, 1);
        assert!(error.contains("rank 1 has another"), "{error}");
    }
    // Too few micro-batches, before anything is written.
    let few = format!("{base} names.txt --out few").replace("--accumulate 4", "--accumulate 2");
    for output in finish(start(&place, &few, 3)) {
        let error = common::one_error(&output, 1);
        assert!(error.contains("3 ranks need --accumulate 3 at least"), "{error}");
    }
    assert!(!place.path("few").exists());
    for (name, value, says) in [
        ("WORLD_SIZE", "many", "no number of ranks"),
        ("RANK", "7", "counted from 0"),
        ("MASTER_PORT", "0", "a port is 1 to 65535"),
    ] {
        let mut command = rank(&place, &format!("{base} names.txt"), 0, 2, port());
        let error = common::one_error(&command.env(name, value).output().unwrap(), 1);
        assert!(error.contains(says), "{error}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = rank(&place, &format!("{base} names.txt"), 0, 2, port).output().unwrap();
    let error = common::one_error(&output, 1);
    assert!(error.contains("is in use; set MASTER_PORT"), "{error}");
}

/// Without `--accumulate` there is a micro-batch for each rank.
#[test]
fn ranks_need_no_settings() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 4 --hidden 8 --batch 4 --quiet --out";
    run(&place, &format!("{words} ranks"), 3);
    let output = place.run(&format!("{words} alone --accumulate 3"));
    assert!(output.status.success());
    assert!(model(&place, "ranks") == model(&place, "alone"));
}

/// The launchers themselves, where they are: `mpirun` and `torchrun`, the latter with a rank that
/// is killed and a restart that nobody attends.
#[test]
fn launchers_start_ranks() {
    let place = Place::new();
    let words =
        "train names --data names.txt --steps 20 --hidden 20 --batch 4 --accumulate 6 --quiet";
    let output = place.run(&format!("{words} --out alone"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let program = env!("CARGO_BIN_EXE_chainrule");
    let torchrun = std::env::var("CHAINRULE_TORCHRUN").unwrap_or("torchrun".into());
    let launchers = [
        ("mpirun", format!("--allow-run-as-root --oversubscribe -n 3 {program} {words} --out mpi")),
        (&torchrun[..], format!("--no-python --nproc-per-node 3 {program} {words} --out torch")),
    ];
    for (launcher, arguments) in launchers {
        let mut command = Command::new(launcher);
        command.args(arguments.split_whitespace()).current_dir(place.path("."));
        let Ok(output) = command.output() else {
            eprintln!("skipped: there is no {launcher} here");
            continue;
        };
        assert!(output.status.success(), "{launcher}: {}", text(&output.stderr));
        let run = arguments.rsplit(' ').next().unwrap();
        assert!(model(&place, run) == model(&place, "alone"), "{launcher}");
    }
}

/// Numbers of a fixed generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// The step of the last line of metrics.
fn logged(place: &Place) -> u64 {
    let text = fs::read_to_string(place.path("run").join("metrics.jsonl")).unwrap_or_default();
    let step = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        value.get("step")?.as_u64()
    };
    text.lines().filter_map(step).max().unwrap_or(0)
}

/// One run that loses a random rank at a random moment, 50 times, and goes on with another number
/// of ranks each time.
#[test]
#[ignore = "takes minutes"]
fn fifty_kills_change_no_bit() {
    let place = Place::new();
    let words = "train names --data names.txt --hidden 20 --batch 4 --accumulate 6 --ema 0.9 \
                 --optimizer adamw --clip 1 --save-every 20 --eval-every 500 --quiet";
    let mut draw = Draw(std::env::var("CHAINRULE_SEED").map_or(5, |n| n.parse().unwrap()));
    let checkpoint = place.path("run").join("last.ckpt");
    let mut lines = 0;
    for kill in 0..50 {
        let size = [2, 3, 4, 6][draw.below(4) as usize];
        let victim = draw.below(size as u64) as usize;
        let start_words = match checkpoint.exists() {
            true => "train names --resume run --steps 100000000 --quiet".to_string(),
            false => format!("{words} --steps 100000000 --force --out run"),
        };
        let mut ranks = start(&place, &start_words, size);
        // From before the ranks have met to the middle of the steps.
        std::thread::sleep(Duration::from_millis(draw.below(2500)));
        ranks[victim].kill().unwrap();
        // Those that had not met yet would wait for minutes: a launcher ends them.
        let until = Instant::now() + Duration::from_secs(15);
        let mut ended = vec![victim];
        for (rank, child) in ranks.iter_mut().enumerate().filter(|(rank, _)| *rank != victim) {
            while child.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                ended.push(rank);
            }
        }
        for (rank, output) in finish(ranks).into_iter().enumerate() {
            assert!(!output.status.success(), "kill {kill}: rank {rank}");
            let errors = text(&output.stderr);
            let count = errors.lines().filter(|line| line.starts_with("error")).count();
            assert!(ended.contains(&rank) || count == 1, "kill {kill}: rank {rank}: {errors}");
            lines += count;
        }
        let at = logged(&place);
        eprintln!("kill {kill}: rank {victim} of {size} at step {at}, {} by hand", ended.len() - 1);
    }
    // The next line of metrics would be 100 steps later, which no checkpoint has come to.
    let steps = logged(&place) + 150;
    run(&place, &format!("train names --resume run --steps {steps} --quiet"), 3);
    let more = format!("--steps {steps} --lr-decay-at 50000000 --out whole");
    let output = place.run(&format!("{words} {more}"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(model(&place, "run") == model(&place, "whole"), "{steps} steps");
    eprintln!("50 kills, {lines} lines of error, {steps} steps");
}

/// Models, optimizers, and numbers of ranks, each with average, clipping and a resume by another
/// number of ranks.
#[test]
#[ignore = "takes minutes"]
fn every_training_on_every_number_of_ranks() {
    let place = Place::new();
    let models = [
        "train names --data names.txt --hidden 20 --batch 4",
        "train digits --batch 4 --examples 200",
        "train digits --model cnn --batch 2 --examples 100",
        "train text --layers 2 --width 32 --context 16 --batch 4 --dropout 0.1",
    ];
    let optimizers = ["--optimizer sgd --momentum 0.9 --lr 0.01", "--optimizer adamw --lr 0.003"];
    let mut count = 0;
    for words in models {
        for optimizer in optimizers {
            let words = format!(
                "{words} {optimizer} --accumulate 12 --clip 0.5 --ema 0.9 --schedule constant \
                 --eval-every 3 --quiet"
            );
            let alone = format!("alone{count}");
            let output = place.run(&format!("{words} --steps 6 --out {alone}"));
            assert!(output.status.success(), "{words}: {}", text(&output.stderr));
            let kind = words.split(' ').nth(1).unwrap();
            for (i, size) in [2, 3, 4, 6].into_iter().enumerate() {
                let out = format!("of{size}_{count}");
                run(&place, &format!("{words} --steps 6 --out {out}"), size);
                assert!(model(&place, &out) == model(&place, &alone), "{words}: {size} ranks");
                let half = format!("half{size}_{count}");
                run(&place, &format!("{words} --steps 3 --out {half}"), size);
                let next = [6, 1, 2, 3][i];
                run(&place, &format!("train {kind} --resume {half} --steps 6 --quiet"), next);
                assert!(model(&place, &half) == model(&place, &alone), "{words}: {size} to {next}");
            }
            count += 1;
        }
    }
}
