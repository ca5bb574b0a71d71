//! Runs that end early: Ctrl-C, and a loss that is not finite.

mod common;

use std::fs;

use common::{Place, last_json, text};

/// The first update with a rate of 1e30 makes weights of 1e29 or so, and the next loss overflows.
#[test]
fn a_loss_that_is_not_finite_stops_the_run_and_names_the_op() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 50 --lr 1e30 --out run --json";
    let output = place.run(words);
    let error = common::one_error(&output, 1);
    assert!(error.contains("error: the loss of step 2 is "), "{error}");
    assert!(error.contains(": the first op that gave ") && error.contains(" was `"), "{error}");
    assert!(error.contains("try a smaller --lr") && error.contains("is in run"), "{error}");
    let got = last_json(&output);
    assert_eq!((&got["steps"], &got["interrupted"]), (&1.into(), &false.into()));
    assert!(got["error"].as_str().is_some_and(|text| error.contains(text)), "{got}");
    // The weights are those after the one good step, which was done again op by op: the same as
    // those of an eager run of that length.
    let one =
        "train names --data names.txt --steps 1 --lr-decay-at 9 --lr 1e30 --eager --out one --json";
    assert!(common::one_error(&place.run(one), 1).contains("the loss over the training set is "));
    let model = |run: &str| fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert_eq!(model("run"), model("one"));
    assert_eq!(text(&fs::read(place.path("run/metrics.jsonl")).unwrap()).lines().count(), 2);
}

#[cfg(unix)]
mod signals {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    const LONG: &str = "train names --data names.txt --steps 1000000000 --hidden 20 --out run";

    /// Starts a long run and waits until it has written metrics, so that it is in the middle of it.
    fn start(place: &Place, more: &str) -> Child {
        let mut command = place.command(&format!("{LONG} {more}"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let metrics = place.path("run/metrics.jsonl");
        let began = Instant::now();
        while fs::metadata(&metrics).map_or(0, |m| m.len()) == 0 {
            assert!(began.elapsed() < Duration::from_secs(120), "no metrics");
            std::thread::sleep(Duration::from_millis(50));
        }
        child
    }

    fn interrupt(child: &Child) {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    #[test]
    fn ctrl_c_saves_the_model_and_says_so() {
        let place = Place::new();
        // Metrics of so long a run are written every thousandth step, so it is well under way.
        let child = start(&place, "");
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let out = text(&output.stdout);
        let last = out.lines().last().unwrap();
        assert!(last.starts_with("interrupted after ") && last.ends_with("--resume run"), "{last}");
        assert!(!text(&output.stderr).contains("panicked"));
        let files = [
            "config.toml",
            "last.ckpt",
            "loss.png",
            "loss.svg",
            "metrics.csv",
            "metrics.jsonl",
            "model.safetensors",
            "monitor.jsonl",
            "report.html",
        ];
        assert_eq!(place.files("run"), files);
        assert_eq!(place.json("sample run --count 2 --json")["count"], 2);
    }

    #[test]
    fn ctrl_c_with_json_still_gives_the_object() {
        let place = Place::new();
        let child = start(&place, "--json");
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout).lines().count(), 1);
        let got = last_json(&output);
        assert_eq!(got["interrupted"], true);
        assert!(got["steps"].as_u64().unwrap() > 0);
        // The weights saved are those whose loss was told.
        assert!(got["train_loss"].as_f64().unwrap() < 3.3, "{got}");
    }

    #[test]
    fn a_second_ctrl_c_quits_at_once() {
        let place = Place::new();
        let mut child = start(&place, "");
        interrupt(&child);
        // The second one as soon as the first is acknowledged.
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Ctrl-C again") {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "no answer to the first");
        }
        interrupt(&child);
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}
