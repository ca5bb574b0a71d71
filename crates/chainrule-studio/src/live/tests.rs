use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chainrule::optim::schedule::{ConstantLr, Schedule};
use serde_json::{Value, json};

use super::{Branch, Hub, RunFiles, SteeredSchedule, Watcher};

fn history(watcher: &Watcher) -> Vec<Value> {
    let found = watcher.answer("live.history", &json!({"run": "live-0"})).unwrap();
    found["events"].as_array().unwrap().clone()
}

fn steps(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["step"].as_u64().unwrap()).collect()
}

fn of_kind(news: &[Value], kind: &str) -> Vec<Value> {
    news.iter().filter(|event| event["event"] == kind).cloned().collect()
}

#[test]
fn each_page_hears_each_step_once() {
    let hub = Hub::new();
    let run = hub.begin("model");
    let mut first = hub.watch();
    assert_eq!(of_kind(&first.news(), "run")[0]["title"], "model");
    let mut heard = Vec::new();
    for step in 1..=30 {
        run.step(step, 1.0 / step as f64, 0.1, None);
        if step % 7 == 0 {
            for event in of_kind(&first.news(), "train") {
                heard.extend(steps(event["events"].as_array().unwrap()));
            }
        }
    }
    for event in of_kind(&first.news(), "train") {
        heard.extend(steps(event["events"].as_array().unwrap()));
    }
    assert_eq!(heard, (1..=30).collect::<Vec<_>>());
    // A page that comes later asks for the rest.
    let mut second = hub.watch();
    assert!(of_kind(&second.news(), "train").is_empty());
    assert_eq!(steps(&history(&second)), (1..=30).collect::<Vec<_>>());
    run.end("all steps are done");
    assert_eq!(of_kind(&first.news(), "end")[0]["why"], "all steps are done");
    assert_eq!(of_kind(&second.news(), "end").len(), 1);
    assert!(first.news().is_empty() && second.news().is_empty());
}

