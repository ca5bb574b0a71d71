//! Against a server on this machine that behaves badly.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// Behaviour of the server at its next request; the last one again and again.
#[derive(Clone, Copy)]
enum Does {
    /// All of it, or the part that was asked for.
    Right,
    /// Begins, and ends after this many bytes, though it promised more.
    CutsAfter(usize),
    /// Sends this many bytes and then nothing.
    StallsAfter(usize),
    /// Other bytes of the same length.
    Lies,
    /// Far more bytes.
    Endless,
    /// Sends all of it, also when a part was asked for.
    NoParts,
    /// Another part than was asked for.
    WrongPart,
    /// To this path.
    Redirects(&'static str),
    Status(&'static str),
}

fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect()
}

fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Serves until the test ends; the first bytes that each request asked for.
fn serve(plan: Vec<Does>) -> (String, Arc<Mutex<Vec<u64>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let does = plan[i.min(plan.len() - 1)];
            let (stream, seen) = (stream.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || answer(stream, does, &seen));
        }
    });
    (url, asked)
}

fn answer(mut stream: TcpStream, does: Does, seen: &Mutex<Vec<u64>>) {
    let mut from = 0;
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap().to_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    seen.lock().unwrap().push(from as u64);
    let all = content();
    let (from, shown) = match does {
        Does::NoParts | Does::Lies | Does::Endless => (0, 0),
        Does::WrongPart => (from, from + 7),
        _ => (from, from),
    };
    let mut body = all[from.min(all.len())..].to_vec();
    let head = match does {
        Does::Redirects(to) => {
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        Does::Status(status) => format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"),
        Does::Endless => "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
        _ if from > 0 => format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {shown}-{}/{}\r\ncontent-length: {}\r\n\r\n",
            all.len() - 1,
            all.len(),
            body.len()
        ),
        _ => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()),
    };
    // Each answer has a connection of its own.
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let _ = stream.write_all(head.as_bytes());
    match does {
        Does::Redirects(_) | Does::Status(_) => body.clear(),
        Does::CutsAfter(n) | Does::StallsAfter(n) => body.truncate(n),
        Does::Lies => body.iter_mut().for_each(|b| *b ^= 0x55),
        Does::Endless => body = body.repeat(3),
        _ => {}
    }
    let _ = stream.write_all(&body);
    if matches!(does, Does::StallsAfter(_)) {
        std::thread::sleep(Duration::from_secs(20));
    }
}

/// Fetches from a server with this plan into a new folder: the result, the folder, what was asked.
fn run(plan: Vec<Does>) -> (Result<Fetched>, tempfile::TempDir, Vec<u64>) {
    let (url, asked) = serve(plan);
    let dir = tempfile::tempdir().unwrap();
    let sum = sha(&content());
    let item = Item { name: "file", url, bytes: content().len() as u64, sha256: &sum };
    let patience = Patience { stall: Duration::from_secs(2), attempts: 3 };
    let result = fetch(&item, dir.path(), patience, &mut |_| {});
    let asked = asked.lock().unwrap().clone();
    (result, dir, asked)
}

#[track_caller]
fn arrives(plan: Vec<Does>) -> Vec<u64> {
    let (result, dir, asked) = run(plan);
    assert_eq!(result.unwrap(), Fetched::New);
    assert!(fs::read(dir.path().join("file")).unwrap() == content());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no part is left");
    asked
}

/// The message; the name is not taken.
#[track_caller]
fn fails(plan: Vec<Does>) -> (String, bool) {
    let (result, dir, _) = run(plan);
    assert!(!dir.path().join("file").exists(), "no half file under the final name");
    let text = format!("{:#}", result.unwrap_err());
    assert!(!text.contains('\n'), "{text}");
    (text, part_of(dir.path(), "file").exists())
}

#[test]
fn what_breaks_is_taken_up_where_it_ended() {
    assert_eq!(arrives(vec![Does::Right]), [0]);
    assert_eq!(
        arrives(vec![Does::CutsAfter(1_000), Does::CutsAfter(500), Does::Right]),
        [0, 1_000, 1_500]
    );
    let asked = arrives(vec![Does::StallsAfter(70_000), Does::Right]);
    assert_eq!(asked, [0, 70_000]);
    assert_eq!(arrives(vec![Does::CutsAfter(1_000), Does::NoParts]), [0, 1_000]);
    assert_eq!(arrives(vec![Does::Status("503 Busy"), Does::Right]).len(), 2);
    assert_eq!(arrives(vec![Does::Redirects("/elsewhere"), Does::Right]).len(), 2);
}

#[test]
fn a_bad_server_is_told_of_and_gets_no_file() {
    let (text, kept) = fails(vec![Does::Lies]);
    assert!(text.contains("sent something else") && !kept, "{text}");
    let (text, kept) = fails(vec![Does::Endless]);
    assert!(text.contains("more than the 300000 bytes") && !kept, "{text}");
    let (text, kept) = fails(vec![Does::CutsAfter(10)]);
    assert!(kept, "{text}");
    let (text, kept) = fails(vec![Does::StallsAfter(10), Does::StallsAfter(0)]);
    assert!(text.contains("no byte came") && kept, "{text}");
    assert!(fails(vec![Does::CutsAfter(10), Does::WrongPart]).0.contains("another part"));
    assert!(fails(vec![Does::Status("404 Gone")]).0.contains("404"));
    let (text, _) = fails(vec![Does::Redirects("/file")]);
    assert!(text.contains("redirect"), "{text}");
}

#[test]
fn a_file_that_is_there_is_checked_and_never_replaced() {
    let (result, dir, _) = run(vec![Does::Right]);
    result.unwrap();
    let sum = sha(&content());
    let url = "http://127.0.0.1:9/nobody".to_owned();
    let item = Item { name: "file", url, bytes: 300_000, sha256: &sum };
    let patience = Patience { stall: Duration::from_millis(200), attempts: 1 };
    assert_eq!(fetch(&item, dir.path(), patience, &mut |_| {}).unwrap(), Fetched::Present);
    fs::write(dir.path().join("file"), "mine").unwrap();
    let error = fetch(&item, dir.path(), patience, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("another file has this name"), "{error}");
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"mine");
}
