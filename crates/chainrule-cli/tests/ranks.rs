//! Trainings that several processes share: the same bits as one, whatever their number and fate.

mod common;

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use chainrule::exchange::{Launch, Tcp, TcpOptions, agree};
use common::{Place, text};

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn rank(place: &Place, words: &str, rank: usize, size: usize, port: u16) -> Command {
    let mut command = place.command(words);
    placed(&mut command, rank, size, port);
    command
}

/// With the variables of a launcher.
fn placed(command: &mut Command, rank: usize, size: usize, port: u16) {
    command
        .env("WORLD_SIZE", size.to_string())
        .env("RANK", rank.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env("CHAINRULE_TOKEN", "of the tests")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
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

/// A training, and numbers of ranks beside one.
type Training = (&'static str, &'static [usize]);

const TRAININGS: [Training; 5] = [
    ("train names --data names.txt --steps 6 --hidden 20 --batch 8 --accumulate 6", &[2, 3, 4, 6]),
    (
        "train names --model transformer --data names.txt --steps 4 --batch 4 --accumulate 6 --clip 0.5",
        &[2, 3, 4, 6],
    ),
    ("train digits --steps 3 --batch 4 --accumulate 7 --examples 200 --ema 0.9", &[2, 3, 4, 6]),
    ("train moons --steps 5 --accumulate 12 --optimizer adamw", &[2, 3, 4, 6]),
    // The size of gpt-small.
    (
        "train text --steps 2 --batch 2 --accumulate 6 --clip 1 --optimizer adamw --ema 0.9 --dropout 0.1",
        &[3],
    ),
];

#[test]
fn the_number_of_ranks_changes_no_bit() {
    let place = Place::new();
    for (i, (words, sizes)) in TRAININGS.into_iter().enumerate() {
        let alone = format!("alone{i}");
        let output = place.run(&format!("{words} --quiet --out {alone}"));
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        for &size in sizes {
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

/// A launcher that restarts ranks by itself, real or as its variables say, loses nothing: rank 1 is
/// killed while the first try goes on.
#[test]
fn restarts_need_nobody() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 2500 --hidden 20 --batch 4 --accumulate 6 \
                 --save-every 20 --quiet";
    let output = place.run(&format!("{words} --out alone"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let program = env!("CARGO_BIN_EXE_chainrule");
    // Ends when the run has a checkpoint, on the first try.
    let script = |words: &str, out: &str| {
        format!(
            "if [ \"$RANK\" = 1 ] && [ ! -e {out}/last.ckpt ]; then victim=$$; \
             (while [ ! -e {out}/last.ckpt ]; do sleep 0.01; done; kill -9 $victim) & fi; \
             exec {program} {words} --out {out}"
        )
    };
    let is_killed = |place: &Place, out: &str| {
        let metrics = fs::read_to_string(place.path(out).join("metrics.jsonl")).unwrap();
        assert!(metrics.lines().count() > 1);
        model(place, out) == model(place, "alone")
    };
    // By variables alone: Slurm's requeue, and the flag for launchers without any.
    for (i, (variable, flag)) in
        [("SLURM_RESTART_COUNT", ""), ("UNUSED", " --go-on")].into_iter().enumerate()
    {
        let out = format!("try{i}");
        let mut tries = 0;
        loop {
            let port = port();
            let ranks = (0..3).map(|r| {
                let mut shell = Command::new("sh");
                placed(&mut shell, r, 3, port);
                shell.arg("-c").arg(script(&format!("{words}{flag}"), &out));
                shell.current_dir(place.path(".")).env(variable, tries.to_string());
                shell.spawn().unwrap()
            });
            let outputs = finish(ranks.collect());
            if outputs.iter().all(|output| output.status.success()) {
                break;
            }
            tries += 1;
            assert!(tries < 3, "{}", text(&outputs[0].stderr));
        }
        assert_eq!(tries, 1, "{variable}: the first try was not killed");
        assert!(is_killed(&place, &out), "{variable}");
    }
    let torchrun = std::env::var("CHAINRULE_TORCHRUN").unwrap_or("torchrun".into());
    let mut command = Command::new(torchrun);
    command.args(["--no-python", "--nproc-per-node", "3", "--max-restarts", "2", "sh", "-c"]);
    command.arg(script(words, "torch")).current_dir(place.path("."));
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no torchrun here");
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(is_killed(&place, "torch"));
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

/// Starts two ranks, the second with other words.
fn unlike(place: &Place, words: &str, second: &str) -> Vec<Output> {
    let port = port();
    let of = |r: usize| if r == 1 { second } else { words };
    finish((0..2).map(|r| rank(place, of(r), r, 2, port).spawn().unwrap()).collect())
}

/// Every setting that decides about bits or about who waits for whom.
#[test]
fn settings_that_differ_are_named_on_every_rank() {
    let place = Place::new();
    let words =
        "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet";
    for (i, (other, says)) in [
        ("--lr 0.5", "another lr than rank 0: `0.5` in place of `0.1`"),
        ("--seed 7", "another seed than rank 0: `7`"),
        ("--hidden 9", "another hidden than rank 0: `9` in place of `8`"),
        ("--optimizer adamw", "another optimizer than rank 0"),
        ("--eager", "another eager than rank 0"),
        ("--ema 0.5", "has `ema` = `0.5`, which rank 0 lacks"),
        ("--clip 1", "has `clip` = `1.0`, which rank 0 lacks"),
        ("--steps 9", "another steps than rank 0: `9` in place of `5`"),
        ("--batch 5", "another batch than rank 0"),
        ("--accumulate 5", "another accumulate than rank 0: `5` in place of `4`"),
        ("--eval-every 2", "has `eval_every` = `2`, which rank 0 lacks"),
        ("--save-every 2", "has `save_every` = `2`, which rank 0 lacks"),
        ("--weight-decay 0.1", "another weight_decay than rank 0"),
        ("--overfit-batch", "another overfit_batch than rank 0"),
        ("--dry-run", "has `run` = `a trial (--dry-run)`, which rank 0 lacks"),
    ]
    .into_iter()
    .enumerate()
    {
        let flag = other.split(' ').next().unwrap();
        let mut kept: Vec<&str> = words.split_whitespace().collect();
        if let Some(at) = kept.iter().position(|word| *word == flag) {
            kept.drain(at..at + 2);
        }
        let out = format!("--out run{i}");
        let second = format!("{} {other} {out}", kept.join(" "));
        for output in unlike(&place, &format!("{words} {out}"), &second) {
            let error = common::one_error(&output, 1);
            assert!(error.contains("rank 1 has") && error.contains(says), "{error}");
        }
        // The right command can follow with the same name.
        assert!(!place.path(&format!("run{i}")).exists(), "{other}");
    }
    let other = "train moons --steps 5 --batch 4 --accumulate 4 --quiet";
    for output in unlike(&place, &format!("{words} --out last"), other) {
        let error = common::one_error(&output, 1);
        assert!(error.contains("rank 1 has another kind than rank 0"), "{error}");
    }
}

/// A rank that ends for a reason of its own, before or beside the training, tells the others.
#[test]
fn a_rank_that_cannot_begin_tells_the_others_why() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --out run";
    let outputs = unlike(&place, words, &words.replace("names.txt", "nothing.txt"));
    for (rank, output) in outputs.iter().enumerate() {
        let error = common::one_error(output, 1);
        assert!(error.contains("nothing.txt: no such file"), "{error}");
        assert!(rank == 1 || error.contains("rank 1 has ended: "), "{error}");
    }
    // Rank 0 alone writes; what keeps it from that is no secret.
    fs::write(place.path("file"), "no folder").unwrap();
    let outputs =
        unlike(&place, &words.replace("run", "file/run"), &words.replace("run", "file/run"));
    for (rank, output) in outputs.iter().enumerate() {
        let error = common::one_error(output, 1);
        assert!(error.contains("file/run"), "{error}");
        assert!(rank == 0 || error.contains("rank 0 has ended: "), "{error}");
    }
}

/// Ranks that cannot come together: each that is there says which one is missing or wrong.
#[test]
fn ranks_that_do_not_meet_say_who_is_missing() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --out run --rank-start 2";
    let port_of = port();
    let ranks = [0, 1].map(|r| rank(&place, words, r, 3, port_of).spawn().unwrap());
    for output in finish(ranks.into()) {
        let error = common::one_error(&output, 1);
        assert!(error.contains("rank 2 did not come in time"), "{error}");
    }
    // Twice the same rank: the three processes that are there.
    let port_of = port();
    let ranks = [0, 1, 1].map(|r| rank(&place, words, r, 4, port_of).spawn().unwrap());
    for (i, output) in finish(ranks.into()).iter().enumerate() {
        let error = common::one_error(output, 1);
        let says = ["rank 1", "another process has this rank"];
        assert!(says.iter().any(|says| error.contains(says)), "{i}: {error}");
    }
    // Another token: turned away, and rank 0 says that somebody was.
    let port_of = port();
    let other = rank(&place, words, 1, 2, port_of).env("CHAINRULE_TOKEN", "a guess").spawn();
    let ranks = vec![rank(&place, words, 0, 2, port_of).spawn().unwrap(), other.unwrap()];
    let outputs = finish(ranks);
    let errors = outputs.iter().map(|output| common::one_error(output, 1)).collect::<Vec<_>>();
    assert!(errors[0].contains("without the token were turned away"), "{}", errors[0]);
    assert!(errors[1].contains("has another CHAINRULE_TOKEN"), "{}", errors[1]);
    for (address, says) in [
        ("", "MASTER_ADDR is not set"),
        ("0.0.0.0", "no address of one machine"),
        ("255.255.255.255", "no address of one machine"),
        ("no host", "is not known"),
        ("192.0.2.7", "is to be an address of the machine of rank 0"),
    ] {
        let mut command = rank(&place, words, 0, 2, port());
        let output = command.env("MASTER_ADDR", address).output().unwrap();
        let error = common::one_error(&output, 1);
        assert!(error.contains(says), "{address}: {error}");
    }
}

/// Two runs on one machine with one port and no secret: the one that was first goes on.
#[test]
fn a_second_run_on_a_port_leaves_the_first_alone() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --rank-start 20 --out";
    let port_of = port();
    let open = |r: usize, out: &str| {
        let mut command = rank(&place, &format!("{words} {out}"), r, 2, port_of);
        command.env_remove("CHAINRULE_TOKEN").spawn().unwrap()
    };
    let first = open(0, "first");
    let address = ("127.0.0.1", port_of);
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = open(0, "second").wait_with_output().unwrap();
    let error = common::one_error(&second, 1);
    assert!(error.contains("is in use; set MASTER_PORT"), "{error}");
    for output in finish(vec![first, open(1, "first")]) {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// A rank that ends before it has met the others, for a word or a file that is wrong, tells them
/// why, and one that is killed is missed: nobody waits until the time to start is over.
#[test]
fn nobody_waits_for_a_rank_that_has_ended() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --rank-start 60 --out run";
    let began = Instant::now();
    for (second, status, says) in [
        (words.replace("--batch 4", "--batch 0"), 2, "the batch must be a whole number"),
        (format!("{words} --optimizer none"), 2, "invalid value 'none'"),
        ("train text --data nothing.txt".into(), 1, "nothing.txt: there is no such file"),
    ] {
        let outputs = unlike(&place, words, &second);
        let first = common::one_error(&outputs[0], 1);
        assert!(first.contains("rank 1 has ended: ") && first.contains(says), "{first}");
        let error = common::one_error(&outputs[1], status);
        assert!(error.contains(says), "{error}");
    }
    let port_of = port();
    let mut ranks = [0, 1].map(|r| rank(&place, words, r, 3, port_of).spawn().unwrap());
    std::thread::sleep(Duration::from_secs(1));
    ranks[1].kill().unwrap();
    let outputs = finish(ranks.into());
    let error = common::one_error(&outputs[0], 1);
    assert!(error.contains("rank 1 has ended; see its own output"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(50));
}

/// Vector instructions decide about bits beside the settings: their roundings differ.
#[test]
fn ranks_have_the_same_vector_instructions() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --out run";
    let port = port();
    let ranks = (0..2).map(|r| {
        let mut command = rank(&place, words, r, 2, port);
        command.env("CHAINRULE_SIMD", ["avx2", "portable"][r]).spawn().unwrap()
    });
    let outputs = finish(ranks.collect());
    if outputs[0].status.success() {
        eprintln!("skipped: this processor has one set of them");
        return;
    }
    for output in outputs {
        let error = common::one_error(&output, 1);
        assert!(error.contains("rank 1 has another set of vector instructions"), "{error}");
    }
}

/// A loss that is not finite is an error of every rank, and the first one has saved the model
/// before a launcher sees that another has failed.
#[test]
fn a_loss_that_is_not_finite_is_told_by_every_rank() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --lr 1e30 --out run";
    for output in finish(start(&place, words, 3)) {
        let error = common::one_error(&output, 1);
        assert!(error.contains("the loss of step") && error.contains("smaller --lr"), "{error}");
    }
    assert!(!model(&place, "run").is_empty());
}

/// A rank of another version, played by the library.
#[test]
fn a_rank_of_another_version_is_named() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 5 --hidden 8 --batch 4 --accumulate 4 --quiet \
                 --out run";
    let port = port();
    let first = rank(&place, words, 0, 2, port).spawn().unwrap();
    let launch = Launch {
        rank: 1,
        size: 2,
        address: format!("127.0.0.1:{port}"),
        spare_ports: 0,
        run: None,
        local: None,
        token: Some("of the tests".into()),
    };
    let mut other = Tcp::join(&launch, TcpOptions::default()).unwrap();
    let why = agree(&mut other, &[("version", "0.0.1")]).unwrap_err().to_string();
    let says = "rank 1 has another version than rank 0: `0.0.1` in place of";
    assert!(why.contains(says), "{why}");
    let error = common::one_error(&first.wait_with_output().unwrap(), 1);
    assert!(error.contains(says), "{error}");
}
