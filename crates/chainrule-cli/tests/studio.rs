//! `chainrule studio` and `train --studio`: what the page is told by the program.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, text};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client};

/// A program that serves a page; ended with the value.
struct Served {
    child: Child,
    address: String,
    token: String,
    part: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Waits for the line with the address, on standard output or standard error.
    fn start(command: &mut Command, on_error: bool) -> Served {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let out: Box<dyn Read> = match on_error {
            true => Box::new(child.stderr.take().unwrap()),
            false => Box::new(child.stdout.take().unwrap()),
        };
        let mut line = String::new();
        let mut out = BufReader::new(out);
        while !line.contains("http://") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "no address came");
        }
        let url = &line[line.find("http://").unwrap()..];
        let (address, rest) = url.trim().split_once("/#token=").unwrap();
        let (token, part) = rest.split_once('&').unwrap_or((rest, ""));
        let address = address.trim_start_matches("http://").to_owned();
        Served { child, address, token: token.to_owned(), part: part.to_owned() }
    }

    fn page(&self) -> PageSocket {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut request = tungstenite::client::IntoClientRequest::into_client_request(format!(
            "ws://{}/socket",
            self.address
        ))
        .unwrap();
        let origin = format!("http://{}", self.address).parse().unwrap();
        request.headers_mut().insert("origin", origin);
        let (mut socket, _) = client(request, stream).unwrap();
        socket.send(Message::text(json!({"token": self.token}).to_string())).unwrap();
        PageSocket { socket, events: Vec::new() }
    }
}

/// The page's side of the socket.
struct PageSocket {
    socket: WebSocket<TcpStream>,
    events: Vec<Value>,
}

impl PageSocket {
    fn read(&mut self) -> Value {
        serde_json::from_str(&self.socket.read().unwrap().into_text().unwrap()).unwrap()
    }

    #[track_caller]
    fn ask(&mut self, call: &str, args: Value) -> Value {
        self.socket
            .send(Message::text(json!({"id": 1, "call": call, "args": args}).to_string()))
            .unwrap();
        loop {
            let answer = self.read();
            if answer.get("event").is_none() {
                assert!(answer.get("ok").is_some(), "{call}: {answer}");
                return answer["ok"].clone();
            }
            self.events.push(answer);
        }
    }

    /// The next event of this kind.
    fn event(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == kind) {
                return self.events.remove(at);
            }
            let event = self.read();
            self.events.push(event);
        }
    }

    /// The newest step that was told.
    fn newest(&mut self) -> u64 {
        let history = self.ask("live.history", json!({"run": "live-0"}));
        let events = history["events"].as_array().unwrap();
        events.last().map_or(0, |event| event["step"].as_u64().unwrap())
    }
}

/// A printed number such as `0.0374` or `1.2e-5` and one of the page agree to the digits printed.
fn agrees(printed: &str, of_page: f64) -> bool {
    let value: f64 = printed.parse().unwrap_or(f64::NAN);
    let digits = printed.split(['e', 'E']).next().unwrap();
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
    let exponent: i32 =
        printed.split_once(['e', 'E']).map_or(0, |(_, exponent)| exponent.parse().unwrap());
    // Half of the last digit, and the rounding of f32.
    let unit = 10f64.powi(exponent - decimals);
    (value - of_page).abs() <= 0.5001 * unit + 2e-5 * of_page.abs()
}

