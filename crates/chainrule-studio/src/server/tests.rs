use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error, Message};

use super::{CONNECTIONS, Given, Studio};

/// A server on a thread of its own; its address and token.
fn start() -> (SocketAddr, String) {
    start_with(Duration::from_millis(600))
}

/// The same, which waits this long for the head of a request.
fn start_with(patience: Duration) -> (SocketAddr, String) {
    let text = "x = leaf(3.0)\ny = x * x".to_string();
    let given = vec![Given { title: "square".into(), text, ..Given::default() }];
    let studio = Studio::with_patience(0, given, patience).unwrap();
    let url = studio.url();
    let address = studio.shared.address;
    std::thread::spawn(move || studio.serve());
    (address, url.split_once("#token=").unwrap().1.to_string())
}

/// The status of a request, and the whole answer.
fn ask(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn get(address: SocketAddr, path: &str, host: &str, more: &str) -> (u16, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"))
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn connect(address: SocketAddr) -> WebSocket<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n{UPGRADE}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    // The answer to the key of the standard's example.
    assert!(head.contains("101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    WebSocket::from_raw_socket(stream, Role::Client, None)
}

fn is_closed(socket: &mut WebSocket<TcpStream>) -> bool {
    matches!(
        socket.read(),
        Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::Protocol(_) | Error::Io(_))
    )
}

#[test]
fn a_page_talks_with_its_engine() {
    let (address, token) = start();
    let mut socket = connect(address);
    socket.send(Message::text(json!({ "token": token }).to_string())).unwrap();
    let hello: Value = serde_json::from_str(&socket.read().unwrap().into_text().unwrap()).unwrap();
    assert_eq!((&hello["event"], &hello["given"][0]["title"]), (&json!("hello"), &json!("square")));
    let opened = ask_engine(&mut socket, "open", json!({"given": 0}));
    let session = opened["ok"]["session"].clone();
    let film = ask_engine(&mut socket, "backward", json!({"session": session}));
    let steps = film["ok"]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["incoming"]["data"], json!([6.0]));
}

/// Elements come as a binary message that names its request.
#[test]
fn elements_come_as_a_binary_message() {
    let (address, token) = start();
    let mut socket = admitted(address, &token);
    let opened = ask_engine(&mut socket, "open", json!({"given": 0, "most": 4}));
    let args = json!({"session": opened["ok"]["session"], "node": 0, "of": "gradient"});
    let request = json!({"id": 9, "call": "slice", "args": args});
    socket.send(Message::text(request.to_string())).unwrap();
    let Message::Binary(bytes) = socket.read().unwrap() else { panic!("a binary message") };
    assert_eq!((bytes[0], bytes.len()), (9, 24));
    assert_eq!(bytes[16..], 6.0f64.to_le_bytes());
    // An error is text, and text that is run is refused here as elsewhere.
    for args in [json!({"session": 5, "node": 0}), json!({"session": 0, "node": 0, "want": "x"})] {
        assert!(ask_engine(&mut socket, "slice", args).get("error").is_some());
    }
}

fn ask_engine(socket: &mut WebSocket<TcpStream>, call: &str, args: Value) -> Value {
    let request = json!({"id": 3, "call": call, "args": args});
    socket.send(Message::text(request.to_string())).unwrap();
    loop {
        let text = socket.read().unwrap().into_text().unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        if answer.get("event").is_none() {
            return answer;
        }
    }
}

fn admitted(address: SocketAddr, token: &str) -> WebSocket<TcpStream> {
    let mut socket = connect(address);
    socket.send(Message::text(json!({ "token": token }).to_string())).unwrap();
    socket.read().unwrap();
    socket
}

/// Programs, expressions and backward passes that a page sends are for the engine in the page.
#[test]
fn typed_code_is_refused() {
    let (address, token) = start();
    let mut socket = admitted(address, &token);
    for (call, args) in [
        ("open", json!({"source": "x = leaf(2.0)"})),
        ("open", json!({"given": 0, "source": "x = leaf(2.0)"})),
        ("open", json!({"example": "neuron"})),
        ("eval", json!({"given": 0, "want": ["x"]})),
        ("compare", json!({"given": 0, "backward": "dx = 6"})),
        ("judge", json!({"reference": "x = 1", "attempt": "x = 1", "want": ["x"]})),
        ("gradcheck", json!({"given": 0})),
        ("gradcheck", json!({"source": "x = leaf(2.0)"})),
        ("train.start", json!({"source": "loss = leaf(2.0)"})),
        ("train.start", json!({"given": 0})),
        ("train.step", json!({"run": 0})),
        ("train.predict", json!({"run": 0, "want": "x"})),
        ("algebra", json!({"source": "x = leaf(2.0)"})),
        ("algebra", json!({"name": "softmax"})),
        ("program", json!({"source": "x = leaf(2.0)"})),
        ("hints", json!({"source": "x = leaf(2.0)"})),
        ("plant", json!({"source": "x = leaf(2.0)"})),
        ("tensor", json!({"session": 0, "node": 0, "want": "x"})),
        ("open", json!({"given": "x = leaf(2.0)"})),
        ("open", json!({"given": ["x = leaf(2.0)"]})),
    ] {
        let answer = ask_engine(&mut socket, call, args.clone());
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("is run in the page"), "{call} {args}: {answer}");
    }
    // The user's own program is answered for all the same.
    assert!(ask_engine(&mut socket, "open", json!({"given": 0})).get("ok").is_some());
    assert!(ask_engine(&mut socket, "program", json!({"given": 0})).get("ok").is_some());
}