#[test]
fn a_long_run_takes_bounded_memory_and_keeps_its_ends() {
    let hub = Hub::new();
    let run = hub.begin("model");
    let watcher = hub.watch();
    for step in 1..=100_003 {
        run.step(step, step as f64, 0.1, None);
        if step % 500 == 0 {
            run.look(&json!({"step": step, "parameters": {}, "outputs": {}}));
        }
        if step == 50_001 {
            run.found(step, "loss_spike", "one batch");
        }
    }
    let kept = history(&watcher);
    assert!(kept.len() <= 4200, "{}", kept.len());
    let steps = steps(&kept);
    assert!(steps.is_sorted() && steps.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(steps[0] <= 64 && *steps.last().unwrap() == 100_003, "{steps:?}");
    let gap = steps.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(gap <= 64, "{gap}");
    let found = kept.iter().find(|event| event["step"] == 50_001).unwrap();
    assert_eq!(found["findings"][0]["kind"], "loss spike");
}

#[test]
fn a_look_belongs_to_its_step_whichever_comes_first() {
    let hub = Hub::new();
    let run = hub.begin("model");
    let watcher = hub.watch();
    let w = chainrule::Tensor::from([1.0, -1.0, 0.0, 2.0]);
    let mut monitor = chainrule::monitor::Monitor::new().every(1);
    for step in 1..=2 {
        monitor.parameter("w", &w, Some(&w));
        monitor.step(Some(0.5), Some(0.1));
        let line = monitor.line().unwrap();
        if step == 1 {
            run.look(&line);
            run.step(step, 0.5, 0.1, None);
        } else {
            run.step(step, 0.5, 0.1, None);
            run.look(&line);
        }
    }
    for event in history(&watcher) {
        let layer = &event["layers"][0];
        assert_eq!(layer["name"], "w");
        // By hand: mean 1/2, squares 1/4 + 9/4 + 1/4 + 9/4.
        assert!((layer["grad_norm"].as_f64().unwrap() - 6f64.sqrt()).abs() < 1e-6, "{layer}");
        assert!((layer["value"]["mean"].as_f64().unwrap() - 0.5).abs() < 1e-6, "{layer}");
        assert_eq!(layer["value"]["zeros"], 0.25);
    }
}

#[test]
fn a_page_holds_steps_and_steers_a_run() {
    let hub = Hub::new();
    let run = hub.begin("model");
    let watcher = hub.watch();
    let stop = AtomicBool::new(false);
    let order = |action: &str, rate: Option<f64>| {
        let args = json!({"run": "live-0", "action": action, "rate": rate});
        watcher.answer("live.control", &args)
    };
    let schedule = SteeredSchedule::new(&run, ConstantLr { lr: 0.1 });
    assert_eq!(schedule.lr(0), 0.1);
    let done = std::sync::atomic::AtomicU64::new(0);
    order("pause", None).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                run.pass(&|| stop.load(Ordering::Relaxed));
                if !stop.load(Ordering::Relaxed) {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let comes_to = |n: u64| {
            let end = Instant::now() + Duration::from_secs(20);
            while done.load(Ordering::Relaxed) < n && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            // Not one more.
            std::thread::sleep(Duration::from_millis(120));
            done.load(Ordering::Relaxed)
        };
        assert_eq!(comes_to(0), 0);
        order("step", None).unwrap();
        assert_eq!(comes_to(1), 1);
        order("step", None).unwrap();
        order("step", None).unwrap();
        assert_eq!(comes_to(3), 3);
        order("rate", Some(0.5)).unwrap();
        assert_eq!((schedule.lr(3), done.load(Ordering::Relaxed)), (0.5, 3));
        order("go", None).unwrap();
        assert!(comes_to(100) >= 100);
        order("pause", None).unwrap();
        // A run that is held can still be stopped.
        stop.store(true, Ordering::Relaxed);
    });
    for (action, rate) in [("rate", None), ("rate", Some(-1.0)), ("go", Some(f64::INFINITY))] {
        // JSON has no infinity; it comes as none.
        let refused = order(action, rate).is_err();
        assert!(refused || rate == Some(f64::INFINITY), "{action} {rate:?}");
    }
    assert!(order("stop", None).is_err());
    assert!(watcher.answer("live.control", &json!({"run": "live-7"})).is_err());
    hub.begin_watched("files");
    let other = watcher.answer("live.control", &json!({"run": "live-1", "action": "pause"}));
    assert!(other.unwrap_err().contains("--studio"));
}

