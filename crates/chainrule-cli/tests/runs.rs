//! Looking at runs: `watch`, `compare`, and the event files of `--tensorboard`.

mod common;

use std::fs;

use common::{Place, text};

fn two_runs() -> Place {
    let place = Place::new();
    place.json("train moons --steps 60 --lr 0.05 --out a --json");
    place.json("train moons --steps 40 --lr 0.2 --seed 3 --out b --json");
    place
}

#[test]
fn compare_tells_what_differs_and_draws_both() {
    let place = two_runs();
    let output = place.run("compare a b");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let row = |name: &str| {
        let rows = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.into_iter()
            .find(|row| row.first() == Some(&name))
            .unwrap_or_else(|| panic!("{name}: {out}"))
    };
    assert_eq!(row("training.lr"), ["training.lr", "0.05", "0.2"]);
    assert_eq!(row("training.steps"), ["training.steps", "60", "40"]);
    assert_eq!(row("steps"), ["steps", "60", "40"]);
    // Settings that are alike are not told.
    assert!(!out.contains("training.batch "), "{out}");
    assert!(out.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{out}");
    let json = place.json("compare a b --json");
    assert_eq!((json[0]["steps"].as_u64(), json[1]["steps"].as_u64()), (Some(60), Some(40)));
    assert_eq!(json[0]["is_finished"], true);
    assert!(json[1]["loss"].as_f64().unwrap() > 0.0);
}

#[test]
fn compare_writes_a_picture_and_a_page() {
    let place = two_runs();
    assert!(place.run("compare a b --out both.svg").status.success());
    let svg = fs::read_to_string(place.path("both.svg")).unwrap();
    assert!(svg.contains("<svg") && svg.contains(">a<") && svg.contains(">b<"), "{svg}");
    assert!(place.run("compare a b --out both.html").status.success());
    let page = fs::read_to_string(place.path("both.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("<td>training.lr</td>"));
    let refused = place.refused("compare a b --out both.pdf", 1);
    assert!(refused.contains(".svg or .html"), "{refused}");
    let refused = place.refused("compare a nothing", 1);
    assert!(refused.contains("there is no such folder"), "{refused}");
}

#[test]
fn watch_prints_once_without_a_terminal() {
    let place = two_runs();
    let output = place.run("watch a");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(out.contains("step 60") && out.contains("finished") && out.contains("Loss"), "{out}");
    assert!(out.contains("nothing is known to be wrong") && out.contains("0.weight"), "{out}");
    // The end of a run knows what no look before it could.
    let end = place.json("train names --lr 1e-9 --steps 300 --out slow --json");
    assert_eq!(end["findings"][0]["kind"], "rate_too_low", "{end}");
    let out = text(&place.run("watch slow").stdout);
    assert!(out.contains("rate too low: multiply") && !out.contains("nothing is known"), "{out}");
    assert_eq!(place.json("compare slow a --json")[0]["findings"], 1);
    // A run of which only a part is there, with a line that is not written to its end.
    let path = place.path("b").join("metrics.jsonl");
    let all = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = all.lines().take_while(|line| !line.contains("\"step\":11")).collect();
    fs::write(&path, format!("{}\n{{\"step\":11,\"lo", lines.join("\n"))).unwrap();
    let output = place.run("watch b --log");
    let out = text(&output.stdout);
    assert!(out.contains("step 10") && out.contains("not finished"), "{out}");
    let refused = place.refused("watch .", 1);
    assert!(refused.contains("not the folder of a training run"), "{refused}");
}

#[test]
fn events_are_records_of_tensorboard() {
    let place = Place::new();
    place.json("train moons --steps 30 --tensorboard --out run --json");
    let files = place.files("run");
    let name = files.iter().find(|name| name.starts_with("events.out.tfevents.")).unwrap();
    let bytes = fs::read(place.path("run").join(name)).unwrap();
    // Lengths lead from record to record to the end; the first has the version.
    let (mut at, mut records) = (0, 0);
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let data = &bytes[at + 12..at + 12 + length];
        assert!(records > 0 || data.windows(13).any(|part| part == b"brain.Event:2"));
        (at, records) = (at + 16 + length, records + 1);
    }
    // The version, two numbers of each step, measurements, looks.
    assert!(at == bytes.len() && records > 1 + 2 * 30 + 20, "{records}");
    let has = |tag: &str| bytes.windows(tag.len()).any(|part| part == tag.as_bytes());
    assert!(has("loss/training") && has("weights/0.weight") && has("gradients/norm"));
    // The weights are the same with and without.
    place.json("train moons --steps 30 --out plain --json");
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(model("run") == model("plain"));
}

#[cfg(unix)]
#[test]
fn watch_runs_on_a_terminal_until_q() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    // `script` gives the program a terminal of its own.
    let place = two_runs();
    let program = env!("CARGO_BIN_EXE_chainrule");
    let command = format!("stty rows 40 cols 100; {program} watch a");
    let started = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(place.path("."))
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return };
    let mut input = child.stdin.take().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    for key in [b"l", b"q"] {
        input.write_all(key).unwrap();
        input.flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{out}");
    assert!(out.contains("Findings") && out.contains("quit"), "{out}");
    // The other screen is left again.
    assert!(out.contains("\u{1b}[?1049l"), "{out:?}");
}