/// The example is the first step of `train names`: the loss that its metrics have, and the values
/// and gradients of the table that it prints, by a model of fused ops in f32.
#[test]
fn the_names_example_has_the_numbers_of_train_names() {
    let place = Place::new();
    let output = place.run("train names --steps 1 --out run");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let metrics = std::fs::read_to_string(place.path("run/metrics.jsonl")).unwrap();
    let first: Value = serde_json::from_str(metrics.lines().next().unwrap()).unwrap();
    let loss = first["loss"].as_f64().unwrap();

    let served = Served::start(&mut place.command("studio --example names --no-open"), false);
    let mut page = served.page();
    assert_eq!(page.event("hello")["given"][0]["title"], "names");
    let opened = page.ask("open", json!({"given": 0}));
    let session = &opened["session"];
    let nodes = opened["nodes"].as_array().unwrap();
    let root = &nodes[opened["root"].as_u64().unwrap() as usize];
    let found = root["value"]["data"][0].as_f64().unwrap();
    assert!((found / loss - 1.0).abs() < 1e-6, "{found} {loss}");
    // The tutorial's 19 intermediates and 7 parameters.
    let graded = |node: &&Value| {
        node["name"].is_string() && node["requires_grad"] == true && node["id"] != opened["root"]
    };
    assert_eq!(nodes.iter().filter(graded).count(), 26);

    let table = text(&output.stdout);
    let mut compared = 0;
    for name in
        ["C", "W1", "W2", "b2", "bngain", "bnbias", "emb", "hprebn", "hpreact", "h", "logits"]
    {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        let row = row.unwrap_or_else(|| panic!("no row {name} in\n{table}"));
        let words: Vec<&str> = row.split_whitespace().collect();
        let node = nodes.iter().find(|node| node["name"] == name).unwrap();
        // mean, std, norm and zeros of the value, then of the gradient.
        for (at, of) in [(2, "value"), (6, "gradient")] {
            let args = json!({"session": session, "node": node["id"], "of": of});
            let stats = page.ask("tensor", args)["stats"].clone();
            let n = stats["count"].as_f64().unwrap();
            let std = stats["std"].as_f64().unwrap() * (n / (n - 1.0)).sqrt();
            for (printed, right) in
                [(words[at + 1], std), (words[at + 2], stats["norm"].as_f64().unwrap())]
            {
                assert!(agrees(printed, right), "{of} of {name}: {printed} and {right}\n{row}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 44);
}

#[test]
fn the_users_own_backward_pass_comes_from_a_file() {
    let place = Place::new();
    std::fs::write(place.path("f.py"), "x = leaf(3.0)\ny = x * x\n").unwrap();
    std::fs::write(place.path("b.py"), "dx = x\n").unwrap();
    let served = Served::start(&mut place.command("studio f.py --backward b.py --no-open"), false);
    let given = served.page().event("hello")["given"][0].clone();
    assert_eq!((&given["title"], &given["hand"]), (&json!("f.py"), &json!("dx = x\n")));
    place.refused("studio f.py b.py --no-open", 1);
    place.refused("studio none.py --no-open", 1);
    std::fs::write(place.path("bad.py"), "x = leaf(3.0)\ny = x *\n").unwrap();
    assert!(place.refused("studio bad.py --no-open", 1).contains("bad.py, line 2: "));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert!(place.refused("studio empty --no-open", 1).contains("no run of chainrule train"));
}

/// A script of the Python package is run by a Python that has it; the package's own tests run it.
#[test]
fn a_script_needs_a_python() {
    let place = Place::new();
    std::fs::write(place.path("train.py"), "import chainrule as cr\nw = cr.ones(2)\n").unwrap();
    let said = place.refused("studio train.py --python no-such-python --no-open", 1);
    assert!(said.contains("there is no program no-such-python"), "{said}");
    let said = place.refused("studio train.py --backward train.py --no-open", 1);
    assert!(said.contains("chainrule check backward"), "{said}");
    place.refused("studio train.py train.py --no-open", 1);
}

/// A training is held between two steps, steps once when asked to, takes another rate, and goes on
/// to its end.
#[test]
fn a_training_is_controlled_from_the_page() {
    let place = Place::new();
    let words = "train names --data names.txt --steps 2000000 --hidden 20 --studio --out run";
    let mut served = Served::start(&mut place.command(words), true);
    assert_eq!(served.part, "/training");
    let mut page = served.page();
    assert_eq!(page.event("run")["control"], true);
    page.ask("live.control", json!({"run": "live-0", "action": "pause"}));
    assert_eq!(page.event("held")["held"], true);
    std::thread::sleep(Duration::from_millis(300));
    let at = page.newest();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(page.newest(), at, "it is held");
    page.ask("live.control", json!({"run": "live-0", "action": "step"}));
    let end = Instant::now() + Duration::from_secs(20);
    while page.newest() == at && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(page.newest(), at + 1);
    page.ask("live.control", json!({"run": "live-0", "action": "rate", "rate": 0.0125}));
    page.ask("live.control", json!({"run": "live-0", "action": "step"}));
    while page.newest() == at + 1 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let history = page.ask("live.history", json!({"run": "live-0"}));
    assert_eq!(history["events"].as_array().unwrap().last().unwrap()["rate"], 0.0125);
    page.ask("live.control", json!({"run": "live-0", "action": "go"}));
    while page.newest() <= at + 2 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(page.newest() > at + 2);
    // A killed run is gone for the page, and its folder tells of it: see the tests of the page.
    served.child.kill().unwrap();
}

/// A fork takes its orders through a pipe; when the process at its other end is gone, however it
/// went, the fork saves its state and ends.
#[test]
fn a_fork_ends_with_the_process_that_started_it() {
    let place = Place::new();
    let words =
        "train names --data names.txt --steps 2000000 --hidden 20 --quiet --steered --out run";
    let mut command = place.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut fork = command.spawn().unwrap();
    let until = |holds: &mut dyn FnMut() -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        while !holds() {
            assert!(Instant::now() < end, "it took too long");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(&mut || place.path("run/metrics.jsonl").exists());
    std::thread::sleep(Duration::from_millis(200));
    assert!(fork.try_wait().unwrap().is_none(), "it trains");
    drop(fork.stdin.take());
    until(&mut || fork.try_wait().unwrap().is_some());
    assert!(place.path("run/last.ckpt").exists());
    let metrics = std::fs::read_to_string(place.path("run/metrics.jsonl")).unwrap();
    let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    assert_eq!((&last["final"], &last["interrupted"]), (&json!(true), &json!(true)), "{last}");
}

/// A folder is replayed, and followed while another process trains in it.
#[test]
fn runs_are_laid_over_each_other_from_their_folders() {
    let place = Place::new();
    place.train("first", "");
    place.train("second", "--lr 0.05");
    let served = Served::start(&mut place.command("studio first second --no-open"), false);
    assert_eq!(served.part, "/training");
    let mut page = served.page();
    let runs = [page.event("run"), page.event("run")];
    assert_eq!([&runs[0]["title"], &runs[1]["title"]], ["first", "second"]);
    assert_eq!(runs[0]["control"], false);
    for (run, rate) in [("live-0", 0.1), ("live-1", 0.05)] {
        let end = Instant::now() + Duration::from_secs(20);
        let history = loop {
            let history = page.ask("live.history", json!({"run": run}));
            if history["ended"].is_string() || Instant::now() > end {
                break history;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(history["ended"], "all steps are done");
        let events = history["events"].as_array().unwrap();
        assert_eq!((events.len(), &events[0]["rate"]), (30, &json!(rate)));
        // The looks of the monitor belong to their steps.
        assert!(events.iter().any(|event| event["layers"][0]["name"] == "C"), "{run}");
    }
}

/// The command without its page: the data of the page, and a line for a program that is wrong.
#[test]
fn the_page_is_there_as_json() {
    let place = Place::new();
    std::fs::write(
        place.path("forward.py"),
        "x = leaf([[0.5, -1.0]])\nh = tanh(x)\nloss = (h * h).sum()\n",
    )
    .unwrap();
    std::fs::write(place.path("backward.py"), "dh = 2 * h\ndx = dh * (1 - h)\n").unwrap();
    let got = place.json("studio forward.py --backward backward.py --json");
    let nodes = got["graph"]["nodes"].as_array().unwrap();
    assert!(nodes.iter().any(|node| node["name"] == "h" && node["source"]["line"] == 2), "{got}");
    let steps = got["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    let due: Vec<f64> =
        [0.5f64, -1.0].iter().map(|x| 2.0 * x.tanh() * (1.0 - x.tanh().powi(2))).collect();
    for (i, due) in due.iter().enumerate() {
        assert!((last["incoming"]["data"][i].as_f64().unwrap() - due).abs() < 1e-12, "{last}");
    }
    // The slope of tanh is wrong: its line and the correction.
    let finding = &got["comparison"]["finding"];
    assert_eq!((&finding["line"], &finding["name"]), (&json!(2), &json!("x")), "{finding}");
    assert!(!finding["correction"].as_str().unwrap().is_empty());
    // Costs are measured: of the whole, and of all lines that run.
    for which in ["before", "after", "fused"] {
        let listed = &got["program"][which];
        assert!(listed["microseconds"].as_f64().unwrap() > 0.0, "{listed}");
        let parts = listed["parts"].as_array().unwrap();
        assert!(parts.iter().all(|part| part["microseconds"].as_f64().unwrap() >= 0.0));
        assert!(!parts.is_empty());
    }
    std::fs::write(place.path("wrong.py"), "x = leaf(2.0)\ny = x * unknown\n").unwrap();
    assert!(place.refused("studio wrong.py --json", 1).contains("line 2"));
    assert!(place.refused("studio --json", 1).contains("--example"));
}