#[test]
fn the_page_comes_with_a_strict_policy() {
    let (address, token) = start();
    let (status, answer) = get(address, "/", &address.to_string(), "");
    assert_eq!(status, 200);
    let head = answer.split("\r\n\r\n").next().unwrap();
    assert!(
        head.contains("default-src 'none'") && head.contains("frame-ancestors 'none'"),
        "{head}"
    );
    assert!(head.contains("nosniff") && !head.contains("Access-Control"), "{head}");
    assert!(!answer.contains(&token));
    // Refusals have one, too; nothing allows inline styles or scripts.
    let host = address.to_string();
    for (path, host) in [("/", host.as_str()), ("/none", &host), ("/", "evil.example")] {
        let (_, answer) = get(address, path, host, "");
        let head = answer.split("\r\n\r\n").next().unwrap();
        let policy = head.lines().find(|line| line.starts_with("Content-Security-Policy: "));
        let policy = policy.unwrap_or_else(|| panic!("{path} {host}: {head}"));
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("'unsafe-inline'") && !policy.contains("'unsafe-eval'"));
        assert!(head.contains("nosniff") && head.contains("no-store"), "{head}");
    }
}

#[test]
fn a_wrong_host_is_refused() {
    let (address, _) = start();
    let port = address.port();
    // A name that was rebound to this machine, another port, none at all.
    for host in [format!("evil.example:{port}"), "127.0.0.1".into(), format!("localhost:{port}")] {
        assert_eq!(get(address, "/", &host, "").0, 421, "{host}");
    }
    assert_eq!(ask(address, "GET / HTTP/1.1\r\n\r\n").0, 421);
    let twice = format!("Host: {address}\r\n");
    assert_eq!(get(address, "/", &address.to_string(), &twice).0, 421);
}

#[test]
fn a_foreign_origin_is_refused() {
    let (address, _) = start();
    let host = address.to_string();
    for origin in ["http://evil.example", "null", "https://127.0.0.1"] {
        let more = format!("Origin: {origin}\r\n{UPGRADE}");
        assert_eq!(get(address, "/socket", &host, &more).0, 403, "{origin}");
        assert_eq!(get(address, "/", &host, &format!("Origin: {origin}\r\n")).0, 403, "{origin}");
    }
    assert_eq!(get(address, "/socket", &host, UPGRADE).0, 403);
    let own = format!("Origin: http://{address}\r\n");
    assert_eq!(get(address, "/socket", &host, &own).0, 426);
}

