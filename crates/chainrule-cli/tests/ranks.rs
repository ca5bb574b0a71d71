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