#[test]
fn a_folder_is_followed_while_it_grows() {
    let folder = std::env::temp_dir().join(format!("chainrule-live-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let metrics = folder.join("metrics.jsonl");
    let hub = Hub::new();
    assert!(RunFiles::open(&hub, &folder).is_err());
    let mut file = fs::File::create(&metrics).unwrap();
    let mut run = RunFiles::open(&hub, &folder).unwrap();
    let mut watcher = hub.watch();
    watcher.news();
    writeln!(file, r#"{{"step":1,"loss":3.5,"lr":0.1}}"#).unwrap();
    // Half a line waits for its end, and a damaged one is passed over.
    write!(file, "damaged\n{{\"step\":2,\"lo").unwrap();
    file.flush().unwrap();
    assert!(run.look());
    assert_eq!(steps(&history(&watcher)), [1]);
    writeln!(file, r#"ss":null,"lr":0.1,"grad_norm":2.0}}"#).unwrap();
    writeln!(file, r#"{{"step":2,"evaluation":true,"val_loss":2.5}}"#).unwrap();
    fs::write(
        folder.join("monitor.jsonl"),
        r#"{"step":2,"finding":{"kind":"rate_too_high","place":"","consequence":"it grows","fix":"less"}}
"#,
    )
    .unwrap();
    run.look();
    let events = history(&watcher);
    assert_eq!((&events[1]["loss"], &events[1]["grad_norm"]), (&json!("nan"), &json!(2.0)));
    assert_eq!(events[1]["findings"][0]["words"], "it grows; less");
    let texts = of_kind(&watcher.news(), "texts");
    assert_eq!(texts[0]["measures"][0]["value"], 2.5);
    writeln!(file, r#"{{"final":true,"steps":2,"train_loss":2.5,"samples":["ada","eve"]}}"#)
        .unwrap();
    run.look();
    let news = watcher.news();
    assert_eq!(of_kind(&news, "end")[0]["why"], "all steps are done");
    let text = of_kind(&news, "texts")[0]["texts"][0]["text"].to_string();
    assert!(text.contains("train loss: 2.5") && text.contains("ada, eve"), "{text}");
    // Gone on with: the last line is taken out, and other steps follow.
    fs::write(&metrics, "{\"step\":1,\"loss\":3.5,\"lr\":0.1}\n").unwrap();
    run.look();
    run.look();
    assert_eq!(of_kind(&watcher.news(), "run").len(), 1);
    assert_eq!(steps(&history(&watcher)), [1]);
    fs::remove_dir_all(&folder).unwrap();
    run.look();
}

#[test]
fn a_state_is_kept_and_forked_by_the_training_alone() {
    let hub = Hub::new();
    let run = hub.begin("model");
    let watcher = hub.watch();
    let ask = |args: Value| watcher.answer("live.control", &args);
    let keep = json!({"run": "live-0", "action": "checkpoint"});
    let refused = ask(keep.clone()).unwrap_err();
    assert_eq!(refused, "this run cannot be forked: nothing keeps its state");

    run.allow_branches();
    ask(keep.clone()).unwrap();
    // A held run comes out of its wait for the order, and is held after it.
    ask(json!({"run": "live-0", "action": "pause"})).unwrap();
    run.pass(&|| false);
    assert!(run.has_branch());
    assert!(ask(keep).unwrap_err().contains("being carried out"));
    assert_eq!(run.take_branch(), Some(Branch::Checkpoint));
    run.kept(7, "run-at-7");

    let fork = |n: u64, rate: f64| json!({"run": "live-0", "action": "fork", "checkpoint": n, "rate": rate});
    assert_eq!(ask(fork(1, 0.1)).unwrap_err(), "there is no such checkpoint");
    ask(fork(0, 0.1)).unwrap();
    assert_eq!(run.take_branch(), Some(Branch::Fork { checkpoint: 0, rate: Some(0.1) }));
    run.end("done");
    assert!(ask(fork(0, 0.1)).unwrap_err().contains("has ended"));
}

#[test]
fn orders_reach_a_run_of_another_process_line_by_line() {
    #[derive(Clone, Default)]
    struct Pipe(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            super::lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (hub, pipe) = (Hub::new(), Pipe::default());
    hub.begin_relayed("fork", Box::new(pipe.clone()));
    let watcher = hub.watch();
    for args in [
        json!({"run": "live-0", "action": "pause"}),
        json!({"run": "live-0", "action": "rate", "rate": 0.5}),
    ] {
        watcher.answer("live.control", &args).unwrap();
    }
    let wrong = json!({"run": "live-0", "action": "rate", "rate": -1.0});
    assert!(watcher.answer("live.control", &wrong).unwrap_err().contains("above 0"));

    let there = Hub::new().begin("model");
    let lines = String::from_utf8(super::lock(&pipe.0).clone()).unwrap();
    assert_eq!(lines.lines().count(), 2, "an order that is refused is not sent");
    lines.lines().for_each(|line| there.obey(line).unwrap());
    assert_eq!(there.rate(), Some(0.5));
    assert!(there.run.control.as_ref().unwrap().is_held());
    assert!(there.obey("pause").unwrap_err().starts_with("no order"));
}