#[test]
fn without_the_token_nothing_is_said() {
    let (address, token) = start();
    let wrong = format!("{}0", &token[..token.len() - 1]);
    let wrong = if wrong == token { token.replace('0', "1") } else { wrong };
    for first in [
        json!({"token": wrong}),
        json!({"token": ""}),
        json!({"id": 1, "call": "examples"}),
        json!({"token": null}),
    ] {
        let mut socket = connect(address);
        socket.send(Message::text(first.to_string())).unwrap();
        assert!(is_closed(&mut socket), "{first}");
    }
    // Nor to one that says nothing.
    let start = Instant::now();
    assert!(is_closed(&mut connect(address)));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn no_path_reaches_the_files() {
    let (address, _) = start();
    let host = address.to_string();
    for path in [
        "/../Cargo.toml",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/../../x",
        "/%2e%2e/%2e%2e/etc/passwd",
        "\\..\\x",
        "http://127.0.0.1/",
        "*",
        "/index.html/..",
    ] {
        let (status, answer) = get(address, path, &host, "");
        assert_eq!(status, 404, "{path}");
        assert!(!answer.contains("root:"), "{path}");
    }
}

#[test]
fn other_requests_are_refused() {
    let (address, _) = start();
    for (request, status) in [
        (format!("POST / HTTP/1.1\r\nHost: {address}\r\n\r\n"), 405),
        (format!("OPTIONS / HTTP/1.1\r\nHost: {address}\r\n\r\n"), 405),
        (format!("GET / HTTP/1.0\r\nHost: {address}\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\nno colon\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\nsmuggled"), 400),
        ("\u{0}\u{1}\r\n\r\n".to_string(), 400),
    ] {
        assert_eq!(ask(address, &request).0, status, "{request:?}");
    }
    // A head without end: 16 kB and a little, so that the refusal is read before the rest is sent.
    let long = format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {}", "x".repeat(16 << 10));
    assert_eq!(ask(address, &long).0, 431);
}

/// A page that takes nothing is dropped, and a training that it watches never waits for it.
#[test]
fn a_slow_reader_is_dropped() {
    let studio = Studio::with_patience(0, Vec::new(), Duration::from_millis(300)).unwrap();
    let (address, hub) = (studio.shared.address, studio.hub().clone());
    let token = studio.url().split_once("#token=").unwrap().1.to_string();
    std::thread::spawn(move || studio.serve());
    let run = hub.begin("model");
    let _deaf = admitted(address, &token);
    let start = Instant::now();
    while !run.is_watched() {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut slowest, mut step) = (Duration::ZERO, 0);
    while run.is_watched() && start.elapsed() < Duration::from_secs(30) {
        step += 1;
        let began = Instant::now();
        run.text(step, "sample", &"x".repeat(20_000));
        run.step(step, 1.0, 0.1, None);
        slowest = slowest.max(began.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!run.is_watched(), "{:?}", start.elapsed());
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[test]
fn an_oversized_message_ends_the_talk() {
    let (address, token) = start();
    let mut socket = connect(address);
    socket.send(Message::text(json!({ "token": token }).to_string())).unwrap();
    socket.read().unwrap();
    // The server closes while the rest is still on its way.
    let _ = socket.send(Message::text("x".repeat((8 << 20) + 1)));
    assert!(is_closed(&mut socket));
}

#[test]
fn a_slow_client_is_dropped() {
    let (address, _) = start();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let start = Instant::now();
    // A byte now and then does not win time.
    let mut ended = false;
    for byte in b"GET / HTTP/1.1\r\nHost: example\r\n".iter().cycle() {
        if stream.write_all(&[*byte]).is_err() || start.elapsed() > Duration::from_secs(15) {
            ended = true;
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(ended && start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_client_beyond_the_limit_is_turned_away() {
    // None of those held may run out of time before the last has connected.
    let (address, _) = start_with(Duration::from_secs(60));
    let held: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer:?}");
    // When they have gone, the next is served.
    drop(held);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(get(address, "/", &address.to_string(), "").0, 200);
}
